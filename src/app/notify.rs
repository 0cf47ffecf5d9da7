//! Notifies systemd, or another manager that implements its protocol (`sd_notify(3)`): ready, reloading, stopping,
//! signs of life, and a line for `systemctl status`. Does nothing without `NOTIFY_SOCKET`.
//!
//! Datagrams are sent without blocking and given up after [`SEND_TIMEOUT`], so that a slow manager does not delay requests.
//! The crate `sd-notify` blocks while the socket is full.

use std::ffi::{OsStr, OsString};
use std::future::Future;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram as StdDatagram};
use std::pin::pin;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::net::UnixDatagram;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

/// How long one message may wait for room in the socket.
const SEND_TIMEOUT: Duration = Duration::from_secs(1);

/// The service manager that started the process, if it wants notifications.
#[derive(Debug, Default)]
pub(super) struct ServiceManager {
    address: Option<SocketAddr>,
    /// How long the manager waits for a sign of life before it restarts the process.
    watchdog: Option<Duration>,
}

impl ServiceManager {
    /// Returns the manager that `NOTIFY_SOCKET` and `WATCHDOG_USEC` name.
    pub(super) fn of_this_process() -> Self {
        Self::from_variables(|name| std::env::var_os(name))
    }

    fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let Some(named) = variable("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else {
            return Self::default();
        };
        match address(&named) {
            Ok(address) => Self { address: Some(address), watchdog: watchdog(variable) },
            Err(error) => {
                tracing::warn!(socket = %named.display(), %error, "NOTIFY_SOCKET cannot be used; the service manager gets no notifications");
                Self::default()
            }
        }
    }

    /// Reports that both listeners accept, or that a reload is over.
    pub(super) async fn ready(&self, status: &str) {
        self.notify(&format!("READY=1\n{}", status_line(status))).await;
    }

    /// Reports that a reload begins. The time distinguishes its end from the end of an earlier reload.
    pub(super) async fn reloading(&self) {
        let now = clock_gettime(ClockId::Monotonic);
        let microseconds = i128::from(now.tv_sec) * 1_000_000 + i128::from(now.tv_nsec) / 1_000;
        self.notify(&format!("RELOADING=1\nMONOTONIC_USEC={microseconds}\n")).await;
    }

    /// Reports that the drain begins.
    pub(super) async fn stopping(&self, status: &str) {
        self.notify(&format!("STOPPING=1\n{}", status_line(status))).await;
    }

    /// Sends a sign of life at every half of the watchdog's time, for as long as this future is polled and `proof`,
    /// called as often, completed within that time. Its output becomes the status line.
    pub(super) async fn keep_alive<F: Future<Output = String>>(&self, mut proof: impl FnMut() -> F) {
        let Some(limit) = self.watchdog else { return };
        let mut ticks = interval(limit / 2);
        // Missed signs of life are not repeated: each one means that the process lives now.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut proven = Instant::now();
        let mut status = None;
        let mut next = pin!(after(Duration::ZERO, proof()));
        loop {
            tokio::select! {
                message = &mut next => {
                    proven = Instant::now();
                    status = Some(status_line(&message));
                    next.set(after(limit / 2, proof()));
                }
                _ = ticks.tick() => {
                    if proven.elapsed() < limit {
                        self.notify(&format!("WATCHDOG=1\n{}", status.take().unwrap_or_default())).await;
                    }
                }
            }
        }
    }

    async fn notify(&self, message: &str) {
        let Some(address) = &self.address else { return };
        let sent = timeout(SEND_TIMEOUT, send(address, message)).await;
        if let Err(error) = sent.unwrap_or_else(|late| Err(late.into())) {
            tracing::warn!(%error, "the service manager could not be notified");
        }
    }
}

/// Messages consist of lines, so a status must be a single line.
fn status_line(status: &str) -> String {
    format!("STATUS={}\n", status.replace('\n', "; "))
}

async fn after<F: Future>(pause: Duration, proof: F) -> F::Output {
    sleep(pause).await;
    proof.await
}

/// Parses a path, or, after `@`, a name in the abstract namespace.
fn address(named: &OsStr) -> io::Result<SocketAddr> {
    match named.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        [b'/', ..] => SocketAddr::from_pathname(named),
        _ => Err(io::Error::new(io::ErrorKind::Unsupported, "neither a path nor an abstract name")),
    }
}

/// Sends through a new socket each time, so that a manager that has bound its address again is reached.
async fn send(address: &SocketAddr, message: &str) -> io::Result<()> {
    let socket = StdDatagram::unbound()?;
    socket.connect_addr(address)?;
    socket.set_nonblocking(true)?;
    UnixDatagram::from_std(socket)?.send(message.as_bytes()).await.map(drop)
}

/// Returns the watchdog's time if it watches this process.
fn watchdog(variable: impl Fn(&str) -> Option<OsString>) -> Option<Duration> {
    let number = |name| variable(name)?.to_str()?.parse::<u64>().ok();
    let is_ours = variable("WATCHDOG_PID").is_none() || number("WATCHDOG_PID") == Some(u64::from(std::process::id()));
    number("WATCHDOG_USEC").filter(|time| *time > 0 && is_ours).map(Duration::from_micros)
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use tempfile::TempDir;

    use super::*;

    const MINUTE: &str = "60000000";

    /// The manager's end of the socket, and the process's view of the manager.
    struct Supervised {
        messages: UnixDatagram,
        manager: ServiceManager,
        directory: TempDir,
    }

    fn supervised(watchdog: &str, pid: Option<u32>) -> Supervised {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let messages = UnixDatagram::bind(&path).unwrap();
        let manager = ServiceManager::from_variables(|name| match name {
            "NOTIFY_SOCKET" => Some(path.clone().into_os_string()),
            "WATCHDOG_USEC" => Some(watchdog.into()),
            "WATCHDOG_PID" => pid.map(|pid| pid.to_string().into()),
            other => panic!("{other} is no part of the protocol"),
        });
        Supervised { messages, manager, directory }
    }

    impl Supervised {
        async fn receive(&self) -> String {
            let mut buffer = [0; 1024];
            let length = self.messages.recv(&mut buffer).await.unwrap();
            String::from_utf8(buffer[..length].to_vec()).unwrap()
        }

        /// Returns how many messages were sent and not received yet.
        fn backlog(&self) -> usize {
            std::iter::from_fn(|| self.messages.try_recv(&mut [0; 1024]).ok()).count()
        }
    }

    #[tokio::test]
    async fn messages_follow_the_protocol() {
        let supervised = supervised("0", None);
        supervised.manager.ready("serves").await;
        assert_eq!(supervised.receive().await, "READY=1\nSTATUS=serves\n");
        supervised.manager.reloading().await;
        let reloading = supervised.receive().await;
        let time = reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").unwrap().trim_end();
        assert!(time.parse::<u64>().unwrap() > 0, "{reloading}");
        supervised.manager.stopping("two\nlines").await;
        assert_eq!(supervised.receive().await, "STOPPING=1\nSTATUS=two; lines\n");
        supervised.manager.keep_alive(|| ready(String::new())).await;
        assert_eq!(supervised.backlog(), 0, "there is no watchdog");
    }

    #[tokio::test]
    async fn a_restarted_manager_is_reached_again() {
        let mut supervised = supervised("0", None);
        supervised.manager.ready("before").await;
        let path = supervised.directory.path().join("notify");
        std::fs::remove_file(&path).unwrap();
        supervised.manager.ready("meanwhile").await;
        supervised.messages = UnixDatagram::bind(&path).unwrap();
        supervised.manager.ready("after").await;
        assert_eq!(supervised.receive().await, "READY=1\nSTATUS=after\n");
    }

    #[tokio::test]
    async fn abstract_sockets_work() {
        let name = format!("paybridge-{}", std::process::id());
        let messages = StdDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        let address = |variable: &str| (variable == "NOTIFY_SOCKET").then(|| format!("@{name}").into());
        ServiceManager::from_variables(address).ready("").await;
        let mut buffer = [0; 64];
        let length = messages.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], b"READY=1\nSTATUS=\n");
    }

    #[tokio::test]
    async fn without_a_usable_socket_nothing_happens() {
        for address in [None, Some(""), Some("/nowhere/notify"), Some("vsock:2:1")] {
            let manager =
                ServiceManager::from_variables(|name| address.filter(|_| name == "NOTIFY_SOCKET").map(OsString::from));
            manager.ready("unheard").await;
            manager.keep_alive(pending).await;
        }
    }

    #[tokio::test]
    async fn the_watchdog_applies_to_the_process_it_names() {
        let ours = std::process::id();
        for (time, pid, expected) in [
            ("2000000", None, Some(2)),
            ("2000000", Some(ours), Some(2)),
            ("2000000", Some(ours + 1), None),
            ("0", None, None),
            ("soon", None, None),
        ] {
            let watchdog = supervised(time, pid).manager.watchdog;
            assert_eq!(watchdog, expected.map(Duration::from_secs), "{time} {pid:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_live_process_sends_signs_of_life() {
        let supervised = supervised(MINUTE, None);
        let mut proofs = 0;
        let proof = || {
            proofs += 1;
            ready(format!("proof {proofs}"))
        };
        let receive = async {
            let mut messages = Vec::new();
            // The test's clock may jump over the sender's patience; then that proof never arrives.
            while messages.iter().filter(|message: &&String| message.contains("STATUS=proof ")).count() < 3 {
                messages.push(supervised.receive().await);
            }
            messages
        };
        let messages = tokio::select! {
            () = supervised.manager.keep_alive(proof) => panic!("it never ends"),
            messages = receive => messages,
        };
        assert!(messages.iter().all(|message| message.starts_with("WATCHDOG=1\n")), "{messages:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_stuck_process_sends_none() {
        let supervised = supervised(MINUTE, None);
        let keep_alive = supervised.manager.keep_alive(pending);
        let mut keep_alive = pin!(keep_alive);
        // Of the test's clock, which advances by itself.
        assert!(timeout(Duration::from_mins(2), &mut keep_alive).await.is_err());
        assert!(supervised.backlog() > 0, "signs of life continue for a while");
        assert!(timeout(Duration::from_hours(1), keep_alive).await.is_err());
        assert_eq!(supervised.backlog(), 0, "they stop when nothing was proven for the watchdog's time");
    }
}
