//! The programs that drive the clients: where they are, and what they print.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;
use tempfile::TempDir;

use crate::clients::plan::Plan;
use crate::support::Gateway;
use crate::support::request::ACME;
use crate::support::tools::{self, root};

/// How long a client may take for a whole plan.
const PATIENCE: Duration = Duration::from_secs(90);
/// What installs the clients.
const INSTALLER: &str = ".ci/run clients";

/// What a client saw of a step: an answer, or `skipped`, or `error`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seen {
    pub step: String,
    #[serde(default)]
    pub status: u16,
    /// The protocol that was spoken: `1.1` or `2`.
    #[serde(default)]
    pub http: String,
    #[serde(default)]
    pub text: String,
    pub skipped: Option<String>,
    pub error: Option<String>,
}

/// A client that is installed.
#[derive(Debug)]
pub struct Program {
    /// The program and its first arguments.
    words: Vec<PathBuf>,
    /// Holds what was built for it.
    _built: Option<TempDir>,
}

impl Program {
    pub fn curl() -> Option<Self> {
        in_path("openssl")?;
        in_path("curl")?;
        Some(Self::of([in_path("bash")?, here("curl/drive.sh")]))
    }

    pub fn python(library: &str) -> Option<Self> {
        let python = installed("target/clients/python/bin/python", "requests and httpx")?;
        Some(Self::of([python, here("python/drive.py"), library.into()]))
    }

    pub fn node(library: &str) -> Option<Self> {
        let node = in_path("node")?;
        installed("target/clients/node/node_modules/axios/package.json", "axios and undici")?;
        Some(Self::of([node, here("node/drive.mjs"), library.into()]))
    }

    /// Whether Node is new enough for undici, whose fetch speaks HTTP/2: 20.18, or 21 and later.
    pub fn has_undici() -> bool {
        let Some(node) = in_path("node") else { return false };
        let version = output(Command::new(node).args(["-p", "process.versions.node"]));
        let mut parts = version.trim().split('.').map(|part| part.parse::<u32>().unwrap());
        let new_enough = (parts.next(), parts.next()) >= (Some(20), Some(18));
        if !new_enough {
            tools::say("!! Node is older than 20.18: its fetch was NOT tested over HTTP/2");
        }
        new_enough
    }

    pub fn php() -> Option<Self> {
        let php = in_path("php")?;
        let has_curl = Command::new(&php).args(["-r", "exit(extension_loaded('curl') ? 0 : 1);"]).status();
        if !has_curl.is_ok_and(|status| status.success()) {
            return tools::missing("PHP's curl", INSTALLER);
        }
        Some(Self::of([php, here("php/drive.php")]))
    }

    /// Compiled here, together with the very file that the merchants are given.
    pub fn java() -> Option<Self> {
        let (java, javac) = (in_path("java")?, in_path("javac")?);
        let classes = tempfile::tempdir().unwrap();
        let mut compile = Command::new(javac);
        compile.arg("-d").arg(classes.path()).arg(root().join("examples/sign/Sign.java")).arg(here("java/Drive.java"));
        output(&mut compile);
        // Starts sooner: what it does is over before an optimising compiler pays.
        let quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-cp"].map(PathBuf::from);
        let words = [vec![java], quick.to_vec(), vec![classes.path().to_owned(), "Drive".into()]].concat();
        Some(Self { words, _built: Some(classes) })
    }

    fn of<const N: usize>(words: [PathBuf; N]) -> Self {
        Self { words: words.into(), _built: None }
    }

    /// Lets the client carry out a plan.
    #[track_caller]
    pub fn run(&self, gateway: &Gateway, http: &str, plan: &Plan) -> Vec<Seen> {
        let scratch = tempfile::tempdir().unwrap();
        let mut command = Command::new(&self.words[0]);
        command
            .args(&self.words[1..])
            .current_dir(scratch.path())
            .env("CLIENT_SIGN", root().join("examples/sign"))
            .env("CLIENT_MODULES", root().join("target/clients/node"))
            .env("CLIENT_URL", format!("https://localhost:{}", gateway.public.port()))
            .env("CLIENT_CA", gateway.root.path().join("certs/ca.pem"))
            .env("CLIENT_HTTP", http)
            .env("CLIENT_KEY", ACME.name)
            .env("CLIENT_PLAN", plan.write(scratch.path()))
            // The fetch of Node itself takes its roots from nowhere else.
            .env("NODE_EXTRA_CA_CERTS", gateway.root.path().join("certs/ca.pem"))
            .env("NODE_OPTIONS", "--dns-result-order=ipv4first")
            .env("PYTHONDONTWRITEBYTECODE", "1");
        let printed = output(tools::without_detours(&mut command));
        let read = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}"));
        printed.lines().map(read).collect()
    }
}

fn here(file: &str) -> PathBuf {
    root().join("tests/it/clients").join(file)
}

#[track_caller]
fn output(command: &mut Command) -> String {
    tools::output(command, PATIENCE)
}

fn in_path(name: &str) -> Option<PathBuf> {
    tools::in_path(name, INSTALLER)
}

fn installed(file: &str, what: &str) -> Option<PathBuf> {
    tools::installed(file, what, INSTALLER)
}
