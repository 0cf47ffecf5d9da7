//! Edits while money flows: traffic never fails, is right under one of the two rule sets, and what existed stays.

use rustix::process::Signal;
use serde_json::json;

use crate::reload::traffic::{SWITCHED, Seen, Traffic, versions};
use crate::reload::{count, reload, reload_good, rules, save, write};
use crate::support::bodies::with;
use crate::support::request::{ACME, ACME_V2, BETA};
use crate::support::stored::{CREATES, Create};
use crate::support::{Gateway, Request, Rules, eventually, text};

/// The switched shop's file; the number makes each text another one.
pub fn switched_shop(number: usize) -> String {
    let active = number.is_multiple_of(2);
    format!("# edit {number}\ncurrency = \"EUR\"\nactive = {active}\n[provider]\nkind = \"sandbox\"\n")
}

/// Edits the switched shop so many times, by one way of reloading after the other, and gives the versions.
pub async fn edit(gateway: &Gateway, edits: std::ops::Range<usize>, versions: &mut Vec<String>) {
    for number in edits {
        save(gateway, &format!("shops/{SWITCHED}.toml"), &switched_shop(number));
        let before = versions.last().unwrap().clone();
        match number % 3 {
            0 => gateway.signal(Signal::HUP),
            1 => drop(reload_good(gateway)),
            _ => {} // It is watched.
        }
        let version = eventually("the edit serves", async || {
            let now = rules(gateway);
            assert!(now["error"].is_null(), "{now}");
            Some(text(&now, "version").to_owned()).filter(|now| *now != before)
        })
        .await;
        versions.push(version);
    }
}

/// Edits the switched shop so many times, and asks for every reload: nothing waits until a save has settled, which takes most
/// of the time of [`edit`].
pub fn edit_and_ask(gateway: &Gateway, edits: std::ops::Range<usize>) {
    let mut before = text(&rules(gateway), "version").to_owned();
    for number in edits {
        save(gateway, &format!("shops/{SWITCHED}.toml"), &switched_shop(number));
        let now = reload_good(gateway);
        assert_ne!(before, now, "edit {number} serves");
        before = now;
    }
}

/// Asserts that every request was served by one rule set, as its access line says, and that no connection ever went back
/// to an older one.
pub async fn assert_one_rule_set_each(gateway: &Gateway, edits: &[String], seen: &[Vec<Seen>]) {
    let last: Vec<_> = seen.iter().filter_map(|connection| connection.last()).collect();
    let log = eventually("the last lines", async || {
        let log = gateway.log();
        last.iter().all(|request| log.contains(&format!(" request_id={} ", request.request_id))).then_some(log)
    })
    .await;
    let logged = versions(&log);
    for connection in seen {
        let mut newest = 0;
        for request in connection {
            let version =
                logged.get(&*request.request_id).unwrap_or_else(|| panic!("{} has no line", request.request_id));
            let at = edits.iter().position(|edit| edit == version).expect("a version that was in force");
            assert!(at >= newest, "{} went back", request.request_id);
            assert_eq!(request.taken, at % 2 == 0, "{} under edit {at}", request.request_id);
            newest = at;
        }
    }
}

/// The rules that edits start from.
pub fn first_rules() -> Rules {
    Rules::default().file(&format!("shops/{SWITCHED}.toml"), switched_shop(0))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reloads_under_traffic_fail_nothing() {
    let gateway = Gateway::start(&first_rules());
    let mut edits = vec![text(&rules(&gateway), "version").to_owned()];
    let traffic = Traffic::start(&gateway, "edited").await;
    for number in 1..7 {
        edit(&gateway, number..number + 1, &mut edits).await;
        traffic.goes_on().await;
    }
    let seen = traffic.stop().await;
    assert_eq!(count(&gateway, "paybridge_log_lines_dropped_total"), 0);
    let info = format!("paybridge_rules_info{{version=\"{}\"}}", edits.last().unwrap());
    assert_eq!(count(&gateway, &info), 1);
    assert_one_rule_set_each(&gateway, &edits, &seen).await;
    let taken = seen.iter().flatten().filter(|request| request.taken).count();
    let all = seen.iter().map(Vec::len).sum::<usize>();
    assert!(0 < taken && taken < all, "both rule sets were seen: {taken} of {all}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_edit_stops_nothing_and_is_shown_until_it_is_good_again() {
    let gateway = Gateway::start(&first_rules());
    let version = text(&rules(&gateway), "version").to_owned();
    let traffic = Traffic::start(&gateway, "refused").await;
    let good = std::fs::read_to_string(gateway.rules_dir().join("merchants/acme.toml")).unwrap();
    save(&gateway, "merchants/acme.toml", &good.replace("default_shop =", "default_shpo ="));
    let (status, refused) = reload(&gateway);
    assert_eq!((status, &refused["version"]), (422, &json!(version)));
    let problem = &refused["problems"][0];
    assert!(text(problem, "file").ends_with("merchants/acme.toml"), "{refused}");
    assert_eq!((&problem["line"], &problem["column"], &problem["severity"]), (&json!(2), &json!(1), &json!("error")));
    assert!(text(problem, "message").contains("default_shpo"), "{refused}");
    assert!(text(problem, "suggestion").contains("`default_shop`"), "{refused}");
    assert_eq!(refused["problem_count"], refused["problems"].as_array().unwrap().len());
    assert!(text(&refused, "error").contains("merchants/acme.toml:2:1: "), "{refused}");
    assert_eq!(rules(&gateway), refused, "shown until it is good again");
    assert_eq!(count(&gateway, "paybridge_rules_refused"), 1);
    assert_eq!(json!(count(&gateway, "paybridge_rules_problems")), refused["problem_count"]);
    let stated =
        format!("rules rejected; the last good ones stay in force version={version} trigger=\"admin\" problems=1");
    eventually("the refusal is logged", async || gateway.log().contains(&stated).then_some(())).await;
    traffic.goes_on().await;

    gateway.signal(Signal::HUP);
    let stated = stated.replace("admin", "SIGHUP");
    eventually("SIGHUP tells the same", async || gateway.log().contains(&stated).then_some(())).await;
    save(&gateway, "merchants/acme.toml", &good);
    let now = eventually("it is good again", async || Some(rules(&gateway)).filter(|now| now["error"].is_null())).await;
    assert_eq!((&now["version"], &now["problems"], &now["problem_count"]), (&json!(version), &json!([]), &json!(0)));
    let stated = format!("the rules on disk are valid again version={version}");
    eventually("it is said", async || gateway.log().contains(&stated).then_some(())).await;
    // They are brought up to date last.
    let gauges = || ["paybridge_rules_refused", "paybridge_rules_problems"].map(|name| count(&gateway, name));
    eventually("the gauges follow", async || (gauges() == [0, 0]).then_some(())).await;
    traffic.goes_on().await;
    let seen = traffic.stop().await;
    assert!(seen.iter().flatten().all(|request| request.taken), "one rule set all the time");
}

#[tokio::test]
async fn warnings_are_no_problems() {
    let gateway = Gateway::start(&first_rules());
    let good = std::fs::read_to_string(gateway.rules_dir().join("merchants/acme.toml")).unwrap();
    // The file is not read, which is a warning of the rules in force and of those on disk.
    save(&gateway, "merchants/a b.toml", "x");
    let (status, warned) = reload(&gateway);
    assert_eq!((status, &warned["error"], &warned["warning_count"]), (200, &json!(null), &json!(1)), "{warned}");
    save(&gateway, "merchants/acme.toml", &good.replace("default_shop =", "default_shpo ="));
    let (status, refused) = reload(&gateway);
    assert_eq!(
        (status, &refused["problem_count"], &refused["warning_count"]),
        (422, &json!(1), &json!(1)),
        "{refused}"
    );
    assert_eq!(refused["problems"].as_array().map(Vec::len), Some(1), "{refused}");
    assert!(!text(&refused, "error").contains("a b.toml"), "{refused}");
    assert_eq!(count(&gateway, "paybridge_rules_problems"), 1);
    let page = |path| gateway.admin_get(path).unwrap().1;
    assert!(page("/").contains("Problems: 1."), "{}", page("/"));
    assert!(page("/audit").contains("problems: 1<"), "{}", page("/audit"));
    let shown = page("/rules");
    let (_, problems) = shown.split_once(">Problems ").unwrap();
    let (problems, warnings) = problems.split_once(">Warnings ").unwrap();
    assert!(problems.contains("acme.toml") && !problems.contains("a b.toml"), "{problems}");
    assert!(warnings.contains("a b.toml") && !warnings.contains("acme.toml"), "{warnings}");
}

/// What an edit takes away is gone with the next request, on connections that were open before too; a retry of what
/// exists gets its first reply all the same.
#[tokio::test]
async fn what_an_edit_takes_away_is_gone_and_retries_get_their_first_reply() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let mut kept = client.connect().await;
    let mut orders = Vec::new();
    for create in CREATES {
        let id = format!("order-{create:?}");
        let first = create.create(&client, &ACME, &create.body(&id)).await;
        orders.push((create, id, first));
    }
    kept.send(&Request::status(&ACME, "1")).await.expect(404);

    // A shop is switched off: nothing new, and every retry is answered.
    write(&gateway, &Rules::default().edit("shops/card-eur.toml", "currency", "active = false\ncurrency"));
    reload_good(&gateway);
    for (create, id, first) in &orders {
        let new = create.request(&ACME, create.body(&format!("{id}-new")).to_string());
        kept.send(&new).await.expect(400);
        let retry = create.request(&ACME, create.body(id).to_string());
        assert_eq!(kept.send(&retry).await.expect(200).json(), first.json(), "{create:?}");
    }

    // The merchant is taken off it.
    let off = "[shops.card-eur]\npayin = false\npayout = false\n[shops.slow-eur]";
    let on = "[shops.card-eur]\npayin = true\npayout = true\n[shops.slow-eur]";
    write(&gateway, &Rules::default().edit("merchants/acme.toml", on, off));
    reload_good(&gateway);
    for (create, id, first) in &orders {
        kept.send(&create.request(&ACME, create.body(&format!("{id}-newer")).to_string())).await.expect(400);
        let retry = create.request(&ACME, create.body(id).to_string());
        assert_eq!(kept.send(&retry).await.expect(200).json(), first.json(), "{create:?}");
    }

    // A schema asks for more than was asked for before.
    let schema = r#"{"type":"object","required":["holder"],"properties":{"holder":{"type":"string"}}}"#;
    let strict = Rules::default().file("shops/card-eur.payin.json", schema).file("shops/card-eur.payout.json", schema);
    write(&gateway, &strict);
    reload_good(&gateway);
    for (create, id, first) in &orders {
        kept.send(&create.request(&ACME, create.body(&format!("{id}-newest")).to_string())).await.expect(400);
        let retry = create.request(&ACME, create.body(id).to_string());
        assert_eq!(kept.send(&retry).await.expect(200).json(), first.json(), "{create:?}");
    }
}

#[tokio::test]
async fn keys_and_addresses_are_taken_away_at_once() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let order = Create::Deposit.body("of-the-revoked-key");
    let first = Create::Deposit.create(&client, &ACME_V2, &order).await;
    let mut kept = client.connect().await;
    let ask = |body: &serde_json::Value, key| Create::Deposit.request(key, body.to_string());
    kept.send(&ask(&order, &ACME_V2)).await.expect(200);

    let revoked = Rules::default().edit("merchants/acme.toml", "key = \"acme-native\"", "key = \"acme-other\"");
    write(&gateway, &revoked);
    reload_good(&gateway);
    kept.send(&ask(&order, &ACME_V2)).await.expect(401);
    let by_another_key = client.send(&ask(&order, &ACME)).await.expect(200);
    assert_eq!(by_another_key.json(), first.json(), "the merchant's other key gets the first reply");

    // Only the allow-list of BETA's key.
    let elsewhere = Rules::default().edit("merchants/beta.toml", "127.0.0.0/8", "203.0.113.0/24");
    let body = Create::Payin.body("beta-order");
    let first = Create::Payin.create(&client, &BETA, &body).await;
    let mut kept = client.connect().await;
    kept.send(&Create::Payin.request(&BETA, body.to_string())).await.expect(200);
    write(&gateway, &elsewhere);
    reload_good(&gateway);
    kept.send(&Create::Payin.request(&BETA, body.to_string())).await.expect(403);
    write(&gateway, &Rules::default());
    reload_good(&gateway);
    let retry = client.send(&Create::Payin.request(&BETA, body.to_string())).await.expect(200);
    assert_eq!(retry.json(), first.json());
    let other = with(body, "amount", Some(json!("11.00")));
    client.send(&Create::Payin.request(&BETA, other.to_string())).await.expect(409);
    client.send(&ask(&order, &ACME_V2)).await.expect(200);
}
