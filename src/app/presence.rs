//! Tells the other nodes, by way of the store, that this one lives and which rules it runs; and counts them. Nothing else
//! depends on it: where the store is away, the list grows old, and that is all.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Notify, oneshot};

use crate::clock::{Clock, Random};
use crate::http::admin::NodesInfo;
use crate::rules::{LiveRules, Problems};
use crate::store::{Announcement, Roll, Store, StoreError};
use crate::telemetry::{Metrics, NodesSeen};

/// How often a node says that it lives.
const BETWEEN: Duration = Duration::from_secs(10);

/// How long the store is waited for by somebody who has other things to do: to end, or to answer a probe.
const PATIENCE: Duration = Duration::from_secs(2);

/// How much of an error is told, in characters.
const MOST_TOLD: usize = 300;

/// This node among the others.
pub struct Presence {
    name: Box<str>,
    started: Instant,
    store: Arc<dyn Store>,
    rules: Arc<LiveRules>,
    clock: Arc<dyn Clock>,
    metrics: Arc<Metrics>,
    reloaded: Notify,
}

impl Presence {
    pub fn new(
        store: Arc<dyn Store>,
        rules: Arc<LiveRules>,
        clock: Arc<dyn Clock>,
        random: &dyn Random,
        metrics: Arc<Metrics>,
    ) -> Self {
        let (name, started) = (name(random).into(), Instant::now());
        Self { name, started, store, rules, clock, metrics, reloaded: Notify::new() }
    }

    /// The rules were read again, and are in force or refused: it is told at once.
    pub fn reloaded(&self) {
        self.reloaded.notify_one();
    }

    /// This node and all that are known.
    pub async fn nodes(&self) -> NodesInfo {
        let roll = tokio::time::timeout(PATIENCE, self.store.nodes()).await;
        let roll =
            roll.map_or_else(|_| Err("the store does not answer".to_owned()), |roll| roll.map_err(|e| e.to_string()));
        NodesInfo { own: self.name.clone(), rules_version: self.rules.current().version.clone(), roll }
    }

    /// Is seen, until it is stopped; then it leaves the list.
    pub async fn run(self: Arc<Self>, mut stop: oneshot::Receiver<()>) {
        let mut is_away = false;
        loop {
            tokio::select! {
                biased;
                _ = &mut stop => break,
                told = self.be_seen() => is_away = self.counted(told, is_away),
            }
            tokio::select! {
                biased;
                _ = &mut stop => break,
                () = self.reloaded.notified() => {}
                () = tokio::time::sleep(BETWEEN) => {}
            }
        }
        // Whoever does not get to it is called gone a minute later.
        if !matches!(tokio::time::timeout(PATIENCE, self.store.leave(&self.name)).await, Ok(Ok(()))) {
            tracing::debug!("this node stays on the list of nodes until it is called gone");
        }
    }

    async fn be_seen(&self) -> Result<Option<Roll>, StoreError> {
        let rules = self.rules.current();
        self.store
            .announce(Announcement {
                name: self.name.clone(),
                running: self.started.elapsed(),
                release: env!("CARGO_PKG_VERSION").into(),
                rules_version: rules.version.clone(),
                rules_age: rules.loaded_at.until(self.clock.now()),
                rules_error: self.rules.last_error().map(|problems| in_a_line(&problems).into()),
            })
            .await?;
        self.store.nodes().await
    }

    /// Counts the nodes, and says so once when there is no list. Whether there is none.
    fn counted(&self, told: Result<Option<Roll>, StoreError>, was_away: bool) -> bool {
        match told {
            Ok(roll) => {
                self.metrics.nodes(Some(self.seen(roll.as_ref())));
                false
            }
            Err(error) => {
                self.metrics.nodes(None);
                if !was_away {
                    tracing::warn!(%error, "the list of nodes cannot be kept now; nothing else depends on it");
                }
                true
            }
        }
    }

    fn seen(&self, roll: Option<&Roll>) -> NodesSeen {
        // Where there is no list, this node is the only one.
        let Some(roll) = roll else { return NodesSeen { present: 1, gone: 0, other_rules: 0 } };
        let version = &self.rules.current().version;
        let present = roll.present().count();
        let other_rules = roll.present().filter(|node| node.rules_version != *version).count();
        NodesSeen { present, gone: roll.nodes.len() - present, other_rules }
    }
}

/// The machine, so that the node is found; the process; and what tells it from one of the same numbers before it, as all
/// containers of a name have them.
fn name(random: &dyn Random) -> String {
    let system = rustix::system::uname();
    let host = system.nodename().to_string_lossy();
    format!("{host}:{}:{:06x}", std::process::id(), random.number() & 0x00ff_ffff)
}

/// The first of some problems, and how many there are beside it.
fn in_a_line(problems: &Problems) -> String {
    let first = problems.iter().next().map_or_else(|| problems.to_string(), ToString::to_string);
    // Databases and terminals take no control characters.
    let line = first.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MOST_TOLD).collect::<String>();
    match problems.count() {
        0 | 1 => line,
        count => format!("{line} (and {} more)", count - 1),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::clock::SystemRandomness;
    use crate::domain::UnixMillis;
    use crate::rules::{LoadOptions, load};

    #[test]
    fn names_differ() {
        let random = SystemRandomness::default();
        let (one, other) = (name(&random), name(&random));
        assert!(one != other && one.contains(&format!(":{}:", std::process::id())), "{one} {other}");
    }

    #[test]
    fn problems_are_told_in_a_line() {
        let rules = tempfile::tempdir().unwrap();
        let told = |text: &str| {
            fs::write(rules.path().join("gateway.toml"), text).unwrap();
            in_a_line(&load(rules.path(), UnixMillis(0), None, LoadOptions::default()).unwrap_err())
        };
        let line = told("[limits]\nbodies = 1\nheads = 2\n");
        assert!(line.contains("gateway.toml:2:1: unknown key `bodies`") && line.ends_with(" (and 1 more)"), "{line}");
        let line = told("[store]\nurl = \"postgres://u:TOPSECRET@h/db?sslmode=x\"\n");
        assert!(line.contains("2:7: `store.url` has an sslmode") && !line.contains("TOPSECRET"), "{line}");
    }
}
