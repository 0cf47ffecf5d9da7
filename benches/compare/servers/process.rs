//! A process that ends with the benchmark.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::time::Instant;

use crate::common::load::Target;

const PATIENCE: Duration = Duration::from_secs(30);

/// A process, which must end its own children. It gets a signal to end when this is dropped.
pub struct Process {
    child: Child,
    log: PathBuf,
    stop_signal: Signal,
    kept: Option<TempDir>,
}

impl Process {
    /// Starts a command with its output in this file. SIGTERM ends it.
    pub fn start(command: &mut Command, log: &Path) -> Self {
        let file = File::create(log).unwrap();
        let child = command
            .stdin(Stdio::null())
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        Self { child, log: log.to_owned(), stop_signal: Signal::TERM, kept: None }
    }

    /// Sets another signal to end it.
    pub fn ended_by(mut self, signal: Signal) -> Self {
        self.stop_signal = signal;
        self
    }

    /// Keeps a directory that the process needs until it has ended.
    pub fn keeping(mut self, directory: TempDir) -> Self {
        self.kept = Some(directory);
        self
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until a condition holds, or fails with the output of the process.
    pub async fn until(&mut self, what: &str, mut condition: impl AsyncFnMut() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !condition().await {
            let ended = self.child.try_wait().unwrap();
            if ended.is_some() || Instant::now() > deadline {
                let stated = std::fs::read_to_string(&self.log).unwrap_or_default();
                panic!("{what}: never happened ({ended:?})\n{stated}");
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until it accepts connections.
    pub async fn until_it_listens(&mut self, name: &str, target: &Target) {
        self.until(&format!("{name} listens"), async || target.try_connect().await.is_some()).await;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), self.stop_signal);
        let deadline = Instant::now() + PATIENCE;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        drop(self.kept.take());
    }
}
