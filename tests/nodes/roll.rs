//! Which node runs which rules, as operators are told: by `/readyz?detail`, by the metrics and by `paybridge nodes`.

use std::process::{Command, Output};

use super::*;
use crate::support::bodies::deposit;

/// What a node says of all of them.
fn detail(gateway: &Gateway) -> Value {
    let (status, body) = gateway.admin_get("/readyz?detail").expect("an answer");
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

/// The node itself in the list.
fn entry(of: &Gateway, told_by: &Gateway) -> Option<Value> {
    let (own, all) = (detail(of), detail(told_by));
    all["nodes"].as_array().unwrap().iter().find(|node| node["name"] == own["node"]).cloned()
}

/// A gauge.
fn gauge(gateway: &Gateway, name: &str) -> String {
    let (_, page) = gateway.admin_get("/metrics").expect("an answer");
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name}:\n{page}")).to_owned()
}

/// Gives every node the `gateway.toml` of the first; where it listens waits for a restart.
fn equal(nodes: &Nodes) {
    let [first, others @ ..] = nodes.gateways.as_slice() else { return };
    for other in others {
        std::fs::copy(first.rules_dir().join("gateway.toml"), other.rules_dir().join("gateway.toml")).unwrap();
        other.signal(Signal::HUP);
    }
}

/// `paybridge nodes` with the rules of a gateway.
fn listed(gateway: &Gateway, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_paybridge"));
    command.args(["nodes", "--rules"]).arg(gateway.rules_dir()).args(more).current_dir(gateway.root.path());
    command.output().unwrap()
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_node_shows_which_rules_the_others_run() {
    let Some(server) = server() else { return };
    let mut nodes = Nodes::start(server, &Rules::default());
    equal(&nodes);
    eventually("all run the same rules", async || {
        let told = detail(&nodes.gateways[0]);
        (told["same_rules"] == json!(true) && told["nodes"].as_array().unwrap().len() == NODES).then_some(())
    })
    .await;
    let ran = listed(&nodes.gateways[1], &[]);
    assert_eq!(stdout(&ran).lines().count(), 1 + NODES, "{}", stdout(&ran));
    assert!(stderr(&ran).starts_with("every node runs these rules ("), "{}", stderr(&ran));

    one_goes_ahead(&nodes).await;
    one_refuses(&nodes).await;
    one_is_killed(&mut nodes).await;
    one_stops_in_order(&mut nodes);
}

async fn one_goes_ahead(nodes: &Nodes) {
    let [first, second, third] = nodes.gateways.as_slice() else { panic!("three nodes") };
    let (before, shop) = (detail(second)["rules_version"].clone(), second.rules_dir().join("shops/off-eur.toml"));
    let text = std::fs::read_to_string(&shop).unwrap();
    std::fs::write(&shop, format!("{text}# other rules\n")).unwrap();
    let after = eventually("the second runs others", async || {
        let now = detail(second)["rules_version"].clone();
        (now != before).then_some(now)
    })
    .await;
    eventually("the first is told", async || (entry(second, first)?["rules_version"] == after).then_some(())).await;
    assert_eq!(detail(first)["same_rules"], json!(false));
    assert_eq!(entry(third, first).unwrap()["rules_version"], before);
    eventually("the second has counted", async || {
        (gauge(second, "paybridge_nodes_other_rules") == "2.0").then_some(())
    })
    .await;
    let ran = listed(second, &[]);
    assert!(stderr(&ran).starts_with("1 of 3 nodes run these rules ("), "{}", stderr(&ran));
    let document: Value = serde_json::from_str(&stdout(&listed(first, &["--json"]))).unwrap();
    assert_eq!((&document["rules_version"], &document["same_rules"]), (&before, &json!(false)));
    assert_eq!(document["nodes"].as_array().unwrap().len(), NODES);
}

async fn one_refuses(nodes: &Nodes) {
    let [first, .., third] = nodes.gateways.as_slice() else { panic!("three nodes") };
    std::fs::write(third.rules_dir().join("merchants/beta.toml"), "[[api_keys]]\nkey = \"b\"\nv2_secert = \"hush\"\n")
        .unwrap();
    let error =
        eventually("the third refuses", async || entry(third, first)?["rules_error"].as_str().map(str::to_owned)).await;
    assert!(error.contains("merchants/beta.toml:") && !error.contains("hush") && !error.contains('\n'), "{error}");
    let ran = listed(first, &[]);
    assert!(stdout(&ran).contains("merchants/beta.toml:") && !stdout(&ran).contains("hush"), "{}", stdout(&ran));
    // With the rules that are refused it is shown as well, and so it is where secrets are not.
    let ran = listed(third, &[]);
    assert!(stdout(&ran).contains("merchants/beta.toml:"), "{}", stdout(&ran));
    assert!(stderr(&ran).contains("cannot be used: paybridge check says why"), "{}", stderr(&ran));
    let document: Value = serde_json::from_str(&stdout(&listed(third, &["--json"]))).unwrap();
    assert_eq!(document["rules_version"], json!(null));
}

async fn one_is_killed(nodes: &mut Nodes) {
    let name = detail(&nodes.gateways[2])["node"].clone();
    nodes.gateways[2].kill();
    let seen = "UPDATE nodes SET seen_at = seen_at - 61000 WHERE name = ";
    nodes.database.sql(&format!("{seen}'{}'", name.as_str().unwrap()));
    let told = detail(&nodes.gateways[0]);
    let gone = told["nodes"].as_array().unwrap().iter().find(|node| node["name"] == name).cloned().unwrap();
    assert_eq!(gone["state"], "gone");
    let ran = listed(&nodes.gateways[0], &[]);
    assert!(stdout(&ran).contains("gone"), "{}", stdout(&ran));
    assert!(stderr(&ran).starts_with("1 of 2 nodes run these rules ("), "{}", stderr(&ran));
    nodes.gateways[0].signal(Signal::HUP);
    eventually("it is counted", async || {
        let counted = ["paybridge_nodes", "paybridge_nodes_gone"].map(|name| gauge(&nodes.gateways[0], name));
        (counted == ["2.0", "1.0"]).then_some(())
    })
    .await;
}

fn one_stops_in_order(nodes: &mut Nodes) {
    let name = detail(&nodes.gateways[1])["node"].clone();
    nodes.gateways[1].signal(Signal::TERM);
    assert!(nodes.gateways[1].wait().success());
    let told = detail(&nodes.gateways[0]);
    assert!(told["nodes"].as_array().unwrap().iter().all(|node| node["name"] != name), "{told}");
}

#[test]
fn a_file_has_one_gateway() {
    let gateway = Gateway::start_on_file(&Rules::default());
    let told = detail(&gateway);
    assert_eq!((&told["ready"], &told["nodes"]), (&json!(true), &json!(null)));
    let ran = listed(&gateway, &[]);
    assert_eq!(stdout(&ran), "one gateway at a time serves a SQLite store: it keeps no list of nodes\n");
    let document: Value = serde_json::from_str(&stdout(&listed(&gateway, &["--json"]))).unwrap();
    assert_eq!((&document["nodes"], &document["same_rules"]), (&json!(null), &json!(null)));
    assert_eq!(gauge(&gateway, "paybridge_nodes"), "1.0");
    assert_eq!(gauge(&gateway, "paybridge_nodes_other_rules"), "0.0");
}

#[tokio::test]
async fn why_creates_are_refused_is_in_the_log_now_and_then() {
    let Some(server) = server() else { return };
    let database = Arc::new(server.database());
    let mut gateway = Gateway::prepare_on(&Rules::default(), Some(Arc::clone(&database)));
    gateway.spawn();
    assert!(gateway.wait_ready(), "{}", gateway.log());
    let name = database.sql("SELECT current_database()");
    database.sql(&format!("ALTER DATABASE {name} SET default_transaction_read_only = on"));
    database.sql(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
         WHERE datname = current_database() AND application_name = 'paybridge'",
    );
    for number in 0..3 {
        gateway.client().send(&Request::deposit(&ACME, &deposit(&format!("order-{number}")))).await.expect(503);
    }
    eventually("three lines", async || {
        let lines = gateway.log().matches(" status=503 reason=unavailable ").count();
        (lines == 3).then_some(())
    })
    .await;
    let log = gateway.log();
    let told: Vec<_> = log.lines().filter(|line| line.contains("a request was refused for now")).collect();
    let cause = "the database cannot be reached: error connecting to server: database does not allow writes";
    assert!(told.len() == 1 && told[0].contains("WARN") && told[0].contains(cause), "{log}");
}

#[test]
fn a_node_that_lacks_a_key_makes_none_and_no_store() {
    let Some(server) = server() else { return };
    let database = Arc::new(server.database());
    for (name, why) in [("store.key", "for PostgreSQL none is made"), ("pages.key", "the default file of pages.secret")]
    {
        let gateway = Gateway::prepare_on(&Rules::default(), Some(Arc::clone(&database)));
        let key = gateway.root.path().join("secrets").join(name);
        std::fs::remove_file(&key).unwrap();
        let ran = gateway.command().output().unwrap();
        assert_eq!(ran.status.code(), Some(1));
        let said = stderr(&ran);
        let line = said.lines().find(|line| line.starts_with("error: ")).unwrap_or_else(|| panic!("{said}"));
        assert!(line.contains(name) && line.contains(why) && line.contains("openssl rand -base64 32"), "{said}");
        assert!(!key.exists() && database.sql("SELECT to_regclass('paybridge_schema') IS NULL") == "t");
    }
}

#[test]
fn a_database_that_is_away_is_told_in_a_line() {
    let rules = tempfile::tempdir().unwrap();
    let key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    let store = format!("[store]\nurl = \"postgres://u:TOPSECRET@127.0.0.1:9/db?sslmode=disable\"\nkeys = \"{key}\"\n");
    std::fs::write(rules.path().join("gateway.toml"), store).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_paybridge"));
    let ran = command.args(["nodes", "--rules"]).arg(rules.path()).output().unwrap();
    assert_eq!(ran.status.code(), Some(1));
    let said = stderr(&ran);
    assert!(said.starts_with("error: postgres://127.0.0.1:9/db: ") && said.lines().count() == 1, "{said}");
    assert!(!said.contains("TOPSECRET") && ran.stdout.is_empty(), "{said}");
}
