//! The signing functions that `README.md` shows are the ones that the clients here sign with.

use std::path::Path;

/// The examples, and how their language is named in a block of code.
const SNIPPETS: [(&str, &str); 5] =
    [("curl.sh", "sh"), ("sign.py", "python"), ("sign.mjs", "js"), ("Sign.java", "java"), ("sign.php", "php")];

/// The marked lines of an example, moved to the left edge.
fn snippet(source: &str) -> String {
    let lines = source.lines().skip_while(|line| !line.trim().ends_with("[snippet]")).skip(1);
    let lines: Vec<_> = lines.take_while(|line| !line.trim().ends_with("[/snippet]")).collect();
    let edge = lines.iter().filter(|line| !line.is_empty()).map(|line| line.len() - line.trim_start().len()).min();
    lines.iter().map(|line| line.get(edge.unwrap_or(0)..).unwrap_or_default().to_owned() + "\n").collect()
}

#[test]
fn readme_shows_what_signs_here() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |file: &str| std::fs::read_to_string(root.join(file)).unwrap();
    let readme = read("README.md");
    for (file, language) in SNIPPETS {
        let snippet = snippet(&read(&format!("examples/sign/{file}")));
        assert!((5..=14).contains(&snippet.lines().count()), "{file}: {snippet}");
        let block = format!("```{language}\n{snippet}```\n");
        assert!(readme.contains(&block), "README.md does not show examples/sign/{file}:\n{block}");
    }
}
