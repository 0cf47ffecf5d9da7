//! The case of field names in HTTP/1. Names are the same in any case, but old programs compare them with capitals.

use std::convert::Infallible;
use std::future::ready;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Waker};

use http::{Extensions, Request, Response};
use http_body_util::Empty;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;

/// Returns extensions of a request that make hyper write these names as they are spelled here, and others in title case.
///
/// Hyper keeps the case of names in a type of its own, which only its parser makes: so these names are parsed.
pub(super) fn spelled(names: &[Box<str>]) -> Extensions {
    if names.is_empty() {
        return Extensions::new();
    }
    let mut head = String::from("GET / HTTP/1.1\r\n");
    for name in names {
        head.extend([name, ":\r\n"]);
    }
    head.push_str("\r\n");
    let parsed = Arc::new(Mutex::new(Extensions::new()));
    let service = service_fn(|request: Request<Incoming>| {
        *parsed.lock().unwrap_or_else(PoisonError::into_inner) = request.extensions().clone();
        ready(Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new())))
    });
    let io = TokioIo::new(tokio::io::join(head.as_bytes(), tokio::io::sink()));
    let connection = http1::Builder::new().preserve_header_case(true).serve_connection(io, service);
    // The head is there: one poll parses it.
    let _ = pin!(connection).poll(&mut Context::from_waker(Waker::noop()));
    std::mem::take(&mut *parsed.lock().unwrap_or_else(PoisonError::into_inner))
}
