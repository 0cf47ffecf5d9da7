//! Two nodes behind `HAProxy`, restarted one after the other under load, as `docs/install.md` says and with the example's
//! configuration, but for its second attempts: no connection is refused, no request fails, and nothing is lost or doubled.
//! `PAYBRIDGE_LONG=1` goes on longer.
//!
//! Where `HAProxy` is not installed the drill says so and passes, unless `PAYBRIDGE_REQUIRE_TOOLS=1`.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::*;
use crate::support::gateway::{files_below, free_port};
use crate::support::load::Load;
use crate::support::tools;

const NAMES: [&str; 2] = ["one", "two"];

/// `HAProxy` before two gateways. It ends with the value, or with the test process.
struct Balancer {
    guard: Child,
    address: SocketAddr,
    directory: TempDir,
}

impl Balancer {
    /// Starts it with the configuration of the examples.
    fn start(program: &Path, port: u16, gateways: &[Gateway]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let example = std::fs::read_to_string(tools::root().join("examples/haproxy/haproxy.cfg")).unwrap();
        let replace = |text: String, (from, to): (&str, String)| {
            assert_eq!(text.matches(from).count(), 1, "{from}");
            text.replace(from, &to)
        };
        let servers = ["10.0.0.11:8443 port 9090", "10.0.0.12:8443 port 9090"].into_iter().zip(gateways);
        let servers =
            servers.map(|(named, gateway)| (named, format!("{} port {}", gateway.public, gateway.admin.port())));
        let own = [
            // Another attempt would hide that a gateway refused a connection.
            ("option redispatch 1", "retries 0".to_owned()),
            ("bind :8443", format!("bind 127.0.0.1:{port}")),
            ("stats socket /run/haproxy/admin.sock", format!("stats socket {}/admin.sock", directory.path().display())),
        ];
        let configuration = servers.chain(own).fold(example, replace);
        let file = directory.path().join("haproxy.cfg");
        std::fs::write(&file, configuration).unwrap();
        let mut guard = Command::new("sh");
        guard.args(["-c", "\"$0\" -db -f \"$1\" & read -r _; kill $!"]).arg(program).arg(&file);
        let guard = guard.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        Self { guard, address: (Ipv4Addr::LOCALHOST, port).into(), directory }
    }

    /// Waits until a gateway gets connections.
    async fn uses(&self, name: &str) {
        eventually("the balancer uses the gateway", async || (self.status(name)? == "UP").then_some(())).await;
    }

    /// Returns the status of a gateway as the balancer sees it.
    fn status(&self, name: &str) -> Option<String> {
        let mut socket = UnixStream::connect(self.directory.path().join("admin.sock")).ok()?;
        socket.write_all(b"show stat\n").ok()?;
        let mut table = String::new();
        socket.read_to_string(&mut table).ok()?;
        let mut lines = table.lines();
        let column = lines.next()?.split(',').position(|column| column == "status")?;
        let row = lines.find(|line| line.starts_with(&format!("gateways,{name},")))?;
        row.split(',').nth(column).map(str::to_owned)
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}

fn haproxy() -> Option<PathBuf> {
    let program = ["/usr/sbin/haproxy", "/usr/bin/haproxy"].map(PathBuf::from).into_iter().find(|at| at.is_file());
    program.or_else(|| tools::missing("HAProxy", ".ci/run postgresql"))
}

/// Two gateways with one certificate.
fn start_pair(database: &Arc<Database>, port: u16) -> Vec<Gateway> {
    let rules = Rules::default()
        .with("server", &format!("public_url = \"https://localhost:{port}\"\ndrain_delay = \"3s\""))
        .with("clients", "proxy_protocol = true\ntrusted_proxies = [\"127.0.0.1\"]");
    let mut gateways: Vec<_> = NAMES.map(|_| Gateway::prepare_on(&rules, Some(Arc::clone(database)))).into();
    for index in 0..NAMES.len() {
        if index > 0 {
            let [from, to] = [0, index].map(|of| gateways[of].root.path().join("certs"));
            std::fs::create_dir_all(&to).unwrap();
            for (path, bytes) in files_below(&from) {
                std::fs::write(to.join(path.file_name().unwrap()), bytes).unwrap();
            }
        }
        gateways[index].restart();
    }
    gateways
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_behind_a_balancer_are_rolled_and_no_request_fails() {
    let (Some(server), Some(program)) = (server(), haproxy()) else { return };
    let (database, port) = (Arc::new(server.database()), free_port());
    let mut gateways = start_pair(&database, port);
    let balancer = Balancer::start(&program, port, &gateways);
    for name in NAMES {
        balancer.uses(name).await;
    }
    let load = Load::start(Client::new(balancer.address, &gateways[0].root.path().join("certs/ca.pem")));
    let rounds = if std::env::var_os("PAYBRIDGE_LONG").is_some() { 10 } else { 1 };
    for _ in 0..rounds {
        for (name, gateway) in NAMES.iter().zip(&mut gateways) {
            load.goes_on().await;
            gateway.signal(Signal::TERM);
            tokio::task::block_in_place(|| {
                assert!(gateway.wait().success(), "{}", gateway.log());
                gateway.restart();
            });
            balancer.uses(name).await;
        }
    }
    let (created, repeated) = load.stop(&format!("two nodes rolled {rounds} times")).await;
    assert_eq!(repeated, 0, "clients had left every connection before it was closed");
    assert_eq!(database.sql("SELECT count(*) FROM operations"), created.to_string(), "rows and creates");
    gateways.iter().for_each(assert_clean);
}
