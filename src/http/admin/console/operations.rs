//! Operations: search, and one operation with its timeline, from what is stored of it anyway.

use serde::Serialize;

use crate::console::ConsolePage;
use crate::domain::{
    Direction, Kind, MerchantId, OrderId, Outcome, Preparation, State, Status, TransactionId, UnixMillis,
};
use crate::error::RequestError;
use crate::http::admin::context::{AdminContext, HandlerResult, labelled, sentence};
use crate::http::admin::parameters;
use crate::http::admin::refused::Refused;
use crate::store::{
    CallbackRecord, CallbackSubject, CallbackTry, EntryProgress, JournalEntry, NextAttempt, OrderHome, OrderLookup,
    ProviderJobState, StoreError, Stored,
};
use crate::v1::query::decoded;

/// The search for operations and what it found.
#[derive(Debug, Default, Serialize)]
pub(super) struct OperationsPage {
    pub search: OperationSearch,
    pub problem: Option<String>,
    /// That the merchant is unknown: one that was removed may have operations.
    pub note: Option<String>,
    pub is_searched: bool,
    pub found: Vec<OperationDocument>,
    /// Where the order is if not here, such as with the old v1 service.
    pub other_home: Option<String>,
}

/// A search by transaction id, or by merchant and order; empty: not given.
#[derive(Debug, Default, Serialize)]
pub(super) struct OperationSearch {
    pub transaction_id: String,
    pub merchant: String,
    /// Empty: either.
    pub direction: String,
    pub order_id: String,
}

/// An operation in a list, and in the head of its own page.
#[derive(Debug, Default, Serialize)]
pub(super) struct OperationDocument {
    pub transaction_id: String,
    pub merchant: String,
    pub order_id: String,
    pub direction: &'static str,
    pub status: &'static str,
    pub amount: String,
    pub currency: String,
    pub created_at: UnixMillis,
}

/// One operation.
#[derive(Debug, Default, Serialize)]
pub(super) struct OperationPage {
    pub operation: OperationDocument,
    /// Further facts with their labels, masked where they have to be, in the order in which they are shown.
    pub details: Vec<(&'static str, String)>,
    /// What happened, the first first.
    pub timeline: Vec<TimelineEntry>,
    /// How many attempts of its callback were made, and how many are kept, if not all are.
    pub kept_attempts: Option<(u32, u32)>,
}

/// An event in the life of an operation.
#[derive(Debug, Default, Serialize)]
pub(super) struct TimelineEntry {
    pub at: UnixMillis,
    /// Its meaning, which decides its colour.
    pub tone: &'static str,
    pub title: &'static str,
    pub detail: Option<String>,
    pub duration_ms: Option<u64>,
    /// The callback that it is an attempt of.
    pub callback_id: Option<String>,
}

/// An operation of the embedded engine, or an entry of the journal.
enum Found {
    Here(Box<Stored>),
    Remote(Box<JournalEntry>),
}

/// Answers `GET /operations`.
pub(in crate::http::admin) async fn search(context: &AdminContext<'_>) -> HandlerResult {
    let [transaction_id, merchant, direction, order_id] =
        context.parameters(["transaction_id", "merchant", "direction", "order_id"])?;
    let search = OperationSearch { transaction_id, merchant, direction, order_id };
    // The page of a merchant leads here with the merchant alone.
    let is_searched = !search.transaction_id.is_empty() || !search.order_id.is_empty();
    let mut view = OperationsPage { search, is_searched, ..OperationsPage::default() };
    if view.is_searched {
        match find_pasted(context, &mut view).await {
            Ok(()) => {}
            Err(Refused::Invalid(error)) => view.problem = Some(labelled(&error, &[])),
            Err(error) => return Err(error),
        }
        let by_order = view.search.transaction_id.is_empty();
        if let Some(reason) = by_order.then(|| context.unknown_merchant(&view.search.merchant)).flatten() {
            let place = if view.problem.is_some() { &mut view.problem } else { &mut view.note };
            *place = Some(sentence(&reason));
        }
    }
    context.form_page(ConsolePage::Operations, &view, view.problem.is_some()).await
}

/// Searches for the order id as it is, and without the white space around it, which a paste brings along, where that finds
/// nothing: it may be a part of the id.
async fn find_pasted(context: &AdminContext<'_>, view: &mut OperationsPage) -> Result<(), Refused> {
    find(context, view).await?;
    let trimmed = view.search.order_id.trim().to_owned();
    if !view.found.is_empty() || view.other_home.is_some() || trimmed == view.search.order_id {
        return Ok(());
    }
    view.search.order_id = trimmed;
    find(context, view).await
}

/// Finds operations, or where the order is otherwise.
async fn find(context: &AdminContext<'_>, view: &mut OperationsPage) -> Result<(), Refused> {
    let search = &view.search;
    if !search.transaction_id.is_empty() {
        view.found = by_id(context, &search.transaction_id).await?.iter().map(document).collect();
        return Ok(());
    }
    let merchant = parameters::merchant(&search.merchant)?;
    let merchant = merchant.ok_or_else(|| RequestError::member("merchant", "is required with an order id"))?;
    let order = parameters::order_id(&search.order_id)?;
    let order = order.ok_or_else(|| RequestError::member("order_id", parameters::ORDER_ID))?;
    for direction in [Direction::Payin, Direction::Payout] {
        if !view.search.direction.is_empty() && view.search.direction != direction.as_str() {
            continue;
        }
        match by_order(context, &merchant, direction, &order).await? {
            Ok(found) => view.found.push(document(&found)),
            Err(place) => view.other_home = view.other_home.take().or(place),
        }
    }
    Ok(())
}

async fn by_id(context: &AdminContext<'_>, text: &str) -> Result<Option<Found>, StoreError> {
    let store = context.source.store();
    if let Ok(id) = TransactionId::parse(text)
        && let Some(stored) = store.by_id(id).await?
    {
        return Ok(Some(Found::Here(Box::new(stored))));
    }
    Ok(store.entry_of_transaction(text).await?.map(|entry| Found::Remote(Box::new(entry))))
}

/// Returns the operation of an order, or where the order is instead.
async fn by_order(
    context: &AdminContext<'_>,
    merchant: &MerchantId,
    direction: Direction,
    order: &OrderId,
) -> Result<Result<Found, Option<String>>, StoreError> {
    let store = context.source.store();
    match store.by_order(merchant, direction, order).await? {
        OrderLookup::Operation(stored) => return Ok(Ok(Found::Here(stored))),
        OrderLookup::Free => return Ok(Err(None)),
        OrderLookup::Reserved => {}
    }
    let place = match store.order_home(merchant, direction, order).await? {
        Some(OrderHome::Legacy) => "with the old v1 service: it was forwarded there, or imported from there",
        Some(OrderHome::Native) => "at the remote engine: it was created through v2",
        Some(OrderHome::Operation | OrderHome::Entry) | None => match store.entry(merchant, direction, order).await? {
            Some(entry) if entry.is_answered() => return Ok(Ok(Found::Remote(Box::new(entry)))),
            Some(_) => "in the journal: the remote engine has not answered its create yet",
            None => return Ok(Err(None)),
        },
    };
    Ok(Err(Some(format!("This {direction} is {place}."))))
}

/// Answers `GET /operations/{transaction_id}`.
pub(in crate::http::admin) async fn show(context: &AdminContext<'_>) -> HandlerResult {
    let id = decoded(context.request.id).ok_or(Refused::NotFound(None))?;
    let view = match by_id(context, &id).await?.ok_or(Refused::NotFound(None))? {
        Found::Here(stored) => of_operation(context, stored).await?,
        Found::Remote(entry) => of_entry(context, entry).await?,
    };
    context.page(ConsolePage::Operation, &view).await
}

fn document(found: &Found) -> OperationDocument {
    match found {
        Found::Here(stored) => {
            let one = &stored.operation;
            OperationDocument {
                transaction_id: one.id.to_string(),
                merchant: one.merchant.to_string(),
                order_id: one.order_id.as_str().to_owned(),
                direction: one.direction().as_str(),
                status: one.state.status().as_str(),
                amount: one.amount.to_string(),
                currency: one.currency.to_string(),
                created_at: one.created_at,
            }
        }
        Found::Remote(entry) => {
            let one = &entry.create;
            let status = match &entry.progress {
                EntryProgress::Answered(remote) => remote.status,
                EntryProgress::Open | EntryProgress::InDoubt { .. } => Status::Pending,
            };
            OperationDocument {
                transaction_id: entry.transaction_id().unwrap_or_default().to_owned(),
                merchant: one.merchant.to_string(),
                order_id: one.order_id.as_str().to_owned(),
                direction: one.direction.as_str(),
                status: status.as_str(),
                amount: one.amount.to_string(),
                currency: one.currency.to_string(),
                created_at: one.created_at,
            }
        }
    }
}

async fn of_operation(context: &AdminContext<'_>, stored: Box<Stored>) -> Result<OperationPage, StoreError> {
    let (store, operation) = (context.source.store(), &stored.operation);
    let is_v1 = stored.v1.is_some();
    let mut details = vec![
        ("Created through", if is_v1 { "v1" } else { "v2" }.to_owned()),
        ("Shop", operation.shop.to_string()),
        ("Method", operation.shown_method().to_owned()),
        ("Provider", operation.provider.as_str().to_owned()),
    ];
    let created = entry(operation.created_at, "plain", if is_v1 { "Created through v1" } else { "Created through v2" });
    let detail = Some("The create was accepted, stored, and replied to.".to_owned());
    let mut timeline = vec![TimelineEntry { detail, ..created }];
    if let Kind::Withdrawal(withdrawal) = &operation.kind {
        details.push(("Account", withdrawal.account_number.masked()));
    }
    match &operation.state {
        State::Pending => {
            timeline.extend(store.provider_job(operation.id).await?.map(|job| of_job(&job)));
            let preparation = store.preparation(operation.id).await?;
            details.extend(
                preparation.map(|preparation| ("Prepared for the customer", prepared(&preparation).to_owned())),
            );
        }
        State::Finished { outcome, at } => {
            timeline.push(match outcome {
                Outcome::Success { .. } => entry(*at, "good", "SUCCESS: the money moved"),
                Outcome::Failed => entry(*at, "bad", "FAILED: the money did not move"),
            });
            if let Outcome::Success { payer: Some(payer) } = outcome {
                details.push(("Paid from", payer.masked()));
            }
        }
    }
    let callback = store.callback_of(CallbackSubject::Operation(operation.id)).await?;
    let kept_attempts = add_callback(&mut timeline, callback, context.source.now());
    Ok(OperationPage { operation: document(&Found::Here(stored)), details, timeline, kept_attempts })
}

const fn prepared(preparation: &Preparation) -> &'static str {
    match preparation {
        Preparation::Page(_) => "a payment page",
        Preparation::Instructions(_) => "payment instructions",
        Preparation::Stopped => "nothing: the provider stopped, and the result is not known",
    }
}

fn entry(at: UnixMillis, tone: &'static str, title: &'static str) -> TimelineEntry {
    TimelineEntry { at, tone, title, ..TimelineEntry::default() }
}

fn of_job(job: &ProviderJobState) -> TimelineEntry {
    let tone = if job.attempts > 1 { "warn" } else { "plain" };
    let claimed = if job.is_claimed { "It is being sent now. " } else { "" };
    let detail = Some(format!("{claimed}Attempts so far: {}.", job.attempts));
    TimelineEntry { detail, ..entry(job.due, tone, "The provider is called next") }
}

async fn of_entry(context: &AdminContext<'_>, found: Box<JournalEntry>) -> Result<OperationPage, StoreError> {
    let create = &found.create;
    let mut details = vec![("Created through", "v1, at the remote engine".to_owned())];
    details.extend(create.shop.as_deref().map(|shop| ("Shop", shop.to_owned())));
    let mut timeline = vec![entry(create.created_at, "plain", "Recorded in the journal and sent to the engine")];
    match &found.progress {
        EntryProgress::Open => {}
        EntryProgress::InDoubt { since } => timeline.push(TimelineEntry {
            detail: Some("The outcome is unknown until the merchant repeats or queries it.".to_owned()),
            ..entry(*since, "warn", "No answer of the engine")
        }),
        EntryProgress::Answered(remote) => {
            details.extend(remote.account.as_ref().map(|account| ("Account", account.masked())));
            details.push(("Status", "as the engine last reported it".to_owned()));
        }
    }
    let callback = context.source.store().callback_of(CallbackSubject::Entry(found.id)).await?;
    let kept_attempts = add_callback(&mut timeline, callback, context.source.now());
    Ok(OperationPage { operation: document(&Found::Remote(found)), details, timeline, kept_attempts })
}

/// Adds a callback and its attempts to a timeline. Returns how many attempts there were and how many are in it, if not all are.
fn add_callback(
    timeline: &mut Vec<TimelineEntry>,
    callback: Option<(CallbackRecord, Vec<CallbackTry>)>,
    now: UnixMillis,
) -> Option<(u32, u32)> {
    let (callback, tries) = callback?;
    let callback_id = Some(callback.id.to_string());
    for CallbackTry { at, duration, outcome } in &tries {
        let (tone, title) =
            if outcome.is_delivered() { ("good", "Callback delivered") } else { ("bad", "Callback not delivered") };
        timeline.push(TimelineEntry {
            // The path and query of its address are the merchant's: they may hold a token.
            detail: Some(format!("{}: {outcome}", callback.url.origin())),
            duration_ms: Some(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)),
            callback_id: callback_id.clone(),
            ..entry(*at, tone, title)
        });
    }
    let next = match callback.next_attempt(now) {
        NextAttempt::None => None,
        NextAttempt::UnderWay => Some((now, "The callback is being sent")),
        NextAttempt::WaitsForReceiver => Some((now, "The callback waits for its receiver")),
        NextAttempt::At(due) => Some((due, "The callback is sent next")),
    };
    timeline.extend(next.map(|(at, title)| TimelineEntry { callback_id, ..entry(at, "plain", title) }));
    timeline.sort_by_key(|entry| entry.at);
    let kept = u32::try_from(tries.len()).unwrap_or(u32::MAX);
    (kept < callback.tries).then_some((callback.tries, kept))
}
