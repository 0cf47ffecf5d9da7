//! `paybridge operations`: lists and shows operations, and does what operators do about them.

use std::borrow::Cow;
use std::io::Write;
use std::sync::Arc;

use super::args::{ConfirmOperation, Format, ListOperations, Operations, ResolveOperation, ShowOperation};
use super::columns::{aligned, cut, plain};
use super::outcome::{CliError, ExitOutcome, load, on_runtime, write_json};
use super::trail::{CommandTrail, outcome_of};
use crate::clock::{Clock, ClockJumps, SystemClock, SystemRandomness};
use crate::domain::TransactionId;
use crate::operations::{
    ActionRefusal, OperationDocument, OperationTimeline, Overdue, ask_result, confirm_result, find, new_resolution,
    resolve_result, timeline,
};
use crate::rules::{EngineRules, RuleSet};
use crate::store::{ActionRecord, ResolutionId, Store, open_beside};

/// Runs the command, on the store that the rules name.
///
/// # Errors
/// The rules or the store cannot be used, or the operation does not allow it.
pub fn run(args: &Operations, out: &mut dyn Write, err: &mut dyn Write) -> ExitOutcome {
    let rules = match args {
        Operations::List(list) => &list.rules,
        Operations::Show(show) => &show.rules,
        Operations::Ask(operation) | Operations::Acknowledge(operation) => &operation.rules,
        Operations::Resolve(resolve) => &resolve.operation.rules,
        Operations::Confirm(confirm) => &confirm.operation.rules,
    };
    let rules = load(&rules.rules, err)?;
    on_runtime(async {
        let settings = &rules.gateway.store;
        let store = open_beside(settings, Arc::new(SystemRandomness::default()), Arc::default());
        let store = store.map_err(CliError::failed)?;
        let outcome = match args {
            Operations::List(args) => list(&*store, &rules, args, out, err).await,
            Operations::Show(args) => show(&*store, &rules, args, out).await,
            Operations::Ask(_) | Operations::Resolve(_) | Operations::Confirm(_) | Operations::Acknowledge(_) => {
                act(&*store, &rules, args, out, err).await
            }
        };
        let closed = store.close().await.map_err(CliError::failed);
        outcome.and(closed)
    })
}

fn overdue(rules: &RuleSet) -> Overdue {
    Overdue::of(rules, &ClockJumps::new(Arc::new(SystemClock)))
}

const HEADINGS: [&str; 9] =
    ["TRANSACTION", "MERCHANT", "ORDER_ID", "DIRECTION", "SHOP", "AMOUNT", "STATUS", "WHY", "CREATED"];

async fn list(
    store: &dyn Store,
    rules: &RuleSet,
    args: &ListOperations,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> ExitOutcome {
    let search = args.filter().search(&args.after, args.limit).map_err(|error| CliError::Usage(error.to_string()))?;
    let found = find(store, rules, &search, &overdue(rules)).await.map_err(|error| {
        CliError::failed(format!("{error}; narrow the search: name a merchant, a day, or a status"))
    })?;
    if args.format == Format::Json {
        return write_json(&found, out);
    }
    for other in &found.other_homes {
        writeln!(err, "{other}")?;
    }
    if let Some(note) = found.note {
        writeln!(err, "note: {note}")?;
    }
    if found.operations.is_empty() {
        writeln!(err, "no matching operations")?;
        return Ok(());
    }
    let rows: Vec<_> = found.operations.iter().map(cells).collect();
    aligned(&HEADINGS.map(Cow::Borrowed), &rows, out)?;
    if let Some(next) = &found.next {
        writeln!(err, "there are more: --after {next}")?;
    }
    Ok(())
}

fn cells(operation: &OperationDocument) -> [Cow<'_, str>; 9] {
    let OperationDocument { amount, currency, .. } = operation;
    [
        operation.transaction_id.as_deref().map_or("-".into(), Into::into),
        operation.merchant.as_str().into(),
        cut(plain(&operation.order_id)),
        operation.direction.into(),
        operation.shop.as_deref().map_or("-".into(), |shop| cut(plain(shop))),
        format!("{amount} {currency}").into(),
        operation.status.into(),
        operation.cause.or(operation.waits_for).unwrap_or("-").into(),
        operation.created_at.as_str().into(),
    ]
}

async fn show(store: &dyn Store, rules: &RuleSet, args: &ShowOperation, out: &mut dyn Write) -> ExitOutcome {
    let found = timeline(store, rules, args.id.trim(), &overdue(rules), SystemClock.now()).await?;
    let found = found.ok_or_else(|| CliError::failed(ActionRefusal::Unknown.reason()))?;
    if args.format == Format::Json {
        return write_json(&found, out);
    }
    let OperationTimeline { operation, timeline, .. } = &found;
    let rows = HEADINGS.iter().zip(cells(operation)).map(|(name, value)| (name.to_lowercase(), value));
    let words = [("code", &operation.cause_code), ("text", &operation.cause_text)];
    let words = words.into_iter().filter_map(|(name, value)| Some((name.to_owned(), plain(value.as_deref()?))));
    for (name, value) in rows.chain(words) {
        writeln!(out, "{name:<15}{value}")?;
    }
    writeln!(out)?;
    for event in timeline {
        let detail = event.detail.as_deref().map(|detail| format!(" ({})", plain(detail))).unwrap_or_default();
        writeln!(out, "{}  {}{detail}", event.at, event.title)?;
    }
    Ok(())
}

/// Does what changes an operation, with its row in the audit trail.
async fn act(
    store: &dyn Store,
    rules: &RuleSet,
    args: &Operations,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> ExitOutcome {
    if matches!(rules.gateway.engine, EngineRules::Remote(_)) {
        return Err(CliError::failed("the engine is remote, and has the operations: this gateway cannot change them"));
    }
    let (kind, id, parameters) = requested(args);
    let id = TransactionId::parse(id.trim()).map_err(|_| CliError::failed(ActionRefusal::Unknown.reason()))?;
    if rules.gateway.admin.second_operator && matches!(args, Operations::Resolve(_) | Operations::Confirm(_)) {
        return Err(CliError::failed("admin.second_operator is set: resolve and confirm in the console"));
    }
    if let Operations::Resolve(ResolveOperation { status, reason, .. }) = args {
        // Before the row is written.
        new_resolution(id, (status, reason), "", SystemClock.now(), &SystemRandomness::default())
            .map_err(|error| CliError::Usage(error.to_string()))?;
    }
    let trail = CommandTrail { trail: store, rules_version: &rules.version, clock: &SystemClock };
    let action = trail.action(kind, &id.to_string(), parameters);
    let user = action.user.clone();
    let row = trail.begin(action).await?;
    let done = take_effect(store, rules, args, id, &user).await;
    trail.end(row, &outcome_of(&done, String::clone), err).await?;
    Ok(writeln!(out, "{}", done?)?)
}

/// Returns the kind of an action, its operation, and its parameters.
fn requested(args: &Operations) -> (&'static str, &str, Vec<(&'static str, Box<str>)>) {
    match args {
        Operations::Resolve(ResolveOperation { operation, status, reason }) => {
            let parameters = vec![("status", status.as_str().into()), ("reason", reason.as_str().into())];
            (ActionRecord::RESOLVE, &operation.id, parameters)
        }
        Operations::Confirm(ConfirmOperation { operation, resolution }) => {
            (ActionRecord::CONFIRM, &operation.id, vec![("resolution", resolution.as_str().into())])
        }
        Operations::Acknowledge(operation) => (ActionRecord::ACKNOWLEDGE, &operation.id, Vec::new()),
        Operations::Ask(operation) => (ActionRecord::ASK, &operation.id, Vec::new()),
        Operations::List(list) => (ActionRecord::ASK, &list.transaction_id, Vec::new()),
        Operations::Show(show) => (ActionRecord::ASK, &show.id, Vec::new()),
    }
}

async fn take_effect(
    store: &dyn Store,
    rules: &RuleSet,
    args: &Operations,
    id: TransactionId,
    user: &str,
) -> Result<String, CliError> {
    let (now, refused) = (SystemClock.now(), |refusal: ActionRefusal| CliError::failed(refusal.reason()));
    Ok(match args {
        Operations::Resolve(ResolveOperation { status, reason, .. }) => {
            let new = new_resolution(id, (status, reason), user, now, &SystemRandomness::default());
            let new = new.map_err(|error| CliError::Usage(error.to_string()))?;
            resolve_result(store.resolve(new).await?).map_err(refused)?;
            format!("the operation is {status}")
        }
        Operations::Confirm(ConfirmOperation { resolution, .. }) => {
            let unknown = || refused(ActionRefusal::Conflict("there is no such resolution".to_owned()));
            let number = TransactionId::parse(resolution.trim()).map_err(|_| unknown())?;
            let lapsed = overdue(rules).lapsed;
            let status = store.confirm(id, ResolutionId(number), user.into(), lapsed, now).await?;
            format!("the operation is {}", confirm_result(status).map_err(refused)?.as_str())
        }
        Operations::Acknowledge(_) if store.acknowledge(id, user.into(), now).await? => "acknowledged".to_owned(),
        Operations::Acknowledge(_) => return Err(CliError::failed("there is no report to acknowledge")),
        Operations::Ask(_) | Operations::List(_) | Operations::Show(_) => {
            ask_result(store.ask_again(id, now).await?).map_err(refused)?.to_owned()
        }
    })
}
