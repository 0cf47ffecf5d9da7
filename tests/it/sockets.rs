//! Sockets that the service manager passes: taken in place of binding, and open while the process restarts.

use std::fs::Permissions;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::load::Load;
use crate::support::request::ACME;
use crate::support::{Client, Gateway, Request, Rules, eventually, eventually_blocking, payin};

/// Starts the gateway as systemd does, with two sockets.
fn start(gateway: &Gateway, names: &str, sockets: [OwnedFd; 2]) -> Child {
    start_as(gateway, "$$", names, sockets)
}

fn start_as(gateway: &Gateway, pid: &str, names: &str, [first, second]: [OwnedFd; 2]) -> Child {
    let serve = gateway.command();
    let passed = format!(
        "exec 3<&0 4<&1 </dev/null >/dev/null; LISTEN_PID={pid} LISTEN_FDS=2 LISTEN_FDNAMES={names} exec \"$0\" \"$@\""
    );
    let mut shell = Command::new("sh");
    shell.args(["-c", &passed]).arg(serve.get_program()).args(serve.get_args()).current_dir(gateway.root.path());
    for name in ["PAYBRIDGE_RULES", "PAYBRIDGE_PAGE_SECRET", "NOTIFY_SOCKET", "WATCHDOG_USEC"] {
        shell.env_remove(name);
    }
    // Its standard error is read at its end alone.
    shell.env("RUST_LOG", "warn").stdin(first).stdout(second).stderr(Stdio::piped()).spawn().unwrap()
}

fn loopback() -> (SocketAddr, TcpListener) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    (listener.local_addr().unwrap(), listener)
}

fn copy(listener: &TcpListener) -> OwnedFd {
    listener.try_clone().unwrap().into()
}

fn end(mut child: Child) {
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    eventually_blocking("it ends", || child.try_wait().unwrap().is_some());
    assert!(child.wait_with_output().unwrap().status.success());
}

#[track_caller]
fn assert_fails(mut child: Child, reason: &str) {
    eventually_blocking("it ends", || child.try_wait().unwrap().is_some());
    let Output { status, stderr, .. } = child.wait_with_output().unwrap();
    let stated = String::from_utf8(stderr).unwrap();
    assert!(status.code() == Some(1) && stated.contains(reason), "{stated}");
}

#[tokio::test]
async fn connections_wait_while_the_process_restarts() {
    let mut gateway = Gateway::prepare(&Rules::default());
    let ((public, public_socket), (admin, admin_socket)) = (loopback(), loopback());
    let bound = gateway.public;
    gateway.admin = admin;
    let first = start(&gateway, "public:admin", [copy(&public_socket), copy(&admin_socket)]);
    let ready = async || gateway.admin_get("/readyz").filter(|(status, _)| *status == 200);
    eventually("ready", ready).await;
    assert!(TcpListener::bind(bound).is_ok(), "`server.listen` is not bound");
    let client = Client::new(public, &gateway.root.path().join("certs/ca.pem"));
    let create = || Request::payin(&ACME, &payin("waits"));
    client.send(&create()).await.expect(200);
    end(first);
    // Nothing accepts now, and nothing is refused.
    let waiting = tokio::spawn({
        let (client, create) = (client.clone(), create());
        async move { client.send(&create).await }
    });
    let again = start(&gateway, "public:admin", [copy(&public_socket), copy(&admin_socket)]);
    waiting.await.unwrap().expect(200);
    end(again);
}

/// Three restarts, 50 with `PAYBRIDGE_LONG=1`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restarts_under_load_refuse_no_connection() {
    let restarts = if std::env::var_os("PAYBRIDGE_LONG").is_some() { 50 } else { 3 };
    let mut gateway = Gateway::prepare_on(&Rules::default(), None);
    let ((public, public_socket), (admin, admin_socket)) = (loopback(), loopback());
    gateway.admin = admin;
    let start = || start(&gateway, "public:admin", [copy(&public_socket), copy(&admin_socket)]);
    let ready = async || gateway.admin_get("/readyz").filter(|(status, _)| *status == 200);
    let mut child = start();
    eventually("ready", ready).await;
    let client = Client::new(public, &gateway.root.path().join("certs/ca.pem"));
    let load = Load::start(client.clone());
    for _ in 0..restarts {
        load.goes_on().await;
        // The drain waits for its request as long as it waits for any.
        let mut idle = client.connect().await;
        tokio::task::block_in_place(|| end(child));
        idle.closed().await;
        child = start();
        eventually("ready", ready).await;
    }
    let (created, _) = load.stop(&format!("{restarts} restarts")).await;
    tokio::task::block_in_place(|| end(child));
    let file = rusqlite::Connection::open(gateway.root.path().join("data/paybridge.db")).unwrap();
    let stored: i64 = file.query_row("SELECT count(*) FROM operations", [], |row| row.get(0)).unwrap();
    assert_eq!(usize::try_from(stored), Ok(created), "rows and creates");
}

#[tokio::test]
async fn several_sockets_may_have_one_name_and_a_missing_one_is_bound() {
    let mut gateway = Gateway::prepare(&Rules::default());
    let ((one, one_socket), (two, two_socket)) = (loopback(), loopback());
    let child = start(&gateway, "public:public", [copy(&one_socket), copy(&two_socket)]);
    eventually("ready", async || gateway.admin_get("/readyz").filter(|(status, _)| *status == 200)).await;
    for (index, public) in [one, two, one, two].into_iter().enumerate() {
        let client = Client::new(public, &gateway.root.path().join("certs/ca.pem"));
        client.send(&Request::payin(&ACME, &payin(&format!("of-{index}")))).await.expect(200);
    }
    end(child);

    let path = gateway.root.path().join("passed.sock");
    let unix = UnixListener::bind(&path).unwrap();
    gateway.admin = two;
    let child = start(&gateway, "admin:admin", [unix.into(), copy(&two_socket)]);
    eventually("ready", async || gateway.admin_get("/readyz").filter(|(status, _)| *status == 200)).await;
    gateway.client().send(&Request::v1_status(&ACME, "payin", "of-0")).await.expect(200);
    assert!(std::os::unix::net::UnixStream::connect(&path).is_ok());
    end(child);
    assert!(path.exists(), "the file belongs to the service manager");
}

#[tokio::test]
async fn sockets_of_another_process_are_left_alone() {
    let gateway = Gateway::prepare(&Rules::default());
    let ((_, one), (_, two)) = (loopback(), loopback());
    let child = start_as(&gateway, "1", "public:admin", [copy(&one), copy(&two)]);
    eventually("ready", async || gateway.admin_get("/readyz").filter(|(status, _)| *status == 200)).await;
    end(child);
}

#[test]
fn what_cannot_be_served_stops_the_start() {
    let gateway = Gateway::prepare(&Rules::default());
    let two = || [copy(&loopback().1), copy(&loopback().1)];
    assert_fails(start(&gateway, "public:paybridge.socket", two()), "named `paybridge.socket`");
    assert_fails(start(&gateway, "public", two()), "named ``");
    let unix = UnixListener::bind(gateway.root.path().join("public.sock")).unwrap();
    assert_fails(start(&gateway, "public:admin", [unix.into(), copy(&loopback().1)]), "the socket `public`");
    let connected = std::net::TcpStream::connect(loopback_server()).unwrap();
    assert_fails(start(&gateway, "public:admin", [copy(&loopback().1), connected.into()]), "it does not listen");
    let path = gateway.root.path().join("admin.sock");
    let open = UnixListener::bind(&path).unwrap();
    std::fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
    assert_fails(
        start(&gateway, "public:admin", [copy(&loopback().1), open.into()]),
        "is open to other users of this machine",
    );

    let exposed = || copy(&TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap());
    let started = |rules: &Rules| {
        let gateway = Gateway::prepare(rules);
        (start(&gateway, "public:admin", [copy(&loopback().1), exposed()]), gateway)
    };
    let (child, _gateway) = started(&Rules::default());
    assert_fails(child, "is not on loopback: `admin.token` or an `[[admin.users]]` is required");
    let (child, _gateway) = started(&Rules::default().with("admin", "token = \"admin-hush-8Yz-long\""));
    assert_fails(child, "is not on loopback: `admin.tls = true`, or `admin.plain = true`, is required");
}

/// Returns the address of a listener that lives as long as the tests.
fn loopback_server() -> SocketAddr {
    let (address, listener) = loopback();
    std::mem::forget(listener);
    address
}

#[tokio::test]
async fn no_reload_opens_an_admin_socket_that_others_can_reach() {
    let rules = |user: &str| Rules::default().with("admin", "plain = true").with("admin", user);
    let user = "users = [{ name = \"ada\", role = \"operator\", token = \"admin-hush-8Yz-long\" }]";
    let mut gateway = Gateway::prepare(&rules(user));
    let admin = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    let file = gateway.admin.port();
    gateway.admin.set_port(admin.local_addr().unwrap().port());
    let child = start(&gateway, "public:admin", [copy(&loopback().1), copy(&admin)]);
    eventually("ready", async || gateway.admin_get("/readyz").filter(|(status, _)| *status == 200)).await;
    assert_eq!(gateway.admin_get("/api/rules").unwrap().0, 401);
    rules("").write(gateway.root.path(), gateway.public.port(), file);
    kill_process(Pid::from_child(&child), Signal::HUP).unwrap();
    let authorization = "Authorization: Bearer admin-hush-8Yz-long\r\n";
    let request = format!("GET /api/rules HTTP/1.1\r\nHost: localhost\r\n{authorization}Connection: close\r\n\r\n");
    let refused = async || gateway.admin_request(&request).filter(|(status, _)| *status == 401);
    eventually("the user is gone", refused).await;
    assert_eq!(gateway.admin_get("/api/rules").unwrap().0, 401, "and nobody took its place");
    end(child);
}
