//! The entry link: what it looks like, that it stays the same, and where it leads.

use rustix::process::Signal;

use crate::pages::browser::{assert_state, location, open, page, press, request, visit};
use crate::pages::{
    Deposit, FAIL_URL, PREPARING, SECRET, SUCCESS_URL, books, ended, eventually, rules, rules_with, target,
};
use crate::support::bodies::with;
use crate::support::request::{ACME, BETA, PROTOCOLS, hmac_hex, unix_now};
use crate::support::{self, Gateway, Reply, Request, Rules, text};

/// What v1 calls the entry link of a payin.
async fn payin_link(gateway: &Gateway, order_id: &str) -> String {
    let request = Request::payin(&ACME, &support::payin(order_id));
    text(&gateway.client().send(&request).await.expect(200).json(), "redirect_url").to_owned()
}

// keeps P039
#[tokio::test]
async fn an_entry_link_is_signed_over_its_path_and_query() {
    let gateway = Gateway::start(&rules());
    let origin = format!("https://localhost:{}", gateway.public.port());
    let half_an_hour = 30 * 60;
    let before = unix_now();
    let native = Deposit::create(&gateway, "native", "10.50").await;
    let translated = payin_link(&gateway, "translated").await;
    let after = unix_now();
    for url in [&native.url, &translated] {
        let link = url.strip_prefix(&origin).unwrap_or_else(|| panic!("{url} is not below {origin}"));
        let (signed, signature) = link.split_once("&signature=").unwrap();
        let (id, expires) = signed.strip_prefix("/pay/").unwrap().split_once("?expires=").unwrap();
        support::stored::assert_transaction_id(id);
        let expires: u64 = expires.parse().unwrap();
        assert!((before + half_an_hour..=after + half_an_hour).contains(&expires), "{before} {expires} {after}");
        assert_eq!(signature, hmac_hex(SECRET, signed.as_bytes()));
    }
}

/// Not a reload, not a restart, not another secret and not another name of the gateway changes what a repeat is told.
// keeps P039
#[tokio::test]
async fn a_repeat_gets_the_same_link_whatever_has_changed() {
    let mut gateway = Gateway::start(&rules());
    let native = Deposit::create(&gateway, "native", "10.50").await;
    let translated = payin_link(&gateway, "translated").await;
    let changed = rules_with("secret = \"another-secret-of-pages-6Jm-1Pz-0Vt\"\nlink_lifetime = \"5m\"");
    let renamed = changed.clone().with("server", "public_url = \"https://pay.acme.example\"");
    for (round, edited) in [rules(), changed, renamed].iter().enumerate() {
        if round < 2 {
            gateway.reload_with(edited);
        } else {
            edited.write(gateway.root.path(), gateway.public.port(), gateway.admin.port());
            gateway.signal(Signal::TERM);
            gateway.wait();
            gateway.restart();
        }
        assert_eq!(Deposit::create(&gateway, "native", "10.50").await.url, native.url, "round {round}");
        assert_eq!(payin_link(&gateway, "translated").await, translated, "round {round}");
    }
    let new = Deposit::create(&gateway, "new", "10.50").await;
    assert!(new.url.starts_with("https://pay.acme.example/pay/"), "{}", new.url);
    assert_eq!(open(&gateway, &new.entry).await.status, 303);
    page(&open(&gateway, &native.entry).await, 403);
}

/// Where the rules name no secret, links hold over a restart as well.
#[tokio::test]
async fn links_hold_over_a_restart() {
    let plain = Rules::default().with("clients", "trusted_proxies = [\"127.0.0.0/8\"]");
    let mut gateway = Gateway::start(&plain);
    let deposit = Deposit::of_shop(&gateway, PREPARING, "kept", "10.50").await;
    let first = page(&open(&gateway, &deposit.entry).await, 200).return_link();
    gateway.kill();
    gateway.restart();
    let second = page(&open(&gateway, &deposit.entry).await, 200).return_link();
    assert_eq!(first, second);
    assert_eq!(open(&gateway, &first).await.status, 303);
}

/// While preparation is in progress, the page says so and comes again after two seconds; once it is over, the same link
/// leads on.
// keeps P176, P177, P178, P256
#[tokio::test]
async fn a_page_that_prepares_comes_again_and_then_leads_on() {
    let gateway = Gateway::start(&rules());
    let deposit = Deposit::of_shop(&gateway, PREPARING, "prepared", "1050").await;
    let reported = Deposit::of_shop(&gateway, PREPARING, "told", "10.03").await;
    for protocol in PROTOCOLS {
        let reply = visit(&gateway, protocol, &request("GET", &deposit.entry)).await;
        assert_eq!(reply.header("refresh"), "2", "the same page again, which a browser then asks for");
        let document = page(&reply, 200);
        assert_state(&document, "preparing");
        document.assert_shows("1050.00", "EUR");
        assert!(document.text().contains("Acme Ltd"), "{}", document.text());
        assert!(document.return_link().starts_with("/return/"));
    }
    gateway.reload_with(&rules().edit("shops/slow-eur.toml", "6h", "1ms"));
    let hosted = open(&gateway, &deposit.entry).await;
    assert!(target(location(&hosted)).starts_with(&format!("/sandbox/{}?", deposit.id)), "{hosted:?}");
    let reply = open(&gateway, &reported.entry).await;
    assert!(reply.all("refresh").is_empty(), "nobody reads against a clock");
    let document = page(&reply, 200);
    assert_state(&document, "instructions");
    document.assert_shows("10.03", "EUR");
    document.return_link();
    reported.assert_status(&gateway, "PENDING").await;
}

/// Preparation that takes its time is the preparing page, whatever the shop's delay.
#[tokio::test]
async fn a_slow_preparation_is_seen_as_such() {
    let gateway = Gateway::start(&rules());
    let deposit = Deposit::create(&gateway, "slow", "10.04").await;
    let reply = open(&gateway, &deposit.entry).await;
    assert_eq!(reply.header("refresh"), "2");
    assert_state(&page(&reply, 200), "preparing");
}

// keeps P180, P181
#[tokio::test]
async fn where_preparation_stopped_the_customer_waits_and_may_return() {
    let gateway = Gateway::start(&rules());
    let deposit = Deposit::create(&gateway, "stopped", "10.02").await;
    let reply = open(&gateway, &deposit.entry).await;
    let document = page(&reply, 200);
    assert_state(&document, "stopped");
    document.assert_shows("10.02", "EUR");
    assert_eq!(location(&open(&gateway, &document.return_link()).await), crate::pages::PENDING_URL);
    deposit.assert_status(&gateway, "PENDING").await;
}

// keeps P182
#[tokio::test]
async fn a_result_leads_to_its_own_destination() {
    let gateway = Gateway::start(&rules());
    let failed = Deposit::create(&gateway, "failed", "10.01").await;
    assert_eq!(location(&open(&gateway, &failed.entry).await), FAIL_URL, "at once");
    for (decision, destination) in [("pay", SUCCESS_URL), ("decline", FAIL_URL)] {
        let deposit = Deposit::create(&gateway, decision, "10.50").await;
        let hosted = target(location(&open(&gateway, &deposit.entry).await));
        press(&gateway, &hosted, decision).await.expect(200);
        for protocol in PROTOCOLS {
            let reply = visit(&gateway, protocol, &request("GET", &deposit.entry)).await;
            assert_eq!(location(&reply), destination, "not the page that is over");
            let reply = visit(&gateway, protocol, &request("GET", &hosted)).await;
            assert_eq!(location(&reply), destination, "nor by its own link");
        }
    }
}

/// Neither twenty visits at once nor forty one after the other make or change anything.
// keeps P179
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn opening_a_link_again_makes_nothing() {
    let gateway = Gateway::start(&rules());
    let mut deposits = Vec::new();
    for amount in ["10.50", "10.01", "10.02", "10.03", "10.04"] {
        deposits.push(Deposit::create(&gateway, &format!("again-{amount}"), amount).await);
    }
    payin_link(&gateway, "again-v1").await;
    let before = books(&gateway, &ACME).await;
    for deposit in &deposits {
        let record = deposit.record(&gateway).await;
        let visits = (0..20).map(|_| open(&gateway, &deposit.entry));
        let mut statuses = Vec::new();
        for reply in together(visits).await {
            statuses.push(reply.status);
        }
        for _ in 0..5 {
            statuses.push(open(&gateway, &deposit.entry).await.status);
        }
        statuses.dedup();
        assert!(matches!(statuses[..], [200 | 303]), "{statuses:?}");
        assert_eq!(deposit.record(&gateway).await, record);
    }
    assert_eq!(books(&gateway, &ACME).await, before);
}

/// Awaits all of them at once, on one thread.
pub async fn together<T>(futures: impl IntoIterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut pending: Vec<_> = futures.into_iter().map(|future| (Box::pin(future), None)).collect();
    std::future::poll_fn(|context| {
        for (future, done) in &mut pending {
            if done.is_none()
                && let std::task::Poll::Ready(value) = future.as_mut().poll(context)
            {
                *done = Some(value);
            }
        }
        let all = pending.iter().all(|(_, done)| done.is_some());
        if all { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    pending.into_iter().filter_map(|(_, done)| done).collect()
}

/// An expired link is refused, a repeat does not renew it, and the deposit is what it was.
// keeps P187, P189, P190, P226
#[tokio::test]
async fn an_expired_entry_link_is_refused_and_fails_nothing() {
    let gateway = Gateway::start(&rules_with(&format!("secret = \"{SECRET}\"\nlink_lifetime = \"1s\"")));
    let deposit = Deposit::create(&gateway, "late", "10.50").await;
    ended(&deposit.entry).await;
    let refused = eventually("it is refused", async || {
        Some(open(&gateway, &deposit.entry).await).filter(|reply| reply.status == 403)
    })
    .await;
    assert_state(&page(&refused, 403), "refused");
    assert_eq!(Deposit::create(&gateway, "late", "10.50").await.url, deposit.url);
    page(&open(&gateway, &deposit.entry).await, 403);
    let (_, requests) = gateway.admin_get("/api/requests?reason=link").unwrap();
    assert!(requests.contains(&deposit.id), "the reference leads to the deposit: {requests}");
    let altered = deposit.entry.replacen("expires=", "expires=9", 1);
    let other = open(&gateway, &altered).await;
    let body = |reply: &Reply| (reply.status, reply.text().replace(reply.header("x-request-id"), ""));
    assert_eq!(body(&other), body(&refused), "the customer is told the same");
    let (_, requests) = gateway.admin_get("/api/requests?reason=link&limit=1").unwrap();
    assert!(!requests.contains(&deposit.id), "it proves nothing: {requests}");
    page(&open(&gateway, &deposit.link("sandbox")).await, 403);
    page(&press(&gateway, &deposit.link("sandbox"), "pay").await, 403);
    deposit.assert_status(&gateway, "PENDING").await;
}

/// A customer who is on the way when a shop is taken out of the rules still has a page and a way back.
#[tokio::test]
async fn a_shop_that_is_gone_leaves_nobody_stranded() {
    let gateway = Gateway::start(&rules().edit("shops/beta-only.toml", "kind", "delay = \"0s\"\nkind"));
    let mut deposits = Vec::new();
    for order_id in ["waiting", "paying"] {
        let body = with(support::deposit(order_id), "method", Some("beta-only".into()));
        let reply = gateway.client().send(&Request::deposit(&BETA, &with(body, "fields", None))).await.expect(200);
        deposits.push(Deposit::of(&reply));
    }
    let hosted = target(location(&open(&gateway, &deposits[1].entry).await));
    let gone = rules().without("shops/beta-only.toml");
    std::fs::remove_file(gateway.rules_dir().join("shops/beta-only.toml")).unwrap();
    gateway.reload_with(&gone.edit("merchants/beta.toml", "[shops.beta-only]\npayin = true\npayout = true\n", ""));
    let document = page(&open(&gateway, &deposits[0].entry).await, 200);
    assert_state(&document, "stopped");
    document.assert_shows("10.50", "EUR");
    assert_eq!(location(&open(&gateway, &document.return_link()).await), crate::pages::PENDING_URL);
    // Nothing is paid by a shop that is no more; the customer waits, and may go back.
    assert_eq!(location(&press(&gateway, &hosted, "pay").await), deposits[1].url);
    let document = page(&open(&gateway, &deposits[1].entry).await, 200);
    assert_state(&document, "stopped");
    assert_eq!(location(&open(&gateway, &document.return_link()).await), crate::pages::PENDING_URL);
}

/// The link of a v1 payin leads the same way.
#[tokio::test]
async fn a_v1_payin_has_the_same_way() {
    let gateway = Gateway::start(&rules());
    let body = with(support::payin("v1"), "amount", Some("10.01".into()));
    let reply = gateway.client().send(&Request::payin(&ACME, &body)).await.expect(200).json();
    let reply = open(&gateway, &target(text(&reply, "redirect_url"))).await;
    assert_eq!(location(&reply), "https://acme.example/done?x=1");
}
