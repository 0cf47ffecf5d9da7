//! The merchant's own site: another origin, which notes whom it is asked by.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// A site over TLS: browsers tell a plain one nothing of where its visitors come from anyway.
pub struct Merchant {
    port: u16,
    seen: Arc<Mutex<Vec<Seen>>>,
}

/// A request that came.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Path and query, as sent.
    pub target: String,
    /// The names of its headers, in lower case.
    pub headers: Vec<String>,
}

impl Seen {
    /// Whether it says which page it comes from.
    pub fn names_its_origin(&self) -> bool {
        self.headers.iter().any(|name| name == "referer")
    }
}

impl Merchant {
    /// Serves until the test ends, with the certificate of a gateway in this directory: for the same host, another port.
    pub fn open(certs: &Path) -> Self {
        let chain = CertificateDer::pem_file_iter(certs.join("server.pem")).unwrap().map(Result::unwrap).collect();
        let key = PrivateKeyDer::from_pem_file(certs.join("server.key")).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = Arc::new(builder.with_no_client_auth().with_single_cert(chain, key).unwrap());
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::<Mutex<Vec<Seen>>>::default();
        let noted = seen.clone();
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let (noted, config) = (noted.clone(), config.clone());
                // A browser opens connections that it does not use.
                std::thread::spawn(move || answer(socket, config, &noted));
            }
        });
        Self { port, seen }
    }

    /// Its scheme, host and port.
    pub fn origin(&self) -> String {
        format!("https://localhost:{}", self.port)
    }

    /// The requests for targets that begin like this.
    pub fn seen(&self, prefix: &str) -> Vec<Seen> {
        let seen = self.seen.lock().unwrap();
        seen.iter().filter(|seen| seen.target.starts_with(prefix)).cloned().collect()
    }
}

fn answer(socket: TcpStream, config: Arc<ServerConfig>, noted: &Mutex<Vec<Seen>>) -> Option<()> {
    socket.set_read_timeout(Some(Duration::from_mins(1))).ok()?;
    let mut socket = StreamOwned::new(ServerConnection::new(config).ok()?, socket);
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && head.len() < 65_536 {
        let mut byte = [0];
        socket.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let target = head.split(' ').nth(1)?.to_owned();
    let names = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    let headers = names.map(|(name, _)| name.to_ascii_lowercase()).collect();
    noted.lock().unwrap().push(Seen { target, headers });
    let page = "<!doctype html><html lang=en><title>Shop</title><h1>The shop</h1><a href=/inside>Inside</a></html>";
    let reply = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{page}",
        page.len()
    );
    socket.write_all(reply.as_bytes()).ok()?;
    socket.conn.send_close_notify();
    socket.flush().ok()
}
