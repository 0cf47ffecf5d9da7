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
    assert!(status == 404 && none.contains("Failed: there was no such callback"), "{none}");

    let rows = rows(&gateway);
    assert!(rows[2].starts_with("local callbacks.sample acme ") && !rows[2].contains("token"), "{rows:?}");
    assert!(rows[3].contains("callbacks.sample nothing") && rows[3].contains("failed: "), "{rows:?}");
    assert_eq!(rows[4], format!("local callbacks.resend {id} {{}} queued"));
    assert_eq!(rows[5], format!("local callbacks.resend {unknown} {{}} failed: there was no such callback"));
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
    let outcome = "were loaded (local, ";
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
        let (text, way) = ("The outcome of the action cannot be shown here.", "href=\"/audit\">Audit trail</a>");
        assert!(shown.contains(text) && shown.contains(way), "{unknown}: {shown}");
    }
    let broken = Rules::default().edit("merchants/acme.toml", "default_shop", "default_shoe");
    broken.write(gateway.root.path(), gateway.public.port(), gateway.admin.port());
    let refused = page(&gateway, &gateway.console_act("/rules/reload", &form_key(&page(&gateway, "/rules"))));
    assert!(refused.contains("message bad") && refused.contains("Failed: the files were refused"), "{refused}");
    gateway.tamper("UPDATE actions SET outcome = NULL, ended_at = NULL");
    let unfinished = page(&gateway, &done);
    assert!(unfinished.contains("The action has not ended"), "{unfinished}");
}

/// An address can have the number of any action, of another page too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outcome_is_shown_on_the_page_of_its_action_alone() {
    let (answers, receiver) = moody();
    let gateway = Gateway::start(&rules(&[&receiver], QUICK));
    let calls = given_up(&gateway, &receiver, &["one", "two"]).await;
    let [one, other] = [&calls[0], &calls[1]].map(|call| format!("/callbacks/{}", call.id()));
    answers.store(200, Ordering::Relaxed);
    let resent = gateway.console_act(&format!("{one}/resend"), &form_key(&page(&gateway, &one)));
    shows(&gateway, &resent, "Queued (local, ").await;
    let sample = format!("merchant=acme&kind=v2&url={}", encoded(&receiver.url("/sample")));
    let sampled = gateway.console_act("/callbacks/sample", &sample);
    shows(&gateway, &sampled, "Delivered: HTTP 200").await;
    assert!(page(&gateway, &sampled).contains("aria-label=\"Body\""));
    let all = gateway.console_act("/callbacks/resend", "state=failed&merchant=acme&order_id=none");
    shows(&gateway, &all, "0 queued (local, ").await;
    let reloaded = gateway.console_act("/rules/reload", "");
    shows(&gateway, &reloaded, "were loaded (local, ").await;

    let number = |path: &str| path.split("result=").nth(1).unwrap().to_owned();
    let [resent, sampled, all, reloaded] = [&resent, &sampled, &all, &reloaded].map(|path| number(path));
    let unknown = "/callbacks/cb_00000000000000010000000000000001";
    for (path, other) in [
        (format!("{other}?"), &resent),
        (format!("{one}?"), &sampled),
        (format!("{unknown}?"), &resent),
        ("/rules?".to_owned(), &sampled),
        ("/rules?".to_owned(), &resent),
        ("/callbacks?".to_owned(), &resent),
        ("/callbacks?merchant=acme&".to_owned(), &all),
        ("/callbacks?merchant=beta&order_id=none&".to_owned(), &all),
        ("/callbacks/sample?merchant=beta&".to_owned(), &sampled),
        ("/callbacks/sample?".to_owned(), &sampled),
        ("/callbacks/sample?merchant=acme&".to_owned(), &reloaded),
        ("/audit?".to_owned(), &reloaded),
    ] {
        let (_, html) = gateway.admin_get(&format!("{path}result={other}")).unwrap();
        assert!(html.contains("The outcome of the action cannot be shown here."), "{path}: {html}");
        assert!(!html.contains(" (local, ") && !html.contains("aria-label=\"Body\""), "{path}: {html}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_audit_trail_shows_order_ids_whole() {
    let gateway = Gateway::start(&Rules::default());
    let plain = format!("{}-end", "o,".repeat(125));
    let wide = "\u{44e}".repeat(255);
    for order in [&plain, &wide] {
        gateway.console_act("/callbacks/resend", &format!("state=failed&merchant=acme&order_id={}", encoded(order)));
    }
    let trail = page(&gateway, "/audit");
    for order in [&plain, &wide] {
        assert!(trail.contains(&format!("order_id=<span class=\"id long\">{order}</span>")), "{trail}");
    }
}

/// Ids are pasted with white space, on the command line and in the API as well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pasted_ids_are_found_without_the_white_space_around_them() {
    let (_, receiver) = moody();
    let gateway = Gateway::start(&rules(&[&receiver], QUICK));
    let call = given_up(&gateway, &receiver, &["one"]).await.remove(0);
    let (id, order) = (call.id().to_owned(), "one");
    let listed = page(&gateway, &format!("/api/callbacks?merchant=acme&order_id=%20{order}%0A"));
    assert!(listed.contains(&id), "{listed}");
    let listed = prints(&gateway, &["list", "--merchant", "acme", "--order-id", " one "]);
    assert!(listed.contains(&id), "{listed}");
    assert!(prints(&gateway, &["show", &format!(" {id} ")]).contains(&id));
    let body = with(withdrawal(&receiver, "spaced", "7.25"), "order_id", Some(" one ".into()));
    let spaced = create(&gateway, &Request::withdrawal(&ACME, &body)).await;
    eventually("the exact one first", async || {
        let listed = page(&gateway, "/api/callbacks?merchant=acme&order_id=%20one%20&state=pending,failed");
        (listed.contains(&*spaced) && !listed.contains(&id)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn wrong_values_are_answered_in_their_form_by_its_labels() {
    let gateway = Gateway::start(&Rules::default());
    for (path, problem, kept) in [
        (
            "/callbacks/resend?merchant=nobody&order_id=o",
            "There is no merchant `nobody` in the rules",
            "value=\"nobody\"",
        ),
        ("/callbacks/resend?since=foo&merchant=acme", "Queued since: must be", "name=\"since\" value=\"foo\""),
        ("/callbacks?since=foo", "Queued since: must be", "value=\"foo\""),
        ("/callbacks?order_id=o", "Order id: requires the merchant", "value=\"o\""),
        ("/operations?created_from=foo", "Created from: must be", "value=\"foo\""),
        ("/audit?until=foo", "Until: must be", "value=\"foo\""),
    ] {
        let (status, html) = gateway.admin_get(path).unwrap();
        let shown = html.replace("&#x27;", "'").replace("&#x60;", "`");
        assert!(status == 400 && shown.contains(problem) && shown.contains(kept), "{path}: {status} {html}");
        assert!(html.contains("<form class=\"panel filter\""), "{path}: {html}");
    }
    for (form, problem) in [
        ("merchant=acme&kind=&url=https%3A%2F%2Fu%3Ap%40localhost%2F", "Address: must not contain credentials"),
        ("merchant=acme&kind=v3&url=", "Format: must be `v1` or `v2`"),
        ("merchant=&kind=&url=", "Merchant: must be the id of a merchant"),
    ] {
        let (status, html) = gateway.console_post("/callbacks/sample", "", form);
        assert!(status == 400 && html.contains(problem), "{status} {html}");
    }
    assert!(rows(&gateway).is_empty());
}

#[tokio::test]
async fn refused_actions_are_logged_in_words() {
    let gateway = Gateway::start(&Rules::default());
    let request = |head: &str| {
        let head = format!("POST /rules/reload HTTP/1.1\r\n{head}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        gateway.admin_request(&head).unwrap()
    };
    let own = format!("Host: {}", gateway.admin);
    let (status, html) = request(&format!("{own}\r\nOrigin: https://evil.example"));
    assert!(status == 403 && html.contains("This request came from another place"), "{html}");
    assert_eq!(request("Host: evil.example").0, 403);
    let (status, html) =
        gateway.admin_request("GET /rules HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n").unwrap();
    assert!(status == 403 && !html.contains("form came"), "{html}");
    let lines = eventually("the log", async || {
        let log = gateway.log();
        let lines: Vec<_> = log.lines().filter(|line| line.contains("refused an action")).map(str::to_owned).collect();
        (lines.len() == 2).then_some(lines)
    })
    .await;
    assert!(lines[0].contains("foreign_origin") && lines[0].contains("local"), "{lines:?}");
    assert!(lines[1].contains("foreign_host") && lines[1].contains("none"), "{lines:?}");
    assert!(rows(&gateway).is_empty());
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
    assert!(found.contains("href=\"/operations/") && found.contains("name=\"order_id\" value=\"one\""), "{found}");

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
