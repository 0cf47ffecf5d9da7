//! Reloads the rules and the certificate, and reports the outcome to the log, the metrics and the caller.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::live_tls::LiveTls;
use crate::clock::Clock;
use crate::domain::UnixMillis;
use crate::http::admin::{CertificateInfo, ProblemInfo, RulesInfo};
use crate::http::listener::tls::TlsError;
use crate::rules::{LiveRules, Problem, Problems, ReloadOutcome, RuleSet};
use crate::telemetry::{Metrics, RulesState, Stopwatch};

/// How many problems of a rejected reload are logged; more would bury the first ones.
const PROBLEMS_LOGGED: usize = 20;

/// How many warnings about a rule set are logged.
const WARNINGS_LOGGED: usize = 20;

/// The most problems, and the most warnings, that the admin API shows.
const MAX_PROBLEMS_SHOWN: usize = 100;

/// How often, and at which interval, a certificate and key that do not match are read again before they count as wrong:
/// a renewal writes the two files one after the other. Together with the time that files need to settle, this stays
/// under a second.
const HEALING_RETRIES: usize = 8;
const HEALING_PAUSE: Duration = Duration::from_millis(50);

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
    logged: Mutex<Logged>,
}

/// What was logged last, so that it is not logged again.
#[derive(Default)]
struct Logged {
    /// The rules on disk were rejected.
    refused: bool,
    needs_restart: Vec<&'static str>,
    warnings: Vec<Problem>,
    certificate_error: Option<String>,
    /// The expiry of the certificate in use, once it has passed.
    expired: Option<UnixMillis>,
}

impl Reloads {
    /// Logs the warnings about the rules and the certificate that the process starts with.
    pub(super) fn new(rules: Arc<LiveRules>, tls: Arc<LiveTls>, clock: Arc<dyn Clock>, metrics: Arc<Metrics>) -> Self {
        let reloads = Self { rules, tls, clock, metrics, logged: Mutex::default() };
        let mut logged = reloads.logged();
        log_warnings(&reloads.rules.current(), &mut logged);
        reloads.log_expiry(&mut logged);
        reloads.count();
        drop(logged);
        reloads
    }

    fn logged(&self) -> MutexGuard<'_, Logged> {
        // After a panic the last good set is in force, and what was logged is logged.
        self.logged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reloads everything and reports the outcome. Blocks on file reads: call it from a thread that may block.
    pub(super) fn run(&self, trigger: ReloadCause) -> RulesInfo {
        // Held to the end, so that the log lines of two reloads do not mix.
        let mut logged = self.logged();
        let watch = Stopwatch::start();
        let outcome = self.rules.reload();
        self.metrics.reload_took(watch.elapsed());
        match outcome {
            ReloadOutcome::Loaded { previous, version, external_files_changed, needs_restart } => {
                self.loaded(trigger, &previous, &version, external_files_changed, &mut logged);
                log_restart(trigger, needs_restart, &mut logged);
            }
            ReloadOutcome::Refused(problems) => {
                self.metrics.reload(false, "");
                log_problems(trigger, &self.rules.current().version, &problems, &logged);
                logged.refused = true;
            }
        }
        // The certificate is renewed even if the rules on disk are rejected.
        self.refresh_certificate(trigger, &mut logged);
        self.log_expiry(&mut logged);
        self.count();
        self.info()
    }

    fn loaded(
        &self,
        trigger: ReloadCause,
        previous: &str,
        version: &str,
        external_files_changed: bool,
        logged: &mut Logged,
    ) {
        let rules = self.rules.current();
        self.metrics.reload(true, version);
        self.metrics.rules_loaded(rules.loaded_at);
        let (recovered, trigger_name) = (std::mem::take(&mut logged.refused), trigger.as_str());
        if recovered {
            tracing::info!(%version, trigger = trigger_name, "the rules on disk are valid again");
        }
        if external_files_changed {
            tracing::info!(%version, trigger = trigger_name, "reloaded secrets or certificates that the rules name");
        }
        if previous != version {
            let (merchants, keys, shops) = (rules.merchants.len(), rules.api_keys.len(), rules.shops.len());
            tracing::info!(%previous, %version, trigger = trigger_name, merchants, keys, shops, "rules loaded");
        } else if trigger.is_requested() && !external_files_changed {
            tracing::info!(%version, trigger = trigger_name, "rules reloaded: no change");
        } else {
            tracing::debug!(%version, trigger = trigger_name, "rules reloaded: the files did not change");
        }
        log_warnings(&rules, logged);
    }

    fn refresh_certificate(&self, trigger: ReloadCause, logged: &mut Logged) {
        match self.refresh_with_retries(trigger, logged.certificate_error.as_deref()) {
            Ok(renewed) => {
                let recovered = logged.certificate_error.take().is_some();
                if renewed {
                    self.metrics.certificate_reload(true);
                    tracing::info!(not_after = self.tls.not_after().map(formatted), "a new certificate is in use");
                } else if recovered {
                    tracing::info!("the certificate on disk is valid again: it is the one in use");
                } else {
                    tracing::debug!("the certificate did not change");
                }
            }
            Err(error) => {
                let error = error.to_string();
                let new = logged.certificate_error.as_ref() != Some(&error);
                if new {
                    self.metrics.certificate_reload(false);
                }
                if new || trigger.is_requested() {
                    tracing::error!(%error, trigger = trigger.as_str(), "the certificate on disk is rejected; the old one stays in use");
                }
                logged.certificate_error = Some(error);
            }
        }
    }

    /// Applies the certificate on disk. An error that the watcher found just now gets a moment to heal: between the two
    /// writes of a renewal the certificate and the key do not match.
    fn refresh_with_retries(&self, trigger: ReloadCause, known: Option<&str>) -> Result<bool, TlsError> {
        let rules = self.rules.current();
        let mut result = self.tls.refresh(&rules.gateway);
        for _ in 0..HEALING_RETRIES {
            let wrong = result.as_ref().is_err_and(|error| known != Some(error.to_string().as_str()));
            if !wrong || trigger.is_requested() {
                break;
            }
            thread::sleep(HEALING_PAUSE);
            result = self.tls.refresh(&rules.gateway);
        }
        // Recorded only after the retries, so that the log, the metrics and the admin API agree.
        if let Err(error) = &result {
            self.tls.refused(error);
        }
        result
    }

    /// Logs once that the certificate in use has expired. Does not wait for a reload in progress.
    pub(super) fn check_expiry(&self) {
        if let Ok(mut logged) = self.logged.try_lock() {
            self.log_expiry(&mut logged);
        }
    }

    fn log_expiry(&self, logged: &mut Logged) {
        let now = self.clock.now();
        let expired = self.tls.not_after().filter(|not_after| not_after.0 < now.0);
        if let Some(not_after) = expired.filter(|_| logged.expired != expired) {
            tracing::warn!(not_after = formatted(not_after), "the certificate in use has expired");
        }
        logged.expired = expired;
    }

    /// Updates the gauges.
    fn count(&self) {
        let rules = self.rules.current();
        self.metrics.rules_state(RulesState {
            problems: self.rules.last_error().map(|problems| problems.errors().count()),
            warnings: rules.warnings.len(),
            needs_restart: self.rules.needs_restart().len(),
        });
        self.metrics.certificate_refused(self.tls.last_error().is_some());
        self.update_expiry_gauges();
    }

    /// Updates the gauges that change with time alone.
    pub(super) fn update_expiry_gauges(&self) {
        self.metrics.certificate_expires(self.tls.not_after(), self.clock.now());
    }

    /// Returns why the rules or the certificate on disk are not in force: the first error, in one line.
    pub(super) fn first_problem(&self) -> Option<String> {
        let refused = self.rules.last_error();
        let rules = refused.iter().flat_map(|problems| problems.errors()).next();
        let rules = rules.map(|error| format!("the rules on disk are rejected: {error}"));
        rules.or_else(|| self.tls.last_error().map(|error| format!("the certificate on disk is rejected: {error}")))
    }

    /// Returns the version of the rules in force, and the problems of those on disk.
    pub(super) fn info(&self) -> RulesInfo {
        let rules = self.rules.current();
        let (refused, certificate_error) = (self.rules.last_error(), self.tls.last_error());
        // Its warnings are shown once its errors are solved: those of the rules in force would be shown twice.
        let refused = || refused.iter().flat_map(|problems| problems.errors());
        let errors: Vec<String> = refused().map(Problem::to_string).chain(certificate_error.clone()).collect();
        RulesInfo {
            version: rules.version.to_string(),
            loaded_at: rules.loaded_at,
            error: (!errors.is_empty()).then(|| errors.join("\n")),
            needs_restart: self.rules.needs_restart().to_vec(),
            problems: refused().take(MAX_PROBLEMS_SHOWN).map(ProblemInfo::from).collect(),
            problem_count: refused().count(),
            warnings: rules.warnings.iter().take(MAX_PROBLEMS_SHOWN).map(Problem::to_string).collect(),
            warning_count: rules.warnings.len(),
            certificate: CertificateInfo { not_after: self.tls.not_after(), error: certificate_error },
        }
    }
}

fn formatted(moment: UnixMillis) -> String {
    jiff::Timestamp::from_millisecond(moment.0).map_or_else(|_| moment.0.to_string(), |moment| moment.to_string())
}

/// Logs why rules were rejected, and the warnings about them that the rules in force do not have.
fn log_problems(trigger: ReloadCause, version: &str, problems: &Problems, logged: &Logged) {
    let (trigger, count) = (trigger.as_str(), problems.errors().count());
    tracing::error!(%version, trigger, problems = count, "rules rejected; the last good ones stay in force");
    for problem in problems.errors().take(PROBLEMS_LOGGED) {
        tracing::error!(%problem, "a problem of the rejected rules");
    }
    if let Some(more) = count.checked_sub(PROBLEMS_LOGGED).filter(|more| *more > 0) {
        tracing::error!("{more} more problems; run `paybridge check` to see all");
    }
    let new = problems.warnings().filter(|warning| !logged.warnings.contains(warning));
    for problem in new.take(WARNINGS_LOGGED) {
        tracing::warn!(%problem, "a warning about the rejected rules");
    }
}

/// Logs the warnings about the rules in force, except those logged for the set before.
fn log_warnings(rules: &RuleSet, logged: &mut Logged) {
    let new: Vec<&Problem> = rules.warnings.iter().filter(|warning| !logged.warnings.contains(warning)).collect();
    for problem in new.iter().take(WARNINGS_LOGGED) {
        tracing::warn!(%problem, "a warning about the rules in force");
    }
    if let Some(more) = new.len().checked_sub(WARNINGS_LOGGED).filter(|more| *more > 0) {
        tracing::warn!("{more} more warnings; run `paybridge check` to see all");
    }
    logged.warnings.clone_from(&rules.warnings);
}

fn log_restart(trigger: ReloadCause, needs_restart: Vec<&'static str>, logged: &mut Logged) {
    let new = logged.needs_restart != needs_restart;
    if !needs_restart.is_empty() && (new || trigger.is_requested()) {
        let keys = needs_restart.join(", ");
        tracing::warn!(%keys, "changed keys of gateway.toml take effect at the next start");
    } else if needs_restart.is_empty() && new {
        tracing::info!("no changed key of gateway.toml waits for the next start any more");
    }
    logged.needs_restart = needs_restart;
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

        let mut logged = reloads.logged();
        let warned = |count| RuleSet { warnings: warnings[..count].to_vec(), ..rules(&directory) };
        logged.warnings = warned(2).warnings;
        log_warnings(&warned(2), &mut logged);
        assert_eq!(lines.take("a warning about the rules"), 0, "old warnings are not logged again");
        log_warnings(&warned(3), &mut logged);
        assert_eq!(lines.take("unknown_002"), 1, "only the new warning is logged");
        log_warnings(&warned(0), &mut logged);
        log_warnings(&warned(2), &mut logged);
        assert_eq!(lines.take("a warning about the rules"), 2, "warnings that return are new");
        drop(logged);

        let info = reloads.run(ReloadCause::Request);
        assert_eq!((info.warnings.len(), info.warning_count), (0, 0), "the warnings went with their rule set");
    }
}
