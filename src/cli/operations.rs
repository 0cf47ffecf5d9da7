//! `paybridge operations`: lists and shows operations, and does what operators do about them.

use std::borrow::Cow;
use std::io::Write;
use std::sync::Arc;

use super::args::{
    ConfirmOperation, Format, ListOperations, OperationArg, Operations, ResolveOperation, ShowOperation,
};
use super::columns::{aligned, cut, plain};
use super::outcome::{CliError, ExitOutcome, load, note_unknown, on_runtime, write_json};
use super::trail::{CommandTrail, outcome_of, user};
use crate::clock::{Clock, ClockJumps, SystemClock, SystemRandomness};
use crate::domain::TransactionId;
use crate::error::RequestError;
use crate::operations::{
    self, ActionRefusal, OperationDocument, OperationTimeline, Overdue, confirm_result, find, new_resolution, own_id,
    resolve_result, timeline,
};
use crate::rules::RuleSet;
use crate::store::{ActionRecord, ResolutionId, Store, StoreAccess, open_beside};

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
    let access = match args {
        Operations::List(_) | Operations::Show(_) => StoreAccess::Read,
        Operations::Ask(_) | Operations::Resolve(_) | Operations::Confirm(_) | Operations::Acknowledge(_) => {
            check_read_only(&rules)?;
            StoreAccess::Change
        }
    };
    on_runtime(async {
        let settings = &rules.gateway.store;
        let store = open_beside(settings, access, Arc::new(SystemRandomness::default()), Arc::default());
        let store = store.map_err(CliError::failed)?;
        let command = OperationsCommand { store: &*store, rules: &rules, out, err };
        let outcome = match args {
            Operations::List(args) => command.list(args).await,
            Operations::Show(args) => command.show(args).await,
            Operations::Ask(args) => command.ask(args).await,
            Operations::Resolve(args) => command.resolve(args).await,
            Operations::Confirm(args) => command.confirm(args).await,
            Operations::Acknowledge(args) => command.acknowledge(args).await,
        };
        let closed = store.close().await.map_err(CliError::failed);
        outcome.and(closed)
    })
}

/// Refuses every action, as the admin listener does.
fn check_read_only(rules: &RuleSet) -> ExitOutcome {
    let refusal = "admin.read_only is set: the command line changes no operation either";
    if rules.gateway.admin.read_only { Err(CliError::failed(refusal)) } else { Ok(()) }
}

fn overdue(rules: &RuleSet) -> Overdue {
    Overdue::of(rules, &ClockJumps::new(Arc::new(SystemClock)))
}

const HEADINGS: [&str; 9] =
    ["TRANSACTION", "MERCHANT", "ORDER_ID", "DIRECTION", "SHOP", "AMOUNT", "STATUS", "WHY", "CREATED"];

struct OperationsCommand<'a> {
    store: &'a dyn Store,
    rules: &'a RuleSet,
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
}

impl OperationsCommand<'_> {
    async fn list(self, args: &ListOperations) -> ExitOutcome {
        let Self { store, rules, out, err } = self;
        let search = args.filter().search(&args.after, args.limit).map_err(|error| usage(&error))?;
        note_unknown(rules, args.merchant.as_ref(), err)?;
        let found = find(store, rules, &search, &overdue(rules)).await?;
        if args.format == Format::Json {
            return write_json(&found, out);
        }
        for other in &found.other_homes {
            writeln!(err, "{other}")?;
        }
        if let Some(note) = &found.note {
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

    async fn show(self, args: &ShowOperation) -> ExitOutcome {
        let Self { store, rules, out, .. } = self;
        let found = timeline(store, rules, args.id.trim(), &overdue(rules), SystemClock.now()).await?;
        let found = found.ok_or(ActionRefusal::Unknown)?;
        if args.format == Format::Json {
            return write_json(&found, out);
        }
        let OperationTimeline { operation, waiting, timeline, .. } = &found;
        let rows = HEADINGS.iter().zip(cells(operation)).map(|(name, value)| (name.to_lowercase(), value));
        let words = [("code", &operation.cause_code), ("text", &operation.cause_text)];
        let words = words.into_iter().filter_map(|(name, value)| Some((name.to_owned(), plain(value.as_deref()?))));
        let resolution = waiting.as_ref().map(|waiting| ("resolution".to_owned(), plain(&waiting.resolution)));
        for (name, value) in rows.chain(words).chain(resolution) {
            writeln!(out, "{name:<15}{value}")?;
        }
        writeln!(out)?;
        for event in timeline {
            let detail = event.detail.as_deref().map(|detail| format!(" ({})", plain(detail))).unwrap_or_default();
            writeln!(out, "{}  {}{detail}", event.at, event.title)?;
        }
        Ok(())
    }

    async fn ask(self, args: &OperationArg) -> ExitOutcome {
        let (store, rules, id) = (self.store, self.rules, self.id(args)?);
        let ask = async { Ok(operations::ask(store, rules, id, SystemClock.now()).await??.to_owned()) };
        self.act((ActionRecord::ASK, id, Vec::new()), ask).await
    }

    async fn resolve(self, args: &ResolveOperation) -> ExitOutcome {
        let (store, id) = (self.store, self.id(&args.operation)?);
        self.check_second_operator()?;
        let (sent, random) = ((&*args.status, &*args.reason), SystemRandomness::default());
        let new = new_resolution(id, sent, &user(), SystemClock.now(), &random).map_err(|error| usage(&error))?;
        let parameters = vec![("status", args.status.as_str().into()), ("reason", args.reason.as_str().into())];
        let resolve = async {
            resolve_result(store.resolve(new).await?)?;
            Ok(format!("the operation is {}", args.status))
        };
        self.act((ActionRecord::RESOLVE, id, parameters), resolve).await
    }

    async fn confirm(self, args: &ConfirmOperation) -> ExitOutcome {
        let (store, id, lapsed) = (self.store, self.id(&args.operation)?, overdue(self.rules).lapsed);
        self.check_second_operator()?;
        let parameters = vec![("resolution", args.resolution.as_str().into())];
        let confirm = async {
            let unknown = |_| ActionRefusal::Conflict("there is no such resolution".to_owned());
            let number = ResolutionId(TransactionId::parse(args.resolution.trim()).map_err(unknown)?);
            let status = store.confirm(id, number, user().into(), lapsed, SystemClock.now()).await?;
            Ok(format!("the operation is {}", confirm_result(status)?.as_str()))
        };
        self.act((ActionRecord::CONFIRM, id, parameters), confirm).await
    }

    async fn acknowledge(self, args: &OperationArg) -> ExitOutcome {
        let (store, id) = (self.store, self.id(args)?);
        let acknowledge = async {
            operations::acknowledge(store, id, user().into(), SystemClock.now()).await??;
            Ok("acknowledged".to_owned())
        };
        self.act((ActionRecord::ACKNOWLEDGE, id, Vec::new()), acknowledge).await
    }

    fn id(&self, args: &OperationArg) -> Result<TransactionId, CliError> {
        Ok(own_id(self.rules, args.id.trim())?)
    }

    /// Refuses what two operators have to do: users of a shell could be one person.
    fn check_second_operator(&self) -> ExitOutcome {
        let refusal = "admin.second_operator is set: resolve and confirm in the console";
        if self.rules.gateway.admin.second_operator { Err(CliError::failed(refusal)) } else { Ok(()) }
    }

    /// Writes an action's row in the audit trail, lets it take effect, completes the row, and prints what was done.
    async fn act(
        self,
        (kind, id, parameters): (&'static str, TransactionId, Vec<(&'static str, Box<str>)>),
        effect: impl Future<Output = Result<String, CliError>>,
    ) -> ExitOutcome {
        let trail = CommandTrail { trail: self.store, rules_version: &self.rules.version, clock: &SystemClock };
        let row = trail.begin(trail.action(kind, &id.to_string(), parameters)).await?;
        let done = effect.await;
        trail.end(row, &outcome_of(&done, String::clone), self.err).await?;
        Ok(writeln!(self.out, "{}", done?)?)
    }
}

fn usage(error: &RequestError) -> CliError {
    CliError::Usage(error.to_string())
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
        operation.attention.or(operation.cause).or(operation.waits_for).unwrap_or("-").into(),
        operation.created_at.as_str().into(),
    ]
}
