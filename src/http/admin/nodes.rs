//! `/readyz?detail`: this node and the others.

use serde::Serialize;

use crate::store::Roll;
use crate::wire::nodes::document;

/// The nodes, as a process sees them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodesInfo {
    /// The name of the one that is asked.
    pub own: Box<str>,
    /// The version of its rules.
    pub rules_version: Box<str>,
    /// All that are known; `None` where the store has one gateway at most. Or why they are not known.
    pub roll: Result<Option<Roll>, String>,
}

/// What `/readyz?detail` answers. Other nodes, and what they run, do not make this one ready or not.
pub(super) fn detail<'a>(obstacle: Option<&'a str>, info: &'a NodesInfo) -> impl Serialize + 'a {
    let (roll, nodes_error) = match &info.roll {
        Ok(roll) => (roll.as_ref(), None),
        Err(error) => (None, Some(error.as_str())),
    };
    Detail {
        ready: obstacle.is_none(),
        reason: obstacle,
        node: &info.own,
        rules_version: &info.rules_version,
        nodes: document(roll),
        nodes_error,
    }
}

#[derive(Serialize)]
struct Detail<'a, N> {
    ready: bool,
    reason: Option<&'a str>,
    node: &'a str,
    rules_version: &'a str,
    #[serde(flatten)]
    nodes: N,
    nodes_error: Option<&'a str>,
}
