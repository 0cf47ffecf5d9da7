//! nginx: only forwarding, and with Lua doing the whole job.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::process::Process;
use super::{REFERENCE, Running, Server, Setting, Started, free_address, tools};
use crate::support::request::{ACME, ACME_NOWHERE};
use crate::workload::{Answers, Workload};

const LUA_WORKLOADS: [Workload; 3] = [Workload::Create, Workload::RefusedCreate, Workload::RefusedBody];

/// TLS in, plain HTTP/1.1 keep-alive out.
pub async fn pass(setting: &Setting<'_>) -> Started {
    let workloads = [Workload::Create];
    if !setting.wants(REFERENCE, &workloads) {
        return Started::NotWanted;
    }
    let Some(program) = tools::program("nginx") else { return Started::NotInstalled };
    let directory = setting.directory(REFERENCE);
    let address = free_address();
    let conf = configured("nginx/pass.conf", setting, &directory, address);
    let mut process = run(&program, &directory, &conf);
    let target = setting.target(address);
    process.until_it_listens("nginx", &target).await;
    Started::Server(Box::new(Server {
        name: REFERENCE,
        title: "nginx",
        what: "nginx, TLS pass-through, nothing stored",
        target,
        answers: Answers::Stub,
        workloads: workloads.to_vec(),
        connections: true,
        running: Running::Processes(vec![process]),
    }))
}

/// The gateway's job in Lua.
pub async fn lua(setting: &Setting<'_>) -> Started {
    const NAME: &str = "nginx-lua";
    if !setting.wants(NAME, &LUA_WORKLOADS) {
        return Started::NotWanted;
    }
    let Some(program) = tools::program("nginx") else { return Started::NotInstalled };
    let modules = modules(&program);
    let Some(_) = tools::file(modules.join("ngx_http_lua_module.so"), "nginx's Lua module") else {
        return Started::NotInstalled;
    };
    let directory = setting.directory(NAME);
    let lua = directory.join("lua");
    std::fs::create_dir_all(&lua).unwrap();
    std::fs::write(lua.join("gateway.lua"), gateway()).unwrap();
    let address = free_address();
    let conf = configured("nginx/lua.conf", setting, &directory, address)
        .replace("@MODULES@", &modules.to_string_lossy())
        .replace("@LUA@", &lua.to_string_lossy());
    let mut process = run(&program, &directory, &conf);
    let target = setting.target(address);
    process.until_it_listens("nginx with Lua", &target).await;
    Started::Server(Box::new(Server {
        name: NAME,
        title: "nginx + Lua",
        what: "nginx + Lua, the whole v1 to v2 job, nothing stored",
        target,
        answers: Answers::Gateway,
        workloads: setting.wanted(NAME, &LUA_WORKLOADS),
        connections: false,
        running: Running::Processes(vec![process]),
    }))
}

fn configured(file: &str, setting: &Setting<'_>, directory: &Path, address: SocketAddr) -> String {
    // Workers of a root's nginx would run as a user that cannot enter the directory.
    let user = if tools::is_root() { "user root;" } else { "" };
    tools::written(file)
        .replace("@USER@", user)
        .replace("@DIR@", &directory.to_string_lossy())
        .replace("@CERTS@", &setting.certs.to_string_lossy())
        .replace("@LISTEN@", &address.to_string())
        .replace("@BACK@", &setting.back.to_string())
}

fn gateway() -> String {
    let secret = |secret: Option<&'static str>| secret.unwrap();
    tools::written("nginx/gateway.lua")
        .replace("@KEY@", ACME.name)
        .replace("@V1@", secret(ACME.v1))
        .replace("@V2@", secret(ACME.v2))
        .replace("@FAR_KEY@", ACME_NOWHERE.name)
        .replace("@FAR_V1@", secret(ACME_NOWHERE.v1))
        .replace("@FAR_V2@", secret(ACME_NOWHERE.v2))
}

fn run(program: &Path, directory: &Path, conf: &str) -> Process {
    let file = directory.join("nginx.conf");
    std::fs::write(&file, conf).unwrap();
    let mut command = Command::new(program);
    command.arg("-p").arg(directory).arg("-e").arg(directory.join("error.log")).arg("-c").arg(file);
    Process::start(&mut command, &directory.join("log"))
}

/// Returns the directory of this nginx's modules.
fn modules(program: &Path) -> PathBuf {
    let output = Command::new(program).arg("-V").output().unwrap();
    let stated = String::from_utf8_lossy(&output.stderr).into_owned();
    let named = stated.split(' ').find_map(|word| word.trim().strip_prefix("--modules-path="));
    named.map_or_else(|| PathBuf::from("/usr/lib/nginx/modules"), PathBuf::from)
}
