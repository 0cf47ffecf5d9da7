//! The documents hold: links and anchors lead somewhere, long pages have contents, examples are well formed, and the commands
//! that README.md and the pages for merchants and moves show work as they are shown.

mod migration;
mod repeats;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use regex::Regex;
use serde_json::Value;

use crate::support::tools::{in_path, output, root, without_detours};
use crate::support::{self, Gateway, Rules, eventually};

/// The directories that hold documents, relative to the repository.
pub const DIRECTORIES: [&str; 5] = ["", "certs", "docs", "rules", "examples"];

/// A page longer than this has a list of its sections.
const WITHOUT_CONTENTS: usize = 150;

const PATIENCE: Duration = Duration::from_mins(1);

/// All documents by path, with their text.
fn documents() -> BTreeMap<PathBuf, String> {
    let files = DIRECTORIES.iter().flat_map(|directory| std::fs::read_dir(root().join(directory)).unwrap());
    let paths = files.map(|entry| entry.unwrap().path());
    let paths = paths.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    paths.map(|path| (path.clone(), std::fs::read_to_string(path).unwrap())).collect()
}

pub fn page(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

/// The lines outside blocks of code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut in_code = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        !in_code && !fence
    })
}

/// The blocks of code of a language.
fn blocks<'a>(text: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("\n```{language}\n");
    text.split(fence.as_str()).skip(1).map(|rest| rest.split("\n```").next().unwrap()).collect()
}

/// The anchor of a heading: lower case, hyphens for spaces, without other punctuation.
fn anchor(heading: &str) -> String {
    let title = heading.trim_start_matches('#').trim().replace("&lt;", "<").replace("&gt;", ">").to_lowercase();
    let kept = title.chars().filter(|&char| char.is_alphanumeric() || " -_".contains(char));
    kept.map(|char| if char == ' ' { '-' } else { char }).collect()
}

/// The anchors of a page, and those of its sections of the second level.
pub fn anchors(text: &str) -> (BTreeSet<String>, Vec<String>) {
    let headings: Vec<&str> = prose(text).filter(|line| line.starts_with('#')).collect();
    let mut anchors = BTreeSet::new();
    for heading in &headings {
        let anchor = anchor(heading);
        let mut numbered = (1..=headings.len()).map(|number| format!("{anchor}-{number}"));
        let free = if anchors.contains(&anchor) { numbered.find(|name| !anchors.contains(name)) } else { None };
        anchors.insert(free.unwrap_or(anchor));
    }
    let sections = headings.iter().filter(|heading| heading.starts_with("## ")).map(|heading| anchor(heading));
    (anchors, sections.collect())
}

/// The targets of links and pictures.
fn links(text: &str) -> Vec<String> {
    let text = prose(text).collect::<Vec<_>>().join("\n");
    let after = |mark: &str, end: char| {
        let rests: Vec<_> = text.split(mark).skip(1).map(|rest| rest.split(end).next().unwrap().to_owned()).collect();
        rests
    };
    [after("](", ')'), after("href=\"", '"'), after("src=\"", '"')].concat()
}

#[test]
fn links_and_anchors_lead_somewhere() {
    let documents = documents();
    let mut wrong = Vec::new();
    let mut local = 0;
    for (path, text) in &documents {
        for link in links(text).into_iter().filter(|link| !link.contains("://")) {
            local += 1;
            let (file, fragment) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
            let Ok(target) = target.canonicalize() else {
                wrong.push(format!("{}: no file {link}", path.display()));
                continue;
            };
            let known = |text: &String| anchors(text).0.contains(fragment);
            if !fragment.is_empty() && !documents.get(&target).is_some_and(known) {
                wrong.push(format!("{}: no heading {link}", path.display()));
            }
        }
    }
    assert!(local > 100 && documents.len() > 12, "the links are read: {local}");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn long_pages_have_contents_and_the_first_one_is_short() {
    assert!(page("README.md").lines().count() <= 200);
    // Tables of numbered rows and of terms: their sections are few, and are read from the top.
    let lists = ["README.md", "docs/promise.md", "docs/glossary.md"].map(|path| root().join(path));
    for (path, text) in documents() {
        let links = links(&text);
        let missing: Vec<_> =
            anchors(&text).1.into_iter().filter(|section| !links.contains(&format!("#{section}"))).collect();
        let long = text.lines().count() > WITHOUT_CONTENTS && !lists.contains(&path);
        assert!(!long || missing.is_empty(), "{} does not list {missing:?}", path.display());
    }
}

#[test]
fn examples_are_well_formed_and_tables_are_readable() {
    for (path, text) in documents() {
        for block in blocks(&text, "json") {
            for document in serde_json::Deserializer::from_str(block).into_iter::<Value>() {
                assert!(document.is_ok(), "{}: {document:?} in {block}", path.display());
            }
        }
        for block in blocks(&text, "toml") {
            let parsed = block.parse::<toml::Table>();
            assert!(parsed.is_ok(), "{}: {parsed:?} in {block}", path.display());
        }
        for line in prose(&text).filter(|line| line.starts_with("| ")) {
            let longest = line.split(" | ").map(|cell| cell.chars().count()).max().unwrap();
            assert!(longest <= 200, "{}: a cell of {longest} characters: {line}", path.display());
        }
    }
}

/// The reasons of refusals and failures in access lines and metrics, as the source has them.
fn reasons() -> BTreeSet<String> {
    let named = |file: &str, pattern: &str| -> Vec<String> {
        let source = page(file);
        let found = Regex::new(pattern).unwrap().captures_iter(&source).map(|found| found[1].to_owned()).collect();
        assert_ne!(found, Vec::<String>::new(), "{pattern} is in {file}");
        found
    };
    // What is between the head of such a function and its end.
    let functions = named("src/error.rs", r"(?s)fn reason\(&?self\) -> &'static str \{\n(.*?)\n    \}\n");
    let word = Regex::new("\"([a-z0-9_]+)\"").unwrap();
    let words = functions.iter().flat_map(|body| word.captures_iter(body)).map(|found| found[1].to_owned());
    let others = [
        named("src/v1/create.rs", r#"self\.refused\([^"\n]*"([a-z_]+)"\)"#),
        named("src/v1/translate.rs", r#"\breason: "([a-z_]+)""#),
        named("src/http/context.rs", r#"\botherwise(?:: | = )"([a-z_]+)""#),
    ];
    words.chain(others.into_iter().flatten()).collect()
}

#[test]
fn every_reason_has_a_row_in_the_table_of_troubleshooting() {
    let reasons = reasons();
    assert!(reasons.len() >= 43, "the reasons are read: {reasons:?}");
    let page = page("docs/operations.md");
    let table = page.lines().skip_while(|line| *line != "## Troubleshooting").filter(|line| line.starts_with("| "));
    let symptoms: Vec<_> = table.map(|row| row.split(" | ").next().unwrap()).collect();
    let missing: Vec<_> = reasons
        .iter()
        .filter(|reason| !symptoms.iter().any(|symptom| symptom.contains(&format!("`{reason}`"))))
        .collect();
    assert!(missing.is_empty(), "{missing:?} in docs/operations.md");
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// A gateway on the shipped rules, on other ports, and where its callbacks go.
fn shipped() -> (Gateway, u16) {
    for _ in 0..3 {
        let mut gateway = Gateway::prepare_at(&Rules::default(), None);
        let receiver = support::gateway::free_port();
        let rules = gateway.rules_dir();
        std::fs::remove_dir_all(&rules).unwrap();
        copy(&root().join("rules"), &rules);
        let ports = [("8443", gateway.public.port()), ("9090", gateway.admin.port()), ("9443", receiver)];
        for file in ["gateway.toml", "merchants/demo.toml"] {
            let text = std::fs::read_to_string(rules.join(file)).unwrap();
            let text = ports.iter().fold(text, |text, (old, new)| text.replace(&format!(":{old}"), &format!(":{new}")));
            std::fs::write(rules.join(file), text).unwrap();
        }
        gateway.spawn();
        if gateway.wait_ready() {
            return (gateway, receiver);
        }
    }
    panic!("no free ports");
}

/// Runs commands of a page in the directory of a gateway.
fn run(gateway: &Gateway, commands: &str) -> String {
    let ports = [("localhost:8443", gateway.public), ("127.0.0.1:9090", gateway.admin)];
    let commands = ports.iter().fold(commands.to_owned(), |commands, (shown, address)| {
        let (host, _) = shown.split_once(':').unwrap();
        commands.replace(shown, &format!("{host}:{}", address.port()))
    });
    let bin = Path::new(env!("CARGO_BIN_EXE_paybridge")).parent().unwrap().display();
    let path = format!("{bin}:{}", std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell.args(["-ec", &commands]).current_dir(gateway.root.path()).env("PATH", path);
    for name in ["PAYBRIDGE_RULES", "RUST_LOG"] {
        shell.env_remove(name);
    }
    output(without_detours(&mut shell), PATIENCE)
}

fn listen(gateway: &Gateway, port: u16) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_paybridge"));
    command.args(["listen", "--count", "1", "--address", &format!("127.0.0.1:{port}")]);
    command.current_dir(gateway.root.path()).env_remove("PAYBRIDGE_RULES").env_remove("RUST_LOG");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap()
}

/// The commands of a page that are run in one shell, in order. What is started in a terminal of its own is left out.
fn commands(page: &str) -> Vec<String> {
    let shown = blocks(page, "sh").into_iter().filter(|block| !block.contains("cargo "));
    let lines = shown.map(|block| block.lines().filter(|line| !line.starts_with("alias ")).collect::<Vec<_>>());
    lines.map(|lines| lines.join("\n")).filter(|block| block != "paybridge listen").collect()
}

#[tokio::test]
async fn the_order_of_the_readme_goes_from_its_request_to_its_callback() {
    if in_path("curl", ".ci/run clients").is_none() {
        return;
    }
    let readme = page("README.md");
    assert!(blocks(&readme, "sh").contains(&"cargo run --release -- serve"));
    assert!(blocks(&readme, "sh").contains(&"cargo test"));
    let (gateway, port) = shipped();
    let to_paste = async || gateway.log().contains("curl --cacert certs/ca.pem ").then_some(());
    eventually("the line to paste", to_paste).await;

    let mut commands = commands(&readme);
    assert_eq!(commands.len(), 3);
    let last = commands.pop().unwrap();
    let listener = listen(&gateway, port);
    let created = run(&gateway, &commands.join("\n"));
    assert!(created.contains("\"transaction_id\":\"") && created.contains("\"external_id\":\"payout-1\""), "{created}");
    let received = String::from_utf8(listener.wait_with_output().unwrap().stdout).unwrap();
    let shown = blocks(&readme, "text").into_iter().find(|block| block.contains("verified:")).unwrap();
    // What differs each time is left out of the page.
    for part in shown.lines().flat_map(|line| line.split('…')).filter(|part| !part.starts_with("20")) {
        assert!(received.contains(part), "{part:?} is not in what was received:\n{received}");
    }
    let status = run(&gateway, &last);
    assert!(status.contains("\"SUCCESS\"") && status.contains("\"411111******1111\""), "{status}");
}

#[test]
fn the_commands_of_the_pages_for_merchants_work() {
    if in_path("curl", ".ci/run clients").is_none() {
        return;
    }
    let (gateway, _) = shipped();
    for (path, replies) in [("docs/merchants-v1.md", 2), ("docs/merchants-v2.md", 3)] {
        let commands = commands(&page(path));
        assert!(commands.len() >= 3, "{path}");
        let printed = run(&gateway, &commands.join("\n"));
        assert!(!printed.contains("\"error\""), "{path}: {printed}");
        assert_eq!(printed.matches("\"transaction_id\":\"").count(), replies, "{path}: {printed}");
    }
}
