//! Callbacks verify with the public libraries of Standard Webhooks, and with the examples of docs/callbacks.md.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::Sha256;

use crate::callbacks::{create, path, quick, withdrawal};
use crate::support::receiver::{Play, Received, Receiver};
use crate::support::request::{ACME, ACME_V2, GAMMA, Key};
use crate::support::tools::{self, root};
use crate::support::{self, Gateway, Request, text};

const INSTALLER: &str = ".ci/run callbacks";

/// Where a case has its signature.
const SIGNATURE: &str = "/headers/webhook-signature";

/// What verifies, and the environment that it needs.
struct Verifier {
    program: PathBuf,
    script: &'static str,
}

/// What was said of a callback: the order's name or the callback's id, or why it was refused.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Said {
    library: String,
    by_hand: String,
}

impl Verifier {
    fn python() -> Option<Self> {
        let program = tools::installed("target/callbacks/python/bin/python", "standardwebhooks for Python", INSTALLER)?;
        Some(Self { program, script: "tests/it/callbacks/python/check.py" })
    }

    fn node() -> Option<Self> {
        let module = "target/callbacks/node/node_modules/standardwebhooks/package.json";
        tools::installed(module, "standardwebhooks for Node", INSTALLER)?;
        Some(Self { program: tools::in_path("node", INSTALLER)?, script: "tests/it/callbacks/node/check.mjs" })
    }

    #[track_caller]
    fn verify(&self, cases: &[Value]) -> Vec<Said> {
        let directory = tempfile::tempdir().unwrap();
        let input = directory.path().join("cases");
        let lines: Vec<_> = cases.iter().map(Value::to_string).collect();
        std::fs::write(&input, lines.join("\n")).unwrap();
        let mut command = Command::new(&self.program);
        command
            .arg(root().join(self.script))
            .stdin(std::fs::File::open(input).unwrap())
            .env("EXAMPLES", root().join("examples/callbacks"))
            .env("MODULES", root().join("target/callbacks/node"))
            .env("PYTHONDONTWRITEBYTECODE", "1");
        let printed = tools::output(&mut command, Duration::from_mins(1));
        let stated: Vec<Said> = printed.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
        assert_eq!(stated.len(), cases.len(), "{printed}");
        stated
    }
}

/// A callback as a verifier reads it.
fn case(received: &Received, secret: &str) -> Value {
    let headers: Value = received
        .headers
        .iter()
        .cloned()
        .map(|(name, value)| (name, json!(value)))
        .collect::<serde_json::Map<_, _>>()
        .into();
    json!({ "secret": secret, "headers": headers, "body": String::from_utf8(received.body.clone()).unwrap() })
}

/// Signs a case anew.
fn sign(case: &mut Value) {
    let (headers, body) = (&case["headers"], text(case, "body"));
    let payload = format!("{}.{}.{body}", text(headers, "webhook-id"), text(headers, "webhook-timestamp"));
    let mut mac = Hmac::<Sha256>::new_from_slice(text(case, "secret").as_bytes()).unwrap();
    mac.update(payload.as_bytes());
    *case.pointer_mut(SIGNATURE).unwrap() =
        format!("v1,{}", BASE64_STANDARD.encode(mac.finalize().into_bytes())).into();
}

/// Callbacks of several keys, each tried twice.
async fn callbacks(gateway: &Gateway, receiver: &Receiver) -> Vec<(Received, Key)> {
    let mut all = Vec::new();
    for (key, order_id) in [(ACME, "one"), (ACME_V2, "two"), (ACME, "ä ☃ \"🧾\"")] {
        let target = path(key.name) + &all.len().to_string();
        let body = support::bodies::with(
            withdrawal(receiver, order_id, "7.25"),
            "callback_url",
            Some(receiver.url(&target).into()),
        );
        create(gateway, &Request::withdrawal(&key, &body)).await;
        all.extend(receiver.got(&target, 2).await.into_iter().map(|received| (received, key)));
    }
    let body =
        support::bodies::with(support::payout("three"), "callback_url", Some(receiver.url(&path("three")).into()));
    create(gateway, &Request::payout(&GAMMA, &body)).await;
    all.extend(receiver.got(&path("three"), 2).await.into_iter().map(|received| (received, GAMMA)));
    all
}

async fn verified_by(verifier: Option<Verifier>) {
    let Some(verifier) = verifier else { return };
    let receiver = Receiver::start(|_, before| Play::Say(if before == 0 { 500 } else { 200 }));
    let gateway = quick(&receiver);
    let calls = callbacks(&gateway, &receiver).await;
    assert_eq!(calls.len(), 8);
    let good: Vec<_> = calls.iter().map(|(received, key)| case(received, key.v2.unwrap())).collect();
    for ((received, _), stated) in calls.iter().zip(verifier.verify(&good)) {
        assert_eq!(stated.library, text(&received.json(), "order_id"));
        assert_eq!(stated.by_hand, received.id());
    }
    let altered = |path: &str, value: &str| {
        let mut case = good[0].clone();
        *case.pointer_mut(path).unwrap() = value.into();
        case
    };
    let late = support::request::unix_now() - 3600;
    let bad = [
        altered("/secret", GAMMA.v2.unwrap()),
        altered("/body", r#"{"order_id": "one"}"#),
        altered("/headers/webhook-id", "cb_00000000000000000000000000000000"),
        altered("/headers/webhook-timestamp", &late.to_string()),
        altered(SIGNATURE, text(&good[2]["headers"], "webhook-signature")),
        altered(SIGNATURE, "v1,"),
    ];
    for (case, stated) in bad.iter().zip(verifier.verify(&bad)) {
        assert!(
            stated.library.starts_with("refused: ") && stated.by_hand.starts_with("refused: "),
            "{stated:?} of {case}"
        );
    }
    // The examples take no other spelling, which a library may.
    let signature = text(&good[0]["headers"], "webhook-signature");
    let spelled = ["zz", "=", "%", ",", "\n"].map(|after| signature.to_owned() + after);
    let unpadded = signature.trim_end_matches('=').to_owned();
    let mut bad: Vec<_> = spelled.iter().chain([&unpadded]).map(|text| altered(SIGNATURE, text)).collect();
    let now = support::request::unix_now();
    let timestamps = ["", "+0", "abc", ".5", "e0", "_0", " ", "\n"].map(|after| format!("{now}{after}"));
    let (valid, others) = timestamps.split_first().unwrap();
    bad.extend(others.iter().chain(&[format!("{now:#x}"), format!("+{now}"), format!("0{now}")]).map(|timestamp| {
        let mut case = altered("/headers/webhook-timestamp", timestamp);
        sign(&mut case);
        case
    }));
    for (case, stated) in bad.iter().zip(verifier.verify(&bad)) {
        assert!(stated.by_hand.starts_with("refused: wrong "), "{stated:?} of {case}");
    }
    let mut case = altered("/headers/webhook-timestamp", valid);
    sign(&mut case);
    assert_eq!(verifier.verify(&[case])[0].by_hand, calls[0].0.id());
}

#[tokio::test]
async fn pythons_library_verifies() {
    verified_by(Verifier::python()).await;
}

#[tokio::test]
async fn nodes_library_verifies() {
    verified_by(Verifier::node()).await;
}

/// The marked lines of an example.
fn snippet(source: &str) -> String {
    let lines = source.lines().skip_while(|line| !line.ends_with("[snippet]")).skip(1);
    lines.take_while(|line| !line.ends_with("[/snippet]")).map(|line| line.to_owned() + "\n").collect()
}

/// The language of the function on the page.
const SHOWN: &str = "python";

#[test]
fn the_page_of_callbacks_shows_what_verifies_here() {
    let read = |file: &str| std::fs::read_to_string(root().join(file)).unwrap();
    let page = read("docs/callbacks.md");
    for (file, language) in [
        ("verify.py", "python"),
        ("verify.mjs", "js"),
        ("verify_v1.sh", "sh"),
        ("verify_v1.py", "python"),
        ("verify_v1.mjs", "js"),
        ("VerifyV1.java", "java"),
        ("verify_v1.php", "php"),
    ] {
        let snippet = snippet(&read(&format!("examples/callbacks/{file}")));
        assert!((5..=18).contains(&snippet.lines().count()), "{file}: {snippet}");
        assert!(page.contains(&format!("(../examples/callbacks/{file})")), "docs/callbacks.md does not name {file}");
        let block = format!("```{language}\n{snippet}```\n");
        // One language is shown, the others are linked.
        assert!(
            language != SHOWN || page.contains(&block),
            "docs/callbacks.md does not show examples/callbacks/{file}:\n{block}"
        );
    }
}
