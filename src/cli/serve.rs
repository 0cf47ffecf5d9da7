//! `paybridge serve`: what comes before the gateway runs, and what is said when it does.

use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use super::args::Serve;
use super::demo::{demo_curl, seen_from_here};
use super::{CliError, ExitOutcome, plural, wrong_rules};
use crate::app::{self, Ended, Start, StartError};
use crate::clock::{Clock, SystemClock};
use crate::domain::UnixMillis;
use crate::rules::{RuleSet, StoreUrl};
use crate::telemetry::logs::LogsError;
use crate::telemetry::{Logs, Metrics};

/// Serves until a signal ends it.
///
/// # Errors
/// What keeps it from starting.
pub fn run(asked: &Serve, out: &mut dyn Write, err: &mut dyn Write) -> ExitOutcome {
    let metrics = Arc::new(Metrics::default());
    let filter = std::env::var("RUST_LOG").ok();
    let logs = Logs::start(asked.log_format, filter.as_deref(), &metrics).map_err(|error| match error {
        LogsError::Filter(_) => CliError::Usage(error.to_string()),
        LogsError::Started | LogsError::Thread(_) => CliError::failed(error),
    })?;
    let directory = asked.rules.rules.as_path();
    let start = Start { rules: directory, metrics, access: logs.access() };
    let announce = |rules: &RuleSet| {
        let text = banner(directory, rules, SystemClock.now());
        // A gateway whose output nobody takes serves all the same.
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    };
    let ended = app::run(start, announce);
    // What the log still holds comes before the last word.
    drop(logs);
    match ended {
        Ok(Ended::Drained) => Ok(()),
        // The process did what it was told: `shutdown_grace` is what requests in flight are given.
        Ok(Ended::Cut) => Ok(writeln!(err, "requests in flight were cut off; what was acknowledged is stored")?),
        Ok(Ended::AtOnce) => Err(CliError::failed(
            "ended at once by a second signal; requests in flight, if any, were cut off, and what was acknowledged is \
             stored",
        )),
        Err(StartError::Rules(problems)) => Err(wrong_rules(directory, &problems, err)),
        Err(error) => Err(CliError::failed(error)),
    }
}

/// What is printed once both listeners accept: where everything is, and, where the rules are for development
/// (`[tls] generate`), a signed line to try it with.
#[must_use]
pub fn banner(directory: &Path, rules: &RuleSet, now: UnixMillis) -> String {
    let (public, admin) = (rules.gateway.server.listen, rules.gateway.admin_listen);
    let public_url = &rules.gateway.server.public_url;
    let store = match &rules.gateway.store.url {
        StoreUrl::Sqlite(path) => seen_from_here(path).display().to_string(),
        StoreUrl::Postgres(url) => url.to_string(),
    };
    let (merchants, shops) = (rules.merchants.len(), rules.shops.len());
    let mut text = format!(
        "Paybridge {} is ready.\n\
         \x20 public    https://{public}, known as {public_url}\n\
         \x20 metrics   http://{admin}/metrics, and /healthz /readyz /api/rules\n\
         \x20 log       standard error of this process (RUST_LOG filters it)\n\
         \x20 engine    {}\n\
         \x20 store     {}\n\
         \x20 rules     {}, version {}: {merchants} merchant{}, {shops} shop{}\n",
        env!("CARGO_PKG_VERSION"),
        rules.gateway.engine,
        store,
        directory.display(),
        rules.version,
        plural(merchants),
        plural(shops),
    );
    // Standard output is a log where it matters, and a signed line in it is a request that whoever reads it can send.
    let development = rules.gateway.tls.generate;
    let demonstration = if development { demo_curl(rules, now) } else { None };
    // Writing to a String does not fail.
    let _ = match demonstration {
        Some(line) => write!(text, "\nCreate a v1 deposit (the signature holds for a few minutes):\n\n{line}\n"),
        None => writeln!(text, "\x20 try it    sign a request yourself: paybridge sign --help"),
    };
    text
}
