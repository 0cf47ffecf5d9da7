//! What a reload tells: the same to whoever asked, in the log, in the reply and by the metrics.

use rustix::process::Signal;
use serde_json::json;

use crate::reload::{count, reload, reload_good, rules, save, write};
use crate::support::request::ACME;
use crate::support::stored::Create;
use crate::support::{Gateway, Rules, eventually, text};

/// Polls the log for a text.
async fn logged(gateway: &Gateway, stated: &str) {
    eventually(stated, async || gateway.log().contains(stated).then_some(())).await;
}

#[tokio::test]
async fn keys_that_need_a_restart_are_named_until_the_file_says_what_runs() {
    let secret = "admin-hush-8Yz-long";
    let mut gateway = Gateway::start(&Rules::default());
    assert_eq!(rules(&gateway)["needs_restart"], json!([]));
    let changed = Rules::default()
        .with("admin", &format!("token = \"{secret}\""))
        .with("engine", "timeout = \"7s\"")
        .with("server", "drain_delay = \"1s\"")
        .with("limits", "body = \"1KiB\"");
    write(&gateway, &changed);
    let keys = json!(["server.drain_delay", "admin.token", "engine.timeout"]);
    let (status, body) = reload(&gateway);
    assert_eq!((status, &body["needs_restart"], &body["error"]), (200, &keys, &json!(null)));
    assert_eq!(rules(&gateway)["needs_restart"], keys, "no token is asked for yet");
    assert_eq!(count(&gateway, "paybridge_rules_needs_restart"), 3);
    let stated = "changed keys of gateway.toml take effect at the next start keys=server.drain_delay, admin.token, engine.timeout";
    logged(&gateway, stated).await;
    let long = crate::support::bodies::with(
        Create::Deposit.body("long"),
        "fields.extra",
        Some(json!({"a": "b".repeat(2000)})),
    );
    gateway.client().send(&Create::Deposit.request(&ACME, long.to_string())).await.expect(413);

    // A refusal does not forget them, another edit neither.
    save(&gateway, "merchants/new.toml", "nmae = 1");
    assert_eq!(reload(&gateway).1["needs_restart"], keys);
    save(&gateway, "merchants/new.toml", "name = \"New\"");
    let reported = gateway.log().matches("take effect at the next start").count();
    reload_good(&gateway);
    assert_eq!(rules(&gateway)["needs_restart"], keys);
    eventually("they are told again", async || {
        (gateway.log().matches("take effect at the next start").count() > reported).then_some(())
    })
    .await;

    write(&gateway, &Rules::default());
    reload_good(&gateway);
    assert_eq!(rules(&gateway)["needs_restart"], json!([]));
    assert_eq!(count(&gateway, "paybridge_rules_needs_restart"), 0);
    logged(&gateway, "no changed key of gateway.toml waits for the next start any more").await;

    write(&gateway, &Rules::default().with("server", "drain_delay = \"1ms\""));
    reload_good(&gateway);
    gateway.signal(Signal::TERM);
    gateway.wait();
    assert!(!gateway.log().contains(secret));
    gateway.restart();
    assert_eq!(rules(&gateway)["needs_restart"], json!([]), "the restart took it");
}

#[tokio::test]
async fn sighup_says_in_the_log_what_the_admin_listener_replies() {
    let gateway = Gateway::start(&Rules::default());
    // The first reading finds the store's key, which the start made.
    let first = reload_good(&gateway);
    gateway.signal(Signal::HUP);
    logged(&gateway, &format!("rules reloaded: no change version={first} trigger=\"SIGHUP\"")).await;
    assert_eq!(reload_good(&gateway), first);
    logged(&gateway, &format!("rules reloaded: no change version={first} trigger=\"admin\"")).await;
    save(&gateway, "lists/banks.txt", "BANK-A\n");
    let second = reload_good(&gateway);
    // On a loaded machine the watcher may be first.
    logged(&gateway, &format!("rules loaded previous={first} version={second} trigger=")).await;
    save(&gateway, "lists/banks.txt", "BANK-A\nBANK-B\nBANK-C\n");
    let third = eventually("it is watched", async || {
        Some(text(&rules(&gateway), "version").to_owned()).filter(|now| *now != second)
    })
    .await;
    logged(&gateway, &format!("rules loaded previous={second} version={third} trigger=\"change\"")).await;
    assert!(count(&gateway, "paybridge_reload_duration_seconds_count") >= 4);
    assert_eq!(count(&gateway, &format!("paybridge_rules_info{{version=\"{third}\"}}")), 1);
    let (_, page) = gateway.admin_get("/metrics").unwrap();
    assert_eq!(page.matches("paybridge_rules_info{").count(), 1, "one version at a time");
}

#[tokio::test]
async fn an_emptied_gateway_file_is_half_a_save() {
    let gateway = Gateway::start(&Rules::default());
    let whole = std::fs::read_to_string(gateway.rules_dir().join("gateway.toml")).unwrap();
    save(&gateway, "gateway.toml", " \n");
    let (status, body) = reload(&gateway);
    assert!(
        status == 422 && text(&body, "error").contains("gateway.toml:1:1: the file is empty and was not"),
        "{body}"
    );
    save(&gateway, "gateway.toml", &whole);
    reload_good(&gateway);
    assert!(rules(&gateway)["error"].is_null());
}

#[tokio::test]
async fn many_problems_are_counted_and_the_first_are_shown() {
    let gateway = Gateway::start(&Rules::default());
    for number in 0..130 {
        save(&gateway, &format!("merchants/wrong-{number:03}.toml"), "nmae = 1\n");
    }
    let (status, body) = reload(&gateway);
    let shown = body["problems"].as_array().unwrap().len();
    assert_eq!((status, shown), (422, 100));
    assert!(body["problem_count"].as_u64().unwrap() >= 130, "{}", body["problem_count"]);
    assert_eq!(json!(count(&gateway, "paybridge_rules_problems")), body["problem_count"]);
    logged(&gateway, "more problems; run `paybridge check` to see all").await;
}
