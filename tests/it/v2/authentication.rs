//! The headers of every request, what the signature covers, and the query.

use crate::support::bodies::with;
use crate::support::request::{ACME, ACME_NOWHERE, ACME_V2, BETA, hmac_hex, unix_now};
use crate::support::stored::Create;
use crate::support::{Request, payin, payout, text};
use crate::v2::KINDS;
use crate::v2::table::Table;

/// A create with this signature in place of the right one.
fn signed_with(kind: Create, id: &str, signature: Option<&str>) -> Request {
    kind.request(&ACME, kind.body(id).to_string()).replace("X-Signature", signature)
}

// keeps P195, P196, P197, P199, D001
#[tokio::test]
async fn a_signature_is_the_lowercase_hmac_of_the_bytes_sent() {
    let mut table = Table::new();
    let secret = ACME.v2.unwrap();
    for kind in KINDS {
        let id = table.order();
        let body = kind.body(&id).to_string();
        let right = hmac_hex(secret, body.as_bytes());
        let wrong = [
            None,
            Some(String::new()),
            Some(right.to_uppercase()),
            Some(format!("{}{}", &right[..63], right[63..].to_uppercase().replace(|c: char| c.is_ascii_digit(), "A"))),
            Some(right[..63].to_owned()),
            Some(right[..62].to_owned()),
            Some(format!("{right}0")),
            Some(format!("{right}00")),
            Some(format!("{right},{right}")),
            Some(format!("sha256={right}")),
            Some(format!("0x{right}")),
            Some(format!("v1,{right}")),
            Some(right.replacen(|_: char| true, "g", 1)),
            Some("0".repeat(64)),
            Some("é".repeat(32)),
            Some(hmac_hex(secret, b"")),
            Some(hmac_hex(secret, with(kind.body(&id), "amount", Some(1.into())).to_string().as_bytes())),
            Some(hmac_hex(secret, serde_json::to_string_pretty(&kind.body(&id)).unwrap().as_bytes())),
            Some(hmac_hex(secret, format!("{body}\n").as_bytes())),
            Some(hmac_hex(secret, format!("POST{}{body}", kind.path()).as_bytes())),
            Some(hmac_hex(secret, format!("{}.{body}", unix_now()).as_bytes())),
            Some(hmac_hex(ACME.v1.unwrap(), body.as_bytes())),
            Some(hmac_hex(BETA.v2.unwrap(), body.as_bytes())),
            Some(hmac_hex(ACME_V2.v2.unwrap(), body.as_bytes())),
            Some(hmac_hex("", body.as_bytes())),
            Some(hmac_hex(ACME.name, body.as_bytes())),
        ];
        for signature in wrong.iter().map(Option::as_deref) {
            let reply = table.send(&signed_with(kind, &id, signature)).await;
            assert_eq!(reply.status, 401, "{signature:?}: {}", reply.text());
        }
        let twice = signed_with(kind, &id, Some(&right)).header("X-Signature", &right);
        assert!([400, 401].contains(&table.send(&twice).await.status), "a repeated header is refused");
        table.assert_nothing_stored(kind, &id).await;
        // A different layout is another body, signed on its own.
        let id = table.order();
        let pretty = serde_json::to_string_pretty(&kind.body(&id)).unwrap();
        table.take(kind, &pretty, None).await;
    }
}

// keeps P168, P169, P195, P200
#[tokio::test]
async fn a_get_signs_the_empty_string_and_has_no_body() {
    let mut table = Table::new();
    let id = table.order();
    let record = table.take(Create::Deposit, &Create::Deposit.body(&id).to_string(), None).await;
    let id = text(&record, "transaction_id");
    let good = Request::status(&ACME, id);
    let target = good.target.clone();
    assert_eq!(good.value("X-Signature"), Some(&*hmac_hex(ACME.v2.unwrap(), b"")));
    assert_eq!(good.headers.len(), 2, "the key and the signature are enough");
    table.send(&good).await.expect(200);
    for payload in [target.as_str(), id, "GET", "{}", " ", "\n", "\0"] {
        let signature = hmac_hex(ACME.v2.unwrap(), payload.as_bytes());
        table.send(&good.clone().replace("X-Signature", Some(&signature))).await.expect(401);
    }
    table
        .send(&good.clone().replace("X-Signature", Some(&good.value("X-Signature").unwrap().to_uppercase())))
        .await
        .expect(401);
    for name in ["X-Signature", "X-Api-Key"] {
        table.send(&good.clone().replace(name, None)).await.expect(401);
    }
    let framed = [&good.head("Content-Length: 2\r\n")[..], b"{}"].concat();
    let replies = table.gateway.client().raw(&framed).await;
    assert_eq!(replies[0].status, 400, "{replies:?}");
}

// keeps P015, P192, P193, P194, D001
#[tokio::test]
async fn a_key_is_known_and_enabled_for_v2() {
    let mut table = Table::new();
    for kind in KINDS {
        let id = table.order();
        let good = kind.request(&ACME, kind.body(&id).to_string());
        for key in [None, Some(""), Some("acme"), Some("ACME-LIVE"), Some("acme-live2"), Some("beta-live"), Some("*")] {
            let reply = table.send(&good.clone().replace("X-Api-Key", key)).await;
            assert_eq!(reply.status, 401, "{key:?}: {}", reply.text());
        }
        // v1's signature does not open v2.
        let v1 = Request::v1_post(&ACME, kind.path(), kind.body(&id).to_string());
        table.send(&v1).await.expect(401);
        table.assert_nothing_stored(kind, &id).await;
        // Header names are compared without case.
        let id = table.order();
        let mut shouted = kind.request(&ACME, kind.body(&id).to_string());
        for (name, _) in &mut shouted.headers {
            *name = name.to_uppercase();
        }
        table.send(&shouted).await.expect(200);
        let id = table.order();
        let mut whispered = kind.request(&ACME, kind.body(&id).to_string());
        for (name, _) in &mut whispered.headers {
            *name = name.to_lowercase();
        }
        table.send(&whispered).await.expect(200);
    }
}

// keeps P092, P204, D002
#[tokio::test]
async fn an_address_that_is_not_on_the_list_is_403_whatever_the_body_says() {
    let mut table = Table::new();
    let id = table.order();
    for kind in KINDS {
        // An address that is on the key's list, as the customer's.
        let body = with(kind.body(&id), "fields.merchant_user_ip", Some("203.0.113.9".into())).to_string();
        let mut request = kind.request(&ACME_NOWHERE, body);
        table.send(&request).await.expect(403);
        request = request.header("X-Forwarded-For", "203.0.113.9").header("X-Real-IP", "203.0.113.9");
        table.send(&request).await.expect(403);
        table.assert_nothing_stored(kind, &id).await;
        // And the other way round: an address that no key allows is a customer's all the same.
        let id = table.order();
        let body = with(kind.body(&id), "fields.merchant_user_ip", Some("192.0.2.66".into())).to_string();
        table.take(kind, &body, None).await;
    }
    table.send(&Request::status(&ACME_NOWHERE, "1")).await.expect(403);
}

// keeps P201, P202, P203, P261
#[tokio::test]
async fn no_other_header_matters() {
    let mut table = Table::new();
    for kind in KINDS {
        let id = table.order();
        let good = kind.request(&ACME, kind.body(&id).to_string());
        assert_eq!(good.headers.len(), 3, "the key, the signature and the content type are enough");
        let first = table.send(&good).await.expect(200);
        for (name, value) in [
            ("X-Timestamp", "0"),
            ("X-Timestamp", "yesterday"),
            ("X-Request-Id", "mine"),
            ("X-Request-Id", ""),
            ("Accept", "text/html"),
        ] {
            assert_eq!(table.send(&good.clone().header(name, value)).await.expect(200).text(), first.text());
        }
        // The signature covers the body alone: the same headers create the other kind's first error.
        let mut other = good.clone();
        other.target =
            if kind == Create::Deposit { Create::Withdrawal.path() } else { Create::Deposit.path() }.to_owned();
        table.send(&other).await.expect(400);
    }
}

// keeps P198
#[tokio::test]
async fn a_post_is_application_json() {
    let mut table = Table::new();
    for kind in KINDS {
        let id = table.order();
        let good = kind.request(&ACME, kind.body(&id).to_string());
        for bad in [
            None,
            Some(""),
            Some("text/json"),
            Some("text/plain"),
            Some("application/jsonp"),
            Some("application/json2"),
            Some("application/ld+json"),
            Some("application/x-www-form-urlencoded"),
            Some("multipart/form-data; boundary=json"),
            Some("json"),
            Some("*/*"),
            Some("application/json, text/plain"),
            Some("text/plain; application/json"),
        ] {
            let reply = table.send(&good.clone().replace("Content-Type", bad)).await;
            assert_eq!(reply.status, 415, "{bad:?}: {}", reply.text());
        }
        table.assert_nothing_stored(kind, &id).await;
        for taken in [
            "application/json",
            "APPLICATION/JSON",
            "Application/Json; Charset=UTF-8",
            "application/json;charset=utf-8",
            "application/json ; charset=\"utf-8\"",
        ] {
            let id = table.order();
            let request = kind.request(&ACME, kind.body(&id).to_string()).replace("Content-Type", Some(taken));
            table.send(&request).await.expect(200);
        }
    }
}

// keeps P104, P151, P211
#[tokio::test]
async fn a_post_takes_no_query_and_a_get_ignores_it() {
    let mut table = Table::new();
    for kind in KINDS {
        let id = table.order();
        for query in
            ["?", "?x", "?x=1", "?amount=10.5", "?order_id=other", "?&", "?%", "?shop_code=card-eur", "?a=b&a=b"]
        {
            let mut request = kind.request(&ACME, kind.body(&id).to_string());
            request.target += query;
            let reply = table.send(&request).await;
            assert_eq!(reply.status, 400, "{query}: {}", reply.text());
            table.assert_nothing_stored(kind, &id).await;
        }
    }
    let id = table.order();
    let record = table.take(Create::Deposit, &Create::Deposit.body(&id).to_string(), None).await;
    // keeps P170, P171
    let status = Request::status(&ACME, text(&record, "transaction_id"));
    let plain = table.send(&status).await.expect(200).text();
    for query in [
        "?",
        "?shop_code=card-eur",
        "?shop_code=nowhere",
        "?shop_code=a&shop_code=b",
        "?order_id=x",
        "?%zz",
        "?transaction_id=1",
    ] {
        let mut request = status.clone();
        request.target += query;
        assert_eq!(table.send(&request).await.expect(200).text(), plain, "{query}");
    }
}

// keeps P005
#[tokio::test]
async fn plain_http_is_not_served() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut table = Table::new();
    let id = table.order();
    let mut socket = tokio::net::TcpStream::connect(table.gateway.public).await.unwrap();
    socket.write_all(&Create::Deposit.request(&ACME, Create::Deposit.body(&id).to_string()).bytes()).await.unwrap();
    let mut reply = Vec::new();
    let _ = socket.read_to_end(&mut reply).await;
    assert!(reply.is_empty() || reply.starts_with(b"HTTP/1.1 400 "), "{}", String::from_utf8_lossy(&reply));
    table.assert_nothing_stored(Create::Deposit, &id).await;
}

// keeps P016, P257, P259, P260, P261
#[tokio::test]
async fn neither_interface_takes_the_others_body() {
    let mut table = Table::new();
    for (v1, v2) in [(Create::Payin, Create::Deposit), (Create::Payout, Create::Withdrawal)] {
        let id = table.order();
        let v1_body = if v1 == Create::Payin { payin(&id) } else { payout(&id) };
        table.send(&v2.request(&ACME, v1_body.to_string())).await.expect(400);
        table.send(&v1.request(&ACME, v2.body(&id).to_string())).await.expect(400);
        table.assert_nothing_stored(v2, &id).await;
        // v1 remains available beside v2.
        let id = table.order();
        table.send(&v1.request(&ACME, v1.body(&id).to_string())).await.expect(200);
    }
}

/// Paths of v2, and what a signed GET and POST of them answer.
const PATHS: &[(&str, u16, u16)] = &[
    // keeps P004, P045, P105, P106, P109, P110, P111, P279
    ("/api/v2", 404, 404),
    ("/api/v2/", 404, 404),
    ("/api/v2/deposits", 405, 400),
    ("/api/v2/withdrawals", 405, 400),
    ("/api/v2/deposits/", 404, 404),
    ("/api/v2/deposits/1", 404, 404),
    ("/api/v2/Deposits", 404, 404),
    ("/api/v2//deposits", 404, 404),
    ("/api/v3/deposits", 404, 404),
    ("/deposits", 404, 404),
    ("/api/v2/transactions", 404, 404),
    ("/api/v2/transactions/", 404, 405),
    ("/api/v2/transactions/1", 404, 405),
    ("/api/v2/transactions/1/", 404, 404),
    ("/api/v2/balance", 404, 404),
    ("/api/v2/balances", 404, 404),
    ("/api/v2/history", 404, 404),
    ("/api/v2/shops", 404, 404),
    ("/api/v2/shops/card-eur", 404, 404),
    ("/api/v2/shops/card-eur/fields", 404, 404),
    ("/api/v2/schema", 404, 404),
    ("/api/v2/schemas/card-eur", 404, 404),
    ("/api/v2/orders/row-1", 404, 404),
];

// keeps P004, P045, P105, P106, P109, P110, P111, P167, P279
#[tokio::test]
async fn there_are_three_operations_and_no_more() {
    let mut table = Table::new();
    for (path, get, post) in PATHS {
        let reply = table.send(&Request::v2_get(&ACME, path)).await;
        assert_eq!(reply.status, *get, "GET {path}: {}", reply.text());
        let reply = table.send(&Request::v2_post(&ACME, path, "{}")).await;
        assert_eq!(reply.status, *post, "POST {path}: {}", reply.text());
    }
    table.take(Create::Deposit, &Create::Deposit.body("123456").to_string(), None).await;
    table.send(&Request::status(&ACME, "123456")).await.expect(404);
    for target in ["/api/v2/transactions?order_id=123456", "/api/v2/deposits?order_id=123456"] {
        let status = table.send(&Request::v2_get(&ACME, target)).await.status;
        assert!([404, 405].contains(&status), "{target}: {status}");
    }
}
