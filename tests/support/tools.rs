//! Programs of others that tests drive: where they are, and what they print. Where one is missing its tests say so and pass,
//! unless `PAYBRIDGE_REQUIRE_TOOLS=1`.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tokio::time::Instant;

/// The repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A program of `PATH`.
pub fn in_path(name: &str, installer: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|dir| dir.join(name)).find(|program| program.is_file());
    found.or_else(|| missing(name, installer))
}

/// A file that an installer puts into the repository's `target`.
pub fn installed(file: &str, what: &str, installer: &str) -> Option<PathBuf> {
    let file = root().join(file);
    if file.is_file() { Some(file) } else { missing(what, installer) }
}

/// Says aloud what is missing, past the capture of the test's output; where nothing may be missing, fails.
pub fn missing<T>(what: &str, installer: &str) -> Option<T> {
    let required = std::env::var_os("PAYBRIDGE_REQUIRE_TOOLS").is_some_and(|value| value == "1");
    assert!(!required, "{what}: not installed");
    say(&format!("!! {what}: not installed, so that what needs it was NOT tested (`{installer}` installs it)"));
    None
}

/// A line that is seen whatever captures the test's output.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// The seed that `PAYBRIDGE_SEED` gives, or a new one; shown, so that a run can be repeated.
pub fn seed() -> u64 {
    let given = std::env::var("PAYBRIDGE_SEED").ok().and_then(|text| text.parse().ok());
    let seed = given.unwrap_or_else(|| fastrand::u64(..));
    say(&format!("PAYBRIDGE_SEED={seed}"));
    seed
}

/// What a program prints; it has to succeed, in time.
#[track_caller]
pub fn output(command: &mut Command, patience: Duration) -> String {
    let files = tempfile::tempdir().unwrap();
    let open = |name| File::create(files.path().join(name)).unwrap();
    let mut child = command.stdout(open("out")).stderr(open("err")).spawn().expect("the program starts");
    let deadline = Instant::now() + patience;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break Some(status);
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            child.wait().unwrap();
            break None;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let read = |name| std::fs::read_to_string(files.path().join(name)).unwrap();
    let (out, err) = (read("out"), read("err"));
    assert!(status.is_some_and(|status| status.success()), "{command:?}: {status:?}\n{out}{err}");
    out
}

/// Leaves out of a program's environment what would lead it past the gateway, or to other roots.
pub fn without_detours(command: &mut Command) -> &mut Command {
    for name in ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        command.env_remove(name);
    }
    for name in ["CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR"] {
        command.env_remove(name);
    }
    command
}
