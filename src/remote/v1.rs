//! v1 requests: answered from the journal; an entry without a response is resolved first.

use std::time::Duration;

use bytes::Bytes;

use super::client::Remote;
use super::deadline::RequestDeadline;
use super::exchange::{EngineCredentials, EngineResponse};
use super::messages::differing;
use super::resolve::{Declined, Resolution, Signer};
use super::responses;
use crate::auth::Caller;
use crate::domain::{
    CreateReply, CreateRequest, Direction, Fingerprint, OperationView, OrderId, RequestKind, SchemaFields, Status,
};
use crate::engine::{CreateError, EarlierRequest};
use crate::error::{ApiError, Conflict};
use crate::rules::ApiKey;
use crate::store::{
    EngineAnswer, EntryProgress, JournalEntry, JournalOutcome, OrderHome, PendingCreate, RemoteOperation, V1Request,
};
use crate::wire::v1::v1_name;
use crate::wire::v2::read_create;

/// How often a request reads its order again when the entry was cancelled meanwhile.
const ROUNDS: usize = 4;

/// From this age on an entry without a response is sent only when its caller repeats the create: neither a status request nor
/// a start of the gateway makes a payout that its caller may have given up.
const MAX_AGE_TO_SEND: Duration = Duration::from_hours(24);

impl Remote {
    /// Sends a translated body to the engine, unless the journal has the order.
    pub(crate) async fn create_by_journal(
        &self,
        caller: &Caller,
        request: CreateRequest<'_>,
        body: &Bytes,
        v1: V1Request,
    ) -> Result<CreateReply, CreateError> {
        let merchant = caller.merchant();
        let default_shop = || merchant.default_shop.as_ref().map(|shop| shop.as_str().into());
        let create = PendingCreate {
            merchant: merchant.id.clone(),
            direction: request.kind.direction(),
            order_id: request.order_id,
            api_key: (*caller.api_key().key).into(),
            amount: request.amount,
            currency: request.currency,
            shop: request.method.or_else(default_shop),
            fingerprint: v1.fingerprint,
            v1_members: v1.members,
            callback_url: v1.sender.relayed_to().cloned(),
            body: body.as_ref().into(),
            created_at: self.parts.deps.clock.now(),
        };
        self.record_create(caller, create, self.deadline()).await
    }

    async fn record_create(
        &self,
        caller: &Caller,
        create: PendingCreate,
        deadline: RequestDeadline,
    ) -> Result<CreateReply, CreateError> {
        let _guard = self.parts.orders.lock(&create.merchant, create.direction, &create.order_id, deadline).await?;
        for _ in 0..ROUNDS {
            match self.journal().record_create(create.clone()).await? {
                JournalOutcome::Written(id) => {
                    let entry = JournalEntry { id, create, progress: EntryProgress::Open };
                    return match self.resolve_as(caller, entry, true, deadline).await? {
                        Resolution::Made(entry) => Ok(reply_of(*entry)?),
                        Resolution::Declined(declined) => Err(refused(declined)),
                    };
                }
                JournalOutcome::Reserved => return Err(CreateError::Reserved(OrderHome::Legacy)),
                JournalOutcome::Lost => return Err(CreateError::Reserved(OrderHome::Lost)),
                JournalOutcome::Native => return Err(CreateError::OtherVersion(None)),
                JournalOutcome::Existing(entry) => {
                    let same = entry.create.fingerprint == create.fingerprint;
                    if !same {
                        self.check_may_resolve(&entry)?;
                    }
                    // A refusal applies to the same key and the same body.
                    let same_request = entry.create.body == create.body && entry.create.api_key == create.api_key;
                    match self.answered(caller, *entry, deadline).await? {
                        Resolution::Made(entry) if same => return Ok(reply_of(*entry)?),
                        Resolution::Made(entry) => {
                            return Err(CreateError::OtherBody(Box::new(earlier(*entry)?)));
                        }
                        Resolution::Declined(declined) if same_request => return Err(refused(declined)),
                        // The entry is gone: this body is sent.
                        Resolution::Declined(_) => {}
                    }
                }
            }
        }
        let cause = "the journal entry of its external_id disappeared on every attempt".to_owned();
        Err(CreateError::Failed(ApiError::Unavailable { cause }))
    }

    /// Answers a v1 create that cannot be translated from the journal's entry of its order; `None` when the order is new.
    pub(crate) async fn repeat_by_journal(
        &self,
        caller: &Caller,
        direction: Direction,
        external_id: &OrderId,
        fingerprint: Fingerprint,
    ) -> Result<Option<CreateReply>, CreateError> {
        let merchant = &caller.merchant().id;
        let deadline = self.deadline();
        let _guard = self.parts.orders.lock(merchant, direction, external_id, deadline).await?;
        let Some(entry) = self.journal().entry(merchant, direction, external_id).await? else {
            return match self.parts.deps.store.order_home(merchant, direction, external_id).await? {
                Some(home @ (OrderHome::Legacy | OrderHome::Lost)) => Err(CreateError::Reserved(home)),
                Some(OrderHome::Operation | OrderHome::Native) => Err(CreateError::OtherVersion(None)),
                // An entry that was cancelled or made a moment ago.
                Some(OrderHome::Entry) | None => Ok(None),
            };
        };
        let same = entry.create.fingerprint == fingerprint;
        if !same && !entry.is_answered() {
            // A body that can only be refused is no reason to send the stored one.
            return Err(CreateError::Failed(ApiError::EngineTimeout));
        }
        match self.answered(caller, entry, deadline).await? {
            Resolution::Made(entry) if same => Ok(Some(reply_of(*entry)?)),
            Resolution::Made(entry) => Err(CreateError::OtherBody(Box::new(earlier(*entry)?))),
            Resolution::Declined(_) => Ok(None),
        }
    }

    /// Reads the operation that a v1 request created, with its status at the engine.
    pub(crate) async fn find_by_journal(
        &self,
        caller: &Caller,
        direction: Direction,
        external_id: &OrderId,
    ) -> Result<OperationView, ApiError> {
        let deadline = self.deadline();
        let entry = self.resolved_entry(caller, direction, external_id, deadline).await?;
        shown(self.with_status(caller.api_key(), entry, deadline).await?)
    }

    /// Returns the entry of an order, with its response. One without a response is resolved first, unless it is so old that
    /// its caller may have given it up: a status request must not make it then.
    async fn resolved_entry(
        &self,
        caller: &Caller,
        direction: Direction,
        external_id: &OrderId,
        deadline: RequestDeadline,
    ) -> Result<JournalEntry, ApiError> {
        let merchant = &caller.merchant().id;
        let find = async || self.journal().entry(merchant, direction, external_id).await;
        let entry = find().await?.ok_or(ApiError::NotFound)?;
        if entry.is_answered() {
            return Ok(entry);
        }
        let _guard = self.parts.orders.lock(merchant, direction, external_id, deadline).await?;
        let entry = find().await?.ok_or(ApiError::NotFound)?;
        if !entry.is_answered() && self.is_old(&entry) {
            return Err(ApiError::EngineTimeout);
        }
        match self.answered(caller, entry, deadline).await? {
            Resolution::Made(entry) => Ok(*entry),
            Resolution::Declined(_) => Err(ApiError::NotFound),
        }
    }

    /// Checks that an entry without a response may be resolved for another body with its order.
    fn check_may_resolve(&self, entry: &JournalEntry) -> Result<(), ApiError> {
        if entry.is_answered() || !self.is_old(entry) { Ok(()) } else { Err(ApiError::EngineTimeout) }
    }

    /// Reports whether an entry is only sent when its caller repeats the create.
    pub(super) fn is_old(&self, entry: &JournalEntry) -> bool {
        self.parts.deps.clock.now() >= entry.create.created_at.plus(MAX_AGE_TO_SEND)
    }

    /// Like [`Remote::is_old`], but a jump of the clock since the start makes no entry old: recovery would not return to
    /// it.
    pub(super) fn is_old_by_itself(&self, entry: &JournalEntry) -> bool {
        let until = self.parts.jumps.began_until(MAX_AGE_TO_SEND, Duration::ZERO);
        until.is_some_and(|until| entry.create.created_at <= until)
    }

    /// Returns an entry with its response. One without is resolved first, the only way to learn its outcome: v2 has no lookup
    /// by `order_id`, and an equal create makes no second operation. The caller holds the order's lock.
    async fn answered(
        &self,
        caller: &Caller,
        entry: JournalEntry,
        deadline: RequestDeadline,
    ) -> Result<Resolution, ApiError> {
        match entry.progress {
            EntryProgress::Answered(_) => Ok(Resolution::Made(Box::new(entry))),
            EntryProgress::Open | EntryProgress::InDoubt { .. } => {
                self.resolve_as(caller, entry, false, deadline).await
            }
        }
    }

    async fn resolve_as(
        &self,
        caller: &Caller,
        entry: JournalEntry,
        first: bool,
        deadline: RequestDeadline,
    ) -> Result<Resolution, ApiError> {
        let signer = Signer::of(caller.rules(), &entry.create)
            .ok_or_else(|| ApiError::Internal { cause: "no key of the merchant has a v2_secret".to_owned() })?;
        self.resolve(&signer, entry, first, deadline).await
    }

    /// Returns an entry with its status at the engine. A result that is known is not requested again.
    pub(super) async fn with_status(
        &self,
        key: &ApiKey,
        mut entry: JournalEntry,
        deadline: RequestDeadline,
    ) -> Result<JournalEntry, ApiError> {
        if !may_change(&entry) {
            return Ok(entry);
        }
        let credentials = EngineCredentials::signing(&entry.create.merchant, key, b"")?;
        let passed = passed_mut(&mut entry.progress)?;
        let transaction_id = passed.answer.transaction_id.clone();
        let update = match self.get(&transaction_id, &credentials, deadline).await? {
            EngineResponse::Done(body) => responses::record(&entry, &transaction_id, &body)
                .map_err(|cause| ApiError::BadEngineReply { cause: format!("of its status record: {cause}") })?,
            EngineResponse::Busy(busy, retry_after, _) => return Err(ApiError::EngineBusy { busy, retry_after }),
            EngineResponse::Invalid(_) | EngineResponse::NotFound | EngineResponse::Conflict(_) => {
                let cause = "it does not return the status of a transaction that it created".to_owned();
                return Err(ApiError::BadEngineReply { cause });
            }
        };
        let passed = passed_mut(&mut entry.progress)?;
        let is_new = passed.status != update.status || passed.account != update.account || entry.create.shop.is_none();
        if is_new && let Err(error) = self.journal().update_status(entry.id, update.clone()).await {
            tracing::debug!(%error, "a status of the engine was not stored; it is requested again the next time");
        }
        (passed.status, passed.account) = (update.status, update.account);
        entry.create.shop.get_or_insert(update.shop);
        Ok(entry)
    }
}

/// Reports whether the engine may know more about an entry than the journal.
pub(super) fn may_change(entry: &JournalEntry) -> bool {
    match &entry.progress {
        EntryProgress::Answered(passed) => passed.status == Status::Pending || entry.create.shop.is_none(),
        EntryProgress::Open | EntryProgress::InDoubt { .. } => false,
    }
}

/// Reports whether the engine's result of an entry is known.
#[must_use]
pub fn is_final(entry: &JournalEntry) -> bool {
    matches!(&entry.progress, EntryProgress::Answered(passed) if passed.status != Status::Pending)
}

/// Returns an entry as v1 shows it.
///
/// # Errors
/// The engine has not responded to it.
pub fn shown(entry: JournalEntry) -> Result<OperationView, ApiError> {
    let JournalEntry { create, progress, .. } = entry;
    let RemoteOperation { answer, status, account } = passed(progress)?;
    Ok(OperationView {
        transaction_id: answer.transaction_id,
        external_id: create.order_id,
        direction: create.direction,
        status,
        amount: create.amount,
        currency: create.currency,
        // As v2's records write it.
        shop_code: create.shop.unwrap_or_else(|| "unknown".into()),
        account_number: account.map(|account| account.masked()),
        created_at: create.created_at,
    })
}

fn reply_of(entry: JournalEntry) -> Result<CreateReply, ApiError> {
    let EngineAnswer { transaction_id, redirect_url } = passed(entry.progress)?.answer;
    Ok(CreateReply { transaction_id, order_id: entry.create.order_id, redirect_url })
}

/// Returns the v1 request of an entry, for the comparison with another body.
fn earlier(entry: JournalEntry) -> Result<EarlierRequest, ApiError> {
    let PendingCreate { direction, amount, currency, v1_members: members, callback_url, body, .. } = entry.create;
    let request = read_create(direction, &body)
        .map_err(|_| ApiError::Internal { cause: "the journal holds a body that is no v2 request".to_owned() })?;
    let (return_url, card_number) = match request.kind {
        RequestKind::Deposit { success_url, .. } => (Some(success_url), None),
        RequestKind::Withdrawal { account_number, .. } => (None, Some(account_number)),
    };
    Ok(EarlierRequest {
        transaction_id: passed(entry.progress)?.answer.transaction_id,
        amount,
        currency,
        shop_code: request.method,
        callback_url,
        user_id: request.customer_account_id,
        card_number,
        return_url,
        fields: request.fields.reduced(&SchemaFields::Everything).text().into(),
        kept: SchemaFields::Everything,
        members,
    })
}

fn passed(progress: EntryProgress) -> Result<RemoteOperation, ApiError> {
    match progress {
        EntryProgress::Answered(passed) => Ok(passed),
        EntryProgress::Open | EntryProgress::InDoubt { .. } => Err(unanswered()),
    }
}

fn passed_mut(progress: &mut EntryProgress) -> Result<&mut RemoteOperation, ApiError> {
    match progress {
        EntryProgress::Answered(passed) => Ok(passed),
        EntryProgress::Open | EntryProgress::InDoubt { .. } => Err(unanswered()),
    }
}

fn unanswered() -> ApiError {
    ApiError::Internal { cause: "the journal gave an answered entry without its answer".to_owned() }
}

fn refused(declined: Declined) -> CreateError {
    match declined {
        Declined::Invalid(error) => CreateError::Invalid(error),
        Declined::Conflict(error) => {
            let differing = differing(error.reason());
            let conflict = Conflict { differing, ..error.renamed(|path| v1_name(path, false)).into() };
            CreateError::Failed(ApiError::Conflict(conflict))
        }
    }
}
