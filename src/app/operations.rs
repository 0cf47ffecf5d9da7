//! What operators ask of the running process: is it ready, which rules serve, read them again.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::live_tls::LiveTls;
use super::stamps::Stamps;
use crate::domain::UnixMillis;
use crate::http::admin::{AdminSource, Pending, RulesInfo};
use crate::rules::{LiveRules, ReloadOutcome, Watched, Watcher};
use crate::store::Store;
use crate::telemetry::Metrics;

/// How long a probe's result stands.
const FRESH: Duration = Duration::from_secs(1);

/// The process as the admin listener, the signals and the watcher see it.
pub struct Operations {
    rules: Arc<LiveRules>,
    tls: Arc<LiveTls>,
    store: Arc<dyn Store>,
    metrics: Arc<Metrics>,
    draining: AtomicBool,
    watcher: OnceLock<Watcher>,
    /// Of what is read beside the rule files, since before it was last read.
    tls_stamps: Stamps,
    probed: Arc<Mutex<Option<Probed>>>,
}

/// What the last probe of the store found.
struct Probed {
    at: Instant,
    result: Result<(), String>,
}

/// Of a refused reload; more would bury the first ones.
const PROBLEMS_LOGGED: usize = 20;

fn shown(moment: UnixMillis) -> String {
    jiff::Timestamp::from_millisecond(moment.0).map_or_else(|_| moment.0.to_string(), |moment| moment.to_string())
}

impl Operations {
    pub fn new(rules: Arc<LiveRules>, tls: Arc<LiveTls>, store: Arc<dyn Store>, metrics: Arc<Metrics>) -> Self {
        Self {
            rules,
            tls,
            store,
            metrics,
            draining: AtomicBool::new(false),
            watcher: OnceLock::new(),
            tls_stamps: Stamps::default(),
            probed: Arc::default(),
        }
    }

    /// From now on `/readyz` answers 503.
    pub fn start_draining(&self) {
        self.draining.store(true, Ordering::Release);
    }

    /// Reads the rules again now, off the runtime's thread.
    pub async fn reload(self: &Arc<Self>) {
        let operations = Arc::clone(self);
        if let Err(panic) = tokio::task::spawn_blocking(move || operations.reload_blocking()).await {
            tracing::error!(%panic, "a reload failed; the rules stay as they were");
        }
    }

    /// Watches the rules and the certificate's files, which follow the rules. Without threads for it, reloads are left to
    /// SIGHUP and the admin listener.
    pub fn watch(self: &Arc<Self>) {
        self.tls_stamps.take(self.tls_files());
        // It was read before the stamps were taken.
        self.refresh_certificate();
        // The watcher is this one's own: it must not keep it.
        let (reloading, asked, looking) = (Arc::downgrade(self), Arc::downgrade(self), Arc::downgrade(self));
        let wanted = Watched {
            paths: Box::new(move || asked.upgrade().map_or_else(Vec::new, |operations| operations.paths())),
            stale: Box::new(move || looking.upgrade().is_some_and(|operations| operations.stale())),
            on_change: Box::new(move || {
                if let Some(operations) = reloading.upgrade() {
                    operations.reload_blocking();
                }
            }),
        };
        match Watcher::start(wanted) {
            Ok(watcher) => drop(self.watcher.set(watcher)),
            Err(error) => tracing::warn!(%error, "rule files are not watched: send SIGHUP after a change"),
        }
    }

    /// What a reload depends on.
    fn paths(&self) -> Vec<PathBuf> {
        let directory = self.rules.directory().to_owned();
        let elsewhere = self.rules.files_elsewhere();
        std::iter::once(directory).chain(self.tls_files()).chain(elsewhere.iter().cloned()).collect()
    }

    /// What a reload reads that the rules are not made from.
    fn tls_files(&self) -> Vec<PathBuf> {
        let rules = self.rules.current();
        let tls = &rules.gateway.tls;
        let pair = [&tls.certificate, &tls.key].map(Clone::clone);
        pair.into_iter().chain(tls.client_ca.clone()).collect()
    }

    /// Whether anything that a reload reads is other than when it was last read.
    fn stale(&self) -> bool {
        self.rules.stale() || self.tls_stamps.differ(&self.tls_files())
    }

    fn reload_blocking(&self) {
        // Before anything is read: what changes from here on is found by its stamp. So is a file that the new rules are
        // the first to name, which has none.
        self.tls_stamps.take(self.tls_files());
        match self.rules.reload() {
            ReloadOutcome::Loaded { previous, version, elsewhere_changed, needs_restart } => {
                if elsewhere_changed {
                    tracing::info!("secrets or certificates that the rules name were read anew");
                }
                self.loaded(&previous, &version, &needs_restart);
            }
            ReloadOutcome::Refused(problems) => {
                self.metrics.reload(false, "");
                for problem in problems.iter().take(PROBLEMS_LOGGED) {
                    tracing::error!(%problem, "rules refused; the last good ones keep serving");
                }
                let more = problems.count().saturating_sub(PROBLEMS_LOGGED);
                if more > 0 {
                    tracing::error!("rules refused: and {more} more problems, which `paybridge check` shows");
                }
            }
        }
        // A certificate is renewed whether or not the rules on disk are good.
        self.refresh_certificate();
        if let Some(watcher) = self.watcher.get() {
            watcher.refresh();
        }
    }

    fn loaded(&self, previous: &str, version: &str, needs_restart: &[&str]) {
        let rules = self.rules.current();
        self.metrics.reload(true, version);
        self.metrics.rules_loaded(rules.loaded_at);
        if previous == version {
            tracing::debug!(%version, "rules loaded: they are as they were");
        } else {
            let (merchants, keys, shops) = (rules.merchants.len(), rules.api_keys.len(), rules.shops.len());
            tracing::info!(%previous, %version, merchants, keys, shops, "rules loaded");
        }
        if !needs_restart.is_empty() {
            let sections = needs_restart.join(", ");
            tracing::warn!(%sections, "these sections of gateway.toml take effect at the next start");
        }
    }

    fn refresh_certificate(&self) {
        let rules = self.rules.current();
        match self.tls.refresh(&rules.gateway) {
            Ok(true) => {
                self.metrics.certificate_reload(true);
                let not_after = self.tls.not_after().map(shown);
                tracing::info!(not_after, "a new certificate serves");
                self.warn_of_expiry(rules.loaded_at);
            }
            Ok(false) => tracing::debug!("the certificate is as it was"),
            Err(error) => {
                self.metrics.certificate_reload(false);
                tracing::error!(%error, "the old certificate keeps serving");
            }
        }
    }

    /// Says so when the certificate in use has expired.
    pub fn warn_of_expiry(&self, now: UnixMillis) {
        if let Some(not_after) = self.tls.not_after().filter(|not_after| not_after.0 < now.0) {
            tracing::warn!(not_after = shown(not_after), "the certificate that serves has expired");
        }
    }

    fn rules_info(&self) -> RulesInfo {
        let rules = self.rules.current();
        let problems = self.rules.last_error().map(|problems| problems.to_string());
        let errors: Vec<String> = problems.into_iter().chain(self.tls.last_error()).collect();
        let error = (!errors.is_empty()).then(|| errors.join("\n"));
        RulesInfo { version: rules.version.to_string(), loaded_at: rules.loaded_at, error }
    }

    async fn check_ready(&self) -> Result<(), String> {
        if self.draining.load(Ordering::Acquire) {
            return Err("draining".to_owned());
        }
        probe_shared(&self.probed, &self.store).await
    }
}

/// Probes the store, unless that was done less than [`FRESH`] ago. A probe is a commit, and anyone who reaches the
/// admin listener may ask: one at a time is in flight, and those who come meanwhile share its result.
async fn probe_shared(probed: &Arc<Mutex<Option<Probed>>>, store: &Arc<dyn Store>) -> Result<(), String> {
    let mut last = Arc::clone(probed).lock_owned().await;
    if let Some(probed) = &*last
        && probed.at.elapsed() < FRESH
    {
        return probed.result.clone();
    }
    let store = Arc::clone(store);
    // A task of its own: whoever hangs up does not let the next one start another.
    let probe = tokio::spawn(async move {
        let result = store.probe().await.map_err(|error| error.to_string());
        *last = Some(Probed { at: Instant::now(), result: result.clone() });
        result
    });
    probe.await.unwrap_or_else(|panic| Err(panic.to_string()))
}

impl AdminSource for Arc<Operations> {
    fn ready(&self) -> Pending<'_, Result<(), String>> {
        Box::pin(self.check_ready())
    }

    fn rules(&self) -> RulesInfo {
        self.rules_info()
    }

    fn reload(&self) -> Pending<'_, RulesInfo> {
        Box::pin(async move {
            Operations::reload(self).await;
            self.rules_info()
        })
    }

    fn metrics(&self) -> String {
        self.metrics.render()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::certs;
    use crate::clock::{Clock, SystemClock, SystemRandomness};
    use crate::rules::{LoadOptions, Secret, StoreKeys, StoreRules, StoreUrl, load};
    use crate::store::open_store;

    fn store(directory: &Path) -> Arc<dyn Store> {
        let rules = StoreRules {
            url: StoreUrl::Sqlite(directory.join("paybridge.db")),
            keys: StoreKeys { create_at: None, keys: vec![Secret::new(&[1; 32])] },
        };
        open_store(&rules, Arc::new(SystemRandomness::default()), Arc::default()).unwrap().store
    }

    /// Rules in `rules`, and certificates beside them.
    fn operations(directory: &Path) -> Arc<Operations> {
        let path = directory.join("rules");
        fs::create_dir(&path).unwrap();
        fs::write(path.join("gateway.toml"), "[tls]\ngenerate = true\n").unwrap();
        let rules = load(&path, SystemClock.now(), None, LoadOptions::default()).unwrap();
        let names = certs::names_of(&rules.gateway.server);
        certs::ensure(&rules.gateway.tls, &names, SystemClock.now()).unwrap();
        let tls = Arc::new(LiveTls::new(&rules.gateway, 100).unwrap());
        let live = Arc::new(LiveRules::new(&path, rules, Arc::new(SystemClock)));
        Arc::new(Operations::new(live, tls, store(directory), Arc::default()))
    }

    #[tokio::test]
    async fn what_a_reload_reads_elsewhere_is_stale_until_it_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let certs = directory.path().join("certs");
        let operations = operations(directory.path());
        operations.reload_blocking();
        assert!(!operations.stale());
        // By another name, of which the watched directory hears nothing.
        fs::hard_link(certs.join("server.pem"), directory.path().join("other.pem")).unwrap();
        operations.reload_blocking();
        for text in ["half", ""] {
            fs::write(directory.path().join("other.pem"), text).unwrap();
            assert!(operations.stale(), "the certificate changed");
            operations.reload_blocking();
            assert!(!operations.stale(), "it was read, if in vain");
        }
        let gateway = "[tls]\ngenerate = true\nclient_ca = \"../certs/ca.pem\"\n";
        fs::write(directory.path().join("rules/gateway.toml"), gateway).unwrap();
        assert!(operations.stale(), "a rule file changed");
        operations.reload_blocking();
        assert!(operations.stale(), "the file named first by these rules may have changed before it had a stamp");
        operations.reload_blocking();
        assert!(!operations.stale());
        operations.store.close().await.unwrap();
    }

    #[tokio::test]
    async fn a_certificate_is_found_where_nobody_tells_of_it() {
        let directory = tempfile::tempdir().unwrap();
        let certs = directory.path().join("certs");
        let operations = operations(directory.path());
        fs::hard_link(certs.join("server.pem"), directory.path().join("other.pem")).unwrap();
        operations.watch();
        fs::write(directory.path().join("other.pem"), "half").unwrap();
        let until = std::time::Instant::now() + Duration::from_secs(30);
        while operations.tls.last_error().is_none() {
            assert!(std::time::Instant::now() < until, "never found");
            std::thread::sleep(Duration::from_millis(10));
        }
        operations.store.close().await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn probes_are_shared_for_a_while() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(directory.path());
        let probed = Arc::default();
        assert_eq!(probe_shared(&probed, &store).await, Ok(()));
        let first = probed.lock().await.as_ref().unwrap().at;
        assert_eq!(probe_shared(&probed, &store).await, Ok(()));
        assert_eq!(probed.lock().await.as_ref().unwrap().at, first, "nothing was asked again");
        store.close().await.unwrap();
        tokio::time::advance(FRESH).await;
        assert!(probe_shared(&probed, &store).await.is_err(), "the result is out of date");
    }
}
