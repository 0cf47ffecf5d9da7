//! `paybridge listen` from outside: what a merchant's developer sees of callbacks that this test signs itself, on the
//! shipped rules.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http_body_util::Full;
use hyper_util::rt::TokioIo;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::support;
use crate::support::Client;
use crate::support::request::{hmac_hex, unix_now};

const V1_SECRET: &str = "demo-v1-secret-for-demonstration-only";
const V2_SECRET: &str = "demo-v2-secret-for-demonstration-only";
const BODY: &str = r#"{"order_id":"o-1"}"#;

fn mac(secret: &str, message: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(message.as_bytes());
    STANDARD.encode(mac.finalize().into_bytes())
}

type Headers = Vec<(&'static str, String)>;

/// A callback in the shape of v2, signed by this secret.
fn v2(id: &str, secret: &str) -> Headers {
    let time = unix_now();
    vec![
        ("content-type", "application/json".to_owned()),
        ("x-callback-id", id.to_owned()),
        ("x-signature", hmac_hex(secret, BODY.as_bytes())),
        ("webhook-id", id.to_owned()),
        ("webhook-timestamp", time.to_string()),
        ("webhook-signature", format!("v1,{}", mac(secret, &format!("{id}.{time}.{BODY}")))),
    ]
}

/// A callback in the default dialect.
fn v1(id: &str, path: &str) -> Headers {
    let time = unix_now();
    vec![
        ("x-callback-id", id.to_owned()),
        ("x-api-key", "demo-v1".to_owned()),
        ("x-timestamp", time.to_string()),
        ("x-signature", hmac_hex(V1_SECRET, format!("{time}.POST.{path}.{BODY}").as_bytes())),
    ]
}

/// A listener on the shipped rules.
struct Listener {
    _root: tempfile::TempDir,
    child: Child,
    out: BufReader<ChildStdout>,
    address: SocketAddr,
    client: Option<Client>,
}

impl Listener {
    fn start(arguments: &[&str]) -> Self {
        let root = tempfile::tempdir().unwrap();
        copy(&support::tools::root().join("rules"), &root.path().join("rules"));
        let mut child = command(root.path()).args(["--address", "127.0.0.1:0"]).args(arguments).spawn().unwrap();
        let mut err = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        err.read_line(&mut line).unwrap();
        let address = line.split("://").nth(1).and_then(|rest| rest.split(';').next()).expect(&line).parse().unwrap();
        // What is said later must not fill the pipe.
        std::thread::spawn(move || std::io::copy(&mut err, &mut std::io::sink()));
        let ca = root.path().join("certs/ca.pem");
        let client = ca.exists().then(|| Client::new(address, &ca));
        let out = BufReader::new(child.stdout.take().unwrap());
        Self { _root: root, child, out, address, client }
    }

    /// Sends a callback on a connection of its own; the status of the answer.
    async fn send(&self, path: &str, headers: &Headers, body: &str) -> u16 {
        let mut request = http::Request::post(format!("https://localhost{path}"));
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let request = request.body(Full::new(Bytes::copy_from_slice(body.as_bytes()))).unwrap();
        let answer = if let Some(client) = &self.client {
            // As the gateway does, which takes what it is offered.
            let stream = client.tls(&["h2", "http/1.1"]).await.unwrap();
            assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
            http1(TokioIo::new(stream), request).await
        } else {
            http1(TokioIo::new(tokio::net::TcpStream::connect(self.address).await.unwrap()), request).await
        };
        answer.unwrap().status().as_u16()
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        line
    }

    fn json(&mut self) -> Value {
        let line = self.line();
        assert!(!line.contains("demonstration-only"), "{line}");
        serde_json::from_str(&line).expect(&line)
    }

    fn exit_code(mut self) -> (Option<i32>, String) {
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code(), rest)
    }
}

#[test]
fn a_pair_that_was_made_just_now_is_trusted_as_the_rules_say() {
    let root = tempfile::tempdir().unwrap();
    copy(&support::tools::root().join("rules"), &root.path().join("rules"));
    let mut child = command(root.path()).args(["--address", "127.0.0.1:0"]).spawn().unwrap();
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut stated = String::new();
    err.read_line(&mut stated).unwrap();
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    err.read_to_string(&mut stated).unwrap();
    child.wait().unwrap();
    assert!(root.path().join("certs/ca.pem").exists());
    assert!(stated.starts_with("listening at ") && !stated.contains("does not trust"), "{stated}");
}

async fn http1(
    io: impl hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
    request: http::Request<Full<Bytes>>,
) -> hyper::Result<http::Response<hyper::body::Incoming>> {
    let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
    tokio::spawn(connection);
    sender.send_request(request).await
}

fn command(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_paybridge"));
    command.arg("listen").current_dir(directory).env_remove("PAYBRIDGE_RULES").env_remove("RUST_LOG");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[tokio::test]
async fn every_callback_is_reported_with_the_worth_of_its_signatures() {
    let mut listener = Listener::start(&["--count", "6", "--format", "json", "--answer", "500,timeout,410,200"]);
    let verified = json!([
        { "header": "x-signature", "result": "verified", "merchant": "demo", "key": "demo-v2" },
        { "header": "webhook-signature", "result": "verified", "merchant": "demo", "key": "demo-v2" },
    ]);

    let first = v2("cb_1", V2_SECRET);
    assert_eq!(listener.send("/cb", &first, BODY).await, 500);
    let reported = listener.json();
    assert_eq!(
        (&reported["signatures"], &reported["callback_id"], &reported["style"]),
        (&verified, &json!("cb_1"), &json!("v2"))
    );
    assert_eq!(
        (&reported["body"], &reported["answer"], &reported["sample"]),
        (&json!(BODY), &json!("500"), &json!(false))
    );

    let unanswered = tokio::time::timeout(Duration::from_millis(300), listener.send("/cb", &first, BODY));
    assert!(unanswered.await.is_err());
    assert_eq!(listener.json()["answer"], "timeout");

    let path = "/callbacks/v1";
    assert_eq!(listener.send("/callbacks/v1?x=1", &v1("cb_2", path), BODY).await, 410);
    let reported = listener.json();
    let by = json!([{ "header": "x-signature", "result": "verified", "merchant": "demo", "key": "demo-v1" }]);
    assert_eq!((&reported["signatures"], &reported["style"]), (&by, &json!("v1")));

    assert_eq!(listener.send("/cb", &first, r#"{"order_id": "o-1"}"#).await, 200);
    let reported = listener.json();
    for signature in reported["signatures"].as_array().unwrap() {
        let reason = signature["reason"].as_str().unwrap();
        assert!(signature["result"] == "wrong" && reason.contains("another secret, or"), "{reported}");
    }

    let mut sample = v2("cb_3", "another secret");
    sample.push(("x-callback-sample", "true".to_owned()));
    assert_eq!(listener.send("/cb", &sample, BODY).await, 200);
    let reported = listener.json();
    assert!(reported["sample"] == true && reported["signatures"][0]["result"] == "wrong", "{reported}");

    assert_eq!(listener.send("/cb", &Vec::new(), "").await, 200);
    let reported = listener.json();
    assert!(reported["signatures"][0]["result"] == "missing" && reported["callback_id"].is_null(), "{reported}");

    assert_eq!(listener.exit_code(), (Some(0), String::new()), "it ends after as many as asked for");
}

#[tokio::test]
async fn people_read_lines_and_end_it_by_hand() {
    let mut listener = Listener::start(&["--plain"]);
    assert!(listener.client.is_none(), "no certificate is made for nothing");
    let too_long = "x".repeat(64 * 1024 + 1);
    assert_eq!(listener.send("/cb", &Vec::new(), &too_long).await, 413);
    assert_eq!(listener.send("/cb", &v2("cb_1", V2_SECRET), BODY).await, 200);
    let first = listener.line();
    assert!(first.ends_with(" #1 POST /cb\n"), "{first}");
    let pid = Pid::from_child(&listener.child);
    kill_process(pid, Signal::INT).unwrap();
    let (code, rest) = listener.exit_code();
    assert_eq!(code, Some(0));
    assert!(rest.contains("  X-Signature          verified: key demo-v2, merchant demo\n"), "{rest}");
    assert!(rest.contains("  {\"order_id\":\"o-1\"}\n  -> 200\n"), "{rest}");
}

#[test]
fn what_cannot_be_listened_with_is_reported() {
    let root = tempfile::tempdir().unwrap();
    copy(&support::tools::root().join("rules"), &root.path().join("rules"));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    for (arguments, code, expected) in [
        (&["--address", &taken][..], 1, "the port is in use"),
        (&["--answer", "100"], 2, "must be a status from 200 to 599"),
    ] {
        let output = command(root.path()).args(arguments).output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(code) && err.contains(expected), "{arguments:?}: {err}");
        assert!(output.stdout.is_empty());
    }
}
