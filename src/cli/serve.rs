//! `paybridge serve`: starts logging, runs the gateway, and prints a banner once it is ready.

use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use super::args::Serve;
use super::demo::{demo_curl, relative_to_cwd};
use super::outcome::{CliError, ExitOutcome, plural, wrong_rules};
use crate::app::{self, Ended, Start, StartError};
use crate::build_info;
use crate::clock::{Clock, SystemClock};
use crate::domain::UnixMillis;
use crate::http::listener::PassedSockets;
use crate::rules::{AdminListen, RuleSet};
use crate::store_settings::StoreUrl;
use crate::telemetry::logs::LogsError;
use crate::telemetry::{Logs, Metrics};

/// Serves until a signal ends it.
///
/// # Errors
/// The gateway cannot start, or a second signal ended it.
pub fn run(args: &Serve, out: &mut dyn Write, err: &mut dyn Write) -> ExitOutcome {
    // The thread of the log is the first other one.
    let sockets = PassedSockets::of_this_process().map_err(CliError::Failed)?;
    let metrics = Arc::new(Metrics::default());
    let filter = std::env::var("RUST_LOG").ok();
    let logs = Logs::start(args.log_format, filter.as_deref(), &metrics).map_err(|error| match error {
        LogsError::Filter(_) => CliError::Usage(error.to_string()),
        LogsError::Started | LogsError::Thread(_) => CliError::failed(error),
    })?;
    let directory = args.rules.rules.as_path();
    let start = Start { rules: directory, metrics, access: logs.access(), sockets };
    let print_banner = |rules: &RuleSet| {
        let text = banner(directory, rules, SystemClock.now());
        // The gateway serves even if its output cannot be written.
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    };
    let ended = app::run(start, print_banner);
    // Writes the remaining log lines before the last message.
    drop(logs);
    match ended {
        Ok(Ended::Drained) => Ok(()),
        // A success: requests in flight had `shutdown_grace` to finish.
        Ok(Ended::Cut) => Ok(writeln!(err, "requests in flight were cut off; everything acknowledged is stored")?),
        Ok(Ended::AtOnce) => Err(CliError::failed(
            "ended at once by a second signal; requests in flight were cut off, and everything acknowledged is \
             stored",
        )),
        Ok(Ended::LockedOut(reason)) => Err(CliError::failed(reason)),
        Err(StartError::Rules(problems)) => Err(wrong_rules(directory, &problems, err)),
        Err(error) => Err(CliError::failed(error)),
    }
}

/// Returns the text printed once both listeners accept: addresses and paths, and, if the rules are for development
/// (`[tls] generate`), a signed request to try.
#[must_use]
pub fn banner(directory: &Path, rules: &RuleSet, now: UnixMillis) -> String {
    let (public, admin) = (rules.gateway.server.listen, &rules.gateway.admin);
    let admin = match (&admin.listen, admin.tls) {
        (AdminListen::Tcp(address), false) => format!("http://{address}"),
        (AdminListen::Tcp(address), true) => format!("https://{address}"),
        (socket @ AdminListen::Unix(_), _) => socket.to_string(),
    };
    let public_url = &rules.gateway.server.public_url;
    let store = match &rules.gateway.store.url {
        StoreUrl::Sqlite(path) => relative_to_cwd(path).display().to_string(),
        StoreUrl::Postgres(url) => url.to_string(),
    };
    let (merchants, shops) = (rules.merchants.len(), rules.shops.len());
    let mut text = format!(
        "Paybridge {} is ready.\n\
         \x20 public    https://{public}, public URL {public_url}\n\
         \x20 console   {admin}, and /metrics /healthz /readyz /api/rules\n\
         \x20 log       standard error of this process (RUST_LOG filters it)\n\
         \x20 engine    {}\n\
         \x20 store     {}\n\
         \x20 rules     {}, version {}: {merchants} merchant{}, {shops} shop{}\n",
        build_info::VERSION,
        rules.gateway.engine,
        store,
        directory.display(),
        rules.version,
        plural(merchants),
        plural(shops),
    );
    // In production, standard output is often a log, and everyone who reads it could send a signed request found in it.
    let development = rules.gateway.tls.generate;
    let demonstration = if development { demo_curl(rules, now) } else { None };
    // Writing to a String does not fail.
    let _ = match demonstration {
        Some(line) => write!(text, "\nCreate a v1 deposit (the signature is valid for a few minutes):\n\n{line}\n"),
        None => writeln!(text, "\x20 try it    sign a request yourself: paybridge sign --help"),
    };
    text
}
