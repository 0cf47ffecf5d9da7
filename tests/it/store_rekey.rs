//! `paybridge store rekey`: the key that the store's data keys are wrapped with is exchanged (contract section 12).

use std::path::PathBuf;
use std::sync::Arc;

use crate::support::bodies::with;
use crate::support::gateway::files_below;
use crate::support::postgres;
use crate::support::request::ACME;
use crate::support::rules::write_file;
use crate::support::stored::{CREATES, Create};
use crate::support::{Client, Gateway, Request, Rules, eventually, text};

/// 32 bytes in base64.
const NEW: &str = "VGhlIHNlY29uZCBrZXkgb2YgdGhlIHRlc3RzIGlzIDM=";
const NOT_ITS: &str = "QSBrZXkgdGhhdCBubyBzdG9yZSB3YXMgbWFkZSB3aXQ=";

const OLD_FIRST: [&str; 2] = ["store.key", "new.key"];

fn rules(keys: &[&str]) -> Rules {
    let list: Vec<_> = keys.iter().map(|name| format!("\"file:../secrets/{name}\"")).collect();
    Rules::default().with("store", &format!("keys = [{}]", list.join(", ")))
}

/// Writes the rules anew, with these keys.
fn name_keys(gateway: &Gateway, keys: &[&str]) {
    rules(keys).write(gateway.root.path(), gateway.public.port(), gateway.admin.port());
}

/// A gateway that serves, with two more keys that nobody used yet.
fn started(mut gateway: Gateway) -> Gateway {
    gateway.spawn();
    assert!(gateway.wait_ready(), "{}", gateway.log());
    for (name, key) in [("new.key", NEW), ("other.key", NOT_ITS)] {
        write_file(&gateway.root.path().join("secrets").join(name), key);
    }
    gateway
}

struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

fn rekey(gateway: &Gateway) -> Ran {
    let output = gateway.store_command("rekey").output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let ran = Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) };
    let old = std::fs::read_to_string(gateway.root.path().join("secrets/store.key")).unwrap();
    for key in [old.trim_end(), NEW, NOT_ITS] {
        assert!(!ran.out.contains(key) && !ran.err.contains(key), "{}{}", ran.out, ran.err);
    }
    ran
}

#[track_caller]
fn assert_stated(ran: &Ran, stated: &str) {
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(0), format!("{stated}\n").as_str(), ""));
}

/// The wrapped keys as they are stored.
fn wrapped(gateway: &Gateway) -> Vec<String> {
    const COLUMNS: &str = "id || ' ' || purpose || ' ' ||";
    match &gateway.database {
        None => {
            let connection = rusqlite::Connection::open(gateway.root.path().join("data/paybridge.db")).unwrap();
            let mut keys = connection.prepare(&format!("SELECT {COLUMNS} hex(wrapped) FROM data_keys")).unwrap();
            keys.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
        }
        Some(database) => {
            let sql = format!("SELECT {COLUMNS} encode(wrapped, 'hex') FROM data_keys ORDER BY id");
            database.sql(&sql).lines().map(str::to_owned).collect()
        }
    }
}

/// That creates which were answered before are answered the same, and another body is refused.
async fn assert_repeats(client: &Client, reported: &[(Create, serde_json::Value)]) {
    for (kind, reply) in reported {
        let body = kind.body(&format!("{kind:?}"));
        assert_eq!(&kind.create(client, &ACME, &body).await.json(), reply);
        let other = if kind.is_v1() { "991.18".into() } else { serde_json::json!(991.18) };
        client.send(&kind.request(&ACME, with(body, "amount", Some(other)).to_string())).await.expect(409);
    }
}

async fn a_key_is_exchanged(gateway: Gateway) {
    let mut gateway = started(gateway);
    let client = gateway.client();
    let mut reported = Vec::new();
    for kind in CREATES {
        reported.push((kind, kind.create(&client, &ACME, &kind.body(&format!("{kind:?}"))).await.json()));
    }
    name_keys(&gateway, &OLD_FIRST);
    let before = wrapped(&gateway);
    assert_stated(&rekey(&gateway), "nothing to do: 2 data keys are wrapped with key 1 of store.keys");
    assert_eq!(wrapped(&gateway), before);

    name_keys(&gateway, &["new.key", "store.key"]);
    let done = "wrapped 2 data keys with key 1 of store.keys (before: 2 with key 2)";
    assert_stated(&rekey(&gateway), done);
    let after = wrapped(&gateway);
    assert!(before.iter().all(|key| !after.contains(key)), "{after:?}");
    assert_stated(&rekey(&gateway), "nothing to do: 2 data keys are wrapped with key 1 of store.keys");
    assert_eq!(wrapped(&gateway), after);

    let trail = gateway.actions();
    assert_eq!(trail.len(), 3, "{trail:?}");
    assert!(trail[1].ends_with(&format!(" store.rekey data keys {{}} {done}")), "{trail:?}");

    // The one that serves has the data keys.
    assert_repeats(&client, &reported).await;
    Create::Payout.create(&client, &ACME, &Create::Payout.body("later")).await;
    assert_eq!(gateway.store_check().status.code(), Some(0));
    gateway.kill();

    name_keys(&gateway, &["store.key"]);
    gateway.spawn();
    assert!(!gateway.wait_ready(), "the old key alone opens nothing any more");
    assert!(gateway.log().contains("no key of store.keys opens this store"), "{}", gateway.log());

    name_keys(&gateway, &["new.key"]);
    gateway.restart();
    let client = gateway.client();
    assert_repeats(&client, &reported).await;
    eventually("what was sealed under the old key is sent to the provider", async || {
        let request = Request::status(&ACME, text(&reported[3].1, "transaction_id"));
        (client.send(&request).await.expect(200).json()["status"] == "SUCCESS").then_some(())
    })
    .await;
    let checked = gateway.store_check();
    assert_eq!(checked.status.code(), Some(0), "{}", String::from_utf8_lossy(&checked.stdout));
}

#[tokio::test]
async fn a_key_is_exchanged_while_a_gateway_serves() {
    a_key_is_exchanged(Gateway::prepare_on(&rules(&["store.key"]), None)).await;
}

#[tokio::test]
async fn a_key_is_exchanged_while_a_gateway_serves_from_postgres() {
    let Some(server) = postgres::server() else { return };
    a_key_is_exchanged(Gateway::prepare_on(&rules(&["store.key"]), Some(Arc::new(server.database())))).await;
}

fn what_fails_changes_nothing(gateway: Gateway) {
    let mut gateway = started(gateway);
    gateway.kill();
    let before = wrapped(&gateway);
    name_keys(&gateway, &["new.key", "other.key"]);
    let ran = rekey(&gateway);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{}", ran.err);
    assert!(ran.err.contains("no key of store.keys opens this store"), "{}", ran.err);
    assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
    // One key that nothing unwraps: the other is not wrapped anew either.
    gateway.tamper("UPDATE data_keys SET purpose = 'seal' WHERE id = 1");
    let tampered = wrapped(&gateway);
    name_keys(&gateway, &["new.key", "store.key"]);
    assert_eq!(rekey(&gateway).code, Some(1));
    assert_eq!(wrapped(&gateway), tampered);
    gateway.tamper("UPDATE data_keys SET purpose = 'compare' WHERE id = 1");
    assert_eq!(wrapped(&gateway), before);
}

#[test]
fn keys_that_do_not_fit_change_nothing() {
    what_fails_changes_nothing(Gateway::prepare_on(&rules(&["store.key"]), None));
    if let Some(server) = postgres::server() {
        what_fails_changes_nothing(Gateway::prepare_on(&rules(&["store.key"]), Some(Arc::new(server.database()))));
    }
}

#[test]
fn no_store_is_made_to_be_rekeyed() {
    let gateway = Gateway::prepare_on(&rules(&["store.key"]), None);
    write_file(&gateway.root.path().join("secrets/store.key"), NEW);
    let ran = rekey(&gateway);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""));
    assert!(ran.err.starts_with("error: ") && ran.err.contains("there is no store"), "{}", ran.err);
    let left: Vec<PathBuf> = files_below(gateway.root.path()).into_iter().map(|(path, _)| path).collect();
    assert!(left.iter().all(|path| !path.ends_with("paybridge.db")), "{left:?}");
}
