//! `paybridge export` and `paybridge reconcile`: rows of the store for other programs, and the comparison with a
//! provider's statement (contract section 14).

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::request::ACME;
use crate::support::stored::{CREATES, Create};
use crate::support::{CARD, Gateway, Request, Rules, eventually, text, withdrawal};

pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

/// Starts a command on the rules of a gateway.
pub fn command(gateway: &Gateway, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_paybridge"));
    command.args(arguments).arg("--rules").arg(gateway.rules_dir()).current_dir(gateway.root.path());
    command.env_remove("PAYBRIDGE_RULES").stdin(Stdio::null());
    command
}

/// Runs a command on the rules of a gateway.
pub fn run(gateway: &Gateway, arguments: &[&str]) -> Ran {
    let output = command(gateway, arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

const ALWAYS: [&str; 4] = ["--from", "2026-01-01", "--to", "2100-01-01"];

#[track_caller]
fn exported(gateway: &Gateway, arguments: &[&str]) -> String {
    let ran = run(gateway, &[&["export"], arguments, &ALWAYS].concat());
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    ran.out
}

/// The rows of an export as JSON lines.
fn lines(gateway: &Gateway, arguments: &[&str]) -> Vec<Value> {
    let lines = exported(gateway, &[arguments, &["--format", "jsonl"]].concat());
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The rows of an export as CSV, each as an object.
fn rows(gateway: &Gateway, arguments: &[&str]) -> Vec<Value> {
    let text = exported(gateway, arguments);
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let names = reader.headers().unwrap().clone();
    let object = |row: csv::StringRecord| {
        let cells = names.iter().zip(row.iter());
        cells.map(|(name, cell)| (name.to_owned(), Value::from(cell))).collect::<serde_json::Map<_, _>>().into()
    };
    reader.records().map(|row| object(row.unwrap())).collect()
}

/// A withdrawal that succeeds.
async fn paid(gateway: &Gateway, order_id: &str) -> Value {
    let client = gateway.client();
    let reply = client.send(&Request::withdrawal(&ACME, &withdrawal(order_id))).await.expect(200).json();
    eventually("a result", async || {
        let status = client.send(&Request::status(&ACME, text(&reply, "transaction_id"))).await.expect(200).json();
        (status["status"] == "SUCCESS").then_some(())
    })
    .await;
    reply
}

#[tokio::test]
async fn rows_are_exported_beside_a_gateway() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    for kind in CREATES {
        kind.create(&client, &ACME, &kind.body(&format!("={kind:?}"))).await;
    }
    let reply = paid(&gateway, "paid").await;
    let operations = rows(&gateway, &["operations"]);
    assert_eq!(operations.len(), 5);
    assert_eq!(text(&operations[0], "order_id"), "'=Payin", "a spreadsheet runs no order id");
    assert_eq!((text(&operations[0], "through"), text(&operations[2], "through")), ("v1", "v2"));
    let last = &operations[4];
    assert_eq!(text(last, "transaction_id"), text(&reply, "transaction_id"));
    assert_eq!((text(last, "status"), text(last, "direction"), text(last, "merchant")), ("SUCCESS", "payout", "acme"));
    assert!(text(last, "amount").contains('.') && text(last, "finished_at").ends_with('Z'), "{last}");

    let json = lines(&gateway, &["operations", "--merchant", "acme", "--shop", "card-eur"]);
    assert_eq!(text(&json[0], "order_id"), "=Payin", "JSON has no apostrophes");
    assert!(json[0]["finished_at"].is_null() && json[4]["amount"].is_string(), "{json:?}");
    let all = [exported(&gateway, &["operations"]), exported(&gateway, &["callbacks"])].concat();
    assert!(!all.contains(CARD), "account numbers are masked");

    let entries = rows(&gateway, &["entries"]);
    let cents = |row: &Value| text(row, "amount").replace('.', "").parse::<i64>().unwrap();
    assert_eq!(entries.iter().map(cents).sum::<i64>(), 0, "{entries:?}");
    let of_last = |row: &&Value| text(row, "transaction_id") == text(last, "transaction_id");
    let postings: Vec<_> = entries.iter().filter(of_last).map(|row| text(row, "posting")).collect();
    assert_eq!(postings, ["held", "held", "taken", "taken"]);

    let callbacks = lines(&gateway, &["callbacks", "--shop", "card-eur"]);
    assert!(callbacks.iter().any(|row| text(row, "order_id") == "paid"), "{callbacks:?}");

    let actions = lines(&gateway, &["audit"]);
    let first = &actions[0];
    assert_eq!(
        (text(first, "action"), text(first, "target"), text(first, "outcome")),
        ("export", "operations", "5 rows")
    );
    assert_eq!(text(&first["parameters"], "from"), "2026-01-01T00:00:00.000Z");
}

#[tokio::test]
async fn files_are_private_and_never_replaced() {
    let gateway = Gateway::start(&Rules::default());
    Create::Deposit.create(&gateway.client(), &ACME, &Create::Deposit.body("one")).await;
    let ran = |more: &[&str]| run(&gateway, &[&["export", "operations"], &ALWAYS[..], more].concat());
    let done = ran(&["--output", "out.csv"]);
    assert_eq!((done.code, done.out.as_str()), (Some(0), ""), "{}", done.err);
    let path = gateway.root.path().join("out.csv");
    assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 2);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let again = ran(&["--output", "out.csv"]);
    assert!(again.code == Some(1) && again.err.contains("out.csv exists and is not replaced"), "{}", again.err);
    let left = std::fs::read_dir(gateway.root.path()).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(!left.iter().any(|name| name.starts_with(".out")), "{left:?}");

    let empty = run(&gateway, &["export", "operations", "--from", "2020-01-01", "--to", "2020-01-02"]);
    assert_eq!((empty.code, empty.out.lines().count()), (Some(0), 1), "a header alone");
    assert!(empty.err.contains("no operations of this time match"), "{}", empty.err);
    let unknown = ran(&["--merchant", "acmee"]);
    assert!(unknown.err.contains("did you mean `acme`"), "{}", unknown.err);
    for wrong in [
        &["export", "audit", "--from", "2026-01-01", "--to", "2027-01-01", "--shop", "card-eur"][..],
        &["export", "operations", "--from", "2026-01-01", "--to", "2026-01-01"],
        &["export", "operations", "--from", "yesterday", "--to", "2026-01-01"],
        &["export", "operations", "--from", "2026-01-01"],
        &["export", "balances", "--from", "2026-01-01", "--to", "2027-01-01"],
    ] {
        assert_eq!(run(&gateway, wrong).code, Some(2), "{wrong:?}");
    }

    // A reader that stops.
    let mut child = command(&gateway, &[&["export", "operations"], &ALWAYS[..]].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let stopped = child.wait_with_output().unwrap();
    assert_eq!((stopped.status.code(), stopped.stderr.as_slice()), (Some(1), &b""[..]), "it ends quietly");
    let actions = gateway.actions();
    assert!(actions.last().unwrap().contains("output cannot be written"), "{actions:?}");
}

#[test]
fn an_export_without_rows_says_why() {
    let legacy = Rules::default().with("legacy", "url = \"https://v1.example\"").edit(
        "merchants/beta.toml",
        "[v1]",
        "[v1]\nmode = \"shadow\"",
    );
    let gateway = Gateway::start(&legacy);
    let ran = run(&gateway, &[&["export", "operations", "--merchant", "beta"], &ALWAYS[..]].concat());
    assert!(ran.code == Some(0) && ran.err.contains("beta is in mode shadow: "), "{}", ran.err);
    let remote = Rules::default().with("engine", "url = \"https://v2.example\"");
    remote.write(gateway.root.path(), gateway.public.port(), gateway.admin.port());
    let ran = run(&gateway, &[&["export", "entries"], &ALWAYS[..]].concat());
    assert!(ran.code == Some(0) && ran.err.contains("the engine is remote"), "{}{}", ran.out, ran.err);
    assert_eq!(ran.out.lines().count(), 1);
}

#[tokio::test]
async fn a_statement_is_compared_beside_a_gateway() {
    let reading = "[reconcile]\nkey = \"transaction_id\"\ndelimiter = \";\"\ndecimal = \",\"\n\
                   columns = { key = \"Referenz\", amount = \"Betrag\", status = \"Status\" }\n\
                   statuses = { SUCCESS = [\"bezahlt\"] }\nskip = { column = \"Referenz\", values = [\"Summe\"] }\n[provider]";
    let gateway = Gateway::start(&Rules::default().edit("shops/card-eur.toml", "[provider]", reading));
    let (one, two) = (paid(&gateway, "one").await, paid(&gateway, "two").await);
    let amount = text(&rows(&gateway, &["operations"])[0], "amount").replace('.', ",");
    let line = |reply: &Value| format!("{};-{amount};bezahlt;\r\n", text(reply, "transaction_id"));
    let compared = |lines: &str, format: &str| {
        let statement = format!("\u{feff}Referenz;Betrag;Status;\r\n{lines}Summe;1.234,50;;\r\n");
        std::fs::write(gateway.root.path().join("statement.csv"), statement).unwrap();
        let more = ["statement.csv", "--shop", "card-eur", "--format", format];
        run(&gateway, &[&["reconcile"], &more[..], &ALWAYS].concat())
    };
    let same = compared(&(line(&one) + &line(&two)), "table");
    assert_eq!((same.code, same.out.as_str()), (Some(0), ""), "{}", same.err);
    let other = compared(&(line(&one) + &line(&one)), "json");
    assert_eq!(other.code, Some(4), "{}", other.err);
    let document: Value = serde_json::from_str(&other.out).unwrap();
    assert!(other.out.starts_with(r#"{"counts":{"missing_here":0,"missing_there":1,"duplicate":1,"#), "{}", other.out);
    assert_eq!(document["differences"][0]["line"], 3);
    assert_eq!(text(&document["differences"][1], "order_id"), "two");
    let wrong = compared(&line(&one).replace("bezahlt", ""), "csv");
    assert!(wrong.code == Some(1) && wrong.err.contains("line 2: `Status` is empty"), "{}", wrong.err);
    assert_eq!(wrong.out, "");
}

#[tokio::test]
async fn orders_are_compared_after_their_merchant_was_removed() {
    let reading = "[reconcile]\nkey = \"order_id\"\ncolumns = { key = \"id\", amount = \"amount\" }\n[provider]";
    let gateway = Gateway::start(&Rules::default().edit("shops/card-eur.toml", "[provider]", reading));
    paid(&gateway, "one ").await;
    let amount = text(&rows(&gateway, &["operations"])[0], "amount").to_owned();
    std::fs::remove_file(gateway.rules_dir().join("merchants/acme.toml")).unwrap();
    let compared = |lines: &str| {
        std::fs::write(gateway.root.path().join("statement.csv"), format!("id,amount\n{lines}")).unwrap();
        run(&gateway, &[&["reconcile", "statement.csv", "--shop", "card-eur", "--format", "csv"], &ALWAYS[..]].concat())
    };
    let same = compared(&format!("\"one \",{amount}\n"));
    assert_eq!((same.code, same.out.lines().count()), (Some(0), 1), "{}{}", same.out, same.err);
    let other = compared("\"one \",1.01\n");
    assert!(other.code == Some(4) && other.out.ends_with(&format!(",1.01,{amount}\r\n")), "{}{}", other.out, other.err);
    assert_eq!(other.out.lines().count(), 2, "a difference of the amount alone: {}", other.out);
    let missing = compared("");
    assert!(
        missing.out.contains("missing_there,,one ,") && missing.out.ends_with(&format!(",,{amount}\r\n")),
        "{}",
        missing.out
    );
}
