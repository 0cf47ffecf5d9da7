//! Nothing that anybody sent is ever markup: a page about hostile names has the tags of one about harmless names.

use serde_json::json;

use crate::pages::browser::{open, page, request, visit};
use crate::pages::markup::Document;
use crate::pages::{Deposit, PREPARING, rules};
use crate::support::request::Protocol;
use crate::support::{Gateway, Rules};

/// What would be markup, an end of an attribute, a template's or a link's, if it were not text.
const HOSTILE: [&str; 12] = [
    "<script>alert(1)</script>",
    "</title><img src=x onerror=alert(1)>",
    "\"><svg onload=alert(1)>",
    "' onmouseover='alert(1)",
    "--><b>x</b><!--",
    "</style><style>*{display:none}</style>",
    "&lt;b&gt;&amp;&#60;i&#x3e;",
    "{{ 7 * 7 }}{% if true %}x{% endif %}{# y #}",
    "`${7*7}`\\u003cb\\u003e\\",
    "javascript:alert(1)",
    "\u{202e}dlog\u{202c}\u{2066}x\u{2069}\u{200f}",
    "\u{ff1c}script\u{ff1e}\u{1f4a5}\u{301}\u{b}\t\n\r\u{7f}",
];

/// One page of each state that tells of a deposit, and one that tells of none.
async fn documents(gateway: &Gateway, order_id: &str, request_id: Option<&str>) -> Vec<Document> {
    let mut targets = Vec::new();
    for (number, (shop, amount, hosted)) in [
        ("card-eur", "10.02", false),
        ("card-eur", "10.03", false),
        (PREPARING, "10.50", false),
        ("card-eur", "10.50", true),
    ]
    .into_iter()
    .enumerate()
    {
        let deposit = Deposit::of_shop(gateway, shop, &format!("{order_id}{number}"), amount).await;
        targets.push((200, if hosted { deposit.link("sandbox") } else { deposit.entry }));
    }
    targets.push((403, "/pay/1?expires=1&signature=1".to_owned()));
    let mut documents = Vec::new();
    for (status, target) in targets {
        let mut asked = request("GET", &target);
        if let Some(id) = request_id {
            asked = asked.header("X-Request-Id", id);
        }
        documents.push(page(&visit(gateway, Protocol::Http1, &asked).await, status));
    }
    documents
}

fn shapes(documents: &[Document]) -> Vec<&[String]> {
    documents.iter().map(|document| &document.shape[..]).collect()
}

/// Text as it is seen: white space is as good as any other, and a control character is a sign that there was one.
fn seen(text: &str) -> String {
    let text = text.replace(|c: char| c.is_control() && !c.is_ascii_whitespace(), "\u{fffd}");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn an_order_id_is_text() {
    let gateway = Gateway::start(&rules());
    let harmless = documents(&gateway, "harmless", None).await;
    for hostile in HOSTILE {
        let documents = documents(&gateway, hostile, None).await;
        assert_eq!(shapes(&documents), shapes(&harmless), "{hostile:?}");
        let shown = documents.iter().any(|document| seen(document.text()).contains(&seen(hostile)));
        assert!(shown, "{hostile:?} is shown as it is");
    }
}

#[tokio::test]
async fn a_request_id_is_text() {
    let gateway = Gateway::start(&rules());
    let harmless = documents(&gateway, "first", Some("harmless")).await;
    let without_spaces = HOSTILE.iter().filter(|text| text.bytes().all(|byte| byte.is_ascii_graphic()));
    let mut number = 0;
    for hostile in without_spaces.copied().chain(["</p><h1>x</h1>", "\"'<>&{{state}}", "%3Cb%3E"]) {
        number += 1;
        let documents = documents(&gateway, &format!("request-{number}-"), Some(hostile)).await;
        assert_eq!(shapes(&documents), shapes(&harmless), "{hostile:?}");
        let shown = documents.iter().any(|document| document.text().contains(hostile));
        assert!(shown, "{hostile:?} is shown as it is");
    }
    assert!(number > 5);
}

/// Rules whose merchant has this name.
fn named(name: &str) -> Rules {
    let name = json!(name).to_string().replace("\\u000b", "\\u000B");
    rules().edit("merchants/acme.toml", "name = \"Acme Ltd\"", &format!("name = {name}"))
}

/// An operator's file is trusted, and yet a name with an ampersand is a name.
#[tokio::test]
async fn a_merchants_name_is_text() {
    let gateway = Gateway::start(&rules());
    let deposit = Deposit::create(&gateway, "named", "10.02").await;
    let harmless = page(&open(&gateway, &deposit.entry).await, 200);
    assert!(harmless.text().contains("Acme Ltd"));
    for hostile in HOSTILE.iter().filter(|text| text.is_ascii() && !text.contains('\t')) {
        gateway.reload_with(&named(hostile));
        let document = page(&open(&gateway, &deposit.entry).await, 200);
        assert_eq!(document.shape, harmless.shape, "{hostile:?}");
        assert!(document.text().contains(hostile), "{hostile:?} is shown as it is: {}", document.text());
    }
}
