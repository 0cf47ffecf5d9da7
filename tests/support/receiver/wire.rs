//! How the receiver speaks: HTTP/1.1 by hand, so that it can break every rule, and HTTP/2.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinSet;

use super::{Play, Received, State, Stream, received_now};

/// Serves requests of a connection until a play ends it.
pub async fn http1(mut stream: Box<dyn Stream>, connection: usize, state: &State) {
    let mut buffer = Vec::new();
    while let Some(received) = take_request(&mut *stream, &mut buffer, connection).await {
        let play = state.play(&received).await;
        if !act(&mut *stream, play, state).await {
            return;
        }
    }
}

/// Does what is to be done; whether the connection goes on.
async fn act(stream: &mut dyn Stream, play: Play, state: &State) -> bool {
    match play {
        Play::Say(status) | Play::Late(status, _) => write(stream, answer(status, "").as_bytes()).await,
        Play::With(status, lines) => write(stream, answer(status, &lines).as_bytes()).await,
        Play::Bytes(bytes) => write(stream, &bytes).await,
        Play::LastBytes(bytes) => {
            write(stream, &bytes).await;
            let _ = stream.shutdown().await;
            false
        }
        // A stream that is dropped ends without the farewell that TLS asks for.
        Play::Cut => false,
        Play::CutInHead => last(stream, b"HTTP/1.1 200 OK\r\nContent-Len").await,
        Play::Garbage => last(stream, b"220 mail.example ESMTP ready\r\n\r\n").await,
        Play::Drip => {
            let mut going = write(stream, b"HTTP/1.1 200 OK\r\nX-Slow: ").await;
            while going {
                // Slower than any head is worth waiting for, and never silent for long.
                tokio::time::sleep(Duration::from_millis(20)).await;
                going = write(stream, b"z").await;
            }
            false
        }
        Play::EndlessHead => {
            let mut going = write(stream, b"HTTP/1.1 200 OK\r\n").await;
            while going {
                going = write(stream, b"X-More: of the same, and of the same, and of the same\r\n").await;
            }
            false
        }
        Play::EndlessBody(status) => {
            let head = format!("HTTP/1.1 {status} Said\r\nTransfer-Encoding: chunked\r\n\r\n");
            let mut going = write(stream, head.as_bytes()).await;
            while going {
                going = write(stream, format!("400\r\n{}\r\n", "z".repeat(0x400)).as_bytes()).await;
            }
            false
        }
        Play::MissingBody(status) => {
            let head = format!("HTTP/1.1 {status} Said\r\nContent-Length: 10\r\n\r\nha");
            write(stream, head.as_bytes()).await && closed(stream).await
        }
        Play::Hang => tokio::select! { closed = closed(stream) => closed, () = state.let_go() => false },
    }
}

/// An answer in HTTP/1.1 with more header lines.
fn answer(status: u16, lines: &str) -> String {
    match status {
        204 | 304 => format!("HTTP/1.1 {status} Said\r\n{lines}\r\n"),
        _ => format!("HTTP/1.1 {status} Said\r\n{lines}Content-Length: 5\r\n\r\nnoted"),
    }
}

async fn write(stream: &mut dyn Stream, bytes: &[u8]) -> bool {
    stream.write_all(bytes).await.is_ok() && stream.flush().await.is_ok()
}

/// The connection does not go on after these bytes.
async fn last(stream: &mut dyn Stream, bytes: &[u8]) -> bool {
    write(stream, bytes).await;
    false
}

/// Waits until the caller closes.
async fn closed(stream: &mut dyn Stream) -> bool {
    let mut chunk = [0; 4096];
    while matches!(stream.read(&mut chunk).await, Ok(1..)) {}
    false
}

async fn take_request(stream: &mut dyn Stream, buffer: &mut Vec<u8>, connection: usize) -> Option<Received> {
    loop {
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut head = httparse::Request::new(&mut headers);
        // A port is soon another's: a stranger may begin a TLS handshake with the one before.
        if buffer.first() == Some(&0x16) {
            return None;
        }
        if let httparse::Status::Complete(start) = head.parse(buffer).expect("an HTTP request") {
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            let headers: Vec<_> = head.headers.iter().map(|h| (h.name.to_ascii_lowercase(), text(h.value))).collect();
            let names = head.headers.iter().map(|h| h.name.to_owned()).collect();
            assert!(
                headers.iter().all(|(name, _)| name != "transfer-encoding"),
                "a body without its length: {headers:?}"
            );
            let length = headers.iter().find(|(name, _)| name == "content-length");
            let end = start + length.map_or(0, |(_, value)| value.parse().unwrap());
            if buffer.len() >= end {
                let (method, target) = (head.method.unwrap().to_owned(), head.path.unwrap().to_owned());
                let body = buffer[start..end].to_vec();
                buffer.drain(..end);
                return Some(Received { method, target, headers, names, body, ..received_now(connection, false) });
            }
        }
        let mut chunk = [0; 4096];
        let length = stream.read(&mut chunk).await.unwrap_or(0);
        if length == 0 {
            return None;
        }
        buffer.extend_from_slice(&chunk[..length]);
    }
}

/// Serves a connection in HTTP/2: statuses as they are, a reset of the stream for what HTTP/1.1 would break.
pub async fn http2(stream: impl Stream, connection: usize, state: Arc<State>) {
    // As many open requests as most servers allow.
    let mut builder = h2::server::Builder::new();
    let Ok(mut requests) = builder.max_concurrent_streams(100).handshake(stream).await else { return };
    let mut under_way = JoinSet::new();
    while let Some(Ok((request, respond))) = requests.accept().await {
        under_way.spawn(http2_request(request, respond, connection, state.clone()));
    }
}

async fn http2_request(
    request: http::Request<h2::RecvStream>,
    mut respond: h2::server::SendResponse<Bytes>,
    connection: usize,
    state: Arc<State>,
) {
    let (head, mut incoming) = request.into_parts();
    let mut body = Vec::new();
    while let Some(Ok(chunk)) = incoming.data().await {
        let _ = incoming.flow_control().release_capacity(chunk.len());
        body.extend_from_slice(&chunk);
    }
    let text = |value: &http::HeaderValue| value.to_str().unwrap().to_owned();
    let mut headers: Vec<_> = head.headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect();
    headers.push(("host".to_owned(), head.uri.authority().expect("an authority").to_string()));
    let (method, target) = (head.method.to_string(), head.uri.path_and_query().unwrap().to_string());
    let received = Received { method, target, headers, body, ..received_now(connection, true) };
    let status = match state.play(&received).await {
        Play::Say(status) => status,
        Play::Hang => return state.let_go().await,
        _ => return respond.send_reset(h2::Reason::INTERNAL_ERROR),
    };
    let response = http::Response::builder().status(status).body(()).unwrap();
    if let Ok(mut sender) = respond.send_response(response, false) {
        let _ = sender.send_data(Bytes::from_static(b"noted"), true);
    }
}
