//! `paybridge callbacks resend`: queues callbacks again, in small commits. Leaves a row in the audit trail for each id,
//! or one for all failed callbacks, or all pending ones of a receiver.

use std::io::Write;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::super::args::ResendCallbacks;
use super::super::columns::age;
use super::super::outcome::{CliError, ExitOutcome, ok_if, plural};
use super::super::progress::Progress;
use super::super::trail::{CommandTrail, outcome_of};
use super::table::{self, unknown};
use crate::callback::listing::Moment;
use crate::callback::resend::{PendingOfReceiver, Resending};
use crate::clock::Clock;
use crate::domain::wide;
use crate::rules::RuleSet;
use crate::store::{
    ActionRecord, CallbackId, CallbackQuery, CallbackRecord, CallbackState, Outbox, OutboxSize, Resent,
};

/// How many callbacks one commit queues.
const SLICE: usize = 500;

/// How often `--wait` checks whether a callback was attempted.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

pub(super) async fn run(
    outbox: &dyn Outbox,
    rules: &RuleSet,
    trail: &CommandTrail<'_>,
    args: &ResendCallbacks,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> ExitOutcome {
    if args.failed {
        return failed(outbox, trail, args, out, err).await;
    }
    if let Some(receiver) = args.receiver.clone().filter(|_| args.pending) {
        let pending = PendingOfReceiver { receiver, merchant: args.merchant.clone() };
        let query = pending.query(rules, SLICE);
        return all_of(outbox, Resending::Pending(pending, query), None, trail, out, err).await;
    }
    let mut waiting = Vec::new();
    let mut done = true;
    for text in &args.ids {
        let known = match CallbackId::parse(text) {
            Some(id) => outbox.callback(id).await?.map(|(before, _)| (id, before)),
            None => None,
        };
        let Some((id, before)) = known else {
            writeln!(err, "{}", unknown(text))?;
            done = false;
            continue;
        };
        match one(outbox, trail, id, err).await? {
            Resent::Queued if args.wait.is_none() => writeln!(out, "{id} queued")?,
            Resent::UnderWay if args.wait.is_none() => {
                writeln!(err, "{id} is being sent at this moment and was not queued")?;
                done = false;
            }
            Resent::Queued | Resent::UnderWay => waiting.push((id, before.tries)),
            // It existed a moment ago: it was removed in between.
            Resent::Unknown => {
                writeln!(err, "{}", unknown(text))?;
                done = false;
            }
        }
    }
    if let Some(span) = args.wait {
        done &= wait(outbox, waiting, span, trail.clock, out, err).await?;
    }
    ok_if(done)
}

/// Queues one callback.
async fn one(
    outbox: &dyn Outbox,
    trail: &CommandTrail<'_>,
    id: CallbackId,
    err: &mut dyn Write,
) -> Result<Resent, CliError> {
    let action = trail.action(ActionRecord::RESEND_CALLBACK, &id.to_string(), Vec::new());
    let action = trail.begin(action).await?;
    let resent = outbox.resend_callback(id, trail.clock.now()).await.map_err(CliError::from);
    let stated = |resent: &Resent| match resent {
        Resent::Queued => "queued",
        Resent::UnderWay => "not queued: it was being sent at that moment",
        Resent::Unknown => "not queued: there was no such callback",
    };
    trail.end(action, &outcome_of(&resent, |resent| stated(resent).to_owned()), err).await?;
    resent
}

/// Queues all failed callbacks that match, newest first. A callback that fails again meanwhile is not queued twice.
async fn failed(
    outbox: &dyn Outbox,
    trail: &CommandTrail<'_>,
    args: &ResendCallbacks,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> ExitOutcome {
    let now = trail.clock.now();
    let before = |moment: Option<Moment>| moment.map(|moment| moment.before(now));
    let query = CallbackQuery {
        states: vec![CallbackState::Failed],
        merchant: args.merchant.clone(),
        order_id: None,
        since: before(args.since),
        until: Some(before(args.until).unwrap_or(now).min(now)),
        after: None,
        limit: SLICE,
    };
    let all = args.merchant.is_none() && args.since.is_none() && args.until.is_none();
    let counted = if all { Some(outbox.outbox_size().await?.failed) } else { None };
    let total = counted.filter(|failed| *failed < u64::from(OutboxSize::MAX_COUNTED));
    all_of(outbox, Resending::Failed(query), total, trail, out, err).await
}

/// Queues the callbacks of all slices, and leaves a row.
async fn all_of(
    outbox: &dyn Outbox,
    resending: Resending,
    total: Option<u64>,
    trail: &CommandTrail<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> ExitOutcome {
    let (kind, target, parameters) = resending.action();
    let action = trail.begin(trail.action(kind, &target, parameters)).await?;
    let resent = in_slices(outbox, resending, total, trail.clock, err).await;
    trail.end(action, &outcome_of(&resent, |resent| queued(*resent)), err).await?;
    Ok(writeln!(out, "{}", queued(resent?))?)
}

fn queued(count: u64) -> String {
    format!("{count} callback{} queued", plural(usize::try_from(count).unwrap_or(usize::MAX)))
}

/// Queues callbacks in slices, and returns how many.
async fn in_slices(
    outbox: &dyn Outbox,
    mut resending: Resending,
    total: Option<u64>,
    clock: &dyn Clock,
    err: &mut dyn Write,
) -> Result<u64, CliError> {
    let mut progress = Progress::start("resending", "callbacks", total);
    let mut resent: u64 = 0;
    loop {
        let (count, last) = resending.next_slice(outbox, clock.now()).await.map_err(|error| {
            CliError::failed(format!(
                "{error}\nso far: {resent} queued; run the command again to continue: queued callbacks stay queued"
            ))
        })?;
        resent += wide(count);
        progress.at(resent, err);
        if last.is_none() {
            return Ok(resent);
        }
    }
}

/// Waits until each callback has more attempts than before, and prints the results. Returns whether all were delivered.
async fn wait(
    outbox: &dyn Outbox,
    mut waiting: Vec<(CallbackId, u32)>,
    span: Duration,
    clock: &dyn Clock,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<bool, CliError> {
    let started = Instant::now();
    let mut delivered = true;
    loop {
        let mut left = Vec::new();
        for (id, tries) in waiting {
            match outbox.callback(id).await? {
                Some((callback, _)) if callback.tries > tries => {
                    delivered &= callback.state == CallbackState::Delivered;
                    writeln!(out, "{}", reported(&callback, clock))?;
                }
                Some(_) => left.push((id, tries)),
                None => {
                    delivered = false;
                    writeln!(err, "{}", unknown(id))?;
                }
            }
        }
        waiting = left;
        let waited = started.elapsed();
        if waiting.is_empty() || waited >= span {
            break;
        }
        sleep(POLL_INTERVAL.min(span.saturating_sub(waited))).await;
    }
    for (id, _) in &waiting {
        writeln!(out, "{id} not tried yet; it stays queued")?;
    }
    Ok(delivered && waiting.is_empty())
}

/// Describes the result of the last attempt.
fn reported(callback: &CallbackRecord, clock: &dyn Clock) -> String {
    let (id, now) = (callback.id, clock.now());
    let last = callback.last.as_ref().map_or_else(|| "-".to_owned(), table::outcome);
    match callback.state {
        CallbackState::Delivered | CallbackState::Failed => format!("{id} {}: {last}", callback.state.as_str()),
        CallbackState::Pending if callback.due <= now => format!("{id} tried: {last}; again now"),
        CallbackState::Pending => format!("{id} tried: {last}; again in {}", age(now.until(callback.due))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::{Arguments, Callbacks, Command};
    use crate::domain::MerchantId;
    use crate::engine::tests::World;
    use crate::store::{ActionQuery, CallbackClaim, CallbackNext, CallbackTarget, CallbackTry, TryOutcome};
    use clap::Parser;
    use futures_util::future::join_all;

    /// Runs a command line; returns whether it succeeded, and its output.
    async fn ran(world: &World, line: &str) -> (bool, String, String) {
        let words = ["paybridge", "callbacks", "resend"].into_iter().chain(line.split_whitespace());
        let Command::Callbacks(Callbacks::Resend(args)) = Arguments::try_parse_from(words).unwrap().command else {
            panic!("{line}");
        };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let store = &**world.engine.store();
        let trail = CommandTrail { trail: store, rules_version: "v", clock: &*world.clock };
        let done = run(store, &world.rules(), &trail, &args, &mut out, &mut err).await.is_ok();
        (done, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
    }

    /// Attempts the callbacks that are due, 100 at most, as a gateway would.
    async fn attempt_due(world: &World, status: u16, next: CallbackNext) -> usize {
        let (store, now) = (world.engine.store(), world.clock.now());
        let shares = vec![(CallbackTarget::new(&MerchantId::new("acme").unwrap(), "https://a.example:443"), 100)];
        let claim = CallbackClaim { shares, now, lease_until: now.plus(Duration::from_mins(1)) };
        let jobs = store.claim_callbacks(claim).await.unwrap();
        let attempts = jobs.iter().map(|job| {
            let outcome = TryOutcome::Status(status);
            let tried = CallbackTry { at: now, duration: Duration::from_millis(7), outcome };
            store.callback_tried(job.lease(), tried, next)
        });
        for attempt in join_all(attempts).await {
            attempt.unwrap();
        }
        jobs.len()
    }

    /// The audit trail: kinds of action, targets, parameters, outcomes.
    async fn trail(world: &World) -> Vec<[String; 4]> {
        let all = ActionQuery { limit: 100, ..ActionQuery::default() };
        let rows = world.engine.store().actions(all).await.unwrap();
        assert!(rows.iter().all(|row| row.user.starts_with("cli:") && &*row.rules_version == "v"));
        rows.into_iter()
            .map(|row| [row.action, row.target, row.parameters, row.end.unwrap().outcome].map(String::from))
            .collect()
    }

    #[tokio::test]
    async fn callbacks_are_queued_by_their_ids() {
        let world = World::new();
        let id = world.failed_callback("o1").await;
        let line = format!("{id}\n");
        let queued = (true, format!("{id} queued\n"), String::new());
        assert_eq!(ran(&world, &line).await, queued);
        assert_eq!(ran(&world, &line).await, queued, "repeating is harmless");
        let unknown = "cb_00000000000000010000000000000001";
        let (done, out, err) = ran(&world, &format!("{unknown} {id}")).await;
        assert!(!done && err.contains(unknown), "{err}");
        assert_eq!(out, format!("{id} queued\n"), "the other one is queued");
        assert_eq!(attempt_due(&world, 204, CallbackNext::Delivered).await, 1);
        assert_eq!(ran(&world, &line).await, queued, "delivered callbacks are queued too");
        let row = ["callbacks.resend", &id.to_string(), "{}", "queued"].map(str::to_owned);
        assert_eq!(trail(&world).await, vec![row; 4], "an unknown id changes nothing");
    }

    #[tokio::test]
    async fn failed_callbacks_are_queued_by_filters() {
        let world = World::new();
        for order in ["o1", "o2", "o3"] {
            world.failed_callback(order).await;
            world.clock.advance(Duration::from_mins(1));
        }
        let queued = async |line: &str| ran(&world, line).await.1;
        assert_eq!(queued("--failed --merchant other").await, "0 callbacks queued\n");
        assert_eq!(queued("--failed --since 61s").await, "1 callback queued\n");
        assert_eq!(queued("--failed --until 150s").await, "1 callback queued\n");
        assert_eq!(queued("--failed").await, "1 callback queued\n");
        assert_eq!(queued("--failed").await, "0 callbacks queued\n");
        // Those of one millisecond are in no order.
        let rows = trail(&world).await;
        let common = ["callbacks.resend_failed", "failed callbacks"];
        assert!(rows.len() == 5 && rows.iter().all(|row| row[..2] == common), "{rows:?}");
        for (parameters, outcome) in [
            (r#"{"merchant":"other","until":""#, "0 callbacks queued"),
            (r#"{"since":"20"#, "1 callback queued"),
            (r#"{"until":""#, "0 callbacks queued"),
        ] {
            assert!(rows.iter().any(|row| row[2].starts_with(parameters) && row[3] == outcome), "{rows:?}");
        }
        assert_eq!(attempt_due(&world, 204, CallbackNext::Delivered).await, 3);
    }

    #[tokio::test]
    async fn pending_callbacks_of_a_receiver_are_due_now() {
        let world = World::new();
        for order in ["o1", "o2"] {
            world.failed_callback(order).await;
        }
        assert_eq!(ran(&world, "--failed").await.1, "2 callbacks queued\n");
        let later = CallbackNext::RetryAt(world.clock.now().plus(Duration::from_hours(1)));
        assert_eq!(attempt_due(&world, 503, later).await, 2);
        assert_eq!(attempt_due(&world, 503, later).await, 0, "both wait");
        for (line, count) in [
            ("--pending --receiver https://b.example", 0),
            ("--pending --receiver https://a.example --merchant other", 0),
            ("--pending --receiver https://A.example/ --merchant acme", 2),
            ("--pending --receiver https://a.example:443", 2),
        ] {
            assert_eq!(ran(&world, line).await.1, format!("{count} callbacks queued\n"), "{line}");
        }
        let rows = trail(&world).await;
        let row = |receiver: &str, parameters: &str, count| {
            let outcome = format!("{count} callbacks queued");
            ["callbacks.resend_pending".to_owned(), receiver.to_owned(), parameters.to_owned(), outcome]
        };
        for row in [
            row("https://b.example:443", "{}", 0),
            row("https://a.example:443", r#"{"merchant":"other"}"#, 0),
            row("https://a.example:443", r#"{"merchant":"acme"}"#, 2),
            row("https://a.example:443", "{}", 2),
        ] {
            assert!(rows.contains(&row), "{row:?}: {rows:?}");
        }
        assert_eq!(attempt_due(&world, 204, CallbackNext::Delivered).await, 2);
    }

    #[tokio::test]
    async fn several_slices_are_queued() {
        let world = World::new();
        // Created FAILED, all at once: each has a callback.
        let orders: Vec<_> = (0..=SLICE).map(|number| format!(r#""order_id":"o{number}","amount":10.01"#)).collect();
        for created in join_all(orders.iter().map(|order| world.deposit(order))).await {
            created.unwrap();
        }
        while attempt_due(&world, 410, CallbackNext::Failed).await > 0 {}
        assert_eq!(ran(&world, "--failed").await.1, format!("{} callbacks queued\n", SLICE + 1));
    }

    #[tokio::test]
    async fn waiting_shows_the_results() {
        let world = World::new();
        let id = world.failed_callback("o1").await;
        for (status, next, expected) in [
            (204, CallbackNext::Delivered, "delivered: 204"),
            (410, CallbackNext::Failed, "failed: 410"),
            (503, CallbackNext::RetryAt(world.clock.now().plus(Duration::from_secs(5))), "tried: 503; again in 5s"),
        ] {
            let line = format!("{id} --wait 1m");
            let (ended, ()) = tokio::join!(ran(&world, &line), async {
                while attempt_due(&world, status, next).await == 0 {
                    tokio::task::yield_now().await;
                }
            });
            assert_eq!(ended, (status == 204, format!("{id} {expected}\n"), String::new()));
        }
        let (done, out, _) = ran(&world, &format!("{id} --wait 1ms")).await;
        assert_eq!((done, out), (false, format!("{id} not tried yet; it stays queued\n")));
    }
}
