//! Gateways of several sizes that take turns.

use std::path::Path;
use std::time::Duration;

use tokio::time::Instant;

use super::common::cpu::{Usage, quiet};
use super::common::gateway::{Gateway, binary};
use super::common::load::{Check, Connection, Requests, load};
use super::common::pin::{self, Cores};
use super::common::{memory, say};
use super::figures::{Point, Turn};
use super::support::Rules;

/// A gateway of one size, with open connections.
pub struct Sized {
    /// The size of what grows.
    pub size: u64,
    /// The gateway.
    pub gateway: Gateway,
    /// From the start of the process until it was ready.
    pub ready: Duration,
    /// Connections to it.
    pub connections: Vec<Connection>,
}

impl Sized {
    /// Starts a gateway on the servers' core; the calling thread stays on the client's core.
    pub fn start(size: u64, rules: &Rules, root: &Path, cores: Cores) -> Self {
        pin::to(cores.servers);
        let started = Instant::now();
        let gateway = Gateway::start(&binary(), rules, root);
        let ready = started.elapsed();
        pin::to(cores.client);
        say(&format!("{size}: ready after {:.2} s", ready.as_secs_f64()));
        Self { size, gateway, ready, connections: Vec::new() }
    }

    /// Opens connections until there are `count`.
    pub async fn connect(&mut self, count: usize) {
        let missing = count - self.connections.len();
        self.connections.extend(self.gateway.target().connect(missing).await);
    }

    /// Sends requests over all of its connections. Deferred work of the server is part of its CPU.
    pub async fn turn(&mut self, requests: Requests, check: &std::sync::Arc<Check>) -> Turn {
        let count = requests.len();
        let process = [self.gateway.pid()];
        let before = Usage::of(&process);
        let loaded = load(&mut self.connections, requests, check).await;
        quiet(&process).await;
        Turn::of(&loaded, Usage::of(&process).since(&before), count)
    }

    /// Returns its figures.
    pub fn point(&self, turns: Vec<Turn>, note: String) -> Point {
        let memory = memory::of(&[self.gateway.pid()]);
        Point { size: self.size, turns, ready: self.ready, memory, note }
    }
}

/// Logs the figures of a turn.
pub fn log_turn(round: usize, size: u64, what: &str, turn: &Turn) {
    say(&format!(
        "round {}, {size}, {what}: {:.1} us CPU, p50 {:.0} us, p99 {:.0} us",
        round + 1,
        turn.cpu,
        turn.p50,
        turn.p99
    ));
}
