//! Damaged rows: what an audit has to find in every database.

use std::time::Duration;

use super::{
    CARD, NOW, PAYER, created, deposit, engine_answer, journaled, journaled_in_each_state, merchant, order,
    pending_create, withdrawal,
};
use crate::domain::{
    AccountNumber, Amount, CallbackSender, CallbackUrl, Currency, CustomerAccountId, Outcome, Preparation, UnixDay,
    UnixMillis,
};
use crate::store::{
    Audit, CallbackClaim, CallbackNext, CallbackTarget, CallbackTry, DailyLimit, JobEnd, PendingCreate, ResultChange,
    ResultSource, SchemaFields, Store, TryOutcome,
};

/// Creates one operation of each kind, one entry in each state, and callbacks of both, named by their `order_id`.
pub(in crate::store) async fn fill(store: &dyn Store) {
    operations(store).await;
    announced(store).await;
    journaled_in_each_state(store, "silent").await;
    let second = journaled(store, pending_create("bolt", "second")).await;
    store.answer(second, engine_answer(2)).await.unwrap().unwrap();
    let opening = [("EUR", 100), ("USD", 200)]
        .map(|(code, amount)| (Currency::new(code).unwrap(), Amount::from_hundredths(amount).unwrap()));
    store.open_ledger(&merchant("dora"), opening.into(), NOW).await.unwrap();
}

async fn operations(store: &dyn Store) {
    let mut first = deposit("acme", "waiting");
    first.opening = Some([(Currency::new("EUR").unwrap(), Amount::from_hundredths(100).unwrap())].into());
    first.comparison.kept = SchemaFields::Names(["a".into()].into());
    let waiting = created(store, first).await;
    store.prepare(waiting, Preparation::Stopped, JobEnd::CustomerAwaited, NOW).await.unwrap();
    let mut held = withdrawal("acme", "held");
    held.provider_job = Some(NOW);
    created(store, held).await;
    for (text, outcome) in [("taken", Outcome::Success { payer: None }), ("released", Outcome::Failed)] {
        let mut draft = withdrawal("acme", text);
        draft.operation.customer_account_id = Some(CustomerAccountId(70));
        draft.daily_limit = Some(DailyLimit { day: UnixDay(20_000), operations: Some(9), amount: None });
        let id = created(store, draft).await;
        store.complete(id, outcome, ResultSource::PROVIDER, NOW).await.unwrap();
    }
    let mut paid = deposit("acme", "paid");
    paid.v1 = Some(CallbackSender::Directly);
    let paid = created(store, paid).await;
    let payer = Some(AccountNumber::new(PAYER).unwrap());
    store.complete(paid, Outcome::Success { payer }, ResultSource::PROVIDER, NOW).await.unwrap();
}

async fn announced(store: &dyn Store) {
    let mut relayed = pending_create("acme", "announced");
    relayed.callback_url = Some(CallbackUrl::new_allowing_http("https://acme.example/v1").unwrap());
    for text in ["announced", "ready"] {
        let entry = journaled(store, PendingCreate { order_id: order(text), ..relayed.clone() }).await;
        store.relayed(entry.id, NOW).await.unwrap();
    }
    let claim = CallbackClaim {
        shares: [CallbackTarget::ENGINE, "https://acme.example:443"]
            .map(|origin| (CallbackTarget::new(&merchant("acme"), origin), 9))
            .into(),
        now: NOW,
        lease_until: UnixMillis(NOW.0 + 1000),
    };
    for job in store.claim_callbacks(claim).await.unwrap() {
        let of = match &job.change {
            ResultChange::Operation(stored) => stored.operation.order_id.as_str(),
            ResultChange::Entry(entry) => entry.create.order_id.as_str(),
        };
        let tried = |outcome| CallbackTry { at: NOW, duration: Duration::from_millis(7), outcome };
        let answered = |millis| CallbackTry { at: UnixMillis(NOW.0 + millis), ..tried(TryOutcome::Status(200)) };
        match of {
            "ready" => store.callback_ready(job.id, NOW).await.unwrap(),
            "taken" => {
                for (millis, next) in (0..).zip([CallbackNext::RetryAt(NOW), CallbackNext::Delivered]) {
                    store.callback_tried(job.lease(), answered(millis), next).await.unwrap();
                }
            }
            "released" => {
                let outcome = TryOutcome::Error("refused".into());
                store.callback_tried(job.lease(), tried(outcome), CallbackNext::Failed).await.unwrap();
            }
            _ => {}
        }
    }
}

/// Checks that an audit of the rows of [`fill`] finds the damage that it was given.
pub(in crate::store) fn assert_found(audit: &Audit, sql: &str, stated: &str) {
    assert!(audit.problems.iter().any(|problem| problem.contains(stated)), "{sql}: {audit:?}");
    assert_eq!(audit.problem_count, audit.problems.len() as u64);
    for secret in [CARD, PAYER] {
        assert!(!format!("{audit:?}").contains(secret));
    }
}

/// Returns the SQL of a damage; `bytes` writes a literal of bytes, given as hexadecimal digits.
pub(in crate::store) fn sql_of(damage: &str, bytes: fn(&str) -> String) -> String {
    let named = ["waiting", "held", "taken", "released", "paid"].iter().fold(damage.to_owned(), |sql, name| {
        let id = format!("(SELECT transaction_id FROM operations WHERE order_id = '{name}')");
        sql.replace(&format!("${name}"), &id)
    });
    let mut parts = named.split('{');
    let mut sql = parts.next().unwrap().to_owned();
    for part in parts {
        let (digits, rest) = part.split_once('}').unwrap();
        sql += &bytes(digits);
        sql += rest;
    }
    sql
}

/// SQL with `$name` for the id of an operation of [`fill`] and bytes in braces, and what an audit reports then.
pub(in crate::store) const DAMAGES: &[(&str, &str)] = &[
    ("UPDATE entries SET amount = amount + 1 WHERE transaction_id = $paid AND account = 2", "the entries sum to 1"),
    ("DELETE FROM entries WHERE transaction_id = $paid", "its entries are not those of a SUCCESS operation"),
    ("DELETE FROM entries WHERE transaction_id = $taken AND posting = 3", "are not those of a SUCCESS operation"),
    ("DELETE FROM entries WHERE transaction_id = $released AND posting = 4", "are not those of a FAILED operation"),
    ("DELETE FROM entries WHERE transaction_id = $held", "are not those of a PENDING operation"),
    ("UPDATE entries SET merchant = 'bolt' WHERE transaction_id = $paid", "are not those of a SUCCESS operation"),
    ("UPDATE entries SET currency = 'USD' WHERE transaction_id = $paid", "are not those of a SUCCESS operation"),
    ("UPDATE entries SET amount = -amount WHERE transaction_id = $waiting", "the opening posted with it is invalid"),
    ("UPDATE entries SET transaction_id = 7 WHERE transaction_id = $paid", "operation 7: has entries but does not"),
    (
        "UPDATE entries SET transaction_id = 9223372036854775807 WHERE transaction_id = $paid",
        "operation 9223372036854775807: has entries but does not",
    ),
    ("UPDATE entries SET amount = -amount WHERE transaction_id < 0", "the opening posted with it is invalid"),
    (
        "UPDATE entries SET merchant = 'bolt' WHERE transaction_id < 0 AND account = 2",
        "the opening posted with it is invalid",
    ),
    ("UPDATE entries SET posting = 1 WHERE transaction_id < 0 AND currency = 'USD'", "has entries of another kind"),
    ("DELETE FROM entries WHERE transaction_id < 0 AND currency = 'USD'", "is not the sum of its entries"),
    ("UPDATE entries SET transaction_id = -7 WHERE transaction_id = $paid", "opening -7: has entries of another kind"),
    (
        "DELETE FROM merchants WHERE merchant = 'dora'",
        "merchant dora: its ledger was opened, but the merchant is not stored",
    ),
    ("UPDATE operations SET amount = amount + 1 WHERE transaction_id = $held", "are not those of a PENDING operation"),
    (
        "UPDATE operations SET status = 1, finished_at = 1 WHERE transaction_id = $waiting",
        "are not those of a SUCCESS operation",
    ),
    ("UPDATE operations SET finished_at = 1 WHERE transaction_id = $held", "does not match its status"),
    ("UPDATE operations SET status = 9 WHERE transaction_id = $held", "the column status is invalid"),
    ("UPDATE operations SET fingerprint = {00} WHERE transaction_id = $held", "a column is invalid"),
    ("UPDATE contexts SET merchant = 'bolt' WHERE direction = 1", "its order has no home"),
    ("UPDATE contexts SET kept = 'a' WHERE kept IS NOT NULL", "the column kept is invalid"),
    ("UPDATE contexts SET origin = 2 WHERE direction = 1", "the column origin is invalid"),
    ("UPDATE operations SET order_id = 'other' WHERE transaction_id = $held", "its order has no home"),
    ("UPDATE operations SET payer = {01} WHERE transaction_id = $paid", "the column payer is invalid"),
    ("UPDATE operations SET sealed = {01} WHERE transaction_id = $paid", "the column sealed is invalid"),
    ("UPDATE preparations SET sealed = {01}", "its preparation is invalid"),
    ("UPDATE preparations SET transaction_id = $held", "only a pending deposit has a preparation"),
    ("UPDATE preparations SET transaction_id = 7", "operation 7: is in preparations but does not exist"),
    (
        "INSERT INTO provider_queries (transaction_id, queried_at) VALUES (7, 1)",
        "operation 7: was to be called again but does not exist",
    ),
    ("DELETE FROM contexts WHERE kept IS NOT NULL", "the context of operation"),
    ("DELETE FROM callbacks WHERE key = $paid", "its result has no callback"),
    ("DELETE FROM callbacks WHERE key = $taken", "its result has no callback"),
    ("UPDATE callbacks SET key = $held WHERE key = $paid", "no callback address"),
    (
        "UPDATE callbacks SET key = 7 WHERE key = $paid",
        "the callback of operation 7: its operation or entry does not exist",
    ),
    ("UPDATE callbacks SET key = 0 WHERE key = $paid", "callback 0: its operation or entry does not exist"),
    (
        "UPDATE callbacks SET key = -9223372036854775807 - 1 WHERE key = $paid",
        "callback -9223372036854775808: its operation or entry does not exist",
    ),
    ("DELETE FROM journal WHERE order_id = 'announced'", "its operation or entry does not exist"),
    (
        "UPDATE callbacks SET key = -(SELECT entry FROM journal WHERE order_id = 'silent') WHERE key < 0 AND key NOT IN (SELECT key FROM tasks WHERE state = 1)",
        "no callback address",
    ),
    ("UPDATE callbacks SET merchant = 'bolt' WHERE key = $paid", "its operation or entry has another merchant"),
    (
        "UPDATE callbacks SET target = 'https://acme.example:8443' WHERE key = $paid",
        "its target is not that of its callback address",
    ),
    ("UPDATE callbacks SET target = 'engine' WHERE key = $paid", "its target is not that of its callback address"),
    (
        "UPDATE callbacks SET target = 'https://acme.example' WHERE key < 0 AND key NOT IN (SELECT key FROM tasks WHERE state = 1)",
        "its target is not that of its callback address",
    ),
    ("UPDATE operations SET callback_url = 'https://other.example/' WHERE transaction_id = $paid", "its target is not"),
    ("UPDATE callbacks SET state = 3 WHERE key = $taken", "its state is invalid"),
    ("UPDATE callbacks SET state = 0 WHERE key = $taken", "it is pending and has no task"),
    ("DELETE FROM tasks WHERE kind = 1 AND key = $paid", "it is pending and has no task"),
    ("UPDATE callbacks SET state = 1 WHERE key = $paid", "it was delivered or given up and has a task"),
    ("UPDATE tasks SET key = $taken WHERE kind = 1 AND key = $paid", "it was delivered or given up and has a task"),
    ("UPDATE tasks SET key = 7 WHERE kind = 1 AND key = $paid", "callback 7: has a task but does not exist"),
    ("UPDATE tasks SET queue = 'x' WHERE kind = 1 AND key = $paid", "its task has another queue or time of queueing"),
    ("UPDATE tasks SET queued_at = 1 WHERE kind = 1 AND key = $paid", "its task has another queue or time of queueing"),
    ("DELETE FROM callback_tries; UPDATE callbacks SET tries = 0", "it was delivered without a try"),
    ("UPDATE callbacks SET last_error = NULL WHERE key = $released", "it was given up without an error"),
    ("UPDATE tasks SET attempts = 0 WHERE kind = 1 AND key = $paid", "its lease and its attempts do not match"),
    ("UPDATE tasks SET attempts = -1 WHERE kind = 1 AND key = $paid", "its count of attempts is negative"),
    ("UPDATE callbacks SET last_error = 'x' WHERE key = $taken", "its last outcome is invalid"),
    ("UPDATE callbacks SET last_status = -1 WHERE key = $taken", "its last outcome is invalid"),
    ("UPDATE callbacks SET tries = 3 WHERE key = $taken", "its tries do not match their count"),
    ("UPDATE callbacks SET tries = -1 WHERE key = $paid", "its tries do not match their count"),
    ("DELETE FROM callback_tries WHERE key = $taken AND number = 1", "its tries do not match their count"),
    ("DELETE FROM callback_tries WHERE key = $taken", "its tries do not match their count"),
    ("UPDATE callback_tries SET key = $paid WHERE key = $taken", "its tries do not match their count"),
    ("UPDATE callback_tries SET key = 7 WHERE key = $taken", "the callback of operation 7: has tries but does not"),
    ("UPDATE callback_tries SET key = 9223372036854775806 WHERE key = $taken", "6: has tries but does not exist"),
    ("UPDATE callback_tries SET status = NULL WHERE key = $taken AND number = 1", "a try has invalid data"),
    ("UPDATE callback_tries SET error = 'x' WHERE key = $taken AND number = 1", "a try has invalid data"),
    ("UPDATE callback_tries SET status = 70000 WHERE key = $taken AND number = 1", "a try has invalid data"),
    ("UPDATE callback_tries SET duration_us = -1 WHERE key = $released", "a try has invalid data"),
    ("UPDATE tasks SET key = $paid WHERE kind = 0", "it is finished and has a provider job"),
    ("DELETE FROM tasks WHERE kind = 0", "it is PENDING and has lost its provider job"),
    ("UPDATE tasks SET key = 7 WHERE kind = 0", "operation 7: has a provider job but does not exist"),
    ("DELETE FROM homes WHERE ref = $taken", "its order has no home: it could be created twice"),
    ("UPDATE homes SET home = 3 WHERE ref = $taken", "its order has another home"),
    ("UPDATE homes SET ref = 7 WHERE ref = $taken", "operation 7: is a home but does not exist"),
    ("UPDATE homes SET order_key = {00} WHERE ref = $taken", "its order has no home"),
    ("UPDATE daily_usage SET operations = operations + 1", "payout usage of customer 70 on day 20000 is not the sum"),
    ("UPDATE daily_usage SET amount = amount - 1", "payout usage of customer 70 on day 20000 is not the sum"),
    ("UPDATE daily_usage SET day = day + 1", "on day 20001 is not the sum"),
    ("UPDATE operations SET counted_day = 20001 WHERE transaction_id = $taken", "on day 20000 is not the sum"),
    (
        "UPDATE operations SET counted_day = 20000, customer_account_id = 70 WHERE transaction_id = $held",
        "is not the sum",
    ),
    ("UPDATE operations SET counted_day = 1 WHERE transaction_id = $released", "it failed, but counts"),
    (
        "UPDATE operations SET counted_day = 1, customer_account_id = NULL WHERE transaction_id = $held",
        "but has no customer",
    ),
    ("DELETE FROM operations WHERE transaction_id = $taken", "has entries but does not exist"),
    ("UPDATE journal SET body = {01} WHERE order_id = 'silent'", "the column body is invalid"),
    ("UPDATE journal SET body = {} WHERE order_id = 'doubted'", "the column body is invalid"),
    ("UPDATE journal SET body = {01} WHERE order_id = 'answered'", "the column body is invalid"),
    (
        "UPDATE journal SET body = (SELECT body FROM journal WHERE order_id = 'silent') WHERE order_id = 'doubted'",
        "the column body is invalid",
    ),
    ("UPDATE journal SET entry = 100 WHERE order_id = 'answered'", "entry 100: the column account is invalid"),
    ("UPDATE journal SET transaction_id = NULL WHERE order_id = 'answered'", "the column transaction_id is invalid"),
    ("UPDATE journal SET transaction_id = '7' WHERE order_id = 'silent'", "the column transaction_id is invalid"),
    ("UPDATE journal SET status = 1 WHERE order_id = 'doubted'", "the column status is invalid"),
    ("UPDATE journal SET state = 2 WHERE order_id = 'silent'", "the column transaction_id is invalid"),
    ("UPDATE journal SET state = 3 WHERE order_id = 'silent'", "the column state is invalid"),
    ("UPDATE journal SET fingerprint = {00} WHERE order_id = 'silent'", "a column is invalid"),
    ("UPDATE journal SET order_id = 'other' WHERE order_id = 'answered'", "the column body is invalid"),
    (
        "UPDATE journal SET order_key = {00000000000000000000000000000000} WHERE order_id = 'answered'",
        "its order key is not the one of its order_id",
    ),
    ("DELETE FROM homes WHERE home = 1", "its order has no home"),
    ("UPDATE homes SET home = 3 WHERE home = 1", "its order has another home"),
    ("DELETE FROM journal WHERE order_id = 'silent'", "is a home but does not exist"),
    ("UPDATE accounts SET balance = balance + 1 WHERE account = 2", "is not the sum of its entries"),
    ("DELETE FROM accounts WHERE account = 0", "has no balance"),
    (
        "INSERT INTO accounts (merchant, currency, account, balance) VALUES ('bolt', 'EUR', 2, 1)",
        "is not the sum of its entries",
    ),
    (
        "INSERT INTO entries (transaction_id, posting, currency, account, amount, merchant, posted_at) SELECT $held, posting, 'USD', account, amount, merchant, posted_at FROM entries WHERE posting = 0 AND merchant = 'acme'",
        "its ledger was opened more than once",
    ),
    (
        "INSERT INTO entries (transaction_id, posting, currency, account, amount, merchant, posted_at) SELECT transaction_id - 1, posting, 'GBP', account, amount, merchant, posted_at FROM entries WHERE transaction_id < 0 AND currency = 'USD'",
        "merchant dora: its ledger was opened more than once",
    ),
    (
        "INSERT INTO entries (transaction_id, posting, currency, account, amount, merchant, posted_at) SELECT -7, posting, 'USD', account, amount, merchant, posted_at FROM entries WHERE posting = 0 AND merchant = 'acme'",
        "merchant acme: its ledger was opened more than once",
    ),
    ("UPDATE callbacks SET state = 3 WHERE key = $paid", "its state is invalid"),
    ("UPDATE callbacks SET state = 2 WHERE key = $paid", "it was given up without an error"),
    ("UPDATE tasks SET state = 2 WHERE kind = 1 AND key = $paid", "its lease and its attempts do not match"),
    ("UPDATE homes SET order_key = {00000000000000000000000000000000} WHERE ref = $taken", "its order has no home"),
    (
        "INSERT INTO daily_usage (day, merchant, shop, direction, customer_account_id, operations, amount) VALUES (-5, 'acme', 'card-eur', 0, 7, 1, 1)",
        "payin usage of customer 7 on day -5",
    ),
    (
        "UPDATE journal SET account = (SELECT body FROM journal WHERE order_id = 'silent') WHERE order_id = 'answered'",
        "the column account is invalid",
    ),
    ("UPDATE journal SET account = {01} WHERE order_id = 'silent'", "the column account is invalid"),
    ("UPDATE journal SET state = 0 WHERE order_id = 'answered'", "the column transaction_id is invalid"),
    ("UPDATE journal SET status = 9 WHERE order_id = 'answered'", "the column status is invalid"),
    ("UPDATE journal SET direction = 2 WHERE order_id = 'answered'", "the column direction is invalid"),
    ("UPDATE journal SET merchant = 'bolt' WHERE order_id = 'answered'", "the column body is invalid"),
    ("UPDATE homes SET home = 2 WHERE home = 1", "its order has another home"),
    ("UPDATE homes SET ref = ref + 1 WHERE home = 1", "its order has another home"),
    (
        "UPDATE operations SET counted_day = 99999 WHERE transaction_id = $taken; DELETE FROM daily_usage",
        "payout usage of customer 70 on day 99999",
    ),
    ("UPDATE tasks SET state = 3 WHERE kind = 1 AND key = $paid", "its lease and its attempts do not match"),
];
