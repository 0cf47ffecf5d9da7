//! Processes one job of the durable queue: requests a result from its provider, and schedules the next attempt.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::http::{self, ProviderAnswer, ProviderBody, Unknown};
use super::withdrawal_report;
use crate::backoff;
use crate::clock::ClockJumps;
use crate::deps::Deps;
use crate::domain::{Direction, Operation, ProviderKind, RedirectUrl, ShopCode, State};
use crate::engine::{Engine, Report, Reported};
use crate::rules::{HttpProvider, ProviderRules, RuleSet};
use crate::store::{ProviderJob, StoreError};
use crate::telemetry::{LogThrottle, Stopwatch};

/// How long a job waits if the rules in force have no matching provider for its shop.
pub(super) const UNTIL_RULES_CHANGE: Duration = Duration::from_mins(1);

/// The provider that handles a job.
#[derive(Debug)]
pub(super) enum JobHandler {
    Sandbox,
    Http(HttpProvider),
    /// None: the shop was removed from the rules, or has the other kind of provider now. A job is never handled by
    /// another kind than it was created for, because it is unknown what the first provider did with it.
    Missing,
}

impl JobHandler {
    /// Returns the handler of a job by these rules.
    pub(super) fn of(rules: &RuleSet, job: &ProviderJob) -> Self {
        let provider = rules.shops.get(&job.operation.shop).map(|shop| &shop.provider);
        match (job.operation.provider, provider) {
            (ProviderKind::Sandbox, Some(ProviderRules::Sandbox { .. })) => Self::Sandbox,
            (ProviderKind::Http, Some(ProviderRules::Http(provider))) => Self::Http(provider.clone()),
            _ => Self::Missing,
        }
    }
}

/// The dependencies of provider jobs.
pub(super) struct JobContext {
    pub deps: Deps,
    /// Records results.
    pub engine: Arc<Engine>,
    pub jumps: ClockJumps,
    /// Throttles log lines, for each shop and kind of failure.
    pub throttle: LogThrottle<(ShopCode, &'static str)>,
    /// Shops whose provider was logged as giving no result.
    pub silent: Mutex<HashSet<ShopCode>>,
}

impl JobContext {
    fn silent(&self) -> MutexGuard<'_, HashSet<ShopCode>> {
        self.silent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does a job and counts the outcome. If the store fails, the job is done again after its lease.
    pub(super) async fn run(&self, job: &ProviderJob, handler: &JobHandler) -> Result<(), StoreError> {
        let outcome = match handler {
            JobHandler::Sandbox => self.sandbox(job).await?,
            JobHandler::Http(provider) => self.http(job, provider).await?,
            JobHandler::Missing => self.postpone(job).await?,
        };
        self.deps.metrics.provider_job(outcome);
        Ok(())
    }

    async fn sandbox(&self, job: &ProviderJob) -> Result<&'static str, StoreError> {
        // Deposits of the sandbox wait for their customers.
        let report = match job.operation.direction() {
            Direction::Payin => Report::Pending,
            Direction::Payout => withdrawal_report(job.operation.amount),
        };
        self.record_report(job, report).await
    }

    async fn http(&self, job: &ProviderJob, provider: &HttpProvider) -> Result<&'static str, StoreError> {
        let (operation, shop) = (&job.operation, &job.operation.shop);
        let fields = self.deps.store.fields(operation.id).await?;
        let fields = fields.ok_or_else(|| StoreError::Corrupt(format!("operation {} has no fields", operation.id)))?;
        let rules = self.deps.rules.load_full();
        let public_url = &rules.gateway.server.public_url;
        let return_url = self.return_url(&rules, operation);
        let body = ProviderBody { operation, fields: &fields, public_url, return_url: return_url.as_ref() };
        // Since the claim an operator may have set the result, or a report may have come: then nothing is requested.
        let current = self.deps.store.by_id(operation.id).await?;
        if current.is_none_or(|stored| stored.operation.state != State::Pending) {
            return Ok("repeated");
        }
        let watch = Stopwatch::start();
        let answer = http::send(&self.deps.outbound, provider, body, self.deps.clock.now()).await;
        self.deps.metrics.provider_request(shop.as_str(), answer.outcome(), watch.elapsed());
        match answer {
            ProviderAnswer::Reported(report) => {
                if self.silent().remove(shop) {
                    tracing::info!(shop = shop.as_str(), "the provider answers again");
                }
                self.record_report(job, report).await
            }
            ProviderAnswer::Unknown(unknown) => self.retry(job, provider, &unknown).await,
        }
    }

    /// Returns the link by which the provider's page sends the customer back, if the shop offers a return.
    fn return_url(&self, rules: &RuleSet, operation: &Operation) -> Option<RedirectUrl> {
        let offers_return = rules.shops.get(&operation.shop).is_some_and(|shop| shop.payin.browser_return);
        let wanted = offers_return && operation.direction() == Direction::Payin;
        wanted.then(|| self.engine.return_link(&rules.gateway, operation.id, operation.created_at))
    }

    /// Records a provider's answer; returns the outcome's label in the metrics.
    async fn record_report(&self, job: &ProviderJob, report: Report) -> Result<&'static str, StoreError> {
        let id = job.operation.id;
        let label = match &report {
            Report::Pending => "pending",
            Report::Prepared(_) => "prepared",
            Report::Finished(..) => "posted",
        };
        Ok(match self.engine.report(job.operation.provider, &job.operation.shop, id, report).await? {
            Reported::Taken => label,
            // The job ended in the commit of the result.
            Reported::Repeated => "repeated",
            Reported::Contradicts(_) => "contradicted",
            Reported::Unknown => "unknown",
        })
    }

    async fn retry(
        &self,
        job: &ProviderJob,
        provider: &HttpProvider,
        unknown: &Unknown,
    ) -> Result<&'static str, StoreError> {
        let (id, shop, now) = (job.operation.id, &job.operation.shop, self.deps.clock.now());
        let (shop_code, cause) = (shop.as_str(), &unknown.cause);
        tracing::debug!(transaction_id = %id, shop = shop_code, attempts = attempts(job), %cause,
            "a provider gave no result");
        let HttpProvider { first_retry, max_retry, give_up_after, .. } = provider;
        let queued_at = job.queued_at;
        if self.jumps.began_until(*give_up_after, backoff::grace(*max_retry)).is_some_and(|until| queued_at <= until) {
            return self.give_up(job, cause).await;
        }
        if self.throttle.due((shop.clone(), unknown.kind)).is_some() {
            self.silent().insert(shop.clone());
            tracing::warn!(shop = shop_code, %cause,
                "a provider gives no result; its operations stay PENDING and will be retried");
        }
        let wait =
            backoff::wait(*first_retry, *max_retry, job.attempts, unknown.retry_after, self.deps.random.number());
        let due = backoff::due(now, wait, queued_at.plus(*give_up_after));
        self.deps.store.postpone_provider_job(job, due, Some((now, cause))).await?;
        Ok("retried")
    }

    /// Ends the job: the operation stays PENDING until its provider reports, or an operator acts. A deposit without a
    /// preparation is marked stopped, so that its customer sees the page for a delayed payment instead of one that prepares
    /// for ever.
    async fn give_up(&self, job: &ProviderJob, cause: &str) -> Result<&'static str, StoreError> {
        if !self.deps.store.give_up_provider_job(job, cause, self.deps.clock.now()).await? {
            // Meanwhile the provider has reported, or an operator has had it called anew.
            return Ok("repeated");
        }
        let Operation { id, shop, .. } = &job.operation;
        tracing::warn!(transaction_id = %id, shop = shop.as_str(), attempts = attempts(job), %cause,
            "gave up: the provider returned no result; the operation stays PENDING until it reports one, or an operator acts");
        Ok("given_up")
    }

    async fn postpone(&self, job: &ProviderJob) -> Result<&'static str, StoreError> {
        let now = self.deps.clock.now();
        self.log_missing_provider(&job.operation.shop, job.operation.provider);
        let until = now.plus(UNTIL_RULES_CHANGE);
        self.deps.store.postpone_provider_job(job, until, None).await?;
        Ok("postponed")
    }

    fn log_missing_provider(&self, shop: &ShopCode, wanted: ProviderKind) {
        if self.throttle.due((shop.clone(), "no provider")).is_some() {
            let wanted = match wanted {
                ProviderKind::Sandbox => "sandbox",
                ProviderKind::Http => "http",
            };
            tracing::warn!(
                shop = shop.as_str(),
                wanted,
                "operations wait: the rules no longer give the shop the kind of provider that they were created for"
            );
        }
    }
}

/// Returns how many attempts a job has had, this one included.
const fn attempts(job: &ProviderJob) -> u32 {
    job.attempts.saturating_add(1)
}
