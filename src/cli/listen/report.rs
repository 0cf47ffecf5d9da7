//! Formats a callback as text for people, or as one JSON object per line. Secrets and signatures are not shown, and
//! control characters from the sender are escaped.

use http::{HeaderName, header};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::exchange::{ListenAnswer, Received};
use super::verify::{Verdict, VerifyFindings, VerifySigner};
use crate::cli::columns::plain;
use crate::cli::sign::shown;

const CALLBACK_ID: HeaderName = HeaderName::from_static("x-callback-id");
const SAMPLE: HeaderName = HeaderName::from_static("x-callback-sample");

/// Formats a callback as several lines and an empty one.
pub(super) fn text(number: u64, received: &Received, findings: &VerifyFindings, answer: ListenAnswer) -> String {
    let (method, target) = (received.request.method(), target(received));
    let mut lines = vec![format!("{} #{number} {method} {}", time(received), plain(&target))];
    let mut line = |name: &HeaderName, value: &str| {
        // Standard Webhooks spells its names in lowercase.
        let name = if name.as_str().starts_with("webhook-") { name.to_string() } else { shown(name) };
        lines.push(format!("  {name:<20} {}", plain(value)));
    };
    for (name, value) in headers(received, findings) {
        line(&name, &value);
    }
    for (header, verdict) in &findings.signatures {
        let stated = match verdict {
            Ok(Some(VerifySigner { merchant, key })) => format!("verified: key {key}, merchant {merchant}"),
            Ok(None) => "missing".to_owned(),
            Err(reason) => format!("WRONG: {reason}"),
        };
        line(header, &stated);
    }
    let body = String::from_utf8_lossy(received.request.body());
    let body = if body.is_empty() { "(no body)".into() } else { body };
    lines.extend(body.lines().map(|line| format!("  {}", plain(line))));
    lines.push(format!("  -> {answer}\n\n"));
    lines.join("\n")
}

/// Formats a callback as one line of JSON.
pub(super) fn json(number: u64, received: &Received, findings: &VerifyFindings, answer: ListenAnswer) -> String {
    let headers = headers(received, findings);
    let sent = |wanted: HeaderName| headers.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value);
    let signature = |(header, verdict): &(HeaderName, Verdict)| -> Value {
        let header = header.as_str();
        match verdict {
            Ok(Some(VerifySigner { merchant, key })) => {
                json!({ "header": header, "result": "verified", "merchant": merchant, "key": key })
            }
            Ok(None) => json!({ "header": header, "result": "missing" }),
            Err(reason) => json!({ "header": header, "result": "wrong", "reason": reason }),
        }
    };
    let line = json!({
        "received_at": time(received),
        "number": number,
        "method": received.request.method().as_str(),
        "target": target(received),
        "style": findings.style,
        "callback_id": sent(CALLBACK_ID),
        "sample": sent(SAMPLE).is_some_and(|value| value == "true"),
        "headers": headers.iter().map(|(name, value)| (name.as_str(), value)).collect::<Vec<_>>(),
        "signatures": findings.signatures.iter().map(signature).collect::<Vec<_>>(),
        "body": String::from_utf8_lossy(received.request.body()),
        "answer": answer.to_string(),
    });
    format!("{line}\n")
}

/// Returns names and values of the relevant headers, without signatures.
fn headers(received: &Received, findings: &VerifyFindings) -> Vec<(HeaderName, String)> {
    let own = [CALLBACK_ID, SAMPLE].into_iter().chain(findings.covered.iter().cloned());
    let names = own.chain([header::CONTENT_TYPE, header::USER_AGENT]);
    // A dialect may use any header name, also one of these, for its signature.
    let names = names.filter(|name| findings.signatures.iter().all(|(signature, _)| signature != name));
    let values = names.flat_map(|name| {
        let values = received.request.headers().get_all(&name).iter();
        let texts = values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        texts.map(|text| (name.clone(), text)).collect::<Vec<_>>()
    });
    values.collect()
}

fn target(received: &Received) -> String {
    let uri = received.request.uri();
    uri.path_and_query().map_or_else(|| uri.path().to_owned(), ToString::to_string)
}

fn time(received: &Received) -> String {
    let time = Timestamp::from_millisecond(received.at.0).unwrap_or(Timestamp::UNIX_EPOCH);
    format!("{time:.3}")
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::Request;

    use super::*;
    use crate::domain::UnixMillis;

    const HEADERS: &[(&str, &str)] = &[
        ("x-callback-id", "cb_1"),
        ("webhook-id", "cb_1"),
        ("webhook-timestamp", "1779999997"),
        ("x-signature", "c0ffee"),
        ("webhook-signature", "v1,c0ffee"),
        ("content-type", "application/json"),
        ("authorization", "Bearer c0ffee"),
    ];

    fn received(body: &'static [u8], headers: &[(&str, &str)]) -> Received {
        let mut request = Request::post("/cb?a=%1b");
        for (name, value) in headers {
            request = request.header(*name, value.as_bytes());
        }
        let request = request.body(Bytes::from_static(body)).unwrap();
        Received { at: UnixMillis(1_780_000_000_500), request }
    }

    fn findings() -> VerifyFindings {
        let signer = VerifySigner { merchant: "acme".to_owned(), key: "live".to_owned() };
        VerifyFindings {
            style: "v2",
            covered: vec![HeaderName::from_static("webhook-id"), HeaderName::from_static("webhook-timestamp")],
            signatures: vec![
                (HeaderName::from_static("x-signature"), Ok(Some(signer))),
                (HeaderName::from_static("webhook-signature"), Err("it is old".to_owned())),
            ],
        }
    }

    #[test]
    fn text_shows_the_relevant_headers() {
        let received = received(br#"{"order_id":"o-1"}"#, HEADERS);
        assert_eq!(
            text(3, &received, &findings(), ListenAnswer::Timeout),
            "2026-05-28T20:26:40.500Z #3 POST /cb?a=%1b\n\
             \x20 X-Callback-Id        cb_1\n\
             \x20 webhook-id           cb_1\n\
             \x20 webhook-timestamp    1779999997\n\
             \x20 Content-Type         application/json\n\
             \x20 X-Signature          verified: key live, merchant acme\n\
             \x20 webhook-signature    WRONG: it is old\n\
             \x20 {\"order_id\":\"o-1\"}\n\
             \x20 -> timeout\n\n"
        );
    }

    #[test]
    fn json_is_one_object_per_line() {
        let line = json(3, &received(b"{\n\"order_id\":\"o-1\"}", HEADERS), &findings(), "500".parse().unwrap());
        assert_eq!(line.matches('\n').count(), 1, "{line}");
        let value: Value = serde_json::from_str(&line).unwrap();
        assert_eq!((&value["callback_id"], &value["style"]), (&"cb_1".into(), &"v2".into()));
        assert_eq!((&value["body"], &value["answer"]), (&"{\n\"order_id\":\"o-1\"}".into(), &"500".into()));
        let verified = json!({"header":"x-signature","result":"verified","merchant":"acme","key":"live"});
        assert_eq!(value["signatures"][0], verified);
        let wrong = json!({"header":"webhook-signature","result":"wrong","reason":"it is old"});
        assert_eq!(value["signatures"][1], wrong);
        assert!(!line.contains("c0ffee"), "{line}");
    }

    #[test]
    fn control_characters_are_escaped() {
        let headers = [("x-callback-id", "\u{9b}2J"), ("x-callback-sample", "true"), ("user-agent", "\u{e9}\u{202e}")];
        for body in ["{\"order_id\":\"\u{9b}2J\u{202e}\u{7f}\"}", "\x1b[2Jno json\x07", "a\rb", ""] {
            let received = received(body.as_bytes(), &headers);
            let text = text(1, &received, &findings(), ListenAnswer::Timeout);
            let moves = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
            assert!(!text.chars().any(moves), "{text:?}");
            assert!(text.contains("  X-Callback-Sample    true\n"), "{text}");
            let line = json(1, &received, &findings(), ListenAnswer::Timeout);
            assert!(line.matches('\n').count() == 1 && line.contains(r#""sample":true"#), "{line}");
        }
    }
}
