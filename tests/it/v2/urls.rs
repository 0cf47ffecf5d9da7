//! The four URLs, on the raw string.

use serde_json::{Value, json};

use crate::support::bodies::with;
use crate::support::request::ACME;
use crate::support::stored::Create;
use crate::v2::table::Table;

const TAKEN: &[&str] = &[
    "https://acme.example",
    "https://acme.example/",
    "HTTPS://ACME.example/Cb",
    "hTTpS://acme.example/",
    "https://acme.example:443/",
    "https://acme.example:1/",
    "https://acme.example:65535/",
    "https://acme.example.",
    "https://localhost/cb",
    "https://a/",
    "https://127.0.0.1/cb",
    "https://203.0.113.7:8443/cb?x=1",
    "https://[::1]/",
    "https://[2001:db8::1]:8443/cb",
    "https://[::ffff:203.0.113.7]/",
    "https://xn--e1afmkfd.example/",
    "https://acme.example?",
    "https://acme.example#",
    "https://acme.example?x",
    "https://acme.example/#fragment",
    "https://acme.example/cb?a=b&c=d;e=f,g#h/i?j",
    "https://acme.example/%20%C3%A9%00%0A",
    "https://acme.example/a//b/../c/./d",
    "https://acme.example/@user:pass",
    "https://acme.example/?next=https://u:p@other.example/",
    "https://acme.example/~a-b_c.d!$&'()*+,;=:@",
    "https://acme.example/?order={}",
];

const REFUSED: &[&str] = &[
    // keeps P140
    "",
    // keeps P134, P137, P138, P139
    // relative, or of another scheme
    "acme.example",
    "acme.example/cb",
    "/cb",
    "./cb",
    "?x=1",
    "#x",
    "//acme.example/cb",
    "://acme.example/",
    "https",
    "https:",
    "https:/",
    "https:/acme.example/",
    "https:acme.example",
    "https//acme.example",
    "httpss://acme.example/",
    "htt://acme.example/",
    "ftp://acme.example/",
    "ws://acme.example/",
    "wss://acme.example/",
    "file:///etc/passwd",
    "javascript:alert(1)",
    "javascript://acme.example/%0aalert(1)",
    "data:text/html,x",
    "mailto:ann@acme.example",
    "blob:https://acme.example/",
    "view-source:https://acme.example/",
    // keeps P136, P141
    "https://u@acme.example/",
    "https://u:p@acme.example/",
    "https://u:@acme.example/",
    "https://:p@acme.example/",
    "https://@acme.example/",
    "https://:@acme.example/",
    "https://u%40v:p@acme.example/",
    "https://acme.example@other.example/",
    "https://a:b@c:d@acme.example/",
    "https://u@[::1]/",
    // keeps P142, D016
    " https://acme.example/",
    "https://acme.example/ ",
    " ",
    "https://acme.example/a b",
    "https://acme example/",
    "https:// acme.example/",
    "\thttps://acme.example/",
    "https://acme.example/\t",
    "https://acme.example/\tx",
    "ht\ttps://acme.example/",
    "https://acme.exa\nmple/",
    "https://acme.example/\n",
    "https://acme.example/\r\nX-Injected: 1",
    "https://acme.example/\u{b}",
    "https://acme.example/\u{c}",
    "https://acme.example/\u{85}",
    "https://acme.example/\u{a0}",
    "\u{a0}https://acme.example/",
    "https://acme.example/\u{1680}",
    "https://acme.example/\u{2003}",
    "https://acme.example/\u{2028}",
    "https://acme.example/\u{3000}",
    "https://acme.example/\u{200b}",
    "\u{feff}https://acme.example/",
    // keeps P143
    "https://acme.example/\0",
    "\0https://acme.example/",
    "https://acme.example/\u{1}",
    "https://acme.example/\u{1b}",
    "https://acme.example/\u{1f}",
    "https://acme.example/\u{7f}",
    "https://acme.example/\u{80}",
    "https://acme.example/\u{9f}",
    // keeps D013, D017
    "https://жж.example/",
    "https://acme.example/é",
    "https://ａcme.example/",
    "https://acme。example/",
    "https://acme.example\\cb",
    "https:\\\\acme.example\\cb",
    "https:/\\acme.example/",
    "https://acme.example/a\\b",
    "https://acme.example/<x>",
    "https://acme.example/\"x\"",
    "https://acme.example/`x`",
    "https://acme.example/{x}",
    "https://acme.example/a|b",
    "https://acme.example/a^b",
    "https://acme.example/%",
    "https://acme.example/%2",
    "https://acme.example/%zz",
    "https://acme.example/%G0",
    "https://acme.example/?%",
    "https://acme.example/#%1",
    "https://%61cme.example/",
    "https://acme.example/#a#b",
    "https://acme.example/[x]",
    // keeps D015
    // the host and the port
    "https://",
    "https:///",
    "https:///cb",
    "https://?x",
    "https://#x",
    "https://:443/",
    "https://.",
    "https://./",
    "https://.example/",
    "https://acme..example/",
    "https://acme.example../",
    "https://acme.example:/",
    "https://acme.example:0/",
    "https://acme.example:00443/",
    "https://acme.example:65536/",
    "https://acme.example:99999999999999999999/",
    "https://acme.example:-1/",
    "https://acme.example:+443/",
    "https://acme.example:https/",
    "https://acme.example:4 43/",
    "https://acme.example:443:443/",
    "https://[::1/",
    "https://::1/",
    "https://::1]/",
    "https://[]/",
    "https://[::1]x/",
    "https://[::1]:/",
    "https://[::1]:0/",
    "https://[::1%25eth0]/",
    "https://[::g]/",
    "https://[1.2.3.4]/",
    "https://[v1.a]/",
    "https://1.2.3/",
    "https://1/",
    "https://256.1.1.1/",
    "https://0x7f.0.0.1/",
    "https://0x7f000001/",
    "https://127.0.0.1./",
    "https://0177.0.0.1/",
    "https://acme.example,other.example/",
    "https://a$b.example/",
];

const MEMBERS: &[(Create, &str)] = &[
    (Create::Deposit, "callback_url"),
    (Create::Deposit, "success_url"),
    (Create::Deposit, "pending_url"),
    (Create::Deposit, "fail_url"),
    (Create::Withdrawal, "callback_url"),
];

/// A URL of this many characters.
fn of_length(length: usize) -> String {
    let start = "https://acme.example/";
    format!("{start}{}", "x".repeat(length - start.len()))
}

/// The same with plain HTTP.
fn plain(url: &str) -> String {
    format!("http{}", &url["https".len()..])
}

// keeps P134, P135, P137, P138, P139, P158, P191, P253, P254, D013, D014
#[tokio::test]
async fn absolute_urls_are_taken_as_they_stand() {
    let mut table = Table::new();
    let longest = of_length(2048);
    for (kind, member) in MEMBERS {
        let urls = TAKEN.iter().filter(|url| !url.contains('{')).copied().chain([longest.as_str()]);
        for url in urls {
            table.take_member(*kind, member, &Value::from(url).to_string()).await;
            let http = Value::from(plain(url)).to_string();
            if *member == "callback_url" {
                table.refuse_member(*kind, member, &http).await;
            } else {
                table.take_member(*kind, member, &http).await;
            }
        }
    }
}

// keeps P134, P136, P137, P138, P139, P140, P141, P142, P143, P158, P224, D013, D014, D015, D016, D017
#[tokio::test]
async fn everything_else_is_refused_and_not_repaired() {
    let mut table = Table::new();
    let too_long = of_length(2049);
    let much_too_long = of_length(60_000);
    for (kind, member) in MEMBERS {
        for url in REFUSED.iter().copied().chain([too_long.as_str(), &much_too_long]) {
            table.refuse_member(*kind, member, &Value::from(url).to_string()).await;
        }
        for raw in
            ["null", "true", "443", "[]", "[\"https://acme.example/\"]", "{}", "{\"url\":\"https://acme.example/\"}"]
        {
            table.refuse_member(*kind, member, raw).await;
        }
    }
    for raw in ["\"http://acme.example/cb\"", "\"HTTP://acme.example/cb\"", "\"http://127.0.0.1/\""] {
        for kind in [Create::Deposit, Create::Withdrawal] {
            // keeps P135, P253
            table.refuse_member(kind, "callback_url", raw).await;
        }
    }
}

// keeps P144, P191
#[tokio::test]
async fn one_return_page_may_serve_all_three() {
    let mut table = Table::new();
    let id = table.order();
    let page = json!(format!("https://acme.example/back?order={id}"));
    let body = ["success_url", "pending_url", "fail_url"]
        .iter()
        .fold(Create::Deposit.body(&id), |body, member| with(body, member, Some(page.clone())));
    table.take(Create::Deposit, &body.to_string(), None).await;
}

// keeps P232, D018, D034
#[tokio::test]
async fn urls_are_compared_byte_for_byte() {
    let mut table = Table::new();
    for (kind, member) in MEMBERS {
        let id = table.order();
        let sent = |url: &str| with(kind.body(&id), member, Some(url.into())).to_string();
        table.take(*kind, &sent("https://acme.example/cb?a=%2f"), None).await;
        for other in [
            "https://acme.example/cb?a=%2F",
            "https://acme.example/cb?a=/",
            "https://ACME.example/cb?a=%2f",
            "HTTPS://acme.example/cb?a=%2f",
            "https://acme.example:443/cb?a=%2f",
            "https://acme.example/x/../cb?a=%2f",
            "https://acme.example/cb?a=%2f#",
            "https://acme.example./cb?a=%2f",
        ] {
            let reply = table.send(&kind.request(&ACME, sent(other))).await.expect(409);
            assert!(reply.message().contains(member), "{}", reply.message());
            assert!(!reply.message().contains("acme.example"), "{}", reply.message());
        }
        table.take(*kind, &sent("https://acme.example/cb?a=%2f"), None).await;
    }
}
