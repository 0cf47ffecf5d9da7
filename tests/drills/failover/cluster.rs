//! Three PostgreSQL servers under Patroni, and the etcd that says which of them leads: on temporary directories and ports of
//! the loopback address, never as root, and never longer than the test process, however that ends.
//!
//! Every process of a member has its working directory below the member's: that is how they are found, whoever started
//! them. Patroni's PostgreSQL is nobody's child, so that it outlives Patroni.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::gateway::free_port;
use crate::support::postgres::{clean, humble_user, programs};
use crate::support::tools::{in_path, installed};

/// What installs the programs.
const INSTALLER: &str = "tests/drills/failover/run";

/// How long a leader that is silent keeps the lead, in seconds: Patroni allows no less.
pub const TTL: u64 = 20;

/// The members.
pub const MEMBERS: usize = 3;

const NAMES: [&str; MEMBERS] = ["one", "two", "three"];

/// Starts what it is told the directory of, and ends everything below `$1` when its standard input does. Only the test
/// process holds the other end of that pipe.
const GUARD: &str = r#"
directory=$1
end() {
    found=
    for process in /proc/[0-9]*; do
        case $(readlink "$process/cwd") in
            "$directory"/*) found=1; kill -KILL "${process#/proc/}" ;;
        esac
    done
    [ -n "$found" ]
}
while read -r name; do
    (cd "$directory/$name" && exec sh ./start </dev/null >>log 2>&1) &
done
while end; do sleep 0.05; done 2>/dev/null
rm -rf "$directory"
"#;

/// The servers.
pub struct Cluster {
    directory: PathBuf,
    psql: PathBuf,
    members: Vec<Member>,
    guard: Child,
}

struct Member {
    postgres: u16,
    /// Where Patroni tells what it is.
    patroni: u16,
}

impl Cluster {
    /// Starts etcd and the members, which choose a leader among them; `None` where a program is missing.
    pub fn start() -> Option<Self> {
        let etcd = in_path("etcd", INSTALLER)?;
        let patroni = installed("target/failover/bin/patroni", "Patroni", INSTALLER)?;
        let programs = programs()?;
        let directory = tempfile::Builder::new().prefix("paybridge-failover-").tempdir().unwrap().keep();
        let [clients, peers] = [free_port(), free_port()];
        write_start(&directory.join("etcd"), &etcd_line(&etcd, clients, peers));
        let members: Vec<_> = NAMES.iter().map(|_| Member { postgres: free_port(), patroni: free_port() }).collect();
        for (name, member) in NAMES.iter().zip(&members) {
            let place = directory.join(name);
            write_start(&place, &format!("exec '{}' patroni.json", patroni.display()));
            let settings = settings(name, member, clients, &place, &programs);
            fs::write(place.join("patroni.json"), settings.to_string()).unwrap();
        }
        own(&directory);
        let guard = guard(&directory);
        let mut cluster = Self { psql: programs.join("psql"), directory, members, guard };
        cluster.tell("etcd");
        (0..MEMBERS).for_each(|member| cluster.start_again(member));
        Some(cluster)
    }

    /// Where the database is, for clients: any of the members.
    pub fn url(&self, database: &str) -> String {
        let hosts: Vec<_> = self.members.iter().map(|member| format!("127.0.0.1:{}", member.postgres)).collect();
        format!("postgres://paybridge@{}/{database}?sslmode=disable", hosts.join(","))
    }

    /// Who leads: the one that takes writes and holds the lock.
    pub fn leader(&self) -> Option<usize> {
        (0..MEMBERS).find(|member| self.is(*member, "primary"))
    }

    /// Whether the leader has two members that follow it, and a commit waits for one of them. Patroni itself calls a member a
    /// replica before it knows whether it has to be rewound.
    pub fn is_whole(&self) -> bool {
        let following = "SELECT count(*), count(*) FILTER (WHERE sync_state = 'sync') FROM pg_stat_replication \
                         WHERE state = 'streaming' AND application_name IN ('one', 'two', 'three')";
        let is_sync = (0..MEMBERS).any(|member| self.is(member, "sync"));
        is_sync && self.leader().is_some() && self.try_sql("postgres", following).as_deref() == Some("2|1")
    }

    /// Kills every process of a member, as the end of its machine would.
    pub fn kill(&self, member: usize) {
        self.freeze(member);
        for process in self.processes(member) {
            // One that ended by itself meanwhile is as good.
            let _ = kill_process(process, Signal::KILL);
        }
    }

    /// Suspends every process of a member: its connections stay open, and nothing is answered on them.
    pub fn freeze(&self, member: usize) {
        // Whoever is suspended starts nothing more: what was started meanwhile is found the next time.
        for _ in 0..3 {
            for process in self.processes(member) {
                let _ = kill_process(process, Signal::STOP);
            }
        }
    }

    /// Lets a suspended member go on.
    pub fn thaw(&self, member: usize) {
        for process in self.processes(member) {
            let _ = kill_process(process, Signal::CONT);
        }
    }

    /// Starts a member that is not there.
    pub fn start_again(&mut self, member: usize) {
        self.tell(NAMES[member]);
    }

    /// Runs SQL at the leader, and gives what it prints: a line a row, `|` between columns.
    pub fn sql(&self, database: &str, sql: &str) -> String {
        self.try_sql(database, sql).unwrap_or_else(|| panic!("the leader does not answer {sql}"))
    }

    fn try_sql(&self, database: &str, sql: &str) -> Option<String> {
        let mut psql = clean(Command::new(&self.psql));
        let url = format!("{}&target_session_attrs=read-write", self.url(database));
        let stated = psql.args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-d", &url, "-c", sql]).output().unwrap();
        stated.status.success().then(|| String::from_utf8_lossy(&stated.stdout).trim_end().to_owned())
    }

    /// What a member logged last.
    pub fn log(&self, member: usize) -> String {
        let log = fs::read(self.directory.join(NAMES[member]).join("log")).unwrap_or_default();
        String::from_utf8_lossy(&log[log.len().saturating_sub(3000)..]).into_owned()
    }

    fn processes(&self, member: usize) -> Vec<Pid> {
        let place = self.directory.join(NAMES[member]);
        let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        let below = entries.filter(|entry| {
            fs::read_link(entry.path().join("cwd")).is_ok_and(|directory| directory.starts_with(&place))
        });
        below.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)).collect()
    }

    /// What a member's Patroni says of a role; one that is suspended says nothing.
    fn is(&self, member: usize, role: &str) -> bool {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.members[member].patroni));
        let ask = || {
            let mut socket = TcpStream::connect_timeout(&address, Duration::from_secs(1)).ok()?;
            socket.set_read_timeout(Some(Duration::from_secs(1))).ok()?;
            write!(socket, "GET /{role} HTTP/1.0\r\n\r\n").ok()?;
            let mut stated = String::new();
            socket.read_to_string(&mut stated).ok()?;
            Some(stated.split(' ').nth(1)? == "200")
        };
        ask().unwrap_or(false)
    }

    fn tell(&mut self, name: &str) {
        writeln!(self.guard.stdin.as_ref().unwrap(), "{name}").expect("the guard is there");
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for (member, name) in NAMES.iter().enumerate() {
                let _ = writeln!(std::io::stderr(), "--- member {name} ---\n{}", self.log(member));
            }
        }
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}

fn etcd_line(etcd: &Path, clients: u16, peers: u16) -> String {
    let (clients, peers) = (format!("http://127.0.0.1:{clients}"), format!("http://127.0.0.1:{peers}"));
    format!(
        "exec '{}' --name etcd --data-dir data --listen-client-urls {clients} --advertise-client-urls {clients} \
         --listen-peer-urls {peers} --initial-advertise-peer-urls {peers} --initial-cluster etcd={peers}",
        etcd.display()
    )
}

/// Patroni's settings: YAML, of which JSON is a part. A commit waits until a second machine has it, always. A leader that
/// comes back is copied anew: a directory that `pg_rewind` was interrupted in is not to be used, and the machine that it
/// reads from may die at any time here. A copy begins with a checkpoint, which takes minutes when it is not told to be fast.
fn settings(name: &str, member: &Member, etcd: u16, place: &Path, programs: &Path) -> serde_json::Value {
    let address = |port: u16| format!("127.0.0.1:{port}");
    let trusted = ["local all all trust", "host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"];
    serde_json::json!({
        "scope": "paybridge", "name": name,
        "restapi": { "listen": address(member.patroni), "connect_address": address(member.patroni) },
        "etcd3": { "hosts": address(etcd) },
        "bootstrap": {
            "dcs": {
                "ttl": TTL, "loop_wait": 2, "retry_timeout": 3,
                "synchronous_mode": true, "synchronous_mode_strict": true,
                "postgresql": { "use_pg_rewind": false, "parameters": { "max_connections": 100, "wal_retrieve_retry_interval": "500ms" } },
            },
            "initdb": [{ "encoding": "UTF8" }, { "locale": "C" }, "data-checksums"],
        },
        "postgresql": {
            "listen": address(member.postgres), "connect_address": address(member.postgres),
            "data_dir": place.join("data"), "bin_dir": programs, "pgpass": place.join("pgpass"),
            "pg_hba": trusted, "remove_data_directory_on_diverged_timelines": true,
            "parameters": { "unix_socket_directories": place },
            "basebackup": [{ "checkpoint": "fast" }],
            "authentication": {
                "superuser": { "username": "paybridge" }, "replication": { "username": "replicator" },
            },
        },
    })
}

fn write_start(place: &Path, line: &str) {
    fs::create_dir(place).unwrap();
    fs::write(place.join("start"), line).unwrap();
}

/// Gives the directories to the user that the servers run as.
fn own(directory: &Path) {
    let Some((user, group)) = humble_user() else { return };
    let places = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    for place in places.chain([directory.to_owned()]) {
        chown(place, Some(user), Some(group)).unwrap();
    }
}

/// In a process group of its own, so that a signal to the group of the tests (`^C`) leaves it time to clear up.
fn guard(directory: &Path) -> Child {
    let log = File::create(directory.join("log")).unwrap();
    let mut shell = clean(Command::new("sh"));
    shell.args(["-c", GUARD, "sh"]).arg(directory);
    if let Some((user, group)) = humble_user() {
        shell.uid(user).gid(group);
    }
    shell.current_dir("/").env("HOME", directory).process_group(0).stdin(Stdio::piped());
    shell.stdout(log.try_clone().unwrap()).stderr(log).spawn().expect("a shell starts")
}
