//! Who reads an answer: a person gets pages, and a program that says so gets errors as JSON.

use crate::pages::browser::{ACCEPT, form, page, request, visit};
use crate::pages::{Deposit, rules};
use crate::support::request::PROTOCOLS;
use crate::support::{Gateway, Reply, Request};

/// Whether this `Accept` is answered with JSON where something is refused.
const ACCEPTS: [(Option<&str>, bool); 9] = [
    (Some(ACCEPT), false),
    (None, false),
    (Some("*/*"), false),
    (Some("text/html"), false),
    (Some("image/*, */*;q=0.1"), false),
    (Some("application/json"), true),
    (Some("Application/JSON; charset=utf-8"), true),
    (Some("application/json, */*;q=0.1"), true),
    (Some("text/html, application/json"), false),
];

fn is_json(reply: &Reply) -> bool {
    reply.header("content-type").starts_with("application/json")
}

#[tokio::test]
async fn errors_are_json_for_programs_alone() {
    let gateway = Gateway::start(&rules());
    let deposit = Deposit::create(&gateway, "read", "10.02").await;
    let hosted = deposit.link("sandbox");
    let refused: [(u16, Request); 5] = [
        (403, request("GET", &format!("{}0", deposit.entry))),
        (403, request("GET", &format!("{}0", deposit.link("return")))),
        (405, request("DELETE", &deposit.entry)),
        (400, form(&hosted, "decision=maybe")),
        (415, form(&hosted, "decision=pay").replace("Content-Type", Some("text/plain"))),
    ];
    for (accept, wants_json) in ACCEPTS {
        for protocol in PROTOCOLS {
            for (status, request) in &refused {
                let asked = request.clone().replace("Accept", accept);
                let reply = visit(&gateway, protocol, &asked).await.expect(*status);
                assert_eq!(is_json(&reply), wants_json, "{accept:?} {status}");
                assert!(!wants_json || !reply.message().contains(&deposit.id), "{reply:?}");
            }
            // What is no error is what it is.
            let shown = visit(&gateway, protocol, &request("GET", &deposit.entry).replace("Accept", accept)).await;
            page(&shown, 200);
            assert!(shown.header("vary").to_ascii_lowercase().contains("accept"), "{shown:?}");
        }
    }
}

/// Whatever a browser sends, there is a page, and it is in the language that it says.
#[tokio::test]
async fn any_languages_are_answered() {
    let gateway = Gateway::start(&rules());
    let deposit = Deposit::create(&gateway, "languages", "10.02").await;
    let many = "xx-YY;q=0.1,".repeat(200);
    for languages in ["", "*", "en", "de-CH, fr;q=0.9", "tlh", ";;;q=,,", "en;q=2", "<script>", "{{ 7 * 7 }}", &many] {
        for protocol in PROTOCOLS {
            let asked = request("GET", &deposit.entry).replace("Accept-Language", Some(languages));
            page(&visit(&gateway, protocol, &asked).await, 200);
        }
    }
}
