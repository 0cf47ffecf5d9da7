//! What grows with use must not grow with size: rows, merchants, shops, networks of a key, open connections.
//!
//! ```sh
//! cargo bench --bench growth                        # half an hour, 12 GB of disk
//! cargo bench --bench growth -- --medium            # a million rows at most: five minutes, 2 GB
//! cargo bench --bench growth -- --only rows,shops   # some of: rows, postgres, merchants, shops, networks, connections
//! cargo test --bench growth                         # seconds: only shows that it runs
//! ```
//!
//! Each size has a gateway of its own, a release build in a directory of its own below `--out` (`target/growth`); all of
//! them run at the same time on one core, the client on another, and take turns in rounds, so that a slow moment of the
//! machine hits all sizes alike. The figure is server CPU a request (user and system, all threads, what is put off
//! included) and its ratio to that of the smallest size in the same round. Every create is another order, with a random
//! name; every reply is checked. Nothing is asserted about time.
//!
//! Rows are made by creating deposits in the store's own words and booking their results, as they are made in life, with
//! names, links and sealed fields. While rows are measured the second time, withdrawals come to their results beside the
//! creates, callbacks are delivered and pages of the history are read; the log is moved into the file all the while.
//!
//! PostgreSQL is measured through the store, without a gateway: what a create costs the server, all its processes together.
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
    // What an interrupted run left is gigabytes.
    let _ = std::fs::remove_dir_all(plan.work());
    std::fs::create_dir_all(plan.work()).unwrap();
    let files = load::raise_open_files();
    // While nothing is pinned yet.
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

/// A runtime for the client, on the thread that it is pinned with.
fn client() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}
