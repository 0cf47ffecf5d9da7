//! Controls the running process for operators: checks readiness, reads and reloads the rules, sends a sample callback.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::incomplete_ids::IncompleteIds;
use super::live_tls::LiveTls;
use super::reloads::{ReloadCause, Reloads};
use crate::callback::{Sample, Sampled, sample};
use crate::clock::{ClockJumps, Random};
use crate::deps::Deps;
use crate::domain::UnixMillis;
use crate::http::admin::{AdminSource, Pending, RulesInfo, SampleRequest};
use crate::http::listener::ConnectionSlots;
use crate::operations::Overdue;
use crate::rules::{FileWatch, LiveRules, Merchant, RuleSet};
use crate::shadow::{Minimums, Readiness, read_readiness};
use crate::store::{AttentionCounts, FORMAT, Store, StoreError, locked_out};
use crate::telemetry::{History, HistorySnapshot, POINT_INTERVAL, RefusedRequests};

/// How long the result of a probe is reused.
const PROBE_MAX_AGE: Duration = Duration::from_secs(1);

/// How often the oldest format of the store is read.
const FORMAT_INTERVAL: Duration = Duration::from_secs(2);

/// The interval of the certificate's expiry check, and of retries of the check for incomplete lists of old ids.
const CHECK_INTERVAL: Duration = Duration::from_mins(1);

/// The process as the admin listener, the signals and the file watcher see it.
pub struct ProcessControl {
    deps: Deps,
    jumps: ClockJumps,
    rules: Arc<LiveRules>,
    reloads: Reloads,
    history: History,
    refused: Arc<RefusedRequests>,
    /// The connection slots of the public listener.
    slots: Arc<ConnectionSlots>,
    draining: AtomicBool,
    /// Why this release cannot serve the store any more.
    locked_out: OnceLock<String>,
    probed: SharedResult<()>,
    attention: SharedResult<AttentionCounts>,
    /// Why the store could not commit at the last proof of life; `None`: it could.
    store_problem: ArcSwapOption<String>,
    incomplete_ids: Arc<IncompleteIds>,
    /// Runs reads of the store after a reload, so that the thread of the reload does not wait for them.
    runtime: Handle,
}

/// How many times as long as a count of the operations that need attention took, no other one begins: it reads all that are
/// PENDING, which may be many.
const COUNT_PAUSES: u32 = 20;

/// The last result of work on the store that every client of the admin listener may cause.
struct LastResult<T> {
    /// Until when it is good.
    until: Instant,
    result: Result<T, String>,
}

/// Shared by all that wait for such work.
type SharedResult<T> = Arc<Mutex<Option<LastResult<T>>>>;

impl ProcessControl {
    pub fn new(
        deps: Deps,
        rules: Arc<LiveRules>,
        tls: Arc<LiveTls>,
        slots: Arc<ConnectionSlots>,
        refused: Arc<RefusedRequests>,
    ) -> Self {
        let (clock, metrics) = (Arc::clone(&deps.clock), Arc::clone(&deps.metrics));
        Self {
            reloads: Reloads::new(Arc::clone(&rules), tls, clock, metrics),
            jumps: ClockJumps::new(Arc::clone(&deps.clock)),
            deps,
            rules,
            history: History::default(),
            refused,
            slots,
            draining: AtomicBool::new(false),
            locked_out: OnceLock::new(),
            probed: Arc::default(),
            attention: Arc::default(),
            store_problem: ArcSwapOption::empty(),
            incomplete_ids: Arc::default(),
            runtime: Handle::current(),
        }
    }

    /// Makes `/readyz` answer 503 from now on.
    pub fn start_draining(&self) {
        self.draining.store(true, Ordering::Release);
    }

    /// Completes when a newer release has locked this one out of the store; returns why it cannot serve it.
    pub async fn locked_out(&self) -> String {
        loop {
            tokio::time::sleep(FORMAT_INTERVAL).await;
            match self.deps.store.oldest_format().await {
                Ok(oldest) if oldest > FORMAT => return locked_out(oldest),
                Ok(_) => {}
                // A store that cannot be read is not written either.
                Err(error) => tracing::debug!(%error, "the format of the store cannot be read"),
            }
        }
    }

    /// Makes `/readyz` answer 503 with this reason from now on.
    pub fn set_locked_out(&self, reason: &str) {
        let _ = self.locked_out.set(reason.to_owned());
    }

    /// Reloads the rules, off the runtime's thread, and returns the result.
    pub async fn reload(self: &Arc<Self>, cause: ReloadCause) -> RulesInfo {
        let control = Arc::clone(self);
        match tokio::task::spawn_blocking(move || control.reload_blocking(cause)).await {
            Ok(info) => info,
            Err(panic) => {
                tracing::error!(%panic, "a reload panicked; the rules stay as they were");
                RulesInfo { error: Some("the reload failed: see the log".to_owned()), ..self.reloads.info() }
            }
        }
    }

    /// Reloads the rules and the certificate whenever their files have changed.
    pub async fn reload_on_change(self: Arc<Self>) {
        let mut files = FileWatch::default();
        loop {
            files.changed(&self.rules).await;
            self.reload(ReloadCause::Change).await;
        }
    }

    /// Starts a task that warns of merchants whose old ids were not imported completely.
    pub fn check_ids(&self) {
        let (store, rules, ids) =
            (Arc::clone(&self.deps.store), self.rules.current(), Arc::clone(&self.incomplete_ids));
        self.runtime.spawn(async move { ids.warn(&*store, rules).await });
    }

    fn reload_blocking(&self, cause: ReloadCause) -> RulesInfo {
        let info = self.reloads.run(cause);
        self.check_ids();
        info
    }

    /// Every [`CHECK_INTERVAL`], logs a certificate that has expired, and retries the check for incomplete lists of old ids
    /// if the store could not be read.
    pub async fn check_each_minute(self: Arc<Self>) {
        loop {
            tokio::time::sleep(CHECK_INTERVAL).await;
            self.reloads.check_expiry();
            if self.incomplete_ids.is_unread() {
                self.check_ids();
            }
        }
    }

    /// Records a point of the history each ten seconds.
    pub async fn record_history(self: Arc<Self>) {
        let mut points = interval(POINT_INTERVAL);
        points.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            points.tick().await;
            self.history.record(&self.deps.metrics, self.deps.clock.now());
            self.count_attention().await;
        }
    }

    /// Counts the operations that need attention, for the metrics.
    async fn count_attention(&self) {
        match self.needing_attention().await {
            Ok(AttentionCounts { counts }) => {
                for (reason, count) in counts {
                    self.deps.metrics.operations().needs_attention(reason.as_str(), count);
                }
            }
            // The next point counts them.
            Err(error) => {
                tracing::warn!(%error, "the operations that need attention were not counted: their metric has the last count");
            }
        }
    }

    async fn check_ready(&self) -> Result<(), String> {
        if let Some(reason) = self.locked_out.get() {
            return Err(reason.clone());
        }
        if self.draining.load(Ordering::Acquire) {
            return Err("draining".to_owned());
        }
        self.slots.check()?;
        self.probe().await
    }

    /// Counts the operations that need attention, or returns the last counts, if counting again so soon would cost much.
    async fn needing_attention(&self) -> Result<AttentionCounts, String> {
        let (store, late) = (Arc::clone(&self.deps.store), Overdue::of(&self.rules.current(), &self.jumps).late);
        shared(&self.attention, |took| took * COUNT_PAUSES, async move { store.attention(late).await }).await
    }

    /// Reports whether the store can commit, now or less than [`PROBE_MAX_AGE`] ago.
    pub async fn probe(&self) -> Result<(), String> {
        probe_shared(&self.probed, &self.deps.store).await
    }

    /// Records why the store cannot commit, for the status.
    pub fn set_store_problem(&self, problem: Option<String>) {
        self.store_problem.store(problem.map(Arc::new));
    }

    /// Returns what the process is doing, and the first problem: of the store, of the rules on disk, of the certificate.
    pub fn status(&self) -> String {
        if self.draining.load(Ordering::Acquire) {
            return "draining: finishing requests in flight".to_owned();
        }
        let store = self.store_problem.load().as_ref().map(|problem| format!("the store: {problem}"));
        let problem = store.or_else(|| self.reloads.first_problem()).map(|problem| format!("; {problem}"));
        format!("serving rules {}{}", self.rules.current().version, problem.unwrap_or_default())
    }
}

impl ProcessControl {
    async fn send_sample(&self, request: SampleRequest) -> Result<Sampled, String> {
        let rules = self.rules.current();
        let merchant =
            rules.merchants.get(&request.merchant).ok_or_else(|| rules.no_such_merchant(request.merchant.as_str()))?;
        let wanted = Sample {
            merchant,
            api_key: request.api_key.as_deref(),
            through: request.through,
            url: request.url.as_ref(),
        };
        let sampled = sample(&rules, &self.deps.outbound, &*self.deps.clock, &*self.deps.random, &wanted).await;
        sampled.map_err(|error| error.to_string())
    }
}

/// Probes the store, unless the last probe is younger than [`PROBE_MAX_AGE`]: a probe is a commit.
async fn probe_shared(probed: &SharedResult<()>, store: &Arc<dyn Store>) -> Result<(), String> {
    let store = Arc::clone(store);
    shared(probed, |_| PROBE_MAX_AGE, async move { store.probe().await }).await
}

/// Does work on the store, unless the last result is still good: for `max_age` of the time that it took. At most one is under
/// way, and concurrent callers share its result.
async fn shared<T: Clone + Send + 'static>(
    last: &SharedResult<T>,
    max_age: impl FnOnce(Duration) -> Duration + Send + 'static,
    work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
) -> Result<T, String> {
    let mut last = Arc::clone(last).lock_owned().await;
    if let Some(last) = &*last
        && Instant::now() < last.until
    {
        return last.result.clone();
    }
    // A task of its own: a caller that hangs up must not let the next caller begin again.
    let working = tokio::spawn(async move {
        let began = Instant::now();
        let result = work.await.map_err(|error| error.to_string());
        *last = Some(LastResult { until: Instant::now() + max_age(began.elapsed()), result: result.clone() });
        result
    });
    working.await.unwrap_or_else(|panic| Err(panic.to_string()))
}

impl AdminSource for Arc<ProcessControl> {
    fn ready(&self) -> Pending<'_, Result<(), String>> {
        Box::pin(self.check_ready())
    }

    fn rule_set(&self) -> Arc<RuleSet> {
        self.rules.current()
    }

    fn rules(&self) -> RulesInfo {
        self.reloads.info()
    }

    fn reload(&self) -> Pending<'_, RulesInfo> {
        Box::pin(ProcessControl::reload(self, ReloadCause::Request))
    }

    fn metrics(&self) -> String {
        self.reloads.update_expiry_gauges();
        self.deps.metrics.render()
    }

    fn store(&self) -> &dyn Store {
        &*self.deps.store
    }

    fn attention(&self) -> Pending<'_, Result<AttentionCounts, String>> {
        Box::pin(self.needing_attention())
    }

    fn overdue(&self) -> Overdue {
        Overdue::of(&self.rules.current(), &self.jumps)
    }

    fn count_resolution(&self, outcome: &'static str) {
        self.deps.metrics.operations().resolution(outcome);
    }

    fn history(&self) -> HistorySnapshot {
        self.history.snapshot()
    }

    fn refused(&self) -> &RefusedRequests {
        &self.refused
    }

    fn open_circuits(&self) -> (usize, Vec<String>) {
        self.deps.metrics.open_circuits()
    }

    fn rules_directory(&self) -> String {
        self.rules.directory().display().to_string()
    }

    fn node(&self) -> String {
        rustix::system::uname().nodename().to_string_lossy().into_owned()
    }

    fn random(&self) -> &dyn Random {
        &*self.deps.random
    }

    fn sample(&self, request: SampleRequest) -> Pending<'_, Result<Sampled, String>> {
        Box::pin(self.send_sample(request))
    }

    fn readiness(&self, merchants: Vec<Arc<Merchant>>) -> Pending<'_, Result<Readiness, StoreError>> {
        Box::pin(async move {
            let rules = self.rules.current();
            read_readiness(&*self.deps.store, &rules, &merchants, Minimums::default(), self.deps.clock.now()).await
        })
    }

    fn now(&self) -> UnixMillis {
        self.deps.clock.now()
    }

    fn monotonic(&self) -> std::time::Instant {
        self.deps.clock.monotonic()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::sync::atomic::AtomicUsize;

    use super::*;
    use crate::certs;
    use crate::clock::testing::until;
    use crate::clock::{Clock as _, SystemClock, SystemRandomness};
    use crate::domain::Secret;
    use crate::rules::{LoadOptions, Loader};
    use crate::store::open_store;
    use crate::store_settings::{StoreKeys, StoreSettings, StoreUrl};

    fn store(directory: &Path) -> Arc<dyn Store> {
        let rules = StoreSettings {
            url: StoreUrl::Sqlite(directory.join("paybridge.db")),
            connections: 16,
            keys: StoreKeys { create_at: None, keys: vec![Secret::new(&[1; 32])] },
        };
        open_store(&rules, Arc::new(SystemClock), Arc::new(SystemRandomness::default()), Arc::default()).unwrap().store
    }

    /// Writes rules to `rules`, and certificates beside them.
    fn process_control(directory: &Path) -> Arc<ProcessControl> {
        let path = directory.join("rules");
        fs::create_dir(&path).unwrap();
        fs::write(path.join("gateway.toml"), "[tls]\ngenerate = true\n").unwrap();
        let mut loader = Loader::new(&path, LoadOptions::default());
        let rules = loader.load(SystemClock.now(), None).unwrap();
        let names = certs::names_of(&rules.gateway.server);
        certs::ensure(&rules.gateway.tls, &names, SystemClock.now()).unwrap();
        let tls = Arc::new(LiveTls::new(&rules.gateway, 100).unwrap());
        let live = Arc::new(LiveRules::new(loader, rules, Arc::new(SystemClock)));
        let deps = Deps::over(store(directory), live.current(), Arc::new(SystemClock));
        let slots = ConnectionSlots::new(tls.settings(), Arc::default());
        Arc::new(ProcessControl::new(deps, live, tls, slots, Arc::default()))
    }

    #[tokio::test]
    async fn files_outside_the_rules_are_stale_until_they_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let certs = directory.path().join("certs");
        let control = process_control(directory.path());
        control.reload_blocking(ReloadCause::Request);
        assert!(control.rules.changes().is_none());
        // A hard link: the watched directory reports no change.
        fs::hard_link(certs.join("server.pem"), directory.path().join("other.pem")).unwrap();
        control.reload_blocking(ReloadCause::Request);
        for text in ["half", ""] {
            fs::write(directory.path().join("other.pem"), text).unwrap();
            assert!(control.rules.changes().is_some(), "the certificate changed");
            control.reload_blocking(ReloadCause::Request);
            assert!(control.rules.changes().is_none(), "it was read, although it was rejected");
        }
        let gateway = "[tls]\ngenerate = true\nclient_ca = \"../certs/ca.pem\"\n";
        fs::write(directory.path().join("rules/gateway.toml"), gateway).unwrap();
        assert!(control.rules.changes().is_some(), "a rule file changed");
        control.reload_blocking(ReloadCause::Request);
        assert!(
            control.rules.changes().is_none(),
            "a file that these rules name for the first time was stamped before it was read"
        );
        fs::rename(certs.join("ca.pem"), certs.join("gone.pem")).unwrap();
        assert!(control.rules.changes().is_some(), "the file is gone");
        control.deps.store.close().await.unwrap();
    }

    #[tokio::test]
    async fn a_certificate_change_is_found_without_a_file_event() {
        let directory = tempfile::tempdir().unwrap();
        let certs = directory.path().join("certs");
        let control = process_control(directory.path());
        fs::hard_link(certs.join("server.pem"), directory.path().join("other.pem")).unwrap();
        let _watching = tokio::spawn(Arc::clone(&control).reload_on_change());
        fs::write(directory.path().join("other.pem"), "half").unwrap();
        until("it is found", || control.reloads.info().certificate.error.is_some()).await;
        control.deps.store.close().await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn recent_probes_are_reused() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(directory.path());
        let probed = Arc::default();
        assert_eq!(probe_shared(&probed, &store).await, Ok(()));
        let first = probed.lock().await.as_ref().unwrap().until;
        assert_eq!(probe_shared(&probed, &store).await, Ok(()));
        assert_eq!(probed.lock().await.as_ref().unwrap().until, first, "the store was not probed again");
        store.close().await.unwrap();
        tokio::time::advance(PROBE_MAX_AGE).await;
        assert!(probe_shared(&probed, &store).await.is_err(), "the result is out of date");
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_takes_long_is_not_done_again_soon() {
        let last = Arc::default();
        let counted = Arc::new(AtomicUsize::new(0));
        let count = || {
            let counted = Arc::clone(&counted);
            shared(&last, |took| took * COUNT_PAUSES, async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                Ok(counted.fetch_add(1, Ordering::Relaxed))
            })
        };
        assert_eq!(tokio::join!(count(), count()), (Ok(0), Ok(0)), "both wait for one");
        tokio::time::advance(Duration::from_millis(19_900)).await;
        assert_eq!(count().await, Ok(0), "too soon");
        tokio::time::advance(Duration::from_millis(200)).await;
        assert_eq!(count().await, Ok(1));
    }
}
