//! Operations: search, and one operation with its timeline, from what is stored of it anyway.

use super::callbacks::attempt;
use super::context::{PageContext, PageError, PageResult, labelled, sentence, unknown_note};
use crate::console::{
    Fact, OperationItem, OperationPageView, OperationSearch, OperationsView, PageView, TimelineEntry, Tone,
};
use crate::domain::{
    Direction, Kind, MerchantId, OrderId, Outcome, Preparation, ProviderKind, State, Status, TransactionId, UnixMillis,
};
use crate::error::RequestError;
use crate::store::{
    CallbackRecord, CallbackSubject, CallbackTry, EntryProgress, JournalEntry, NextAttempt, OrderHome, OrderLookup,
    ProviderJobState, StoreError, Stored,
};
use crate::v1::query::decoded;

/// An operation of the embedded engine, or an entry of the journal.
enum Found {
    Here(Box<Stored>),
    Remote(Box<JournalEntry>),
}

/// The labels of the fields of the search.
const LABELS: [(&str, &str); 2] = [("merchant", "Merchant"), ("order_id", "Order id")];

/// Answers `GET /operations`.
pub(super) async fn search(context: &PageContext<'_>) -> PageResult {
    let [transaction_id, merchant, direction, order_id] =
        context.parameters(["transaction_id", "merchant", "direction", "order_id"])?;
    let mut search = OperationSearch { transaction_id, merchant, direction, order_id };
    // The page of a merchant leads here with the merchant alone.
    let is_searched = !search.transaction_id.is_empty() || !search.order_id.is_empty();
    let mut view = OperationsView { is_searched, ..OperationsView::default() };
    if view.is_searched {
        match find_pasted(context, &mut search).await {
            Ok((found, elsewhere)) => (view.found, view.elsewhere) = (found, elsewhere),
            Err(PageError::Invalid(error)) => view.problem = Some(labelled(&error, &LABELS)),
            Err(error) => return Err(error),
        }
        let by_order = search.transaction_id.is_empty();
        if let Some(reason) = by_order.then(|| context.unknown_merchant(&search.merchant)).flatten() {
            match &mut view.problem {
                Some(problem) => *problem = sentence(&reason),
                None => view.note = Some(unknown_note(&reason, !view.found.is_empty())),
            }
        }
    }
    view.search = search;
    Ok(context.form_page(PageView::Operations(&view), view.problem.is_some()).await)
}

/// Searches for the order id as it is, and without the white space around it, which a paste brings along, where that finds
/// nothing: it may be a part of the id.
async fn find_pasted(
    context: &PageContext<'_>,
    search: &mut OperationSearch,
) -> Result<(Vec<OperationItem>, Option<String>), PageError> {
    let (found, elsewhere) = find(context, search).await?;
    let order_id = search.order_id.trim();
    if !found.is_empty() || elsewhere.is_some() || order_id == search.order_id {
        return Ok((found, elsewhere));
    }
    search.order_id = String::from(order_id);
    find(context, search).await
}

/// Returns the operations that a search finds, and where the order is otherwise.
async fn find(
    context: &PageContext<'_>,
    search: &OperationSearch,
) -> Result<(Vec<OperationItem>, Option<String>), PageError> {
    if !search.transaction_id.is_empty() {
        let found = by_id(context, &search.transaction_id).await?;
        return Ok((found.iter().map(item).collect(), None));
    }
    if search.merchant.is_empty() {
        return Err(RequestError::member("merchant", "is required with an order id").into());
    }
    let merchant = MerchantId::new(&search.merchant);
    let merchant = merchant.map_err(|_| RequestError::member("merchant", "must be the id of a merchant"))?;
    let order = OrderId::new(&search.order_id);
    let order = order.map_err(|_| RequestError::member("order_id", "must be 1 to 255 characters"))?;
    let (mut items, mut elsewhere) = (Vec::new(), None);
    for direction in [Direction::Payin, Direction::Payout] {
        if !search.direction.is_empty() && search.direction != direction.as_str() {
            continue;
        }
        match by_order(context, &merchant, direction, &order).await? {
            Ok(found) => items.push(item(&found)),
            Err(place) => elsewhere = elsewhere.or(place),
        }
    }
    Ok((items, elsewhere))
}

async fn by_id(context: &PageContext<'_>, text: &str) -> Result<Option<Found>, StoreError> {
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
    context: &PageContext<'_>,
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
pub(super) async fn show(context: &PageContext<'_>) -> PageResult {
    let id = decoded(context.request.id).ok_or(PageError::NotFound)?;
    let view = match by_id(context, &id).await?.ok_or(PageError::NotFound)? {
        Found::Here(stored) => of_operation(context, &stored).await?,
        Found::Remote(entry) => of_entry(context, &entry).await?,
    };
    Ok(context.page(PageView::Operation(&view)).await)
}

fn item(found: &Found) -> OperationItem {
    match found {
        Found::Here(stored) => {
            let operation = &stored.operation;
            OperationItem {
                transaction_id: operation.id.to_string(),
                merchant: operation.merchant.to_string(),
                order_id: operation.order_id.as_str().to_owned(),
                direction: operation.direction().as_str().to_owned(),
                status: operation.state.status().as_str().to_owned(),
                amount: operation.amount.to_string(),
                currency: operation.currency.as_str().to_owned(),
                created_at: operation.created_at,
            }
        }
        Found::Remote(entry) => {
            let create = &entry.create;
            let (transaction_id, status) = match &entry.progress {
                EntryProgress::Answered(remote) => (remote.answer.transaction_id.to_string(), remote.status),
                EntryProgress::Open | EntryProgress::InDoubt { .. } => (String::new(), Status::Pending),
            };
            OperationItem {
                transaction_id,
                merchant: create.merchant.to_string(),
                order_id: create.order_id.as_str().to_owned(),
                direction: create.direction.as_str().to_owned(),
                status: status.as_str().to_owned(),
                amount: create.amount.to_string(),
                currency: create.currency.as_str().to_owned(),
                created_at: create.created_at,
            }
        }
    }
}

fn fact(label: &str, value: impl Into<String>) -> Fact {
    Fact { label: label.to_owned(), value: value.into() }
}

async fn of_operation(context: &PageContext<'_>, stored: &Stored) -> Result<OperationPageView, StoreError> {
    let (store, operation) = (context.source.store(), &stored.operation);
    let version = if stored.v1.is_some() { "v1" } else { "v2" };
    let provider = match operation.provider {
        ProviderKind::Sandbox => "sandbox",
        ProviderKind::Http => "http",
    };
    let mut facts = vec![
        fact("Created through", version),
        fact("Shop", operation.shop.as_str()),
        fact("Method", operation.shown_method()),
        fact("Provider", provider),
    ];
    let mut timeline = vec![TimelineEntry {
        at: operation.created_at,
        title: format!("Created through {version}"),
        detail: Some("The create was accepted, stored, and replied to.".to_owned()),
        ..TimelineEntry::default()
    }];
    if let Kind::Withdrawal(withdrawal) = &operation.kind {
        facts.push(fact("Account", withdrawal.account_number.masked()));
    }
    match &operation.state {
        State::Pending => {
            let job = store.provider_job(operation.id).await?;
            timeline.extend(job.map(|job| of_job(&job)));
            if let Some(preparation) = store.preparation(operation.id).await? {
                facts.push(fact("Prepared for the customer", prepared(&preparation)));
            }
        }
        State::Finished { outcome, at } => {
            let (tone, title) = match outcome {
                Outcome::Success { .. } => (Tone::Good, "SUCCESS: the money moved"),
                Outcome::Failed => (Tone::Bad, "FAILED: the money did not move"),
            };
            if let Outcome::Success { payer: Some(payer) } = outcome {
                facts.push(fact("Paid from", payer.masked()));
            }
            timeline.push(TimelineEntry { at: *at, tone, title: title.to_owned(), ..TimelineEntry::default() });
        }
    }
    let callback = store.callback_of(CallbackSubject::Operation(operation.id)).await?;
    let note = add_callback(&mut timeline, callback, context.source.now());
    Ok(OperationPageView { operation: item(&Found::Here(Box::new(stored.clone()))), facts, timeline, note })
}

const fn prepared(preparation: &Preparation) -> &'static str {
    match preparation {
        Preparation::Page(_) => "a payment page",
        Preparation::Instructions(_) => "payment instructions",
        Preparation::Stopped => "nothing: the provider stopped, and the result is not known",
    }
}

fn of_job(job: &ProviderJobState) -> TimelineEntry {
    let claimed = if job.is_claimed { "It is being sent now. " } else { "" };
    TimelineEntry {
        at: job.due,
        tone: if job.attempts > 1 { Tone::Warn } else { Tone::Plain },
        title: "The provider is called next".to_owned(),
        detail: Some(format!("{claimed}Attempts so far: {}.", job.attempts)),
        ..TimelineEntry::default()
    }
}

async fn of_entry(context: &PageContext<'_>, entry: &JournalEntry) -> Result<OperationPageView, StoreError> {
    let create = &entry.create;
    let mut facts = vec![fact("Created through", "v1, at the remote engine")];
    facts.extend(create.shop.as_deref().map(|shop| fact("Shop", shop)));
    let mut timeline = vec![TimelineEntry {
        at: create.created_at,
        title: "Recorded in the journal and sent to the engine".to_owned(),
        ..TimelineEntry::default()
    }];
    match &entry.progress {
        EntryProgress::Open => {}
        EntryProgress::InDoubt { since } => timeline.push(TimelineEntry {
            at: *since,
            tone: Tone::Warn,
            title: "No answer of the engine".to_owned(),
            detail: Some("The outcome is unknown until the merchant repeats or queries it.".to_owned()),
            ..TimelineEntry::default()
        }),
        EntryProgress::Answered(remote) => {
            facts.extend(remote.account.as_ref().map(|account| fact("Account", account.masked())));
            facts.push(fact("Status", "as the engine last reported it"));
        }
    }
    let callback = context.source.store().callback_of(CallbackSubject::Entry(entry.id)).await?;
    let note = add_callback(&mut timeline, callback, context.source.now());
    Ok(OperationPageView { operation: item(&Found::Remote(Box::new(entry.clone()))), facts, timeline, note })
}

/// Adds a callback and its attempts to a timeline. Returns a note on what is not in it.
fn add_callback(
    timeline: &mut Vec<TimelineEntry>,
    callback: Option<(CallbackRecord, Vec<CallbackTry>)>,
    now: UnixMillis,
) -> Option<String> {
    let (callback, tries) = callback?;
    let id = callback.id.to_string();
    timeline.extend(tries.iter().map(|tried| {
        let attempt = attempt(tried);
        TimelineEntry {
            at: attempt.at,
            tone: attempt.tone,
            title: if attempt.tone == Tone::Good { "Callback delivered" } else { "Callback not delivered" }.to_owned(),
            detail: Some(format!("{}: {}", callback.url.origin(), attempt.outcome)),
            duration_ms: Some(attempt.duration_ms),
            callback_id: Some(id.clone()),
        }
    }));
    let next = match callback.next_attempt(now) {
        NextAttempt::None => None,
        NextAttempt::UnderWay => Some((now, "The callback is being sent")),
        NextAttempt::WaitsForReceiver => Some((now, "The callback waits for its receiver")),
        NextAttempt::At(due) => Some((due, "The callback is sent next")),
    };
    timeline.extend(next.map(|(at, title)| TimelineEntry {
        at,
        title: title.to_owned(),
        callback_id: Some(id),
        ..TimelineEntry::default()
    }));
    timeline.sort_by_key(|entry| entry.at);
    let kept = u32::try_from(tries.len()).unwrap_or(u32::MAX);
    (kept < callback.tries).then(|| format!("Of {} attempts, the last {kept} are kept.", callback.tries))
}
