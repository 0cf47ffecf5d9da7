//! Reads PROXY protocol headers, versions 1 and 2, in which a load balancer names the client's address (contract
//! section 2, `[clients]`).

use std::io;
use std::net::IpAddr;

use ppp::{v1, v2};
use tokio::io::{AsyncRead, AsyncReadExt};

/// The longest version 1 header, CRLF included, in bytes (the protocol's own bound).
const V1_LIMIT: usize = 107;
/// The longest version 2 header, extensions included, in bytes.
const V2_LIMIT: usize = 16 + 2048;
const V2_SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// Reads the header that must open the connection, and not a byte more. Returns `None` if the header names no address
/// (`LOCAL`, `UNKNOWN`), so that the socket's own address counts.
///
/// # Errors
/// The connection does not begin with a well-formed header within its bound. The caller must limit the time.
pub(super) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<IpAddr>> {
    // Headers of both versions are longer than the version 2 signature.
    let mut header = vec![0; V2_SIGNATURE.len()];
    stream.read_exact(&mut header).await?;
    if header == V2_SIGNATURE { read_v2(stream, header).await } else { read_v1(stream, header).await }
}

async fn read_v1(stream: &mut (impl AsyncRead + Unpin), mut header: Vec<u8>) -> io::Result<Option<IpAddr>> {
    if !header.starts_with(b"PROXY ") {
        return Err(malformed());
    }
    while !header.ends_with(b"\r\n") {
        if header.len() == V1_LIMIT {
            return Err(malformed());
        }
        header.push(stream.read_u8().await?);
    }
    match v1::Header::try_from(header.as_slice()).map_err(|_| malformed())?.addresses {
        v1::Addresses::Unknown => Ok(None),
        v1::Addresses::Tcp4(addresses) => Ok(Some(addresses.source_address.into())),
        v1::Addresses::Tcp6(addresses) => Ok(Some(addresses.source_address.into())),
    }
}

async fn read_v2(stream: &mut (impl AsyncRead + Unpin), mut header: Vec<u8>) -> io::Result<Option<IpAddr>> {
    let mut rest = [0; 4];
    stream.read_exact(&mut rest).await?;
    header.extend_from_slice(&rest);
    let length = header.len() + usize::from(u16::from_be_bytes([rest[2], rest[3]]));
    if length > V2_LIMIT {
        return Err(malformed());
    }
    let start = header.len();
    header.resize(length, 0);
    stream.read_exact(header.split_at_mut(start).1).await?;
    let header = v2::Header::try_from(header.as_slice()).map_err(|_| malformed())?;
    match (header.command, header.protocol, header.addresses) {
        (v2::Command::Local, ..) | (_, _, v2::Addresses::Unspecified | v2::Addresses::Unix(_)) => Ok(None),
        (_, v2::Protocol::Datagram, _) => Err(malformed()),
        (_, _, v2::Addresses::IPv4(addresses)) => Ok(Some(addresses.source_address.into())),
        (_, _, v2::Addresses::IPv6(addresses)) => Ok(Some(addresses.source_address.into())),
    }
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "malformed PROXY header")
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read_from(bytes: &[u8]) -> (io::Result<Option<IpAddr>>, usize) {
        let mut stream = bytes;
        let result = read(&mut stream).await;
        (result, stream.len())
    }

    fn v2_header(command: u8, family: u8, addresses: &[u8]) -> Vec<u8> {
        let mut header = V2_SIGNATURE.to_vec();
        header.extend_from_slice(&[0x20 | command, family]);
        header.extend_from_slice(&u16::try_from(addresses.len()).unwrap().to_be_bytes());
        header.extend_from_slice(addresses);
        header
    }

    #[tokio::test]
    async fn good_headers_are_read_to_their_last_byte() {
        let four = [203, 0, 113, 7, 10, 0, 0, 1, 0x30, 0x39, 0x01, 0xbb];
        let mut six = [0; 36];
        six[15] = 1;
        let mut with_extension = four.to_vec();
        with_extension.extend_from_slice(&[0x04, 0, 1, 0]);
        for (header, address) in [
            (b"PROXY TCP4 203.0.113.7 10.0.0.1 12345 443\r\n".to_vec(), Some("203.0.113.7")),
            (b"PROXY TCP6 2001:db8::1 ::1 12345 443\r\n".to_vec(), Some("2001:db8::1")),
            (b"PROXY UNKNOWN\r\n".to_vec(), None),
            (v2_header(1, 0x11, &four), Some("203.0.113.7")),
            (v2_header(1, 0x11, &with_extension), Some("203.0.113.7")),
            (v2_header(1, 0x21, &six), Some("::1")),
            (v2_header(0, 0x11, &four), None),
            (v2_header(0, 0x00, &[]), None),
            (v2_header(1, 0x00, &[]), None),
        ] {
            let mut bytes = header.clone();
            bytes.extend_from_slice(b"\x16\x03\x01");
            let (result, left) = read_from(&bytes).await;
            let expected = address.map(|address| address.parse::<IpAddr>().unwrap());
            assert_eq!(result.unwrap(), expected, "{header:?}");
            assert_eq!(left, 3, "{header:?}");
        }
    }

    #[tokio::test]
    async fn anything_else_is_an_error() {
        let long = format!("PROXY TCP4 {}\r\n", " ".repeat(200));
        let mut too_long_v2 = V2_SIGNATURE.to_vec();
        too_long_v2.extend_from_slice(&[0x21, 0x11, 0xff, 0xff]);
        too_long_v2.resize(70_000, 0);
        for bytes in [
            b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(),
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03aaaa".to_vec(),
            b"PROXY TCP4 203.0.113.300 10.0.0.1 1 2\r\n".to_vec(),
            b"PROXY TCP4 ::1 ::1 1 2\r\n".to_vec(),
            b"PROXY TCP4 203.0.113.7\r\n".to_vec(),
            b"PROXY TCP4 203.0.113.7 10.0.0.1 1".to_vec(),
            b"proxy TCP4 203.0.113.7 10.0.0.1 1 2\r\n".to_vec(),
            long.into_bytes(),
            v2_header(1, 0x11, &[1, 2, 3]),
            v2_header(1, 0x12, &[0; 12]),
            v2_header(7, 0x11, &[0; 12]),
            too_long_v2,
            Vec::new(),
        ] {
            assert!(read_from(&bytes).await.0.is_err(), "{:?}", String::from_utf8_lossy(&bytes[..bytes.len().min(60)]));
        }
    }
}
