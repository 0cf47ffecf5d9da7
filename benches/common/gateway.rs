//! A gateway to measure: a release binary with its own rules, in a directory on a real disk, with its log in a file as in
//! production.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::time::Instant;

use super::load::Target;
use crate::support::Rules;
use crate::support::gateway::free_port;

const PATIENCE: Duration = Duration::from_mins(2);

/// A running gateway. It gets SIGTERM when this is dropped, since counters and profilers write their results at its end.
pub struct Gateway {
    /// Contains `rules/`, `certs/`, `data/`, `secrets/` and `logs/`.
    pub root: PathBuf,
    /// The TLS listener.
    pub public: SocketAddr,
    /// The admin listener.
    pub admin: SocketAddr,
    child: Child,
}

/// Returns the binary to measure: the one of this build, or the one that `PAYBRIDGE_BIN` names.
#[must_use]
pub fn binary() -> PathBuf {
    std::env::var_os("PAYBRIDGE_BIN").map_or_else(|| env!("CARGO_BIN_EXE_paybridge").into(), PathBuf::from)
}

/// Returns the rules of the tests without the limits that a load would reach: the rate limit of the merchant's key is
/// checked and never reached.
#[must_use]
pub fn rules() -> Rules {
    let secret = "v2_secret = \"acme-v2-hush-9Xz\"\n";
    let rate = "rate_limit = { per_second = 1000000, burst = 1000000 }\n";
    Rules::default()
        .edit("merchants/acme.toml", secret, &format!("{secret}{rate}"))
        .with("limits", "unauthenticated_per_ip = { per_second = 1000000, burst = 1000000 }\nconnections = 20000\n")
}

impl Gateway {
    /// Starts a binary in this directory and waits until it is ready.
    ///
    /// # Panics
    /// It ends, or is not ready in time; the end of its log is shown.
    #[must_use]
    pub fn start(binary: &Path, rules: &Rules, root: &Path) -> Self {
        std::fs::create_dir_all(root).unwrap();
        let [public, admin] = [free_port(), free_port()];
        rules.write(root, public, admin);
        // Not beside the rules, whose directory is watched: every line would wake the watcher.
        std::fs::create_dir_all(root.join("logs")).unwrap();
        let log = File::create(root.join("logs/gateway.log")).unwrap();
        let child = Command::new(binary)
            .args(["serve", "--rules"])
            .arg(root.join("rules"))
            .current_dir(root)
            .env_remove("PAYBRIDGE_RULES")
            .env_remove("PAYBRIDGE_PAGE_SECRET")
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", binary.display()));
        let address = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut gateway = Self { root: root.to_owned(), public: address(public), admin: address(admin), child };
        gateway.wait_until_ready();
        gateway
    }

    fn wait_until_ready(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        while self.admin_get("/readyz").is_none_or(|(status, _)| status != 200) {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none() && Instant::now() < deadline, "not ready ({ended:?}):\n{}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns the process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the CA that signed its certificate.
    #[must_use]
    pub fn ca(&self) -> PathBuf {
        self.root.join("certs/ca.pem")
    }

    /// Returns the target for clients.
    #[must_use]
    pub fn target(&self) -> Target {
        Target::new(self.public, &self.ca())
    }

    /// Sends a GET to the admin listener. Returns status and body; `None` when there was no reply.
    #[must_use]
    pub fn admin_get(&self, path: &str) -> Option<(u16, String)> {
        let mut socket = TcpStream::connect(self.admin).ok()?;
        socket.set_read_timeout(Some(PATIENCE)).ok()?;
        write!(socket, "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.admin).ok()?;
        let mut reply = String::new();
        socket.read_to_string(&mut reply).ok()?;
        let (head, body) = reply.split_once("\r\n\r\n")?;
        Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
    }

    /// Returns the end of its log.
    fn log(&self) -> String {
        let log = std::fs::read(self.root.join("logs/gateway.log")).unwrap_or_default();
        String::from_utf8_lossy(&log[log.len().saturating_sub(4000)..]).into_owned()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let deadline = Instant::now() + PATIENCE;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
