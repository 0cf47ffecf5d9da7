//! Audits of damaged files.

use super::*;
use crate::domain::{CallbackUrl, CustomerAccountId, Preparation, UnixDay};
use std::time::Duration;

use crate::store::conformance::{audited, intended, intent, merchant};
use crate::store::{
    AuditProgress, CallbackClaim, CallbackNext, CallbackTarget, CallbackTry, DailyLimit, Outbox, PendingCreate,
    ResultChange, TryOutcome,
};

/// One operation of each kind, named in SQL by its `order_id`.
async fn fill(store: &SqliteStore) {
    let job = Some(NOW);
    let mut first = deposit("acme", "waiting");
    first.opening = Some([(Currency::new("EUR").unwrap(), Amount::from_hundredths(100).unwrap())].into());
    first.comparison.kept = SchemaFields::Names(["a".into()].into());
    let waiting = created(store, first).await;
    store.prepare(waiting, Preparation::Stopped).await.unwrap();
    let mut held = withdrawal("acme", "held");
    held.provider_job = job;
    created(store, held).await;
    for (text, outcome) in [("taken", Outcome::Success { payer: None }), ("released", Outcome::Failed)] {
        let mut draft = withdrawal("acme", text);
        draft.operation.customer_account_id = Some(CustomerAccountId(70));
        draft.daily_limit = Some(DailyLimit { day: UnixDay(20_000), operations: Some(9), amount: None });
        let id = created(store, draft).await;
        store.complete(id, outcome, NOW).await.unwrap();
    }
    let paid = created(store, deposit("acme", "paid")).await;
    let payer = Some(AccountNumber::new(PAYER).unwrap());
    store.complete(paid, Outcome::Success { payer }, NOW).await.unwrap();
    let opening = [("EUR", 100), ("USD", 200)]
        .map(|(code, amount)| (Currency::new(code).unwrap(), Amount::from_hundredths(amount).unwrap()));
    let address = |url: &str| Some(CallbackUrl::new_allowing_http(url).unwrap());
    let mut relayed = intent("acme", "announced");
    relayed.callback_url = address("https://acme.example/v1");
    for text in ["announced", "ready"] {
        let entry = intended(store, PendingCreate { order_id: order(text), ..relayed.clone() }).await;
        store.relayed(entry.id, NOW).await.unwrap();
    }
    intended(store, intent("acme", "silent")).await;
    let claim = CallbackClaim {
        shares: [CallbackTarget::ENGINE, "https://acme.example:443"]
            .map(|origin| (CallbackTarget::new(&merchant("acme"), origin), 9))
            .into(),
        now: NOW,
        lease_until: UnixMillis(NOW.0 + 1000),
    };
    for job in store.claim_callbacks(claim).await.unwrap() {
        let of = match &job.news {
            ResultChange::Operation(stored) => stored.operation.order_id.as_str(),
            ResultChange::Entry(entry) => entry.intent.order_id.as_str(),
        };
        let tried = |outcome| CallbackTry { at: NOW, duration: Duration::from_millis(7), outcome };
        match of {
            "ready" => store.callback_ready(job.id, NOW).await.unwrap(),
            "taken" => {
                for next in [CallbackNext::RetryAt(NOW), CallbackNext::Delivered] {
                    store.callback_tried(job.lease(), tried(TryOutcome::Status(200)), next).await.unwrap();
                }
            }
            "released" => {
                let outcome = TryOutcome::Error("refused".into());
                store.callback_tried(job.lease(), tried(outcome), CallbackNext::Failed).await.unwrap();
            }
            _ => {}
        }
    }
    store.open_ledger(&merchant("dora"), opening.into(), NOW).await.unwrap();
}

/// SQL with `$name` for the id of an operation, and what the audit reports then.
const TAMPERED: &[(&str, &str)] = &[
    ("UPDATE accounts SET balance = balance + 1 WHERE account = 2", "is not the sum of its entries"),
    ("DELETE FROM accounts WHERE account = 0", "has no balance"),
    ("INSERT INTO accounts VALUES ('bolt', 'EUR', 2, 0)", "is not the sum of its entries"),
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
    (
        "INSERT INTO entries SELECT $held, posting, 'USD', account, amount, merchant, booked_at FROM entries \
         WHERE posting = 0 AND merchant = 'acme'",
        "its ledger was opened more than once",
    ),
    ("UPDATE entries SET amount = -amount WHERE transaction_id < 0", "the opening posted with it is invalid"),
    (
        "UPDATE entries SET merchant = 'bolt' WHERE transaction_id < 0 AND account = 2",
        "the opening posted with it is invalid",
    ),
    ("UPDATE entries SET posting = 1 WHERE transaction_id < 0 AND currency = 'USD'", "has entries of another kind"),
    ("DELETE FROM entries WHERE transaction_id < 0 AND currency = 'USD'", "is not the sum of its entries"),
    (
        "INSERT INTO entries SELECT transaction_id - 1, posting, 'GBP', account, amount, merchant, booked_at \
         FROM entries WHERE transaction_id < 0 AND currency = 'USD'",
        "merchant dora: its ledger was opened more than once",
    ),
    ("UPDATE entries SET transaction_id = -7 WHERE transaction_id = $paid", "opening -7: has entries of another kind"),
    (
        "INSERT INTO entries SELECT -7, posting, 'USD', account, amount, merchant, booked_at FROM entries \
         WHERE posting = 0 AND merchant = 'acme'",
        "merchant acme: its ledger was opened more than once",
    ),
    ("UPDATE operations SET amount = amount + 1 WHERE transaction_id = $held", "are not those of a PENDING operation"),
    (
        "UPDATE operations SET status = 1, finished_at = 1 WHERE transaction_id = $waiting",
        "are not those of a SUCCESS operation",
    ),
    ("UPDATE operations SET finished_at = 1 WHERE transaction_id = $held", "does not match its status"),
    ("UPDATE operations SET status = 9 WHERE transaction_id = $held", "the column status is invalid"),
    ("UPDATE operations SET fingerprint = x'00' WHERE transaction_id = $held", "a column is invalid"),
    ("UPDATE contexts SET merchant = 'bolt' WHERE direction = 1", "its order has no home"),
    ("UPDATE contexts SET kept = 'a' WHERE kept IS NOT NULL", "the column kept is invalid"),
    ("UPDATE contexts SET origin = 2 WHERE direction = 1", "the column origin is invalid"),
    ("UPDATE operations SET order_id = 'other' WHERE transaction_id = $held", "its order has no home"),
    ("UPDATE operations SET payer = x'01' WHERE transaction_id = $paid", "the column payer is invalid"),
    ("UPDATE operations SET sealed = x'01' WHERE transaction_id = $paid", "the column sealed is invalid"),
    ("UPDATE preparations SET sealed = x'01'", "its preparation is invalid"),
    ("UPDATE preparations SET transaction_id = $held", "only a pending deposit has a preparation"),
    ("DELETE FROM contexts WHERE kept IS NOT NULL", "the context of operation"),
    ("DELETE FROM callbacks WHERE key = $paid", "its result has no callback"),
    ("UPDATE callbacks SET key = $held WHERE key = $paid", "no callback address"),
    (
        "UPDATE callbacks SET key = 7 WHERE key = $paid",
        "the callback of operation 7: its operation or entry does not exist",
    ),
    ("UPDATE callbacks SET key = 0 WHERE key = $paid", "callback 0: its operation or entry does not exist"),
    ("DELETE FROM journal WHERE order_id = 'announced'", "its operation or entry does not exist"),
    (
        "UPDATE callbacks SET key = -(SELECT entry FROM journal WHERE order_id = 'silent') WHERE key < 0 AND key NOT IN (SELECT key FROM tasks WHERE leased = 1)",
        "no callback address",
    ),
    ("UPDATE callbacks SET merchant = 'bolt' WHERE key = $paid", "its operation or entry has another merchant"),
    (
        "UPDATE callbacks SET target = 'https://acme.example:8443' WHERE key = $paid",
        "its target is not that of its callback address",
    ),
    ("UPDATE callbacks SET target = 'engine' WHERE key = $paid", "its target is not that of its callback address"),
    (
        "UPDATE callbacks SET target = 'https://acme.example' WHERE key < 0 AND key NOT IN (SELECT key FROM tasks WHERE leased = 1)",
        "its target is not that of its callback address",
    ),
    ("UPDATE operations SET callback_url = 'https://other.example/' WHERE transaction_id = $paid", "its target is not"),
    ("UPDATE callbacks SET state = 3 WHERE key = $paid", "its state is invalid"),
    ("UPDATE callbacks SET state = 1 WHERE key = $paid", "it was delivered without a try"),
    ("UPDATE callbacks SET state = 2 WHERE key = $paid", "it was given up without an error"),
    ("UPDATE callbacks SET state = 0 WHERE key = $taken", "it is pending and has no task"),
    ("DELETE FROM tasks WHERE kind = 1 AND key = $paid", "it is pending and has no task"),
    ("UPDATE callbacks SET state = 1 WHERE key = $paid", "it was delivered or given up and has a task"),
    ("UPDATE tasks SET key = $taken WHERE kind = 1 AND key = $paid", "it was delivered or given up and has a task"),
    ("UPDATE tasks SET key = 7 WHERE kind = 1 AND key = $paid", "callback 7: has a task but does not exist"),
    ("UPDATE tasks SET queue = 'x' WHERE kind = 1 AND key = $paid", "its task has another queue or time of queueing"),
    ("UPDATE tasks SET queued_at = 1 WHERE kind = 1 AND key = $paid", "its task has another queue or time of queueing"),
    ("UPDATE tasks SET leased = 2 WHERE kind = 1 AND key = $paid", "its lease and its attempts do not match"),
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
    ("UPDATE tasks SET key = 7 WHERE kind = 0", "operation 7: has a provider job but does not exist"),
    ("DELETE FROM homes WHERE ref = $taken", "its order has no home: it could be created twice"),
    ("UPDATE homes SET home = 3 WHERE ref = $taken", "its order has another home"),
    ("UPDATE homes SET ref = 7 WHERE ref = $taken", "operation 7: is a home but does not exist"),
    ("UPDATE homes SET order_key = zeroblob(16) WHERE ref = $taken", "its order has no home"),
    ("UPDATE daily_usage SET operations = operations + 1", "payout usage of customer 70 on day 20000 is not the sum"),
    ("UPDATE daily_usage SET amount = amount - 1", "payout usage of customer 70 on day 20000 is not the sum"),
    ("UPDATE daily_usage SET day = day + 1", "on day 20001 is not the sum"),
    ("INSERT INTO daily_usage VALUES (-5, 'acme', 'card-eur', 0, 7, 1, 1)", "payin usage of customer 7 on day -5"),
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
];

#[tokio::test]
async fn an_audit_finds_every_kind_of_tampering() {
    for (sql, stated) in TAMPERED {
        let place = Place::new();
        let store = place.open_made().unwrap();
        fill(&store).await;
        audited(&store).await;
        let connection = rusqlite::Connection::open(place.path()).unwrap();
        connection.pragma_update(None, "foreign_keys", false).unwrap();
        connection.pragma_update(None, "ignore_check_constraints", true).unwrap();
        let mut changing = (*sql).to_owned();
        for name in ["waiting", "held", "taken", "released", "paid"] {
            let id: i64 = connection
                .query_row("SELECT transaction_id FROM operations WHERE order_id = ?1", [name], |row| row.get(0))
                .unwrap();
            changing = changing.replace(&format!("${name}"), &id.to_string());
        }
        assert!(connection.execute(&changing, []).unwrap() > 0, "{sql}");
        let audit = store.audit(Arc::new(|_: AuditProgress| {})).await.unwrap();
        assert!(audit.problems.iter().any(|problem| problem.contains(stated)), "{sql}: {audit:?}");
        assert_eq!(audit.problem_count, audit.problems.len() as u64);
        for secret in [CARD, PAYER] {
            assert!(!format!("{audit:?}").contains(secret));
        }
    }
}

#[tokio::test]
async fn problems_are_reported_up_to_a_bound() {
    let place = Place::new();
    let store = place.open_made().unwrap();
    for number in 0..150 {
        created(&store, withdrawal("acme", &number.to_string())).await;
    }
    rusqlite::Connection::open(place.path()).unwrap().execute("UPDATE operations SET sealed = x'01'", []).unwrap();
    let audit = store.audit(Arc::new(|_: AuditProgress| {})).await.unwrap();
    assert_eq!((audit.problems.len(), audit.problem_count), (100, 150));
}

#[tokio::test]
async fn the_usage_of_old_days_may_be_gone() {
    let place = Place::new();
    let store = place.open_made().unwrap();
    fill(&store).await;
    let connection = rusqlite::Connection::open(place.path()).unwrap();
    assert_eq!(connection.execute("DELETE FROM daily_usage", []).unwrap(), 1);
    audited(&store).await;
}

#[tokio::test]
async fn an_audit_finds_another_structure() {
    for (sql, stated) in [
        ("ALTER TABLE homes ADD COLUMN more INTEGER", "table homes differs from this release"),
        ("DROP INDEX v1_list", "index v1_list is missing"),
        ("DROP INDEX v1_list; CREATE INDEX v1_list ON operations (listed)", "index v1_list differs from this release"),
        ("DROP TABLE probe_room", "table probe_room is missing"),
        ("ALTER TABLE entries ADD COLUMN more INTEGER", "table entries differs from this release"),
        ("CREATE TABLE theirs (x)", "table theirs is unknown to this release"),
        (
            "CREATE TRIGGER theirs AFTER INSERT ON entries BEGIN DELETE FROM accounts; END",
            "trigger theirs is unknown to this release",
        ),
    ] {
        let place = Place::new();
        let store = place.open_made().unwrap();
        fill(&store).await;
        audited(&store).await;
        rusqlite::Connection::open(place.path()).unwrap().execute_batch(sql).unwrap();
        let audit = store.audit(Arc::new(|_: AuditProgress| {})).await.unwrap();
        assert_eq!(audit.problems, [format!("the schema: {stated}")], "{sql}");
    }
}

/// Overwrites a page of the table's own, which is its root.
fn damage(place: &Place, table: &str) {
    let connection = rusqlite::Connection::open(place.path()).unwrap();
    let bytes: u32 = connection.pragma_query_value(None, "page_size", |row| row.get(0)).unwrap();
    let page: u32 =
        connection.query_row("SELECT rootpage FROM sqlite_schema WHERE name = ?1", [table], |row| row.get(0)).unwrap();
    drop(connection);
    let mut file = fs::read(place.path()).unwrap();
    file[((page - 1) * bytes) as usize..(page * bytes) as usize].fill(0x5a);
    fs::write(place.path(), file).unwrap();
}

#[tokio::test]
async fn a_damaged_file_is_reported_with_advice() {
    // Index pages are read by the check of pages alone; the rows of entries by what follows it.
    for part in ["tasks_by_due", "entries"] {
        let place = Place::new();
        let store = place.open_made().unwrap();
        for number in 0..120 {
            created(&store, withdrawal("acme", &number.to_string())).await;
        }
        drop(store);
        damage(&place, part);
        let store = place.open_made().unwrap();
        let audit = store.audit(Arc::new(|_: AuditProgress| {})).await.unwrap();
        let first = &audit.problems[0];
        let path = place.path().canonicalize().unwrap();
        assert!(first.starts_with(path.to_str().unwrap()) && first.ends_with("restore a backup"), "{part}: {first}");
        assert!(audit.problems[1].starts_with("the file: "), "{part}: {audit:?}");
        assert!(audit.problems.iter().all(|problem| !problem.contains('\n')), "{audit:?}");
    }
}
