//! What serves the stubs: a listener, and one handler for all requests.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::time::sleep;
use tokio_rustls::TlsAcceptor;

use crate::cli::outcome::{CliError, ExitOutcome};
use crate::connection_error::of_binding;

pub(super) async fn bind(address: SocketAddr) -> Result<TcpListener, CliError> {
    let listener = TcpListener::bind(address).await;
    listener.map_err(|error| CliError::failed(format!("cannot listen at {address}: {}", of_binding(&error))))
}

/// Answers each request of each connection, over TLS if there is an acceptor.
pub(super) async fn serve<Answer>(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    handle: impl Fn(Request<Incoming>) -> Answer + Clone + Send + Sync + 'static,
) -> ExitOutcome
where
    Answer: Future<Output = Response<Full<Bytes>>> + Send,
{
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // A temporary error, such as too many open files.
            sleep(Duration::from_millis(100)).await;
            continue;
        };
        let (tls, handle) = (tls.clone(), handle.clone());
        tokio::spawn(async move {
            let service = service_fn(|request| async { Ok::<_, Infallible>(handle(request).await) });
            let http = http1::Builder::new();
            // A broken connection needs no action: the caller sends the request again.
            match tls {
                None => drop(http.serve_connection(TokioIo::new(stream), service).await),
                Some(tls) => {
                    let Ok(stream) = tls.accept(stream).await else { return };
                    drop(http.serve_connection(TokioIo::new(stream), service).await);
                }
            }
        });
    }
}
