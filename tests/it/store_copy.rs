//! `paybridge store copy`: a store moves from SQLite to PostgreSQL, with everything in it (contract section 12).

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;

use regex::Regex;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::bodies::with;
use crate::support::postgres::{self, Database};
use crate::support::request::{ACME, GAMMA, Key};
use crate::support::rules::{STORE_URL, write_file};
use crate::support::stored::{CREATES, Create};
use crate::support::{Client, Gateway, Request, Rules, eventually, text};

const NOT_ITS: &str = "QSBrZXkgdGhhdCBubyBzdG9yZSB3YXMgbWFkZSB3aXQ=";

struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

impl Ran {
    /// The operations, journal entries and rows of a copy that came to its end.
    #[track_caller]
    fn copied(&self) -> [u64; 3] {
        assert_eq!(self.code, Some(0), "{}{}", self.out, self.err);
        let line = r"^copied (\d+) operations? and (\d+) journal (?:entry|entries), (\d+) rows? in all, with the same sums, in .*\n$";
        let counted =
            Regex::new(line).unwrap().captures(&self.out).unwrap_or_else(|| panic!("{}", self.out)).extract().1;
        assert!(self.err.lines().any(|line| line.starts_with("note: ")), "{}", self.err);
        counted.map(|count: &str| count.parse().unwrap())
    }

    #[track_caller]
    fn failed(&self, why: &str) {
        assert_eq!((self.code, self.out.as_str()), (Some(1), ""), "{}", self.err);
        // A slow copy reports its progress first.
        let has_error = self.err.lines().any(|line| line.starts_with("error: "));
        assert!(has_error && self.err.contains(why), "{}", self.err);
    }

    /// Nothing was done, and nothing of a URL is shown.
    #[track_caller]
    fn was_usage(&self, why: &str) {
        assert_eq!((self.code, self.out.as_str()), (Some(2), ""), "{}", self.err);
        assert!(self.err.contains(why) && !self.err.contains("hush"), "{}", self.err);
    }
}

fn start_copy(gateway: &Gateway, to: &str) -> Child {
    let mut copy = gateway.store_command("copy");
    copy.args(["--from", "sqlite:data/paybridge.db", "--to", to]);
    copy.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn copy(gateway: &Gateway, to: &str) -> Ran {
    start_copy(gateway, to).wait_with_output().unwrap().into()
}

/// A gateway whose store is a file. Its key is named, as several nodes need it.
fn started(rules: &Rules) -> Gateway {
    Gateway::start_on_file(rules)
}

/// Tells a copy where it goes in another way than on its command line.
fn copy_named(gateway: &Gateway, words: &[&str], url: &str) -> Ran {
    let mut copy = gateway.store_command("copy");
    copy.args(["--from", "sqlite:data/paybridge.db"]).args(words).env("PAYBRIDGE_TEST_DATABASE", url);
    copy.output().unwrap().into()
}

/// Nobody serves the file, reads it or writes to it, and everybody is told why without a password.
#[track_caller]
fn assert_moved(gateway: &Gateway) {
    let is_refused = |ran: Ran| {
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{}", ran.err);
        let why = "data/paybridge.db: was moved to postgres://127.0.0.1:";
        assert!(ran.err.contains(why) && ran.err.contains("set store.url to it"), "{}", ran.err);
        assert!(!ran.err.contains("paybridge@"), "{}", ran.err);
    };
    is_refused(gateway.command().output().unwrap().into());
    let ids = gateway.root.path().join("more.txt");
    std::fs::write(&ids, "more\n").unwrap();
    let backup = gateway.root.path().join("backup.db");
    for words in [
        &["store", "check"][..],
        &["store", "rekey"],
        &["store", "backup", backup.to_str().unwrap()],
        &["callbacks", "list"],
        &["import-ids", "--merchant", "acme", "--kind", "payin", ids.to_str().unwrap()],
    ] {
        is_refused(tool(gateway, words).into());
    }
}

/// Takes the mark away, as operators may.
fn unmark(gateway: &Gateway) {
    gateway.tamper("DELETE FROM moved");
}

/// Names the database as the store.
pub fn move_to(gateway: &mut Gateway, rules: &Rules, database: &Arc<Database>) {
    write_file(&gateway.root.path().join(STORE_URL), &database.url());
    rules.write(gateway.root.path(), gateway.public.port(), gateway.admin.port());
    gateway.database = Some(Arc::clone(database));
    std::fs::rename(gateway.root.path().join("data"), gateway.root.path().join("data-of-before")).unwrap();
}

fn tool(gateway: &Gateway, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_paybridge"))
        .args(words)
        .arg("--rules")
        .arg(gateway.rules_dir())
        .current_dir(gateway.root.path())
        .env_remove("PAYBRIDGE_RULES")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn ids(count: usize) -> String {
    use std::fmt::Write as _;
    (0..count).fold(String::new(), |mut text, number| {
        writeln!(text, "old-{number}").unwrap();
        text
    })
}

fn import(gateway: &Gateway, kind: &str, count: usize) {
    let file: PathBuf = gateway.root.path().join("ids.txt");
    std::fs::write(&file, ids(count)).unwrap();
    let ran = tool(gateway, &["import-ids", "--merchant", "acme", "--kind", kind, file.to_str().unwrap()]);
    assert_eq!(ran.status.code(), Some(0), "{}", String::from_utf8_lossy(&ran.stderr));
}

/// Everything of callbacks that does not depend on the time of the question.
fn callbacks(gateway: &Gateway) -> Vec<String> {
    let words =
        ["callbacks", "list", "--state", "pending", "--state", "failed", "--state", "delivered", "--format", "json"];
    let output = tool(gateway, &words);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let ids = Regex::new("cb_[0-9a-f]{32}").unwrap();
    let listed = String::from_utf8(output.stdout).unwrap();
    let mut shown: Vec<_> = ids
        .find_iter(&listed)
        .map(|id| {
            let shown = tool(gateway, &["callbacks", "show", id.as_str(), "--format", "json"]).stdout;
            let mut shown: Value = serde_json::from_slice(&shown).unwrap();
            shown.as_object_mut().unwrap().retain(|name, _| !name.contains("age") && name != "waits_for");
            shown.to_string()
        })
        .collect();
    shown.sort();
    shown
}

/// What merchants see.
async fn seen(client: &Client, reported: &[(Create, String, Value)]) -> Vec<String> {
    let mut seen = Vec::new();
    for (kind, id, reply) in reported {
        seen.push(client.send(&kind.status(&ACME, id, reply)).await.expect(200).text());
    }
    for path in ["/api/v1/balance", "/api/v1/transactions", "/api/v1/transactions?page=2&per_page=3"] {
        seen.push(client.send(&Request::v1_get(&ACME, path)).await.text());
    }
    seen.push(client.send(&Request::v1_get(&GAMMA, "/api/v1/balance")).await.expect(200).text());
    seen
}

async fn assert_reserved(client: &Client, key: &Key, kind: Create, id: &str) {
    let body = with(kind.body(id), if kind.is_v1() { "shop_code" } else { "method" }, Some("off-eur".into()));
    client.send(&kind.request(key, body.to_string())).await.expect(409);
}

#[tokio::test]
async fn a_copied_store_serves_as_before() {
    let Some(server) = postgres::server() else { return };
    let database = Arc::new(server.database());
    let opening = "[balance]\nopening = { EUR = \"130.00\" }\n[v1]";
    let rules = Rules::default().edit("merchants/gamma.toml", "[v1]", opening);
    let mut gateway = started(&rules);
    let client = gateway.client();
    let mut reported = Vec::new();
    for number in 0..5 {
        for kind in CREATES {
            let id = format!("{kind:?}-{number}");
            let mut body = kind.body(&id);
            if number == 4 && !kind.is_v1() {
                body = with(body, "method", Some("slow-eur".into()));
            }
            let reply = kind.create(&client, &ACME, &body).await.json();
            reported.push((kind, id, reply));
        }
    }
    client.send(&Request::v1_get(&GAMMA, "/api/v1/balance")).await.expect(200);
    import(&gateway, "payin", 500);
    eventually("results and tries", async || {
        let shown = callbacks(&gateway);
        (shown.len() >= 9 && shown.iter().any(|shown| !shown.contains("\"tries\":0"))).then_some(())
    })
    .await;
    eventually("all that is decided soon", async || {
        let stays = |(kind, id, _): &(Create, String, Value)| {
            matches!(kind, Create::Payin | Create::Deposit) || (*kind == Create::Withdrawal && id.ends_with('4'))
        };
        for (kind, id, reply) in reported.iter().filter(|reported| !stays(reported)) {
            if client.send(&kind.status(&ACME, id, reply)).await.expect(200).json()["status"] != "SUCCESS" {
                return None;
            }
        }
        Some(())
    })
    .await;
    let before = seen(&client, &reported).await;
    gateway.kill();
    gateway.tamper(
        "INSERT INTO check_counts VALUES ('acme', x'01', x'02', 'é', 1, 4, 'm', 'r', 'f', 'k', 7, 8, 9, '[\"{}\"]'); \
         INSERT INTO complete_ids VALUES ('acme', 1, 5); \
         INSERT INTO actions VALUES (9, 1, 2, 'ü', 'operator', '::1', 'r', 'a', 't', '{}', 'v', \
         x'00112233445566778899aabbccddeeff', 'done')",
    );
    let trail = gateway.actions();
    assert!(trail.len() > 1 && trail[0] == "ü a t {} done", "{trail:?}");

    let callbacks_before = callbacks(&gateway);
    let proved = gateway.store_check().stdout;
    let [operations, journal, rows] = copy(&gateway, &database.url()).copied();
    assert_eq!((operations, journal), (20, 0));
    assert!(rows > 500 + 20 + 20, "{rows}");
    assert_moved(&gateway);
    copy(&gateway, &database.url()).failed("was moved to postgres://127.0.0.1:");
    copy(&gateway, &server.database().url()).failed("was moved to postgres://127.0.0.1:");
    unmark(&gateway);
    assert_eq!(gateway.store_check().stdout, proved, "the source stays");
    copy(&gateway, &database.url()).failed("holds a store already: name an empty database");

    move_to(&mut gateway, &rules, &database);
    assert!(callbacks_before.len() >= 8, "{callbacks_before:?}");
    assert_eq!(callbacks(&gateway), callbacks_before);
    assert_eq!(gateway.actions(), trail);
    assert_eq!(database.sql("SELECT idempotency_key FROM actions WHERE id = 9"), "\\x00112233445566778899aabbccddeeff");
    assert_eq!(gateway.store_check().status.code(), Some(0));
    gateway.restart();
    let client = gateway.client();
    let after = seen(&client, &reported).await;
    assert_eq!(after, before);
    for (kind, id, reply) in &reported {
        let mut body = kind.body(id);
        if id.ends_with('4') && !kind.is_v1() {
            body = with(body, "method", Some("slow-eur".into()));
        }
        assert_eq!(&kind.create(&client, &ACME, &body).await.json(), reply, "{id}");
        let other = if kind.is_v1() { "991.18".into() } else { serde_json::json!(991.18) };
        client.send(&kind.request(&ACME, with(body, "amount", Some(other)).to_string())).await.expect(409);
    }
    // Reservations are exact: of that merchant and direction, and reserving them again makes none.
    assert_reserved(&client, &ACME, Create::Payin, "old-7").await;
    Create::Payout.create(&client, &ACME, &Create::Payout.body("old-7")).await;
    Create::Payin.create(&client, &ACME, &Create::Payin.body("old-500")).await;
    import(&gateway, "payin", 500);
    assert_eq!(database.sql("SELECT count(*) FROM homes WHERE home = 3"), "500");
    let checks = "SELECT concat_ws(' ', rules, id, shop, c.direction, class, member, reason, file, key, count, since, \
                  updated_at, samples, complete_at) FROM merchants JOIN check_counts c USING (merchant) \
                  JOIN complete_ids USING (merchant, direction)";
    assert_eq!(database.sql(checks), "\\x01 \\x02 é 1 4 m r f k 7 8 9 [\"{}\"] 5");
    let checked = gateway.store_check();
    assert_eq!(checked.status.code(), Some(0), "{}", String::from_utf8_lossy(&checked.stdout));
}

/// Starts a copy and ends it by a signal once it has committed reserved ids.
fn end_half_way(gateway: &Gateway, database: &Database, signal: Signal) -> Ran {
    let count = || {
        let made = database.sql("SELECT to_regclass('copying') IS NOT NULL") == "t";
        if made { database.sql("SELECT count(*) FROM homes WHERE home = 3").parse().unwrap() } else { 0_u64 }
    };
    let before = count();
    let mut copying = start_copy(gateway, &database.url());
    while count() == before {
        assert!(copying.try_wait().unwrap().is_none(), "it came to its end too soon");
    }
    kill_process(Pid::from_child(&copying), signal).unwrap();
    copying.wait_with_output().unwrap().into()
}

#[tokio::test]
async fn a_copy_that_was_killed_goes_on() {
    const IDS: usize = 400_000;
    let Some(server) = postgres::server() else { return };
    let database = Arc::new(server.database());
    let rules = Rules::default();
    let mut gateway = started(&rules);
    let reported = Create::Payout.create(&gateway.client(), &ACME, &Create::Payout.body("one")).await.json();
    gateway.kill();
    import(&gateway, "payin", IDS);
    end_half_way(&gateway, &database, Signal::INT)
        .failed("interrupted\nrun the command again to continue: copied rows stay\n");
    end_half_way(&gateway, &database, Signal::KILL);
    let count = || database.sql("SELECT count(*) FROM homes").parse::<usize>().unwrap();
    let copied = count();
    assert!(copied > 0 && copied < IDS, "{copied}");
    assert_eq!(database.sql("SELECT copied FROM copying WHERE name = 'homes'"), copied.to_string());

    // Nobody serves what is half a store, or looks after it.
    let half = Gateway::prepare_on(&rules, Some(Arc::clone(&database)));
    let key = std::fs::read_to_string(gateway.root.path().join("secrets/store.key")).unwrap();
    write_file(&half.root.path().join("secrets/store.key"), &key);
    let refused = half.command().output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("is an unfinished copy of another store"));
    for command in ["check", "rekey"] {
        let refused: Ran = half.store_command(command).output().unwrap().into();
        refused.failed("is an unfinished copy of another store");
    }
    // Neither does another store go on with it.
    let mut other = started(&rules);
    other.kill();
    copy(&other, &database.url()).failed("an unfinished copy of another store than this one");
    assert_eq!(count(), copied);

    // What was changed meanwhile is found.
    database.sql("UPDATE entries SET amount = amount + 1 WHERE amount > 0");
    copy(&gateway, &database.url()).failed("entries of the target differs from the source");
    assert_eq!(count(), IDS + 1);
    assert_ne!(database.sql("SELECT count(*) FROM copying"), "0");
    database.sql("UPDATE entries SET amount = amount - 1 WHERE amount > 0");
    database.sql("INSERT INTO merchants VALUES ('stranger')");
    copy(&gateway, &database.url()).failed("merchants of the target differs from the source");
    database.sql("DELETE FROM merchants WHERE merchant = 'stranger'");

    // As it is when the copy ends between the source's mark and the target's: neither is served, and it goes on.
    let mark = database.sql("SELECT string_agg(format('(%L, %s)', name, copied), ', ') FROM copying");
    copy(&gateway, &database.url()).copied();
    database.sql(&format!("INSERT INTO copying VALUES {mark}"));
    assert_moved(&gateway);
    let refused = half.command().output().unwrap();
    assert!(String::from_utf8_lossy(&refused.stderr).contains("is an unfinished copy of another store"));

    let [operations, _, rows] = copy(&gateway, &database.url()).copied();
    assert_eq!(operations, 1);
    assert_moved(&gateway);
    assert!(rows > IDS as u64, "{rows}");
    move_to(&mut gateway, &rules, &database);
    gateway.restart();
    let client = gateway.client();
    assert_eq!(Create::Payout.create(&client, &ACME, &Create::Payout.body("one")).await.json(), reported);
    assert_reserved(&client, &ACME, Create::Payin, &format!("old-{}", IDS - 1)).await;
}

#[test]
fn the_target_is_named_by_a_file_a_variable_or_the_rules() {
    let Some(server) = postgres::server() else { return };
    let rules = Rules::default();
    let mut gateway = started(&rules);
    gateway.kill();
    let [first, second, third] = [(); 3].map(|()| server.database());
    std::fs::write(gateway.root.path().join("database.url"), format!("{}\n", first.url())).unwrap();
    copy_named(&gateway, &["--to", "file:database.url"], "").copied();
    unmark(&gateway);
    copy_named(&gateway, &["--to", "env:PAYBRIDGE_TEST_DATABASE"], &second.url()).copied();
    unmark(&gateway);
    write_file(&gateway.root.path().join(STORE_URL), &third.url());
    rules.write(gateway.root.path(), gateway.public.port(), gateway.admin.port());
    copy_named(&gateway, &[], "").copied();
}

#[test]
fn what_cannot_be_copied_changes_nothing() {
    let Some(server) = postgres::server() else { return };
    let database = server.database();
    let empty = || database.sql("SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace") == "0";
    let mut gateway = started(&Rules::default());
    copy(&gateway, &database.url()).failed("another process serves this store");
    gateway.kill();
    let source = gateway.root.path().join("data/paybridge.db");
    let refused = |from: &str, to: &str| -> Ran {
        gateway.store_command("copy").args(["--from", from, "--to", to]).output().unwrap().into()
    };
    for (from, to) in [
        (database.url().as_str(), "sqlite:data/other.db"),
        ("sqlite:data/paybridge.db", "sqlite:data/other.db"),
        ("sqlite:data/paybridge.db", "mysql://root:hush-hush@localhost/db"),
        ("data/paybridge.db", &database.url()),
    ] {
        refused(from, to).was_usage("");
    }
    for (from, why) in [
        ("sqlite:data/paybridge.db?mode=ro", "--from must be \"sqlite:\" and the path of a file, without ?"),
        ("sqlite:data/paybridge.db#x", "write \"sqlite:data/paybridge.db\""),
        ("sqlite:./data%2Fpaybridge.db", "write \"sqlite:./data/paybridge.db\""),
        ("sqlite:///data/paybridge.db", "\"sqlite:data/paybridge.db\" for a relative one"),
        ("sqlite:file:data/paybridge.db", "write \"sqlite:data/paybridge.db\""),
    ] {
        refused(from, &database.url()).was_usage(why);
    }
    let file = gateway.root.path().join("database.url");
    for (to, holds, why) in [
        ("file:database.url", "mysql://root:hush-hush@localhost/db", "--to must be"),
        ("file:database.url", "postgres://root:hush@hush@localhost/db", "--to has more than one @"),
        ("file:database.url", "\n", "database.url is empty"),
        ("file:none.url", "", "none.url does not exist"),
        ("env:PAYBRIDGE_NO_SUCH_NAME", "", "`PAYBRIDGE_NO_SUCH_NAME` is not set"),
        ("FILE:hush", "", "--to looks like a reference"),
        ("", "", "--to must not be empty"),
    ] {
        std::fs::write(&file, holds).unwrap();
        refused("sqlite:data/paybridge.db", to).was_usage(why);
    }
    let unnamed = gateway.store_command("copy").args(["--from", "sqlite:data/paybridge.db"]).output().unwrap();
    Ran::from(unnamed).was_usage("--to is missing, and store.url of the rules names no PostgreSQL database");
    refused("sqlite:data/none.db", &database.url()).failed("data/none.db: there is no Paybridge store: check --from");
    rusqlite::Connection::open(gateway.root.path().join("data/of-another.db"))
        .unwrap()
        .execute_batch("CREATE TABLE a (b)")
        .unwrap();
    refused("sqlite:data/of-another.db", &database.url())
        .failed("data/of-another.db: there is no Paybridge store: check");
    refused("sqlite:data/paybridge.db", "postgres://nobody@127.0.0.1:1/none?sslmode=disable")
        .failed("cannot open the store");
    let key = gateway.root.path().join("secrets/store.key");
    let right = std::fs::read_to_string(&key).unwrap();
    std::fs::write(&key, NOT_ITS).unwrap();
    copy(&gateway, &database.url()).failed("no key of store.keys opens this store");
    std::fs::write(&key, right).unwrap();
    assert!(empty() && source.exists() && !gateway.root.path().join("data/other.db").exists());
    copy(&gateway, &database.url()).copied();
}

/// Rules of a gateway before the engine on this port of this machine, which shows a certificate by this CA.
fn before(port: u16, ca: &Path) -> Rules {
    let ca = ca.to_str().unwrap();
    Rules::default().with("engine", &format!("url = \"https://localhost:{port}\"\ntrust = [\"{ca}\"]"))
}

/// Lets an engine call back the gateway, whose certificates are made when it starts.
async fn trust(engine: &Gateway, gateway: &Gateway) {
    let loaded = || engine.admin_get("/api/rules");
    let before = loaded();
    let ca = gateway.root.path().join("certs/ca.pem");
    let rules = Rules::default().with("callbacks", &format!("trust = [\"{}\"]", ca.to_str().unwrap()));
    rules.write(engine.root.path(), engine.public.port(), engine.admin.port());
    eventually("the rules are read", async || (loaded() != before).then_some(())).await;
}

#[tokio::test]
async fn a_journal_moves_with_its_accounts_and_callbacks() {
    let Some(server) = postgres::server() else { return };
    let database = Arc::new(server.database());
    let engine = Gateway::start(&Rules::default());
    let rules = before(engine.public.port(), &engine.root.path().join("certs/ca.pem"));
    let mut gateway = started(&rules);
    trust(&engine, &gateway).await;
    let client = gateway.client();
    let mut reported = Vec::new();
    for number in 0..6 {
        for kind in [Create::Payin, Create::Payout] {
            let id = format!("{kind:?}-{number}");
            reported.push((kind, id.clone(), kind.create(&client, &ACME, &kind.body(&id)).await.json()));
        }
    }
    let account_of = async |client: &Client, id: &str| {
        let shown = client.send(&Request::v1_status(&ACME, "payout", id)).await.expect(200).json();
        (shown["status"] == "SUCCESS").then(|| text(&shown, "account_number").to_owned())
    };
    for number in 0..6 {
        eventually("a payout succeeds", async || account_of(&client, &format!("Payout-{number}")).await).await;
    }
    eventually("callbacks wait", async || (callbacks(&gateway).len() >= 6).then_some(())).await;
    gateway.kill();
    let before = callbacks(&gateway);

    let [operations, journal, _] = copy(&gateway, &database.url()).copied();
    assert_eq!((operations, journal), (0, 12));
    move_to(&mut gateway, &rules, &database);
    let name = Regex::new("cb_[0-9a-f]{16}").unwrap();
    let unnamed = |shown: Vec<String>| {
        let mut shown: Vec<_> = shown.iter().map(|shown| name.replace_all(shown, "cb_").into_owned()).collect();
        shown.sort();
        shown
    };
    assert_eq!(unnamed(callbacks(&gateway)), unnamed(before), "but for the numbers in their names");
    let checked = gateway.store_check();
    assert_eq!(checked.status.code(), Some(0), "{}", String::from_utf8_lossy(&checked.stdout));
    gateway.restart();
    let client = gateway.client();
    for (kind, id, reply) in &reported {
        assert_eq!(&kind.create(&client, &ACME, &kind.body(id)).await.json(), reply, "{id}");
    }
    assert_eq!(account_of(&client, "Payout-3").await.as_deref(), Some("400012******1234"));
    let third = Create::Payout.create(&client, &ACME, &Create::Payout.body("new")).await.json();
    assert_ne!(text(&third, "transaction_id"), text(&reported[1].2, "transaction_id"));
    assert_eq!(gateway.store_check().status.code(), Some(0));
}
