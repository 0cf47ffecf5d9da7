//! A gateway process on free ports, in a directory of its own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::time::Instant;

use super::client::Client;
use super::postgres::Database;
use super::rules::{Rules, STORE_URL, write_file};

/// 32 bytes in base64.
const KEY: &str = "cGF5YnJpZGdlLXRlc3RzLWhhdmUtdGhpcy1rZXktMzI=";

const PATIENCE: Duration = Duration::from_mins(1);

/// A directory with rules, store, keys and certificates, and the process that serves it.
pub struct Gateway {
    /// The release that runs.
    pub program: PathBuf,
    /// Holds `rules/`, `data/`, `secrets/` and `certs/`.
    pub root: TempDir,
    /// The TLS listener.
    pub public: SocketAddr,
    /// The admin listener.
    pub admin: SocketAddr,
    /// How many files the process may have open, when not as many as the tests.
    pub open_files: Option<u32>,
    /// What the process finds in its environment besides.
    pub environment: Vec<(String, String)>,
    /// Where the store is, when it is no file below `root`.
    pub database: Option<Arc<Database>>,
    process: Option<Process>,
    log: Arc<Mutex<Vec<u8>>>,
}

/// Whether gateways keep their stores in PostgreSQL: `PAYBRIDGE_TEST_STORE=postgres`.
pub fn on_postgres() -> bool {
    std::env::var_os("PAYBRIDGE_TEST_STORE").is_some_and(|store| store == "postgres")
}

struct Process {
    child: Child,
    readers: Vec<JoinHandle<()>>,
}

impl Gateway {
    /// A ready gateway with these rules.
    #[track_caller]
    pub fn start(rules: &Rules) -> Self {
        Self::start_as(|| Self::prepare(rules))
    }

    /// A ready gateway whose store is a file, whatever the others' are: for what only files have.
    #[track_caller]
    pub fn start_on_file(rules: &Rules) -> Self {
        Self::start_as(|| Self::prepare_on(rules, None))
    }

    #[track_caller]
    fn start_as(prepare: impl Fn() -> Self) -> Self {
        // Another process may take a port between the choice and the bind.
        for _ in 0..3 {
            let mut gateway = prepare();
            gateway.spawn();
            if gateway.wait_ready() {
                return gateway;
            }
            let log = gateway.log();
            assert!(log.contains("in use"), "the gateway did not start:\n{log}");
        }
        panic!("no free ports");
    }

    /// The directory of a gateway that was not started yet.
    pub fn prepare(rules: &Rules) -> Self {
        let database = on_postgres().then(|| {
            let server = super::postgres::server().expect("PAYBRIDGE_TEST_STORE=postgres needs PostgreSQL");
            Arc::new(server.database())
        });
        Self::prepare_on(rules, database)
    }

    /// The directory of a gateway with its store in a database, or in a file of its own.
    pub fn prepare_on(rules: &Rules, database: Option<Arc<Database>>) -> Self {
        let url = database.as_ref().map(|database| database.url());
        let mut gateway = Self::prepare_at(rules, url.as_deref());
        gateway.database = database;
        gateway
    }

    /// The directory of a gateway with its store at this URL, or in a file of its own.
    pub fn prepare_at(rules: &Rules, store: Option<&str>) -> Self {
        let root = tempfile::tempdir().unwrap();
        if let Some(url) = store {
            put_store(root.path(), url);
        }
        let [public, admin] = [free_port(), free_port()];
        rules.write(root.path(), public, admin);
        let address = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let log = Arc::default();
        Self {
            program: env!("CARGO_BIN_EXE_paybridge").into(),
            root,
            public: address(public),
            admin: address(admin),
            open_files: None,
            environment: Vec::new(),
            database: None,
            process: None,
            log,
        }
    }

    /// The rules directory.
    pub fn rules_dir(&self) -> PathBuf {
        self.root.path().join("rules")
    }

    /// What starts the process.
    pub fn command(&self) -> Command {
        let mut command = match self.open_files {
            None => Command::new(&self.program),
            Some(count) => {
                let mut shell = Command::new("sh");
                shell.args(["-c", &format!("ulimit -n {count}; exec \"$0\" \"$@\"")]).arg(&self.program);
                shell
            }
        };
        command.args(["serve", "--rules"]).arg(self.rules_dir()).current_dir(self.root.path()).stdin(Stdio::null());
        for name in ["PAYBRIDGE_RULES", "PAYBRIDGE_PAGE_SECRET", "RUST_LOG", "NOTIFY_SOCKET", "WATCHDOG_USEC"] {
            command.env_remove(name);
        }
        command
    }

    /// What `paybridge store check` says of the store, beside the process or after it.
    pub fn store_check(&self) -> Output {
        self.store_command("check").output().unwrap()
    }

    /// What starts `paybridge store` with one of its commands, on the same rules.
    pub fn store_command(&self, command: &str) -> Command {
        let mut started = Command::new(&self.program);
        started.args(["store", command, "--rules"]).arg(self.rules_dir()).current_dir(self.root.path());
        started.env_remove("PAYBRIDGE_RULES").stdin(Stdio::null());
        started
    }

    /// Starts the process on the directory as it is.
    pub fn spawn(&mut self) {
        let mut child = self
            .command()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .env("RUST_LOG", "debug,h2=info,hyper=info,rustls=info")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let readers = vec![
            capture(child.stdout.take().unwrap(), self.log.clone()),
            capture(child.stderr.take().unwrap(), self.log.clone()),
        ];
        self.process = Some(Process { child, readers });
    }

    /// Starts it again after it ended, on the same directory and ports, and waits until it is ready.
    #[track_caller]
    pub fn restart(&mut self) {
        assert!(self.process.is_none(), "still running");
        self.spawn();
        assert!(self.wait_ready(), "the gateway did not start again:\n{}", self.log());
    }

    /// Polls `/readyz`; false when the process ended instead.
    pub fn wait_ready(&mut self) -> bool {
        let deadline = Instant::now() + PATIENCE;
        while self.admin_get("/readyz").is_none_or(|(status, _)| status != 200) {
            let child = &mut self.process.as_mut().unwrap().child;
            if child.try_wait().unwrap().is_some() {
                self.reap();
                return false;
            }
            assert!(Instant::now() < deadline, "not ready in time:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
        true
    }

    /// Kills the process without a word.
    pub fn kill(&mut self) {
        self.process.as_mut().expect("running").child.kill().unwrap();
        self.reap();
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// The process.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.process.as_ref().expect("running").child)
    }

    /// Waits for the end of the process.
    #[track_caller]
    pub fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        while self.process.as_mut().expect("running").child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < deadline, "did not end in time:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
        self.reap()
    }

    fn reap(&mut self) -> ExitStatus {
        let mut process = self.process.take().unwrap();
        let status = process.child.wait().unwrap();
        process.readers.into_iter().for_each(|reader| reader.join().unwrap());
        status
    }

    /// A client of the public listener, which trusts the CA that the gateway made.
    pub fn client(&self) -> Client {
        Client::new(self.public, &self.root.path().join("certs/ca.pem"))
    }

    /// Everything written to stdout and stderr so far.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&self.log.lock().unwrap()).into_owned()
    }

    /// Asks the admin listener: status and body; `None` when there was no reply.
    pub fn admin_get(&self, path: &str) -> Option<(u16, String)> {
        self.admin_request(&format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.admin))
    }

    /// Sends a whole request to the admin listener.
    pub fn admin_request(&self, request: &str) -> Option<(u16, String)> {
        let (status, _, body) = admin_reply(self.admin, request)?;
        Some((status, body))
    }

    /// Sends a whole request to the admin listener: the `Location` of the reply.
    pub fn admin_head(&self, request: &str) -> Option<String> {
        admin_reply(self.admin, request)?.1
    }

    /// Sends a form of the console, with a session's `Cookie` or none: status and body.
    #[track_caller]
    pub fn console_post(&self, path: &str, cookie: &str, form: &str) -> (u16, String) {
        let (status, _, body) = self.console_reply(path, cookie, form);
        (status, body)
    }

    /// Sends a form of the console that acts: the address of the page with the outcome.
    #[track_caller]
    pub fn console_act(&self, path: &str, form: &str) -> String {
        let (status, location, body) = self.console_reply(path, "", form);
        assert!(status == 303 && body.is_empty(), "{path}: {status} {body}");
        location.unwrap()
    }

    #[track_caller]
    fn console_reply(&self, path: &str, cookie: &str, form: &str) -> (u16, Option<String>, String) {
        let (host, length) = (self.admin, form.len());
        let cookie = if cookie.is_empty() { String::new() } else { format!("Cookie: {cookie}\r\n") };
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\n{cookie}Connection: close\r\n\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {length}\r\n\r\n{form}"
        );
        admin_reply(self.admin, &head).expect("a reply")
    }

    /// Has the rules loaded now: status and body.
    #[track_caller]
    pub fn try_reload(&self) -> (u16, String) {
        let head = format!("POST /api/rules/reload HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.admin);
        self.admin_request(&head).expect("a reply")
    }

    /// Has the rules loaded, which must be good.
    #[track_caller]
    pub fn reload(&self) {
        let (status, body) = self.try_reload();
        assert_eq!(status, 200, "{body}");
    }

    /// Writes the whole directory of rules anew and has it loaded.
    #[track_caller]
    pub fn reload_with(&self, rules: &Rules) {
        rules.write(self.root.path(), self.public.port(), self.admin.port());
        self.reload();
    }

    /// Runs a statement on the store behind the gateway's back.
    pub fn tamper(&self, sql: &str) {
        match &self.database {
            None => {
                let file = self.root.path().join("data/paybridge.db");
                rusqlite::Connection::open(file).unwrap().execute_batch(sql).unwrap();
            }
            Some(database) => drop(database.sql(sql)),
        }
    }

    /// The rows of the audit trail, oldest first: user, action, target, parameters and outcome of each.
    pub fn actions(&self) -> Vec<String> {
        const ROWS: &str = "SELECT user_name || ' ' || action || ' ' || target || ' ' || parameters || ' ' || \
            coalesce(outcome, 'unfinished') FROM actions ORDER BY id";
        match &self.database {
            None => {
                let connection = rusqlite::Connection::open(self.root.path().join("data/paybridge.db")).unwrap();
                let mut rows = connection.prepare(ROWS).unwrap();
                rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
            }
            Some(database) => database.sql(ROWS).lines().map(str::to_owned).collect(),
        }
    }

    /// The files of the store, with their contents.
    pub fn store_files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        match &self.database {
            None => files_below(&self.root.path().join("data")),
            Some(database) => {
                // What is still in memory alone is of no use to anyone.
                database.sql("CHECKPOINT");
                files_below(Path::new(&database.sql("SHOW data_directory")))
            }
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            let _ = process.child.kill();
            let _ = process.child.wait();
        }
        if std::thread::panicking() {
            let log = self.log();
            let tail = log.char_indices().rev().nth(4000).map_or(0, |(at, _)| at);
            let _ = writeln!(std::io::stderr(), "--- the gateway's last words ---\n{}", &log[tail..]);
        }
    }
}

/// Sends a whole request to an admin listener: status, `Location` and body, or `None` if it is not there.
pub fn admin_reply(admin: SocketAddr, request: &str) -> Option<(u16, Option<String>, String)> {
    let mut socket = TcpStream::connect(admin).ok()?;
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.write_all(request.as_bytes()).ok()?;
    let mut reply = String::new();
    socket.read_to_string(&mut reply).ok()?;
    let (head, body) = reply.split_once("\r\n\r\n")?;
    let location = head.lines().find_map(|line| line.strip_prefix("Location: "));
    Some((head.split(' ').nth(1)?.parse().ok()?, location.map(str::to_owned), body.to_owned()))
}

/// Writes the URL of the store's database where the rules find it, and the keys: several nodes have the same, so that none of
/// them makes one.
pub fn put_store(root: &Path, url: &str) {
    write_file(&root.join(STORE_URL), url);
    put_keys(root);
}

/// Writes the keys that every test has, in place of those that a gateway would make.
pub fn put_keys(root: &Path) {
    for name in ["store.key", "pages.key"] {
        write_file(&root.join("secrets").join(name), KEY);
    }
}

/// Every file below a directory.
pub fn files_below(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    // A database's files and directories come and go.
    for entry in std::fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok) {
        let path = entry.path();
        if path.is_dir() {
            files.extend(files_below(&path));
        } else {
            files.extend(std::fs::read(&path).ok().map(|bytes| (path, bytes)));
        }
    }
    files
}

fn capture(pipe: impl Read + Send + 'static, log: Arc<Mutex<Vec<u8>>>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut lines = BufReader::new(pipe);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
            log.lock().unwrap().append(&mut line);
        }
    })
}

/// A port without a listener, outside the range from which outgoing connections take theirs. Test processes that run at the
/// same time mostly begin at other eighths of the range, so that none takes another's gateway for its own.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let start = u16::try_from(std::process::id() % 8).unwrap() * 2500;
    loop {
        let port = 11_000 + (start + NEXT.fetch_add(1, Ordering::Relaxed)) % 20_000;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}
