//! The PostgreSQL server that other tests stand on: it makes databases, survives a crash, and never outlives whoever
//! started it.

use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support::eventually_blocking;
use crate::support::postgres::{self, Database, Server};

/// Where the process that is to be killed says which server it started.
const PLACE: &str = "PAYBRIDGE_TEST_PLACE";

#[test]
fn databases_are_apart_and_go_with_their_values() {
    let Some(server) = postgres::server() else { return };
    let (one, other) = (server.database(), server.database());
    assert_ne!(one.url(), other.url());
    one.sql("CREATE TABLE kept (id bigint); INSERT INTO kept VALUES (1), (2)");
    assert_eq!(one.sql("SELECT id, id * 2 FROM kept ORDER BY id"), "1|2\n2|4");
    assert_eq!(other.sql("SELECT to_regclass('kept') IS NULL"), "t");
    let name = one.sql("SELECT current_database()");
    drop(one);
    assert_eq!(other.sql(&format!("SELECT count(*) FROM pg_database WHERE datname = '{name}'")), "0");
}

#[test]
#[should_panic(expected = "relation \"nowhere\" does not exist")]
fn sql_that_fails_panics_in_the_words_of_psql() {
    let Some(server) = postgres::server() else { panic!("relation \"nowhere\" does not exist, nor does PostgreSQL") };
    server.database().sql("SELECT 1; SELECT * FROM nowhere; SELECT 2");
}

#[test]
fn committed_rows_survive_a_crash_and_an_end_at_once() {
    let Some(mut server) = Server::start(&["max_connections=50"]) else { return };
    let database = server.database();
    assert_eq!(database.sql("SHOW max_connections"), "50", "the settings of the caller win");
    database.sql("CREATE TABLE kept (id bigint)");
    let ends: [fn(&mut Server); 2] = [Server::kill, Server::stop_at_once];
    for (rows, end) in ends.into_iter().enumerate() {
        database.sql("INSERT INTO kept VALUES (1)");
        let mut busy = busy_client(&database);
        eventually_blocking("a connection", || server.backends() == 1);
        end(&mut server);
        assert!(!busy.wait().unwrap().success(), "its connection broke");
        assert!(!is_open(port(&database.url())), "nobody listens");
        server.start_again();
        assert_eq!(database.sql("SELECT count(*) FROM kept"), (rows + 1).to_string());
        assert_eq!(server.backends(), 0);
    }
}

#[test]
fn no_server_outlives_the_process_that_started_it() {
    if postgres::server().is_none() {
        return;
    }
    let stated = tempfile::tempdir().unwrap();
    let stated = stated.path().join("said");
    let mut starter = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "--ignored",
            concat!(module_path!(), "::starts_a_server_and_waits_to_be_killed").trim_start_matches("it::"),
        ])
        .env(PLACE, &stated)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let read = || std::fs::read_to_string(&stated).unwrap_or_default();
    eventually_blocking("a server", || read().ends_with('\n'));
    let stated = read();
    let (url, data) = stated.trim().split_once(' ').unwrap();
    assert!(is_open(port(url)) && Path::new(data).exists());
    starter.kill().unwrap();
    starter.wait().unwrap();
    eventually_blocking("nobody listens", || !is_open(port(url)));
    eventually_blocking("the directory is gone", || !Path::new(data).parent().unwrap().exists());
}

#[test]
#[ignore = "the process that another test kills"]
fn starts_a_server_and_waits_to_be_killed() {
    let Some(stated) = std::env::var_os(PLACE) else { return };
    let database = postgres::server().unwrap().database();
    let mut busy = busy_client(&database);
    std::fs::write(stated, format!("{} {}\n", database.url(), database.sql("SHOW data_directory"))).unwrap();
    busy.wait().unwrap();
}

/// A client whose statement takes longer than any test.
fn busy_client(database: &Database) -> Child {
    let mut psql = database.psql();
    psql.args(["-c", "SELECT pg_sleep(60)"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn port(url: &str) -> u16 {
    let (_, place) = url.split_once("127.0.0.1:").unwrap();
    place.split('/').next().unwrap().parse().unwrap()
}

fn is_open(port: u16) -> bool {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
}
