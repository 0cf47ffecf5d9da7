//! What providers report: posted once, and nothing changes a result.

use super::*;
use crate::domain::{AccountNumber, BrowserUrl, Outcome, Preparation};

fn success() -> Report {
    Report::from(Outcome::Success { payer: None })
}

fn failed() -> Report {
    Report::from(Outcome::Failed)
}

fn page(path: &str) -> Preparation {
    Preparation::Page(BrowserUrl::new(&format!("https://p.example/{path}")).unwrap())
}

async fn prepared(world: &World, reply: &str) -> Option<Preparation> {
    world.store().preparation(id(reply)).await.unwrap()
}

// keeps D048
#[tokio::test]
async fn a_result_is_taken_once() {
    for (first, status, contradicting) in
        [(success(), Status::Success, failed()), (failed(), Status::Failed, success())]
    {
        let world = World::new();
        for reply in [world.deposit("").await.unwrap(), world.withdraw("").await.unwrap()] {
            assert!(world.status(&reply).await.contains("\"PENDING\""));
            assert_eq!(world.report(&reply, first.clone()).await, Reported::Taken);
            let completed = (world.status(&reply).await, world.balances().await);
            assert!(completed.0.contains(status.as_str()), "{completed:?}");
            for (late, expected) in [
                (first.clone(), Reported::Repeated),
                (contradicting.clone(), Reported::Contradicts(status)),
                (Report::Pending, Reported::Repeated),
                (Report::Prepared(page("late")), Reported::Repeated),
                (first.clone(), Reported::Repeated),
            ] {
                assert_eq!(world.report(&reply, late.clone()).await, expected, "{late:?}");
                assert_eq!((world.status(&reply).await, world.balances().await), completed, "{late:?}");
                assert_eq!(prepared(&world, &reply).await, None, "{late:?}");
            }
        }
    }
}

// keeps P029
#[tokio::test]
async fn the_first_payer_stands() {
    let world = World::new();
    let reply = world.deposit("").await.unwrap();
    let paid_from =
        |account: &str| Report::from(Outcome::Success { payer: Some(AccountNumber::new(account).unwrap()) });
    assert_eq!(world.report(&reply, paid_from("4111111111111111")).await, Reported::Taken);
    assert_eq!(world.report(&reply, paid_from("5555555555554444")).await, Reported::Repeated);
    assert_eq!(world.report(&reply, success()).await, Reported::Repeated);
    assert!(world.status(&reply).await.contains(r#""account_number":"411111******1111""#));
}

#[tokio::test]
async fn a_provider_speaks_of_its_own_shop_alone() {
    let world = World::new();
    let reply = world.deposit("\"method\":\"spare\"").await.unwrap();
    for report in [success(), failed(), Report::Pending, Report::Prepared(page("x"))] {
        assert_eq!(world.report(&reply, report.clone()).await, Reported::Unknown, "{report:?}");
        assert_eq!(world.report(r#"{"transaction_id":"1"}"#, report).await, Reported::Unknown, "no such operation");
    }
    assert!(world.status(&reply).await.contains("\"PENDING\""));
    // An operation created for the sandbox keeps that provider, even if the shop's rules name another one later.
    let reply = world.deposit("\"order_id\":\"other\"").await.unwrap();
    let card = ShopCode::new("card").unwrap();
    let reported = world.engine.report(ProviderKind::Http, &card, id(&reply), success()).await.unwrap();
    assert_eq!(reported, Reported::Unknown);
    assert!(world.status(&reply).await.contains("\"PENDING\""));
    assert_eq!(prepared(&world, &reply).await, None);
}

#[tokio::test]
async fn what_was_prepared_stays_until_it_is_replaced_or_there_is_a_result() {
    let world = World::new();
    let reply = world.deposit("").await.unwrap();
    assert_eq!(world.report(&reply, Report::Pending).await, Reported::Taken);
    assert_eq!(prepared(&world, &reply).await, None);
    assert_eq!(world.report(&reply, Report::Prepared(page("a"))).await, Reported::Taken);
    assert_eq!(world.report(&reply, Report::Pending).await, Reported::Taken);
    assert_eq!(prepared(&world, &reply).await, Some(page("a")), "pending does not change it");
    assert_eq!(world.report(&reply, Report::Prepared(Preparation::Stopped)).await, Reported::Taken);
    assert_eq!(prepared(&world, &reply).await, Some(Preparation::Stopped));
    assert_eq!(world.report(&reply, Report::Prepared(page("b"))).await, Reported::Taken);
    assert_eq!(prepared(&world, &reply).await, Some(page("b")));
    assert_eq!(world.report(&reply, success()).await, Reported::Taken);
    assert_eq!(prepared(&world, &reply).await, None);
    assert!(world.status(&reply).await.contains("\"SUCCESS\""));
}

#[tokio::test]
async fn nothing_is_prepared_for_a_withdrawal() {
    let world = World::new();
    let reply = world.withdraw("").await.unwrap();
    assert_eq!(world.report(&reply, Report::Prepared(page("x"))).await, Reported::Taken);
    assert_eq!(prepared(&world, &reply).await, None);
    assert!(world.store().provider_queues().await.unwrap().is_empty(), "it is not requested again");
    assert!(world.status(&reply).await.contains("\"PENDING\""));
}

// keeps P097, D048
#[tokio::test]
async fn what_was_created_failed_stays_failed() {
    let world = World::new();
    let reply = world.deposit("\"amount\":10.01").await.unwrap();
    assert_eq!(world.report(&reply, success()).await, Reported::Contradicts(Status::Failed));
    assert_eq!(world.report(&reply, failed()).await, Reported::Repeated);
    assert_eq!(world.report(&reply, Report::Prepared(page("x"))).await, Reported::Repeated);
    assert!(world.balances().await.is_empty(), "no money moved");
}
