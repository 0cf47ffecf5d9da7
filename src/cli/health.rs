//! `paybridge health`: queries whether a running gateway is ready, for service managers and images without another client.

use std::error::Error;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::HOST;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::args::Rules;
use super::columns::plain;
use super::outcome::{CliError, ExitOutcome, on_runtime, wrong_rules};
use crate::connection_error;
use crate::rules::{AdminListen, AdminProbe, Problems, admin_probe};
use crate::trust;

/// How long it may take in all, with the rules read.
const TIME_LIMIT: Duration = Duration::from_secs(2);

/// The most bytes of a reply that are read.
const REPLY_BYTES: usize = 16 * 1024;

/// Queries `/readyz` of the admin listener that the rules name.
///
/// # Errors
/// The gateway is not ready, does not answer in time, or is not the one of the rules.
pub(super) fn run(args: &Rules, err: &mut dyn io::Write) -> ExitOutcome {
    let queried = on_runtime(async {
        let queried = timeout(TIME_LIMIT, query(args.rules.clone())).await;
        Ok(queried.unwrap_or_else(|_| Err(NotReady::Because("it did not answer within two seconds".to_owned()))))
    })?;
    queried.map_err(|reason| match reason {
        NotReady::Rules(problems) => wrong_rules(&args.rules, &problems, err),
        NotReady::Because(reason) => CliError::failed(reason),
    })
}

/// Why a gateway is not known to be ready.
enum NotReady {
    /// The rules do not tell where its admin listener is.
    Rules(Problems),
    /// Another reason, in one line.
    Because(String),
}

async fn query(rules: PathBuf) -> Result<(), NotReady> {
    // A file system may hang as well.
    let read = spawn_blocking(move || {
        let probe = admin_probe(&rules).map_err(NotReady::Rules)?;
        let tls = probe.certificate.as_deref().map(pinned).transpose().map_err(NotReady::Because)?;
        Ok((probe, tls))
    });
    let (AdminProbe { listen, .. }, tls) = read.await.map_err(|panic| NotReady::Because(panic.to_string()))??;
    let place = format!("the admin listener at {listen}");
    match reply(&listen, tls).await {
        Ok((200, _)) => Ok(()),
        Ok((status, body)) => {
            let reason = body.lines().next().unwrap_or_default();
            Err(NotReady::Because(format!("{place} answers {status}: {}", plain(reason))))
        }
        Err(error) => {
            let reason = connection_error::reason(&*error).unwrap_or_else(|| error.to_string());
            Err(NotReady::Because(format!("{place}: {reason}")))
        }
    }
}

/// Returns a TLS configuration that accepts the certificate of a file alone.
fn pinned(certificate: &Path) -> Result<ClientConfig, String> {
    let shown = certificate.display();
    let bytes = std::fs::read(certificate).map_err(|error| format!("{shown} cannot be read: {error}"))?;
    // The parser's message may quote the file.
    let chain = trust::certificates(&bytes).map_err(|_| format!("{shown} is not well-formed PEM"))?;
    let first = chain.into_iter().next().ok_or_else(|| format!("{shown} holds no PEM certificate"))?;
    trust::pinned_client_config(first).map_err(|error| error.to_string())
}

type AnyError = Box<dyn Error + Send + Sync>;

async fn reply(listen: &AdminListen, tls: Option<ClientConfig>) -> Result<(u16, String), AnyError> {
    match listen {
        AdminListen::Tcp(address) => over(TcpStream::connect(reachable(*address)).await?, tls).await,
        AdminListen::Unix(path) => over(UnixStream::connect(path).await?, tls).await,
    }
}

/// Returns the address by which this machine reaches a listener of all addresses.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
        ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
    };
    SocketAddr::new(ip, listen.port())
}

async fn over<S>(socket: S, tls: Option<ClientConfig>) -> Result<(u16, String), AnyError>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let Some(config) = tls else { return exchange(socket).await };
    // The certificate is compared as a whole, so its names do not matter.
    let name = ServerName::IpAddress(Ipv4Addr::LOCALHOST.into());
    exchange(TlsConnector::from(Arc::new(config)).connect(name, socket).await?).await
}

async fn exchange<S>(socket: S) -> Result<(u16, String), AnyError>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (mut sender, connection) = http1::handshake(TokioIo::new(socket)).await?;
    tokio::spawn(connection);
    let request = Request::get("/readyz").header(HOST, "localhost").body(Empty::<Bytes>::new())?;
    let (head, body) = Response::<Incoming>::into_parts(sender.send_request(request).await?);
    let body = Limited::new(body, REPLY_BYTES).collect().await?.to_bytes();
    Ok((head.status.as_u16(), String::from_utf8_lossy(&body).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_of_all_addresses_is_reached_on_loopback() {
        for (listen, reached) in [
            ("0.0.0.0:9090", "127.0.0.1:9090"),
            ("[::]:1", "[::1]:1"),
            ("10.1.2.3:9090", "10.1.2.3:9090"),
            ("127.0.0.2:9090", "127.0.0.2:9090"),
        ] {
            assert_eq!(reachable(listen.parse().unwrap()), reached.parse().unwrap());
        }
    }
}
