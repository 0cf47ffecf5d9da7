//! Tests of the customer's pages over the real store and real rule files, with a clock that the test moves.

use std::time::Duration;

use super::{Decision, LinkKind, PageReply, PageRequest, PageResponse};
use crate::auth::signatures::{SANDBOX, sign_link};
use crate::clock::Clock as _;
use crate::domain::Secret;
use crate::engine::tests::{World, id};
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
        Err(ApiError::Refused(AdmissionError::Link(None))) => "refused".to_owned(),
        Err(ApiError::Refused(AdmissionError::Link(Some(id)))) => format!("expired: {id}"),
        Err(other) => panic!("{other:?}"),
    }
}

fn entry_link(reply: &str) -> String {
    let reply: serde_json::Value = serde_json::from_str(reply).unwrap();
    reply["redirect_url"].as_str().unwrap().to_owned()
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
async fn links_end_with_their_lifetimes_from_creation() {
    let world = World::new();
    let reply = world.deposit("\"amount\":1.02").await.unwrap();
    let back = world.offered(&reply).await.unwrap();
    world.later(30 * MINUTE - 1);
    assert_eq!(world.entry(&reply).await, "Stopped");
    world.later(1);
    let refused = world.entry(&reply).await;
    let id = refused.strip_prefix("expired: ").unwrap();
    assert!(reply.contains(&format!("\"{id}\"")), "{refused}");
    assert_eq!(world.deposit("\"amount\":1.02").await.unwrap(), reply, "a repeat does not renew the window");
    world.later(7 * DAY - 30 * MINUTE - 1);
    assert_eq!(world.go_back(&back).await, "https://a.example/p");
    world.later(1);
    assert_eq!(world.go_back(&back).await, refused);
    assert_eq!(world.go_back(&back.replacen("expires=", "expires=9", 1)).await, "refused");
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
