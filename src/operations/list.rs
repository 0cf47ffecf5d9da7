//! The list: one document for the API, the page and the command line.

use std::cmp::Reverse;
use std::fmt;

use serde::Serialize;

use super::Overdue;
use super::filter::OperationSearch;
use crate::domain::{AccountNumber, Direction, MerchantId, OrderId, State, TransactionId, WaitsFor};
use crate::rules::{Mode, RuleSet};
use crate::store::{
    AttentionReason, EntryProgress, FoundHome, JournalEntry, ListedOperation, OperationQuery, Store, StoreError,
};
use crate::wire::time::rfc3339;

/// A page of the list.
#[derive(Debug, Default, Serialize)]
pub struct OperationsDocument {
    /// The operations, the newest first.
    pub operations: Vec<OperationDocument>,
    /// The place of the next page; `None`: there is none.
    pub next: Option<String>,
    /// Where an order is that is no operation here.
    #[serde(rename = "elsewhere", skip_serializing_if = "Vec::is_empty")]
    pub other_homes: Vec<OtherHome>,
    /// Why the list lacks operations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The home of an order that is no operation here.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct OtherHome {
    merchant: String,
    direction: &'static str,
    home: &'static str,
    since: String,
}

/// An operation in the list.
#[derive(Debug, Default, Serialize)]
pub struct OperationDocument {
    /// `None`: a remote engine has not answered.
    pub transaction_id: Option<String>,
    /// The merchant.
    pub merchant: String,
    /// The merchant's id.
    pub order_id: String,
    /// `payin` or `payout`.
    pub direction: &'static str,
    /// The API version that it was created through.
    pub through: &'static str,
    /// The shop; `None`: not known of a remote engine's operation.
    pub shop: Option<String>,
    /// The status.
    pub status: &'static str,
    /// The amount.
    pub amount: String,
    /// The currency.
    pub currency: String,
    /// When it was created.
    pub created_at: String,
    /// When its result was stored.
    pub finished_at: Option<String>,
    /// The account, masked.
    pub account_number: Option<String>,
    /// Why it FAILED.
    pub cause: Option<&'static str>,
    /// The provider's code of the failure.
    pub cause_code: Option<Box<str>>,
    /// The provider's text of the failure.
    pub cause_text: Option<Box<str>>,
    /// What it waits for.
    pub waits_for: Option<&'static str>,
    /// Why it needs attention, in the list of those that do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attention: Option<&'static str>,
}

impl OperationDocument {
    pub(super) fn of(listed: ListedOperation) -> Self {
        let ListedOperation { stored, failure, waits_for, .. } = listed;
        let operation = stored.operation;
        let (cause, reason) = failure.map(|(cause, reason)| (cause.as_str(), reason)).unzip();
        let (cause_code, cause_text) = reason.map_or((None, None), |reason| (reason.code, reason.text));
        let finished_at = match &operation.state {
            State::Pending => None,
            State::Finished { at, .. } => Some(rfc3339(*at)),
        };
        Self {
            transaction_id: Some(operation.id.to_string()),
            merchant: operation.merchant.to_string(),
            order_id: operation.order_id.as_str().to_owned(),
            direction: operation.direction().as_str(),
            through: if stored.v1.is_some() { "v1" } else { "v2" },
            shop: Some(operation.shop.to_string()),
            status: operation.state.status().as_str(),
            amount: operation.amount.to_string(),
            currency: operation.currency.to_string(),
            created_at: rfc3339(operation.created_at),
            finished_at,
            account_number: operation.shown_account(),
            cause,
            cause_code,
            cause_text,
            waits_for: waits_for.map(WaitsFor::as_str),
            attention: None,
        }
    }

    pub(super) fn of_entry(entry: &JournalEntry) -> Self {
        let create = &entry.create;
        let account = match &entry.progress {
            EntryProgress::Answered(remote) => remote.account.as_ref(),
            EntryProgress::Open | EntryProgress::InDoubt { .. } => None,
        };
        Self {
            transaction_id: entry.transaction_id().map(str::to_owned),
            merchant: create.merchant.to_string(),
            order_id: create.order_id.as_str().to_owned(),
            direction: create.direction.as_str(),
            through: "v1",
            shop: create.shop.as_deref().map(str::to_owned),
            status: entry.status().as_str(),
            amount: create.amount.to_string(),
            currency: create.currency.to_string(),
            created_at: rfc3339(create.created_at),
            account_number: account.map(AccountNumber::masked),
            ..Self::default()
        }
    }
}

#[cfg(test)]
impl OtherHome {
    /// Makes one with this home.
    pub(crate) fn example(home: &'static str) -> Self {
        let since = "2026-11-24T12:00:00.000Z".to_owned();
        Self { merchant: "acme".to_owned(), direction: "payin", home, since }
    }
}

/// Writes it for the command line.
impl fmt::Display for OtherHome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { merchant, direction, home, since } = self;
        write!(f, "the {direction} of this order of {merchant} is no operation here: {home} since {since}")
    }
}

const REMOTE: &str = "with a remote engine, the list has the orders of v1 alone, with the status as last received";
const NO_OPERATIONS: &str =
    "the old v1 service has the operations of merchants in the modes legacy and shadow: here are none";
const OF_RULES_ALONE: &str =
    "only the merchants of the rules were searched: to find an order of a removed one, name the merchant";

/// What shortens a search that takes too long.
const NARROW: &str = "narrow it: name a merchant, a day, or a status";

/// Finds a page of operations.
///
/// # Errors
/// The store does not respond, or the search takes too long.
pub async fn find(
    store: &dyn Store,
    rules: &RuleSet,
    search: &OperationSearch,
    overdue: &Overdue,
) -> Result<OperationsDocument, StoreError> {
    let found = match (&search.transaction_id, &search.order_id) {
        (Some(id), _) => by_id(store, search, id, overdue).await,
        (None, Some(order_id)) => by_pasted_order(store, rules, search, order_id, overdue).await,
        (None, None) if rules.gateway.engine.is_remote() => remote(store, search).await,
        (None, None) => local(store, search, overdue).await,
    };
    let mut document = found.map_err(|error| match error {
        StoreError::TooLong => StoreError::Unavailable(format!("{error}; {NARROW}")),
        error @ (StoreError::Unavailable(_) | StoreError::Corrupt(_)) => error,
    })?;
    document.note = note(rules, search, &document);
    Ok(document)
}

/// Returns why a list lacks operations.
fn note(rules: &RuleSet, search: &OperationSearch, found: &OperationsDocument) -> Option<String> {
    let OperationSearch { query, order_id, transaction_id, .. } = search;
    let (is_remote, is_empty) = (rules.gateway.engine.is_remote(), found.operations.is_empty());
    let merchant = query.merchant.as_ref().and_then(|id| rules.merchants.get(id));
    let is_with_old_service = merchant.is_some_and(|one| matches!(one.v1.mode, Mode::Legacy | Mode::Shadow));
    let is_order_of_any = order_id.is_some() && transaction_id.is_none() && query.merchant.is_none();
    let notes = [
        (is_remote, REMOTE),
        (!is_remote && is_empty && is_with_old_service, NO_OPERATIONS),
        (is_order_of_any && is_empty && found.other_homes.is_empty(), OF_RULES_ALONE),
    ];
    let notes: Vec<_> = notes.into_iter().filter(|(holds, _)| *holds).map(|(_, note)| note).collect();
    (!notes.is_empty()).then(|| notes.join("; "))
}

async fn local(
    store: &dyn Store,
    search: &OperationSearch,
    overdue: &Overdue,
) -> Result<OperationsDocument, StoreError> {
    let limit = search.query.limit;
    // One more shows whether there is a next page.
    let query = OperationQuery { limit: limit + 1, ..search.query.clone() };
    let found = if search.needs_attention {
        store.needing_attention(query, overdue.late.clone(), overdue.lapsed).await?
    } else {
        store.operations(query, overdue.lapsed).await?
    };
    let placed = |listed: ListedOperation| {
        let attention = search.needs_attention.then(|| attention_reason(&listed).as_str());
        let id = listed.stored.operation.id.to_stored();
        (id, OperationDocument { attention, ..OperationDocument::of(listed) })
    };
    Ok(first_page(found.into_iter().map(placed).collect(), limit))
}

/// Returns why an operation is in the list of those that need attention. One that was given up may be late, too.
fn attention_reason(listed: &ListedOperation) -> AttentionReason {
    match &listed.stored.operation.state {
        State::Finished { .. } => AttentionReason::Contradicted,
        State::Pending if listed.is_given_up => AttentionReason::GivenUp,
        State::Pending => AttentionReason::Late,
    }
}

async fn remote(store: &dyn Store, search: &OperationSearch) -> Result<OperationsDocument, StoreError> {
    // Nothing of v2 is in the journal, and nothing of it is known to need attention.
    if search.needs_attention || search.query.is_v1 == Some(false) {
        return Ok(OperationsDocument::default());
    }
    let limit = search.query.limit;
    let found = store.newest_entries(OperationQuery { limit: limit + 1, ..search.query.clone() }).await?;
    Ok(first_page(found.iter().map(|entry| (entry.id.0, OperationDocument::of_entry(entry))).collect(), limit))
}

/// Returns the first page of what was found, which is ordered and has the ids by which pages continue.
fn first_page(mut found: Vec<(i64, OperationDocument)>, limit: usize) -> OperationsDocument {
    let has_more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| has_more).map(|(id, _)| id.to_string());
    let operations = found.into_iter().map(|(_, operation)| operation).collect();
    OperationsDocument { operations, next, ..OperationsDocument::default() }
}

async fn by_id(
    store: &dyn Store,
    search: &OperationSearch,
    id: &str,
    overdue: &Overdue,
) -> Result<OperationsDocument, StoreError> {
    let mut document = OperationsDocument::default();
    let own = match TransactionId::parse(id) {
        Ok(id) => store.listed(id, overdue.lapsed).await?,
        Err(_) => None,
    };
    let order_fits = |order_id: &OrderId| search.order_id.as_ref().is_none_or(|wanted| wanted == order_id);
    if let Some(listed) = own {
        if search.query.matches(&listed) && order_fits(&listed.stored.operation.order_id) {
            document.operations.push(OperationDocument::of(listed));
        }
    } else if let Some(entry) = store.entry_of_transaction(id).await?
        && matches(&search.query, &entry)
        && order_fits(&entry.create.order_id)
    {
        document.operations.push(OperationDocument::of_entry(&entry));
    }
    Ok(document)
}

/// Finds an order by its id, or where nothing has that id, by the id without the white space around it, which a paste brings
/// along.
async fn by_pasted_order(
    store: &dyn Store,
    rules: &RuleSet,
    search: &OperationSearch,
    order_id: &OrderId,
    overdue: &Overdue,
) -> Result<OperationsDocument, StoreError> {
    let found = by_order(store, rules, search, order_id, overdue).await?;
    let trimmed = OrderId::new(order_id.as_str().trim()).ok().filter(|trimmed| trimmed != order_id);
    match trimmed.filter(|_| found.operations.is_empty() && found.other_homes.is_empty()) {
        Some(trimmed) => by_order(store, rules, search, &trimmed, overdue).await,
        None => Ok(found),
    }
}

/// Finds an order at the merchant of the filter, or at every merchant of the rules.
async fn by_order(
    store: &dyn Store,
    rules: &RuleSet,
    search: &OperationSearch,
    order_id: &OrderId,
    overdue: &Overdue,
) -> Result<OperationsDocument, StoreError> {
    let query = &search.query;
    let mut merchants: Vec<MerchantId> = match &query.merchant {
        Some(merchant) => vec![merchant.clone()],
        None => rules.merchants.keys().cloned().collect(),
    };
    merchants.sort_unstable();
    let directions = [Direction::Payin, Direction::Payout];
    let wanted = directions.into_iter().filter(|one| query.direction.is_none_or(|only| only == *one));
    let wanted: Vec<_> = wanted.collect();
    let orders: Vec<_> = merchants.iter().flat_map(|id| wanted.iter().map(|one| (id.clone(), *one))).collect();
    let (mut found, mut other_homes) = (Vec::new(), Vec::new());
    for (place, home) in store.found_homes(&orders, order_id).await? {
        let Some((merchant, direction)) = orders.get(place) else { continue };
        match home {
            FoundHome::Operation(id) => {
                let listed = store.listed(id, overdue.lapsed).await?;
                let fits = listed.filter(|listed| query.matches(listed));
                found.extend(fits.map(|listed| (id.to_stored(), OperationDocument::of(listed))));
            }
            FoundHome::Entry(id) => {
                let is_later = query.after.is_none_or(|after| id.0 < after.to_stored());
                let fits = store.entry_of_id(id).await?.filter(|entry| is_later && matches(query, entry));
                found.extend(fits.map(|entry| (id.0, OperationDocument::of_entry(&entry))));
            }
            FoundHome::Other(home, since) => other_homes.push(OtherHome {
                merchant: merchant.to_string(),
                direction: direction.as_str(),
                home,
                since: rfc3339(since),
            }),
        }
    }
    // Ids ascend with time.
    found.sort_unstable_by_key(|(id, _)| Reverse(*id));
    Ok(OperationsDocument { other_homes, ..first_page(found, query.limit) })
}

/// Reports whether an entry matches a filter.
fn matches(query: &OperationQuery, entry: &JournalEntry) -> bool {
    let create = &entry.create;
    query.merchant.as_ref().is_none_or(|merchant| *merchant == create.merchant)
        && query.shop.as_ref().is_none_or(|shop| Some(shop.as_str()) == create.shop.as_deref())
        && query.direction.is_none_or(|direction| direction == create.direction)
        && query.status.is_none_or(|wanted| wanted == entry.status())
        && query.is_v1 != Some(false)
        && query.created_from.is_none_or(|from| create.created_at >= from)
        && query.created_to.is_none_or(|to| create.created_at < to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::tests::{World, id};

    /// The operation that a create's reply names.
    async fn listed(world: &World, reply: &str) -> ListedOperation {
        world.engine.store().listed(id(reply), None).await.unwrap().unwrap()
    }

    #[tokio::test]
    async fn an_operation_that_needs_attention_says_why() {
        let world = World::new();
        let [pending, failed] = ["10", "10.01"].map(|amount| format!(r#""order_id":"o-{amount}","amount":{amount}"#));
        let pending = listed(&world, &world.deposit(&pending).await.unwrap()).await;
        let failed = listed(&world, &world.deposit(&failed).await.unwrap()).await;
        assert_eq!(attention_reason(&failed), AttentionReason::Contradicted);
        assert_eq!(attention_reason(&pending), AttentionReason::Late);
        let given_up = ListedOperation { waits_for: Some(WaitsFor::Confirmation), is_given_up: true, ..pending };
        assert_eq!(attention_reason(&given_up), AttentionReason::GivenUp, "a resolution waits");
    }

    #[tokio::test]
    async fn an_order_that_is_nowhere_was_searched_at_the_merchants_of_the_rules_alone() {
        let world = World::new();
        world.deposit(r#""order_id":"o-1""#).await.unwrap();
        let (store, rules) = (&**world.engine.store(), world.rules());
        let note_of = async |order_id: &str, merchant: Option<&str>, transaction_id: Option<&str>| {
            let search = OperationSearch {
                order_id: Some(OrderId::new(order_id).unwrap()),
                transaction_id: transaction_id.map(str::to_owned),
                query: OperationQuery {
                    merchant: merchant.map(|id| MerchantId::new(id).unwrap()),
                    limit: 50,
                    ..OperationQuery::default()
                },
                ..OperationSearch::default()
            };
            find(store, &rules, &search, &Overdue::default()).await.unwrap().note
        };
        assert_eq!(note_of("o-2", None, None).await.as_deref(), Some(OF_RULES_ALONE));
        assert_eq!(note_of("o-1", None, None).await, None, "it was found");
        assert_eq!(note_of("o-2", Some("acme"), None).await, None, "that merchant was searched");
        assert_eq!(note_of("o-2", Some("removed"), None).await, None, "that one as well");
        assert_eq!(note_of("o-2", None, Some("7")).await, None, "no merchant was searched");
    }
}
