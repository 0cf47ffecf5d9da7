//! Jobs that end in good order when somebody interrupts them.

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::CliError;

/// Turns true at SIGINT or SIGTERM.
///
/// # Errors
/// The signals cannot be listened to.
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
        // The receivers still look at it.
        wanted.closed().await;
    });
    Ok(stop)
}

/// Resolves when somebody wants the job to stop.
pub async fn stopped(stop: &mut watch::Receiver<bool>) {
    if stop.wait_for(|wanted| *wanted).await.is_err() {
        // Nobody is left who could.
        std::future::pending::<()>().await;
    }
}
