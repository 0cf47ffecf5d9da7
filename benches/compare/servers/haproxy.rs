//! `HAProxy`, only forwarding.

use std::process::Command;

use super::process::Process;
use super::{Running, Server, Setting, Started, free_address, tools};
use crate::workload::{Answers, Workload};

/// TLS in, plain HTTP/1.1 keep-alive out.
pub async fn start(setting: &Setting<'_>) -> Started {
    const NAME: &str = "haproxy";
    if !setting.wants(NAME, &[Workload::Create]) {
        return Started::NotWanted;
    }
    let Some(program) = tools::program(NAME) else { return Started::NotInstalled };
    let directory = setting.directory(NAME);
    let read = |name: &str| std::fs::read_to_string(setting.certs.join(name)).unwrap();
    std::fs::write(directory.join("server.both.pem"), read("server.pem") + &read("server.key")).unwrap();
    let address = free_address();
    let configuration = tools::written("haproxy.cfg")
        .replace("@DIR@", &directory.to_string_lossy())
        .replace("@LISTEN@", &address.to_string())
        .replace("@BACK@", &setting.back.to_string());
    let file = directory.join("haproxy.cfg");
    std::fs::write(&file, configuration).unwrap();
    let mut process = Process::start(Command::new(program).arg("-db").arg("-f").arg(file), &directory.join("log"));
    let target = setting.target(address);
    process.until_it_listens(NAME, &target).await;
    Started::Server(Box::new(Server {
        name: NAME,
        title: "HAProxy",
        what: "HAProxy, TLS pass-through, nothing stored",
        target,
        answers: Answers::Stub,
        workloads: setting.wanted(NAME, &[Workload::Create]),
        connections: true,
        running: Running::Processes(vec![process]),
    }))
}
