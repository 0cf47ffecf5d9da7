//! Paybridge beside what a platform would put in its place, on one machine, in turns.
//!
//! ```sh
//! benches/compare.sh              # five rounds, about ten minutes
//! benches/compare.sh --quick      # a first look
//! benches/compare.sh --smoke      # only whether everything works: its figures mean nothing
//! ```
//!
//! All servers are up at once, on one core; the client and the stub back ends have another. They take turns in rounds, in
//! another order each time, and every figure is looked at beside that of nginx in the same round. Each request is another
//! order, signed before the clock starts, and each reply is checked. Before anything is measured, the servers that claim to
//! do the whole job are shown to do it ([`verify`]). Nothing is asserted about time.
//!
//! | module | holds |
//! |---|---|
//! | [`options`] | what is asked for |
//! | [`servers`] | how each server is configured, started and stopped |
//! | [`stub`] | what stands behind those that forward |
//! | [`workload`] | requests, and what their replies have to be |
//! | [`verify`] | whether the whole job is done |
//! | [`rounds`] | the measuring |
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
use options::{Asked, Options};
use servers::Servers;
use stub::Stub;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    match options::read(std::env::args().skip(1)) {
        Asked::Floor { address, certs } => runtime.block_on(servers::floor::serve(address, &certs)),
        Asked::Help(text) => say(&text),
        Asked::Measure(options) => runtime.block_on(compare(&options)),
    }
}

async fn compare(options: &Options) {
    load::raise_open_files();
    let cores = pin::Cores::choose();
    std::fs::create_dir_all(&options.out).unwrap();
    // The back ends are threads of this one, which is the client's core.
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
