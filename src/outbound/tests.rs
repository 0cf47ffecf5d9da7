use std::convert::Infallible;
use std::path::Path;

use http::Response;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::certs;

const NOW: UnixMillis = UnixMillis(1_780_000_000_000);
const TEST_TIMEOUT: Duration = Duration::from_secs(20);

fn post<'a>(url: &'a str, trust: &'a Arc<[CertificateDer<'static>]>) -> OutboundRequest<'a> {
    let body = Some(Bytes::from_static(b"{\"a\":1}"));
    let (response_body, egress) = (ResponseBody::Whole(16), EgressPolicy::Anywhere);
    OutboundRequest { url, trust, headers: &[], spelled: &[], body, timeout: TEST_TIMEOUT, response_body, egress }
}

/// Starts a server that answers every connection with these bytes once it has read a request, then closes it or stays
/// silent.
async fn canned(reply: &'static str, closes: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/x?y=1", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut received = Vec::new();
            while !received.ends_with(b"{\"a\":1}") {
                let mut chunk = [0; 1024];
                let length = stream.read(&mut chunk).await.unwrap();
                received.extend_from_slice(&chunk[..length]);
            }
            stream.write_all(reply.as_bytes()).await.unwrap();
            if !closes {
                kept.push(stream);
            }
        }
    });
    url
}

async fn response_to(reply: &'static str) -> Result<OutboundResponse, OutboundError> {
    let url = canned(reply, true).await;
    Outbound::default().send(post(&url, &Arc::default()), NOW).await
}

#[tokio::test]
async fn any_status_is_a_response_and_no_redirect_is_followed() {
    let moved = "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 2\r\n\r\nno";
    let response = response_to(moved).await.unwrap();
    assert_eq!((response.status, &response.body[..], response.retry_after), (302, &b"no"[..], None));
    let busy = "HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n";
    let response = response_to(busy).await.unwrap();
    assert_eq!((response.status, response.retry_after), (503, Some(Duration::from_secs(7))));
}

#[tokio::test]
async fn a_response_is_bounded_however_it_is_framed() {
    let fits = "HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n0123456789abcdef";
    assert_eq!(response_to(fits).await.unwrap().body.len(), 16);
    for too_long in [
        "HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\n0123456789abcdefg",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n0123456789abcdef\r\n1\r\ng\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\n0123456789abcdefg",
    ] {
        assert!(matches!(response_to(too_long).await, Err(OutboundError::TooLong)), "{too_long}");
    }
}

/// What a library reports is a chain of errors; callers show these words.
#[tokio::test]
async fn why_there_is_no_response_is_in_plain_words() {
    let server = async |greeting: &'static [u8]| {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}/", listener.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                // The client's greeting is read, so that closing does not reset the connection.
                let _ = stream.read(&mut [0; 4096]).await;
                let _ = stream.write_all(greeting).await;
            }
        });
        url
    };
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    for (url, words) in [
        (canned("", true).await, "connection closed"),
        (canned("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", true).await, "connection closed"),
        (canned("garbage\r\n\r\n", true).await, "no valid HTTP"),
        (server(b"HTTP/1.1 400 Bad Request\r\n\r\n").await, "no TLS at the other side"),
        (server(b"").await, "connection closed"),
        (format!("http://{}/", silent.local_addr().unwrap()), "timed out"),
    ] {
        let trust = Arc::default();
        let post = OutboundRequest { timeout: Duration::from_secs(3), ..post(&url, &trust) };
        let error = Outbound::default().send(post, NOW).await.unwrap_err();
        assert_eq!(error.to_string(), words, "{url}");
    }
    let trust = Arc::default();
    let error = Outbound::default().send(post("https://no-such-name.invalid/", &trust), NOW).await.unwrap_err();
    assert!(error.to_string().starts_with("name not found"), "{error}");
}

#[tokio::test]
async fn the_timeout_covers_the_whole_response() {
    for silent in ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}"] {
        let url = canned(silent, false).await;
        let trust = Arc::default();
        let post = OutboundRequest { timeout: Duration::from_millis(300), ..post(&url, &trust) };
        assert!(matches!(Outbound::default().send(post, NOW).await, Err(OutboundError::Timeout)), "{silent}");
    }
}

#[tokio::test]
async fn connections_are_limited_and_idle_ones_count() {
    let permits = Some(Arc::new(Semaphore::new(1)));
    let outbound = Outbound {
        options: PolicyOptions {
            anywhere: ClientOptions { egress: EgressPolicy::Anywhere, lookups: Arc::default(), permits },
            ..PolicyOptions::default()
        },
        ..Outbound::default()
    };
    let reply = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let (first, second, trust) = (canned(reply, false).await, canned(reply, false).await, Arc::default());
    assert_eq!(outbound.send(post(&first, &trust), NOW).await.unwrap().status, 200);
    let error = outbound.send(post(&second, &trust), NOW).await.unwrap_err();
    assert!(matches!(error, OutboundError::Crowded), "{error}");
    // The idle connection to the first host is closed, and its permit goes to the second.
    outbound.retire();
    assert_eq!(outbound.send(post(&second, &trust), NOW).await.unwrap().status, 200);
}

/// Starts a TLS server that replies with the HTTP version and a header of the request. Returns its URL and its CA.
async fn tls_server(directory: &Path, alpn: &[&str]) -> (String, Arc<[CertificateDer<'static>]>) {
    let files = certs::Files::in_directory(directory);
    // The verifier uses the system's clock.
    let now = crate::clock::Clock::now(&crate::clock::SystemClock);
    certs::make(&files, &["localhost".to_owned()], now, false).unwrap();
    let chain = CertificateDer::pem_file_iter(&files.certificate).unwrap().map(Result::unwrap).collect();
    let url = tls_server_with(chain, PrivateKeyDer::from_pem_file(&files.key).unwrap(), alpn).await;
    (url, CertificateDer::pem_file_iter(&files.ca).unwrap().map(Result::unwrap).collect())
}

/// Starts such a server with a certificate; returns its URL.
async fn tls_server_with(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>, alpn: &[&str]) -> String {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config = builder.with_no_client_auth().with_single_cert(chain, key).unwrap();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}/x", listener.local_addr().unwrap().port());
    tokio::spawn(async move {
        let acceptor = TlsAcceptor::from(Arc::new(config));
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(stream) = acceptor.accept(stream).await else { continue };
            let is_h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
            let service = service_fn(|request: Request<Incoming>| async move {
                let reported = format!("{:?} {}", request.version(), request.headers()["x-it"].to_str().unwrap());
                let is_post = request.method() == Method::POST;
                assert_eq!(request.headers().contains_key(header::CONTENT_TYPE), is_post);
                assert_eq!(request.body().is_end_stream(), !is_post);
                assert_eq!(request.headers()[header::USER_AGENT], USER_AGENT);
                Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(reported))))
            });
            tokio::spawn(async move {
                if is_h2 {
                    let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                    let _ = server.serve_connection(TokioIo::new(stream), service).await;
                } else {
                    let server = hyper::server::conn::http1::Builder::new();
                    let _ = server.serve_connection(TokioIo::new(stream), service).await;
                }
            });
        }
    });
    url
}

/// As `openssl req -x509` makes it: marked as an authority's.
#[tokio::test]
async fn a_servers_own_certificate_is_trusted_where_it_is_named() {
    let made = |name: &str| {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut made = rcgen::CertificateParams::new([name.to_owned()]).unwrap();
        made.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        (made.self_signed(&key).unwrap().der().clone(), key)
    };
    let [(ours, key), (other, _), (misnamed, misnamed_key)] = ["localhost", "localhost", "other.example"].map(made);
    let served = |certificate: &CertificateDer<'static>, key: rcgen::KeyPair| {
        tls_server_with(vec![certificate.clone()], PrivateKeyDer::try_from(key.serialize_der()).unwrap(), &["h2"])
    };
    let (url, misnamed_url) = (served(&ours, key).await, served(&misnamed, misnamed_key).await);
    let headers = [(HeaderName::from_static("x-it"), HeaderValue::from_static("yes"))];
    let outbound = Outbound::default();
    let send_to = async |url: &str, named: &[&CertificateDer<'static>]| {
        let trust: Arc<[_]> = named.iter().map(|certificate| (*certificate).clone()).collect();
        let reply = outbound.send(OutboundRequest { headers: &headers, ..post(url, &trust) }, NOW).await;
        reply.map(|reply| reply.status).map_err(|error| error.to_string())
    };
    assert_eq!(send_to(&url, &[&other, &ours]).await, Ok(200));
    for (url, named, why) in [
        (&url, vec![&other], "certificate not trusted"),
        (&url, vec![], "certificate not trusted"),
        (&misnamed_url, vec![&misnamed], "certificate is for another name"),
    ] {
        assert_eq!(send_to(url, &named).await.unwrap_err(), why);
    }
}

#[tokio::test]
async fn clients_are_kept_within_a_bound() {
    let outbound = Outbound::default();
    let uri = "https://localhost/".parse().unwrap();
    let trust = |number: usize| -> Arc<[CertificateDer<'static>]> {
        Arc::new([CertificateDer::from(number.to_be_bytes().to_vec())])
    };
    for number in 0..CLIENTS + 5 {
        outbound.lane(&uri, &trust(number), EgressPolicy::Anywhere).await.unwrap();
        outbound.lane(&uri, &trust(0), EgressPolicy::Anywhere).await.unwrap();
        outbound.lane(&uri, &trust(number), EgressPolicy::Anywhere).await.unwrap();
    }
    let clients = outbound.clients.lock().unwrap();
    assert_eq!(clients.len(), CLIENTS);
    assert!(clients.iter().any(|(key, _)| key.trust == Trust::SystemAnd(trust(0))), "recently used clients are kept");
}

#[tokio::test]
async fn the_head_decides_where_the_body_is_drained() {
    for (reply, closes) in [
        ("HTTP/1.1 204 No Content\r\n\r\n", false),
        ("HTTP/1.1 200 OK\r\nRetry-After: 7\r\nContent-Length: 2\r\n\r\nok", false),
        // Longer than the limit, announced or not; cut off; malformed; silent after the head.
        ("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", true),
        ("HTTP/1.1 200 OK\r\n\r\n0123456789abcdefghij", true),
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", true),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n", true),
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", false),
    ] {
        let (url, trust) = (canned(reply, closes).await, Arc::default());
        for timeout in [TEST_TIMEOUT, Duration::from_millis(300)] {
            let drained = OutboundRequest { response_body: ResponseBody::Drained(16), timeout, ..post(&url, &trust) };
            let response = Outbound::default().send(drained, NOW).await.unwrap();
            assert!(response.status / 100 == 2 && response.body.is_empty(), "{reply}");
            assert_eq!(response.retry_after.is_some(), reply.contains("Retry-After"), "{reply}");
        }
    }
}

#[tokio::test]
async fn a_drained_response_needs_its_head_in_time() {
    let (url, trust) = (canned("HTTP/1.1 200 OK\r\n", false).await, Arc::default());
    let timeout = Duration::from_millis(300);
    let drained = OutboundRequest { response_body: ResponseBody::Drained(16), timeout, ..post(&url, &trust) };
    assert!(matches!(Outbound::default().send(drained, NOW).await, Err(OutboundError::Timeout)));
}

#[tokio::test]
async fn addresses_that_are_not_public_are_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let trust = Arc::default();
    let outbound = Outbound::default();
    // Addresses as URLs may write them, names, and notations that the system's resolver accepts.
    for (host, named) in [
        ("127.0.0.1", "127.0.0.1"),
        ("[::ffff:127.0.0.1]", "::ffff:127.0.0.1"),
        ("[::1]", "::1"),
        ("0.0.0.0", "0.0.0.0"),
        ("localhost", "localhost"),
        ("127.1", "127.1"),
        ("0x7f000001", "0x7f000001"),
        ("2130706433", "2130706433"),
    ] {
        // No certificate can be for the resolver's own notations of an address.
        let is_usual = named.contains(':') || named.split('.').count() == 4 || named == "localhost";
        for scheme in ["http", "https"].iter().take(1 + usize::from(is_usual)) {
            let url = format!("{scheme}://{host}:{port}/secret?token=secret");
            let public = OutboundRequest { egress: EgressPolicy::PublicOnly, ..post(&url, &trust) };
            let error = outbound.send(public, NOW).await.unwrap_err();
            assert!(matches!(error, OutboundError::Forbidden(_)), "{url}: {error}");
            assert_eq!(error.to_string(), format!("the address is not public: {named}"));
        }
    }
    // None of them connected: the first connection is that of an allowed request.
    let url = format!("http://127.0.0.1:{port}/first");
    let sending = tokio::spawn(async move { Outbound::default().send(post(&url, &Arc::default()), NOW).await });
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut head = [0; 11];
    stream.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"POST /first");
    sending.abort();
}

#[tokio::test]
async fn connections_are_not_shared_between_policies() {
    let directory = tempfile::tempdir().unwrap();
    let (url, ca) = tls_server(directory.path(), &["h2"]).await;
    let headers = [(HeaderName::from_static("x-it"), HeaderValue::from_static("yes"))];
    let outbound = Outbound::default();
    for _ in 0..2 {
        outbound.send(OutboundRequest { headers: &headers, ..post(&url, &ca) }, NOW).await.unwrap();
        let public = OutboundRequest { headers: &headers, egress: EgressPolicy::PublicOnly, ..post(&url, &ca) };
        assert!(matches!(outbound.send(public, NOW).await, Err(OutboundError::Forbidden(_))));
    }
}

#[tokio::test]
async fn errors_contain_nothing_of_the_request() {
    const SENT: &[&str] = &["secret", "?", "{", "x-"];
    let headers = [(HeaderName::from_static("x-secret"), HeaderValue::from_static("secret"))];
    for reply in [
        "",
        "HTTP/1.1 200 OK\r\nContent-Length: secret\r\n\r\n",
        "HTTP/1.1 200 OK\r\nx-secret\u{1}: secret\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nsecret\r\n",
        "HTTP/9 secret\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nsecret",
    ] {
        let (url, trust) = (canned(reply, true).await, Arc::default());
        let url = url.replace("x?y=1", "secret?secret=secret");
        let error = Outbound::default()
            .send(OutboundRequest { headers: &headers, ..post(&url, &trust) }, NOW)
            .await
            .unwrap_err();
        let text = error.to_string();
        assert!(SENT.iter().all(|part| !text.contains(part)), "{reply:?}: {text}");
    }
}

#[tokio::test]
async fn http_2_debug_data_is_not_repeated() {
    const SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";
    const GO_AWAY: &[u8] = b"\0\0\x0e\x07\0\0\0\0\0\0\0\0\0\0\0\0\x0bsecret";
    let (near, mut far) = tokio::io::duplex(64 * 1024);
    far.write_all(&[SETTINGS, GO_AWAY].concat()).await.unwrap();
    let (_requests, connection) = h2::client::handshake(near).await.unwrap();
    let error = connection.await.unwrap_err();
    assert!(error.to_string().contains("secret"), "the library's text repeats it: {error}");
    assert_eq!(unreachable(&error).to_string(), "HTTP/2 error ENHANCE_YOUR_CALM");
}

#[tokio::test]
async fn a_response_whose_length_is_not_clear_is_refused_unless_only_its_status_counts() {
    for lines in [
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: chunked, chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 2",
    ] {
        let reply = format!("HTTP/1.1 200 OK\r\n{lines}\r\n\r\n2\r\nok\r\n0\r\n\r\n");
        let url = canned(Box::leak(reply.into_boxed_str()), false).await;
        let (outbound, trust) = (Outbound::default(), Arc::default());
        let error = outbound.send(post(&url, &trust), NOW).await.unwrap_err();
        assert!(matches!(error, OutboundError::Malformed), "{lines}: {error}");
        let drained = OutboundRequest { response_body: ResponseBody::Drained(16), ..post(&url, &trust) };
        assert_eq!(outbound.send(drained, NOW).await.unwrap().status, 200, "{lines}");
    }
}
