//! What operators ask of the running process: is it ready, which rules serve, read them again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::live_tls::LiveTls;
use crate::http::admin::{AdminSource, Pending, RulesInfo};
use crate::rules::{LiveRules, ReloadOutcome, Watched, Watcher};
use crate::store::Store;
use crate::telemetry::Metrics;

/// The process as the admin listener, the signals and the watcher see it.
pub struct Operations {
    rules: Arc<LiveRules>,
    tls: Arc<LiveTls>,
    store: Arc<dyn Store>,
    metrics: Arc<Metrics>,
    draining: AtomicBool,
}

impl Operations {
    pub fn new(rules: Arc<LiveRules>, tls: Arc<LiveTls>, store: Arc<dyn Store>, metrics: Arc<Metrics>) -> Self {
        Self { rules, tls, store, metrics, draining: AtomicBool::new(false) }
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

    /// Watches the rules and the certificate's files; without a watching service, reloads are left to SIGHUP and the
    /// admin listener.
    pub fn watch(self: &Arc<Self>) -> Option<Watcher> {
        let tls = &self.rules.current().gateway.tls;
        let paths = [Some(self.rules.directory().to_owned()), Some(tls.certificate.clone()), Some(tls.key.clone())];
        let watched = paths.into_iter().chain([tls.client_ca.clone()]).flatten().map(|path| {
            let operations = Arc::clone(self);
            Watched { path, on_change: Box::new(move || operations.reload_blocking()) }
        });
        Watcher::start(watched.collect())
            .inspect_err(|error| tracing::warn!(%error, "rule files are not watched: send SIGHUP after a change"))
            .ok()
    }

    fn reload_blocking(&self) {
        match self.rules.reload() {
            ReloadOutcome::Loaded { previous, version, needs_restart } => {
                let rules = self.rules.current();
                self.metrics.reload(true, &version);
                self.metrics.rules_loaded(rules.loaded_at);
                tracing::info!(%previous, %version, "rules loaded");
                if !needs_restart.is_empty() {
                    let sections = needs_restart.join(", ");
                    tracing::warn!(%sections, "these sections of gateway.toml take effect at the next start");
                }
                if let Err(error) = self.tls.refresh(&rules.gateway) {
                    tracing::error!(%error, "the old certificate keeps serving");
                }
            }
            ReloadOutcome::Refused(problems) => {
                self.metrics.reload(false, "");
                for problem in problems.iter() {
                    tracing::error!(%problem, "rules refused; the last good ones keep serving");
                }
            }
        }
    }

    fn rules_info(&self) -> RulesInfo {
        let rules = self.rules.current();
        let error = self.rules.last_error().map(|problems| problems.to_string());
        RulesInfo { version: rules.version.to_string(), loaded_at: rules.loaded_at, error }
    }

    async fn check_ready(&self) -> Result<(), String> {
        if self.draining.load(Ordering::Acquire) {
            return Err("draining".to_owned());
        }
        self.store.probe().await.map_err(|error| error.to_string())
    }
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
