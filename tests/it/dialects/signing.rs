//! `paybridge sign v1` knows every recipe.

use std::io::Write as _;
use std::process::{Command, Stdio};

use super::*;

/// The headers that the command prints for a request.
fn printed(world: &World, method: &str, target: &str, body: &str) -> Vec<(String, String)> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_paybridge"))
        .args(["sign", "v1", "--key", ACME.name, "--method", method, "--target", target, "--rules"])
        .arg(world.gateway.rules_dir())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(body.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(!String::from_utf8_lossy(&output.stderr).contains("hush"), "{output:?}");
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(|line| line.split_once(": ").unwrap()).map(|(n, v)| (n.to_owned(), v.to_owned())).collect()
}

pub async fn prints(world: &World) {
    let wire = world.wire;
    let body = payin("printed").to_string();
    for (method, target, body) in [
        ("POST", wire.payin().to_owned(), body.as_str()),
        ("GET", wire.payin_status("external_id=printed&shop_code=card%2Deur"), ""),
    ] {
        let headers = printed(world, method, &target, body);
        let names: Vec<_> = headers.iter().map(|(name, _)| name.to_lowercase()).collect();
        let [api_key, signature, timestamp] = wire.headers.map(str::to_lowercase);
        assert_eq!(names, [api_key, timestamp, signature]);
        let request = Request { headers, ..Request::new(method, &target, body) };
        let request = if body.is_empty() { request } else { request.header("Content-Type", "application/json") };
        for protocol in PROTOCOLS {
            world.send_by(protocol, &request).await.expect(200);
        }
    }
}
