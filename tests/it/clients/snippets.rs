//! The signing functions that `docs/merchants-v1.md` shows and links are the ones that the clients here sign with.

use std::path::Path;

/// The examples, and how their language is named in a block of code.
const SNIPPETS: [(&str, &str); 5] =
    [("curl.sh", "sh"), ("sign.py", "python"), ("sign.mjs", "js"), ("Sign.java", "java"), ("sign.php", "php")];

/// The language of the function on the page.
const SHOWN: &str = "python";

/// The marked lines of an example, moved to the left edge.
fn snippet(source: &str) -> String {
    let lines = source.lines().skip_while(|line| !line.trim().ends_with("[snippet]")).skip(1);
    let lines: Vec<_> = lines.take_while(|line| !line.trim().ends_with("[/snippet]")).collect();
    let edge = lines.iter().filter(|line| !line.is_empty()).map(|line| line.len() - line.trim_start().len()).min();
    lines.iter().map(|line| line.get(edge.unwrap_or(0)..).unwrap_or_default().to_owned() + "\n").collect()
}

#[test]
fn the_page_of_v1_shows_what_signs_here() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |file: &str| std::fs::read_to_string(root.join(file)).unwrap();
    let page = read("docs/merchants-v1.md");
    for (file, language) in SNIPPETS {
        let snippet = snippet(&read(&format!("examples/sign/{file}")));
        assert!((5..=14).contains(&snippet.lines().count()), "{file}: {snippet}");
        assert!(page.contains(&format!("(../examples/sign/{file})")), "docs/merchants-v1.md does not name {file}");
        let block = format!("```{language}\n{snippet}```\n");
        // One language is shown, the others are linked.
        assert!(
            language != SHOWN || page.contains(&block),
            "docs/merchants-v1.md does not show examples/sign/{file}:\n{block}"
        );
    }
}
