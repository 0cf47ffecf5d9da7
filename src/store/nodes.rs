//! The gateways that run on one store: each says now and then that it lives, and which rules it runs.
//!
//! Nobody decides anything by this list: it is for operators, who want to see that rules have arrived everywhere. Times are
//! told by the store's clock, so that nodes whose clocks differ can be compared.

use std::time::Duration;

use super::Answer;
use crate::domain::UnixMillis;

/// A node that was not seen for so long is gone: it was killed, or has lost the database.
pub const GONE_AFTER: Duration = Duration::from_mins(1);

/// A node that was not seen for so long is forgotten.
pub const FORGOTTEN_AFTER: Duration = Duration::from_hours(1);

/// What a node says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcement {
    /// Its name, which no other node has, before or after it.
    pub name: Box<str>,
    /// How long it has been running.
    pub running: Duration,
    /// Its version of the program.
    pub release: Box<str>,
    /// The version of the rules in force.
    pub rules_version: Box<str>,
    /// For how long they have been in force.
    pub rules_age: Duration,
    /// Why the rules on disk are refused, in a line without a secret; `None`: they are in force.
    pub rules_error: Option<Box<str>>,
}

/// A node as the store knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: Box<str>,
    /// When it started.
    pub started_at: UnixMillis,
    /// Its version of the program.
    pub release: Box<str>,
    /// The version of its rules.
    pub rules_version: Box<str>,
    /// When they came into force.
    pub rules_loaded_at: UnixMillis,
    /// Why the rules that it found last are refused.
    pub rules_error: Option<Box<str>>,
    /// When it was last seen.
    pub seen_at: UnixMillis,
}

/// The nodes that are known, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roll {
    /// The time of the store's clock.
    pub now: UnixMillis,
    /// The nodes.
    pub nodes: Vec<Node>,
}

impl Roll {
    /// Whether a node was not seen for so long that it is gone.
    #[must_use]
    pub fn is_gone(&self, node: &Node) -> bool {
        node.seen_at.until(self.now) > GONE_AFTER
    }

    /// The nodes that are there.
    pub fn present(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| !self.is_gone(node))
    }

    /// Whether all nodes that are there run the same rules.
    #[must_use]
    pub fn is_of_one_mind(&self) -> bool {
        let mut versions = self.present().map(|node| &node.rules_version);
        let first = versions.next();
        versions.all(|version| Some(version) == first)
    }
}

/// The list of nodes. A store that only one gateway can serve keeps none.
pub trait Nodes: Send + Sync + 'static {
    /// Writes down what a node says of itself, as seen now, and forgets nodes that have been gone for long.
    fn announce(&self, node: Announcement) -> Answer<'_, ()>;

    /// Forgets a node: it ends.
    fn leave<'a>(&'a self, name: &'a str) -> Answer<'a, ()>;

    /// The nodes; `None`: only one gateway can serve this store.
    fn nodes(&self) -> Answer<'_, Option<Roll>>;
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A node that runs `rules_version` and was seen so many seconds before [`roll`]'s time.
    pub fn node(name: &str, rules_version: &str, seen_before: i64) -> Node {
        Node {
            name: name.into(),
            started_at: UnixMillis(1_772_409_000_000),
            release: "0.1.0".into(),
            rules_version: rules_version.into(),
            rules_loaded_at: UnixMillis(1_772_409_540_000),
            rules_error: None,
            seen_at: UnixMillis(NOW.0 - seen_before * 1000),
        }
    }

    const NOW: UnixMillis = UnixMillis(1_772_409_600_000);

    pub fn roll(nodes: impl Into<Vec<Node>>) -> Roll {
        Roll { now: NOW, nodes: nodes.into() }
    }

    #[test]
    fn nodes_that_are_gone_do_not_count() {
        let roll = roll([node("a", "one", 0), node("b", "two", 61), node("c", "one", 60), node("d", "one", -5)]);
        let present: Vec<&str> = roll.present().map(|node| &*node.name).collect();
        assert_eq!(present, ["a", "c", "d"], "a clock that is set back is no reason to call a node gone");
        assert!(roll.is_of_one_mind());
    }

    #[test]
    fn nodes_that_run_other_rules_are_seen() {
        assert!(!roll([node("a", "one", 0), node("b", "two", 9)]).is_of_one_mind());
        assert!(roll([]).is_of_one_mind());
    }
}
