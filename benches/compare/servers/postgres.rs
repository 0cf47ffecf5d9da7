//! PostgreSQL on its own directory, with default durability, reached by a Unix socket.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{Gid, Uid, chown};
use rustix::process::Signal;

use super::process::Process;
use super::tools;

/// The owner of the database.
pub const USER: &str = "postgres";

/// Creates a database in this directory and starts it; `bin` contains the programs. Also returns the socket's directory.
pub async fn start(bin: &Path, directory: &Path) -> (Process, PathBuf) {
    // A socket's path must be short.
    let socket = tempfile::Builder::new().prefix("pg-").tempdir_in("/tmp").unwrap();
    let data = directory.join("data");
    hand_over(directory);
    hand_over(socket.path());
    let mut initdb = humble(bin.join("initdb"), directory);
    initdb.args(["--auth=trust", "--encoding=UTF8", "--locale=C", "--username", USER, "--pgdata"]).arg(&data);
    let made = initdb.output().unwrap();
    assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
    let mut server = humble(bin.join("postgres"), directory);
    server.arg("-D").arg(&data);
    for setting in ["listen_addresses=", "fsync=on", "synchronous_commit=on", "max_connections=40", "max_wal_size=1GB"]
    {
        server.arg("-c").arg(setting);
    }
    server.arg("-c").arg(format!("unix_socket_directories={}", socket.path().display()));
    // SIGINT is its fast shutdown.
    let mut process = Process::start(&mut server, &directory.join("log")).ended_by(Signal::INT);
    let listening = socket.path().join(".s.PGSQL.5432");
    let ready = bin.join("pg_isready");
    process
        .until("PostgreSQL is ready", async || {
            let asked = Command::new(&ready).arg("-q").arg("-h").arg(socket.path()).status();
            listening.exists() && asked.is_ok_and(|status| status.success())
        })
        .await;
    let place = socket.path().to_owned();
    (process.keeping(socket), place)
}

/// Returns a command that runs as a user other than root.
fn humble(program: PathBuf, directory: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(directory);
    if tools::is_root() {
        let (user, group) = tools::humble_user();
        command.uid(user).gid(group);
    }
    command
}

fn hand_over(directory: &Path) {
    if tools::is_root() {
        let (user, group) = tools::humble_user();
        chown(directory, Some(Uid::from_raw(user)), Some(Gid::from_raw(group))).unwrap();
    }
}
