//! Reloads the rules and the certificate, and reports the outcome to the log, the metrics and the caller.

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;

use super::live_tls::LiveTls;
use crate::clock::Clock;
use crate::domain::UnixMillis;
use crate::http::admin::{CertificateInfo, ProblemInfo, RulesInfo};
use crate::rules::{LiveRules, Problem, Problems, ReloadOutcome, RuleSet};
use crate::telemetry::{Metrics, RulesState, Stopwatch};

/// How many problems of a rejected reload are logged; more would bury the first ones.
const PROBLEMS_LOGGED: usize = 20;

/// How many warnings about a rule set are logged.
const WARNINGS_LOGGED: usize = 20;

/// The most problems, and the most warnings, that the admin API shows.
const MAX_PROBLEMS_SHOWN: usize = 100;

/// What caused a reload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReloadCause {
    /// SIGHUP.
    Signal,
    /// A request to the admin listener.
    Request,
    /// A change of the files.
    Change,
}

impl ReloadCause {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Signal => "SIGHUP",
            Self::Request => "admin",
            Self::Change => "change",
        }
    }

    /// Reports whether an operator requested the reload and waits for the result: then it is logged even when nothing
    /// is new.
    const fn is_requested(self) -> bool {
        !matches!(self, Self::Change)
    }
}

/// Reloads the rules and the certificate.
pub(super) struct Reloads {
    rules: Arc<LiveRules>,
    tls: Arc<LiveTls>,
    clock: Arc<dyn Clock>,
    metrics: Arc<Metrics>,
    /// Held during a reload, so that the log lines of two reloads do not mix.
    running: Mutex<()>,
    state: ArcSwap<ReloadState>,
    /// The expiry of the certificate in use, once it has passed and that was logged.
    expired: Mutex<Option<UnixMillis>>,
}

/// How what is on disk differs from what is in force, as the last reload found it.
#[derive(Default)]
struct ReloadState {
    /// Why the rules on disk are not in force.
    problems: Option<Arc<Problems>>,
    /// The keys of the last loaded `gateway.toml` whose values differ from those the process runs with.
    needs_restart: Vec<&'static str>,
    /// Why the certificate on disk is not in use.
    certificate_error: Option<String>,
}

impl ReloadState {
    /// Returns the errors of the rules on disk. Its warnings are shown once its errors are solved: those of the rules in
    /// force would be shown twice.
    fn errors(&self) -> impl Iterator<Item = &Problem> {
        self.problems.iter().flat_map(|problems| problems.errors())
    }
}

impl Reloads {
    /// Logs the warnings about the rules and the certificate that the process starts with.
    pub(super) fn new(rules: Arc<LiveRules>, tls: Arc<LiveTls>, clock: Arc<dyn Clock>, metrics: Arc<Metrics>) -> Self {
        let (running, state, expired) = (Mutex::default(), ArcSwap::default(), Mutex::default());
        let reloads = Self { rules, tls, clock, metrics, running, state, expired };
        log_warnings(&[], &reloads.rules.current().warnings);
        reloads.check_expiry();
        reloads.count(&reloads.state.load());
        reloads
    }

    /// Reloads everything and reports the outcome. Blocks on file reads: call it from a thread that may block.
    pub(super) fn run(&self, cause: ReloadCause) -> RulesInfo {
        // After a panic the last good set is in force.
        let _running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let (known, in_force) = (self.state.load_full(), self.rules.current());
        let watch = Stopwatch::start();
        let outcome = self.rules.reload();
        self.metrics.reload_took(watch.elapsed());
        let (problems, needs_restart) = match outcome {
            ReloadOutcome::Loaded { version, external_files_changed, needs_restart, .. } => {
                self.metrics.reload(true, &version);
                self.log_loaded(cause, &in_force, external_files_changed, known.problems.is_some());
                log_restart(cause, &known.needs_restart, &needs_restart);
                (None, needs_restart)
            }
            ReloadOutcome::Refused(problems) => {
                self.metrics.reload(false, "");
                log_problems(cause, &in_force, &problems);
                (Some(problems), known.needs_restart.clone())
            }
        };
        // The certificate is renewed even if the rules on disk are rejected.
        let certificate_error = self.refresh_certificate(cause, known.certificate_error.as_deref());
        self.check_expiry();
        let state = ReloadState { problems, needs_restart, certificate_error };
        // Counted first, so that the admin API shows nothing that the metrics do not show.
        self.count(&state);
        self.state.store(Arc::new(state));
        self.info()
    }

    fn log_loaded(&self, cause: ReloadCause, before: &RuleSet, external_files_changed: bool, was_refused: bool) {
        let rules = self.rules.current();
        self.metrics.rules_loaded(rules.loaded_at);
        let (previous, version, cause_name) = (&before.version, &rules.version, cause.as_str());
        if was_refused {
            tracing::info!(%version, trigger = cause_name, "the rules on disk are valid again");
        }
        if external_files_changed {
            tracing::info!(%version, trigger = cause_name, "reloaded secrets or certificates that the rules name");
        }
        if previous != version {
            let (merchants, keys, shops) = (rules.merchants.len(), rules.api_keys.len(), rules.shops.len());
            tracing::info!(%previous, %version, trigger = cause_name, merchants, keys, shops, "rules loaded");
        } else if cause.is_requested() && !external_files_changed {
            tracing::info!(%version, trigger = cause_name, "rules reloaded: no change");
        } else {
            tracing::debug!(%version, trigger = cause_name, "rules reloaded: the files did not change");
        }
        log_warnings(&before.warnings, &rules.warnings);
    }

    /// Applies the certificate on disk. Returns why it cannot be used; `known`: why the last one could not.
    fn refresh_certificate(&self, cause: ReloadCause, known: Option<&str>) -> Option<String> {
        let error = match self.tls.refresh(&self.rules.current().gateway) {
            Ok(renewed) => {
                if renewed {
                    self.metrics.certificate_reload(true);
                    tracing::info!(not_after = self.tls.not_after().map(formatted), "a new certificate is in use");
                } else if known.is_some() {
                    tracing::info!("the certificate on disk is valid again: it is the one in use");
                } else {
                    tracing::debug!("the certificate did not change");
                }
                return None;
            }
            Err(error) => error.to_string(),
        };
        let is_new = known != Some(&error);
        if is_new {
            self.metrics.certificate_reload(false);
        }
        if is_new || cause.is_requested() {
            tracing::error!(%error, trigger = cause.as_str(), "the certificate on disk is rejected; the old one stays in use");
        }
        Some(error)
    }

    /// Logs once that the certificate in use has expired.
    pub(super) fn check_expiry(&self) {
        let now = self.clock.now();
        let expired = self.tls.not_after().filter(|not_after| not_after.0 < now.0);
        let mut logged = self.expired.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(not_after) = expired.filter(|_| *logged != expired) {
            tracing::warn!(not_after = formatted(not_after), "the certificate in use has expired");
        }
        *logged = expired;
    }

    /// Updates the gauges.
    fn count(&self, state: &ReloadState) {
        self.metrics.rules_state(RulesState {
            problems: state.problems.as_ref().map(|problems| problems.errors().count()),
            warnings: self.rules.current().warnings.len(),
            needs_restart: state.needs_restart.len(),
        });
        self.metrics.certificate_refused(state.certificate_error.is_some());
        self.update_expiry_gauges();
    }

    /// Updates the gauges that change with time alone.
    pub(super) fn update_expiry_gauges(&self) {
        self.metrics.certificate_expires(self.tls.not_after(), self.clock.now());
    }

    /// Returns why the rules or the certificate on disk are not in force: the first error, in one line.
    pub(super) fn first_problem(&self) -> Option<String> {
        let state = self.state.load();
        let rules = state.errors().next().map(|error| format!("the rules on disk are rejected: {error}"));
        let certificate = state.certificate_error.as_ref();
        rules.or_else(|| certificate.map(|error| format!("the certificate on disk is rejected: {error}")))
    }

    /// Returns the version of the rules in force, and the problems of those on disk.
    pub(super) fn info(&self) -> RulesInfo {
        let (rules, state) = (self.rules.current(), self.state.load());
        let errors: Vec<_> = state.errors().map(Problem::to_string).chain(state.certificate_error.clone()).collect();
        RulesInfo {
            version: rules.version.to_string(),
            loaded_at: rules.loaded_at,
            error: (!errors.is_empty()).then(|| errors.join("\n")),
            needs_restart: state.needs_restart.clone(),
            problems: state.errors().take(MAX_PROBLEMS_SHOWN).map(ProblemInfo::from).collect(),
            problem_count: state.errors().count(),
            warnings: rules.warnings.iter().take(MAX_PROBLEMS_SHOWN).map(Problem::to_string).collect(),
            warning_count: rules.warnings.len(),
            certificate: CertificateInfo { not_after: self.tls.not_after(), error: state.certificate_error.clone() },
        }
    }
}

fn formatted(moment: UnixMillis) -> String {
    jiff::Timestamp::from_millisecond(moment.0).map_or_else(|_| moment.0.to_string(), |moment| moment.to_string())
}

/// Logs why rules were rejected, and the warnings about them that the rules in force do not have.
fn log_problems(cause: ReloadCause, in_force: &RuleSet, problems: &Problems) {
    let (version, cause, count) = (&in_force.version, cause.as_str(), problems.errors().count());
    tracing::error!(%version, trigger = cause, problems = count, "rules rejected; the last good ones stay in force");
    for problem in problems.errors().take(PROBLEMS_LOGGED) {
        tracing::error!(%problem, "a problem of the rejected rules");
    }
    if let Some(more) = count.checked_sub(PROBLEMS_LOGGED).filter(|more| *more > 0) {
        tracing::error!("{more} more problems; run `paybridge check` to see all");
    }
    let new = problems.warnings().filter(|warning| !in_force.warnings.contains(warning));
    for problem in new.take(WARNINGS_LOGGED) {
        tracing::warn!(%problem, "a warning about the rejected rules");
    }
}

/// Logs the warnings about the rules in force, except those about the set before.
fn log_warnings(before: &[Problem], now: &[Problem]) {
    let new: Vec<&Problem> = now.iter().filter(|warning| !before.contains(warning)).collect();
    for problem in new.iter().take(WARNINGS_LOGGED) {
        tracing::warn!(%problem, "a warning about the rules in force");
    }
    if let Some(more) = new.len().checked_sub(WARNINGS_LOGGED).filter(|more| *more > 0) {
        tracing::warn!("{more} more warnings; run `paybridge check` to see all");
    }
}

fn log_restart(cause: ReloadCause, known: &[&str], needs_restart: &[&str]) {
    let is_new = known != needs_restart;
    if !needs_restart.is_empty() && (is_new || cause.is_requested()) {
        let keys = needs_restart.join(", ");
        tracing::warn!(%keys, "changed keys of gateway.toml take effect at the next start");
    } else if needs_restart.is_empty() && is_new {
        tracing::info!("no changed key of gateway.toml waits for the next start any more");
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use tracing_subscriber::fmt::MakeWriter;

    use super::*;
    use crate::certs;
    use crate::clock::SystemClock;
    use crate::rules::{LoadOptions, Loader, load};

    /// Collects what is logged.
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl MakeWriter<'_> for Lines {
        type Writer = Self;

        fn make_writer(&self) -> Self {
            self.clone()
        }
    }

    impl Lines {
        /// Returns how many lines contain `text` since the last call.
        fn take(&self, text: &str) -> usize {
            let lines = std::mem::take(&mut *self.0.lock().unwrap());
            String::from_utf8(lines).unwrap().matches(text).count()
        }
    }

    fn rules(directory: &Path) -> RuleSet {
        load(directory, SystemClock.now(), None, LoadOptions::default()).unwrap()
    }

    /// Returns `count` problems, to be used as warnings.
    fn problems(count: usize) -> Vec<Problem> {
        let directory = tempfile::tempdir().unwrap();
        let keys: Vec<String> = (0..count).map(|number| format!("unknown_{number:03} = 1")).collect();
        // Only so many problems of one file are reported.
        let (first, second) = keys.split_at(count / 2);
        fs::create_dir(directory.path().join("merchants")).unwrap();
        fs::write(directory.path().join("gateway.toml"), first.join("\n")).unwrap();
        fs::write(directory.path().join("merchants/m.toml"), second.join("\n") + "\n").unwrap();
        let problems = load(directory.path(), UnixMillis(0), None, LoadOptions::default()).unwrap_err();
        problems.iter().cloned().collect()
    }

    #[test]
    fn new_warnings_are_logged_and_all_are_shown() {
        let lines = Lines::default();
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(lines.clone()).finish();
        let _logging = tracing::subscriber::set_default(subscriber);
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("rules");
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join("gateway.toml"), "[tls]\ngenerate = true\n").unwrap();
        let warnings = problems(120);
        let first = RuleSet { warnings: warnings.clone(), ..rules(&directory) };
        certs::ensure(&first.gateway.tls, &certs::names_of(&first.gateway.server), SystemClock.now()).unwrap();
        let tls = Arc::new(LiveTls::new(&first.gateway, 10).unwrap());
        let metrics = Arc::<Metrics>::default();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let reader = Loader::new(&directory, LoadOptions::default());
        let live = Arc::new(LiveRules::new(reader, first, Arc::clone(&clock)));
        let reloads = Reloads::new(live, tls, clock, Arc::clone(&metrics));
        assert_eq!(lines.take("a warning about the rules"), WARNINGS_LOGGED, "the first warnings at the start");
        let info = reloads.info();
        assert_eq!((info.warnings.len(), info.warning_count, info.error), (MAX_PROBLEMS_SHOWN, 120, None));
        assert!(info.warnings[7].contains("gateway.toml:8:1: unknown key `unknown_007`"), "{}", info.warnings[7]);
        assert!(metrics.render().contains("paybridge_rules_warnings 120\n"));

        log_warnings(&warnings[..2], &warnings[..2]);
        assert_eq!(lines.take("a warning about the rules"), 0, "old warnings are not logged again");
        log_warnings(&warnings[..2], &warnings[..3]);
        assert_eq!(lines.take("unknown_002"), 1, "only the new warning is logged");
        log_warnings(&warnings[..2], &[]);
        log_warnings(&[], &warnings[..2]);
        assert_eq!(lines.take("a warning about the rules"), 2, "warnings that return are new");

        let info = reloads.run(ReloadCause::Request);
        assert_eq!((info.warnings.len(), info.warning_count), (0, 0), "the warnings went with their rule set");
    }
}
