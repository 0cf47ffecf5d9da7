//! Mode `shadow` and readiness: what v2 would do is counted and reported, and nothing else happens.

use std::process::{Command, Output};

use serde_json::{Value, json};

use super::{answer, import, operations, rules};
use crate::support::bodies::with;
use crate::support::receiver::Receiver;
use crate::support::request::ACME;
use crate::support::{CARD, Gateway, Request, eventually, payin, payout};

const SHADOW: &str = "mode = \"shadow\"";

/// An old service that answers by the order: `refused-...` with 422, `broken-...` with 500, others with 200.
fn old_service() -> Receiver {
    Receiver::start(|received, _| {
        let body = received.json();
        let id = body["external_id"].as_str().unwrap_or_default();
        let status = if id.starts_with("refused") {
            422
        } else if id.starts_with("broken") {
            500
        } else {
            200
        };
        answer(status, "Content-Type: application/json\r\n", "{\"error\":{\"code\":0,\"message\":\"x\"}}")
    })
}

fn readiness(gateway: &Gateway, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_paybridge"))
        .args(["readiness", "--rules"])
        .arg(gateway.rules_dir())
        .args(arguments)
        .current_dir(gateway.root.path())
        .output()
        .unwrap()
}

/// The row of a shop and direction of acme.
fn row(report: &Value, shop: &str, kind: &str) -> Value {
    let rows = report["merchants"][0]["rows"].as_array().unwrap_or_else(|| panic!("{report}"));
    rows.iter().find(|row| row["shop"] == shop && row["kind"] == kind).cloned().unwrap_or_default()
}

/// Waits until so many creates of acme were checked, and gives the report.
async fn checked(gateway: &Gateway, creates: u64) -> Value {
    eventually("the creates are checked", async || {
        let (status, body) = gateway.admin_get("/api/readiness?merchant=acme").unwrap();
        assert_eq!(status, 200, "{body}");
        let report: Value = serde_json::from_str(&body).unwrap();
        let rows = report["merchants"][0]["rows"].as_array().unwrap().clone();
        let total: u64 = rows.iter().filter_map(|row| row["creates"].as_u64()).sum();
        (total >= creates).then_some(report)
    })
    .await
}

async fn send(gateway: &Gateway, body: &Value) -> u16 {
    let request =
        if body.get("card_number").is_some() { Request::payout(&ACME, body) } else { Request::payin(&ACME, body) };
    gateway.client().send_unchecked(&request).await.status
}

#[tokio::test]
async fn what_v2_would_do_is_counted_and_nothing_else_happens() {
    let old = old_service();
    let mut gateway = Gateway::start(&rules(&old, "", SHADOW));
    let bad = |id: &str| with(payin(id), "paymentData.level", Some(json!(9)));
    for (body, expected) in [
        (payin("good-1"), 200),
        (payin("good-2"), 200),
        (bad("good-3"), 200),
        (bad("good-4"), 200),
        (bad("refused-1"), 422),
        (payin("refused-2"), 422),
        (payin("broken-1"), 500),
        (with(payin("good-5"), "paymentData.unheard", Some(json!("of"))), 200),
        (payout("good-6"), 200),
        (with(payin("good-7"), "x", Some(json!(1))), 200),
    ] {
        assert_eq!(send(&gateway, &body).await, expected, "{body}");
    }
    let report = checked(&gateway, 10).await;
    let payins = row(&report, "card-eur", "payin");
    for (member, expected) in
        [("creates", 9), ("would_create", 5), ("would_refuse", 4), ("not_checked", 0), ("not_compared", 1)]
    {
        assert_eq!(payins[member], expected, "{member} in {payins}");
    }
    let finding = |of: &str, member: &str| {
        let all = payins[of].as_array().unwrap();
        all.iter()
            .find(|finding| finding["member"] == member)
            .cloned()
            .unwrap_or_else(|| panic!("{member} in {payins}"))
    };
    let (_, list) = gateway.admin_get("/merchants").unwrap();
    let cells: Vec<_> = list.split("<td class=\"one\" data-label=\"Readiness\">").skip(1).collect();
    assert!(cells[0].starts_with("<b class=\"badge bad\">not ready</b>"), "acme: {list}");
    assert!(cells[1..].iter().all(|cell| cell.starts_with("<span class=\"none\">on v2")), "in translate: {list}");
    let blocker = finding("blockers", "paymentData.level");
    assert_eq!((&blocker["count"], &blocker["file"]), (&json!(2), &json!("shops/card-eur.payin.json")), "{blocker}");
    assert!(blocker["key"].as_str().unwrap().contains("level"), "{blocker}");
    let unknown = finding("blockers", "x");
    assert_eq!((&unknown["file"], &unknown["key"]), (&json!("merchants/acme.toml"), &json!("v1.unknown_fields")));
    assert_eq!(payins["widenings"][0]["count"], 1, "{payins}");
    assert_eq!(finding("losses", "paymentData.unheard")["count"], 1);
    assert_eq!(row(&report, "card-eur", "payout")["would_create"], 1);
    // Stored before the process ends, however it ends.
    gateway.kill();
    gateway.restart();
    assert_eq!(checked(&gateway, 10).await, report);
    assert_eq!(operations(&gateway), 0);
    let (_, metrics) = gateway.admin_get("/metrics").unwrap();
    assert!(metrics.contains("paybridge_callbacks_pending 0"), "{metrics}");
    // A change of the rules that creates are checked by starts new counts; a change of the mode does not.
    gateway.reload_with(&rules(&old, "", "mode = \"legacy\""));
    assert_eq!(row(&checked(&gateway, 10).await, "card-eur", "payin"), payins);
    gateway.reload_with(&rules(&old, "", "mode = \"shadow\", unknown_fields = \"ignore\""));
    assert_eq!(row(&checked(&gateway, 0).await, "card-eur", "payin")["creates"], 0);
    assert_eq!(send(&gateway, &with(payin("good-8"), "x", Some(json!(1)))).await, 200);
    let payins = row(&checked(&gateway, 1).await, "card-eur", "payin");
    assert_eq!((&payins["would_create"], &payins["losses"][0]["member"]), (&json!(1), &json!("x")), "{payins}");
}

#[tokio::test]
async fn the_command_reports_readiness_and_exits_accordingly() {
    let old = old_service();
    let gateway = Gateway::start(&rules(&old, "", SHADOW));
    for number in 0..3 {
        send(&gateway, &payin(&format!("good-{number}"))).await;
    }
    checked(&gateway, 3).await;
    let least = ["--merchant", "acme", "--min-creates", "0", "--min-days", "0"];
    let run = |arguments: &[&str]| {
        let output = readiness(&gateway, arguments);
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, out, _) = run(&least);
    assert_eq!(code, Some(4), "the ids are not complete: {out}");
    assert!(out.contains("not ready"), "{out}");
    for kind in ["payin", "payout"] {
        import(&gateway, kind, "", &["--complete"]);
    }
    let (code, out, err) = run(&least);
    assert_eq!(code, Some(0), "{out}{err}");
    // Shops and directions without a create do not count, unless they are asked for.
    assert!(out.contains("no traffic"), "{out}");
    let payins: Vec<&str> = [&least[..], &["--kind", "payin", "--shop", "card-eur"]].concat();
    let (code, out, err) = run(&payins);
    assert_eq!((code, out.lines().count()), (Some(0), 2), "{out}{err}");
    let payouts: Vec<&str> = [&least[..], &["--kind", "payout"]].concat();
    let (code, out, _) = run(&payouts);
    assert!(code == Some(4) && out.contains("no traffic") && !out.contains("payin"), "{out}");
    let (code, out, _) = run(&["--merchant", "acme"]);
    assert_eq!(code, Some(4), "three creates are not enough: {out}");
    assert!(out.contains("not enough"), "{out}");
    // Without a name, the merchants are reported whose orders are not all made here.
    let (code, out, _) = run(&["--format", "json", "--min-creates", "0", "--min-days", "0"]);
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, report["merchants"].as_array().unwrap().len()), (Some(0), 1), "{out}");
    assert_eq!(report["merchants"][0]["verdict"], "ready");
    send(&gateway, &with(payin("good-9"), "currency", Some(json!("USD")))).await;
    checked(&gateway, 4).await;
    let (code, out, _) = run(&least);
    assert_eq!(code, Some(4), "{out}");
    assert!(out.contains("currency") && out.contains("shops/card-eur.toml"), "{out}");
    let (code, _, err) = run(&["--merchant", "nobody"]);
    assert!(code == Some(1) && err.contains("nobody"), "{err}");
    let (status, _) = gateway.admin_get("/api/readiness?merchant=nobody").unwrap();
    assert_eq!(status, 404);
}

#[tokio::test]
async fn no_value_is_kept_of_what_is_checked() {
    let old = old_service();
    let mut gateway = Gateway::start(&rules(&old, "", SHADOW));
    let mark = "Zq7xMarkW";
    let marked = json!({
        "external_id": format!("{mark}-id"), "amount": "731946.58", "currency": mark, "shop_code": mark,
        "callback_url": format!("https://{mark}.example/cb"), "merchant_user_id": "8315792604", "merchant_user_ip": mark,
        "extra": [mark, { "deep": mark }], mark: mark,
        "paymentData": {
            "return_user_url": format!("https://{mark}.example/"), "email": mark, "bank_code": mark, "card": CARD,
            "level": 8_315_792_604_u64, "unheard": { "of": mark }, "channel": mark, "phone": mark,
        },
    });
    // As it is; and without what is refused first, so that every member is looked at.
    let mut bodies = vec![marked.clone()];
    let fixes = [
        ("currency", json!("EUR")),
        ("shop_code", json!("card-eur")),
        ("extra", Value::Null),
        (mark, Value::Null),
        ("merchant_user_ip", json!("203.0.113.9")),
        ("paymentData.return_user_url", json!("https://checked-alone.example/")),
        ("callback_url", json!("https://checked-alone.example/cb")),
        ("paymentData.level", json!(3)),
        ("paymentData.email", json!("a@b.example")),
        ("paymentData.bank_code", json!("BANK-A")),
        ("paymentData.channel", json!("web")),
    ];
    for (path, value) in fixes {
        let mended = with(bodies.last().unwrap().clone(), path, Some(value).filter(|value| !value.is_null()));
        bodies.push(mended);
    }
    for body in &bodies {
        assert_eq!(send(&gateway, body).await, 200);
    }
    // The unknown member's own name counts as a name; it is the only place of the mark.
    let report = checked(&gateway, bodies.len() as u64).await.to_string().replace(&format!("\"{mark}\":\""), "");
    let report = report.replace(&format!("\"member\":\"{mark}\""), "").replace(&mark.replace('7', "#"), "");
    gateway.signal(rustix::process::Signal::TERM);
    assert!(gateway.wait().success());
    let output = readiness(&gateway, &["--merchant", "acme"]);
    let output = String::from_utf8(output.stdout).unwrap();
    for value in ["731946", "8315792604", CARD, "203.0.113.9", "checked-alone.example", "BANK-A"] {
        assert!(!report.contains(value) && !output.contains(value), "{value}");
        assert!(!gateway.log().contains(value), "{value} is in the log");
        let bytes = value.as_bytes();
        for (path, file) in gateway.store_files() {
            let found = file.windows(bytes.len()).any(|window| window == bytes);
            assert!(!found, "{value} is in {}", path.display());
        }
    }
    // Names that no rule has have their digits masked, so the mark itself appears nowhere.
    assert!(!report.contains(mark) && !output.contains(mark) && !gateway.log().contains(mark), "{report}{output}");
    for (path, file) in gateway.store_files() {
        assert!(!file.windows(mark.len()).any(|window| window == mark.as_bytes()), "in {}", path.display());
    }
    assert_eq!(operations(&gateway), 0);
}
