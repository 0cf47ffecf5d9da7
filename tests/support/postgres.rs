//! A real PostgreSQL server for tests: on a temporary directory and a port of the loopback address, never as root, and
//! never longer than the test process, however that ends. Where PostgreSQL is not installed what needs it says so and
//! passes, unless `PAYBRIDGE_REQUIRE_TOOLS=1`.
//!
//! It stands alone, so that the unit tests of the crate can include it as the black-box tests do. Processes are looked at
//! through `/proc`.
#![allow(dead_code, reason = "each test binary uses its part")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::time::Duration;

use rustix::fs::statvfs;
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::Instant;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// The room in `/dev/shm`, in bytes, that lets a server keep its files there.
const ROOM: u64 = 4 << 30;

/// The superuser of every server here.
const USER: &str = "paybridge";

/// What the servers have in common. Without `fsync` a commit is safe from the end of any process, not from the machine's.
/// Whole pages in the log are for torn writes of a machine that ends, and there is nothing to vacuum in databases that
/// live for seconds.
const SETTINGS: &[&str] = &[
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "fsync=off",
    "max_connections=400",
    "full_page_writes=off",
    "autovacuum=off",
    "max_wal_size=128MB",
    "log_checkpoints=off",
];

/// Starts and stops the server as lines of its standard input say. Only the test process holds the other end, so that the
/// pipe closes when that process ends, and with it go the server and the directory. `server.pid` is there while the server
/// should be.
///
/// A server that is told to end while it starts does not hear it, hence the loop; one that was suspended hears it once it
/// goes on. The shell collects the ended server while it waits for `sleep`, after which there is nobody to tell.
const GUARD: &str = r#"
directory=$1 programs=$2 user=$3
shift 3
server=
start() {
    [ -d data ] || "$programs/initdb" --pgdata=data --username="$user" --auth=trust --encoding=UTF8 --no-locale \
        --no-sync --no-instructions >/dev/null
    "$programs/postgres" -D data "$@" </dev/null &
    server=$!
    echo "$server" >server.pid
}
stop() {
    [ -n "$server" ] || return
    while kill -QUIT "$server" && kill -CONT "$server"; do sleep 0.02; done 2>/dev/null
    server=
    rm -f server.pid
}
while read -r word; do
    case $word in
        start) start "$@" ;;
        stop) stop ;;
    esac
done
stop
cd / && rm -rf "$directory"
"#;

/// The server that the tests of this process share, started by whoever asks first.
pub(crate) fn server() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    SERVER.get_or_init(|| Server::start(&[])).as_ref()
}

/// A PostgreSQL server.
pub(crate) struct Server {
    programs: PathBuf,
    directory: PathBuf,
    port: u16,
    guard: Child,
    /// While it should run.
    postmaster: Option<Pid>,
}

impl Server {
    /// One of its own, with more settings (`name=value`), which win over those that all have; it ends with the value.
    pub(crate) fn start(settings: &[&str]) -> Option<Self> {
        let programs = programs()?;
        // A port that was free may be taken by the time the server wants it.
        let started = (0..10).find_map(|_| Self::start_on(free_port(), &programs, settings));
        Some(started.expect("a port that stays free until the server has it"))
    }

    /// `None` when somebody else has the port.
    fn start_on(port: u16, programs: &Path, settings: &[&str]) -> Option<Self> {
        let directory = directory();
        let guard = guard(&directory, programs, port, settings);
        let mut server = Self { programs: programs.to_owned(), directory, port, guard, postmaster: None };
        server.runs().then_some(server)
    }

    /// A new empty database.
    pub(crate) fn database(&self) -> Database {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let name = format!("test_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        self.postgres().sql(&format!("CREATE DATABASE {name} TEMPLATE template0"));
        Database { place: self.place(&name) }
    }

    /// Ends it at once (`SIGQUIT`): connections break, and the next start recovers from the log.
    pub(crate) fn stop_at_once(&mut self) {
        self.tell("stop");
        let ended = soon(|| !self.pid_file().exists());
        assert!(ended, "PostgreSQL did not stop in time:\n{}", self.log());
        self.postmaster = None;
    }

    /// Suspends all of its processes: it still takes connections, as the system does that for it, and says nothing on any.
    pub(crate) fn freeze(&self) {
        let postmaster = self.postmaster.expect("running");
        // Suspended it starts no further process while the ones there are.
        kill_process(postmaster, Signal::STOP).unwrap();
        assert!(soon(|| state(postmaster) == Some('T')), "PostgreSQL could not be suspended");
        signal_all(&children(postmaster), Signal::STOP);
    }

    /// Lets it go on where it was.
    pub(crate) fn thaw(&self) {
        let postmaster = self.postmaster.expect("running");
        signal_all(&children(postmaster), Signal::CONT);
        kill_process(postmaster, Signal::CONT).unwrap();
    }

    /// Ends all of its processes by `SIGKILL`, as a crash would.
    pub(crate) fn kill(&mut self) {
        self.freeze();
        let postmaster = self.postmaster.expect("running");
        let children = children(postmaster);
        signal_all(&children, Signal::KILL);
        signal_all(&[postmaster], Signal::KILL);
        let ended = soon(|| children.iter().all(|process| has_ended(*process)));
        assert!(ended, "processes of PostgreSQL outlive SIGKILL");
        // The guard collects what is left of it.
        self.stop_at_once();
    }

    /// Starts it on the same directory and port, after it was stopped or killed.
    pub(crate) fn start_again(&mut self) {
        assert!(self.postmaster.is_none(), "still running");
        assert!(self.runs(), "port {} was taken while PostgreSQL was down", self.port);
    }

    /// How many connections clients have.
    pub(crate) fn backends(&self) -> usize {
        let others = "backend_type = 'client backend' AND pid <> pg_backend_pid()";
        self.postgres().sql(&format!("SELECT count(*) FROM pg_stat_activity WHERE {others}")).parse().unwrap()
    }

    /// What it logged so far.
    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.directory.join("log")).unwrap_or_default()).into_owned()
    }

    /// Starts it and waits until it takes connections; false when its port is not to be had.
    fn runs(&mut self) -> bool {
        self.tell("start");
        let pid = || fs::read_to_string(self.pid_file()).ok()?.strip_suffix('\n')?.parse().ok();
        assert!(soon(|| pid().is_some()), "PostgreSQL was not started in time:\n{}", self.log());
        let postmaster = pid().and_then(Pid::from_raw).unwrap();
        let settled = soon(|| self.is_ready(postmaster) || has_ended(postmaster));
        assert!(settled, "PostgreSQL was not ready in time:\n{}", self.log());
        let runs = !has_ended(postmaster);
        assert!(runs || !is_free(self.port), "PostgreSQL did not start:\n{}", self.log());
        self.postmaster = runs.then_some(postmaster);
        runs
    }

    /// Whether this very process says that it takes connections: others may listen there, and a killed one's file stays.
    fn is_ready(&self, postmaster: Pid) -> bool {
        let stated = fs::read_to_string(self.directory.join("data/postmaster.pid")).unwrap_or_default();
        let mut lines = stated.lines().map(str::trim);
        lines.next() == Some(&postmaster.to_string()) && lines.next_back() == Some("ready")
    }

    fn tell(&mut self, word: &str) {
        let reported = writeln!(self.guard.stdin.as_ref().unwrap(), "{word}");
        assert!(reported.is_ok(), "the guard of PostgreSQL is gone:\n{}", self.log());
    }

    fn pid_file(&self) -> PathBuf {
        self.directory.join("server.pid")
    }

    /// The database that is always there.
    fn postgres(&self) -> Place {
        self.place("postgres")
    }

    fn place(&self, database: &str) -> Place {
        Place { program: self.programs.join("psql"), port: self.port, database: database.to_owned() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        // Where it does not end in time it ends later.
        soon(|| !matches!(self.guard.try_wait(), Ok(None)));
    }
}

/// A database of a server, dropped with the value; it stays when a test fails, until the server ends.
pub(crate) struct Database {
    place: Place,
}

impl Database {
    /// Where it is, for clients.
    pub(crate) fn url(&self) -> String {
        self.place.url()
    }

    /// The program psql, on its way to this database.
    pub(crate) fn psql(&self) -> Command {
        self.place.psql()
    }

    /// Runs SQL, and gives what it prints: a line a row, `|` between columns.
    #[track_caller]
    pub(crate) fn sql(&self, sql: &str) -> String {
        self.place.sql(sql)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // The server may be gone already.
            let _ = Place { database: "postgres".to_owned(), ..self.place.clone() }
                .try_sql(&format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.place.database));
        }
    }
}

/// How to reach a database, whether its server runs or not.
#[derive(Clone)]
struct Place {
    program: PathBuf,
    port: u16,
    database: String,
}

impl Place {
    fn url(&self) -> String {
        format!("postgres://{USER}@127.0.0.1:{}/{}?sslmode=disable", self.port, self.database)
    }

    fn psql(&self) -> Command {
        let mut psql = clean(Command::new(&self.program));
        psql.args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-d", &self.url()]);
        psql
    }

    #[track_caller]
    fn sql(&self, sql: &str) -> String {
        self.try_sql(sql).unwrap_or_else(|stated| panic!("{sql}\n{stated}"))
    }

    /// What psql prints, or what it complains of. It reads and writes files, so that no full pipe can hold it up.
    fn try_sql(&self, sql: &str) -> Result<String, String> {
        let [input, output, errors] = [(); 3].map(|()| tempfile::tempfile().unwrap());
        (&input).write_all(sql.as_bytes()).unwrap();
        (&input).rewind().unwrap();
        let mut psql = self
            .psql()
            .args(["-f", "-"])
            .stdin(input)
            .stdout(output.try_clone().unwrap())
            .stderr(errors.try_clone().unwrap())
            .spawn()
            .expect("psql starts");
        let ended = soon(|| psql.try_wait().unwrap().is_some());
        if !ended {
            psql.kill().unwrap();
        }
        if psql.wait().unwrap().success() {
            let printed = text(output);
            Ok(printed.strip_suffix('\n').unwrap_or(&printed).to_owned())
        } else {
            Err(if ended { text(errors) } else { format!("psql did not end in time\n{}", text(errors)) })
        }
    }
}

/// Starts the shell that will start the server, in a process group of its own, so that a signal to the group of the tests
/// (`^C`) leaves it time to clear up.
fn guard(directory: &Path, programs: &Path, port: u16, settings: &[&str]) -> Child {
    let log = File::create(directory.join("log")).unwrap();
    let mut shell = clean(Command::new("sh"));
    shell.args(["-c", GUARD, "sh"]).arg(directory).arg(programs).arg(USER);
    for setting in SETTINGS.iter().chain(settings) {
        shell.args(["-c", setting]);
    }
    shell.arg("-c").arg(format!("port={port}"));
    if let Some((user, group)) = humble_user() {
        shell.uid(user).gid(group);
    }
    shell.current_dir(directory).process_group(0).stdin(Stdio::piped());
    shell.stdout(log.try_clone().unwrap()).stderr(log);
    let started = shell.spawn();
    started.unwrap_or_else(|error| panic!("no shell starts in {} as the server's user: {error}", directory.display()))
}

/// A new directory, the server's own, in memory where there is room: a database is three hundred files, which a file system on
/// a disk is slow to make and remove. The guard removes it.
fn directory() -> PathBuf {
    let memory = Path::new("/dev/shm");
    let roomy = statvfs(memory).is_ok_and(|found| found.f_bavail * found.f_frsize >= ROOM);
    let parent = if roomy { memory.to_owned() } else { std::env::temp_dir() };
    let directory = tempfile::Builder::new().prefix("paybridge-postgres-").tempdir_in(parent).unwrap().keep();
    if let Some((user, group)) = humble_user() {
        chown(&directory, Some(user), Some(group)).unwrap();
    }
    directory
}

/// Leaves out of a program's environment what would lead it to other servers, and sets its language and time zone (which
/// initdb would search for).
pub(crate) fn clean(mut command: Command) -> Command {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PG") {
            command.env_remove(name);
        }
    }
    command.env("LC_ALL", "C").env("TZ", "UTC").env("PGCONNECT_TIMEOUT", "10");
    command
}

/// The user and group that the server runs as when this process is root's, as whom it would refuse to: `postgres` where
/// Debian's package made it, else `nobody`.
pub(crate) fn humble_user() -> Option<(u32, u32)> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").unwrap();
    let ids = |name: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut ids = line.split(':').skip(2).map_while(|id| id.parse().ok());
        Some((ids.next()?, ids.next()?))
    };
    Some(ids("postgres").or_else(|| ids("nobody")).expect("a user who is not root"))
}

/// The directory of PostgreSQL's programs: the one that `PAYBRIDGE_POSTGRES` names, the newest of Debian's, or one of `PATH`.
pub(crate) fn programs() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("PAYBRIDGE_POSTGRES") {
        let named = fs::canonicalize(&named).unwrap_or_else(|error| panic!("{}: {error}", named.display()));
        assert!(named.join("initdb").is_file(), "{}: no PostgreSQL", named.display());
        return Some(named);
    }
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().filter_map(Result::ok);
    let version = |bin: &PathBuf| bin.parent()?.file_name()?.to_str()?.parse::<u32>().ok();
    let whole = |bin: &PathBuf| ["initdb", "postgres", "psql"].iter().all(|program| bin.join(program).is_file());
    let newest = versions.map(|entry| entry.path().join("bin")).filter(whole).max_by_key(version);
    let path = std::env::var_os("PATH").unwrap_or_default();
    newest.or_else(|| std::env::split_paths(&path).find(whole)).or_else(missing)
}

/// Reports whether the server speaks TLS: not all builds do. Says aloud that it does not.
pub(crate) fn has_tls(programs: &Path) -> bool {
    let program = fs::read(programs.join("postgres")).unwrap();
    let has_tls = memchr::memmem::find(&program, b"SSL is not supported by this build").is_none();
    if !has_tls {
        let line = "!! PostgreSQL: built without TLS, so that what needs it was NOT tested";
        let _ = writeln!(std::io::stderr(), "{line}");
    }
    has_tls
}

/// Says aloud, past the capture of the test's output, that PostgreSQL is missing; where nothing may be missing, fails.
fn missing<T>() -> Option<T> {
    let required = std::env::var_os("PAYBRIDGE_REQUIRE_TOOLS").is_some_and(|value| value == "1");
    assert!(!required, "PostgreSQL: not installed");
    let line = "!! PostgreSQL: not installed, so that what needs it was NOT tested (`.ci/run postgresql` installs it)";
    let _ = writeln!(std::io::stderr(), "{line}");
    None
}

/// A port that nobody listens on, outside the range from which outgoing connections take theirs, so that it stays free
/// while the server is down. Test processes that run at the same time begin far apart.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let start = u16::try_from(std::process::id() % 450).unwrap() * 10;
    let ports = std::iter::repeat_with(|| 61_000 + (start + NEXT.fetch_add(1, Ordering::Relaxed)) % 4_500);
    ports.take(4_500).find(|port| is_free(*port)).expect("a free port")
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// The state of a process (`T` suspended, `Z` ended but not collected) and its parent.
fn stat(process: Pid) -> Option<(char, i32)> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name before may hold anything.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

fn state(process: Pid) -> Option<char> {
    stat(process).map(|(state, _)| state)
}

fn has_ended(process: Pid) -> bool {
    matches!(state(process), None | Some('Z' | 'X'))
}

/// One that ended by itself meanwhile hears nothing, which is as good.
fn signal_all(processes: &[Pid], signal: Signal) {
    for process in processes {
        let _ = kill_process(*process, signal);
    }
}

fn children(parent: Pid) -> Vec<Pid> {
    let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let processes = entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
    processes.filter(|process| stat(*process).is_some_and(|(_, of)| of == parent.as_raw_pid())).collect()
}

/// Polls until the condition holds; false when it never did.
fn soon(mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

fn text(mut file: File) -> String {
    file.rewind().unwrap();
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}
