//! A store that release 0.1.0 wrote is opened by every later build, and served: repeats are recognized, reserved ids stay
//! reserved, and its invariants hold (contract section 15).
//!
//! `first_release/` has the store of each database as SQL, with what was answered. Nothing writes it again: until 0.1.0 was cut,
//! `PAYBRIDGE_WRITE_FIRST_RELEASE=1 cargo test --test it first_release` did.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;

use rusqlite::Connection;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::bodies::with;
use crate::support::gateway::{on_postgres, put_keys};
use crate::support::request::ACME;
use crate::support::stored::{CREATES, Create};
use crate::support::tools::root;
use crate::support::{Gateway, Rules, eventually, postgres, text};

const RESERVED: &str = "reserved-by-0.1.0";

fn fixture(extension: &str) -> PathBuf {
    let database = if on_postgres() { "postgres" } else { "sqlite" };
    root().join("tests/it/first_release").join(database).with_extension(extension)
}

/// A gateway that was not started yet, with the keys of the store.
fn prepared() -> Gateway {
    let gateway = Gateway::prepare(&Rules::default());
    put_keys(gateway.root.path());
    gateway
}

fn file(gateway: &Gateway) -> PathBuf {
    gateway.root.path().join("data/paybridge.db")
}

/// Puts the store where the gateway looks for it.
fn restore(gateway: &Gateway) {
    let sql = std::fs::read_to_string(fixture("sql")).unwrap();
    if let Some(database) = &gateway.database {
        database.sql(&sql);
    } else {
        std::fs::create_dir_all(file(gateway).parent().unwrap()).unwrap();
        Connection::open(file(gateway)).unwrap().execute_batch(&format!("BEGIN; {sql} COMMIT;")).unwrap();
    }
}

#[tokio::test]
async fn a_store_of_the_first_release_is_served() {
    if std::env::var_os("PAYBRIDGE_WRITE_FIRST_RELEASE").is_some() {
        write().await;
    }
    let mut gateway = prepared();
    restore(&gateway);
    gateway.spawn();
    assert!(gateway.wait_ready(), "{}", gateway.log());
    let client = gateway.client();
    let orders: Vec<Value> = serde_json::from_slice(&std::fs::read(fixture("json")).unwrap()).unwrap();
    assert_eq!(orders.len(), 3 * CREATES.len());
    for order in &orders {
        let kind = CREATES[usize::try_from(order["kind"].as_u64().unwrap()).unwrap()];
        let again = kind.create(&client, &ACME, &order["body"]).await.json();
        assert_eq!(again["transaction_id"], order["transaction_id"], "a repeat of {order}");
        let id = text(&order["body"], kind.id_member());
        let record = client.send(&kind.status(&ACME, id, &again)).await.expect(200).json();
        assert_eq!(text(&record, kind.id_member()), id);
        let other = with(order["body"].clone(), "currency", Some(json!("USD")));
        client.send(&kind.request(&ACME, other.to_string())).await.expect(409);
    }
    client.send(&Create::Payin.request(&ACME, Create::Payin.body(RESERVED).to_string())).await.expect(409);
    for kind in CREATES {
        kind.create(&client, &ACME, &kind.body(&format!("new-{kind:?}"))).await.json();
    }
    let checked = gateway.store_check();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
}

/// Writes the store: of each kind of create one that succeeds, one that fails and one that stays pending.
async fn write() {
    let mut gateway = prepared();
    gateway.spawn();
    assert!(gateway.wait_ready(), "{}", gateway.log());
    let client = gateway.client();
    let mut orders = Vec::new();
    for (number, kind) in CREATES.into_iter().enumerate() {
        for cents in ["00", "01", "02"] {
            let amount = format!("7.{cents}");
            let amount = if kind.is_v1() { json!(amount) } else { serde_json::from_str(&amount).unwrap() };
            let body = with(kind.body(&format!("{kind:?}-{cents}")), "amount", Some(amount));
            let reply = kind.create(&client, &ACME, &body).await.json();
            orders.push(json!({ "kind": number, "body": body, "transaction_id": reply["transaction_id"] }));
        }
    }
    let ids = gateway.root.path().join("ids.txt");
    std::fs::write(&ids, format!("{RESERVED}\n")).unwrap();
    let mut import = Command::new(&gateway.program);
    import.args(["import-ids", "--merchant", "acme", "--kind", "payin", "--rules"]).arg(gateway.rules_dir()).arg(&ids);
    assert!(import.current_dir(gateway.root.path()).status().unwrap().success());
    eventually("withdrawals have their results", async || {
        (gateway.log().matches("callback").count() > 4).then_some(())
    })
    .await;
    gateway.signal(Signal::TERM);
    assert!(gateway.wait().success());
    std::fs::create_dir_all(fixture("sql").parent().unwrap()).unwrap();
    std::fs::write(fixture("sql"), dump(&gateway)).unwrap();
    let orders: Vec<String> = orders.iter().map(Value::to_string).collect();
    std::fs::write(fixture("json"), format!("[\n{}\n]\n", orders.join(",\n"))).unwrap();
}

fn dump(gateway: &Gateway) -> String {
    match &gateway.database {
        Some(database) => {
            let mut dump = Command::new(postgres::programs().unwrap().join("pg_dump"));
            dump.args(["--inserts", "--no-owner", "--no-privileges", "--dbname", &database.url()]);
            let dumped = String::from_utf8(dump.output().unwrap().stdout).unwrap();
            // What only psql understands, and comments.
            let kept = dumped.lines().filter(|line| !line.is_empty() && !line.starts_with(['\\', '-']));
            kept.fold(String::new(), |text, line| text + line + "\n")
        }
        None => dump_file(&Connection::open(file(gateway)).unwrap()).unwrap(),
    }
}

fn dump_file(store: &Connection) -> rusqlite::Result<String> {
    let mut sql = String::new();
    for pragma in ["application_id", "user_version"] {
        let value: i64 = store.pragma_query_value(None, pragma, |row| row.get(0))?;
        let _ = writeln!(sql, "PRAGMA {pragma} = {value};");
    }
    let mut parts = store.prepare("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid")?;
    let mut parts = parts.query([])?;
    while let Some(part) = parts.next()? {
        let (kind, name): (String, String) = (part.get(0)?, part.get(1)?);
        let _ = writeln!(sql, "{};", part.get::<_, String>(2)?);
        if kind == "table" {
            let columns = "SELECT group_concat('quote(' || name || ')', ' || '', '' || ') FROM pragma_table_info(?1)";
            let quoted: String = store.query_row(columns, [&name], |row| row.get(0))?;
            let mut rows = store.prepare(&format!("SELECT {quoted} FROM {name}"))?;
            for values in rows.query_map([], |row| row.get::<_, String>(0))? {
                let _ = writeln!(sql, "INSERT INTO {name} VALUES ({});", values?);
            }
        }
    }
    Ok(sql)
}
