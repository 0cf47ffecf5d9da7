//! The same over HTTP/2.

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};

use super::client::{Client, PATIENCE};
use super::reply::Reply;
use super::request::Request;

/// A connection that speaks HTTP/2.
pub struct Http2 {
    sender: SendRequest<Bytes>,
    connection: tokio::task::JoinHandle<Result<(), h2::Error>>,
}

impl Http2 {
    /// Connects and waits for the other side's settings.
    pub async fn connect(client: &Client) -> Self {
        Self::with_window(client, 65_535).await
    }

    /// Connects with this window for each reply.
    pub async fn with_window(client: &Client, window: u32) -> Self {
        let stream = client.tls(&["h2"]).await.expect("a TLS connection");
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]), "HTTP/2 by ALPN");
        // Replies that are read one after another must not hold up the first of them.
        let mut builder = h2::client::Builder::new();
        builder.initial_window_size(window).initial_connection_window_size(1024 * 1024);
        let handshake = builder.handshake::<_, Bytes>(stream);
        let (sender, connection) = handshake.await.expect("an HTTP/2 connection");
        Self { sender: sender.ready().await.expect("settings"), connection: tokio::spawn(connection) }
    }

    /// Sends one request, checks its reply and gives it.
    pub async fn send(&mut self, request: &Request) -> Reply {
        let reply = self.exchange("localhost", request, false).await.expect("a reply");
        reply.check(Some(request));
        reply
    }

    /// Sends a request with this authority; `trickle` announces no length and leaves the body open.
    ///
    /// # Errors
    /// The stream or the connection was refused.
    pub async fn exchange(&mut self, authority: &str, request: &Request, trickle: bool) -> Result<Reply, h2::Error> {
        let (response, mut body) = self.start(authority, request, !trickle).await?;
        if !request.body.is_empty() {
            body.reserve_capacity(request.body.len());
            let _ = body.send_data(Bytes::from(request.body.clone()), !trickle);
        }
        finish(response).await
    }

    /// Starts a request and leaves its body to the caller.
    ///
    /// # Errors
    /// The stream or the connection was refused.
    pub async fn start(
        &mut self,
        authority: &str,
        request: &Request,
        announce: bool,
    ) -> Result<(ResponseFuture, h2::SendStream<Bytes>), h2::Error> {
        let mut head = http::Request::builder()
            .method(request.method.as_str())
            .uri(format!("https://{authority}{}", request.target))
            .version(http::Version::HTTP_2);
        for (name, value) in &request.headers {
            let value = http::HeaderValue::from_bytes(value.as_bytes()).expect("a header value");
            head = head.header(name.to_ascii_lowercase(), value);
        }
        let empty = request.body.is_empty();
        if announce && !empty {
            head = head.header("content-length", request.body.len());
        }
        let mut sender = self.sender.clone().ready().await?;
        sender.send_request(head.body(()).unwrap(), announce && empty)
    }

    /// Waits until the other side closes the connection.
    pub async fn closed(self) {
        drop(self.sender);
        let _ = tokio::time::timeout(PATIENCE, self.connection).await.expect("closed in time");
    }

    /// Waits until the other side closes the connection although a request could still be sent.
    pub async fn closed_by_peer(&mut self) {
        let _ = tokio::time::timeout(PATIENCE, &mut self.connection).await.expect("closed in time");
    }
}

/// Reads a reply to its end.
///
/// # Errors
/// The stream was reset.
pub async fn finish(response: ResponseFuture) -> Result<Reply, h2::Error> {
    let response = tokio::time::timeout(PATIENCE, response).await.expect("an answer in time")?;
    let (head, mut body) = response.into_parts();
    let mut whole = Vec::new();
    while let Some(chunk) = tokio::time::timeout(PATIENCE, body.data()).await.expect("a body in time") {
        let chunk = chunk?;
        // Else the connection would take no more than its first window.
        body.flow_control().release_capacity(chunk.len())?;
        whole.extend_from_slice(&chunk);
    }
    let text = |value: &http::HeaderValue| value.to_str().expect("header values are text").to_owned();
    let headers = head.headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect();
    Ok(Reply { status: head.status.as_u16(), headers, body: whole })
}
