//! `paybridge listen`: a callback receiver for merchants' developers. Shows each callback and which of its signatures
//! are valid, and replies as configured.

pub(super) mod exchange;
mod report;
mod verify;

use std::convert::Infallible;
use std::error::Error;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use self::exchange::{ListenAnswer, Received};
use super::args::{Format, Listen};
use super::columns::plain;
use super::outcome::{CliError, ExitOutcome, load, on_runtime};
use super::signals::{stop_signals, stopped};
use crate::certs;
use crate::clock::{Clock, SystemClock};
use crate::connection_error::{self, of_binding};
use crate::http::listener::tls::server_tls;
use crate::rules::{RuleSet, TlsRules};

/// The longest body, in bytes.
const LONGEST_BODY: usize = 64 * 1024;
/// The longest head, in bytes.
const LONGEST_HEAD: usize = 16 * 1024;
/// The most open connections; further ones wait.
const CONNECTIONS: usize = 256;
/// How many callbacks may wait to be shown.
const EVENTS: usize = 64;
/// The longest time for each of a handshake, a head and a body.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest time that a connection stays open, and so that a callback stays without a reply.
const LONGEST_CONNECTION: Duration = Duration::from_mins(10);
/// How long the exit waits for replies in progress.
const LAST_REPLIES: Duration = Duration::from_secs(2);

/// An event at the listener.
enum Event {
    /// A callback waits for its reply.
    Callback(Box<Received>, oneshot::Sender<ListenAnswer>),
    /// A connection or request that is no callback.
    Refused(String),
}

/// Listens until a signal, or until the requested number of callbacks has arrived.
///
/// # Errors
/// The address or the certificate cannot be used, or the output cannot be written.
pub fn run(args: &Listen, out: &mut dyn Write, err: &mut dyn Write) -> ExitOutcome {
    let mut rules = load(&args.rules.rules, err)?;
    if !args.plain && certificates(&rules)? {
        // The rules may trust the authority that was made just now.
        rules = load(&args.rules.rules, err)?;
    }
    let rules = &rules;
    let tls = if args.plain { None } else { Some(acceptor(rules)?) };
    on_runtime(async {
        let mut stop = stop_signals()?;
        let listener = TcpListener::bind(args.address).await;
        let listener = listener
            .map_err(|error| CliError::failed(format!("cannot listen at {}: {}", args.address, of_binding(&error))))?;
        print_address(rules, args, listener.local_addr()?, err)?;
        let (events, coming) = mpsc::channel(EVENTS);
        let connections = GracefulShutdown::new();
        let outcome = tokio::select! {
            outcome = show(rules, args, coming, out, err) => outcome,
            () = accept(listener, tls, events, &connections) => Ok(()),
            () = stopped(&mut stop) => Ok(()),
        };
        // The last callback gets its reply before the process ends.
        let _ = timeout(LAST_REPLIES, connections.shutdown()).await;
        outcome
    })
}

/// Creates the certificate that the rules name where `serve` would. Returns whether it did.
fn certificates(rules: &RuleSet) -> Result<bool, CliError> {
    let names = certs::names_of(&rules.gateway.server);
    let made = certs::ensure(&rules.gateway.tls, &names, SystemClock.now()).map_err(CliError::failed)?;
    Ok(made.is_some())
}

/// Loads the certificate that the rules name. Client certificates are not required.
fn acceptor(rules: &RuleSet) -> Result<TlsAcceptor, CliError> {
    let mut tls = server_tls(&TlsRules { client_ca: None, ..rules.gateway.tls.clone() })
        .map_err(|error| CliError::failed(format!("{error} (`paybridge certs` creates one; --plain needs none)")))?;
    tls.config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(tls.config)))
}

/// Prints the address, and which rules prevent the gateway from sending callbacks to it.
fn print_address(rules: &RuleSet, args: &Listen, address: SocketAddr, err: &mut dyn Write) -> ExitOutcome {
    let scheme = if args.plain { "http" } else { "https" };
    let ip = address.ip();
    let host = if ip.is_loopback() || ip.is_unspecified() { "localhost".to_owned() } else { ip.to_string() };
    let port = address.port();
    writeln!(err, "listening at {scheme}://{address}; callback_url: {scheme}://{host}:{port}/cb (any path works)")?;
    let callbacks = &rules.gateway.callbacks;
    if !callbacks.allow_private_addresses && host == "localhost" {
        writeln!(
            err,
            "note: a gateway with these rules sends nothing here: set [callbacks] allow_private_addresses = true"
        )?;
    }
    if args.plain {
        writeln!(err, "note: plain http works only for v1 merchants with allow_http_callbacks = true")?;
    } else if callbacks.trust.is_empty() && rules.gateway.tls.generate {
        let ca = certs::Files::of_rules(&rules.gateway.tls).ca;
        let ca = ca.display();
        writeln!(
            err,
            "note: a gateway with these rules does not trust this certificate: add {ca} to [callbacks] trust"
        )?;
    }
    Ok(err.flush()?)
}

/// Shows the callbacks and chooses the replies: the given ones in order, the last one repeated.
async fn show(
    rules: &RuleSet,
    args: &Listen,
    mut coming: mpsc::Receiver<Event>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> ExitOutcome {
    let mut answers = args.answer.iter();
    let Some(mut answer) = answers.next().copied() else { return Ok(()) };
    let mut number = 0;
    while let Some(event) = coming.recv().await {
        match event {
            Event::Refused(reason) => writeln!(err, "refused: {}", plain(&reason))?,
            Event::Callback(received, reply) => {
                number += 1;
                let findings = verify::check(rules, &received);
                let shown = match args.format {
                    Format::Text => report::text(number, &received, &findings, answer),
                    Format::Json => report::json(number, &received, &findings, answer),
                };
                out.write_all(shown.as_bytes())?;
                out.flush()?;
                // The sender may have disconnected.
                let _ = reply.send(answer);
                if args.count.is_some_and(|count| number >= count.get()) {
                    return Ok(());
                }
                answer = answers.next().copied().unwrap_or(answer);
            }
        }
    }
    Ok(())
}

/// Accepts connections until the future is dropped.
async fn accept(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    events: mpsc::Sender<Event>,
    connections: &GracefulShutdown,
) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    while let Ok(permit) = Arc::clone(&room).acquire_owned().await {
        let Ok((stream, _)) = listener.accept().await else {
            // For example, too many files are open: a retry may succeed, but not at once.
            sleep(Duration::from_millis(100)).await;
            continue;
        };
        let (tls, events, watcher) = (tls.clone(), events.clone(), connections.watcher());
        tokio::spawn(async move {
            let _ = timeout(LONGEST_CONNECTION, connection(stream, tls, &events, watcher)).await;
            drop(permit);
        });
    }
}

async fn connection(stream: TcpStream, tls: Option<TlsAcceptor>, events: &mpsc::Sender<Event>, watcher: Watcher) {
    let Some(tls) = tls else { return serve(stream, events, watcher).await };
    match timeout(READ_TIMEOUT, tls.accept(stream)).await {
        Ok(Ok(stream)) => serve(stream, events, watcher).await,
        Ok(Err(error)) => refused(events, format!("no TLS session: {}{}", words(&error), hint(&error))),
        Err(_) => refused(events, "no TLS session: the sender stopped responding".to_owned()),
    }
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    events: &mpsc::Sender<Event>,
    watcher: Watcher,
) {
    let service = service_fn(|request| async { Ok::<_, Infallible>(receive(request, events).await) });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(READ_TIMEOUT).max_buf_size(LONGEST_HEAD);
    let _ = watcher.watch(http.serve_connection(TokioIo::new(stream), service)).await;
}

/// Reads a callback, passes it on and waits for its reply.
async fn receive(request: Request<Incoming>, events: &mpsc::Sender<Event>) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    let answer = match timeout(READ_TIMEOUT, Limited::new(body, LONGEST_BODY).collect()).await {
        Ok(Ok(body)) => {
            let request = Request::from_parts(head, body.to_bytes());
            let (reply, answer) = oneshot::channel();
            let received = Box::new(Received { at: SystemClock.now(), request });
            let _ = events.send(Event::Callback(received, reply)).await;
            // After the listener has ended, no reply is chosen any more.
            answer.await.unwrap_or(ListenAnswer::Status(StatusCode::SERVICE_UNAVAILABLE))
        }
        Ok(Err(error)) => {
            let why = if error.is::<LengthLimitError>() {
                format!("a body of more than {LONGEST_BODY} bytes")
            } else {
                format!("a body that ends early: {}", words(&*error))
            };
            refused(events, why);
            ListenAnswer::Status(StatusCode::PAYLOAD_TOO_LARGE)
        }
        Err(_) => {
            refused(events, "a body that did not arrive in time".to_owned());
            ListenAnswer::Status(StatusCode::REQUEST_TIMEOUT)
        }
    };
    let mut response = Response::new(Full::default());
    match answer {
        ListenAnswer::Status(status) => *response.status_mut() = status,
        ListenAnswer::Timeout => std::future::pending().await,
    }
    response
}

/// Reports a connection or request that is no callback, unless too many reports are waiting.
fn refused(events: &mpsc::Sender<Event>, reason: String) {
    let _ = events.try_send(Event::Refused(reason));
}

/// Returns why a connection ended.
fn words(error: &(dyn Error + 'static)) -> String {
    connection_error::reason(error).unwrap_or_else(|| "connection broken".to_owned())
}

/// Returns advice about a failed handshake.
fn hint(error: &std::io::Error) -> &'static str {
    use rustls::AlertDescription::{BadCertificate, CertificateUnknown, UnknownCA};
    match error.get_ref().and_then(|error| error.downcast_ref()) {
        Some(rustls::Error::AlertReceived(UnknownCA | BadCertificate | CertificateUnknown)) => {
            " (the sender does not trust this certificate: add the CA to [callbacks] trust)"
        }
        Some(rustls::Error::InvalidMessage(_)) => " (the sender may use plain HTTP: try --plain)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_parsed_and_displayed() {
        for text in ["200", "204", "302", "410", "500", "599", "timeout"] {
            assert_eq!(text.parse::<ListenAnswer>().unwrap().to_string(), text);
        }
        for text in ["", "100", "101", "199", "600", "2000", "20", "ok", "Timeout", " 200", "200 "] {
            assert!(text.parse::<ListenAnswer>().is_err(), "{text}");
        }
    }
}
