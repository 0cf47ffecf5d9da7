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

/// A process, and all that it starts: it is asked to end them when this is dropped.
pub struct Process {
    child: Child,
    log: PathBuf,
    last_word: Signal,
    kept: Option<TempDir>,
}

impl Process {
    /// Starts a command, its output in this file. SIGTERM ends it.
    pub fn start(command: &mut Command, log: &Path) -> Self {
        let file = File::create(log).unwrap();
        let child = command
            .stdin(Stdio::null())
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        Self { child, log: log.to_owned(), last_word: Signal::TERM, kept: None }
    }

    /// The same, ended by another signal.
    pub fn ended_by(mut self, signal: Signal) -> Self {
        self.last_word = signal;
        self
    }

    /// The same, which needs a directory as long as it runs.
    pub fn keeping(mut self, directory: TempDir) -> Self {
        self.kept = Some(directory);
        self
    }

    /// The process that was started.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until something holds, or fails with what the process said.
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

    /// Waits until it takes connections.
    pub async fn until_it_listens(&mut self, name: &str, target: &Target) {
        self.until(&format!("{name} listens"), async || target.try_connect().await.is_some()).await;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), self.last_word);
        let deadline = Instant::now() + PATIENCE;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        drop(self.kept.take());
    }
}
