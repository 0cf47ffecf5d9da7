//! Tools beside a gateway that serves the same file.

use rusqlite::config::DbConfig;

use super::*;
use crate::domain::ShopCode;
use crate::store::conformance::audited;
use crate::store::{Reservations, StoreAccess};

fn made_keys(place: &Place) -> StoreKeys {
    StoreKeys { create_at: Some(place.key_file()), keys: Vec::new() }
}

fn beside(place: &Place) -> Result<SqliteStore, OpenError> {
    open_beside(
        &place.path(),
        &made_keys(place),
        StoreAccess::Read,
        Arc::new(SystemRandomness::default()),
        Arc::default(),
    )
}

#[tokio::test]
async fn one_gateway_serves_a_store() {
    let place = Place::new();
    let gateway = place.open_made().unwrap();
    let error = place.open_made().unwrap_err();
    assert!(matches!(error, OpenError::Served { .. }), "{error}");
    assert!(error.to_string().contains("paybridge.db: another process serves this store"), "{error}");
    std::os::unix::fs::symlink(place.path(), place.0.path().join("data/link.db")).unwrap();
    let by_link = place.0.path().join("data/link.db");
    let opened = open(&by_link, &made_keys(&place), Arc::new(SystemRandomness::default()), Arc::default());
    assert!(matches!(opened, Err(OpenError::Served { .. })), "under any name");
    created(&gateway, deposit("acme", "still served")).await;
    assert!(beside(&place).unwrap().probe().await.is_ok());
    gateway.close().await.unwrap();
    let next = place.open_made().unwrap();
    drop(gateway);
    assert!(matches!(place.open_made(), Err(OpenError::Served { .. })), "the next one serves it");
    drop(next);
    let mode = fs::metadata(place.path().with_extension("db.lock")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    place.open_made().unwrap();
}

#[test]
fn a_tool_makes_no_store() {
    let place = Place::new();
    assert!(matches!(beside(&place), Err(OpenError::Missing { .. })));
    assert_eq!(fs::read_dir(place.0.path()).unwrap().count(), 0, "nothing was made");
    fs::create_dir(place.path().parent().unwrap()).unwrap();
    fs::write(place.path(), "").unwrap();
    let error = beside(&place).unwrap_err().to_string();
    assert!(error.contains("there is no store") && !error.contains('\n'), "{error}");
    assert_eq!(fs::read(place.path()).unwrap(), b"");
}

#[test]
fn a_tool_needs_the_key_and_makes_none() {
    let place = Place::new();
    drop(place.open_made().unwrap());
    fs::remove_file(place.key_file()).unwrap();
    assert!(matches!(beside(&place), Err(OpenError::KeyMissing { .. })));
    assert!(!place.key_file().exists());
}

#[test]
fn a_store_of_another_unreleased_build_is_refused_untouched() {
    for change in
        ["UPDATE paybridge_formats SET hash = x'00'", "DELETE FROM paybridge_formats", "DROP TABLE paybridge_formats"]
    {
        let place = Place::new();
        drop(place.open_made().unwrap());
        // As after a kill: the log is not in the file yet.
        let other = rusqlite::Connection::open(place.path()).unwrap();
        other.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).unwrap();
        other.execute_batch(change).unwrap();
        drop(other);
        let files = || [place.path(), place.path().with_extension("db-wal")].map(|path| fs::read(path).unwrap());
        let before = files();
        assert!(!before[1].is_empty());
        let random = || Arc::new(SystemRandomness::default()) as Arc<dyn Random>;
        let keys = made_keys(&place);
        for refused in [
            place.open_made().unwrap_err(),
            beside(&place).unwrap_err(),
            rewrap_keys(&place.path(), &keys, &random()).unwrap_err(),
            copying::take(&place.path(), &keys, random()).err().unwrap(),
        ] {
            assert!(matches!(refused, OpenError::OtherBuild { .. }), "{change}: {refused}");
            let reported = refused.to_string();
            assert!(reported.contains("paybridge.db: was made by an unreleased build"), "{reported}");
        }
        assert!(files() == before, "{change}");
    }
}

#[tokio::test]
async fn a_tool_leaves_a_serving_gateway_alone() {
    let place = Place::new();
    let gateway = place.open_made().unwrap();
    let mut draft = deposit("acme", "leased");
    draft.provider_job = Some(NOW);
    let leased = created(&gateway, draft).await;
    let claim =
        Claim { shop: ShopCode::new("card-eur").unwrap(), now: NOW, lease_until: UnixMillis(NOW.0 + 1000), limit: 10 };
    assert_eq!(gateway.claim_provider_jobs(claim).await.unwrap().len(), 1);
    let log_bytes = || fs::metadata(place.path().with_extension("db-wal")).unwrap().len();
    let before = log_bytes();
    assert!(before > 0);

    let tool = beside(&place).unwrap();
    assert!(tool.by_id(leased).await.unwrap().is_some(), "it sees what is in the log");
    let ids = [order("reserved"), order("leased")];
    let reservations = tool.reserve(&merchant("acme"), Direction::Payin, &ids, NOW).await.unwrap();
    assert_eq!(reservations, Reservations { new: 1, known: 0, operations: 1 });
    audited(&tool).await;
    created(&gateway, deposit("acme", "meanwhile")).await;
    assert!(matches!(gateway.create(deposit("acme", "reserved")).await.unwrap(), InsertOutcome::Reserved));
    tool.close().await.unwrap();
    assert!(log_bytes() >= before, "the log is not cut");
    let queues = gateway.provider_queues().await.unwrap();
    assert_eq!(queues.iter().map(|queue| queue.due).collect::<Vec<_>>(), [UnixMillis(NOW.0 + 1000)], "still leased");
    created(&gateway, deposit("acme", "after")).await;
    audited(&gateway).await;
}
