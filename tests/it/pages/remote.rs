//! Before a remote engine, pages are the engine's: its links lead to it, and here there is nothing at their paths.

use crate::pages::browser::{assert_state, form, open, page, press, request, visit};
use crate::pages::{Deposit, SECRET, rules};
use crate::support::request::{PROTOCOLS, Protocol};
use crate::support::{Gateway, Rules};

#[tokio::test]
async fn before_a_remote_engine_there_are_no_pages_here() {
    let engine = Gateway::start(&rules());
    let ca = engine.root.path().join("certs/ca.pem");
    let keys = format!("url = \"https://localhost:{}\"\ntrust = [\"{}\"]", engine.public.port(), ca.to_str().unwrap());
    let secret = format!("secret = \"{SECRET}\"");
    let gateway = Gateway::start(&Rules::default().with("engine", &keys).with("pages", &secret));
    let deposit = Deposit::create(&gateway, "remote", "10.02").await;
    assert!(deposit.url.starts_with(&format!("https://localhost:{}/pay/", engine.public.port())), "{}", deposit.url);
    assert_state(&page(&open(&engine, &deposit.entry).await, 200), "stopped");

    for kind in ["pay", "return", "sandbox"] {
        let link = deposit.link(kind);
        for protocol in PROTOCOLS {
            for target in [&link, &format!("{link}0"), &format!("/{kind}/")] {
                for method in ["GET", "HEAD"] {
                    visit(&gateway, protocol, &request(method, target)).await.expect(404);
                }
            }
        }
    }
    press(&gateway, &deposit.link("sandbox"), "pay").await.expect(404);
    let as_json = form(&deposit.link("sandbox"), "decision=pay").replace("Accept", Some("application/json"));
    assert_eq!(visit(&gateway, Protocol::Http1, &as_json).await.expect(404).message(), "not found");
    deposit.assert_status(&gateway, "PENDING").await;
}
