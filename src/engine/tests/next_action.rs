//! The next step of a deposit's customer.

use std::time::Duration;

use super::*;
use crate::domain::{BrowserUrl, Instructions, Outcome, Preparation, Secrets};
use crate::rules::{HttpProvider, ProviderRules};

impl World {
    async fn way(&self, reply: &str, provider: &ProviderRules) -> NextAction {
        let operation = self.store().by_id(id(reply)).await.unwrap().unwrap().operation;
        self.engine.next_action(&operation, Some(provider)).await.unwrap()
    }
}

fn http() -> ProviderRules {
    ProviderRules::Http(HttpProvider {
        url: "https://p.example/".into(),
        secrets: Secrets::new(vec![Secret::new(b"p")]).unwrap(),
        trust: Arc::default(),
        timeout: Duration::from_secs(1),
        first_retry: Duration::from_secs(1),
        max_retry: Duration::from_secs(1),
        give_up_after: Duration::from_secs(1),
    })
}

#[tokio::test]
async fn what_a_provider_prepared_is_shown() {
    let world = World::new();
    let reply = world.deposit("").await.unwrap();
    let http = http();
    assert_eq!(world.way(&reply, &http).await, NextAction::Stopped, "made for another kind of provider");
    let url = BrowserUrl::new("https://p.example/1").unwrap();
    let instructions = Instructions::new(Some("Pay".into()), Vec::new()).unwrap();
    for (prepared, way) in [
        (Preparation::Page(url.clone()), NextAction::Page(url)),
        (Preparation::Instructions(instructions.clone()), NextAction::Instructions(instructions)),
        (Preparation::Stopped, NextAction::Stopped),
    ] {
        world.report(&reply, Report::Prepared(prepared)).await;
        assert_eq!(world.way(&reply, &http).await, way);
        let sandbox = ProviderRules::Sandbox { delay: Duration::ZERO };
        assert_eq!(world.way(&reply, &sandbox).await, way, "prepared before the shop got another provider");
    }
    world.report(&reply, Report::from(Outcome::Failed)).await;
    assert_eq!(world.way(&reply, &http).await, NextAction::Finished(Status::Failed));
}

#[tokio::test]
async fn a_return_link_lives_from_the_creation_and_is_signed_with_the_first_secret() {
    let id = TransactionId::parse("123456789").unwrap();
    let created = UnixMillis(1_735_689_600_999);
    // Computed with Python's hmac.
    for (pages, link) in [
        (
            "",
            "/return/123456789?expires=1736294400&signature=6e302917a365eb88b75a23943149f331f0ac6c48f39dce1053b7e7a0e3885134",
        ),
        (
            "secret = [\"new\", \"page-secret\"]\nreturn_lifetime = \"1d\"\n",
            "/return/123456789?expires=1735776000&signature=4acc081c10b2576f57eac8353fde69f5c395344abd7e054cace2f83c24672e68",
        ),
    ] {
        let gateway = format!(
            "[server]\npublic_url = \"https://pay.example\"\n[store]\nurl = \"sqlite:../store.db\"\n\
             keys = [\"file:../store.key\"]\n[pages]\n{pages}"
        );
        let world = World::with(&[("gateway.toml", &gateway)]);
        let made = world.engine.return_link(&world.rules().gateway, id, created);
        assert_eq!(made.expose(), format!("https://pay.example{link}"));
        assert_eq!(format!("{made:?}"), "RedirectUrl(..)");
    }
}
