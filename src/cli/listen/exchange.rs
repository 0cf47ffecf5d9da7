//! A callback that was received, and the reply to it.

use std::fmt;
use std::str::FromStr;

use bytes::Bytes;
use http::{Request, StatusCode};

use crate::domain::UnixMillis;

/// A reply to a callback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListenAnswer {
    /// This status without a body.
    Status(StatusCode),
    /// No reply.
    Timeout,
}

impl FromStr for ListenAnswer {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "timeout" {
            return Ok(Self::Timeout);
        }
        let status =
            StatusCode::from_bytes(text.as_bytes()).ok().filter(|status| (200..=599).contains(&status.as_u16()));
        status.map(Self::Status).ok_or("must be a status from 200 to 599, or `timeout`")
    }
}

impl fmt::Display for ListenAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => f.write_str(status.as_str()),
            Self::Timeout => f.write_str("timeout"),
        }
    }
}

/// A received callback.
#[derive(Clone)]
pub(super) struct Received {
    pub(super) at: UnixMillis,
    pub(super) request: Request<Bytes>,
}
