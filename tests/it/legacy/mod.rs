//! The old v1 service from outside: what is forwarded to it and how, and where orders are at home (contract section 6,
//! "Homes and modes").

mod field_case;
mod forwarding;
mod homes;
mod places;
mod shadow;

use std::process::Command;

use serde_json::json;

use crate::support::receiver::{Play, Receiver};
use crate::support::{Gateway, Rules};

/// An old service that answers everything with what came: the method and target.
pub fn old_service() -> Receiver {
    Receiver::start(|received, _| {
        let body = json!({ "legacy": format!("{} {}", received.method, received.target) }).to_string();
        answer(200, "Content-Type: application/json\r\n", &body)
    })
}

/// An answer with header lines, each ended by a line break.
pub fn answer(status: u16, lines: &str, body: &str) -> Play {
    let length = body.len();
    Play::Bytes(format!("HTTP/1.1 {status} Said\r\n{lines}Content-Length: {length}\r\n\r\n{body}").into_bytes())
}

/// Rules before an old service, with these keys of `[legacy]` and this `[v1]` of the merchant acme.
pub fn rules(old: &Receiver, legacy: &str, v1: &str) -> Rules {
    let (url, ca) = (old.url(""), old.ca());
    let ca = ca.display();
    Rules::default().with("legacy", &format!("url = \"{url}\"\ntrust = [\"{ca}\"]\n{legacy}")).edit(
        "merchants/acme.toml",
        "name = \"Acme Ltd\"\n",
        &format!("name = \"Acme Ltd\"\nv1 = {{ {v1} }}\n"),
    )
}

/// Imports ids of acme, with further arguments.
#[track_caller]
pub fn import(gateway: &Gateway, kind: &str, ids: &str, more: &[&str]) {
    let file = gateway.root.path().join("ids.txt");
    std::fs::write(&file, ids).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_paybridge"))
        .args(["import-ids", "--merchant", "acme", "--kind", kind, "--rules"])
        .arg(gateway.rules_dir())
        .args(more)
        .arg(file)
        .current_dir(gateway.root.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// How many operations are stored.
#[track_caller]
pub fn operations(gateway: &Gateway) -> usize {
    let out = String::from_utf8(gateway.store_check().stdout).unwrap();
    let count = out.strip_prefix("checked ").and_then(|rest| rest.split(' ').next()).map(str::parse);
    count.unwrap_or_else(|| panic!("{out}")).unwrap_or_else(|_| panic!("{out}"))
}
