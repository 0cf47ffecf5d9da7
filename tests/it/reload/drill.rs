//! The drill: reload after reload under load, nothing fails, nothing is dropped, and memory stays flat. 1,000 reloads with
//! `PAYBRIDGE_LONG=1`, 60 otherwise.

use std::io::Write as _;

use crate::reload::count;
use crate::reload::edits::{assert_one_rule_set_each, edit, edit_and_ask, first_rules};
use crate::reload::traffic::Traffic;
use crate::support::{Gateway, text};

/// Resident memory of the process.
fn resident_kib(gateway: &Gateway) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", gateway.pid().as_raw_nonzero())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reload_after_reload_under_load() {
    let reloads = if std::env::var_os("PAYBRIDGE_LONG").is_some() { 1000 } else { 60 };
    let gateway = Gateway::start(&first_rules());
    let mut edits = vec![text(&crate::reload::rules(&gateway), "version").to_owned()];
    let traffic = Traffic::start(&gateway, "drilled").await;
    for tenth in 0..10 {
        edit(&gateway, tenth * reloads / 10 + 1..(tenth + 1) * reloads / 10 + 1, &mut edits).await;
        traffic.goes_on().await;
        let resident = resident_kib(&gateway);
        let done = edits.len() - 1;
        let _ = writeln!(
            std::io::stderr(),
            "{done} of {reloads} reloads, {} rounds of requests, {resident} KiB resident",
            traffic.rounds()
        );
    }
    let connections = count(&gateway, "paybridge_connections_open");
    let opened = count(&gateway, "paybridge_connections_total");
    let seen = traffic.stop().await;
    assert_eq!(connections, seen.len(), "every connection lives");
    assert_eq!(opened, seen.len(), "and is the first of its merchant");
    // Operations take memory too, of the store's caches: what reloads take is told without them.
    let (before, quiet) = (resident_kib(&gateway), 3 * reloads);
    edit_and_ask(&gateway, reloads + 1..reloads + quiet + 1);
    let after = resident_kib(&gateway);
    // Memory settles at one of a few levels, some 10 % apart. A rule set that is kept takes more than this in a few reloads.
    assert!(after <= before + before / 4, "{before} KiB before {quiet} reloads without traffic, {after} after");
    assert_eq!(count(&gateway, "paybridge_log_lines_dropped_total"), 0);
    assert!(count(&gateway, "paybridge_reloads_total{result=\"accepted\"}") > reloads + quiet);
    assert_one_rule_set_each(&gateway, &edits, &seen).await;
}
