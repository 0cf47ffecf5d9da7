//! `paybridge callbacks`: lists, shows and resends callbacks, and sends samples.

mod resend;
mod sample;
mod table;

use std::io::Write;
use std::sync::Arc;

use super::args::{Callbacks, Format, ListCallbacks, ShowCallback, Which};
use super::outcome::{CliError, ExitOutcome, load, note_unknown, on_runtime, write_json};
use super::trail::CommandTrail;
use crate::callback::listing::{CallbackDetail, DEFAULT_STATES, Moment, Slice, pasted_order_id, write_cursor};
use crate::clock::{Clock, SystemClock, SystemRandomness};
use crate::domain::{MerchantId, UnixMillis};
use crate::rules::RuleSet;
use crate::store::{CallbackId, CallbackQuery, Outbox, Store, StoreAccess, open_beside};
use crate::store_settings::StoreSettings;

/// Runs the command, on the store that the rules name.
///
/// # Errors
/// The rules or the store cannot be used, or there is no such callback.
pub fn run(args: &Callbacks, out: &mut dyn Write, err: &mut dyn Write) -> ExitOutcome {
    let rules = match args {
        Callbacks::List(list) => &list.rules,
        Callbacks::Show(show) => &show.rules,
        Callbacks::Resend(resend) => &resend.rules,
        Callbacks::Sample(sample) => &sample.rules,
    };
    let rules = load(&rules.rules, err)?;
    note_unknown(&rules, filtered_merchant(args), err)?;
    on_runtime(async {
        // A sample needs no store.
        if let Callbacks::Sample(args) = args {
            return sample::run(&rules, args, out).await;
        }
        let access = if matches!(args, Callbacks::Resend(_)) { StoreAccess::Change } else { StoreAccess::Read };
        let store = open(&rules.gateway.store, access)?;
        let outcome = match args {
            Callbacks::List(args) => list(&*store, args, SystemClock.now(), out, err).await,
            Callbacks::Show(args) => show(&*store, &rules, args, SystemClock.now(), out).await,
            Callbacks::Resend(args) => {
                let trail = CommandTrail { trail: &*store, rules_version: &rules.version, clock: &SystemClock };
                resend::run(&*store, &rules, &trail, args, out, err).await
            }
            Callbacks::Sample(_) => Ok(()),
        };
        let closed = store.close().await.map_err(CliError::failed);
        outcome.and(closed)
    })
}

/// Returns the merchant whose callbacks alone a command is about.
const fn filtered_merchant(args: &Callbacks) -> Option<&MerchantId> {
    match args {
        Callbacks::List(list) => list.which.merchant.as_ref(),
        Callbacks::Resend(resend) => resend.merchant.as_ref(),
        Callbacks::Show(_) | Callbacks::Sample(_) => None,
    }
}

fn open(rules: &StoreSettings, access: StoreAccess) -> Result<Arc<dyn Store>, CliError> {
    open_beside(rules, access, Arc::new(SystemRandomness::default()), Arc::default()).map_err(CliError::failed)
}

async fn list(
    outbox: &dyn Outbox,
    args: &ListCallbacks,
    now: UnixMillis,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> ExitOutcome {
    // One extra row shows whether there are more.
    let mut query = CallbackQuery { after: args.after, limit: args.limit + 1, ..query(&args.which, now) };
    if let (Some(merchant), Some(order_id)) = (&query.merchant, query.order_id.take()) {
        query.order_id = Some(pasted_order_id(outbox, merchant, order_id).await?);
    }
    let slice = Slice::of(outbox.callbacks(query).await?, args.limit);
    match args.format {
        Format::Json => write_json(&slice.document(now), out)?,
        Format::Text => {
            table::list(&slice.callbacks, now, out)?;
            if slice.callbacks.is_empty() {
                writeln!(err, "no matching callbacks")?;
            }
            if let Some(next) = slice.next {
                writeln!(err, "there are more: --after {}", write_cursor(next))?;
            }
        }
    }
    Ok(())
}

fn query(which: &Which, now: UnixMillis) -> CallbackQuery {
    let before = |moment: Option<Moment>| moment.map(|moment| moment.before(now));
    let states = if which.states.is_empty() { DEFAULT_STATES.into() } else { which.states.clone() };
    CallbackQuery {
        states,
        merchant: which.merchant.clone(),
        order_id: which.order_id.clone(),
        since: before(which.since),
        until: before(which.until),
        after: None,
        limit: 0,
    }
}

async fn show(
    outbox: &dyn Outbox,
    rules: &RuleSet,
    args: &ShowCallback,
    now: UnixMillis,
    out: &mut dyn Write,
) -> ExitOutcome {
    let found = match CallbackId::parse(&args.id) {
        Some(id) => CallbackDetail::find(outbox, rules, id, now).await?,
        None => None,
    };
    let detail = found.ok_or_else(|| CliError::Failed(table::unknown(&args.id)))?;
    match args.format {
        Format::Json => write_json(&detail.document(now), out)?,
        Format::Text => table::detail(&detail.record, &detail.tries, now, out)?,
    }
    Ok(())
}
