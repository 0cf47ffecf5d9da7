//! v1 callbacks verify with the examples of docs/callbacks.md, in every language of `examples/`.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::callbacks::{create, quick};
use crate::support::bodies::with;
use crate::support::receiver::{Received, Receiver};
use crate::support::request::{ACME, hmac_hex, unix_now};
use crate::support::tools::{in_path, root};
use crate::support::{self, Request};

const INSTALLER: &str = ".ci/run clients";

/// Calls an example with secret, target, timestamp and signature as arguments, and the body as standard input. What it throws
/// ends the program.
const PYTHON: &str = "import sys; from verify_v1 import verify_v1; secret, target, timestamp, signature = sys.argv[1:]; \
    verify_v1(secret, target, {'X-Timestamp': timestamp, 'X-Signature': signature}, sys.stdin.buffer.read())";
const NODE: &str = "import { readFileSync } from 'node:fs'; \
    const { verifyV1 } = await import(`${process.cwd()}/verify_v1.mjs`); \
    const [secret, target, timestamp, signature] = process.argv.slice(1); \
    verifyV1(secret, target, { 'x-timestamp': timestamp, 'x-signature': signature }, readFileSync(0));";
const PHP: &str =
    "require 'verify_v1.php'; verify_v1($argv[1], $argv[2], $argv[3], $argv[4], file_get_contents('php://stdin'));";
/// For shells: bash, unlike others, runs commands that it finds in arithmetic.
const SHELL: &str = ". ./verify_v1.sh; cat > \"$BODY\"; verify_v1 \"$1\" \"$2\" \"$3\" \"$4\" \"$BODY\"";
const JAVA: &str = "public final class Drive { public static void main(String[] given) throws Exception { \
    VerifyV1.verify(given[0], given[1], given[2], given[3], System.in.readAllBytes()); } }";

/// A callback as its receiver has it.
#[derive(Clone, Debug)]
struct Case {
    secret: String,
    target: String,
    timestamp: String,
    signature: String,
    body: Vec<u8>,
}

/// A program that calls an example.
struct Verifier {
    program: PathBuf,
    arguments: Vec<String>,
    scratch: TempDir,
}

impl Verifier {
    fn new(program: &str, arguments: &[&str]) -> Option<Self> {
        let arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        Some(Self { program: in_path(program, INSTALLER)?, arguments, scratch: tempfile::tempdir().unwrap() })
    }

    fn java() -> Option<Self> {
        let (javac, mut java) = (in_path("javac", INSTALLER)?, Self::new("java", &["-XX:TieredStopAtLevel=1", "-cp"])?);
        let classes = java.scratch.path();
        std::fs::write(classes.join("Drive.java"), JAVA).unwrap();
        let sources = [root().join("examples/callbacks/VerifyV1.java"), classes.join("Drive.java")];
        assert!(Command::new(javac).arg("-d").arg(classes).args(sources).status().unwrap().success());
        let classes = classes.display().to_string();
        java.arguments.extend([classes, "Drive".to_owned()]);
        Some(java)
    }

    /// Returns why the callback was refused; nothing if it was accepted.
    fn verify(&self, case: &Case) -> String {
        let mut child = Command::new(&self.program)
            .args(&self.arguments)
            .args([&case.secret, &case.target, &case.timestamp, &case.signature])
            .current_dir(root().join("examples/callbacks"))
            .env("BODY", self.scratch.path().join("body"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(&case.body).unwrap();
        let ended = child.wait_with_output().unwrap();
        let printed = String::from_utf8_lossy(&[ended.stdout, ended.stderr].concat()).into_owned();
        assert_eq!(ended.status.success(), printed.is_empty(), "{case:?}: {printed}");
        printed
    }
}

/// A callback with a query in its address, and with characters in its body that JSON writers spell in several ways.
async fn received() -> Received {
    let receiver = Receiver::good();
    let gateway = quick(&receiver);
    let target = "/callbacks/v1?shop=7";
    let body = with(support::payout("ä/☃ \"🧾\""), "callback_url", Some(receiver.url(target).into()));
    create(&gateway, &Request::payout(&ACME, &body)).await;
    receiver.got(target, 1).await.remove(0)
}

async fn verified_by(verifier: Option<Verifier>) {
    let Some(verifier) = verifier else { return };
    let received = received().await;
    let good = Case {
        secret: ACME.v1.unwrap().to_owned(),
        target: received.target.clone(),
        timestamp: received.header("x-timestamp").to_owned(),
        signature: received.header("x-signature").to_owned(),
        body: received.body.clone(),
    };
    // The query is not signed.
    let other_query = Case { target: received.target.replace("shop=7", "shop=8"), ..good.clone() };
    for case in [&good, &other_query] {
        assert_eq!(verifier.verify(case), "", "{case:?}");
    }
    let signed_at = |timestamp: String| {
        let payload = [format!("{timestamp}.POST./callbacks/v1.").as_bytes(), &good.body].concat();
        let signature = hmac_hex(&good.secret, &payload);
        Case { timestamp, signature, ..good.clone() }
    };
    let flipped = if good.signature.starts_with('0') { "1" } else { "0" };
    let other_space = String::from_utf8(good.body.clone()).unwrap().replace("\":\"", "\": \"").into_bytes();
    let other_amount = String::from_utf8(good.body.clone()).unwrap().replace("\"amount\":\"", "\"amount\":\"1");
    for (reason, case) in [
        ("wrong signature", Case { body: other_space, ..good.clone() }),
        ("wrong signature", Case { body: other_amount.into_bytes(), ..good.clone() }),
        ("wrong signature", Case { body: Vec::new(), ..good.clone() }),
        ("wrong signature", Case { signature: flipped.to_owned() + &good.signature[1..], ..good.clone() }),
        ("wrong signature", Case { signature: good.signature[..62].to_owned(), ..good.clone() }),
        ("wrong signature", Case { signature: String::new(), ..good.clone() }),
        ("wrong signature", Case { signature: good.signature.to_uppercase(), ..good.clone() }),
        ("wrong signature", Case { secret: "other".to_owned(), ..good.clone() }),
        ("wrong signature", Case { target: "/callbacks/v2?shop=7".to_owned(), ..good.clone() }),
        ("wrong signature", Case { timestamp: (unix_now() + 1).to_string(), ..good.clone() }),
        ("wrong signature", Case { timestamp: String::new(), ..good.clone() }),
        ("wrong timestamp", signed_at((unix_now() - 360).to_string())),
        ("wrong timestamp", signed_at((unix_now() + 360).to_string())),
    ] {
        let printed = verifier.verify(&case);
        assert!(printed.contains(reason), "{reason}: {printed:?} of {case:?}");
    }
    // What decoders of hex would skip.
    for (before, after) in [("", "zz"), ("", "g"), ("", "0"), ("", " "), ("", "\n"), (" ", ""), ("0x", "")] {
        let case = Case { signature: format!("{before}{}{after}", good.signature), ..good.clone() };
        let printed = verifier.verify(&case);
        assert!(printed.contains("wrong signature"), "{printed:?} of {case:?}");
    }
    // What a language could take for the present time, although it is signed.
    let (now, ran) = (unix_now(), verifier.scratch.path().join("ran"));
    for timestamp in [
        String::new(),
        format!("{now:#x}"),
        format!("{now}+0"),
        format!("{now}abc"),
        format!("{now}.5"),
        format!("{now}e0"),
        format!("{now}\n"),
        format!("+{now}"),
        format!(" {now}"),
        format!("0{now}"),
        format!("000{now}"),
        format!("{now}000"),
        "now".to_owned(),
        "age".to_owned(),
        format!("a[$(touch {})0]", ran.display()),
    ] {
        let case = signed_at(timestamp);
        let printed = verifier.verify(&case);
        assert!(printed.contains("wrong timestamp"), "{printed:?} of {case:?}");
    }
    assert!(!ran.exists(), "a timestamp ran as a command");
}

#[tokio::test]
async fn pythons_function_verifies() {
    verified_by(Verifier::new("python3", &["-c", PYTHON])).await;
}

#[tokio::test]
async fn nodes_function_verifies() {
    verified_by(Verifier::new("node", &["--input-type=module", "-e", NODE, "--"])).await;
}

#[tokio::test]
async fn phps_function_verifies() {
    verified_by(Verifier::new("php", &["-r", PHP, "--"])).await;
}

#[tokio::test]
async fn javas_function_verifies() {
    verified_by(Verifier::java()).await;
}

#[tokio::test]
async fn the_shells_function_verifies() {
    if in_path("openssl", INSTALLER).is_some() {
        verified_by(Verifier::new("sh", &["-c", SHELL, "sh"])).await;
        verified_by(Verifier::new("bash", &["-c", SHELL, "bash"])).await;
    }
}
