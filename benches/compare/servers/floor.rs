//! The bare hyper and rustls server: reads the whole request and sends a static reply of 150 bytes. Its cost is the minimum of
//! every gateway on the same libraries.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;

use super::process::Process;
use super::tls;
use crate::stub;

/// Starts it as a separate process.
pub fn start(address: SocketAddr, certs: &Path, log: &Path) -> Process {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg("--floor").arg(address.to_string()).arg(certs);
    Process::start(&mut command, log)
}

/// Serves until it is stopped.
pub async fn serve(address: SocketAddr, certs: &Path) {
    let acceptor = tls::acceptor(certs, &["http/1.1"]);
    let listener = tokio::net::TcpListener::bind(address).await.unwrap();
    loop {
        let (socket, _) = listener.accept().await.unwrap();
        socket.set_nodelay(true).unwrap();
        let acceptor = acceptor.clone();
        tokio::spawn(async move {
            let Ok(stream) = acceptor.accept(socket).await else { return };
            let io = TokioIo::new(stream);
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(io, service_fn(answer)).await;
        });
    }
}

async fn answer(request: http::Request<hyper::body::Incoming>) -> Result<http::Response<Full<Bytes>>, Infallible> {
    let _ = request.into_body().collect().await;
    let reply = http::Response::builder().header("content-type", "application/json");
    Ok(reply.body(Full::new(Bytes::from_static(stub::BODY.as_bytes()))).unwrap())
}
