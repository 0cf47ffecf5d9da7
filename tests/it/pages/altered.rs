//! A link holds only as it was issued: whatever is altered is refused, changes nothing, and tells nothing.

use std::fmt::Write as _;

use http::uri::PathAndQuery;

use crate::pages::browser::{assert_state, exchange, form, page, request, visit};
use crate::pages::{Deposit, books, rules, signed, withdrawal};
use crate::support::reply::assert_same;
use crate::support::request::{ACME, PROTOCOLS, Protocol};
use crate::support::{Gateway, Request};

/// The kinds of links.
const KINDS: [&str; 3] = ["pay", "return", "sandbox"];

/// A link, taken apart.
struct Parts<'a> {
    kind: &'a str,
    id: &'a str,
    expires: &'a str,
    signature: &'a str,
}

impl<'a> Parts<'a> {
    #[track_caller]
    fn of(link: &'a str) -> Self {
        let (path, query) = link.split_once('?').unwrap();
        let (kind, id) = path[1..].split_once('/').unwrap();
        let (expires, signature) = query.strip_prefix("expires=").unwrap().split_once("&signature=").unwrap();
        Self { kind, id, expires, signature }
    }
}

/// Everything that could be done to a link; `other` is a good one of another deposit.
fn alterations(link: &str, other: &str) -> Vec<String> {
    let Parts { kind, id, expires, signature } = Parts::of(link);
    let their = Parts::of(other);
    let path = format!("/{kind}/{id}");
    let query = format!("expires={expires}&signature={signature}");
    let mut altered = of_the_query(&path, expires, signature);
    altered.extend(of_the_path(kind, id, &query));
    altered.extend([
        format!("/{kind}/{}?{query}", their.id),
        format!("{path}?expires={expires}&signature={}", their.signature),
        format!("{path}?expires={}&signature={signature}", expires.parse::<u64>().unwrap() + 1),
        format!("{path}?expires={}&signature={signature}", expires.parse::<u64>().unwrap() - 1),
        format!("{path}?{query}{}", "a".repeat(8 * 1024)),
        format!("{path}?{query}&x={}", "a".repeat(8 * 1024)),
    ]);
    // What is good for one kind of link is nothing for another.
    for another in KINDS.into_iter().filter(|another| *another != kind) {
        altered.push(format!("/{another}/{id}?{query}"));
    }
    altered
}

fn of_the_query(path: &str, expires: &str, signature: &str) -> Vec<String> {
    let query = format!("expires={expires}&signature={signature}");
    let (first, last) = (&signature[..1], &signature[63..]);
    let rest = &signature[1..];
    let flipped = if last == "0" { "1" } else { "0" };
    [
        // missing, empty
        path.to_owned(),
        format!("{path}?"),
        format!("{path}?expires={expires}"),
        format!("{path}?signature={signature}"),
        format!("{path}?expires=&signature={signature}"),
        format!("{path}?expires={expires}&signature="),
        format!("{path}?expires=&signature="),
        format!("{path}?expires&signature"),
        // extra, doubled, reordered, renamed
        format!("{path}?{query}&utm_source=mail"),
        format!("{path}?utm_source=mail&{query}"),
        format!("{path}?expires={expires}&x=1&signature={signature}"),
        format!("{path}?{query}&{query}"),
        format!("{path}?{query}&expires={expires}"),
        format!("{path}?{query}&signature={signature}"),
        format!("{path}?expires={expires}&{query}"),
        format!("{path}?signature={signature}&expires={expires}"),
        format!("{path}?Expires={expires}&signature={signature}"),
        format!("{path}?expires={expires}&Signature={signature}"),
        format!("{path}?exp={expires}&sig={signature}"),
        // other separators, left-overs
        format!("{path}?{query}&"),
        format!("{path}?&{query}"),
        format!("{path}??{query}"),
        format!("{path}?{query}?"),
        format!("{path}?{query};"),
        format!("{path}?{query}="),
        format!("{path}?{query}%"),
        format!("{path}?{query}%00"),
        format!("{path}?{query}%20"),
        format!("{path}?{query}+"),
        format!("{path}?{query}%23x"),
        format!("{path}?{query}%FF%FE"),
        format!("{path}?expires={expires};signature={signature}"),
        format!("{path}?expires={expires}&&signature={signature}"),
        format!("{path}?expires={expires}&amp;signature={signature}"),
        format!("{path}?expires={expires}%26signature={signature}"),
        format!("{path}?expires={expires}&signature[]={signature}"),
        // spelt otherwise
        format!("{path}?%65xpires={expires}&signature={signature}"),
        format!("{path}?expires={}&signature={signature}", as_percent(expires)),
        format!("{path}?expires={expires}&signature={}{rest}", as_percent(first)),
        format!("{path}?expires={expires}&signature={}", as_percent(signature)),
        format!("{path}?expires={expires}&%73ignature={signature}"),
        format!("{path}?expires%3D{expires}&signature={signature}"),
        format!("{path}?expires=+{expires}&signature={signature}"),
        format!("{path}?expires=0{expires}&signature={signature}"),
        format!("{path}?expires={expires}.0&signature={signature}"),
        format!("{path}?expires=-{expires}&signature={signature}"),
        format!("{path}?expires=%FF&signature={signature}"),
        format!("{path}?expires={expires}&signature=0x{signature}"),
        format!("{path}?expires={expires}&signature=+{signature}"),
        // another signature
        format!("{path}?expires={expires}&signature={}", signature.to_uppercase()),
        format!("{path}?expires={expires}&signature={}", &signature[..63]),
        format!("{path}?expires={expires}&signature={}", &signature[..32]),
        format!("{path}?expires={expires}&signature={signature}0"),
        format!("{path}?expires={expires}&signature={}{flipped}", &signature[..63]),
        format!("{path}?expires={expires}&signature={}", "0".repeat(64)),
        format!("{path}?expires={expires}&signature={}", "z".repeat(64)),
    ]
    .into()
}

/// Every byte percent-encoded.
fn as_percent(text: &str) -> String {
    text.bytes().fold(String::new(), |mut coded, byte| {
        let _ = write!(coded, "%{byte:02X}");
        coded
    })
}

/// Paths that still are below the kind's own.
fn of_the_path(kind: &str, id: &str, query: &str) -> Vec<String> {
    let coded = as_percent(id);
    [
        format!("/{kind}/"),
        format!("/{kind}/?"),
        format!("/{kind}/?{query}"),
        format!("/{kind}/{id}/?{query}"),
        format!("/{kind}//{id}?{query}"),
        format!("/{kind}/{id}//?{query}"),
        format!("/{kind}/./{id}?{query}"),
        format!("/{kind}/x/../{id}?{query}"),
        format!("/{kind}/../{kind}/{id}?{query}"),
        format!("/{kind}/%2e%2e/{kind}/{id}?{query}"),
        format!("/{kind}/{id}/.?{query}"),
        format!("/{kind}/{id}/more?{query}"),
        format!("/{kind}/{id};x=1?{query}"),
        format!("/{kind}/{id}%00?{query}"),
        format!("/{kind}/{id}%2F?{query}"),
        format!("/{kind}/%2F{id}?{query}"),
        format!("/{kind}/{coded}?{query}"),
        format!("/{kind}/0{id}?{query}"),
        format!("/{kind}/+{id}?{query}"),
        format!("/{kind}/%FF%FE?{query}"),
        format!("/{kind}/%C0%AF?{query}"),
        format!("/{kind}/{}?{query}", "9".repeat(19)),
        format!("/{kind}/{}?{query}", "9".repeat(4096)),
        format!("/{kind}/{id}%3F{query}"),
        format!("/{kind}/{id}&{query}"),
    ]
    .into()
}

/// Whether an HTTP/2 client can send this as it is.
fn travels(protocol: Protocol, target: &str) -> bool {
    protocol == Protocol::Http1 || target.parse::<PathAndQuery>().is_ok_and(|parsed| parsed.as_str() == target)
}

// keeps P186, P188, P226, P227
#[tokio::test]
async fn an_altered_link_is_refused_and_changes_nothing() {
    let gateway = Gateway::start(&rules());
    let deposit = Deposit::create(&gateway, "altered", "10.50").await;
    let other = Deposit::create(&gateway, "other", "10.50").await;
    let before = (deposit.record(&gateway).await, books(&gateway, &ACME).await);
    for kind in KINDS {
        let link = deposit.link(kind);
        for protocol in PROTOCOLS {
            let good = visit(&gateway, protocol, &request("GET", &link)).await;
            assert!([200, 303].contains(&good.status), "{kind}: {good:?}");
            for altered in alterations(&link, &other.link(kind)) {
                assert_ne!(altered, link);
                if travels(protocol, &altered) {
                    let reply = visit(&gateway, protocol, &request("GET", &altered)).await;
                    assert_eq!(reply.status, 403, "{altered}");
                    assert_state(&page(&reply, 403), "refused");
                }
            }
        }
    }
    assert_eq!((deposit.record(&gateway).await, books(&gateway, &ACME).await), before);
}

/// A form that is sent to an altered link books nothing.
// keeps P188
#[tokio::test]
async fn a_form_on_an_altered_link_is_refused_and_books_nothing() {
    let gateway = Gateway::start(&rules());
    let deposit = Deposit::create(&gateway, "altered", "10.50").await;
    let other = Deposit::create(&gateway, "other", "10.50").await;
    let before = (deposit.record(&gateway).await, books(&gateway, &ACME).await);
    let altered = alterations(&deposit.link("sandbox"), &other.link("sandbox"));
    let below = altered.iter().filter(|altered| altered.starts_with("/sandbox/"));
    for altered in below {
        let reply = visit(&gateway, Protocol::Http1, &form(altered, "decision=pay")).await;
        assert_state(&page(&reply, 403), "refused");
    }
    assert_eq!((deposit.record(&gateway).await, books(&gateway, &ACME).await), before);
}

/// What is no path of a link, or no request at all, is answered as such, whatever its query says.
#[tokio::test]
async fn what_is_no_link_leads_nowhere() {
    let gateway = Gateway::start(&rules());
    let deposit = Deposit::create(&gateway, "nowhere", "10.50").await;
    let client = gateway.client();
    let (_, rest) = deposit.entry.split_once("/pay/").unwrap();
    let (_, query) = rest.split_once('?').unwrap();
    for elsewhere in
        ["/PAY/", "/Pay/", "//pay/", "/./pay/", "/x/../pay/", "/%70ay/", "/pay%2F", "/pays/", "/api/pay/", "/pay;/"]
    {
        client.send(&Request::new("GET", &format!("{elsewhere}{rest}"), "")).await.expect(404);
    }
    client.send(&Request::new("GET", &format!("/pay?{query}"), "")).await.expect(404);
    for left_over in ["#x", "\u{e9}", "\"", "<"] {
        let odd = Request::new("GET", &format!("{}{left_over}", deposit.entry), "");
        let reply = exchange(&client, Protocol::Http1, &odd).await;
        assert!([400, 403].contains(&reply.status), "{left_over:?}: {reply:?}");
    }
    deposit.assert_status(&gateway, "PENDING").await;
}

/// Nothing in a refusal tells whether an id exists, whose it is, or what was wrong with its link.
#[tokio::test]
async fn ids_cannot_be_probed() {
    let gateway = Gateway::start(&rules());
    let deposit = Deposit::create(&gateway, "probed", "10.50").await;
    let finished = Deposit::create(&gateway, "finished", "10.01").await;
    let withdrawal = withdrawal(&gateway, "withdrawal").await;
    let later = deposit.expires().to_string();
    let forged = format!("?expires={later}&signature={}", "0".repeat(64));
    for kind in KINDS {
        let refused = [
            format!("/{kind}/{}{forged}", deposit.id),
            format!("/{kind}/{}{forged}", finished.id),
            format!("/{kind}/{withdrawal}{forged}"),
            format!("/{kind}/123456789{forged}"),
            format!("/{kind}/nobody{forged}"),
            // Signed by whoever knows the secret: no such link was ever issued.
            signed(kind, "123456789", &later),
            signed(kind, "9223372036854775807", &later),
            signed(kind, "99999999999999999999", &later),
            signed(kind, "nobody", &later),
            signed(kind, "", &later),
            signed(kind, &withdrawal, &later),
            signed(kind, &deposit.id, "1"),
            signed(kind, &deposit.id, "-1"),
            signed(kind, &deposit.id, ""),
            signed(kind, &finished.id, "1"),
        ];
        for protocol in PROTOCOLS {
            for method in ["GET", "HEAD"] {
                let mut first = None;
                for link in &refused {
                    let request = request(method, link).header("X-Request-Id", "the-same");
                    let reply = visit(&gateway, protocol, &request).await.expect(403);
                    assert_same(first.get_or_insert(reply.clone()), &reply);
                }
            }
        }
    }
}
