//! The sandbox's hosted page: looking is free, Pay and Decline book once, and the first one stands.

use rustix::process::Signal;

use crate::pages::browser::{assert_state, location, open, page, press, request, visit};
use crate::pages::entry::together;
use crate::pages::markup::Document;
use crate::pages::{Deposit, FAIL_URL, SUCCESS_URL, balance, books, rules, target};
use crate::support::bodies::with;
use crate::support::request::{ACME, GAMMA, PROTOCOLS, Protocol};
use crate::support::{self, Gateway, Reply, Request, text};

/// The hosted page of a deposit, by the way that a browser takes.
async fn hosted(gateway: &Gateway, deposit: &Deposit) -> String {
    target(location(&open(gateway, &deposit.entry).await))
}

/// The decisions of a page's form, which goes back to where it came from.
#[track_caller]
fn decisions(document: &Document, link: &str) -> Vec<String> {
    let form = document.only("form");
    assert!(form.attribute("method").is_some_and(|method| method.eq_ignore_ascii_case("post")), "{form:?}");
    let action = form.attribute("action").unwrap();
    assert!(action == link || action.ends_with(link), "{action}");
    let buttons = document.all("button").filter(|button| button.attribute("name") == Some("decision"));
    buttons.map(|button| button.attribute("value").unwrap().to_owned()).collect()
}

/// The page after a decision: it goes on to the return link by itself, and offers it.
#[track_caller]
fn after(reply: &Reply, status: u16, state: &str) -> String {
    let document = page(reply, status);
    assert_state(&document, state);
    let (seconds, to) = reply.header("refresh").split_once("; url=").expect("where it goes on");
    assert!((1..=10).contains(&seconds.parse::<u32>().unwrap()), "{seconds}");
    let link = document.return_link();
    assert_eq!(target(to), link);
    link
}

fn available(euros: &str) -> String {
    format!(r#""currency":"EUR","available":"{euros}","held":"0.00""#)
}

// keeps P178
#[tokio::test]
async fn the_page_offers_pay_and_decline_and_looking_books_nothing() {
    let gateway = Gateway::start(&rules());
    let deposit = Deposit::create(&gateway, "looked at", "1234.50").await;
    let link = hosted(&gateway, &deposit).await;
    assert_eq!(link, deposit.link("sandbox"), "as long as the entry link");
    let before = (deposit.record(&gateway).await, books(&gateway, &ACME).await);
    for protocol in PROTOCOLS {
        for target in [&link, &deposit.link("sandbox")] {
            let reply = visit(&gateway, protocol, &request("GET", target)).await;
            assert!(reply.all("refresh").is_empty(), "{reply:?}");
            let document = page(&reply, 200);
            assert_state(&document, "sandbox");
            assert_eq!(decisions(&document, &link), ["pay", "decline"]);
            document.assert_shows("1234.50", "EUR");
            assert!(document.text().contains("Acme Ltd"), "{}", document.text());
        }
        for query in ["&decision=pay", "?decision=pay"] {
            let altered = visit(&gateway, protocol, &request("GET", &format!("{link}{query}"))).await;
            assert_eq!(altered.status, 403);
        }
    }
    assert_eq!((deposit.record(&gateway).await, books(&gateway, &ACME).await), before);
}

#[tokio::test]
async fn pay_books_once_however_often_it_is_sent() {
    let mut gateway = Gateway::start(&rules());
    let deposit = Deposit::create(&gateway, "paid", "10.50").await;
    let link = hosted(&gateway, &deposit).await;
    assert!(balance(&gateway, &ACME).await.contains(&available("0.00")));
    for _ in 0..3 {
        let back = after(&press(&gateway, &link, "pay").await, 200, "success");
        assert_eq!(location(&open(&gateway, &back).await), SUCCESS_URL);
        let record = deposit.record(&gateway).await;
        assert_eq!((text(&record, "status"), text(&record, "account_number")), ("SUCCESS", "411111******1111"));
        assert!(balance(&gateway, &ACME).await.contains(&available("10.50")), "{}", balance(&gateway, &ACME).await);
    }
    let record = deposit.record(&gateway).await;
    let refused = after(&press(&gateway, &link, "decline").await, 409, "success");
    assert_eq!(location(&open(&gateway, &refused).await), SUCCESS_URL);
    assert_eq!(deposit.record(&gateway).await, record, "the result stands");
    assert!(balance(&gateway, &ACME).await.contains(&available("10.50")));
    // What a customer was told is on disk.
    gateway.kill();
    gateway.restart();
    after(&press(&gateway, &link, "pay").await, 200, "success");
    assert_eq!(deposit.record(&gateway).await, record);
    assert!(balance(&gateway, &ACME).await.contains(&available("10.50")));
    let check = gateway.store_check();
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
}

#[tokio::test]
async fn decline_books_nothing_for_ever() {
    let mut gateway = Gateway::start(&rules());
    let deposit = Deposit::create(&gateway, "declined", "10.50").await;
    let link = hosted(&gateway, &deposit).await;
    for _ in 0..2 {
        let back = after(&press(&gateway, &link, "decline").await, 200, "failed");
        assert_eq!(location(&open(&gateway, &back).await), FAIL_URL);
    }
    let record = deposit.record(&gateway).await;
    assert_eq!(text(&record, "status"), "FAILED");
    after(&press(&gateway, &link, "pay").await, 409, "failed");
    assert_eq!(deposit.record(&gateway).await, record);
    gateway.signal(Signal::TERM);
    gateway.wait();
    gateway.restart();
    after(&press(&gateway, &link, "pay").await, 409, "failed");
    assert!(balance(&gateway, &ACME).await.contains(&available("0.00")));
}

/// Fingers that cannot wait, and two of them that do not agree: one result, one booking, and every answer fits it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_at_once_are_one_booking() {
    let gateway = Gateway::start(&rules());
    let deposit = Deposit::create(&gateway, "at once", "10.50").await;
    let link = hosted(&gateway, &deposit).await;
    for reply in together((0..20).map(|_| press(&gateway, &link, "pay"))).await {
        after(&reply, 200, "success");
    }
    assert!(balance(&gateway, &ACME).await.contains(&available("10.50")));

    let mut credited = 1050;
    for round in 0..5 {
        let deposit = Deposit::create(&gateway, &format!("contended-{round}"), "10.50").await;
        let link = hosted(&gateway, &deposit).await;
        let decision = |number: usize| if number % 2 == round % 2 { "pay" } else { "decline" };
        let replies = together((0..12).map(|number| press(&gateway, &link, decision(number)))).await;
        let status = text(&deposit.record(&gateway).await, "status").to_owned();
        let (posted, state) = if status == "SUCCESS" { ("pay", "success") } else { ("decline", "failed") };
        for (number, reply) in replies.iter().enumerate() {
            after(reply, if decision(number) == posted { 200 } else { 409 }, state);
        }
        credited += if posted == "pay" { 1050 } else { 0 };
        let expected = available(&format!("{}.{:02}", credited / 100, credited % 100));
        assert!(balance(&gateway, &ACME).await.contains(&expected), "round {round}");
    }
    assert!(gateway.store_check().status.success());
}

/// What was made through v1 is paid in the same way, and v1 sees it.
#[tokio::test]
async fn a_v1_payin_is_paid_as_well() {
    let gateway = Gateway::start(&rules());
    let created = gateway.client().send(&Request::payin(&GAMMA, &support::payin("v1"))).await.expect(200).json();
    let entry = target(text(&created, "redirect_url"));
    let link = target(location(&open(&gateway, &entry).await));
    after(&press(&gateway, &link, "pay").await, 200, "success");
    let status = gateway.client().send(&Request::v1_status(&GAMMA, "payin", "v1")).await.expect(200).json();
    assert!(status.to_string().contains("411111******1111"), "{status}");
    assert!(balance(&gateway, &GAMMA).await.contains(&available("10.50")));
    assert_eq!(location(&open(&gateway, &entry).await), "https://acme.example/done?x=1");
}

/// Amounts whose way is not the hosted page have none by its link either.
#[tokio::test]
async fn a_deposit_with_another_way_has_no_hosted_page() {
    let gateway = Gateway::start(&rules());
    for amount in ["10.02", "10.03", "10.04"] {
        let deposit = Deposit::create(&gateway, &format!("other-{amount}"), amount).await;
        let reply = open(&gateway, &deposit.link("sandbox")).await;
        assert_eq!(location(&reply), deposit.url, "{amount}: back to the entry link");
    }
    let body = with(support::deposit("unsigned"), "amount", Some(serde_json::json!(10.5)));
    let deposit = Deposit::of_body(&gateway, &body).await;
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let bare = visit(&gateway, protocol, &request("GET", &format!("/sandbox/{}", deposit.id))).await;
        assert_state(&page(&bare, 403), "refused");
    }
}
