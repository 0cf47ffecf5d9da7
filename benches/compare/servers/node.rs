//! The service that most teams would write: Node and PostgreSQL.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::postgres;
use super::process::Process;
use super::{Running, Server, Setting, Started, free_address, tools};
use crate::common::gateway;
use crate::support::request::{ACME, ACME_NOWHERE, Key};
use crate::support::tools as installed;
use crate::workload::{Answers, Workload};

/// Both processes.
pub async fn start(setting: &Setting<'_>) -> Started {
    const NAME: &str = "node";
    if !setting.wants(NAME, &[Workload::Create]) {
        return Started::NotWanted;
    }
    let (Some(node), Some(bin)) = (tools::program(NAME), tools::postgres()) else { return Started::NotInstalled };
    let modules = installed::installed("target/compare/node/installed.json", "Node's modules", "benches/compare.sh");
    let Some(modules) = modules else { return Started::NotInstalled };
    let (database, socket) = postgres::start(&bin, &setting.directory("postgres")).await;
    let directory = setting.directory(NAME);
    // The shop's schema and its list of banks are the same as Paybridge's.
    gateway::rules().write(&directory, 0, 0);
    let address = free_address();
    let settings = json!({
        "port": address.port(), "modules": modules.parent().unwrap(), "socket": socket, "user": postgres::USER,
        "tables": tools::own("node/schema.sql"), "log": directory.join("access.log"),
        "certificate": setting.certs.join("server.pem"), "key": setting.certs.join("server.key"),
        "schema": directory.join("rules/shops/card-eur.payin.json"),
        "banks": directory.join("rules/lists/banks.txt"),
        "keys": [key(&ACME, &[["127.0.0.0", "8"]]), key(&ACME_NOWHERE, &[["203.0.113.0", "24"]])],
        "pageSecret": "page-hush", "publicUrl": format!("https://localhost:{}", address.port()),
    });
    let mut command = Command::new(node);
    command.arg(tools::own("node/server.mjs")).arg(file(&directory, "settings.json", &settings.to_string()));
    let mut process = Process::start(command.env("NODE_ENV", "production"), &directory.join("log"));
    let target = setting.target(address);
    process.until_it_listens("Node's service", &target).await;
    Started::Server(Box::new(Server {
        name: NAME,
        title: "Node + PostgreSQL",
        what: "Node + PostgreSQL, the whole job, durable",
        target,
        answers: Answers::Gateway,
        workloads: setting.wanted(NAME, &[Workload::Create]),
        connections: false,
        // Node ends first.
        running: Running::Processes(vec![process, database]),
    }))
}

fn key(key: &Key, networks: &[[&str; 2]]) -> serde_json::Value {
    let networks: Vec<_> =
        networks.iter().map(|[address, length]| json!([address, length.parse::<u8>().unwrap()])).collect();
    json!({ "name": key.name, "merchant": "acme", "v1": key.v1, "networks": networks, "perSecond": 1_000_000,
        "burst": 1_000_000 })
}

fn file(directory: &Path, name: &str, text: &str) -> std::path::PathBuf {
    let path = directory.join(name);
    std::fs::write(&path, text).unwrap();
    path
}
