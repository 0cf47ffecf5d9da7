//! Compares Paybridge with the servers that a platform could use instead, on one machine, in turns.
//!
//! ```sh
//! benches/compare.sh              # five rounds, about ten minutes
//! benches/compare.sh --quick      # three short rounds
//! benches/compare.sh --smoke      # only checks that everything works: its figures mean nothing
//! ```
//!
//! All servers run at once, on one core; the client and the stub back ends use another. The servers take turns in rounds, in
//! another order each time, and every figure is compared with that of nginx in the same round. Each request is a new order,
//! signed before the measurement, and each reply is checked. Before the measurement, the servers that do the whole job are
//! verified ([`verify`]). No time is asserted.
//!
//! | module | holds |
//! |---|---|
//! | [`options`] | the command line |
//! | [`servers`] | how each server is configured, started and stopped |
//! | [`stub`] | the back ends of the servers that forward |
//! | [`workload`] | requests and the checks of their replies |
//! | [`verify`] | checks that servers do the whole job |
//! | [`rounds`] | the measurement |
//! | [`report`], [`goals`] | tables, the picture, raw figures |
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on panics")]
#![allow(clippy::cast_precision_loss, reason = "figures for people")]

#[path = "../common/mod.rs"]
mod common;
mod goals;
mod options;
mod report;
mod rounds;
mod servers;
mod stub;
#[path = "../../tests/support/mod.rs"]
mod support;
mod verify;
mod workload;

use std::path::Path;

use common::{load, machine, pin, say};
use options::{Options, RunMode};
use servers::Servers;
use stub::Stub;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    match options::read(std::env::args().skip(1)) {
        RunMode::Floor { address, certs } => runtime.block_on(servers::floor::serve(address, &certs)),
        RunMode::Help(text) => say(&text),
        RunMode::Measure(options) => runtime.block_on(compare(&options)),
    }
}

async fn compare(options: &Options) {
    load::raise_open_files();
    let cores = pin::Cores::choose();
    std::fs::create_dir_all(&options.out).unwrap();
    // The back ends run on this thread's core, which is the client's.
    pin::to(cores.client);
    let stub = Stub::start().await;
    let root = servers::directory(&options.out);
    let servers = Servers::start(options, root.path(), stub.address, cores).await;
    say(&format!("{}; {} rounds", cores.describe(), options.plan.rounds));
    verify::all(&servers, &stub).await;
    let measured = rounds::measure(options, &servers, root.path()).await;
    let mut setting = machine::describe();
    setting.push(("cores", cores.describe().to_owned()));
    setting.extend(servers.versions());
    report::write(options, &servers, &setting, &measured);
    say(&format!("written: {}", shown(&options.out)));
}

fn shown(out: &Path) -> String {
    ["compare.md", "compare.json", "compare.svg"].map(|name| out.join(name).display().to_string()).join(", ")
}
