//! Creating an operation: one commit for all that belongs to it, after an existing order was ruled out.

use super::decide::{self, AtCreation};
use super::repeat::{self, Compared};
use super::{CreateError, Engine, FailureCause};
use crate::auth::{Caller, Interface, signatures};
use crate::domain::{
    CreateReply, CreateRequest, Deposit, Direction, Fields, Fingerprint, Kind, MemberFingerprints, Operation, Outcome,
    ProviderKind, RedirectUrl, RequestKind, State, TransactionId, UnixMillis, Withdrawal,
};
use crate::error::ApiError;
use crate::rules::{GatewayRules, ProviderRules};
use crate::store::{CreateOutcome, InsertOutcome, NewOperation, RequestFingerprint, V1Request};

/// How often an id is drawn when the one before is taken. With twelve random bits a millisecond and merchant bucket a second
/// draw is rare and a third one absurd.
const ID_DRAWS: usize = 8;

/// Everything about a new operation but its id, which may have to be drawn more than once.
struct Plan<'r> {
    caller: &'r Caller,
    request: &'r CreateRequest<'r>,
    accepted: decide::AcceptedRequest,
    fingerprint: Fingerprint,
    v1: Option<V1Request>,
    now: UnixMillis,
    /// Why it is created FAILED, if it is.
    failure: Option<FailureCause>,
    provider_job: Option<UnixMillis>,
}

impl Engine {
    /// Creates an operation, or returns the reply of the one that the same request created before. `v1` comes with requests
    /// that were translated from v1.
    ///
    /// The order of guards is: an existing order (same data: its reply; other: refused), then today's rules, then the
    /// commit. Looking for the order first would cost every new operation a read, so the rules are tried first, and their
    /// refusal is held back until the order is known to be new. Where they accept, the commit itself finds the order.
    ///
    /// # Errors
    /// Why nothing was created.
    pub async fn create(
        &self,
        caller: &Caller,
        request: &CreateRequest<'_>,
        v1: Option<V1Request>,
    ) -> Result<CreateReply, CreateError> {
        let interface = if v1.is_some() { Interface::V1 } else { Interface::V2 };
        match decide::check_rules(caller.merchant(), caller.api_key(), request, interface) {
            Ok(accepted) => self.commit(caller, request, accepted, v1).await,
            Err(refusal) => {
                let (merchant, direction) = (&caller.merchant().id, request.kind.direction());
                let sent = Compared::of(request, v1.as_ref());
                let repeat = self.repeat(merchant, direction, &request.order_id, sent).await?;
                repeat.ok_or(CreateError::Invalid(refusal.error))
            }
        }
    }

    async fn commit(
        &self,
        caller: &Caller,
        request: &CreateRequest<'_>,
        accepted: decide::AcceptedRequest,
        v1: Option<V1Request>,
    ) -> Result<CreateReply, CreateError> {
        let plan = self.plan(caller, request, accepted, v1);
        for _ in 0..ID_DRAWS {
            let draft = self.draft(&plan);
            let (id, reply) = (draft.operation.id, CreateReply::from(&draft.operation));
            let may_be_first = draft.opening.is_some();
            match self.store.create(draft).await? {
                InsertOutcome::Created(verdict) => {
                    if may_be_first {
                        self.openings.confirmed(&caller.merchant().id);
                    }
                    self.report_created(&plan, id, verdict);
                    return Ok(reply);
                }
                InsertOutcome::Existing(stored) => {
                    return self.answer_from(*stored, Compared::of(request, plan.v1.as_ref())).await;
                }
                InsertOutcome::Reserved => {
                    return Err(self
                        .reserved(&caller.merchant().id, request.kind.direction(), &request.order_id)
                        .await);
                }
                InsertOutcome::IdTaken => {}
            }
        }
        Err(CreateError::Failed(ApiError::Internal {
            cause: format!("{ID_DRAWS} transaction ids in a row were taken"),
        }))
    }

    /// Plans a new operation. The provider is consulted only when the shop's checks let the request through.
    fn plan<'r>(
        &self,
        caller: &'r Caller,
        request: &'r CreateRequest<'r>,
        accepted: decide::AcceptedRequest,
        v1: Option<V1Request>,
    ) -> Plan<'r> {
        let now = self.clock.now();
        let shop = &accepted.shop;
        let (failure, provider_job) = match accepted.failure {
            Some(cause) => (Some(cause), None),
            None => match decide::at_creation(&shop.provider, request.kind.direction(), request.amount, now) {
                AtCreation::Fail => (Some(FailureCause::Provider), None),
                AtCreation::ScheduleAt(due) => (None, Some(due)),
                AtCreation::Wait => (None, None),
            },
        };
        let fingerprint = match &v1 {
            // Repeats are compared by the v1 body, never by the v2 request that it was translated to.
            Some(v1) => v1.fingerprint,
            None => repeat::fingerprint(self.store.fingerprint_key(), request, &accepted.kept),
        };
        Plan { caller, request, accepted, fingerprint, v1, now, failure, provider_job }
    }

    /// Makes the operation of a plan under a new id.
    fn draft(&self, plan: &Plan<'_>) -> NewOperation {
        let Plan { caller, request, accepted, now, .. } = plan;
        let merchant = caller.merchant();
        let shop = &accepted.shop;
        let id = TransactionId::compose(*now, merchant.bucket, self.random.number());
        let state = match plan.failure {
            Some(_) => State::Finished { outcome: Outcome::Failed, at: *now },
            None => State::Pending,
        };
        let operation = Operation {
            id,
            merchant: merchant.id.clone(),
            order_id: request.order_id.clone(),
            amount: request.amount,
            currency: request.currency,
            method: request.method.as_ref().map(|_| shop.code.clone()),
            shop: shop.code.clone(),
            payment_method: shop.payment_method.clone(),
            customer_account_id: request.customer_account_id,
            callback_url: request.callback_url.clone(),
            kind: self.kind(caller, request, id, *now),
            provider: kind_of(&shop.provider),
            state,
            created_at: *now,
        };
        NewOperation {
            operation,
            order_key: plan.v1.as_ref().map(|v1| v1.order),
            api_key: caller.api_key().key.clone(),
            fields: Fields { v1_members: self.v1_members(plan), ..accepted.fields.clone() },
            comparison: RequestFingerprint { fingerprint: plan.fingerprint, kept: accepted.kept.clone() },
            v1: plan.v1.as_ref().map(|v1| v1.sender.clone()),
            provider_job: plan.provider_job,
            opening: self.openings.offered(&merchant.id, &merchant.balance.opening),
            enforce_balance: merchant.balance.enforce && request.kind.direction() == Direction::Payout,
            daily_limit: decide::daily_limit(&shop.checks, request, *now),
        }
    }

    /// Hashes the members of a v1 body that the operation does not hold, those that the shop's schema dropped included.
    fn v1_members(&self, plan: &Plan<'_>) -> MemberFingerprints {
        let Some(v1) = &plan.v1 else { return MemberFingerprints::default() };
        let mut members = v1.members.clone();
        if let Some(short) = plan.request.fields.dropped(
            self.store.fingerprint_key(),
            plan.request.kind.direction(),
            &plan.accepted.kept,
        ) {
            members.add(MemberFingerprints::PAYMENT_DATA, short);
        }
        members
    }

    /// Wakes the provider's worker after the commit, or reports why the operation was created FAILED.
    fn report_created(&self, plan: &Plan<'_>, id: TransactionId, verdict: CreateOutcome) {
        match plan.failure.or(FailureCause::of_verdict(verdict)) {
            Some(cause) => {
                let direction = plan.request.kind.direction();
                self.metrics.created_failed(direction, cause.as_str());
                // Without the customer's address and account, which are personal data.
                tracing::info!(transaction_id = %id, merchant = plan.caller.merchant().id.as_str(),
                    shop = plan.accepted.shop.code.as_str(), direction = direction.as_str(), cause = cause.as_str(),
                    "an operation was created FAILED");
            }
            None if plan.provider_job.is_some() => self.provider.job_stored(),
            None => {}
        }
    }

    fn kind(&self, caller: &Caller, request: &CreateRequest<'_>, id: TransactionId, now: UnixMillis) -> Kind {
        match &request.kind {
            RequestKind::Deposit { success_url, pending_url, fail_url } => Kind::Deposit(Deposit {
                success_url: success_url.clone(),
                pending_url: pending_url.clone(),
                fail_url: fail_url.clone(),
                redirect_url: self.entry_link(&caller.rules().gateway, id, now),
            }),
            RequestKind::Withdrawal { account_number, account_channel } => Kind::Withdrawal(Withdrawal {
                account_number: account_number.clone(),
                account_channel: account_channel.clone(),
            }),
        }
    }

    /// Signs the entry link of a deposit created at `now`.
    fn entry_link(&self, gateway: &GatewayRules, id: TransactionId, now: UnixMillis) -> RedirectUrl {
        let expires = now.plus(gateway.pages.link_lifetime).seconds();
        self.link(gateway, signatures::ENTRY, id, expires)
    }

    /// Signs a link of a deposit that is valid before `expires`, in Unix seconds.
    pub(super) fn link(&self, gateway: &GatewayRules, kind: &str, id: TransactionId, expires: i64) -> RedirectUrl {
        self.page_secret.sign(gateway.pages.secret.as_ref(), &gateway.server.public_url, kind, id, expires)
    }
}

const fn kind_of(provider: &ProviderRules) -> ProviderKind {
    match provider {
        ProviderRules::Sandbox { .. } => ProviderKind::Sandbox,
        ProviderRules::Http(_) => ProviderKind::Http,
    }
}
