//! What stands around pages: headers are checked at every answer (see the browser); here, that no log, metric or header
//! holds what belongs to a customer alone, and the headers of the rarer answers.

use crate::pages::browser::{form, open, press, request, visit};
use crate::pages::{Deposit, PREPARING, rules};
use crate::support::request::{PROTOCOLS, Protocol};
use crate::support::{Gateway, eventually};

/// Links prove who comes, so they are written nowhere; nor do metrics tell deposits apart.
#[tokio::test]
async fn no_link_is_written_down() {
    let gateway = Gateway::start(&rules());
    let mut deposits = Vec::new();
    for amount in ["10.50", "10.02", "10.03", "10.04"] {
        deposits.push(Deposit::create(&gateway, &format!("written-{amount}"), amount).await);
    }
    deposits.push(Deposit::of_shop(&gateway, PREPARING, "written-slow", "10.50").await);
    for deposit in &deposits {
        for kind in ["pay", "return", "sandbox"] {
            let link = deposit.link(kind);
            for protocol in PROTOCOLS {
                for method in ["GET", "HEAD", "DELETE"] {
                    visit(&gateway, protocol, &request(method, &link)).await;
                    visit(&gateway, protocol, &request(method, &format!("{link}&x=hidden-7Gh"))).await;
                }
            }
        }
    }
    let hosted = deposits[0].link("sandbox");
    press(&gateway, &hosted, "pay").await.expect(200);
    visit(&gateway, Protocol::Http1, &form(&hosted, "decision=hidden-7Gh")).await.expect(400);
    let last = request("GET", &deposits[0].entry).header("X-Request-Id", "the-last-one");
    visit(&gateway, Protocol::Http1, &last).await.expect(303);
    let log =
        eventually("the last line", async || Some(gateway.log()).filter(|log| log.contains("the-last-one"))).await;
    let (_, metrics) = gateway.admin_get("/metrics").unwrap();
    for written in [&log, &metrics] {
        assert!(!written.contains("hidden-7Gh") && !written.contains("signature="), "a link was written");
        for deposit in &deposits {
            assert!(!written.contains(&format!("/{}?", deposit.id)), "a link was written");
            for kind in ["pay", "return", "sandbox"] {
                let link = deposit.link(kind);
                let (_, signature) = link.split_once("&signature=").unwrap();
                assert!(!written.contains(signature), "a signature was written");
            }
        }
    }
    assert!(deposits.iter().all(|deposit| !metrics.contains(&deposit.id)), "an id is in the metrics");
}

/// What is counted of pages has names that no customer chooses.
#[tokio::test]
async fn steps_are_counted() {
    let gateway = Gateway::start(&rules());
    let deposit = Deposit::create(&gateway, "counted", "10.02").await;
    open(&gateway, &deposit.entry).await.expect(200);
    open(&gateway, &deposit.link("return")).await.expect(303);
    open(&gateway, &format!("{}0", deposit.entry)).await.expect(403);
    let (_, metrics) = gateway.admin_get("/metrics").unwrap();
    for series in [
        "paybridge_pages_total{page=\"stopped\"} 1",
        "paybridge_pages_total{page=\"away\"} 1",
        "paybridge_refusals_total{reason=\"link\"} 1",
    ] {
        assert!(metrics.lines().any(|line| line == series), "{series} is not in {metrics}");
    }
}
