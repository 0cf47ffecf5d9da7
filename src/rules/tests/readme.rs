//! The key reference of `docs/rules.md` agrees with the schemas: every key, its default, and no other.

use std::collections::BTreeMap;

use serde_json::Value;

use super::described::{keys, to_json};
use super::*;
use crate::rules::FileKind;

const PAGE: &str = include_str!("../../../docs/rules.md");

/// A row of a table of keys.
struct Row<'a> {
    default: &'a str,
    text: &'a str,
}

/// The current position in the README: the kind of file, and the path of the table.
#[derive(Default)]
struct Place {
    kind: Option<FileKind>,
    path: String,
    /// The columns of the current table, if it lists keys.
    columns: Vec<String>,
}

impl Place {
    /// Follows a heading: `### shops/<code>.toml` names a kind, `#### [checks]` a table of it.
    fn enter(&mut self, heading: &str) {
        let heading = heading.replace("&lt;", "<").replace("&gt;", ">");
        let (level, title) = heading.split_once(' ').unwrap();
        self.path.clear();
        match (level, title) {
            ("###", "gateway.toml") => self.kind = Some(FileKind::Gateway),
            ("###", "merchants/<id>.toml") => self.kind = Some(FileKind::Merchant),
            ("###", "shops/<code>.toml") => self.kind = Some(FileKind::Shop),
            ("###", "dialects/<name>.toml") => self.kind = Some(FileKind::Dialect),
            ("###", "pages/<language tag>.toml") => self.kind = Some(FileKind::PageTexts),
            ("##" | "###", _) => self.kind = None,
            _ if title.starts_with('[') && !title.contains(' ') => self.path = below(title),
            _ => {}
        }
    }
}

/// Converts `[[api_keys]]` to a path of keys: `api_keys.*.`.
fn below(table: &str) -> String {
    let name = table.trim_matches(['`', '[', ']']).replace("<code>", "*");
    if table.contains("[[") { format!("{name}.*.") } else { format!("{name}.") }
}

/// Returns the rows of all tables of keys, by kind and path.
fn rows() -> BTreeMap<(&'static str, String), Row<'static>> {
    let mut rows = BTreeMap::new();
    let mut place = Place::default();
    for line in PAGE.lines() {
        if line.starts_with("##") {
            place.enter(line);
        }
        let Some(cells) = line.strip_prefix("| ").and_then(|line| line.strip_suffix(" |")) else {
            if !line.starts_with("|-") {
                place.columns.clear();
            }
            continue;
        };
        let cells: Vec<&str> = cells.split(" | ").collect();
        if place.columns.is_empty() {
            place.columns = cells.iter().map(|cell| (*cell).to_owned()).collect();
            continue;
        }
        let cell = |name: &str| Some(cells[place.columns.iter().position(|column| column == name)?]);
        if let (Some(kind), Some(key), Some(default)) = (place.kind, cell("key"), cell("default")) {
            let path = cell("table").map_or_else(|| place.path.clone(), below);
            let path = format!("{path}{}", key.trim_matches('`'));
            let row = Row { default, text: line };
            assert!(rows.insert((kind.as_str(), path.clone()), row).is_none(), "duplicate row {path}");
        }
    }
    rows
}

/// Returns the value in a cell, if there is one.
fn value(cell: &str) -> Option<Value> {
    let written = cell.strip_prefix('`')?.strip_suffix('`').filter(|written| !written.contains('`'))?;
    let document: toml::Table = format!("x = {written}").parse().ok()?;
    Some(to_json(document["x"].clone()))
}

#[test]
fn every_key_is_in_the_reference_with_its_default() {
    let rows = rows();
    let form = |name: &str| PAGE.lines().find(|line| line.starts_with(&format!("| {name} |"))).unwrap();
    let (rate, page_text) = (form("rate"), form("page text"));
    let mut known = Vec::new();
    for kind in FileKind::ALL {
        let keys = keys(kind);
        for (path, schema) in &keys {
            let (parent, key) = path.rsplit_once('.').unwrap_or(("", path));
            known.push((kind.as_str(), path.clone()));
            let Some(row) = rows.get(&(kind.as_str(), path.clone())) else {
                // Tables have headings of their own; a key of an inline table is in its row, or in that of its kind of value.
                let heads = keys.keys().any(|other| {
                    other.starts_with(&format!("{path}.")) && rows.contains_key(&(kind.as_str(), other.clone()))
                });
                let inline = rows.get(&(kind.as_str(), parent.to_owned())).is_some_and(|row| {
                    let says = |text: &str| text.contains(&format!("{key} = "));
                    says(row.text)
                        || row.text.contains("a rate") && says(rate)
                        || row.text.contains("a page text") && says(page_text)
                });
                assert!(heads || inline, "docs/rules.md does not have {path} ({})", kind.as_str());
                continue;
            };
            let required = schema["description"].as_str().is_some_and(|about| about.ends_with("\n\nRequired."));
            match schema.get("default") {
                Some(default) => {
                    assert_eq!(value(row.default).as_ref(), Some(default), "the default of {path} in docs/rules.md");
                }
                None => assert!(
                    value(row.default).is_none() && (!required || row.default == "required"),
                    "the default of {path} in docs/rules.md: {}",
                    row.default
                ),
            }
        }
    }
    let stray: Vec<_> = rows.keys().filter(|row| !known.contains(row)).collect();
    assert!(stray.is_empty(), "docs/rules.md has keys that do not exist: {stray:?}");
    assert!(rows.len() > 90, "the tables are read: {}", rows.len());
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
