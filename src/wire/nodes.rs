//! The list of nodes as operators read it, from the command line and from the admin API alike.

use serde::Serialize;

use super::time::rfc3339;
use crate::store::{Node, Roll};

/// The nodes, and whether those that are there run the same rules; both `null` where the store has one gateway at most.
#[must_use]
pub fn document(roll: Option<&Roll>) -> impl Serialize {
    Document {
        same_rules: roll.map(Roll::is_of_one_mind),
        nodes: roll.map(|roll| roll.nodes.iter().map(|node| shown(roll, node)).collect()),
    }
}

/// The word for what a node is to those who look at the list.
#[must_use]
pub fn state(roll: &Roll, node: &Node) -> &'static str {
    if roll.is_gone(node) { "gone" } else { "serving" }
}

#[derive(Serialize)]
struct Document<'a> {
    same_rules: Option<bool>,
    nodes: Option<Vec<ShownNode<'a>>>,
}

#[derive(Serialize)]
struct ShownNode<'a> {
    name: &'a str,
    state: &'static str,
    release: &'a str,
    rules_version: &'a str,
    rules_loaded_at: String,
    rules_error: Option<&'a str>,
    started_at: String,
    seen_at: String,
    seen_seconds_ago: u64,
}

fn shown<'a>(roll: &Roll, node: &'a Node) -> ShownNode<'a> {
    ShownNode {
        name: &node.name,
        state: state(roll, node),
        release: &node.release,
        rules_version: &node.rules_version,
        rules_loaded_at: rfc3339(node.rules_loaded_at),
        rules_error: node.rules_error.as_deref(),
        started_at: rfc3339(node.started_at),
        seen_at: rfc3339(node.seen_at),
        seen_seconds_ago: node.seen_at.until(roll.now).as_secs(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::nodes::tests::{node, roll};

    #[test]
    fn nodes_are_told_with_what_they_run() {
        let refused = Node { rules_error: Some("gateway.toml:1:1: no".into()), ..node("b", "two", 90) };
        let roll = roll([node("a", "one", 7), refused]);
        insta::assert_snapshot!(serde_json::to_string_pretty(&document(Some(&roll))).unwrap());
        assert_eq!(serde_json::to_string(&document(None)).unwrap(), r#"{"same_rules":null,"nodes":null}"#);
    }
}
