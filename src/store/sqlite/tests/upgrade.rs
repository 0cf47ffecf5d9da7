//! A store of version 2, with operations and jobs, becomes one of today's version without loss.

use super::*;
use crate::store::conformance::audited;
use crate::store::sqlite::schema;

/// The columns that version 2 had.
const COLUMNS: &str = "transaction_id, order_key, direction, status, created_at, finished_at, amount, \
    customer_account_id, kept, digest, v1_digest, currency, merchant, order_id, api_key, shop, method, \
    payment_method, callback_url, v1_callback_url, success_url, pending_url, fail_url, redirect_url, account, payer, \
    fields";

/// Turns the store of a place into one of version 2 with the same operations; attempts go over to jobs.
fn make_version_2(place: &Place) {
    let newer = place.path().with_file_name("newer.db");
    fs::rename(place.path(), &newer).unwrap();
    let connection = rusqlite::Connection::open(place.path()).unwrap();
    for migration in &schema::MIGRATIONS[..2] {
        connection.execute_batch(migration).unwrap();
    }
    connection.pragma_update(None, "application_id", schema::APPLICATION_ID).unwrap();
    connection.pragma_update(None, "user_version", 2).unwrap();
    connection.execute("ATTACH ?1 AS newer", [newer.to_str().unwrap()]).unwrap();
    connection
        .execute_batch(&format!(
            "INSERT INTO operations ({COLUMNS}) SELECT {COLUMNS} FROM newer.operations; \
             INSERT INTO data_keys SELECT * FROM newer.data_keys; \
             INSERT INTO kept_names SELECT * FROM newer.kept_names; \
             INSERT INTO provider_jobs SELECT transaction_id, due_at, attempts FROM newer.provider_jobs; \
             DETACH newer"
        ))
        .unwrap();
}

fn with_job(mut draft: Draft, offset: i64) -> Draft {
    draft.provider_job = Some(UnixMillis(NOW.0 + offset));
    draft
}

#[tokio::test]
async fn a_store_of_version_2_is_migrated_without_loss() {
    let place = Place::new();
    let store = place.open_made().unwrap();
    let mut expected = Vec::new();
    let success = || Some(Outcome::Success { payer: Some(AccountNumber::new(PAYER).unwrap()) });
    for (number, outcome) in [None, success(), Some(Outcome::Failed)].into_iter().enumerate() {
        for draft in [deposit("acme", &format!("d{number}")), withdrawal("acme", &format!("w{number}"))] {
            let mut draft = with_job(draft, 100);
            draft.comparison.kept = Kept::Names(["a".into()].into());
            let id = created(&store, draft).await;
            if let Some(outcome) = outcome.clone() {
                store.settle(id, outcome, UnixMillis(NOW.0 + 5)).await.unwrap();
            }
            expected.push(store.by_id(id).await.unwrap().unwrap());
        }
    }
    let claimed = created(&store, with_job(withdrawal("acme", "claimed"), 0)).await;
    expected.push(store.by_id(claimed).await.unwrap().unwrap());
    let shop = ShopCode::new("card-eur").unwrap();
    let claim = |now: i64| Claim {
        shop: shop.clone(),
        now: UnixMillis(NOW.0 + now),
        lease_until: UnixMillis(NOW.0 + 1000),
        limit: 10,
    };
    assert_eq!(store.claim_provider_jobs(claim(0)).await.unwrap().len(), 1);
    let fields = store.fields(claimed).await.unwrap();
    drop(store);
    make_version_2(&place);

    let store = place.open_made().unwrap();
    for stored in &expected {
        assert_eq!(store.by_id(stored.operation.id).await.unwrap().as_ref(), Some(stored));
    }
    assert!(store.fields(claimed).await.unwrap() == fields);
    let audit = audited(&store).await;
    assert_eq!((audit.operations, audit.entries), (7, 2 + 2 + 4 + 2), "what they mean to the ledger is booked");
    let balances = store.balances(&merchant("acme")).await.unwrap();
    assert_eq!(balances, [(Currency::new("EUR").unwrap(), Balance { available: 1050 - 3 * 1050, held: 2 * 1050 })]);
    assert_eq!(place.outbox().await.len(), 0, "nothing is told of what was finished long ago");

    // The lease of a process that is gone ends; the others wait for their time.
    let jobs = store.claim_provider_jobs(claim(99)).await.unwrap();
    assert_eq!(jobs.iter().map(|job| (job.operation.id, job.attempts)).collect::<Vec<_>>(), [(claimed, 1)]);
    assert_eq!(store.claim_provider_jobs(claim(100)).await.unwrap().len(), 2);
    for pending in [&expected[0], &expected[1], &expected[6]] {
        let settled = store.settle(pending.operation.id, Outcome::Failed, UnixMillis(NOW.0 + 9)).await.unwrap();
        assert_eq!(settled, Settlement::Booked);
    }
    assert_eq!(place.outbox().await.len(), 3);
    assert_eq!(store.provider_queues().await.unwrap(), []);
    audited(&store).await;
    drop(store);
    audited(&place.open_made().unwrap()).await;
}
