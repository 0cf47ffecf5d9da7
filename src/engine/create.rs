//! Creating an operation: one commit for all that belongs to it, after an existing order was ruled out.

use std::sync::Arc;

use super::decide::{self, AtCreation};
use super::repeat::{self, Compared};
use super::{CreateError, Engine};
use crate::auth::{Caller, Interface, signatures};
use crate::domain::{
    CreateReply, CreateRequest, Deposit, Direction, FailureCause, Fields, Kind, MemberFingerprints, Operation, Outcome,
    ProviderKind, RedirectUrl, RequestKind, State, TransactionId, UnixMillis, Withdrawal,
};
use crate::error::ApiError;
use crate::rules::{GatewayRules, ProviderRules, Shop};
use crate::store::{InsertOutcome, NewOperation, RequestFingerprint, V1Request};

/// How often an id is drawn when the one before is taken. With twelve random bits a millisecond and merchant bucket a second
/// draw is rare and a third one absurd.
const ID_DRAWS: usize = 8;

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
        for _ in 0..ID_DRAWS {
            match decide::check_rules(caller.merchant(), caller.api_key(), request, interface) {
                Ok(accepted) => {
                    if let Some(reply) = self.commit(caller, request, accepted, v1.as_ref()).await? {
                        return Ok(reply);
                    }
                }
                Err(refusal) => {
                    let (merchant, direction) = (&caller.merchant().id, request.kind.direction());
                    let sent = Compared::of(request, v1.as_ref());
                    let repeat = self.repeat(merchant, direction, &request.order_id, sent).await?;
                    return repeat.ok_or(CreateError::Invalid(refusal.error));
                }
            }
        }
        Err(CreateError::Failed(ApiError::Internal {
            cause: format!("{ID_DRAWS} transaction ids in a row were taken"),
        }))
    }

    /// Commits an accepted request as a new operation; returns `None` when the id drawn for it is taken.
    async fn commit(
        &self,
        caller: &Caller,
        request: &CreateRequest<'_>,
        accepted: decide::AcceptedRequest,
        v1: Option<&V1Request>,
    ) -> Result<Option<CreateReply>, CreateError> {
        let shop = Arc::clone(&accepted.shop);
        let (draft, failure) = self.draft(caller, request, accepted, v1);
        let (id, reply) = (draft.operation.id, CreateReply::from(&draft.operation));
        let (may_be_first, has_job) = (draft.opening.is_some(), draft.provider_job.is_some());
        match self.deps.store.create(draft).await? {
            InsertOutcome::Created(outcome) => {
                if may_be_first {
                    self.openings.confirmed(&caller.merchant().id);
                }
                match failure.or(outcome.failure()) {
                    Some(cause) => self.report_failed(caller, &shop, request.kind.direction(), id, cause),
                    None if has_job => self.provider.job_stored(),
                    None => {}
                }
                Ok(Some(reply))
            }
            InsertOutcome::Existing(stored) => self.answer_from(*stored, Compared::of(request, v1)).await.map(Some),
            InsertOutcome::Reserved => {
                Err(self.reserved(&caller.merchant().id, request.kind.direction(), &request.order_id).await)
            }
            InsertOutcome::IdTaken => Ok(None),
        }
    }

    /// Makes the operation of an accepted request under a new id; returns also why it is created FAILED, if it is. The provider
    /// is consulted only when the shop's checks let the request through.
    fn draft(
        &self,
        caller: &Caller,
        request: &CreateRequest<'_>,
        accepted: decide::AcceptedRequest,
        v1: Option<&V1Request>,
    ) -> (NewOperation, Option<FailureCause>) {
        let now = self.deps.clock.now();
        let (merchant, direction) = (caller.merchant(), request.kind.direction());
        let v1_members = self.v1_members(request, &accepted, v1);
        let decide::AcceptedRequest { shop, kept, fields, failure, .. } = accepted;
        let (failure, provider_job) = match failure {
            Some(cause) => (Some(cause), None),
            None => match decide::at_creation(&shop.provider, direction, request.amount, now) {
                AtCreation::Fail => (Some(FailureCause::Provider), None),
                AtCreation::ScheduleAt(due) => (None, Some(due)),
                AtCreation::Wait => (None, None),
            },
        };
        let fingerprint = match v1 {
            // Repeats are compared by the v1 body, never by the v2 request that it was translated to.
            Some(v1) => v1.fingerprint,
            None => repeat::fingerprint(self.deps.store.fingerprint_key(), request, &kept),
        };
        let id = TransactionId::compose(now, merchant.bucket, self.deps.random.number());
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
            kind: self.kind(caller, request, id, now),
            provider: kind_of(&shop.provider),
            state: match failure {
                Some(_) => State::Finished { outcome: Outcome::Failed, at: now },
                None => State::Pending,
            },
            created_at: now,
        };
        let draft = NewOperation {
            operation,
            order_key: v1.map(|v1| v1.order),
            api_key: caller.api_key().key.clone(),
            failure,
            fields: Fields { v1_members, ..fields },
            comparison: RequestFingerprint { fingerprint, kept },
            v1: v1.map(|v1| v1.sender.clone()),
            provider_job,
            opening: self.openings.offered(&merchant.id, &merchant.balance.opening),
            enforce_balance: merchant.balance.enforce && direction == Direction::Payout,
            daily_limit: decide::daily_limit(&shop.checks, request, now),
        };
        (draft, failure)
    }

    /// Hashes the members of a v1 body that the operation does not hold, those that the shop's schema dropped included.
    fn v1_members(
        &self,
        request: &CreateRequest<'_>,
        accepted: &decide::AcceptedRequest,
        v1: Option<&V1Request>,
    ) -> MemberFingerprints {
        let Some(v1) = v1 else { return MemberFingerprints::default() };
        let mut members = v1.members.clone();
        if accepted.drops_fields
            && let Some(short) =
                request.fields.dropped(self.deps.store.fingerprint_key(), request.kind.direction(), &accepted.kept)
        {
            members.add(MemberFingerprints::PAYMENT_DATA, short);
        }
        members
    }

    /// Reports why an operation was created FAILED.
    fn report_failed(
        &self,
        caller: &Caller,
        shop: &Shop,
        direction: Direction,
        id: TransactionId,
        cause: FailureCause,
    ) {
        self.deps.metrics.operations().created_failed(direction, cause.as_str());
        // Without the customer's address and account, which are personal data.
        tracing::info!(transaction_id = %id, merchant = caller.merchant().id.as_str(), shop = shop.code.as_str(),
            direction = direction.as_str(), cause = cause.as_str(), "an operation was created FAILED");
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
