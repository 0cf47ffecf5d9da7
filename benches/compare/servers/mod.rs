//! The servers: how each is configured, started and stopped. All have the same certificate and run at once.

pub mod floor;
mod haproxy;
mod nginx;
mod node;
mod paybridge;
mod postgres;
mod process;
pub mod tls;
pub mod tools;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::common::gateway::Gateway;
use crate::common::load::Target;
use crate::common::{disk, gateway, pin, say};
use crate::options::Options;
use crate::support::gateway::free_port;
use crate::support::postgres::Database;
use crate::workload::{Answers, Workload};
use process::Process;

/// The server that all others are compared with.
pub const REFERENCE: &str = "nginx";

/// The name of the other Paybridge binary (`--baseline`).
pub const BASELINE: &str = "paybridge-before";

/// A running server.
pub struct Server {
    /// Its name in tables and options.
    pub name: &'static str,
    /// Its name in the picture.
    pub title: &'static str,
    /// What it is and does.
    pub what: &'static str,
    /// The target for the client.
    pub target: Target,
    /// The kind of its replies.
    pub answers: Answers,
    /// The workloads to measure.
    pub workloads: Vec<Workload>,
    /// Whether its handshakes and idle connections are measured too.
    pub connections: bool,
    running: Running,
}

/// The processes of a server. They end when this is dropped.
enum Running {
    Processes(Vec<Process>),
    /// With the database of its store, if that is no file.
    Gateway(Gateway, #[expect(dead_code, reason = "it lasts as long as the gateway")] Option<Database>),
}

impl Server {
    /// Returns the started processes, which may have children.
    pub fn pids(&self) -> Vec<u32> {
        match &self.running {
            Running::Processes(processes) => processes.iter().map(Process::pid).collect(),
            Running::Gateway(gateway, _) => vec![gateway.pid()],
        }
    }
}

/// All servers of a run.
pub struct Servers {
    /// In the order of the tables.
    pub all: Vec<Server>,
    /// The servers that are not installed.
    pub left_out: Vec<&'static str>,
    /// The path of `paybridge`.
    pub binary: PathBuf,
    /// The directory of all servers.
    pub root: PathBuf,
}

/// The settings that every server is started with.
struct Setting<'a> {
    root: &'a Path,
    certs: &'a Path,
    /// The plain stub.
    back: SocketAddr,
    options: &'a Options,
}

impl Setting<'_> {
    /// Creates a server's own directory.
    fn directory(&self, name: &str) -> PathBuf {
        let directory = self.root.join(name);
        std::fs::create_dir_all(&directory).unwrap();
        directory
    }

    fn target(&self, address: SocketAddr) -> Target {
        Target::new(address, &self.certs.join("ca.pem"))
    }

    /// Reports whether a server is selected, by its name or by that of one of its workloads.
    fn wants(&self, name: &str, workloads: &[Workload]) -> bool {
        let only = &self.options.only;
        let named = |word: &str| only.iter().any(|asked| asked == word);
        let always = name == REFERENCE && !self.options.alone;
        only.is_empty() || always || named(name) || workloads.iter().any(|workload| named(workload.name()))
    }

    /// Returns the selected workloads of a server.
    fn wanted(&self, name: &str, workloads: &[Workload]) -> Vec<Workload> {
        let only = &self.options.only;
        let named = |word: &str| only.iter().any(|asked| asked == word);
        let some = workloads.iter().any(|workload| named(workload.name()));
        let wanted = |workload: &&Workload| only.is_empty() || !some || named(workload.name()) || name == REFERENCE;
        workloads.iter().filter(wanted).copied().collect()
    }
}

/// Creates a directory on a real disk for all files of the servers. Other users can enter it: PostgreSQL does not run as
/// root.
pub fn directory(out: &Path) -> TempDir {
    let usable = |base: &Path| !disk::is_memory(base) && tools::others_may_enter(base);
    let base = [out, Path::new("/var/tmp")].into_iter().find(|base| usable(base)).unwrap_or(out);
    if disk::is_memory(base) {
        say("!! there is no disk here, only memory: durable writes cost nothing");
    }
    let base = base.canonicalize().unwrap();
    clear_away(&base);
    let name = format!("{RUN}{}-", std::process::id());
    let directory = tempfile::Builder::new().prefix(&name).tempdir_in(base).unwrap();
    tools::let_others_enter(directory.path());
    directory
}

/// The prefix of such directories' names, before the id of the process that created them.
const RUN: &str = "run-";

/// Removes the directories of runs that were killed.
fn clear_away(base: &Path) {
    for entry in std::fs::read_dir(base).unwrap().filter_map(Result::ok) {
        let name = entry.file_name().to_string_lossy().into_owned();
        let maker = name.strip_prefix(RUN).and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
        if maker.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

impl Servers {
    /// Starts the selected servers on the servers' core. The calling thread is on the client's core again afterwards.
    pub async fn start(options: &Options, root: &Path, back: SocketAddr, cores: pin::Cores) -> Self {
        let binary = gateway::binary();
        let certs = root.join("certs");
        let made = Command::new(&binary).args(["certs", "--dir"]).arg(&certs).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let setting = Setting { root, certs: &certs, back, options };
        let mut servers = Self { all: Vec::new(), left_out: Vec::new(), binary: binary.clone(), root: root.to_owned() };
        pin::to(cores.servers);
        servers.add("floor", start_floor(&setting).await);
        servers.add("nginx", nginx::pass(&setting).await);
        servers.add("haproxy", haproxy::start(&setting).await);
        servers.add("nginx-lua", nginx::lua(&setting).await);
        servers.add("node", node::start(&setting).await);
        servers.all.extend(paybridge::start(&setting, &binary, cores).await);
        pin::to(cores.client);
        servers
    }

    fn add(&mut self, name: &'static str, started: Started) {
        match started {
            Started::Server(server) => self.all.push(*server),
            Started::NotWanted => {}
            Started::NotInstalled => self.left_out.push(name),
        }
    }

    /// Returns the versions of the servers.
    pub fn versions(&self) -> Vec<(&'static str, String)> {
        let mut versions = vec![("paybridge", paybridge::version(&self.binary))];
        versions.extend(tools::versions());
        versions
    }
}

/// The outcome of starting a server.
enum Started {
    Server(Box<Server>),
    NotWanted,
    NotInstalled,
}

async fn start_floor(setting: &Setting<'_>) -> Started {
    if !setting.wants("floor", &[Workload::Create]) {
        return Started::NotWanted;
    }
    let address = free_address();
    let mut process = floor::start(address, setting.certs, &setting.directory("floor").join("log"));
    let target = setting.target(address);
    process.until_it_listens("the floor", &target).await;
    Started::Server(Box::new(Server {
        name: "floor",
        title: "bare hyper + rustls",
        what: "bare hyper + rustls, a static reply",
        target,
        answers: Answers::Stub,
        workloads: setting.wanted("floor", &[Workload::Create]),
        connections: true,
        running: Running::Processes(vec![process]),
    }))
}

/// Returns a free address on loopback.
fn free_address() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()))
}
