//! The process from outside: signals, draining, what stops it from starting, the admin listener.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixDatagram};
use tokio::task::JoinSet;

use crate::support::request::ACME;
use crate::support::rules::write_file;
use crate::support::stored::Create;
use crate::support::{
    self, Connection, Gateway, Request, Rules, deposit, eventually, eventually_blocking, payin, within,
};

/// A request whose body is half sent.
async fn in_flight(gateway: &Gateway, id: &str) -> (Connection, Vec<u8>) {
    let bytes = Request::deposit(&ACME, &deposit(id)).bytes();
    let mut connection = gateway.client().connect().await;
    connection.write(&bytes[..bytes.len() - 10]).await;
    (connection, bytes[bytes.len() - 10..].to_vec())
}

#[tokio::test]
async fn requests_in_flight_finish_before_the_process_ends() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut gateway = Gateway::start(&Rules::default());
        let client = gateway.client();
        let mut idle = client.connect().await;
        idle.send(&Request::status(&ACME, "1")).await;
        let (mut connection, rest) = in_flight(&gateway, "in-flight").await;
        eventually("the head is read", async || connections_open(&gateway).filter(|open| *open >= 2.0)).await;
        gateway.signal(signal);
        eventually("no new connection", async || client.try_connect().await.is_none().then_some(())).await;
        connection.write(&rest).await;
        connection.reply().await.expect("the reply of a request in flight").expect(200);
        connection.closed().await;
        idle.closed().await;
        assert_eq!(gateway.wait().code(), Some(0), "{}", gateway.log());
        gateway.restart();
        let other = support::bodies::with(deposit("in-flight"), "amount", Some(1.into()));
        client.send(&Request::deposit(&ACME, &other)).await.expect(409);
    }
}

fn connections_open(gateway: &Gateway) -> Option<f64> {
    let (_, metrics) = gateway.admin_get("/metrics")?;
    let line = metrics.lines().find(|line| line.starts_with("paybridge_connections") && line.contains("open"))?;
    line.rsplit(' ').next()?.parse().ok()
}

#[tokio::test]
async fn a_second_signal_ends_the_process_at_once() {
    let rules = Rules::default().with("limits", "body_timeout = \"1h\"").with("server", "shutdown_grace = \"1h\"");
    let mut gateway = Gateway::start(&rules);
    let (connection, _) = in_flight(&gateway, "never").await;
    gateway.signal(Signal::TERM);
    let client = gateway.client();
    eventually("draining", async || client.try_connect().await.is_none().then_some(())).await;
    gateway.signal(Signal::TERM);
    assert_eq!(gateway.wait().code(), Some(1), "{}", gateway.log());
    assert!(gateway.log().contains("error: ended at once by a second signal"), "{}", gateway.log());
    drop(connection);
}

#[tokio::test]
async fn shutdown_grace_bounds_the_drain() {
    let rules = Rules::default().with("limits", "body_timeout = \"1h\"").with("server", "shutdown_grace = \"200ms\"");
    let mut gateway = Gateway::start(&rules);
    let (connection, _) = in_flight(&gateway, "never").await;
    gateway.signal(Signal::TERM);
    assert_eq!(gateway.wait().code(), Some(0), "{}", gateway.log());
    drop(connection);
}

#[tokio::test]
async fn readiness_turns_before_the_listener_closes() {
    let mut gateway = Gateway::start(&Rules::default().with("server", "drain_delay = \"3s\""));
    gateway.signal(Signal::TERM);
    eventually("not ready", async || gateway.admin_get("/readyz").filter(|(status, _)| *status == 503)).await;
    assert_eq!(gateway.admin_get("/healthz").unwrap().0, 200, "alive all the same");
    let late = gateway.client().send(&Request::payin(&ACME, &payin("late"))).await.expect(200);
    assert_eq!(late.header("connection"), "close");
    let mut http2 = support::http2::Http2::connect(&gateway.client()).await;
    http2.send(&Request::payin(&ACME, &payin("late-too"))).await.expect(200);
    http2.closed_by_peer().await;
    assert_eq!(gateway.wait().code(), Some(0));
}

#[tokio::test]
async fn sighup_and_saved_files_reload_all_or_nothing() {
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let version = || {
        let (status, body) = gateway.admin_get("/api/rules")?;
        assert_eq!(status, 200);
        Some(serde_json::from_str::<serde_json::Value>(&body).unwrap())
    };
    let first = version().unwrap();
    let members: Vec<_> = first.as_object().unwrap().keys().map(String::as_str).collect();
    let beside = ["certificate", "needs_restart", "problem_count", "problems", "warning_count", "warnings"];
    let (ours, of_the_contract): (Vec<&str>, Vec<&str>) = members.iter().partition(|name| beside.contains(name));
    assert_eq!((ours, of_the_contract), (beside.to_vec(), vec!["error", "loaded_at", "version"]));
    assert!(first["error"].is_null());

    let write = |rules: &Rules| rules.write(gateway.root.path(), gateway.public.port(), gateway.admin.port());
    write(&Rules::default().edit("shops/card-eur.toml", "currency = \"EUR\"", "currency = \"EURO\"\ncolour = 1"));
    gateway.signal(Signal::HUP);
    let failed = eventually("the error is shown", async || version().filter(|now| !now["error"].is_null())).await;
    assert_eq!(failed["version"], first["version"], "the last good rules serve");
    assert!(failed["error"].as_str().unwrap().contains("card-eur.toml"), "{failed}");
    client.send(&Request::payin(&ACME, &payin("still"))).await.expect(200);

    write(&Rules::default().edit("shops/card-eur.toml", "currency", "active = false\ncurrency"));
    let now = eventually("good rules again", async || version().filter(|now| now["error"].is_null())).await;
    assert_ne!(now["version"], first["version"]);
    client.send(&Request::payin(&ACME, &payin("closed"))).await.expect(400);
}

/// The next thing that the service manager is told, signs of life (`None`) or all else.
async fn reported(manager: &UnixDatagram) -> Option<String> {
    let mut buffer = [0; 1024];
    let receive = tokio::time::timeout(Duration::from_secs(30), manager.recv(&mut buffer));
    let length = receive.await.expect("never told").unwrap();
    let message = String::from_utf8(buffer[..length].to_vec()).unwrap();
    (!message.starts_with("WATCHDOG=1\n")).then_some(message)
}

/// The next thing that is no sign of life.
async fn news(manager: &UnixDatagram) -> String {
    loop {
        if let Some(message) = reported(manager).await {
            return message;
        }
    }
}

/// What was sent and not received yet.
fn received_now(manager: &UnixDatagram) -> Option<String> {
    let mut buffer = [0; 1024];
    let length = manager.try_recv(&mut buffer).ok()?;
    Some(String::from_utf8(buffer[..length].to_vec()).unwrap())
}

#[tokio::test]
async fn the_service_manager_is_reported_what_the_process_does() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("notify");
    let manager = UnixDatagram::bind(&socket).unwrap();
    let mut gateway = Gateway::prepare(&Rules::default());
    let variables = [("NOTIFY_SOCKET", socket.to_str().unwrap()), ("WATCHDOG_USEC", "200000")];
    gateway.environment = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    gateway.spawn();

    let ready = news(&manager).await;
    assert!(ready.starts_with("READY=1\nSTATUS=serving rules "), "{ready}");
    gateway.client().send(&Request::payin(&ACME, &payin("ready"))).await.expect(200);
    assert_eq!(gateway.admin_get("/readyz").expect("both listeners accept").0, 200);
    for _ in 0..3 {
        assert_eq!(reported(&manager).await, None, "it lives");
    }

    let broken = Rules::default().edit("shops/card-eur.toml", "currency = \"EUR\"", "currency = 7");
    for (rules, refused) in [(Rules::default(), false), (broken, true)] {
        rules.write(gateway.root.path(), gateway.public.port(), gateway.admin.port());
        gateway.signal(Signal::HUP);
        let reloading = news(&manager).await;
        assert!(reloading.starts_with("RELOADING=1\nMONOTONIC_USEC="), "{reloading}");
        let ready = news(&manager).await;
        assert!(ready.starts_with("READY=1\nSTATUS=serving rules "), "{ready}");
        let problem = "; the rules on disk are rejected: ";
        assert_eq!(ready.contains(problem) && ready.contains("shops/card-eur.toml:1:"), refused, "{ready}");
    }

    gateway.signal(Signal::TERM);
    let stopping = news(&manager).await;
    assert!(stopping.starts_with("STOPPING=1\nSTATUS=draining"), "{stopping}");
    assert_eq!(gateway.wait().code(), Some(0), "{}", gateway.log());
    for later in std::iter::from_fn(|| received_now(&manager)) {
        assert!(later.contains("STATUS=draining"), "what comes later says the same: {later}");
    }
}

#[tokio::test]
async fn a_certificate_is_renewed_and_a_wrong_one_is_shown() {
    let gateway = Gateway::start(&Rules::default());
    let certs = gateway.root.path().join("certs");
    gateway.reload();
    let metrics = || gateway.admin_get("/metrics").unwrap().1;
    assert!(!metrics().contains("certificate_reloads_total{"), "the same pair is no reload: {}", metrics());
    let error = || {
        let (_, body) = gateway.admin_get("/api/rules")?;
        serde_json::from_str::<serde_json::Value>(&body).unwrap()["error"].as_str().map(str::to_owned)
    };
    write_file(&certs.join("server.pem"), "no certificate\n");
    let shown = eventually("the wrong certificate is shown", async || error()).await;
    assert!(shown.contains("server.pem holds no PEM certificate"), "{shown}");
    assert_eq!(gateway.try_reload().0, 422);
    gateway.client().send(&Request::payin(&ACME, &payin("old-certificate"))).await.expect(200);

    let renew = |directory: &Path, end: i32| {
        let mut params = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
        params.not_after = rcgen::date_time_ymd(end, 1, 1);
        let key = rcgen::KeyPair::generate().unwrap();
        write_file(&directory.join("server.key"), &key.serialize_pem());
        write_file(&directory.join("server.pem"), &params.self_signed(&key).unwrap().pem());
    };
    renew(&certs, 2121);
    eventually("the new one serves", async || gateway.log().contains("2121-01-01").then_some(())).await;
    eventually("no error is left", async || error().is_none().then_some(())).await;
    assert!(!gateway.log().contains("has expired"));
    let metrics = metrics();
    assert!(metrics.contains("paybridge_certificate_reloads_total{result=\"accepted\"} 1\n"), "{metrics}");
    assert!(metrics.contains("paybridge_certificate_reloads_total{result=\"refused\"} "), "{metrics}");

    // The rules name other files from now on, and those are watched.
    let elsewhere = gateway.root.path().join("elsewhere");
    renew(&elsewhere, 2122);
    let paths = "certificate = \"../elsewhere/server.pem\"\nkey = \"../elsewhere/server.key\"";
    let rules = Rules::default().with("tls", paths);
    rules.write(gateway.root.path(), gateway.public.port(), gateway.admin.port());
    eventually("the other files serve", async || gateway.log().contains("2122-01-01").then_some(())).await;
    eventually("they are watched", async || {
        // What is written before they are watched is not noticed.
        renew(&elsewhere, 2020);
        within(Duration::from_millis(500), async || gateway.log().contains("has expired").then_some(())).await
    })
    .await;
}

#[tokio::test]
async fn the_admin_listener_answers_probes_and_no_web_page() {
    let gateway = Gateway::start(&Rules::default());
    gateway.client().send(&Request::payin(&ACME, &payin("counted"))).await.expect(200);
    let (status, metrics) = gateway.admin_get("/metrics").unwrap();
    assert_eq!(status, 200);
    assert!(!metrics.contains("# EOF") && metrics.contains("# TYPE paybridge_requests_total counter\n"), "{metrics}");
    for name in ["requests", "connections", "commit", "seconds"] {
        assert!(metrics.lines().any(|line| line.starts_with("paybridge_") && line.contains(name)), "{name}: {metrics}");
    }
    assert_eq!(gateway.admin_get("/nope").unwrap().0, 404);
    let host = gateway.admin.to_string();
    for (header, allowed) in [
        (format!("Host: {host}"), true),
        ("Host: evil.example".to_owned(), false),
        (format!("Host: {host}\r\nOrigin: https://evil.example"), false),
        (format!("Host: {host}\r\nOrigin: null"), false),
    ] {
        let request = format!("GET /api/rules HTTP/1.1\r\n{header}\r\nConnection: close\r\n\r\n");
        let (status, _) = gateway.admin_request(&request).unwrap();
        assert_eq!(status == 200, allowed, "{header}: {status}");
    }
}

/// Sends a request to the admin listener: its status; `None` when there is no reply.
async fn admin_status(gateway: &Gateway, request: &str) -> Option<u16> {
    let mut socket = TcpStream::connect(gateway.admin).await.ok()?;
    socket.write_all(request.as_bytes()).await.ok()?;
    let mut reply = String::new();
    socket.read_to_string(&mut reply).await.ok()?;
    reply.split(' ').nth(1)?.parse().ok()
}

/// More connections than there are places, each opened anew when it is closed.
#[tokio::test]
async fn connections_without_a_request_keep_no_probe_from_the_admin_listener() {
    let gateway = Gateway::start(&Rules::default());
    let mut floods = JoinSet::new();
    for number in 0..100 {
        let admin = gateway.admin;
        floods.spawn(async move {
            let head = "POST /sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\
                        Content-Type: application/x-www-form-urlencoded\r\n\r\n";
            let sent = ["", "GET /readyz HTTP/1.1\r\nX: ", head][number % 3];
            loop {
                let Ok(mut socket) = TcpStream::connect(admin).await else { continue };
                let _ = socket.write_all(sent.as_bytes()).await;
                let _ = socket.read_to_end(&mut Vec::new()).await;
            }
        });
    }
    for _ in 0..40 {
        // As a probe comes through a published port.
        let status = admin_status(&gateway, "GET /readyz HTTP/1.1\r\nHost: 10.1.2.3:8080\r\n\r\n").await;
        assert_eq!(status, Some(200));
    }
}

#[tokio::test]
async fn an_admin_token_is_asked_for() {
    let gateway = Gateway::start(&Rules::default().with("admin", "token = \"admin-hush-8Yz-long\""));
    let ask = |authorization: &str| {
        let host = gateway.admin;
        let request = format!("GET /api/rules HTTP/1.1\r\nHost: {host}\r\n{authorization}Connection: close\r\n\r\n");
        gateway.admin_request(&request).unwrap().0
    };
    assert_eq!(ask("Authorization: Bearer admin-hush-8Yz-long\r\n"), 200);
    for wrong in ["", "Authorization: Bearer x\r\n", "Authorization: Basic admin-hush-8Yz-long\r\n"] {
        assert_eq!(ask(wrong), 401, "{wrong}");
    }
}

#[tokio::test]
async fn silent_connections_leave_files_for_everything_else() {
    let mut gateway = Gateway::prepare(&Rules::default());
    gateway.open_files = Some(256);
    gateway.spawn();
    assert!(gateway.wait_ready(), "{}", gateway.log());
    let client = gateway.client();
    let mut kept = client.connect().await;
    kept.send(&Request::payin(&ACME, &payin("before"))).await.expect(200);
    let mut silent = Vec::new();
    for _ in 0..400 {
        silent.push(std::net::TcpStream::connect(gateway.public).unwrap());
    }
    eventually("connections over the limit", async || {
        let (_, metrics) = gateway.admin_get("/metrics")?;
        metrics.contains("connections_evicted_total{reason=\"unauthenticated\"}").then_some(())
    })
    .await;
    assert_eq!(gateway.admin_get("/healthz").expect("a file for a probe").0, 200);
    assert_eq!(gateway.admin_get("/readyz").expect("a file for a probe").0, 200);
    gateway.reload();
    kept.send(&Request::payin(&ACME, &payin("after"))).await.expect(200);
    let log = gateway.log();
    assert!(!log.contains("cannot accept") && !log.contains("cannot be accepted"), "{log}");
    assert_eq!(log.matches("fewer connections than configured").count(), 1, "{log}");
}

#[tokio::test]
async fn the_log_tells_when_and_where_it_serves() {
    let gateway = Gateway::start(&Rules::default());
    let (_, rules) = gateway.admin_get("/api/rules").unwrap();
    let rules: serde_json::Value = serde_json::from_str(&rules).unwrap();
    let version = support::text(&rules, "version");
    let stated =
        format!("ready public={} admin={} engine=embedded rules_version={version}\n", gateway.public, gateway.admin);
    eventually("the line", async || gateway.log().contains(&stated).then_some(())).await;
}

/// Runs `serve` on a directory where it cannot, and gives what it said.
fn fails_to_start(gateway: &Gateway) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_paybridge"))
        .args(["serve", "--rules"])
        .arg(gateway.rules_dir())
        .current_dir(gateway.root.path())
        .env_remove("RUST_LOG")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    eventually_blocking("it ends", || child.try_wait().unwrap().is_some());
    child.wait_with_output().unwrap()
}

/// Asserts exit 1 and one line that says what is wrong.
#[track_caller]
fn assert_one_line(output: &Output, about: &str) {
    let stated = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{stated}");
    let about_it: Vec<_> = stated.lines().filter(|line| line.contains(about)).collect();
    assert_eq!(about_it.len(), 1, "one line about {about}: {stated}");
    assert!(!stated.contains("panicked") && !stated.contains("RUST_BACKTRACE"), "{stated}");
    assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn what_stops_the_start_is_stated_in_one_line() {
    let gateway = Gateway::prepare(&Rules::default());
    for taken in [gateway.public, gateway.admin] {
        let holder = std::net::TcpListener::bind(taken).unwrap();
        assert_one_line(&fails_to_start(&gateway), &taken.to_string());
        drop(holder);
    }

    let missing = Gateway::prepare(&Rules::default());
    std::fs::remove_dir_all(missing.rules_dir()).unwrap();
    assert_one_line(&fails_to_start(&missing), &missing.rules_dir().display().to_string());

    let unreadable_key = Gateway::prepare(&Rules::default().with("tls", "generate = false"));
    write_file(&unreadable_key.root.path().join("certs/server.pem"), "no certificate\n");
    write_file(&unreadable_key.root.path().join("certs/server.key"), "no key\n");
    assert_one_line(&fails_to_start(&unreadable_key), "server.");

    let no_store = Gateway::prepare_on(&Rules::default(), None);
    write_file(&no_store.root.path().join("data/paybridge.db"), &"this is no database at all. ".repeat(400));
    assert_one_line(&fails_to_start(&no_store), "paybridge.db");

    let in_the_way = Gateway::prepare_on(&Rules::default(), None);
    write_file(&in_the_way.root.path().join("data"), "a file where a directory should be");
    assert_one_line(&fails_to_start(&in_the_way), "data");
}

#[tokio::test]
async fn a_store_without_its_key_is_not_served() {
    let mut gateway = Gateway::start(&Rules::default());
    Create::Payin.create(&gateway.client(), &ACME, &payin("sealed")).await;
    gateway.signal(Signal::TERM);
    gateway.wait();
    let key = gateway.root.path().join("secrets/store.key");
    let kept = std::fs::read_to_string(&key).unwrap();
    std::fs::remove_file(&key).unwrap();
    assert_one_line(&fails_to_start(&gateway), "store.key");
    assert!(!key.exists(), "no new key for an old store");
    write_file(&key, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n");
    let output = fails_to_start(&gateway);
    assert_eq!(output.status.code(), Some(1));
    write_file(&key, &kept);
    gateway.restart();
    gateway.client().send(&Request::v1_status(&ACME, "payin", "sealed")).await.expect(200);
}

#[tokio::test]
async fn a_new_page_secret_is_made_only_beside_a_store_without_operations() {
    let mut gateway =
        Gateway::start(&Rules::default().with("pages", "secret = \"a page secret, long enough for this\""));
    let key = gateway.root.path().join("secrets/pages.key");
    assert!(key.exists(), "there is one to fall back to when the rules name none any more");
    gateway.signal(Signal::TERM);
    gateway.wait();
    let named = std::fs::read_to_string(gateway.rules_dir().join("gateway.toml")).unwrap();
    let unnamed = named.replace("secret = \"a page secret, long enough for this\"", "");
    write_file(&gateway.rules_dir().join("gateway.toml"), &unnamed);
    gateway.restart();
    Create::Payin.create(&gateway.client(), &ACME, &payin("linked")).await;
    gateway.signal(Signal::TERM);
    gateway.wait();
    let kept = std::fs::read_to_string(&key).unwrap();
    std::fs::remove_file(&key).unwrap();
    let output = fails_to_start(&gateway);
    assert_one_line(&output, "pages.key");
    assert!(String::from_utf8_lossy(&output.stderr).contains("set pages.secret"));
    assert!(!key.exists(), "no new secret for old links");
    write_file(&key, &kept);
    gateway.restart();
}

#[tokio::test]
async fn a_new_store_is_reported_of_and_beside_an_old_key_warned_of() {
    let mut gateway = Gateway::start_on_file(&Rules::default());
    for _ in 0..2 {
        gateway.signal(Signal::TERM);
        gateway.wait();
        gateway.restart();
    }
    gateway.signal(Signal::TERM);
    gateway.wait();
    let log = gateway.log();
    assert_eq!(log.matches("made a new store at").count(), 1, "{log}");
    assert!(!log.contains("made a new, empty store"), "{log}");
    // The disk with the data was not mounted.
    std::fs::remove_dir_all(gateway.root.path().join("data")).unwrap();
    gateway.restart();
    gateway.signal(Signal::TERM);
    gateway.wait();
    let log = gateway.log();
    let warned = log.lines().filter(|line| line.contains("WARN") && line.contains("its key already existed")).count();
    assert_eq!(warned, 1, "{log}");
}

#[tokio::test]
async fn a_store_removed_under_the_process_acknowledges_nothing() {
    let gateway = Gateway::start_on_file(&Rules::default());
    let client = gateway.client();
    Create::Payin.create(&client, &ACME, &payin("before")).await;
    let data = gateway.root.path().join("data");
    let away = gateway.root.path().join("away");
    std::fs::rename(&data, &away).unwrap();
    for number in 0..3 {
        client.send(&Request::deposit(&ACME, &deposit(&format!("removed-{number}")))).await.expect(503);
    }
    eventually("not ready", async || gateway.admin_get("/readyz").filter(|(status, _)| *status == 503)).await;
    let log = gateway.log();
    let errors = log.lines().filter(|line| line.contains("ERROR")).count();
    assert_eq!(errors, 1, "one line for it: {log}");
    std::fs::rename(&away, &data).unwrap();
    eventually("ready", async || gateway.admin_get("/readyz").filter(|(status, _)| *status == 200)).await;
    Create::Payin.create(&client, &ACME, &payin("after")).await;
}

#[test]
fn broken_rules_are_all_named_at_start() {
    let rules = Rules::default().edit("shops/card-eur.toml", "currency = \"EUR\"", "currency = 7").edit(
        "merchants/acme.toml",
        "name = ",
        "nme = ",
    );
    let output = fails_to_start(&Gateway::prepare(&rules));
    let stated = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{stated}");
    assert!(stated.contains("card-eur.toml:1:") && stated.contains("acme.toml:1:"), "{stated}");
}

#[tokio::test]
async fn made_secrets_and_keys_are_for_the_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let gateway = Gateway::start_on_file(&Rules::default());
    for path in ["secrets/store.key", "certs/server.key", "certs/ca.key"] {
        let mode = std::fs::metadata(gateway.root.path().join(path)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{path}");
    }
}
