//! Certificates are renewed while connections live; what cannot be used changes nothing but what is told.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, HandshakeKind, RootCertStore, SupportedProtocolVersion};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::reload::{count, metric, reload, reload_good, rules, save, write};
use crate::support::http2::Http2;
use crate::support::request::ACME;
use crate::support::rules::write_file;
use crate::support::{Client, Gateway, Request, Rules, eventually, payin, text};

/// An authority of the tests' own.
struct Authority(Issuer<'static, KeyPair>, String);

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Self(Issuer::new(params, key), pem)
    }

    /// Certificate and key for `localhost`, good for some years from now on.
    fn pair(&self, last_year: i32) -> Pair {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        params.not_after = rcgen::date_time_ymd(last_year, 1, 1);
        let certificate = params.signed_by(&key, &self.0).unwrap();
        Pair {
            certificate: certificate.pem(),
            der: certificate.der().clone(),
            key: key.serialize_pem(),
            key_der: key.serialize_der(),
        }
    }
}

struct Pair {
    certificate: String,
    der: CertificateDer<'static>,
    key: String,
    key_der: Vec<u8>,
}

impl Pair {
    fn write(&self, directory: &Path) {
        write_file(&directory.join("server.pem"), &self.certificate);
        write_file(&directory.join("server.key"), &self.key);
    }
}

/// A gateway with a pair of this authority, which its clients trust.
#[track_caller]
fn start(authority: &Authority, first: &Pair, rules: &Rules) -> (Gateway, PathBuf) {
    let mut gateway = Gateway::prepare(&rules.clone().with("tls", "generate = false"));
    let certs = gateway.root.path().join("certs");
    write_file(&certs.join("ca.pem"), &authority.1);
    first.write(&certs);
    gateway.spawn();
    assert!(gateway.wait_ready(), "{}", gateway.log());
    (gateway, certs)
}

/// The certificate that a new connection is served by.
async fn served(client: &Client) -> CertificateDer<'static> {
    let stream = client.tls(&["http/1.1"]).await.expect("a handshake");
    stream.get_ref().1.peer_certificates().unwrap()[0].clone().into_owned()
}

async fn serves(client: &Client, pair: &Pair) {
    eventually("the pair serves", async || (served(client).await == pair.der).then_some(())).await;
}

fn complaints(gateway: &Gateway) -> usize {
    gateway.log().matches("the certificate on disk is rejected; the old one stays in use").count()
}

fn days(gateway: &Gateway) -> f64 {
    metric(gateway, "paybridge_certificate_days_until_expiry").parse().unwrap()
}

const REFUSED: &str = "paybridge_certificate_reloads_total{result=\"refused\"}";

#[tokio::test]
async fn a_renewed_pair_serves_new_connections_and_open_ones_live_on() {
    let authority = Authority::new();
    let (first, second, third) = (authority.pair(2121), authority.pair(2122), authority.pair(2123));
    let (gateway, certs) = start(&authority, &first, &Rules::default());
    let client = gateway.client();
    let (mut http1, mut http2) = (client.connect().await, Http2::connect(&client).await);
    let question = Request::status(&ACME, "1");
    assert_eq!(served(&client).await, first.der);
    let expiry = |year: i64| {
        i64::try_from(count(&gateway, "paybridge_certificate_expiry_timestamp_seconds")).unwrap() / 31_556_952 + 1970
            - year
    };
    assert!(expiry(2121).abs() <= 1 && days(&gateway) > 30_000.0);

    for (year, pair) in [(2122, &second), (2123, &third)] {
        // The certificate first, as renewals do; even while the rules on disk are wrong.
        save(&gateway, "merchants/wrong.toml", "nmae = 1");
        pair.write(&certs);
        serves(&client, pair).await;
        assert!(expiry(year).abs() <= 1);
        let now = rules(&gateway);
        assert!(text(&now["certificate"], "not_after").starts_with(&format!("{year}-01-01T00:00:00")), "{now}");
        http1.send(&question).await.expect(404);
        http2.send(&question).await.expect(404);
        http1.send(&Request::payin(&ACME, &payin(&format!("open-{year}")))).await.expect(200);
    }
    std::fs::remove_file(gateway.rules_dir().join("merchants/wrong.toml")).unwrap();
    reload_good(&gateway);
    assert_eq!(count(&gateway, "paybridge_certificate_reloads_total{result=\"accepted\"}"), 2);
    assert_eq!(count(&gateway, "paybridge_certificate_refused"), 0);
}

#[tokio::test]
async fn a_pair_that_cannot_be_used_leaves_the_old_one_and_is_reported_once() {
    let authority = Authority::new();
    let (first, second) = (authority.pair(2121), authority.pair(2122));
    let (gateway, certs) = start(&authority, &first, &Rules::default());
    let client = gateway.client();
    let mut kept = client.connect().await;
    let half = second.certificate.split_at(second.certificate.len() / 2).0.to_owned();
    // Each is one step, or what lies between its steps is refused for the same reason as before or after: the gateway may
    // look at any time, and would count a third reason.
    let unusable: [(&str, &str, &dyn Fn()); 4] = [
        ("another key", "does not belong to the certificate", &|| write_file(&certs.join("server.key"), &second.key)),
        ("half a certificate", "server.pem", &|| write_file(&certs.join("server.pem"), &half)),
        ("no key", "server.key: No such file", &|| {
            std::fs::remove_file(certs.join("server.key")).unwrap();
            write_file(&certs.join("server.pem"), &first.certificate);
        }),
        ("a directory", "it is not a regular file", &|| {
            std::os::unix::fs::symlink(".", certs.join("directory")).unwrap();
            std::fs::rename(certs.join("directory"), certs.join("server.pem")).unwrap();
        }),
    ];
    for (number, (what, stated, make)) in unusable.into_iter().enumerate() {
        make();
        let shown = eventually(what, async || {
            (complaints(&gateway) > number)
                .then(|| rules(&gateway)["certificate"]["error"].as_str().map(str::to_owned))?
        })
        .await;
        assert!(shown.contains(stated), "{what}: {shown}");
        assert_eq!(count(&gateway, "paybridge_certificate_refused"), 1);
        // Whatever else is saved, it is not told again.
        for round in 0..2 {
            save(&gateway, "lists/banks.txt", &format!("BANK-A\nBANK-{number}-{round}\n"));
            let before = text(&rules(&gateway), "version").to_owned();
            eventually("another edit", async || (text(&rules(&gateway), "version") != before).then_some(())).await;
        }
        assert_eq!((complaints(&gateway), count(&gateway, REFUSED)), (number + 1, number + 1), "{what}");
        assert_eq!(served(&client).await, first.der);
        kept.send(&Request::status(&ACME, "1")).await.expect(404);
    }
    assert_eq!(reload(&gateway).0, 422, "whoever asks is told again");
    eventually("it is logged again", async || (complaints(&gateway) == 5).then_some(())).await;
    assert_eq!(count(&gateway, REFUSED), 4, "and counted once");

    first.write(&certs);
    eventually("good again", async || rules(&gateway)["error"].is_null().then_some(())).await;
    eventually("it is said", async || gateway.log().contains("the certificate on disk is valid again").then_some(()))
        .await;
    assert_eq!(count(&gateway, "paybridge_certificate_refused"), 0);
    second.write(&certs);
    serves(&client, &second).await;
    kept.send(&Request::status(&ACME, "1")).await.expect(404);
}

/// A client that keeps its sessions, as browsers and HTTP libraries do.
struct Resuming(TlsConnector, Gateway);

impl Resuming {
    fn new(gateway: Gateway, version: &'static SupportedProtocolVersion) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(gateway.root.path().join("certs/ca.pem")).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(&[version]).unwrap();
        let config = builder.with_root_certificates(roots).with_no_client_auth();
        Self(TlsConnector::from(Arc::new(config)), gateway)
    }

    /// Asks once over a connection of its own: how the handshake went.
    async fn ask(&self) -> HandshakeKind {
        let socket = TcpStream::connect(self.1.public).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let mut stream = self.0.connect(name, socket).await.expect("a handshake");
        let question = Request::status(&ACME, "1").header("Connection", "close");
        stream.write_all(&question.bytes()).await.unwrap();
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply).await.unwrap();
        assert!(reply.starts_with(b"HTTP/1.1 404"), "{}", String::from_utf8_lossy(&reply));
        stream.get_ref().1.handshake_kind().unwrap()
    }
}

#[tokio::test]
async fn session_tickets_of_before_do_not_break() {
    let authority = Authority::new();
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let (first, second) = (authority.pair(2121), authority.pair(2122));
        let (gateway, certs) = start(&authority, &first, &Rules::default());
        let client = gateway.client();
        let resuming = Resuming::new(gateway, version);
        assert_eq!(resuming.ask().await, HandshakeKind::Full);
        assert_eq!(resuming.ask().await, HandshakeKind::Resumed);
        save(&resuming.1, "lists/banks.txt", "BANK-A\n");
        reload_good(&resuming.1);
        assert_eq!(resuming.ask().await, HandshakeKind::Resumed, "the same pair keeps its tickets");
        second.write(&certs);
        serves(&client, &second).await;
        assert_eq!(resuming.ask().await, HandshakeKind::Full, "the new pair is shown");
        assert_eq!(resuming.ask().await, HandshakeKind::Resumed);
    }
}

#[tokio::test]
async fn the_clients_authority_and_the_paths_are_live() {
    let authority = Authority::new();
    let (first, second) = (authority.pair(2121), authority.pair(2122));
    let (gateway, certs) = start(&authority, &first, &Rules::default());
    let client = gateway.client();
    let mut kept = client.connect().await;
    let question = Request::status(&ACME, "1");
    kept.send(&question).await.expect(404);
    let of_clients = |key: &str| Rules::default().with("tls", &format!("generate = false\n{key}"));
    let own = authority.pair(2130);
    let known = client.clone().identity(vec![own.der.clone()], PrivatePkcs8KeyDer::from(own.key_der.clone()).into());

    write(&gateway, &of_clients("client_ca = \"../certs/ca.pem\""));
    let (status, body) = reload(&gateway);
    assert_eq!((status, &body["needs_restart"]), (200, &json!([])));
    kept.send(&question).await.expect(404);
    known.send(&question).await.expect(404);
    assert!(!answers(&client, &question).await, "new connections need a certificate");

    // Another authority in the same file.
    write_file(&certs.join("clients.pem"), &Authority::new().1);
    write(&gateway, &of_clients("client_ca = \"../certs/clients.pem\""));
    reload_good(&gateway);
    assert!(!answers(&known, &question).await, "another authority");
    write_file(&certs.join("clients.pem"), &authority.1);
    eventually("it is watched", async || answers(&known, &question).await.then_some(())).await;

    // Another pair elsewhere, and nobody has to show a certificate.
    second.write(&gateway.root.path().join("elsewhere"));
    write(&gateway, &of_clients("certificate = \"../elsewhere/server.pem\"\nkey = \"../elsewhere/server.key\""));
    reload_good(&gateway);
    assert_eq!(served(&client).await, second.der);
    client.send(&question).await.expect(404);
    kept.send(&question).await.expect(404);
}

/// Whether a request over a connection of its own is answered at all.
async fn answers(client: &Client, question: &Request) -> bool {
    // In TLS 1.3 a client learns of a refusal with its first read.
    let Ok(mut stream) = client.tls(&["http/1.1"]).await else { return false };
    let sent = stream.write_all(&question.bytes()).await;
    let read = stream.read(&mut [0; 64]).await;
    sent.is_ok() && read.is_ok_and(|length| length > 0)
}

#[tokio::test]
async fn an_expired_certificate_serves_on_with_a_warning() {
    let authority = Authority::new();
    let (gateway, certs) = start(&authority, &authority.pair(2121), &Rules::default());
    authority.pair(2020).write(&certs);
    let stated = "the certificate in use has expired not_after=\"2020-01-01T00:00:00Z\"";
    eventually("the warning", async || gateway.log().contains(stated).then_some(())).await;
    assert!(days(&gateway) < -2000.0);
    reload_good(&gateway);
    assert!(gateway.client().tls(&["http/1.1"]).await.is_err(), "it is shown, and the client refuses it");
    eventually("it is said", async || gateway.log().contains("a new certificate is in use").then_some(())).await;
    assert_eq!(gateway.log().matches("has expired").count(), 1, "said once");
}
