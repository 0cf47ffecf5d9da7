//! Prometheus metrics, names `paybridge_*` (contract section 13).
//!
//! Units are base units (seconds). No label has values that merchants can multiply: labels are routes, statuses and
//! reasons fixed in the code, in tables of fixed size ([`Slots`]), or names from the rules.

use std::fmt::{self, Debug};
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use super::homes::HomeMetrics;
use super::labels::{
    Histograms, LabelCounters, OutcomeName, PROVIDER_SECONDS, PageName, RELOAD_SECONDS, REQUEST_SECONDS, Reason,
    Receiver, ReloadResult, RouteHandles, RouteName, RouteStatus, STAGE_SECONDS, ShopName, ShopOutcome, Stage,
    StageName, Version,
};
use super::operations::OperationMetrics;
use super::store::StoreMetrics;
use crate::domain::{UnixMillis, wide};
use crate::slots::{OTHER, Slots};

/// The media type of [`Metrics::render`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

const SECONDS_A_DAY: f64 = 86_400.0;

/// The state of the rules on disk, compared with those in force.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RulesState {
    /// The number of problems for which the rules on disk are rejected; `None` if they are in force.
    pub problems: Option<usize>,
    /// The number of warnings about the rules in force.
    pub warnings: usize,
    /// The number of keys of the rules in force that wait for a restart.
    pub needs_restart: usize,
}

/// All metrics of the process.
pub struct Metrics {
    registry: Registry,
    requests: Family<RouteStatus, Counter>,
    pub(super) request_duration: Histograms<RouteName>,
    pub(super) routes: Slots<&'static str, RouteHandles, 24>,
    stages: [Histogram; Stage::ALL.len()],
    pub(super) refusals: LabelCounters<Reason>,
    pub(super) translations_refused: LabelCounters<Reason>,
    pages: LabelCounters<PageName>,
    connections_open: Gauge,
    connections: Counter,
    connections_refused: LabelCounters<Reason>,
    connections_evicted: LabelCounters<Reason>,
    store: StoreMetrics,
    operations: OperationMetrics,
    provider_jobs: LabelCounters<OutcomeName>,
    provider_requests: Family<ShopOutcome, Counter>,
    provider_request_duration: Histograms<ShopName>,
    engine_requests: LabelCounters<OutcomeName>,
    engine_request_duration: Histogram,
    homes: HomeMetrics,
    journal_recovering: Gauge,
    journal_late_answers: Counter,
    pub(super) callback_tries: LabelCounters<OutcomeName>,
    callback_duration: Histogram,
    callbacks_given_up: Counter,
    callbacks_pending: Gauge,
    callbacks_failed: Gauge,
    callbacks_oldest: Gauge<f64, AtomicU64>,
    callback_circuits_open: Gauge,
    callback_circuit_open: Family<Receiver, Gauge>,
    /// The receivers of that family, which cannot be read.
    named_circuits: Mutex<Vec<String>>,
    reloads: LabelCounters<ReloadResult>,
    reload_duration: Histogram,
    rules_refused: Gauge,
    rules_problems: Gauge,
    rules_warnings: Gauge,
    rules_needs_restart: Gauge,
    certificate_reloads: LabelCounters<ReloadResult>,
    certificate_refused: Gauge,
    certificate_expiry: Gauge<f64, AtomicU64>,
    certificate_days: Gauge<f64, AtomicU64>,
    rules: Family<Version, Gauge>,
    rules_loaded: Gauge,
    started: Gauge,
    log_lines_dropped: Counter,
}

impl Default for Metrics {
    fn default() -> Self {
        let stage_family: Histograms<StageName> = Family::new_with_constructor(|| Histogram::new(STAGE_SECONDS));
        let mut metrics = Self {
            registry: Registry::with_prefix("paybridge"),
            requests: Family::default(),
            request_duration: Family::new_with_constructor(|| Histogram::new(REQUEST_SECONDS)),
            routes: Slots::new(),
            stages: Stage::ALL.map(|stage| stage_family.get_or_create_owned(&StageName { stage: stage.as_str() })),
            refusals: LabelCounters::new(|reason| Reason { reason }),
            translations_refused: LabelCounters::new(|reason| Reason { reason }),
            pages: LabelCounters::new(|page| PageName { page }),
            connections_open: Gauge::default(),
            connections: Counter::default(),
            connections_refused: LabelCounters::new(|reason| Reason { reason }),
            connections_evicted: LabelCounters::new(|reason| Reason { reason }),
            store: StoreMetrics::default(),
            operations: OperationMetrics::default(),
            provider_jobs: LabelCounters::new(|outcome| OutcomeName { outcome }),
            provider_requests: Family::default(),
            provider_request_duration: Family::new_with_constructor(|| Histogram::new(PROVIDER_SECONDS)),
            engine_requests: LabelCounters::new(|outcome| OutcomeName { outcome }),
            engine_request_duration: Histogram::new(PROVIDER_SECONDS),
            homes: HomeMetrics::default(),
            journal_recovering: Gauge::default(),
            journal_late_answers: Counter::default(),
            callback_tries: LabelCounters::new(|outcome| OutcomeName { outcome }),
            callback_duration: Histogram::new(PROVIDER_SECONDS),
            callbacks_given_up: Counter::default(),
            callbacks_pending: Gauge::default(),
            callbacks_failed: Gauge::default(),
            callbacks_oldest: Gauge::default(),
            callback_circuits_open: Gauge::default(),
            callback_circuit_open: Family::default(),
            named_circuits: Mutex::default(),
            reloads: LabelCounters::new(|result| ReloadResult { result }),
            reload_duration: Histogram::new(RELOAD_SECONDS),
            rules_refused: Gauge::default(),
            rules_problems: Gauge::default(),
            rules_warnings: Gauge::default(),
            rules_needs_restart: Gauge::default(),
            certificate_reloads: LabelCounters::new(|result| ReloadResult { result }),
            certificate_refused: Gauge::default(),
            certificate_expiry: unknown(),
            certificate_days: unknown(),
            rules: Family::default(),
            rules_loaded: Gauge::default(),
            started: Gauge::default(),
            log_lines_dropped: Counter::default(),
        };
        metrics.register(stage_family);
        metrics
    }
}

/// Creates a gauge whose value is not known yet: NaN, for which no comparison in an alert holds.
fn unknown() -> Gauge<f64, AtomicU64> {
    let gauge = Gauge::default();
    gauge.set(f64::NAN);
    gauge
}

impl Metrics {
    /// Registers every metric under its name, in the order of the output.
    fn register(&mut self, stages: Histograms<StageName>) {
        let registry = &mut self.registry;
        registry.register("build", "The running version", Info::new(crate::build_info::labels()));
        let help = "When the process started, since the Unix epoch";
        registry.register_with_unit("process_start_time", help, Unit::Seconds, self.started.clone());
        registry.register("requests", "Requests replied to, by route and status", self.requests.clone());
        let help = "Time from a request's head to its reply, by route";
        registry.register_with_unit("request_duration", help, Unit::Seconds, self.request_duration.clone());
        registry.register_with_unit(
            "stage_duration",
            "Duration of a request's stages, by stage",
            Unit::Seconds,
            stages,
        );
        registry.register("refusals", "Requests that were refused or failed, by reason", self.refusals.family.clone());
        let help = "v1 bodies that have no v2 equivalent, by reason";
        registry.register("translations_refused", help, self.translations_refused.family.clone());
        let help = "Requests by customers' links, by the page shown or the destination";
        registry.register("pages", help, self.pages.family.clone());
        registry.register("connections_open", "Connections open now", self.connections_open.clone());
        registry.register("connections", "Connections opened", self.connections.clone());
        let help = "Connections closed before they served a request, by reason";
        registry.register("connections_refused", help, self.connections_refused.family.clone());
        let help = "Connections closed to make room for a new one, by reason";
        registry.register("connections_evicted", help, self.connections_evicted.family.clone());
        self.store.register(registry);
        self.operations.register(registry);
        registry.register("provider_jobs", "Provider jobs finished, by outcome", self.provider_jobs.family.clone());
        let help = "Requests to HTTP providers, by shop and outcome";
        registry.register("provider_requests", help, self.provider_requests.clone());
        let help = "Duration of requests to HTTP providers, by shop";
        let durations = self.provider_request_duration.clone();
        registry.register_with_unit("provider_request_duration", help, Unit::Seconds, durations);
        registry.register(
            "engine_requests",
            "Requests to a remote engine, by outcome",
            self.engine_requests.family.clone(),
        );
        let help = "Duration of requests to a remote engine";
        let durations = self.engine_request_duration.clone();
        registry.register_with_unit("engine_request_duration", help, Unit::Seconds, durations);
        self.homes.register(registry);
        let help = "Creates interrupted by the last end of the process, whose outcome is still unknown";
        registry.register("journal_recovering", help, self.journal_recovering.clone());
        let help = "Late replies of a remote engine to creates it had refused, whose order ids were used again";
        registry.register("journal_late_answers", help, self.journal_late_answers.clone());
        self.register_callbacks();
        self.register_rules();
        let help = "Log lines dropped because the log was not read fast enough";
        self.registry.register("log_lines_dropped", help, self.log_lines_dropped.clone());
    }

    fn register_callbacks(&mut self) {
        let registry = &mut self.registry;
        let help = "Callback attempts, by outcome";
        registry.register("callback_tries", help, self.callback_tries.family.clone());
        let help = "Time from a callback's connection to its receiver's reply";
        registry.register_with_unit("callback_duration", help, Unit::Seconds, self.callback_duration.clone());
        let help = "Callbacks given up, which are not attempted again unless resent";
        registry.register("callbacks_given_up", help, self.callbacks_given_up.clone());
        let help = "Pending callbacks, of all nodes, up to 10,000";
        registry.register("callbacks_pending", help, self.callbacks_pending.clone());
        let help = "Failed callbacks that have not been resent, up to 10,000";
        registry.register("callbacks_failed", help, self.callbacks_failed.clone());
        let help = "Age of the oldest pending callback; 0 if there is none";
        let oldest = self.callbacks_oldest.clone();
        registry.register_with_unit("callbacks_oldest_pending", help, Unit::Seconds, oldest);
        let help = "Origins of receivers that did not reply several times in a row and are probed at intervals";
        registry.register("callback_circuits_open", help, self.callback_circuits_open.clone());
        let help = "1 for each origin with an open circuit; only the first ones if there are many";
        registry.register("callback_circuit_open", help, self.callback_circuit_open.clone());
    }

    fn register_rules(&mut self) {
        let registry = &mut self.registry;
        registry.register("reloads", "Rule sets loaded, by result", self.reloads.family.clone());
        let help = "Duration of reloads, until the rules were in force or rejected";
        registry.register_with_unit("reload_duration", help, Unit::Seconds, self.reload_duration.clone());
        let help = "1 while the rules on disk are rejected and the last good ones stay in force";
        registry.register("rules_refused", help, self.rules_refused.clone());
        let help = "Number of problems for which the rules on disk are rejected";
        registry.register("rules_problems", help, self.rules_problems.clone());
        let help = "Warnings about the rule set in force";
        registry.register("rules_warnings", help, self.rules_warnings.clone());
        let help = "Keys of the rule set in force that take effect at the next start";
        registry.register("rules_needs_restart", help, self.rules_needs_restart.clone());
        let help = "New certificates found after the start, by result";
        registry.register("certificate_reloads", help, self.certificate_reloads.family.clone());
        let help = "1 while the certificate on disk is rejected and an older one is in use";
        registry.register("certificate_refused", help, self.certificate_refused.clone());
        let help = "When the certificate in use expires, since the Unix epoch";
        let expiry = self.certificate_expiry.clone();
        registry.register_with_unit("certificate_expiry_timestamp", help, Unit::Seconds, expiry);
        let help = "Days until the certificate in use expires; negative once it has expired";
        registry.register("certificate_days_until_expiry", help, self.certificate_days.clone());
        registry.register("rules_info", "The content hash of the rule set in force", self.rules.clone());
        let help = "When the rule set in force was loaded, since the Unix epoch";
        registry.register_with_unit("rules_loaded_timestamp", help, Unit::Seconds, self.rules_loaded.clone());
    }

    /// Records that the process started at `now`.
    pub fn started(&self, now: UnixMillis) {
        self.started.set(now.seconds());
    }

    /// Counts a request that was replied to.
    pub fn request(&self, route: &'static str, status: u16, duration: Duration) {
        let handles = self.routes.find(route, OTHER, |route| RouteHandles {
            duration: self.request_duration.get_or_create_owned(&RouteName { route }),
            statuses: Slots::new(),
        });
        handles.duration.observe(duration.as_secs_f64());
        // Status 0 counts all beyond the table; the gateway uses fewer statuses than the table holds.
        let count = |status| self.requests.get_or_create_owned(&RouteStatus { route, status });
        handles.statuses.find(status, 0, count).inc();
    }

    /// Records the duration of a stage of a request.
    pub fn stage(&self, stage: Stage, duration: Duration) {
        let [admission, body, signature, translate, engine] = &self.stages;
        let histogram = match stage {
            Stage::Admission => admission,
            Stage::Body => body,
            Stage::Signature => signature,
            Stage::Translate => translate,
            Stage::Engine => engine,
        };
        histogram.observe(duration.as_secs_f64());
    }

    /// Counts a request that was refused or failed, by the reason of its access line.
    pub fn refused(&self, reason: &'static str) {
        self.refusals.count(reason);
    }

    /// Counts a request by a customer's link, by the name of the page shown or the destination.
    pub fn page(&self, page: &'static str) {
        self.pages.count(page);
    }

    /// Counts a v1 body that could not be translated, by reason.
    pub fn translation_refused(&self, reason: &'static str) {
        self.translations_refused.count(reason);
    }

    /// Counts an opened connection.
    pub fn connection_opened(&self) {
        self.connections.inc();
        self.connections_open.inc();
    }

    /// Counts a closed connection.
    pub fn connection_closed(&self) {
        self.connections_open.dec();
    }

    /// Counts a connection that ended before it served a request: `limit`, `proxy_header`, `tls`, `timeout`.
    pub fn connection_refused(&self, reason: &'static str) {
        self.connections_refused.count(reason);
    }

    /// Counts a connection that was closed to make room for a new one: `idle` after an authenticated request, else
    /// `unauthenticated`.
    pub fn connection_evicted(&self, authenticated: bool) {
        self.connections_evicted.count(if authenticated { "idle" } else { "unauthenticated" });
    }

    /// Returns the metrics of the store.
    pub const fn store(&self) -> &StoreMetrics {
        &self.store
    }

    /// Returns the metrics of operations that need an operator.
    pub const fn operations(&self) -> &OperationMetrics {
        &self.operations
    }

    /// Counts a finished provider job, by outcome.
    pub fn provider_job(&self, outcome: &'static str) {
        self.provider_jobs.count(outcome);
    }

    /// Records a request to an HTTP provider. Shops come from rule files, which bounds their number.
    pub fn provider_request(&self, shop: &str, outcome: &'static str, duration: Duration) {
        let shop = shop.to_owned();
        self.provider_request_duration
            .get_or_create_owned(&ShopName { shop: shop.clone() })
            .observe(duration.as_secs_f64());
        self.provider_requests.get_or_create_owned(&ShopOutcome { shop, outcome }).inc();
    }

    /// Records a request to a remote engine, by outcome.
    pub fn engine_request(&self, outcome: &'static str, duration: Duration) {
        self.engine_requests.count(outcome);
        self.engine_request_duration.observe(duration.as_secs_f64());
    }

    /// Returns the metrics of orders' homes and of the old v1 service.
    pub const fn homes(&self) -> &HomeMetrics {
        &self.homes
    }

    /// Sets how many creates of the previous process have no outcome yet.
    pub fn journal_recovering(&self, count: usize) {
        self.journal_recovering.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Counts a reply of an engine that came too late to be stored.
    pub fn journal_late_answer(&self) {
        self.journal_late_answers.inc();
    }

    /// Counts an attempt of a callback, by outcome.
    pub fn callback_try(&self, outcome: &'static str) {
        self.callback_tries.count(outcome);
    }

    /// Records how long a sent callback took, until the reply or the failure.
    pub fn callback_sent(&self, duration: Duration) {
        self.callback_duration.observe(duration.as_secs_f64());
    }

    /// Counts callbacks that were given up.
    pub fn callbacks_given_up(&self, count: usize) {
        self.callbacks_given_up.inc_by(wide(count));
    }

    /// Sets the state of the outbox: pending and failed callbacks, and the age of the oldest pending one.
    pub fn outbox(&self, pending: u64, failed: u64, oldest: Option<Duration>) {
        self.callbacks_pending.set(i64::try_from(pending).unwrap_or(i64::MAX));
        self.callbacks_failed.set(i64::try_from(failed).unwrap_or(i64::MAX));
        self.callbacks_oldest.set(oldest.unwrap_or_default().as_secs_f64());
    }

    /// Returns how many circuits are open, and the receivers that are named.
    #[must_use]
    pub fn open_circuits(&self) -> (usize, Vec<String>) {
        let named = self.named_circuits.lock().unwrap_or_else(PoisonError::into_inner).clone();
        (usize::try_from(self.callback_circuits_open.get()).unwrap_or_default(), named)
    }

    /// Sets at how many origins a circuit is open, and names some of them. The caller bounds their number.
    pub fn callback_circuits(&self, open: usize, named: &[&str]) {
        self.callback_circuits_open.set(i64::try_from(open).unwrap_or(i64::MAX));
        *self.named_circuits.lock().unwrap_or_else(PoisonError::into_inner) =
            named.iter().map(|receiver| (*receiver).to_owned()).collect();
        // Only receivers with an open circuit have a series.
        self.callback_circuit_open.clear();
        for receiver in named {
            self.callback_circuit_open.get_or_create_owned(&Receiver { receiver: (*receiver).to_owned() }).set(1);
        }
    }

    /// Counts a loaded or rejected rule set; `version` is that of a loaded one and otherwise ignored.
    pub fn reload(&self, accepted: bool, version: &str) {
        self.reloads.count(if accepted { "accepted" } else { "refused" });
        if accepted {
            // Otherwise the series of old versions would stay for ever.
            self.rules.clear();
            self.rules.get_or_create_owned(&Version { version: version.to_owned() }).set(1);
        }
    }

    /// Records the duration of a reload.
    pub fn reload_took(&self, duration: Duration) {
        self.reload_duration.observe(duration.as_secs_f64());
    }

    /// Sets the state of the rules on disk and in force.
    pub fn rules_state(&self, state: RulesState) {
        let count = |count| i64::try_from(count).unwrap_or(i64::MAX);
        self.rules_refused.set(i64::from(state.problems.is_some()));
        self.rules_problems.set(count(state.problems.unwrap_or(0)));
        self.rules_warnings.set(count(state.warnings));
        self.rules_needs_restart.set(count(state.needs_restart));
    }

    /// Counts a changed certificate on disk; a rejected one leaves the old one in use.
    pub fn certificate_reload(&self, accepted: bool) {
        self.certificate_reloads.count(if accepted { "accepted" } else { "refused" });
    }

    /// Sets whether the certificate on disk is rejected while an older one is in use.
    pub fn certificate_refused(&self, refused: bool) {
        self.certificate_refused.set(i64::from(refused));
    }

    /// Sets when the certificate in use expires, if that is known; `now` determines the days left.
    pub fn certificate_expires(&self, not_after: Option<UnixMillis>, now: UnixMillis) {
        let Some(not_after) = not_after else {
            self.certificate_expiry.set(f64::NAN);
            self.certificate_days.set(f64::NAN);
            return;
        };
        let seconds = |millis: i64| Duration::from_millis(millis.unsigned_abs()).as_secs_f64();
        let signed = |millis: i64| if millis < 0 { -seconds(millis) } else { seconds(millis) };
        self.certificate_expiry.set(signed(not_after.0));
        self.certificate_days.set(signed(not_after.0.saturating_sub(now.0)) / SECONDS_A_DAY);
    }

    /// Sets when the rule set in force was loaded.
    pub fn rules_loaded(&self, at: UnixMillis) {
        self.rules_loaded.set(at.seconds());
    }

    /// Returns the counter of dropped log lines.
    pub(super) fn log_lines_dropped(&self) -> Counter {
        self.log_lines_dropped.clone()
    }

    /// Renders all metrics, in the media type [`CONTENT_TYPE`].
    #[must_use]
    pub fn render(&self) -> String {
        let mut page = String::with_capacity(16 * 1024);
        let rendered = text::encode(&mut page, &self.registry);
        debug_assert!(rendered.is_ok(), "writing to a String does not fail");
        page
    }
}

impl Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Direction;

    /// Returns the lines of the page that start with `prefix`.
    fn lines(metrics: &Metrics, prefix: &str) -> Vec<String> {
        metrics.render().lines().filter(|line| line.starts_with(prefix)).map(str::to_owned).collect()
    }

    #[test]
    fn requests_are_counted_by_route_and_status() {
        let metrics = Metrics::default();
        metrics.request("payin", 200, Duration::from_micros(300));
        metrics.request("payin", 200, Duration::from_millis(3));
        metrics.request("payin", 409, Duration::from_millis(3));
        let mut counted = lines(&metrics, "paybridge_requests_total");
        counted.sort();
        assert_eq!(
            counted,
            [
                r#"paybridge_requests_total{route="payin",status="200"} 2"#,
                r#"paybridge_requests_total{route="payin",status="409"} 1"#,
            ]
        );
        let buckets = lines(&metrics, "paybridge_request_duration_seconds_bucket");
        assert!(
            buckets.contains(&r#"paybridge_request_duration_seconds_bucket{le="0.0005",route="payin"} 1"#.to_owned())
        );
        assert_eq!(
            lines(&metrics, "paybridge_request_duration_seconds_count"),
            [r#"paybridge_request_duration_seconds_count{route="payin"} 3"#]
        );
    }

    #[test]
    fn every_metric_has_its_name_and_unit() {
        let metrics = Metrics::default();
        metrics.started(UnixMillis(1_800_000_000_123));
        metrics.stage(Stage::Engine, Duration::from_micros(700));
        metrics.refused("signature");
        metrics.translation_refused("amount");
        metrics.page("preparing");
        metrics.connection_opened();
        metrics.connection_opened();
        metrics.connection_closed();
        metrics.connection_refused("tls");
        metrics.store().commit(3, Duration::from_millis(1));
        metrics.store().commit_failed();
        metrics.store().log_bytes(8_388_608);
        metrics.operations().created_failed(Direction::Payout, "balance");
        metrics.provider_job("settled");
        metrics.provider_request("card-eur", "timeout", Duration::from_secs(10));
        metrics.callback_try("delivered");
        metrics.callback_sent(Duration::from_millis(30));
        metrics.callbacks_given_up(2);
        metrics.outbox(7, 3, Some(Duration::from_millis(1500)));
        metrics.callback_circuits(2, &["https://old.example:443"]);
        metrics.callback_circuits(1, &["https://dead.example:443"]);
        metrics.reload(true, "00aa");
        metrics.rules_loaded(UnixMillis(1_800_000_001_000));
        metrics.reload_took(Duration::from_millis(3));
        metrics.rules_state(RulesState { problems: Some(2), warnings: 3, needs_restart: 4 });
        metrics.certificate_reload(false);
        metrics.certificate_refused(true);
        assert!(metrics.render().contains("paybridge_certificate_days_until_expiry NaN\n"));
        metrics.certificate_expires(Some(UnixMillis(1_800_000_000_000)), UnixMillis(1_800_129_600_000));
        let page = metrics.render();
        assert!(page.contains(r#"paybridge_build_info{version="0.1.0",commit=""#), "{page}");
        for line in [
            "paybridge_process_start_time_seconds 1800000000",
            r#"paybridge_stage_duration_seconds_count{stage="engine"} 1"#,
            r#"paybridge_stage_duration_seconds_count{stage="body"} 0"#,
            r#"paybridge_refusals_total{reason="signature"} 1"#,
            r#"paybridge_translations_refused_total{reason="amount"} 1"#,
            r#"paybridge_pages_total{page="preparing"} 1"#,
            "paybridge_connections_open 1",
            "paybridge_connections_total 2",
            r#"paybridge_connections_refused_total{reason="tls"} 1"#,
            "paybridge_commits_total 1",
            r#"paybridge_commit_batch_size_bucket{le="2.0"} 0"#,
            r#"paybridge_commit_batch_size_bucket{le="4.0"} 1"#,
            "paybridge_commit_duration_seconds_count 1",
            "paybridge_commit_failures_total 1",
            "paybridge_store_log_bytes 8388608",
            r#"paybridge_operations_created_failed_total{direction="payout",cause="balance"} 1"#,
            r#"paybridge_provider_jobs_total{outcome="settled"} 1"#,
            r#"paybridge_provider_requests_total{shop="card-eur",outcome="timeout"} 1"#,
            r#"paybridge_provider_request_duration_seconds_bucket{le="15.0",shop="card-eur"} 1"#,
            r#"paybridge_provider_request_duration_seconds_bucket{le="5.0",shop="card-eur"} 0"#,
            r#"paybridge_callback_tries_total{outcome="delivered"} 1"#,
            "paybridge_callback_duration_seconds_count 1",
            "paybridge_callbacks_given_up_total 2",
            "paybridge_callbacks_pending 7",
            "paybridge_callbacks_failed 3",
            "paybridge_callbacks_oldest_pending_seconds 1.5",
            "paybridge_callback_circuits_open 1",
            r#"paybridge_callback_circuit_open{receiver="https://dead.example:443"} 1"#,
            r#"paybridge_reloads_total{result="accepted"} 1"#,
            r#"paybridge_rules_info{version="00aa"} 1"#,
            "paybridge_rules_loaded_timestamp_seconds 1800000001",
            "paybridge_reload_duration_seconds_count 1",
            "paybridge_rules_refused 1",
            "paybridge_rules_problems 2",
            "paybridge_rules_warnings 3",
            "paybridge_rules_needs_restart 4",
            r#"paybridge_certificate_reloads_total{result="refused"} 1"#,
            "paybridge_certificate_refused 1",
            "paybridge_certificate_expiry_timestamp_seconds 1800000000.0",
            "paybridge_certificate_days_until_expiry -1.5",
            "paybridge_log_lines_dropped_total 0",
            "# EOF",
        ] {
            assert!(page.lines().any(|found| found == line), "{line}\n{page}");
        }
    }

    #[test]
    fn a_reload_replaces_the_version_and_a_refused_one_does_not() {
        let metrics = Metrics::default();
        metrics.reload(true, "old");
        metrics.reload(true, "new");
        metrics.reload(false, "bad");
        assert_eq!(lines(&metrics, "paybridge_rules_info"), [r#"paybridge_rules_info{version="new"} 1"#]);
        assert!(
            lines(&metrics, "paybridge_reloads").contains(&r#"paybridge_reloads_total{result="refused"} 1"#.to_owned())
        );
    }

    #[test]
    fn the_number_of_series_is_bounded_for_any_status() {
        let metrics = Metrics::default();
        for status in 200..400 {
            metrics.request("payin", status, Duration::ZERO);
        }
        let counted = lines(&metrics, "paybridge_requests_total");
        assert_eq!(counted.len(), 25);
        assert!(counted.contains(&r#"paybridge_requests_total{route="payin",status="0"} 176"#.to_owned()));
    }
}
