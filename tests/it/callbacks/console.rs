//! What operators do about callbacks on the console's pages: each action leaves one row, a form sent twice acts once,
//! and the outcome has an address.

use std::sync::atomic::Ordering;

use regex::Regex;
use serde_json::Value;

use crate::callbacks::operator::{given_up, moody, prints, reported_again};
use crate::callbacks::{QUICK, a_while, create, path, rules, withdrawal};
use crate::console::{encoded, page};
use crate::support::bodies::with;
use crate::support::request::ACME;
use crate::support::{Gateway, Request, Rules, eventually};

/// The rows of the audit trail without what a test cannot know.
fn rows(gateway: &Gateway) -> Vec<String> {
    gateway.actions()
}

/// The one-time key of a page's forms.
fn form_key(html: &str) -> String {
    let key = Regex::new(r#"name="form" value="([0-9a-f]{32,})""#).unwrap();
    format!("form={}", &key.captures(html).unwrap_or_else(|| panic!("no form: {html}"))[1])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forms_act_once_and_leave_rows() {
    let (answers, receiver) = moody();
    let gateway = Gateway::start(&rules(&[&receiver], QUICK));
    let calls = given_up(&gateway, &receiver, &["one", "two", "three"]).await;
    let id = calls[0].id();
    answers.store(200, Ordering::Relaxed);

    // A double click sends one page's form twice, at the same time.
    let shown = page(&gateway, &format!("/callbacks/{id}"));
    let form = form_key(&shown);
    let send = || gateway.console_act(&format!("/callbacks/{id}/resend"), &form);
    let clicks = std::thread::scope(|scope| [scope.spawn(send), scope.spawn(send)].map(|click| click.join().unwrap()));
    assert!(clicks[0] == clicks[1] && clicks[0].starts_with(&format!("/callbacks/{id}?result=")), "{clicks:?}");
    shows(&gateway, &clicks[0], "Queued (local, ").await;
    reported_again(&receiver, "one").await;
    a_while(&gateway).await;
    assert_eq!(receiver.of(&path("one")).len(), 2, "sent again once");
    assert_eq!(rows(&gateway), [format!("local callbacks.resend {id} {{}} queued")]);

    let count = page(&gateway, "/callbacks/resend?state=failed&merchant=acme&order_id=&since=&until=");
    assert!(count.contains("<b>2</b> failed callbacks match"), "{count}");
    let until = Regex::new(r#"name="until" value="([^"]+)""#).unwrap().captures(&count).unwrap()[1].replace(':', "%3A");
    let form = format!("{}&state=failed&merchant=acme&order_id=&since=&until={until}", form_key(&count));
    let (status, refused) = gateway.console_post("/callbacks/resend", "", &form.replace("&state=failed", ""));
    assert!(status == 400 && refused.contains("state"), "{refused}");
    let done = gateway.console_act("/callbacks/resend", &form);
    assert!(done.starts_with("/callbacks?state=failed&merchant=acme&until="), "{done}");
    shows(&gateway, &done, "2 queued (local, ").await;
    for order in ["two", "three"] {
        reported_again(&receiver, order).await;
    }
    assert_eq!(gateway.console_act("/callbacks/resend", &form), done, "it leads to the same outcome");
    assert_eq!(rows(&gateway).len(), 2);
    let row = &rows(&gateway)[1];
    assert!(
        row.starts_with("local callbacks.resend_failed failed callbacks {\"merchant\":\"acme\",\"until\":\""),
        "{row}"
    );
    assert!(row.ends_with("} 2 queued"), "{row}");

    let form = form_key(&page(&gateway, "/callbacks/sample"));
    let url = receiver.url("/sample?token=hush");
    let sample = format!("{form}&merchant=acme&kind=v2&url={}", url.replace('?', "%3F").replace('=', "%3D"));
    let done = gateway.console_act("/callbacks/sample", &sample);
    assert!(done.starts_with("/callbacks/sample?merchant=acme&kind=v2&result=") && !done.contains("hush"), "{done}");
    let sampled = page(&gateway, &done);
    assert!(
        sampled.contains("Delivered: HTTP 200") && sampled.contains("sample-") && !sampled.contains("hush"),
        "{sampled}"
    );
    assert_eq!(receiver.got("/sample?token=hush", 1).await.len(), 1);
    assert_eq!(gateway.console_act("/callbacks/sample", &sample), done);
    assert_eq!(page(&gateway, &done).matches("sample-").count(), sampled.matches("sample-").count(), "the same body");
    let refused = gateway.console_act("/callbacks/sample", "merchant=nothing&kind=&url=");
    shows(&gateway, &refused, "Failed: ").await;
    let (status, wrong) = gateway.console_post("/callbacks/sample", "", "merchant=acme&kind=v3&url=");
    assert!(status == 400 && wrong.contains("kind"), "{wrong}");
    assert_eq!(gateway.admin_request(&api(&gateway, &format!("/api/callbacks/{id}/resend"))).unwrap().0, 200);
    let unknown = "cb_00000000000000010000000000000001";
    let none = gateway.console_act(&format!("/callbacks/{unknown}/resend"), "");
    let (status, none) = gateway.admin_get(&none).unwrap();
    assert!(status == 404 && none.contains("Failed: there is no such callback"), "{none}");

    let rows = rows(&gateway);
    assert!(rows[2].starts_with("local callbacks.sample acme ") && !rows[2].contains("token"), "{rows:?}");
    assert!(rows[3].contains("callbacks.sample nothing") && rows[3].contains("failed: "), "{rows:?}");
    assert_eq!(rows[4], format!("local callbacks.resend {id} {{}} queued"));
    assert_eq!(rows[5], format!("local callbacks.resend {unknown} {{}} failed: there is no such callback"));
    assert_eq!(rows.len(), 6, "{rows:?}");
    let trail = page(&gateway, "/audit?user=local&action=callbacks.resend&since=1h&until=");
    assert!(trail.contains(id) && trail.contains(unknown) && !trail.contains("callbacks.sample"), "{trail}");
    assert!(!rows.concat().contains(ACME.v2.unwrap()));
}

/// Waits until a page shows the outcome of the action that led to it.
async fn shows(gateway: &Gateway, path: &str, outcome: &str) {
    eventually(outcome, async || page(gateway, path).contains(outcome).then_some(())).await;
}

/// The outcome is found by its address wherever the store is, and no longer where it is not known.
#[tokio::test]
async fn an_outcome_has_an_address_of_its_own() {
    let mut gateway = Gateway::start(&Rules::default());
    let form = form_key(&page(&gateway, "/rules"));
    let done = gateway.console_act("/rules/reload", &form);
    let outcome = "are in force (local, ";
    assert!(done.starts_with("/rules?result=") && page(&gateway, &done).contains(outcome));
    gateway.kill();
    gateway.spawn();
    assert!(gateway.wait_ready());
    for _ in 0..2 {
        assert!(page(&gateway, &done).contains(outcome), "another process shows it, and again");
    }
    assert_eq!(gateway.console_act("/rules/reload", &form), done, "the form was sent before");
    assert_eq!(rows(&gateway).len(), 1);
    for unknown in ["1", "-1", "9223372036854775807", "x", "%00"] {
        let shown = page(&gateway, &format!("/rules?result={unknown}"));
        let (text, way) = ("The outcome of the action cannot be shown here.", "href=\"&#x2f;audit\">Audit trail</a>");
        assert!(shown.contains(text) && shown.contains(way), "{unknown}: {shown}");
    }
    let broken = Rules::default().edit("merchants/acme.toml", "default_shop", "default_shoe");
    broken.write(gateway.root.path(), gateway.public.port(), gateway.admin.port());
    let refused = page(&gateway, &gateway.console_act("/rules/reload", &form_key(&page(&gateway, "/rules"))));
    assert!(refused.contains("message bad") && refused.contains("Failed: the files are refused"), "{refused}");
    gateway.tamper("UPDATE actions SET outcome = NULL, ended_at = NULL");
    let unfinished = page(&gateway, &done);
    assert!(unfinished.contains("The action has not ended"), "{unfinished}");
}

/// The address of a port of this machine on which nothing listens.
fn closed() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    format!("https://{}/cb", listener.local_addr().unwrap())
}

/// The key of a page belongs to what its form had when it was sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_form_that_was_changed_acts_and_the_same_one_does_not() {
    let (answers, receiver) = moody();
    answers.store(200, Ordering::Relaxed);
    let gateway = Gateway::start(&rules(&[&receiver], QUICK));
    let key = form_key(&page(&gateway, "/callbacks/sample"));
    let sample = |url: &str, kind: &str| {
        gateway.console_act("/callbacks/sample", &format!("{key}&merchant=acme&kind={kind}&url={}", encoded(url)))
    };
    let shown = |path: &str, outcome: &str| {
        let html = page(&gateway, path);
        assert!(html.contains(outcome), "{html}");
    };
    let closed = closed();
    let failed = sample(&closed, "v2");
    shown(&failed, "Failed: connection refused, sample_");
    assert_eq!(sample(&closed, "v2"), failed, "it was sent before");
    // The address is corrected, then the format.
    shown(&sample(&receiver.url("/sample"), "v2"), "Delivered: HTTP 200, sample_");
    let other = sample(&receiver.url("/sample"), "");
    shown(&other, "Delivered: HTTP 200, sample_");
    assert_eq!(sample(&receiver.url("/sample"), ""), other);
    assert_eq!(receiver.got("/sample", 2).await.len(), 2);
    answers.store(503, Ordering::Relaxed);
    shown(&sample(&receiver.url("/busy"), "v2"), "Failed: HTTP 503, sample_");

    let rows = rows(&gateway);
    assert_eq!(rows.len(), 4, "{rows:?}");
    for (row, outcome) in rows.iter().zip([
        "} failed: connection refused, sample_",
        "} delivered: HTTP 200, sample_",
        "} delivered: HTTP 200, sample_",
        "} failed: HTTP 503, sample_",
    ]) {
        assert!(row.starts_with("local callbacks.sample acme ") && row.contains(outcome), "{row}");
    }
    let trail = page(&gateway, "/audit");
    assert_eq!(trail.matches("failed: connection refused").count(), 1, "{trail}");
    assert!(!trail.contains("sent: "), "{trail}");
}

/// Behind an open circuit no time of the next attempt is known.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_due_waits_for_its_receiver_in_every_list() {
    let (_, receiver) = moody();
    let gateway = Gateway::start(&rules(&[&receiver], QUICK));
    let url = closed();
    let mut ids = Vec::new();
    for number in 0..8 {
        let body =
            with(withdrawal(&receiver, &format!("o-{number}"), "7.25"), "callback_url", Some(url.clone().into()));
        ids.push(create(&gateway, &Request::withdrawal(&ACME, &body)).await);
    }
    let waits = "waits for its receiver";
    let probed = "at a time probes them";
    eventually("the circuit opens", async || page(&gateway, "/callbacks").contains(probed).then_some(())).await;
    let pages = ["/callbacks".to_owned(), format!("/operations/{}", ids[0])];
    for path in &pages {
        eventually(path, async || page(&gateway, path).contains(waits).then_some(())).await;
    }
    let listed = eventually("the API", async || {
        let listed: Value = serde_json::from_str(&page(&gateway, "/api/callbacks")).unwrap();
        let all = listed["callbacks"].as_array().unwrap().clone();
        // A callback that was never tried waits as well.
        all.into_iter().find(|one| one["waits_for"] == "receiver" && one["last_error"] == "connection refused")
    })
    .await;
    assert_eq!(listed["state"], "pending", "{listed}");
    let table = eventually("the list", async || {
        let table = prints(&gateway, &["list"]);
        table.contains(waits).then_some(table)
    })
    .await;
    assert!(table.contains("connection refused"), "{table}");
    for chain in ["error", "os error", "tcp connect"] {
        assert!(!table.contains(chain) && !page(&gateway, "/callbacks").contains(chain), "{chain}: {table}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fields_offer_merchants_and_take_what_was_pasted() {
    let (_, receiver) = moody();
    let with_acme = rules(&[&receiver], QUICK);
    let gateway = Gateway::start(&with_acme);
    given_up(&gateway, &receiver, &["one"]).await;
    for path in ["/callbacks", "/callbacks/sample", "/operations", "/explain"] {
        let html = page(&gateway, path);
        assert!(html.contains("name=\"merchant\" list=\"merchants\""), "{html}");
        assert!(html.contains("<option value=\"acme\">Acme Ltd</option>"), "{html}");
    }
    assert!(!page(&gateway, "/audit").contains("<datalist"));

    let pasted = "merchant=%20acme%0A&order_id=%09one%20";
    let listed = |filter: &str| page(&gateway, &format!("/callbacks?{filter}")).contains("href=\"/callbacks/cb_");
    let today = "since=2020-01-01&until=2099-12-31";
    for (filter, is_listed) in [
        (pasted.to_owned(), true),
        (format!("{pasted}&{today}"), true),
        ("since=+1h+".to_owned(), true),
        ("until=2020-01-01".to_owned(), false),
    ] {
        assert_eq!(listed(&filter), is_listed, "{filter}");
    }
    let count = page(&gateway, &format!("/callbacks/resend?{pasted}&{today}"));
    assert!(count.contains("<b>1</b> failed callback matches") && count.contains("value=\"one\""), "{count}");
    assert!(count.contains("value=\"2020-01-01T00:00:00.000Z\""), "{count}");
    let found = page(&gateway, &format!("/operations?{pasted}"));
    assert!(found.contains("1 operation found") && found.contains("name=\"order_id\" value=\"one\""), "{found}");

    let unknown = "There is no merchant `amce` in the rules (did you mean `acme`?).";
    for path in ["/callbacks?merchant=amce", "/operations?merchant=amce&order_id=one"] {
        let html = page(&gateway, path);
        assert!(html.contains(unknown) && !html.contains("stored of it"), "{path}: {html}");
    }
    for (path, status) in [("/callbacks/resend?merchant=amce", 400), ("/merchants/amce", 404)] {
        let (got, html) = gateway.admin_get(path).unwrap();
        assert!(got == status && html.contains("here is no merchant `amce` in the rules"), "{path}: {got} {html}");
    }
    // A name in place of the id.
    let (status, html) = gateway.admin_get("/callbacks?merchant=Acme+Ltd").unwrap();
    assert!(status == 400 && html.contains("`Acme Ltd` in the rules (did you mean `acme`?)"), "{html}");
    let (status, html) = gateway.console_post("/explain", "", "merchant=amce&kind=payin&body={}");
    assert!(status == 400 && html.contains("here is no merchant `amce`"), "{status} {html}");
    let sampled = gateway.console_act("/callbacks/sample", "merchant=amce&kind=&url=");
    shows(&gateway, &sampled, "here is no merchant `amce`").await;

    std::fs::remove_file(gateway.rules_dir().join("merchants/acme.toml")).unwrap();
    gateway.reload_with(&with_acme.without("merchants/acme.toml"));
    for path in ["/callbacks?merchant=acme", "/operations?merchant=acme&order_id=one"] {
        let html = page(&gateway, path);
        let both = "There is no merchant `acme` in the rules. What is stored of it is listed.";
        assert!(html.contains(both) && html.contains(">one</"), "{path}: {html}");
    }
}

fn api(gateway: &Gateway, path: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", gateway.admin)
}
