//! Tables, the picture and the raw figures of a run.

use std::fmt::Write as _;

use serde_json::json;

use crate::common::plot::{self, Bar};
use crate::common::statistics::{Spread, ratios};
use crate::goals;
use crate::options::Options;
use crate::rounds::{CONNECTIONS, FEW_CONNECTIONS, Measured};
use crate::servers::{BASELINE, REFERENCE, Server, Servers};
use crate::workload::{Answers, Workload};

/// Bars longer than this multiple of the reference are cut: one long bar would make all others look alike.
const LONGEST_BAR: f64 = 6.0;

/// Writes `compare.md`, `compare.json` and `compare.svg`.
pub fn write(options: &Options, servers: &Servers, setting: &[(&'static str, String)], measured: &Measured) {
    let setting: Vec<_> = setting.iter().map(|(name, value)| (*name, value.clone())).collect();
    let write = |name: &str, text: &str| std::fs::write(options.out.join(name), text).unwrap();
    write("compare.md", &tables(options, servers, &setting, measured));
    write("compare.svg", &picture(servers, measured));
    let setting: std::collections::BTreeMap<_, _> = setting.into_iter().collect();
    let raw =
        json!({ "plan": options.plan.name, "setting": setting, "left_out": servers.left_out, "measured": measured });
    write("compare.json", &(serde_json::to_string_pretty(&raw).unwrap() + "\n"));
}

fn tables(options: &Options, servers: &Servers, setting: &[(&'static str, String)], measured: &Measured) -> String {
    let mut text = format!(
        "# Paybridge beside other servers\n\nServer CPU (user and system, of all its processes) in microseconds a request, \
         over TLS 1.3 keep-alive HTTP/1.1 and {CONNECTIONS} connections; latency over {FEW_CONNECTIONS}. Median and range of \
         {} rounds ({}); ratios are to {REFERENCE} in the same round.\n\n",
        measured.rounds.len(),
        options.plan.name
    );
    for name in &servers.left_out {
        let _ = writeln!(text, "**{name} is not installed and was left out.**\n");
    }
    creates(&mut text, servers, measured);
    others(&mut text, servers, measured);
    connections(&mut text, servers, measured);
    text.push_str("\nPaybridge and Node's service answer a create when it is on disk; the others store nothing.\n");
    goals_table(&mut text, measured);
    text.push_str("\n## Measured on\n\n| | |\n|---|---|\n");
    for (name, value) in setting {
        let _ = writeln!(text, "| {name} | {value} |");
    }
    let syncs = |which: usize| measured.rounds.iter().map(|round| round.fdatasync[which]).collect::<Vec<_>>();
    let (median, late) = (self::text(&syncs(0), 0), self::text(&syncs(1), 0));
    let _ = writeln!(text, "| fdatasync of 4 KiB | p50 {median} us, p99 {late} us |");
    text
}

fn creates(text: &mut String, servers: &Servers, measured: &Measured) {
    text.push_str(
        "## v1 creates\n\n| server | CPU us | to nginx | p50 at 8, us | p99 at 8, us | memory at start, at the end |\n",
    );
    text.push_str("|---|---|---|---|---|---|\n");
    for server in &servers.all {
        let cpu = measured.cpu(server.name, Workload::Create);
        if cpu.is_empty() {
            continue;
        }
        let latency = |which| self::text(&measured.latency(server.name, which), 0);
        let (middle, late) = (latency(|latency| latency.p50_us), latency(|latency| latency.p99_us));
        let memory = measured.memory.get(server.name);
        let memory = memory.map_or_else(String::new, |memory| {
            format!("{}, {} MiB", mebibytes(memory.at_start), mebibytes(memory.at_end))
        });
        let (ratio, cpu) = (to_reference(measured, &cpu), self::text(&cpu, 1));
        let _ =
            writeln!(text, "| **{}**: {} | {cpu} | {ratio} | {middle} | {late} | {memory} |", server.name, server.what);
    }
    let before = measured.cpu(BASELINE, Workload::Create);
    if !before.is_empty() {
        let ratio = self::text(&ratios(&measured.cpu("paybridge", Workload::Create), &before), 2);
        let _ = writeln!(text, "\nThis Paybridge to the other binary: {ratio}.");
    }
}

fn others(text: &mut String, servers: &Servers, measured: &Measured) {
    text.push_str("\n## Other requests\n\n| server | request | CPU us | to nginx |\n|---|---|---|---|\n");
    for (server, workload) in pairs(servers).filter(|(_, workload)| *workload != Workload::Create) {
        let cpu = measured.cpu(server.name, workload);
        let (ratio, cpu) = (to_reference(measured, &cpu), self::text(&cpu, 1));
        let _ = writeln!(text, "| {} | {} | {cpu} | {ratio} |", server.name, workload.describe());
    }
}

fn connections(text: &mut String, servers: &Servers, measured: &Measured) {
    text.push_str(
        "\n## Connections\n\n| server | full handshake, CPU us | to nginx | idle, bytes | after a request |\n",
    );
    text.push_str("|---|---|---|---|---|\n");
    for server in servers.all.iter().filter(|server| server.connections) {
        let handshake = measured.handshake(server.name);
        let ratio = self::text(&ratios(&handshake, &measured.handshake(REFERENCE)), 2);
        let idle = measured.memory.get(server.name).and_then(|memory| memory.per_connection).unwrap_or_default();
        let [fresh, used] = idle.map(|bytes| format!("{bytes:.0}"));
        let _ = writeln!(text, "| {} | {} | {ratio} | {fresh} | {used} |", server.name, self::text(&handshake, 0));
    }
}

fn goals_table(text: &mut String, measured: &Measured) {
    text.push_str("\n## Goals\n\n| goal | at most | measured | |\n|---|---|---|---|\n");
    for goal in goals::all(measured) {
        let met = if goal.is_met() { "met" } else { "not met" };
        let _ = writeln!(text, "| {} | {:.2} | {} | {met} |", goal.what, goal.wanted, goal.measured.text(2));
    }
}

/// Returns ratios to the reference's create in the same rounds.
fn to_reference(measured: &Measured, figures: &[f64]) -> String {
    text(&ratios(figures, &measured.cpu(REFERENCE, Workload::Create)), 2)
}

fn pairs(servers: &Servers) -> impl Iterator<Item = (&Server, Workload)> {
    servers.all.iter().flat_map(|server| server.workloads.iter().map(move |workload| (server, *workload)))
}

fn picture(servers: &Servers, measured: &Measured) -> String {
    let reference = Spread::of(&measured.cpu(REFERENCE, Workload::Create)).map(|spread| spread.median);
    let (creates, others): (Vec<_>, Vec<_>) = pairs(servers).partition(|(_, workload)| *workload == Workload::Create);
    let mut bars = Vec::new();
    for (server, workload) in creates.into_iter().chain(others) {
        let cpu = measured.cpu(server.name, workload);
        let Some(spread) = Spread::of(&cpu) else { continue };
        let ratio = Spread::of(&ratios(&cpu, &measured.cpu(REFERENCE, Workload::Create)));
        let ratio = ratio.map_or_else(String::new, |ratio| format!(", {:.2} of nginx", ratio.median));
        bars.push(Bar {
            label: label(server, workload),
            note: format!("{:.1} us{ratio}", spread.median),
            value: spread.median,
            range: (spread.least, spread.most),
            kind: kind(server),
        });
    }
    let subtitle = format!(
        "server CPU a request in microseconds, {CONNECTIONS} TLS connections; median and range of {} rounds",
        measured.rounds.len()
    );
    let limit = reference.map_or(f64::INFINITY, |reference| reference * LONGEST_BAR);
    plot::bars("What a request costs", &subtitle, &bars, reference.map(|reference| (reference, "nginx")), limit)
}

fn label(server: &Server, workload: Workload) -> String {
    match (workload, server.answers) {
        (Workload::Create, Answers::Stub) => format!("{}, no checks", server.title),
        (Workload::Create, Answers::Gateway) => format!("{}: v1 create", server.title),
        _ => format!("{}: {}", server.title, workload.describe()),
    }
}

/// Returns the colour's index: Paybridge, a server that only forwards, or one that does the whole job.
fn kind(server: &Server) -> usize {
    match (server.name.starts_with("paybridge"), server.answers) {
        (true, _) => 0,
        (false, Answers::Stub) => 1,
        (false, Answers::Gateway) => 2,
    }
}

fn text(figures: &[f64], decimals: usize) -> String {
    Spread::of(figures).map_or_else(|| "-".to_owned(), |spread| spread.text(decimals))
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.0}", bytes as f64 / f64::from(1 << 20))
}
