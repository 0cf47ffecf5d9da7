//! Commands over all operations: an export beside creates, and the comparison with a statement that is that export.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use super::common::gateway::binary;
use super::common::memory;

/// How `card-eur` reads the export of its operations as a statement.
pub const STATEMENT: &str = "[reconcile]\nkey = \"transaction_id\"\n\
    columns = { key = \"transaction_id\", amount = \"amount\", currency = \"currency\", status = \"status\" }\n\
    statuses = { SUCCESS = [\"SUCCESS\"], FAILED = [\"FAILED\"] }\n\
    skip = { column = \"status\", values = [\"PENDING\"] }\n";

/// What names an operation in [`STATEMENT`], and what names it by its order, with its merchant and without.
const BY_ID: [&str; 2] = ["key = \"transaction_id\"\n", "{ key = \"transaction_id\","];
const BY_ORDER: [&str; 2] = ["key = \"order_id\"\n", "{ key = \"order_id\", merchant = \"merchant\","];
const BY_ORDER_ALONE: [&str; 2] = ["key = \"order_id\"\n", "{ key = \"order_id\","];

/// How often a command is looked after.
const LOOK: Duration = Duration::from_millis(20);

/// A running command; it is killed when this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Exports all operations, again and again, until the value is dropped.
pub fn export_all_the_time(root: PathBuf, finished: &Arc<AtomicU64>) -> JoinSet<()> {
    let (mut exports, finished) = (JoinSet::new(), Arc::clone(finished));
    exports.spawn(async move {
        loop {
            run(&root, &["export", "operations"], Stdio::null()).await;
            finished.fetch_add(1, Ordering::Relaxed);
        }
    });
    exports
}

/// Runs a program that touches nothing of the gateway until the value is dropped.
pub fn compute() -> JoinSet<()> {
    let mut programs = JoinSet::new();
    programs.spawn(async {
        let mut command = Command::new("sha256sum");
        let _running = Running(command.arg("/dev/zero").stdout(Stdio::null()).spawn().unwrap());
        std::future::pending::<()>().await;
    });
    programs
}

/// Prints what one whole export takes, and the comparisons with a statement by order and by id: its operations of `card-eur`.
pub async fn whole(root: &Path) {
    let statement = root.join("statement.csv");
    let file = std::fs::File::create(&statement).unwrap();
    let exit = run(root, &["export", "operations", "--shop", "card-eur"], file.into()).await;
    assert!(exit.success(), "{exit}");
    let shop = root.join("rules/shops/card-eur.toml");
    let by_id = std::fs::read_to_string(&shop).unwrap();
    for names in [BY_ORDER, BY_ORDER_ALONE, BY_ID] {
        let rules = BY_ID.iter().zip(names).fold(by_id.clone(), |text, (id, name)| text.replacen(id, name, 1));
        std::fs::write(&shop, rules).unwrap();
        let exit = run(root, &["reconcile", "--shop", "card-eur", statement.to_str().unwrap()], Stdio::inherit()).await;
        assert!(exit.success(), "{exit}");
    }
}

/// Runs a command over the whole time, and prints its time, its memory, and how large SQLite's log was.
async fn run(root: &Path, arguments: &[&str], output: Stdio) -> ExitStatus {
    let mut command = Command::new(binary());
    command.args(arguments).args(["--from", "2020-01-01", "--to", "2100-01-01", "--rules"]).arg(root.join("rules"));
    let began = Instant::now();
    let mut running = Running(command.current_dir(root).stdin(Stdio::null()).stdout(output).spawn().unwrap());
    let (mut peak, mut log) = (0, 0);
    loop {
        if let Some(exit) = running.0.try_wait().unwrap() {
            let [peak, log] = [peak, log].map(|bytes: u64| bytes >> 20);
            println!("{}: {:.1?}, {peak} MiB, log {log} MiB", arguments[0], began.elapsed());
            return exit;
        }
        peak = peak.max(memory::peak(running.0.id()));
        log = log.max(std::fs::metadata(root.join("data/paybridge.db-wal")).map_or(0, |file| file.len()));
        tokio::time::sleep(LOOK).await;
    }
}
