//! What servers and poolers may be: their encodings, their sessions, and how many connections they accept.

use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::server::{humble_user, server};
use super::*;
use crate::clock::testing::eventually;
use crate::store::StoreAccess;
use crate::store::conformance::{audited, created, deposit, withdrawal};

fn node_at(url: &str) -> Result<PostgresStore, OpenError> {
    let url = PostgresUrl::parse(url, |path| path.into()).unwrap();
    open(&url, &key(1), Arc::new(SystemClock), Arc::new(SystemRandomness::default()), Arc::default())
        .map(|opened| opened.store)
}

#[test]
fn a_database_that_cannot_hold_every_text_is_refused() {
    let Some(place) = Place::new() else { return };
    let url = place.0.url();
    for encoding in ["LATIN1", "SQL_ASCII", "EUC_JP", "WIN1252"] {
        let name = format!("{}_{}", place.0.sql("SELECT current_database()"), encoding.to_lowercase());
        place.0.sql(&format!("CREATE DATABASE {name} ENCODING '{encoding}' TEMPLATE template0"));
        let other = url.replace(&place.0.sql("SELECT current_database()"), &name);
        let served = node_at(&other).map(drop).unwrap_err().to_string();
        let parsed = PostgresUrl::parse(&other, |path| path.into()).unwrap();
        let (keys, random) = (key(1), Arc::new(SystemRandomness::default()));
        let beside = open_beside(&parsed, &keys, StoreAccess::Read, random.clone(), Arc::default())
            .map(drop)
            .unwrap_err()
            .to_string();
        let rewrapped = rewrap_keys(&parsed, &keys, random).map(drop).unwrap_err().to_string();
        for refused in [served, beside, rewrapped] {
            assert!(refused.contains(&format!("the database's encoding is {encoding}")), "{refused}");
        }
        let tables = "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace";
        place.0.sql(&format!("\\c {name}\nDO $$ BEGIN ASSERT ({tables}) = 0; END $$"));
        place.0.sql(&format!("DROP DATABASE {name} WITH (FORCE)"));
    }
    place.open_node();
}

/// `PgBouncer` in front of a database, on a port of its own. It ends with the value, or with the test process.
struct Pooler {
    guard: Child,
    _directory: tempfile::TempDir,
    port: u16,
}

impl Pooler {
    /// Starts it with more settings; `None`, with a message, where it is not installed.
    fn start(database: &server::Database, settings: &str) -> Option<Self> {
        let program =
            ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"].map(PathBuf::from).into_iter().find(|at| at.is_file());
        let Some(program) = program else {
            let required = std::env::var_os("PAYBRIDGE_REQUIRE_TOOLS").is_some_and(|value| value == "1");
            assert!(!required, "PgBouncer: not installed");
            let line =
                "!! PgBouncer: not installed, so that poolers were NOT tested (`.ci/run postgresql` installs it)";
            let _ = writeln!(std::io::stderr(), "{line}");
            return None;
        };
        let url = PostgresUrl::parse(&database.url(), |path| path.into()).unwrap();
        let behind = url.config().get_ports()[0];
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let directory = tempfile::tempdir().unwrap();
        let ini = directory.path().join("pgbouncer.ini");
        std::fs::write(
            &ini,
            format!(
                "[databases]\n* = host=127.0.0.1 port={behind} user=paybridge\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
                 listen_port = {port}\nunix_socket_dir =\nauth_type = any\n{settings}\n"
            ),
        )
        .unwrap();
        let mut guard = Command::new("sh");
        guard.args(["-c", "\"$0\" -q \"$1\" & read -r _; kill $!"]).arg(program).arg(&ini);
        if let Some((user, group)) = humble_user() {
            for path in [directory.path(), &ini] {
                std::os::unix::fs::chown(path, Some(user), Some(group)).unwrap();
            }
            guard.uid(user).gid(group);
        }
        let guard = guard.process_group(0).stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let pooler = Self { guard, _directory: directory, port };
        eventually("PgBouncer starts", || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok());
        Some(pooler)
    }

    fn url(&self, database: &server::Database) -> String {
        let name = database.sql("SELECT current_database()");
        format!("postgres://paybridge@127.0.0.1:{}/{name}?sslmode=disable", self.port)
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}

#[test]
fn a_pooler_that_shares_sessions_is_recognized() {
    let Some(place) = Place::new() else { return };
    for settings in [
        "pool_mode = transaction",
        "pool_mode = transaction\ndefault_pool_size = 1",
        "pool_mode = transaction\nserver_round_robin = 1\nmin_pool_size = 5",
        "pool_mode = statement",
    ] {
        let Some(pooler) = Pooler::start(&place.0, settings) else { return };
        for _ in 0..3 {
            let refused = node_at(&pooler.url(&place.0)).map(drop).unwrap_err().to_string();
            assert!(refused.contains("a pooler in transaction or statement mode"), "{settings}: {refused}");
        }
        let locks = "SELECT count(*) FROM pg_locks JOIN pg_database d ON d.oid = database \
                     WHERE locktype = 'advisory' AND datname = current_database()";
        assert_eq!(place.0.sql(locks), "0", "{settings}: the pooler's sessions keep no lock");
    }
    // Nothing was made on the way.
    assert_eq!(place.0.sql("SELECT to_regclass('paybridge_formats') IS NULL"), "t");
}

/// Has 32 callers create at once, several times; every one of them succeeds.
async fn all_are_created(store: &Arc<PostgresStore>) {
    for round in 0..4 {
        let callers: Vec<_> = (0..32)
            .map(|caller| {
                let (store, order) = (Arc::clone(store), format!("{round}-{caller}"));
                tokio::spawn(async move {
                    if caller % 2 == 0 {
                        created(&*store, deposit("acme", &order)).await;
                    } else {
                        created(&*store, withdrawal(&format!("merchant-{caller}"), &order)).await;
                    }
                    store.balances(&crate::store::conformance::merchant("acme")).await.unwrap();
                })
            })
            .collect();
        for caller in callers {
            caller.await.unwrap();
        }
    }
    audited(&**store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pooler_with_a_session_for_each_connection_is_used_as_far_as_it_reaches() {
    let Some(place) = Place::new() else { return };
    for size in [1, 3, 20] {
        let Some(pooler) = Pooler::start(&place.0, &format!("pool_mode = session\ndefault_pool_size = {size}")) else {
            return;
        };
        let store = Arc::new(node_at(&pooler.url(&place.0)).unwrap());
        all_are_created(&store).await;
        store.close().await.unwrap();
        drop(pooler);
        place.0.sql("DROP SCHEMA public CASCADE; CREATE SCHEMA public");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_wait_for_the_connections_that_a_role_may_have() {
    let Some(server) = server() else { return };
    for limit in [2, 3] {
        let place = Place(server.database());
        let role = format!("{}_limited", place.0.sql("SELECT current_database()"));
        place
            .0
            .sql(&format!("CREATE ROLE {role} LOGIN CONNECTION LIMIT {limit}; GRANT ALL ON SCHEMA public TO {role}"));
        let store = Arc::new(node_at(&place.0.url().replace("paybridge@", &format!("{role}@"))).unwrap());
        all_are_created(&store).await;
        // Once the server accepts more, they are used again.
        place.0.sql(&format!("ALTER ROLE {role} CONNECTION LIMIT 20"));
        let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
        let connections = format!("SELECT count(*) FROM pg_stat_activity WHERE usename = '{role}'");
        while place.0.sql(&connections).parse::<usize>().unwrap() <= limit {
            assert!(tokio::time::Instant::now() < deadline, "no further connection is made");
            let probes: Vec<_> = (0..16)
                .map(|_| {
                    let store = Arc::clone(&store);
                    tokio::spawn(async move { store.probe().await })
                })
                .collect();
            for probe in probes {
                probe.await.unwrap().unwrap();
            }
        }
        store.close().await.unwrap();
    }
}

/// The server's own certificate in `sslrootcert`, as `openssl req -x509` makes it.
#[test]
fn a_servers_own_certificate_is_trusted_where_sslrootcert_names_it() {
    if !server::programs().is_some_and(|programs| server::has_tls(&programs)) {
        return;
    }
    let made = |name: &str| {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut made = rcgen::CertificateParams::new([name.to_owned()]).unwrap();
        made.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        (made.self_signed(&key).unwrap().pem(), key.serialize_pem())
    };
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let [own, key, other] = ["own.pem", "own.key", "other.pem"].map(|name| directory.path().join(name));
    let (certificate, private) = made("localhost");
    std::fs::write(&own, certificate).unwrap();
    std::fs::write(&key, private).unwrap();
    std::fs::write(&other, made("localhost").0).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    if let Some((user, group)) = humble_user() {
        std::os::unix::fs::chown(&key, Some(user), Some(group)).unwrap();
    }
    let settings =
        ["ssl=on".to_owned(), format!("ssl_cert_file={}", own.display()), format!("ssl_key_file={}", key.display())];
    let Some(server) = server::Server::start(&settings.each_ref().map(String::as_str)) else { return };
    let place = Place(server.database());
    let at = |host: &str, roots: &std::path::Path| {
        let url = place.0.url().replace("127.0.0.1", host);
        node_at(&url.replace("sslmode=disable", &format!("sslmode=verify-full&sslrootcert={}", roots.display())))
    };
    at("localhost", &own).unwrap();
    for (host, roots) in [("localhost", &other), ("127.0.0.1", &own)] {
        let refused = at(host, roots).map(drop).unwrap_err().to_string();
        assert!(refused.contains("certificate"), "{refused}");
    }
}
