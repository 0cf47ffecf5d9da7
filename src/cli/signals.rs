//! Stops long jobs cleanly at SIGINT or SIGTERM.

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::outcome::CliError;

/// Returns a value that becomes true at SIGINT or SIGTERM.
///
/// # Errors
/// The signals cannot be handled.
pub fn stop_signals() -> Result<watch::Receiver<bool>, CliError> {
    let mut interrupt = signal(SignalKind::interrupt()).map_err(CliError::failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(CliError::failed)?;
    let (wanted, stop) = watch::channel(false);
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        wanted.send_replace(true);
        // Keeps the value available until the last receiver is gone.
        wanted.closed().await;
    });
    Ok(stop)
}

/// Completes when the job is to stop.
pub async fn stopped(stop: &mut watch::Receiver<bool>) {
    if stop.wait_for(|wanted| *wanted).await.is_err() {
        // No signal can arrive any more.
        std::future::pending::<()>().await;
    }
}
