//! Stores of earlier versions, with operations and jobs, become ones of today's version without loss.

use super::*;
use crate::domain::{CallbackUrl, CustomerAccountId, Preparation, ProviderKind, State, UnixDay};
use crate::store::conformance::{audited, expiry, first_page, intended, intent, told};
use crate::store::sqlite::schema;
use crate::store::vault::{self, Column, Vault};
use crate::store::{DailyLimit, Digest, Journal, Outbox, Parts, V1Part, V1Told};

/// The columns that version 2 had.
const COLUMNS: &str = "transaction_id, order_key, direction, status, created_at, finished_at, amount, \
    customer_account_id, kept, digest, v1_digest, currency, merchant, order_id, api_key, shop, method, \
    payment_method, callback_url, v1_callback_url, success_url, pending_url, fail_url, redirect_url, account, payer, \
    fields";

/// What keys were called up to version 5.
const OLD_NAMES: &str = "ALTER TABLE operations RENAME COLUMN sorted_key TO order_key; \
    ALTER TABLE journal RENAME COLUMN sorted_key TO order_key; \
    ALTER TABLE reserved_ids RENAME COLUMN order_hash TO order_key";

/// The tables that version 3 had as they are today.
const SINCE_VERSION_3: [&str; 7] =
    ["entries", "accounts", "untold", "daily_usage", "merchants", "reserved_ids", "preparations"];

/// The callbacks that versions 3 and 4 queued: none of those that the engine itself tells merchants who called v1.
const CALLBACKS: &str = "INSERT INTO callbacks SELECT key, randomblob(16), due_at, 7 FROM newer.callbacks \
    JOIN newer.operations ON transaction_id = key WHERE from_v1 = 0 OR v1_callback_url IS NOT NULL";

/// What callbacks were and stay, less what begins anew.
const WAITING: &str = "SELECT key, merchant, target, state, due_at, leased, attempts, tries, last_status, last_error \
    FROM callbacks";

/// Turns the store of a place into one of version 2 with the same operations; attempts go over to jobs.
fn make_version_2(place: &Place) {
    let jobs = "INSERT INTO provider_jobs SELECT transaction_id, due_at, attempts FROM newer.provider_jobs";
    make_version(
        place,
        2,
        &format!("INSERT INTO operations ({COLUMNS}) SELECT {COLUMNS} FROM newer.operations; {jobs}"),
    );
}

/// Turns the store of a place into one of version 3 with all it holds but a journal.
fn make_version_3(place: &Place) {
    let tables = SINCE_VERSION_3.map(|table| format!("INSERT INTO {table} SELECT * FROM newer.{table}")).join("; ");
    let columns = format!("{COLUMNS}, counted_day, provider");
    make_version(
        place,
        3,
        &format!(
            "INSERT INTO operations ({columns}) SELECT {columns} FROM newer.operations; {tables}; {CALLBACKS}; \
             INSERT INTO provider_jobs SELECT transaction_id, j.shop, o.provider, due_at, attempts, leased \
             FROM newer.provider_jobs j JOIN newer.operations o USING (transaction_id)"
        ),
    );
}

/// Turns the store of a place into one of version 4 with all it holds.
fn make_version_4(place: &Place) {
    let tables = SINCE_VERSION_3.iter().chain(&["provider_jobs", "journal"]);
    let tables: Vec<_> = tables.map(|table| format!("INSERT INTO {table} SELECT * FROM newer.{table}")).collect();
    let columns = format!("{COLUMNS}, counted_day, provider, v1_members, from_v1");
    make_version(
        place,
        4,
        &format!(
            "INSERT INTO operations ({columns}) SELECT {columns} FROM newer.operations; {CALLBACKS}; {}",
            tables.join("; ")
        ),
    );
}

/// Turns the store of a place into one of another version; `copy` is SQL that takes what it holds from `newer`.
fn make_version(place: &Place, version: u8, copy: &str) {
    let newer = place.path().with_file_name("newer.db");
    fs::rename(place.path(), &newer).unwrap();
    rusqlite::Connection::open(&newer).unwrap().execute_batch(OLD_NAMES).unwrap();
    let connection = rusqlite::Connection::open(place.path()).unwrap();
    for migration in &schema::MIGRATIONS[..version.into()] {
        connection.execute_batch(migration).unwrap();
    }
    connection.pragma_update(None, "application_id", schema::APPLICATION_ID).unwrap();
    connection.pragma_update(None, "user_version", version).unwrap();
    connection.execute("ATTACH ?1 AS newer", [newer.to_str().unwrap()]).unwrap();
    connection
        .execute_batch(&format!(
            "INSERT INTO data_keys SELECT * FROM newer.data_keys; \
             INSERT INTO kept_names SELECT * FROM newer.kept_names; {copy}; DETACH newer"
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
            if draft.operation.direction() == Direction::Payout {
                draft.v1 = Some(V1Part {
                    digest: Digest([9; 16]),
                    members: None,
                    told: V1Told::Relayed(Some(draft.operation.callback_url.clone())),
                });
            }
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
    let history = store.history(first_page("acme")).await.unwrap().items;
    assert_eq!(history, [5, 3, 1].map(|number: usize| expected[number].operation.clone()), "made through v1");
    let audit = audited(&store).await;
    assert_eq!((audit.operations, audit.entries), (7, 2 + 2 + 4 + 2), "what they mean to the ledger is booked");
    let balances = store.balances(&merchant("acme")).await.unwrap();
    assert_eq!(balances, [(Currency::new("EUR").unwrap(), Balance { available: 1050 - 3 * 1050, held: 2 * 1050 })]);
    assert_eq!(told(&store).await.len(), 0, "nothing is told of what was finished long ago");

    // The lease of a process that is gone ends; the others wait for their time.
    let jobs = store.claim_provider_jobs(claim(99)).await.unwrap();
    assert_eq!(jobs.iter().map(|job| (job.operation.id, job.attempts)).collect::<Vec<_>>(), [(claimed, 1)]);
    assert_eq!(store.claim_provider_jobs(claim(100)).await.unwrap().len(), 2);
    for pending in [&expected[0], &expected[1], &expected[6]] {
        let settled = store.settle(pending.operation.id, Outcome::Failed, UnixMillis(NOW.0 + 9)).await.unwrap();
        assert_eq!(settled, Settlement::Booked);
    }
    assert_eq!(told(&store).await.len(), 3);
    assert_eq!(store.provider_queues().await.unwrap(), []);
    audited(&store).await;
    drop(store);
    audited(&place.open_made().unwrap()).await;
}

/// What is in the tables that an operation is not read from, in any order.
fn rows(place: &Place, sql: &str) -> Vec<String> {
    let connection = rusqlite::Connection::open(place.path()).unwrap();
    let mut statement = connection.prepare(sql).unwrap();
    let columns = statement.column_count();
    let row = |row: &rusqlite::Row<'_>| {
        (0..columns).map(|column| row.get::<_, rusqlite::types::Value>(column)).collect::<Result<Vec<_>, _>>()
    };
    let mut rows: Vec<_> = statement.query_map([], row).unwrap().map(|row| format!("{:?}", row.unwrap())).collect();
    rows.sort_unstable();
    rows
}

/// What v2 was given as the address of an order whose result is relayed.
fn relay_address(order: &str) -> CallbackUrl {
    CallbackUrl::new(&format!("https://pay.example/relay/{order}.0123456789abcdef0123456789abcdef")).unwrap()
}

#[tokio::test]
async fn a_store_of_version_3_is_migrated_without_loss() {
    let place = Place::new();
    let store = place.open_made().unwrap();
    let mut translated = with_job(deposit("acme", "translated"), 0);
    translated.operation.callback_url = relay_address("acme.payin");
    translated.v1 = Some(V1Part { digest: Digest([1; 16]), members: None, told: V1Told::Relayed(None) });
    let mut limited = with_job(withdrawal("acme", "limited"), 100);
    limited.operation.customer_account_id = Some(CustomerAccountId(70));
    limited.operation.provider = ProviderKind::Http;
    limited.daily_limit = Some(DailyLimit { day: UnixDay(20_000), operations: Some(9), amount: None });
    limited.comparison.kept = Kept::Names(["a".into()].into());
    let mut expected = Vec::new();
    for draft in [translated, limited, deposit("acme", "prepared"), deposit("bolt", "paid")] {
        expected.push(created(&store, draft).await);
    }
    assert!(store.prepare(expected[2], Preparation::Stopped).await.unwrap());
    let payer = Some(AccountNumber::new(PAYER).unwrap());
    store.settle(expected[3], Outcome::Success { payer }, NOW).await.unwrap();
    store.reserve(&merchant("acme"), Direction::Payin, &[order("reserved")]).await.unwrap();
    let mut operations = Vec::new();
    for id in &expected {
        operations.push(store.by_id(*id).await.unwrap().unwrap());
    }
    drop(store);
    let tables = SINCE_VERSION_3.map(|table| format!("SELECT * FROM {table}"));
    let jobs = "SELECT transaction_id, shop, due_at, attempts, leased FROM provider_jobs".to_owned();
    let tables: Vec<_> = tables.into_iter().chain([jobs, WAITING.to_owned()]).collect();
    let before: Vec<_> = tables.iter().map(|sql| rows(&place, sql)).collect();
    assert!(before.iter().zip(&tables).all(|(rows, sql)| !rows.is_empty() || sql.ends_with("untold")), "{before:?}");
    make_version_3(&place);
    assert!(rows(&place, "SELECT name FROM sqlite_schema").iter().all(|name| !name.contains("journal")));

    let store = place.open_made().unwrap();
    for operation in &operations {
        assert_eq!(store.by_id(operation.operation.id).await.unwrap().as_ref(), Some(operation));
    }
    assert_eq!(tables.iter().map(|sql| rows(&place, sql)).collect::<Vec<_>>(), before);
    assert_eq!(audited(&store).await.operations, 4);
    let claim = Claim {
        shop: ShopCode::new("card-eur").unwrap(),
        now: UnixMillis(NOW.0 + 100),
        lease_until: UnixMillis(NOW.0 + 1000),
        limit: 10,
    };
    let claimed = store.claim_provider_jobs(claim).await.unwrap();
    let kinds: Vec<_> = claimed.iter().map(|job| job.operation.provider).collect();
    assert_eq!(kinds, [ProviderKind::Sandbox, ProviderKind::Http]);
    // The tables that are new take what they are for.
    let entry = intended(&store, intent("acme", "journaled")).await;
    assert_eq!(store.open_entries(None, 10).await.unwrap(), [entry]);
    audited(&store).await;
}

/// A finished operation that was made from v1.
fn made_from_v1(order_text: &str, url: &CallbackUrl, told: V1Told) -> Draft {
    let mut draft = withdrawal("acme", order_text);
    draft.operation.callback_url = url.clone();
    draft.operation.state = State::Finished { outcome: Outcome::Failed, at: UnixMillis(NOW.0 + 3) };
    draft.v1 = Some(V1Part { digest: Digest([1; 16]), members: None, told });
    draft
}

#[tokio::test]
async fn what_a_store_of_version_4_had_to_tell_is_told() {
    let place = Place::new();
    let store = place.open_made().unwrap();
    let relay = relay_address("acme.payout");
    let v1 = CallbackUrl::new_allowing_http("http://SHOP.example/v1?a=b").unwrap();
    let own = CallbackUrl::new("https://acme.example:8443/relay/race").unwrap();
    let native = created(&store, deposit("bolt", "native")).await;
    store.settle(native, Outcome::Failed, UnixMillis(NOW.0 + 9)).await.unwrap();
    let pending = created(&store, deposit("acme", "pending")).await;
    let relayed = created(&store, made_from_v1("relayed", &relay, V1Told::Relayed(Some(v1)))).await;
    let nobody = created(&store, made_from_v1("nobody", &relay, V1Told::Relayed(None))).await;
    let forgotten = created(&store, made_from_v1("forgotten", &own, V1Told::Directly)).await;
    let long_ago = created(&store, made_from_v1("long ago", &own, V1Told::Directly)).await;
    let entry = intended(&store, intent("acme", "journaled")).await;
    let mut expected = Vec::new();
    for id in [native, pending, relayed, nobody, forgotten, long_ago] {
        expected.push(store.by_id(id).await.unwrap().unwrap());
    }
    drop(store);
    let connection = rusqlite::Connection::open(place.path()).unwrap();
    connection.execute("INSERT INTO untold VALUES (?1)", [long_ago.to_stored()]).unwrap();
    connection.execute("DELETE FROM callbacks WHERE key = ?1", [long_ago.to_stored()]).unwrap();
    drop(connection);
    make_version_4(&place);

    let store = place.open_made().unwrap();
    for stored in &expected {
        assert_eq!(store.by_id(stored.operation.id).await.unwrap().as_ref(), Some(stored));
    }
    assert_eq!(store.open_entries(None, 10).await.unwrap(), [entry]);
    audited(&store).await;
    let told = told(&store).await;
    let told: Vec<_> =
        told.iter().map(|told| (told.id.subject().key(), told.url.as_str(), told.due.0 - NOW.0)).collect();
    let mut waiting = vec![
        (native.to_stored(), "https://acme.example/callback", 9),
        (relayed.to_stored(), "http://SHOP.example/v1?a=b", 3),
        (forgotten.to_stored(), "https://acme.example:8443/relay/race", 3),
    ];
    waiting.sort_unstable();
    assert_eq!(told, waiting);
    let queues = store.callback_queues().await.unwrap();
    let targets: Vec<_> = queues.iter().map(|queue| queue.target.as_str()).collect();
    assert_eq!(targets, ["http://shop.example:80", "https://acme.example:443", "https://acme.example:8443"]);
    // Their time begins with the migration: what waited for long is not given up at once.
    assert_eq!(store.expire_callbacks(expiry(UnixMillis(NOW.0 + 9), 10)).await.unwrap(), 0);
    drop(store);
    audited(&place.open_made().unwrap()).await;
}

/// The key that an order had up to version 5: as it is now without the neighbours' part, and longer.
fn old_key(vault: &Vault, merchant: &str, direction: Direction, order: &str) -> Digest {
    let mut parts = Parts::of("order");
    for part in [merchant, direction.as_str(), order] {
        parts.part(part.as_bytes());
    }
    vault.comparer().digest(&parts)
}

/// Turns the store of a place into one of version 5: its keys of orders are what they were. The old key of its entry.
fn make_version_5(place: &Place) -> Digest {
    let connection = rusqlite::Connection::open(place.path()).unwrap();
    let keys = StoreKeys { create_at: Some(place.key_file()), keys: Vec::new() };
    connection.execute_batch(OLD_NAMES).unwrap();
    connection.execute_batch("DROP TABLE relay_codes_of_version_5").unwrap();
    let vault =
        schema::unlock_existing(&connection, &place.path(), &keys, Arc::new(SystemRandomness::default())).unwrap();
    for (table, id, body) in [("operations", "transaction_id", "NULL"), ("journal", "entry", "body")] {
        let select = format!("SELECT {id}, order_key, merchant, direction, order_id, {body} FROM {table}");
        let mut statement = connection.prepare(&select).unwrap();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let direction = if row.get::<_, i64>(3).unwrap() == 0 { Direction::Payin } else { Direction::Payout };
            let (merchant, order): (String, String) = (row.get(2).unwrap(), row.get(4).unwrap());
            let (now, old) = (Digest(row.get(1).unwrap()), old_key(&vault, &merchant, direction, &order));
            assert_ne!(now, old);
            let id_of_row: i64 = row.get(0).unwrap();
            let update = format!("UPDATE {table} SET order_key = ?2 WHERE {id} = ?1");
            connection.execute(&update, (id_of_row, old.0)).unwrap();
            if let Some(sealed) = row.get::<_, Option<Vec<u8>>>(5).unwrap() {
                let body = vault.open(Column::JournalBody, vault::Place::Order(now), &sealed).unwrap();
                let sealed = vault.seal(Column::JournalBody, vault::Place::Order(old), &body);
                connection.execute("UPDATE journal SET body = ?2 WHERE entry = ?1", (id_of_row, sealed)).unwrap();
            }
        }
    }
    let reserved = old_key(&vault, "acme", Direction::Payin, "reserved");
    assert_eq!(connection.execute("UPDATE reserved_ids SET order_key = ?1", [reserved.0]).unwrap(), 1);
    connection.execute_batch("DROP TABLE forgotten").unwrap();
    connection.pragma_update(None, "user_version", 5).unwrap();
    old_key(&vault, "acme", Direction::Payin, "journaled")
}

#[tokio::test]
async fn what_is_in_a_store_of_version_5_is_found_by_its_new_keys() {
    let place = Place::new();
    let store = place.open_made().unwrap();
    let acme = merchant("acme");
    let mut operations = Vec::new();
    for text in ["o100", "o101", "a", "é"] {
        for draft in [deposit("acme", text), withdrawal("acme", text), deposit("bolt", text)] {
            let id = created(&store, draft).await;
            operations.push(store.by_id(id).await.unwrap().unwrap());
        }
    }
    let entry = intended(&store, intent("acme", "journaled")).await;
    store.reserve(&acme, Direction::Payin, &[order("reserved")]).await.unwrap();
    drop(store);
    let code = make_version_5(&place);

    let store = place.open_made().unwrap();
    let addressee = store.addressee(&acme, code).await.unwrap().expect("an engine may still call the old address");
    assert_eq!((addressee.order_id.as_str(), addressee.entry), ("journaled", Some(entry.id)));
    let now = store.comparer().order_key(&acme, Direction::Payin, &order("journaled"));
    assert_eq!(store.addressee(&acme, now).await.unwrap(), Some(addressee));
    for stored in &operations {
        let Operation { merchant, order_id, .. } = &stored.operation;
        let found = store.by_order(merchant, stored.operation.direction(), order_id).await.unwrap();
        assert_eq!(found, Standing::Operation(Box::new(stored.clone())));
    }
    assert_eq!(store.open_entries(None, 10).await.unwrap(), [entry], "its body can be opened");
    assert_eq!(store.by_order(&acme, Direction::Payin, &order("reserved")).await.unwrap(), Standing::Reserved);
    assert!(matches!(store.create(deposit("acme", "reserved")).await.unwrap(), Creation::Reserved));
    assert!(matches!(store.create(deposit("acme", "o100")).await.unwrap(), Creation::Existing(_)));
    let again = store.reserve(&acme, Direction::Payin, &[order("reserved"), order("o101")]).await.unwrap();
    assert_eq!((again.known, again.operations, again.new), (1, 1, 0));
    audited(&store).await;
}
