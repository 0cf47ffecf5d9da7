//! A merchant's receiver of callbacks: plain HTTP, on the client's core, always 200.

use std::net::Ipv4Addr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Serves as long as the runtime exists; returns the address for callbacks.
pub async fn start() -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("http://{}/callback", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(answer(socket));
        }
    });
    url
}

/// Replies to one callback after the other. A callback is never sent before the previous one was replied to.
async fn answer(mut socket: TcpStream) {
    let mut received = Vec::with_capacity(4096);
    while socket.read_buf(&mut received).await.is_ok_and(|length| length > 0) {
        if is_whole(&received) {
            received.clear();
            if socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.is_err() {
                return;
            }
        }
    }
}

fn is_whole(received: &[u8]) -> bool {
    let Some(head) = received.windows(4).position(|end| end == b"\r\n\r\n") else { return false };
    let text = String::from_utf8_lossy(&received[..head]).to_ascii_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
    received.len() >= head + 4 + length.unwrap_or(0)
}
