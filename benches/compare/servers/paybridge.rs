//! Paybridge: with its own engine and store, and in front of a remote engine.

use std::path::Path;
use std::sync::OnceLock;

use super::{BASELINE, Running, Server, Setting};
use crate::common::gateway::{self, Gateway};
use crate::common::machine::first_line;
use crate::common::pin;
use crate::stub;
use crate::support::Rules;
use crate::support::gateway::{on_postgres, put_store};
use crate::support::postgres::{self, Database};
use crate::workload::{Answers, Workload};

const OWN: [Workload; 8] = [
    Workload::Create,
    Workload::RandomCreate,
    Workload::Repeat,
    Workload::Status,
    Workload::RefusedQuestion,
    Workload::RefusedCreate,
    Workload::RefusedBody,
    Workload::NativeCreate,
];
const REMOTE: [Workload; 2] = [Workload::Create, Workload::NativeCreate];

/// The name of the measured Paybridge.
pub const NAME: &str = "paybridge";

/// Returns the version that the binary prints.
pub fn version(binary: &Path) -> String {
    first_line(&binary.to_string_lossy(), &["--version"])
}

/// Returns rules with the certificate that every server has.
fn rules(setting: &Setting<'_>) -> Rules {
    let file = |name: &str| setting.certs.join(name).display().to_string();
    let pair = format!("generate = false\ncertificate = \"{}\"\nkey = \"{}\"", file("server.pem"), file("server.key"));
    gateway::rules().with("tls", &pair)
}

/// Returns a new database if `PAYBRIDGE_TEST_STORE=postgres` is set.
fn database() -> Option<Database> {
    static SERVER: OnceLock<Option<postgres::Server>> = OnceLock::new();
    let server = || postgres::Server::start(&["fsync=on"]);
    on_postgres().then(|| SERVER.get_or_init(server).as_ref().expect("PostgreSQL is installed").database())
}

/// Starts the selected ones; each process's log is in a file.
pub async fn start(setting: &Setting<'_>, binary: &Path, cores: pin::Cores) -> Vec<Server> {
    let mut servers = Vec::new();
    let mut add = |[name, title, what]: [&'static str; 3], program: &Path, rules: &Rules, workloads: &[Workload]| {
        if !setting.wants(name, workloads) {
            return;
        }
        let (root, database) = (setting.root.join(name), database());
        if let Some(database) = &database {
            put_store(&root, &database.url());
        }
        let gateway = Gateway::start(program, rules, &root);
        servers.push(Server {
            name,
            title,
            what,
            target: setting.target(gateway.public),
            answers: Answers::Gateway,
            workloads: setting.wanted(name, workloads),
            connections: name == NAME,
            running: Running::Gateway(gateway, database),
        });
    };
    let what = ["Paybridge, the whole job, durable in SQLite", "Paybridge, the whole job, durable in PostgreSQL"];
    let itself = [NAME, "Paybridge", what[usize::from(on_postgres())]];
    add(itself, binary, &rules(setting), &OWN);
    if let Some(before) = &setting.options.baseline {
        add([BASELINE, "the other Paybridge", "the other binary"], before, &rules(setting), &OWN);
    }
    // The engines run on the client's core.
    pin::to(cores.client);
    let http2 = stub::start_engine(setting.certs, &["h2", "http/1.1"]).await;
    let http1 = stub::start_engine(setting.certs, &["http/1.1"]).await;
    pin::to(cores.servers);
    for (names, engine) in [
        (["paybridge-remote", "Paybridge + engine, h2", "Paybridge before a remote engine, HTTP/2"], http2),
        (["paybridge-remote-h1", "Paybridge + engine, h1", "Paybridge before a remote engine, HTTP/1.1"], http1),
    ] {
        let trust = setting.certs.join("ca.pem");
        let engine = format!("url = \"https://localhost:{}\"\ntrust = [\"{}\"]", engine.port(), trust.display());
        add(names, binary, &rules(setting).with("engine", &engine), &REMOTE);
    }
    servers
}
