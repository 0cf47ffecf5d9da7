//! The words of what operators do about an operation, for the console, the API and the command line.

use crate::clock::Random;
use crate::domain::{Operation, Outcome, ProviderKind, State, Status, TransactionId, UnixMillis};
use crate::error::RequestError;
use crate::rules::RuleSet;
use crate::store::{AskOutcome, ConfirmOutcome, NewResolution, ResolutionId, ResolveOutcome, Store, StoreError};
use crate::telemetry::without_cards;

/// Why an action had no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ActionRefusal {
    /// There is no such operation.
    Unknown,
    /// Its state does not allow it.
    Conflict(String),
    /// The same was done a moment ago.
    TooSoon,
    /// The operator may not do it.
    Forbidden(&'static str),
    /// The engine is remote: it alone can do this.
    Remote,
}

impl ActionRefusal {
    /// Returns the reason, as a part of a sentence.
    #[must_use]
    pub fn reason(&self) -> &str {
        match self {
            Self::Unknown => "there is no such operation",
            Self::Conflict(reason) => reason,
            Self::TooSoon => "an operator had its provider called less than ten seconds ago",
            Self::Forbidden(reason) => reason,
            Self::Remote => "the engine is remote, and has the operations: this gateway cannot change them",
        }
    }
}

/// Reads the id of an operation that operators can change: one of this gateway's engine.
///
/// # Errors
/// The engine is remote, or no operation has such an id.
pub fn own_id(rules: &RuleSet, id: &str) -> Result<TransactionId, ActionRefusal> {
    if rules.gateway.engine.is_remote() {
        return Err(ActionRefusal::Remote);
    }
    TransactionId::parse(id).map_err(|_| ActionRefusal::Unknown)
}

fn finished(status: Status) -> ActionRefusal {
    ActionRefusal::Conflict(format!("the operation has its result: {}", status.as_str()))
}

/// Has the provider of an operation called again. Returns what is done, or why nothing was.
///
/// # Errors
/// The store does not respond.
pub async fn ask(
    store: &dyn Store,
    rules: &RuleSet,
    id: TransactionId,
    at: UnixMillis,
) -> Result<Result<&'static str, ActionRefusal>, StoreError> {
    let found = store.by_id(id).await?.map(|stored| stored.operation);
    if found.is_some_and(|operation| operation.state == State::Pending && !has_provider(rules, &operation)) {
        return Ok(Err(ActionRefusal::Conflict(ProviderKind::NOT_GIVEN.to_owned())));
    }
    Ok(match store.ask_again(id, at).await? {
        AskOutcome::Due => Ok("the provider is called now"),
        AskOutcome::UnderWay => Ok("the provider is being called at this moment"),
        AskOutcome::TooSoon => Err(ActionRefusal::TooSoon),
        AskOutcome::Finished(status) => Err(finished(status)),
        AskOutcome::Unknown => Err(ActionRefusal::Unknown),
    })
}

/// Acknowledges the report that contradicts an operation's result, or returns why not.
///
/// # Errors
/// The store does not respond.
pub async fn acknowledge(
    store: &dyn Store,
    id: TransactionId,
    user: Box<str>,
    at: UnixMillis,
) -> Result<Result<(), ActionRefusal>, StoreError> {
    if store.acknowledge(id, user, at).await? {
        return Ok(Ok(()));
    }
    let none = || ActionRefusal::Conflict("there is no report to acknowledge".to_owned());
    Ok(Err(store.by_id(id).await?.map_or(ActionRefusal::Unknown, |_| none())))
}

/// Reports whether the rules give an operation's shop the kind of provider that it was created for.
pub(super) fn has_provider(rules: &RuleSet, operation: &Operation) -> bool {
    rules.shops.get(&operation.shop).is_some_and(|shop| shop.provider.kind() == operation.provider)
}

/// Reports whether a resolution waits for another operator.
///
/// # Errors
/// Nothing was done.
pub fn resolve_result(outcome: ResolveOutcome) -> Result<bool, ActionRefusal> {
    match outcome {
        ResolveOutcome::Resolved => Ok(false),
        ResolveOutcome::Waits => Ok(true),
        ResolveOutcome::Finished(status) => Err(finished(status)),
        ResolveOutcome::Unknown => Err(ActionRefusal::Unknown),
    }
}

/// Returns the result of an operation whose resolution was confirmed.
///
/// # Errors
/// Nothing was done.
pub fn confirm_result(outcome: ConfirmOutcome) -> Result<Status, ActionRefusal> {
    match outcome {
        ConfirmOutcome::Resolved(status) => Ok(status),
        ConfirmOutcome::SameOperator => {
            Err(ActionRefusal::Forbidden("another operator than the one that resolved it has to confirm"))
        }
        ConfirmOutcome::NotWaiting => {
            Err(ActionRefusal::Conflict("this resolution does not wait for a confirmation".to_owned()))
        }
        ConfirmOutcome::Finished(status) => Err(finished(status)),
        ConfirmOutcome::Unknown => Err(ActionRefusal::Unknown),
    }
}

/// The most characters of a reason.
const MAX_REASON: usize = 500;

/// Reads a resolution.
///
/// # Errors
/// The status or the reason is wrong.
pub fn new_resolution(
    transaction_id: TransactionId,
    (status, reason): (&str, &str),
    user: &str,
    at: UnixMillis,
    random: &dyn Random,
) -> Result<NewResolution, RequestError> {
    let outcome = match status {
        "SUCCESS" => Outcome::Success { payer: None },
        "FAILED" => Outcome::Failed,
        _ => return Err(RequestError::member("status", "must be SUCCESS or FAILED")),
    };
    let length = reason.chars().count();
    if !(1..=MAX_REASON).contains(&length) || reason.trim().is_empty() {
        return Err(RequestError::member("reason", "must be 1 to 500 characters"));
    }
    if reason.chars().any(char::is_control) {
        return Err(RequestError::member("reason", "must not contain control characters"));
    }
    Ok(NewResolution {
        id: ResolutionId::draw(at, random),
        transaction_id,
        outcome,
        reason: without_cards(reason).into_owned().into(),
        user: user.into(),
        at,
        needs_confirmation: false,
    })
}
