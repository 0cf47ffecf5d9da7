//! Measures whether the cost of a request grows with size: rows, merchants, shops, networks of a key, open connections.
//!
//! ```sh
//! cargo bench --bench growth                        # half an hour, 12 GB of disk
//! cargo bench --bench growth -- --medium            # a million rows at most: five minutes, 2 GB
//! cargo bench --bench growth -- --only rows,shops   # some of: rows, postgres, merchants, shops, networks, connections
//! cargo test --bench growth                         # seconds: only checks that it runs
//! ```
//!
//! Each size has its own gateway, a release build in its own directory below `--out` (`target/growth`). All of them run at
//! the same time on one core, the client on another, and take turns in rounds, so that a slow moment of the machine affects
//! all sizes alike. The figure is server CPU per request (user and system, all threads, deferred work included) and its ratio
//! to that of the smallest size in the same round. Every create is a new order, with a random id; rows are measured with
//! ascending ids too, in the same stores and rounds. Every reply is checked. No time is asserted.
//!
//! Rows are made through the store: deposits are created and completed as in production, with ids, links and sealed fields.
//! While rows are measured the last time, withdrawals are completed beside the creates, callbacks are delivered and pages
//! of the history are read; the write-ahead log is checkpointed all the while.
//!
//! PostgreSQL is measured through the store, without a gateway: the cost of a create for all processes of the server.
//!
//! `growth.md`, `growth.json` and `growth.svg` are written to `--out`.
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on panics")]
#![allow(clippy::cast_precision_loss, reason = "figures for people")]

#[path = "../common/mod.rs"]
mod common;
mod connections;
mod database;
#[path = "../common/drafts.rs"]
mod drafts;
mod figures;
mod fill;
mod plan;
mod receiver;
mod report;
mod rows;
#[path = "../../tests/support/mod.rs"]
mod support;
mod traffic;
mod turns;
mod worlds;

use common::{load, machine, pin, say};
use figures::Axis;
use plan::Plan;

/// The axes, by the names that `--only` takes.
const AXES: [&str; 6] = ["postgres", "rows", "merchants", "shops", "networks", "connections"];

fn main() {
    let plan = Plan::of(std::env::args().skip(1));
    // An interrupted run leaves gigabytes.
    let _ = std::fs::remove_dir_all(plan.work());
    std::fs::create_dir_all(plan.work()).unwrap();
    let files = load::raise_open_files();
    // Before anything is pinned.
    let (facts, cores) = (machine::describe(), pin::Cores::choose());
    let mut axes: Vec<Axis> = Vec::new();
    for name in AXES.into_iter().filter(|name| plan.wants(name)) {
        say(&format!("== {name}"));
        match name {
            "postgres" => axes.extend(database::measure(&plan)),
            "rows" => axes.extend(rows::measure(&plan, cores)),
            "connections" => axes.push(connections::measure(&plan, cores, files)),
            _ => axes.push(worlds::measure(name, &plan, cores)),
        }
    }
    report::write(&plan, &axes, cores, facts);
    let _ = std::fs::remove_dir_all(plan.work());
}

/// Returns a runtime for the client on the current thread, which is pinned.
fn client() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}
