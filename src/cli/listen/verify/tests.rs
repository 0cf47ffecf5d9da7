use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::Mac as _;
use http::{HeaderValue, Request};

use super::*;
use crate::domain::{Secret, UnixMillis};
use crate::rules::{LoadOptions, load};

const NOW: UnixMillis = UnixMillis(1_780_000_000_500);
const BODY: &str = r#"{"order_id":"o-1"}"#;
const V1_BODY: &str = r#"{"external_id":"o-1","status":"SUCCESS"}"#;

fn rules() -> RuleSet {
    let directory = tempfile::tempdir().unwrap();
    let routes = "[routes]\npayin = \"POST /odd/in\"\npayout = \"POST /odd/out\"\npayin_status = \"GET /odd/in\"\n\
                  payout_status = \"GET /odd/out\"\nbalance = \"GET /odd/b\"\ntransactions = \"GET /odd/t\"";
    let files = [
        ("gateway.toml", String::new()),
        (
            "dialects/odd.toml",
            format!(
                "[signature]\napi_key = \"X-Odd-Key\"\nsignature = \"X-Odd-Mark\"\ntimestamp = \"X-Odd-Time\"\n\
                 payload = \"{{target}}|{{body_sha256}}|{{timestamp}}\"\nencoding = \"base64\"\n{routes}"
            ),
        ),
        (
            "merchants/acme.toml",
            "[[api_keys]]\nkey = \"live\"\nv1_secret = \"v1-secret\"\nv2_secret = [\"v2-secret\", \"old-secret\"]\n\
             [[api_keys]]\nkey = \"only-v2\"\nv2_secret = \"only-v2-secret\""
                .to_owned(),
        ),
        (
            "merchants/odd.toml",
            "[[api_keys]]\nkey = \"odd\"\nv1_secret = \"odd-v1\"\nv2_secret = \"odd-v2\"\n[v1]\ndialect = \"odd\""
                .to_owned(),
        ),
    ];
    for (name, text) in files {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    load(directory.path(), NOW, None, LoadOptions::default()).unwrap()
}

fn mac(secret: &str, message: &str) -> Vec<u8> {
    let mut mac = Secret::new(secret.as_bytes()).sha256();
    mac.update(message.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

fn hex(secret: &str, message: &str) -> String {
    ::hex::encode(mac(secret, message))
}

fn base64(secret: &str, message: &str) -> String {
    STANDARD.encode(mac(secret, message))
}

fn received(body: &str, headers: &[(&'static str, &str)]) -> Received {
    let mut request = Request::post("/cb").body(Bytes::copy_from_slice(body.as_bytes())).unwrap();
    for (name, value) in headers {
        let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
        request.headers_mut().append(HeaderName::from_static(name), value);
    }
    Received { at: NOW, request }
}

fn webhook_headers(signature: &str) -> Vec<(&'static str, &str)> {
    vec![
        ("x-callback-id", "cb_1"),
        ("webhook-id", "cb_1"),
        ("webhook-timestamp", "1780000000"),
        ("webhook-signature", signature),
    ]
}

/// Returns the verdicts in order, in short form: `live@acme`, a reason, or `-`.
fn verdicts(rules: &RuleSet, received: &Received) -> Vec<String> {
    let short = |(_, verdict): (HeaderName, Verdict)| match verdict {
        Ok(Some(signer)) => format!("{}@{}", signer.key, signer.merchant),
        Ok(None) => "-".to_owned(),
        Err(reason) => reason,
    };
    check(rules, received).signatures.into_iter().map(short).collect()
}

#[test]
fn signatures_of_other_programs_verify() {
    let rules = rules();
    // Computed with Python's hmac.
    let v2 = "643b38509eaf1015025054f35cfb233558bfbfbd9faf8610c444b59319e36c6c";
    let webhook = "v1,+KASt1b8T1HpGxUISp81RmJuCE7zlhY2kxhYWA9MyLg=";
    let mut headers = webhook_headers(webhook);
    headers.push(("x-signature", v2));
    assert_eq!(verdicts(&rules, &received(BODY, &headers)), ["live@acme", "live@acme"]);
    let v1 = "8d64fc1008f63dc155224ad6f6408cba32e3d77338bc305bfa2274867e9d55fc";
    let v1 = received(V1_BODY, &[("x-api-key", "live"), ("x-timestamp", "1780000000"), ("x-signature", v1)]);
    assert_eq!(verdicts(&rules, &v1), ["live@acme"]);
    assert_eq!(check(&rules, &v1).style, "v1");
}

#[test]
fn wrong_v2_signatures_are_explained() {
    let rules = rules();
    let right = hex("v2-secret", BODY);
    let spaced = hex("v2-secret", r#"{"order_id": "o-1"}"#);
    let with_line_end = hex("v2-secret", "{\"order_id\":\"o-1\"}\n");
    for (signature, expected) in [
        (right.clone(), "live@acme"),
        (hex("old-secret", BODY), "live@acme"),
        (hex("only-v2-secret", BODY), "only-v2@acme"),
        (right.to_uppercase(), "no signature: v2 takes 64 lowercase"),
        (base64("v2-secret", BODY), "no signature: v2 takes 64 lowercase"),
        (format!("v1={right}"), "no signature: v2 takes 64"),
        (spaced, "another secret, or the content was changed"),
        (with_line_end, "another secret, or the content was changed"),
        (hex("v1-secret", BODY), "made with a v1_secret"),
        (hex("else", BODY), "another secret, or the content was changed"),
        (hex("v2-secret", "{}"), "another secret, or the content was changed"),
        (String::new(), "no signature"),
        ("\u{e9}".to_owned(), "more than visible ASCII"),
    ] {
        let found = verdicts(&rules, &received(BODY, &[("x-signature", &signature)]));
        assert!(found[0].contains(expected), "{signature}: {found:?}");
        assert_eq!(found[1], "-");
        assert!(!found[0].contains("-secret") && (signature.is_empty() || !found[0].contains(&signature)), "{found:?}");
    }
    let twice = received(BODY, &[("x-signature", &right), ("x-signature", &right)]);
    assert_eq!(verdicts(&rules, &twice)[0], "x-signature is sent more than once");
    assert_eq!(verdicts(&rules, &received(BODY, &[])), ["-", "-"]);
}

#[test]
fn wrong_webhook_signatures_are_explained() {
    let rules = rules();
    let right = base64("v2-secret", &format!("cb_1.1780000000.{BODY}"));
    let of = |message: &str| format!("v1,{}", base64("v2-secret", message));
    let v1 = format!("v1,{right}");
    for (signature, expected) in [
        (v1.clone(), "live@acme"),
        (format!("v1a,AAAA {} {v1} v2,x", of("else")), "live@acme"),
        (right.clone(), "no signature of version 1"),
        (format!("v2,{right}"), "no signature of version 1"),
        ("v1,AAAA".to_owned(), "no signature of version 1"),
        (of("cb_1.1780000000.{\"order_id\": \"o-1\"}"), "another secret, or the content"),
        (of(BODY), "another secret, or the content"),
        (of(&format!("cb_2.1780000000.{BODY}")), "another secret, or the content"),
        (of(&format!("cb_1.1780000001.{BODY}")), "another secret, or the content"),
        (format!("v1,{}", base64("v1-secret", &format!("cb_1.1780000000.{BODY}"))), "made with a v1_secret"),
    ] {
        let found = verdicts(&rules, &received(BODY, &webhook_headers(&signature)));
        assert_eq!(found[0], "-");
        assert!(found[1].contains(expected), "{signature}: {found:?}");
    }
}

#[test]
fn a_webhook_must_be_recent() {
    let rules = rules();
    let far = "the signature is correct, but webhook-timestamp is not a time in seconds within 5 minutes of now";
    for (timestamp, expected) in [
        ("1780000300", "live@acme"),
        ("1779999700", "live@acme"),
        ("1780000301", far),
        ("1779999699", far),
        ("1780000000500", far),
        ("2026-05-28T20:26:40Z", far),
        ("+1780000000", far),
        ("", far),
    ] {
        let signature = format!("v1,{}", base64("v2-secret", &format!("cb_1.{timestamp}.{BODY}")));
        let mut headers = webhook_headers(&signature);
        headers[2].1 = timestamp;
        assert_eq!(verdicts(&rules, &received(BODY, &headers))[1], expected, "{timestamp}");
    }
    let signature = format!("v1,{}", base64("v2-secret", &format!("cb_1.1780000000.{BODY}")));
    for (left_out, expected) in [(1, "webhook-id is missing"), (2, "webhook-timestamp"), (3, "webhook-signature")] {
        let mut headers = webhook_headers(&signature);
        headers.remove(left_out);
        let found = verdicts(&rules, &received(BODY, &headers));
        assert!(found[1].starts_with(expected) && found[1].ends_with("is missing"), "{found:?}");
    }
}

#[test]
fn wrong_v1_signatures_are_explained() {
    let rules = rules();
    let signed = |secret: &str, body: &str| hex(secret, &format!("1780000000.POST./cb.{body}"));
    let right = signed("v1-secret", V1_BODY);
    let spaced = signed("v1-secret", r#"{"external_id": "o-1", "status": "SUCCESS"}"#);
    let late = hex("v1-secret", &format!("1779999699.POST./cb.{V1_BODY}"));
    for (key, timestamp, signature, expected) in [
        ("live", "1780000000", right.clone(), "live@acme"),
        ("live", "1780000000", right.to_uppercase(), "live@acme"),
        ("else", "1780000000", right.clone(), "x-api-key names no API key of the rules"),
        // The key's dialect uses another header for it.
        ("odd", "1780000000", right.clone(), "x-api-key names no API key of the rules"),
        ("only-v2", "1780000000", right.clone(), "the API key has no v1_secret"),
        (
            "live",
            "1779999699",
            late,
            "the signature is correct, but x-timestamp is malformed or not within 300 s of now",
        ),
        ("live", "1780000000", spaced, "gives another signature for this method, path, timestamp and body"),
        ("live", "1780000000", signed("v2-secret", V1_BODY), "made with the v2_secret"),
        ("live", "1780000001", right.clone(), "gives another signature for this method, path, timestamp and body"),
        ("live", "1780000000", hex("v1-secret", V1_BODY), "by the recipe of dialect v1 (key live, merchant acme)"),
        ("live", "1780000000", String::new(), "gives another signature"),
    ] {
        let headers = [("x-api-key", key), ("x-timestamp", timestamp), ("x-signature", &signature)];
        let found = verdicts(&rules, &received(V1_BODY, &headers));
        assert!(found.len() == 1 && found[0].contains(expected), "{key} {timestamp} {signature}: {found:?}");
    }
    let unsigned = received(V1_BODY, &[("x-api-key", "live"), ("x-timestamp", "1780000000")]);
    assert_eq!(verdicts(&rules, &unsigned), ["-"]);
    let timeless = received(V1_BODY, &[("x-api-key", "live"), ("x-signature", &right)]);
    assert_eq!(verdicts(&rules, &timeless), ["x-timestamp is missing"]);
}

#[test]
fn a_dialect_is_found_by_its_own_headers() {
    let rules = rules();
    let digest = {
        use sha2::Digest as _;
        ::hex::encode(sha2::Sha256::digest(V1_BODY.as_bytes()))
    };
    let signature = base64("odd-v1", &format!("/cb?shop=1|{digest}|1780000000"));
    let headers = [("x-odd-key", "odd"), ("x-odd-time", "1780000000"), ("x-odd-mark", signature.as_str())];
    let mut right = received(V1_BODY, &headers);
    *right.request.uri_mut() = "/cb?shop=1".parse().unwrap();
    assert_eq!(verdicts(&rules, &right), ["odd@odd"]);
    assert!(verdicts(&rules, &received(V1_BODY, &headers))[0].contains("recipe of dialect odd"));
}
