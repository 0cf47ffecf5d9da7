//! Notifies systemd, or another manager that implements its protocol (`sd_notify(3)`): ready, reloading, stopping,
//! signs of life, and a line for `systemctl status`. Does nothing without `NOTIFY_SOCKET`.
//!
//! A notification blocks while the manager's socket is full, so each is sent on a thread for blocking work, and given up
//! after [`SEND_TIMEOUT`]: a slow manager does not delay requests.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use sd_notify::NotifyState;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

/// How long one notification may wait for the one before and for room in the socket.
const SEND_TIMEOUT: Duration = Duration::from_secs(1);

/// Sends one notification; may block.
type Send = dyn Fn(&[NotifyState<'_>]) -> io::Result<()> + std::marker::Send + Sync;

/// The service manager that started the process, if it wants notifications.
#[derive(Default)]
pub(super) struct ServiceManager {
    send: Option<Arc<Send>>,
    /// Held while a notification is made and sent, so that none is overtaken by one with an older status, and at most one
    /// thread waits for the manager.
    turn: Arc<Mutex<()>>,
    /// How long the manager waits for a sign of life before it restarts the process.
    watchdog: Option<Duration>,
}

impl fmt::Debug for ServiceManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceManager").field("watchdog", &self.watchdog).finish_non_exhaustive()
    }
}

impl ServiceManager {
    /// Returns the manager that `NOTIFY_SOCKET` and `WATCHDOG_USEC` name.
    pub(super) fn of_this_process() -> Self {
        if std::env::var_os("NOTIFY_SOCKET").is_none_or(|name| name.is_empty()) {
            return Self::default();
        }
        let watchdog = sd_notify::watchdog_enabled().filter(|time| !time.is_zero());
        Self { send: Some(Arc::new(sd_notify::notify)), turn: Arc::default(), watchdog }
    }

    /// Reports that both listeners accept, or that a reload is over.
    pub(super) async fn ready(&self, status: impl FnOnce() -> String) {
        self.notify(vec![NotifyState::Ready], status).await;
    }

    /// Reports that a reload begins. The time distinguishes its end from the end of an earlier reload.
    pub(super) async fn reloading(&self, status: impl FnOnce() -> String) {
        let now = NotifyState::monotonic_usec_now().ok();
        self.notify([NotifyState::Reloading].into_iter().chain(now).collect(), status).await;
    }

    /// Reports that the drain begins.
    pub(super) async fn stopping(&self, status: impl FnOnce() -> String) {
        self.notify(vec![NotifyState::Stopping], status).await;
    }

    /// Sends a sign of life twice within the watchdog's time, as long as this future is polled and each `proof` completes
    /// within that time.
    pub(super) async fn keep_alive<F: Future<Output = ()>>(
        &self,
        mut proof: impl FnMut() -> F,
        status: impl Fn() -> String,
    ) {
        let Some(limit) = self.watchdog else { return };
        let mut ticks = interval(limit / 2);
        // Missed signs of life are not repeated: each one means that the process lives now.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut proven = Instant::now();
        let mut next = pin!(after(Duration::ZERO, proof()));
        loop {
            tokio::select! {
                () = &mut next => {
                    proven = Instant::now();
                    next.set(after(limit / 2, proof()));
                }
                _ = ticks.tick() => {
                    if proven.elapsed() < limit {
                        self.notify(vec![NotifyState::Watchdog], &status).await;
                    }
                }
            }
        }
    }

    /// Sends a notification with the status of the moment in which its turn comes.
    async fn notify(&self, changes: Vec<NotifyState<'static>>, status: impl FnOnce() -> String) {
        let Some(send) = self.send.clone() else { return };
        let notified = async {
            let turn = Arc::clone(&self.turn).lock_owned().await;
            // Notifications consist of lines, so a status must be a single line.
            let line = status().replace('\n', "; ");
            let send = move || {
                let _turn = turn;
                let all: Vec<NotifyState<'_>> = changes.into_iter().chain([NotifyState::Status(&line)]).collect();
                send(&all)
            };
            spawn_blocking(send).await.unwrap_or_else(|panic| Err(io::Error::other(panic)))
        };
        if let Err(error) = timeout(SEND_TIMEOUT, notified).await.unwrap_or_else(|late| Err(late.into())) {
            tracing::warn!(%error, "the service manager could not be notified");
        }
    }
}

async fn after<F: Future>(pause: Duration, proof: F) -> F::Output {
    sleep(pause).await;
    proof.await
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::sync::Mutex as StdMutex;
    use std::sync::mpsc;

    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    /// A manager with a watchdog of a minute, and what it receives.
    fn supervised() -> (ServiceManager, UnboundedReceiver<String>) {
        let (sender, received) = unbounded_channel();
        let send = move |changes: &[NotifyState<'_>]| {
            let lines: Vec<String> = changes.iter().map(ToString::to_string).collect();
            sender.send(lines.join(" ")).map_err(io::Error::other)
        };
        (ServiceManager { send: Some(Arc::new(send)), turn: Arc::default(), watchdog: Some(MINUTE) }, received)
    }

    #[tokio::test]
    async fn notifications_follow_the_protocol() {
        let (manager, mut received) = supervised();
        manager.ready(|| "serves".to_owned()).await;
        assert_eq!(received.recv().await.unwrap(), "READY=1 STATUS=serves");
        manager.reloading(|| "serves".to_owned()).await;
        let reloading = received.recv().await.unwrap();
        let time = reloading.strip_prefix("RELOADING=1 MONOTONIC_USEC=").unwrap().split(' ').next().unwrap();
        assert!(time.parse::<u64>().unwrap() > 0, "{reloading}");
        manager.stopping(|| "two\nlines".to_owned()).await;
        assert_eq!(received.recv().await.unwrap(), "STOPPING=1 STATUS=two; lines");
        ServiceManager { watchdog: None, ..manager }.keep_alive(pending, || panic!("there is no watchdog")).await;
        assert!(received.try_recv().is_err());
    }

    #[tokio::test]
    async fn without_a_manager_nothing_happens() {
        let manager = ServiceManager::default();
        manager.ready(|| panic!("there is no manager")).await;
        manager.keep_alive(pending, || panic!("there is no manager")).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_sign_of_life_has_the_status_of_its_moment() {
        let (manager, mut received) = supervised();
        let status = StdMutex::new(String::new());
        let changes = async {
            for expected in ["first", "second", "draining", "draining"] {
                expected.clone_into(&mut status.lock().unwrap());
                assert_eq!(received.recv().await.unwrap(), format!("WATCHDOG=1 STATUS={expected}"));
            }
        };
        let status = || status.lock().unwrap().clone();
        tokio::select! {
            biased;
            () = changes => {}
            () = manager.keep_alive(|| ready(()), status) => panic!("it never ends"),
        }
    }

    #[tokio::test]
    async fn a_notification_that_waits_is_not_overtaken() {
        let (let_go, held) = mpsc::channel::<()>();
        let (held, (sender, mut received)) = (StdMutex::new(held), unbounded_channel());
        let send = move |changes: &[NotifyState<'_>]| {
            let text = changes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
            if text.contains("WATCHDOG") {
                sender.send("begun".to_owned()).map_err(io::Error::other)?;
                held.lock().unwrap().recv().map_err(io::Error::other)?;
            }
            sender.send(text).map_err(io::Error::other)
        };
        let manager = ServiceManager { send: Some(Arc::new(send)), ..ServiceManager::default() };
        let alive = manager.notify(vec![NotifyState::Watchdog], || "serving".to_owned());
        let drain = async {
            assert_eq!(received.recv().await.unwrap(), "begun");
            let stopping = manager.stopping(|| "draining".to_owned());
            let release = async { let_go.send(()).unwrap() };
            tokio::join!(stopping, release);
        };
        tokio::join!(alive, drain);
        assert_eq!(received.recv().await.unwrap(), "WATCHDOG=1 STATUS=serving");
        assert_eq!(received.recv().await.unwrap(), "STOPPING=1 STATUS=draining");
    }

    #[tokio::test(start_paused = true)]
    async fn a_stuck_process_sends_none() {
        let (manager, mut received) = supervised();
        let mut keep_alive = pin!(manager.keep_alive(pending, String::new));
        // Of the test's clock, which advances by itself.
        assert!(timeout(MINUTE * 2, &mut keep_alive).await.is_err());
        assert!(received.try_recv().is_ok(), "signs of life continue for a while");
        while received.try_recv().is_ok() {}
        assert!(timeout(MINUTE * 60, keep_alive).await.is_err());
        assert!(received.try_recv().is_err(), "they stop when nothing was proven for the watchdog's time");
    }
}
