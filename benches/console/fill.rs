//! Many shops and merchants, operations whose callbacks all failed, a long audit trail, and, as the oldest, operations that
//! wait for what never comes.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use paybridge::clock::{SystemClock, SystemRandomness};
use paybridge::domain::{Outcome, UnixMillis};
use paybridge::store::{ResultSource, open_store};
use paybridge::store_settings::{StoreKeys, StoreSettings, StoreUrl};
use tokio::task::JoinSet;

use super::commands::STATEMENT;
use super::common::gateway;
use super::drafts::Drafts;
use super::support::Rules;
use super::support::postgres::Database;
use super::support::request::unix_now;

/// The concurrent creates: two full commits.
const CONCURRENT: usize = 512;

/// One operation in so many FAILED, of every merchant, and as many are PENDING: the oldest, so that a list of them passes all
/// others.
const ONE_IN: u64 = 101;

/// The time between two operations; the last one is of now.
const APART_MILLIS: i64 = 10;

/// Makes every callback a failed one with an attempt, keeps what became of the jobs of operations without a result, and fills
/// the audit trail.
const FAILED: &str = "UPDATE callbacks SET state = 2, tries = 1, last_status = 500; DELETE FROM tasks WHERE kind = 1; \
    INSERT INTO callback_tries (key, number, began_at, duration_us, status) \
    SELECT key, 1, queued_at, 9000, 500 FROM callbacks; \
    UPDATE tasks SET kind = 2 + key % 3, attempts = 1; \
    INSERT INTO actions (id, began_at, ended_at, user_name, role, address, request_id, action, target, parameters, \
    rules_version, outcome) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000) \
    SELECT i, 1790000000000, 1790000000100, 'ann', 'operator', '192.0.2.1', 'r', 'resend failed callbacks', \
    'failed callbacks', '{\"merchant\":\"m1\"}', '0a', '500 queued' FROM n";

/// Returns rules with these and the usual ones. A merchant has ten shops, and `m0` has all.
pub fn rules(shops: u64, merchants: u64) -> Rules {
    let late = "[provider]\nkind = \"sandbox\"\nexpected_within = { payin = \"1s\" }";
    let mut rules = gateway::rules().edit("shops/card-eur.toml", "[provider]\nkind = \"sandbox\"", late);
    rules = rules.edit("shops/card-eur.toml", "delay = \"50ms\"\n", &format!("delay = \"50ms\"\n{STATEMENT}"));
    for shop in 0..shops {
        rules.put(&format!("shops/s{shop}.toml"), "currency = \"EUR\"\n[provider]\nkind = \"sandbox\"\n");
    }
    for number in 0..merchants {
        let secrets = format!("v1_secret = \"v1-hush-of-{number}\"\nv2_secret = \"v2-hush-of-{number}\"\n");
        let key = format!("[[api_keys]]\nkey = \"key-{number}\"\nallowed_ips = [\"127.0.0.0/8\"]\n{secrets}");
        let mut text = format!("name = \"Merchant {number}\"\n{key}");
        let first = number * 10 % shops;
        for shop in if number == 0 { 0..shops } else { first..shops.min(first + 10) } {
            let _ = write!(text, "[shops.s{shop}]\npayin = true\npayout = true\n");
        }
        rules.put(&format!("merchants/m{number}.toml"), text);
    }
    rules
}

/// Fills the store of a gateway that does not run: `order-0` is of `m0`, `order-1` of `m1`, and so on.
pub async fn fill(root: &Path, database: Option<&Database>, rows: u64, merchants: u64) {
    let url = database.map_or_else(|| "sqlite:data/paybridge.db".to_owned(), Database::url);
    let settings = StoreSettings {
        url: StoreUrl::parse(&url, |path| root.join(path)).unwrap(),
        connections: 16,
        keys: StoreKeys { create_at: Some(root.join("secrets/store.key")), keys: Vec::new() },
    };
    let (clock, random) = (Arc::new(SystemClock), Arc::new(SystemRandomness::default()));
    let store = open_store(&settings, clock, random, Arc::default()).unwrap().store;
    let begin = i64::try_from(unix_now() * 1000).unwrap() - i64::try_from(rows).unwrap() * APART_MILLIS;
    let next = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..CONCURRENT {
        let (store, next) = (store.clone(), Arc::clone(&next));
        tasks.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= rows {
                    return;
                }
                let merchant = format!("m{}", number % merchants);
                let drafts = Drafts::new(&merchant, "card-eur", store.fingerprint_key().clone());
                let at = UnixMillis(begin + i64::try_from(number).unwrap() * APART_MILLIS);
                let mut draft = drafts.deposit(&format!("order-{number}"), at, number);
                // PENDING: with a job, without one, and of v2, a third each. Those with a result are made without one.
                let is_pending = number < rows / ONE_IN;
                draft.provider_job = (is_pending && number % 3 != 1).then_some(at);
                if is_pending && number % 3 == 2 {
                    draft.v1 = None;
                }
                let id = draft.operation.id;
                store.create(draft).await.unwrap();
                if is_pending {
                    continue;
                }
                let is_failed = number % ONE_IN == 0;
                let outcome = if is_failed { Outcome::Failed } else { Outcome::Success { payer: None } };
                store.complete(id, outcome, ResultSource::PROVIDER, at).await.unwrap();
            }
        });
    }
    tasks.join_all().await;
    store.close().await.unwrap();
    match database {
        None => {
            let connection = rusqlite::Connection::open(root.join("data/paybridge.db")).unwrap();
            connection.execute_batch(FAILED).unwrap();
        }
        Some(database) => {
            for sql in FAILED.split("; ").chain(["VACUUM ANALYZE"]) {
                assert!(database.psql().args(["-c", sql]).status().unwrap().success(), "{sql}");
            }
        }
    }
}
