//! Tests of the customer's pages over the real store and real rule files, with a clock that the test moves.

use std::time::Duration;

use super::{Decision, LinkKind, PageReply, PageRequest, PageResponse};
use crate::auth::signatures::{ENTRY, SANDBOX, sign_link};
use crate::clock::Clock as _;
use crate::domain::{BrowserUrl, Instructions, Preparation, ProviderKind, Secret, ShopCode};
use crate::engine::tests::{START, World, id};
use crate::engine::{Report, Reported};
use crate::error::{AdmissionError, ApiError};
use crate::rules::PageState;

const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;
const DAY: u64 = 24 * 60 * MINUTE;
const GATEWAY: &str = "[store]\nurl = \"sqlite:../store.db\"\nkeys = [\"file:../store.key\"]\n";

impl World {
    fn later(&self, millis: u64) {
        self.clock.advance(Duration::from_millis(millis));
    }

    async fn open(&self, kind: LinkKind, link: &str, decision: Option<Decision>) -> Result<PageResponse, ApiError> {
        let rules = self.rules();
        let target = link.strip_prefix(&*rules.gateway.server.public_url).unwrap_or(link);
        let request = PageRequest::verified(&self.engine, &rules, kind, target, self.clock.now())?;
        let PageReply { merchant, step, .. } = PageRequest { decision, ..request }.answer(&self.engine).await?;
        assert_eq!(merchant.as_str(), "acme");
        Ok(step)
    }

    /// Opens the entry link; returns a page's name, an address, or the refusal.
    async fn entry(&self, reply: &str) -> String {
        describe(self.open(LinkKind::Entry, &entry_link(reply), None).await)
    }

    async fn sandbox(&self, link: &str, decision: Option<Decision>) -> String {
        describe(self.open(LinkKind::Sandbox, link, decision).await)
    }

    async fn go_back(&self, link: &str) -> String {
        describe(self.open(LinkKind::Return, link, None).await)
    }

    /// Returns the sandbox link of a prepared deposit.
    async fn hosted(&self, reply: &str) -> String {
        match self.open(LinkKind::Entry, &entry_link(reply), None).await.unwrap() {
            PageResponse::Link(link) => link.expose().to_owned(),
            other => panic!("{other:?}"),
        }
    }

    /// Returns the return link that the entry page offers.
    async fn offered(&self, reply: &str) -> Option<String> {
        match self.open(LinkKind::Entry, &entry_link(reply), None).await.unwrap() {
            PageResponse::Page(page) => page.return_url.map(|link| link.expose().to_owned()),
            other => panic!("{other:?}"),
        }
    }
}

fn describe(step: Result<PageResponse, ApiError>) -> String {
    match step {
        Ok(PageResponse::Away(url)) => url.as_str().to_owned(),
        Ok(PageResponse::Link(link)) => link.expose().split(['?', '/']).nth(3).unwrap().to_owned(),
        Ok(PageResponse::Page(page)) if page.contradicts => format!("{:?}, contradicting", page.state),
        Ok(PageResponse::Page(page)) => format!("{:?}", page.state),
        Err(ApiError::Refused(AdmissionError::Link)) => "refused".to_owned(),
        Err(other) => panic!("{other:?}"),
    }
}

fn entry_link(reply: &str) -> String {
    let reply: serde_json::Value = serde_json::from_str(reply).unwrap();
    reply["redirect_url"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_sandbox_decides_by_amount_and_age() {
    let world = World::new();
    let mut replies = Vec::new();
    for cents in 0..=5 {
        replies.push(world.deposit(&format!("\"order_id\":\"{cents}\",\"amount\":1.0{cents}")).await.unwrap());
    }
    let pages = async || {
        let mut words = Vec::new();
        for reply in &replies {
            words.push(world.entry(reply).await);
        }
        words.join(" ")
    };
    assert_eq!(pages().await, "Preparing https://a.example/f Preparing Preparing Preparing Preparing");
    world.later(SECOND);
    assert_eq!(pages().await, "sandbox https://a.example/f Stopped Instructions Preparing sandbox");
    world.later(9 * SECOND);
    assert_eq!(pages().await, "sandbox https://a.example/f Stopped Instructions sandbox sandbox");
}

#[tokio::test]
async fn waiting_pages_reload_by_themselves() {
    let world = World::new();
    for (cents, state, seconds) in
        [(0, PageState::Preparing, Some(2)), (2, PageState::Stopped, Some(15)), (3, PageState::Instructions, None)]
    {
        let reply = world.deposit(&format!("\"order_id\":\"{cents}\",\"amount\":1.0{cents}")).await.unwrap();
        if state != PageState::Preparing {
            world.later(SECOND);
        }
        let PageResponse::Page(page) = world.open(LinkKind::Entry, &entry_link(&reply), None).await.unwrap() else {
            panic!("{state:?}")
        };
        assert_eq!(page.state, state);
        assert_eq!(page.refresh.as_ref().map(|refresh| refresh.after.as_secs()), seconds);
        assert!(page.refresh.is_none_or(|refresh| refresh.to.is_none()));
        assert!(page.return_url.is_some() && page.payment.is_some() && page.action.is_none());
        assert_eq!(page.instructions.is_some(), state == PageState::Instructions);
    }
}

#[tokio::test]
async fn a_decision_is_recorded_once() {
    let world = World::new();
    for (decision, other, state, contradicting, destination, balance) in [
        (Decision::Pay, Decision::Decline, "Success", "Success, contradicting", "https://a.example/s", "EUR 1000 0"),
        (Decision::Decline, Decision::Pay, "Failed", "Failed, contradicting", "https://a.example/f", "EUR 1000 0"),
    ] {
        let reply = world.deposit(&format!("\"order_id\":\"{state}\"")).await.unwrap();
        world.later(SECOND);
        let link = world.hosted(&reply).await;
        assert_eq!(world.sandbox(&link, None).await, "Sandbox");
        assert_eq!(world.entry(&reply).await, "sandbox", "viewing decides nothing");
        for _ in 0..3 {
            assert_eq!(world.sandbox(&link, Some(decision)).await, state);
        }
        assert_eq!(world.sandbox(&link, Some(other)).await, contradicting);
        assert_eq!(world.sandbox(&link, None).await, destination, "the form is gone");
        assert_eq!(world.entry(&reply).await, destination);
        assert_eq!(world.balances().await, [balance]);
        let record: serde_json::Value = serde_json::from_str(&world.status(&reply).await).unwrap();
        let payer = (state == "Success").then_some("411111******1111");
        assert_eq!(record["account_number"].as_str(), payer);
    }
}

#[tokio::test]
async fn links_end_with_their_lifetimes_from_creation() {
    let world = World::new();
    let reply = world.deposit("\"amount\":1.02").await.unwrap();
    let back = world.offered(&reply).await.unwrap();
    world.later(30 * MINUTE - 1);
    assert_eq!(world.entry(&reply).await, "Stopped");
    world.later(1);
    assert_eq!(world.entry(&reply).await, "refused");
    assert_eq!(world.deposit("\"amount\":1.02").await.unwrap(), reply, "a repeat does not renew the window");
    world.later(7 * DAY - 30 * MINUTE - 1);
    assert_eq!(world.go_back(&back).await, "https://a.example/p");
    world.later(1);
    assert_eq!(world.go_back(&back).await, "refused");
}

#[tokio::test]
async fn the_hosted_page_ends_with_the_entry_link_that_led_to_it() {
    let world = World::new();
    let reply = world.deposit("").await.unwrap();
    world.later(30 * MINUTE - SECOND);
    let link = world.hosted(&reply).await;
    world.later(SECOND);
    assert_eq!(world.sandbox(&link, None).await, "refused");
    assert_eq!(world.sandbox(&link, Some(Decision::Pay)).await, "refused");
    assert!(world.status(&reply).await.contains("PENDING"));
}

#[tokio::test]
async fn a_return_is_decided_by_the_status_of_that_moment() {
    let world = World::new();
    let reply = world.deposit("").await.unwrap();
    let back = world.offered(&reply).await.unwrap();
    assert_eq!(world.go_back(&back).await, "https://a.example/p");
    assert!(world.status(&reply).await.contains("PENDING"));
    world.later(SECOND);
    let link = world.hosted(&reply).await;
    world.sandbox(&link, Some(Decision::Pay)).await;
    assert_eq!(world.go_back(&back).await, "https://a.example/s");
}

#[tokio::test]
async fn a_shop_decides_whether_pages_offer_the_return() {
    let world = World::new();
    let reply = world.deposit("").await.unwrap();
    let back = world.offered(&reply).await.unwrap();
    world.replace("shops/card.toml", "[payin]", "[payin]\nbrowser_return = false");
    assert_eq!(world.offered(&reply).await, None);
    assert_eq!(world.go_back(&back).await, "https://a.example/p", "links already issued stay valid");
    world.later(SECOND);
    let link = world.hosted(&reply).await;
    let PageResponse::Page(page) = world.open(LinkKind::Sandbox, &link, Some(Decision::Pay)).await.unwrap() else {
        panic!()
    };
    assert!(page.return_url.is_none() && page.refresh.is_none());
    assert_eq!(world.entry(&reply).await, "https://a.example/s");
}

#[tokio::test]
async fn a_shown_result_redirects_to_the_return_link() {
    let world = World::new();
    let reply = world.deposit("").await.unwrap();
    world.later(SECOND);
    let link = world.hosted(&reply).await;
    let PageResponse::Page(page) = world.open(LinkKind::Sandbox, &link, Some(Decision::Pay)).await.unwrap() else {
        panic!()
    };
    let (refresh, back) = (page.refresh.unwrap(), page.return_url.unwrap());
    assert_eq!(refresh.to.as_ref().unwrap().expose(), back.expose());
    assert_eq!(refresh.value(), format!("1; url={}", back.expose()));
    assert_eq!(world.go_back(back.expose()).await, "https://a.example/s");
}

#[tokio::test]
async fn links_of_a_listed_secret_stay_valid() {
    let world = World::with(&[("gateway.toml", &format!("{GATEWAY}[pages]\nsecret = \"old\"\n"))]);
    let reply = world.deposit("\"amount\":1.02").await.unwrap();
    let back = world.offered(&reply).await.unwrap();
    world.edit("gateway.toml", &format!("{GATEWAY}[pages]\nsecret = [\"new\", \"old\"]\n"));
    assert_eq!(world.entry(&reply).await, "Preparing");
    assert_eq!(world.go_back(&back).await, "https://a.example/p");
    let later = world.deposit("\"order_id\":\"later\",\"amount\":1.02").await.unwrap();
    let new_back = world.offered(&later).await.unwrap();
    world.edit("gateway.toml", &format!("{GATEWAY}[pages]\nsecret = \"new\"\n"));
    assert_eq!((world.entry(&reply).await, world.go_back(&back).await), ("refused".into(), "refused".into()));
    assert_eq!(world.deposit("\"amount\":1.02").await.unwrap(), reply, "the link stays the same");
    assert_eq!(
        (world.entry(&later).await.as_str(), world.go_back(&new_back).await.as_str()),
        ("Preparing", "https://a.example/p")
    );
}

#[tokio::test]
async fn the_customer_is_sent_to_the_providers_preparation() {
    let world = World::new();
    let reply = world.deposit("").await.unwrap();
    for (preparation, expected) in [
        (Preparation::Page(BrowserUrl::new("https://p.example/1?a=b").unwrap()), "https://p.example/1?a=b"),
        (Preparation::Instructions(Instructions::new(Some("Pay".into()), Vec::new()).unwrap()), "Instructions"),
        (Preparation::Stopped, "Stopped"),
    ] {
        let shop = ShopCode::new("card").unwrap();
        let taken = world.engine.report(ProviderKind::Sandbox, &shop, id(&reply), Report::Prepared(preparation)).await;
        assert_eq!(taken.unwrap(), Reported::Taken);
        assert_eq!(world.entry(&reply).await, expected);
    }
}

#[tokio::test]
async fn a_deposit_of_a_removed_shop_waits() {
    let world = World::new();
    let reply = world.deposit("\"method\":\"spare\"").await.unwrap();
    world.replace("merchants/acme.toml", "[shops.spare]\npayin = true\npayout = true\n", "");
    std::fs::remove_file(world.rules_directory().join("shops/spare.toml")).unwrap();
    world.replace("merchants/other.toml", "[shops.spare]\npayin = true\npayout = true\n", "");
    assert_eq!(world.entry(&reply).await, "Stopped");
    assert!(world.offered(&reply).await.is_some());
}

#[tokio::test]
async fn a_deposit_whose_shop_got_another_kind_of_provider_waits_and_is_not_paid() {
    let world = World::new();
    let reply = world.deposit("").await.unwrap();
    world.later(SECOND);
    let link = world.hosted(&reply).await;
    let http = "kind = \"http\"\nurl = \"https://p.example/\"\nsecret = \"p\"";
    world.replace("shops/card.toml", "kind = \"sandbox\"", http);
    assert_eq!(world.entry(&reply).await, "Stopped");
    assert_eq!(world.sandbox(&link, Some(Decision::Pay)).await, "pay", "a decision that is not offered is ignored");
    assert!(world.status(&reply).await.contains("PENDING"));
}

#[tokio::test]
async fn a_decision_that_the_page_does_not_offer_is_ignored() {
    let world = World::new();
    for cents in [2, 3, 4] {
        let reply = world.deposit(&format!("\"order_id\":\"{cents}\",\"amount\":1.0{cents}")).await.unwrap();
        world.later(SECOND);
        let expires = world.clock.now().plus(Duration::from_millis(MINUTE)).seconds();
        let link = sign_link(&Secret::new(b"pages"), "", SANDBOX, id(&reply), expires);
        assert_eq!(world.sandbox(&link, Some(Decision::Pay)).await, "pay");
        assert!(world.status(&reply).await.contains("PENDING"));
    }
}

#[tokio::test]
async fn a_waiting_page_redirects_before_its_link_expires() {
    let world = World::new();
    world.replace("shops/card.toml", "kind = \"sandbox\"", "kind = \"sandbox\"\ndelay = \"1h\"");
    let reply = world.deposit("").await.unwrap();
    let viewed = async || match world.open(LinkKind::Entry, &entry_link(&reply), None).await.unwrap() {
        PageResponse::Page(page) => page,
        other => panic!("{other:?}"),
    };
    world.later(30 * MINUTE - 3 * SECOND);
    let page = viewed().await;
    assert!(page.here.is_some() && page.refresh.unwrap().to.is_none());
    world.later(SECOND);
    let page = viewed().await;
    assert!(page.here.is_none());
    assert_eq!(page.refresh.unwrap().to.unwrap().expose(), page.return_url.unwrap().expose());
    world.replace("shops/card.toml", "[payin]", "[payin]\nbrowser_return = false");
    let page = viewed().await;
    assert!(page.here.is_none() && page.refresh.is_none());
}

#[tokio::test]
async fn an_expired_return_link_is_not_offered() {
    let world = World::new();
    let reply = world.deposit("").await.unwrap();
    world.later(2 * SECOND);
    world.edit("gateway.toml", &format!("{GATEWAY}[pages]\nreturn_lifetime = \"2s\"\n"));
    let link = world.hosted(&reply).await;
    let PageResponse::Page(page) = world.open(LinkKind::Sandbox, &link, Some(Decision::Pay)).await.unwrap() else {
        panic!()
    };
    assert!(page.return_url.is_none() && page.refresh.is_none());
}

#[tokio::test]
async fn links_of_the_default_secret_stay_valid_while_it_is_listed() {
    let world = World::new();
    let reply = world.deposit("\"amount\":1.02").await.unwrap();
    // The default secret's file holds the secret in base64.
    world.edit("gateway.toml", &format!("{GATEWAY}[pages]\nsecret = [\"new\", \"cGFnZXM=\"]\n"));
    assert_eq!(world.entry(&reply).await, "Preparing");
    world.edit("gateway.toml", &format!("{GATEWAY}[pages]\nsecret = [\"new\"]\n"));
    assert_eq!(world.entry(&reply).await, "refused");
}

#[tokio::test]
async fn an_id_that_names_no_deposit_is_refused_like_a_wrong_link() {
    let world = World::new();
    let withdrawal = world.withdraw("").await.unwrap();
    for id in [id(&withdrawal).to_string(), "4711".to_owned()] {
        let id = crate::domain::TransactionId::parse(&id).unwrap();
        let expires = START.plus(Duration::from_millis(MINUTE)).seconds();
        let link = sign_link(&Secret::new(b"pages"), "", ENTRY, id, expires);
        assert_eq!(describe(world.open(LinkKind::Entry, &link, None).await), "refused", "{link}");
    }
}

#[tokio::test]
async fn a_link_of_one_kind_is_none_of_another() {
    let world = World::new();
    let reply = world.deposit("\"amount\":1.02").await.unwrap();
    let entry = entry_link(&reply);
    let back = world.offered(&reply).await.unwrap();
    for (kind, link) in
        [(LinkKind::Return, &entry), (LinkKind::Sandbox, &entry), (LinkKind::Entry, &back), (LinkKind::Sandbox, &back)]
    {
        assert_eq!(describe(world.open(kind, link, None).await), "refused");
        let renamed = link
            .replace("/pay/", &format!("/{}/", kind.segment()))
            .replace("/return/", &format!("/{}/", kind.segment()));
        assert_eq!(describe(world.open(kind, &renamed, None).await), "refused");
    }
}
