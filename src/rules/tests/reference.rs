//! `docs/rule-keys.md` is generated from the types that read the rule files; the examples of `docs/rules.md` load.

use std::fmt::Write as _;

use serde_json::Value;

use super::*;
use crate::rules::compile::RawGateway;
use crate::rules::raw::FromToml as _;
use crate::rules::setting::DeclaredKey;
use crate::rules::{FileKind, file_schema};

const PAGE: &str = include_str!("../../../docs/rules.md");
const KEYS: &str = include_str!("../../../docs/rule-keys.md");

/// A heading, the texts below it, and the keys of a table; tables with the same keys share them.
struct Section {
    heading: String,
    about: String,
    keys: Value,
}

/// Splits a description into its text, and what is known of the key's absence: `required`, or a default.
fn described(schema: &Value) -> (String, String) {
    let paragraphs = schema["description"].as_str().unwrap_or_default().split("\n\n");
    let (mut text, mut absence) = (Vec::new(), String::new());
    for paragraph in paragraphs {
        match paragraph.strip_prefix("Default: ") {
            Some(default) => absence = format!(", default {default}"),
            None if paragraph == "Required." => ", required".clone_into(&mut absence),
            None => text.push(paragraph),
        }
    }
    (text.join("\n\n"), absence)
}

/// Adds a section for a table, and one for each table in it.
fn sections(path: &str, schema: &Value, into: &mut Vec<Section>) {
    let (about, _) = described(schema);
    let keys = &schema["properties"];
    match into.iter_mut().find(|section| section.keys == *keys) {
        Some(same) => {
            same.heading = format!("{}, [{path}]", same.heading);
            same.about = format!("{}\n\n`[{path}]`: {about}", same.about);
        }
        None if path.is_empty() => into.push(Section { heading: String::new(), about, keys: keys.clone() }),
        None => into.push(Section { heading: format!("[{path}]"), about, keys: keys.clone() }),
    }
    for (name, key) in keys.as_object().into_iter().flatten() {
        let prefix = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        if let Some(entry) = key.get("additionalProperties").filter(|entry| entry["properties"].is_object()) {
            sections(&format!("{prefix}.<code>"), entry, into);
        } else if let Some(entry) = key.get("items").filter(|entry| entry["properties"].is_object()) {
            sections(&format!("[{prefix}]"), entry, into);
        } else if is_table(key) {
            sections(&prefix, key, into);
        }
    }
}

/// Reports whether a key is a table with a section of its own: one that is not usually written inline.
fn is_table(key: &Value) -> bool {
    key["properties"].is_object() && key.get("default").is_none() && key.get("examples").is_none()
}

fn write_keys(prefix: &str, keys: &Value, page: &mut String) {
    for (name, key) in keys.as_object().into_iter().flatten() {
        let nested = ["additionalProperties", "items"].iter().any(|word| key[word]["properties"].is_object());
        if is_table(key) || nested {
            continue;
        }
        let (text, default) = described(key);
        writeln!(page, "**`{prefix}{name}`**{default}  \n{text}\n").unwrap();
        write_keys(&format!("{prefix}{name}."), &key["properties"], page);
    }
}

/// Returns the page that lists every key.
fn key_reference() -> String {
    let mut page = "# Rule keys\n\n\
        Every key of every rule file, with its default, for operators who look one up. [rules.md](rules.md) explains how the\n\
        files work together, and the [forms of values](rules.md#values). A change holds from the next request, unless the\n\
        description of the table states that a restart is needed.\n\n\
        This page is generated from the types that read the files: `PAYBRIDGE_WRITE_DOCS=1 cargo test --lib key_reference`.\n\n"
        .to_owned();
    let titles = FileKind::ALL.map(|kind| {
        let title = file_schema(kind)["title"].as_str().unwrap().replace("Paybridge: ", "");
        (kind, title)
    });
    for (_, title) in &titles {
        let anchor: String = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-')).collect();
        writeln!(page, "- [{}](#{})", escaped(title), anchor.replace(' ', "-")).unwrap();
    }
    for (kind, title) in titles {
        writeln!(page, "\n## {}\n", escaped(&title)).unwrap();
        let mut found = Vec::new();
        sections("", &file_schema(kind), &mut found);
        for Section { heading, about, keys } in found {
            if !heading.is_empty() {
                writeln!(page, "### {}\n", escaped(&heading)).unwrap();
            }
            writeln!(page, "{}\n", about.trim()).unwrap();
            write_keys("", &keys, &mut page);
        }
    }
    page.trim_end().to_owned() + "\n"
}

fn escaped(text: &str) -> String {
    text.replace('<', "&lt;").replace('>', "&gt;")
}

#[test]
fn the_key_reference_is_up_to_date() {
    let page = key_reference();
    if std::env::var_os("PAYBRIDGE_WRITE_DOCS").is_some() {
        fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/rule-keys.md"), &page).unwrap();
        return;
    }
    assert!(page == KEYS, "docs/rule-keys.md is stale: PAYBRIDGE_WRITE_DOCS=1 cargo test --lib key_reference");
}

#[test]
fn the_smallest_rules_load() {
    let (_, section) = PAGE.split_once("## The smallest rules").unwrap();
    let blocks: Vec<&str> =
        section.split("```toml\n").skip(1).take(2).map(|rest| rest.split("```").next().unwrap()).collect();
    let rules = Rules::bare().with("shops/card-eur.toml", blocks[0]).with("merchants/acme.toml", blocks[1]);
    let loaded = load(&rules.path(), UnixMillis(0), None, LoadOptions { check_secrets: false });
    let loaded = loaded.unwrap_or_else(|problems| panic!("{problems}"));
    assert!(loaded.api_key("acme-live").is_some() && loaded.shops.len() == 1 && loaded.warnings.is_empty());
}

#[test]
fn tables_state_that_their_keys_need_a_restart() {
    let properties = file_schema(FileKind::Gateway)["properties"].clone();
    for table in RawGateway::keys() {
        let about = properties[table.name]["description"].as_str().unwrap();
        let (waits, live): (Vec<DeclaredKey>, Vec<DeclaredKey>) =
            (table.keys)().into_iter().partition(|key| key.on_change.is_some_and(|change| change.restart.is_some()));
        assert_eq!(!waits.is_empty(), about.contains("Changes take effect after a restart"), "{}: {about}", table.name);
        for key in live.iter().filter(|_| !waits.is_empty()) {
            assert!(about.contains(&format!("`{}`", key.name)), "{}.{} takes effect at once", table.name, key.name);
        }
    }
}
