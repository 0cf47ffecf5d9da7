//! `paybridge nodes`: the gateways on the store, and which rules each of them runs.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;

use super::args::Nodes;
use super::columns::{age, aligned, cut, plain};
use super::{Outcome, Stop, on_runtime, wrong_rules};
use crate::clock::{Clock, SystemClock, SystemRandomness};
use crate::domain::UnixMillis;
use crate::rules::{self, LoadOptions};
use crate::store::{Node, Roll, open_beside};
use crate::wire::nodes::{document, state};

const HEADINGS: [&str; 7] = ["NODE", "STATE", "RELEASE", "RULES", "LOADED", "SEEN", "REFUSED"];

/// What is said of a store that only one gateway can serve.
const ALONE: &str = "one gateway at a time serves a SQLite store: it keeps no list of nodes";

/// Lists the nodes on the store that the rules name. Rules that are refused, as they may be on the nodes too, and secrets that
/// are not here are no hindrance, but for those of the store.
///
/// # Errors
/// `gateway.toml` or the store cannot be used.
pub fn run(asked: &Nodes, out: &mut dyn Write, err: &mut dyn Write) -> Outcome {
    let (directory, now) = (asked.rules.rules.as_path(), SystemClock.now());
    let store = rules::load_store(directory, now).map_err(|problems| wrong_rules(directory, &problems, err))?;
    let here = rules::load(directory, now, None, LoadOptions { check_secrets: false });
    let version = here.ok().map(|rules| rules.version);
    let version = version.as_deref();
    let roll = on_runtime(async {
        let random = Arc::new(SystemRandomness::default());
        let store = open_beside(&store, random, Arc::default()).map_err(Stop::failed)?;
        let roll = store.nodes().await;
        store.close().await?;
        Ok(roll?)
    })?;
    if asked.json {
        let listed = Listed { rules_version: version, nodes: document(roll.as_ref()) };
        writeln!(out, "{}", serde_json::to_string(&listed).map_err(Stop::failed)?)?;
        return Ok(());
    }
    match roll {
        None => writeln!(out, "{ALONE}")?,
        Some(roll) => {
            table(&roll, out)?;
            writeln!(err, "{}", in_all(&roll, version, directory))?;
        }
    }
    Ok(())
}

#[derive(Serialize)]
struct Listed<'a, N> {
    /// Of the rules directory; `None` while it is refused.
    rules_version: Option<&'a str>,
    #[serde(flatten)]
    nodes: N,
}

fn table(roll: &Roll, out: &mut dyn Write) -> Outcome {
    if roll.nodes.is_empty() {
        return Ok(());
    }
    let rows: Vec<_> = roll.nodes.iter().map(|node| cells(roll, node)).collect();
    Ok(aligned(&HEADINGS.map(Into::into), &rows, out)?)
}

fn cells<'a>(roll: &Roll, node: &'a Node) -> [std::borrow::Cow<'a, str>; 7] {
    let ago = |at: UnixMillis| format!("{} ago", age(at.until(roll.now)));
    [
        plain(&node.name),
        state(roll, node).into(),
        cut(plain(&node.release)),
        cut(plain(&node.rules_version)),
        ago(node.rules_loaded_at).into(),
        ago(node.seen_at).into(),
        plain(node.rules_error.as_deref().unwrap_or("-")),
    ]
}

/// Whether the rules of the directory have arrived.
fn in_all(roll: &Roll, version: Option<&str>, directory: &Path) -> String {
    let present = roll.present().count();
    if present == 0 {
        return "no node is serving".to_owned();
    }
    let Some(version) = version else {
        return format!(
            "note: the rules in {} cannot be used: paybridge check says why; which nodes run them is not known",
            directory.display()
        );
    };
    let arrived = roll.present().filter(|node| &*node.rules_version == version).count();
    if present == arrived {
        format!("every node runs these rules ({version})")
    } else {
        format!("{arrived} of {present} nodes run these rules ({version})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::nodes::tests::{node, roll};

    fn shown(roll: &Roll) -> String {
        let mut out = Vec::new();
        table(roll, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn nodes_are_a_table() {
        let refused = Node { rules_error: Some("gateway.toml:1:1: no\u{1b}".into()), ..node("pay-2:1:b", "two", 90) };
        insta::assert_snapshot!(shown(&roll([node("pay-1:4711:a", "one", 7), refused])));
        assert_eq!(shown(&roll([])), "");
    }

    #[test]
    fn rules_that_arrived_everywhere_are_told_from_others() {
        let refused =
            "note: the rules in rules cannot be used: paybridge check says why; which nodes run them is not known";
        for (nodes, version, said) in [
            (vec![], Some("one"), "no node is serving"),
            (vec![node("a", "one", 61)], Some("one"), "no node is serving"),
            (vec![node("a", "one", 0), node("b", "x", 61)], Some("one"), "every node runs these rules (one)"),
            (vec![node("a", "one", 0), node("b", "x", 6)], Some("one"), "1 of 2 nodes run these rules (one)"),
            (vec![node("a", "one", 0)], None, refused),
        ] {
            assert_eq!(in_all(&roll(nodes), version, Path::new("rules")), said);
        }
    }
}
