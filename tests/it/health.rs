//! `paybridge health`: what it asks, what it accepts, and how long it takes.

use std::io::Read as _;
use std::net::TcpListener;
use std::process::{Command, Output};
use std::time::Duration;

use tokio::time::Instant;

use crate::support::rules::write_file;
use crate::support::{Gateway, Rules};

fn health(gateway: &Gateway) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_paybridge"));
    command.args(["health", "--rules"]).arg(gateway.rules_dir()).env_remove("PAYBRIDGE_RULES").output().unwrap()
}

#[track_caller]
fn assert_ready(gateway: &Gateway) {
    let output = health(gateway);
    assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
}

/// Asserts exit 1 and one line that states why.
#[track_caller]
fn assert_not_ready(gateway: &Gateway, reason: &str) {
    let output = health(gateway);
    let stated = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stated}");
    assert!(stated.starts_with("error: ") && stated.contains(reason) && stated.lines().count() == 1, "{stated}");
}

#[test]
fn a_ready_gateway_is_healthy_whatever_else_the_rules_say() {
    let mut gateway = Gateway::start(&Rules::default().with("admin", "token = \"admin-hush-8Yz-long\""));
    assert_ready(&gateway);
    write_file(&gateway.rules_dir().join("shops/card-eur.toml"), "this is no TOML");
    write_file(&gateway.rules_dir().join("merchants/acme.toml"), "unknown = 1\n");
    assert_ready(&gateway);
    gateway.kill();
    assert_not_ready(&gateway, &format!("the admin listener at {}: connection refused", gateway.admin));
}

#[test]
fn a_draining_gateway_is_not() {
    let rules = Rules::default().with("server", "drain_delay = \"60s\"");
    let gateway = Gateway::start(&rules);
    gateway.signal(rustix::process::Signal::TERM);
    crate::support::eventually_blocking("not ready", || !health(&gateway).status.success());
    assert_not_ready(&gateway, "answers 503: ");
}

#[test]
fn over_tls_the_configured_certificate_alone_is_accepted() {
    let mut gateway = Gateway::prepare(&Rules::default().with("admin", "tls = true"));
    gateway.spawn();
    crate::support::eventually_blocking("ready", || health(&gateway).status.success());
    // Of the same authority, for the same names.
    let certificate = gateway.root.path().join("certs/server.pem");
    let other = gateway.root.path().join("other");
    std::fs::create_dir(&other).unwrap();
    for file in ["ca.pem", "ca.key"] {
        std::fs::copy(gateway.root.path().join("certs").join(file), other.join(file)).unwrap();
    }
    let made = Command::new(env!("CARGO_BIN_EXE_paybridge")).args(["certs", "--dir"]).arg(&other).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let gateway_toml = gateway.rules_dir().join("gateway.toml");
    let rules = std::fs::read_to_string(&gateway_toml).unwrap();
    // Where the gateway reads it, the new pair would soon be served.
    write_file(&gateway_toml, &rules.replace("[tls]\n", "[tls]\ncertificate = \"../other/server.pem\"\n"));
    assert_not_ready(&gateway, "certificate not trusted");
    let chain = [std::fs::read(other.join("server.pem")).unwrap(), std::fs::read(certificate).unwrap()].concat();
    std::fs::write(other.join("server.pem"), chain).unwrap();
    assert_not_ready(&gateway, "certificate not trusted");
    write_file(&gateway_toml, &rules.replace("tls = true", "tls = false"));
    assert_not_ready(&gateway, "no valid HTTP");
}

#[test]
fn the_unix_socket_is_asked_with_and_without_tls() {
    for tls in [false, true] {
        let rules =
            Rules::default().with("admin", "listen = \"unix:../admin.sock\"").with("admin", &format!("tls = {tls}"));
        let mut gateway = Gateway::prepare(&rules);
        assert_not_ready(&gateway, if tls { "server.pem" } else { "admin.sock: no such socket" });
        gateway.spawn();
        crate::support::eventually_blocking("ready", || health(&gateway).status.success());
        gateway.kill();
        assert_not_ready(&gateway, "connection refused");
    }
}

#[test]
fn it_ends_within_two_seconds_though_the_listener_hangs() {
    let gateway = Gateway::prepare(&Rules::default());
    let listener = TcpListener::bind(gateway.admin).unwrap();
    let reader = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        socket.read_to_end(&mut request).unwrap();
        request
    });
    let began = Instant::now();
    assert_not_ready(&gateway, "it did not answer within two seconds");
    assert!(began.elapsed() >= Duration::from_secs(2), "{:?}", began.elapsed());
    assert!(reader.join().unwrap().starts_with(b"GET /readyz HTTP/1.1\r\n"));
}
