//! How callbacks are answered: as `--answer` says, in turn, the last one from then on.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::Full;

/// How long a callback that gets no answer is held, at most.
const HELD: Duration = Duration::from_mins(10);

/// One way to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// With this status and no body.
    Status(StatusCode),
    /// Not at all.
    Timeout,
    /// By closing the connection (HTTP/2: the stream) once the request was read.
    Cut,
}

impl FromStr for Answer {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "timeout" => Ok(Self::Timeout),
            "cut" => Ok(Self::Cut),
            _ => {
                let status = StatusCode::from_bytes(text.as_bytes()).ok();
                let last = status.filter(|status| (200..=599).contains(&status.as_u16()));
                last.map(Self::Status).ok_or("must be a status from 200 to 599, `timeout` or `cut`")
            }
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => f.write_str(status.as_str()),
            Self::Timeout => f.write_str("timeout"),
            Self::Cut => f.write_str("cut"),
        }
    }
}

/// The connection is closed without an answer.
#[derive(Debug, thiserror::Error)]
#[error("closed without an answer")]
pub struct Closed;

/// What becomes of one callback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// How it is answered.
    pub answer: Answer,
    /// How long that takes.
    pub delay: Duration,
    /// `Retry-After` of answers that are no success, in seconds.
    pub retry_after: Option<u32>,
}

impl Decision {
    /// Nobody takes callbacks any more.
    pub const LATE: Self =
        Self { answer: Answer::Status(StatusCode::SERVICE_UNAVAILABLE), delay: Duration::ZERO, retry_after: None };
    /// The body is longer than what is read.
    pub const TOO_LONG: Self =
        Self { answer: Answer::Status(StatusCode::PAYLOAD_TOO_LARGE), delay: Duration::ZERO, retry_after: None };
    /// The body did not come in time, or broke off.
    pub const TOO_SLOW: Self =
        Self { answer: Answer::Status(StatusCode::REQUEST_TIMEOUT), delay: Duration::ZERO, retry_after: None };

    /// Answers so, after the delay.
    ///
    /// # Errors
    /// The connection is closed instead.
    pub async fn carry_out(self) -> Result<Response<Full<Bytes>>, Closed> {
        tokio::time::sleep(self.delay).await;
        let status = match self.answer {
            Answer::Status(status) => status,
            Answer::Cut => return Err(Closed),
            Answer::Timeout => {
                tokio::time::sleep(HELD).await;
                return Err(Closed);
            }
        };
        let mut response = Response::new(Full::default());
        *response.status_mut() = status;
        if let Some(seconds) = self.retry_after.filter(|_| !status.is_success()) {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        Ok(response)
    }
}

/// Reads a span of time: digits and `ms`, `s` or `m`, at most ten minutes.
///
/// # Errors
/// It is none.
pub fn span(text: &str) -> Result<Duration, &'static str> {
    const REASON: &str = "must be a time such as 500ms, 2s or 1m, at most 10m";
    let unit = text.find(|c: char| !c.is_ascii_digit()).ok_or(REASON)?;
    let (number, unit) = text.split_at(unit);
    let number: u64 = number.parse().map_err(|_| REASON)?;
    let millis = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        _ => return Err(REASON),
    };
    let span = number.checked_mul(millis).map(Duration::from_millis);
    span.filter(|span| *span <= HELD).ok_or(REASON)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_written_as_they_are_read() {
        for text in ["200", "204", "302", "410", "500", "599", "timeout", "cut"] {
            assert_eq!(text.parse::<Answer>().unwrap().to_string(), text);
        }
        for text in ["", "100", "101", "199", "600", "2000", "20", "ok", "Timeout", " 200", "200 "] {
            assert!(text.parse::<Answer>().is_err(), "{text}");
        }
    }

    #[test]
    fn spans_are_bounded() {
        for (text, millis) in [("0s", 0), ("500ms", 500), ("2s", 2000), ("10m", 600_000)] {
            assert_eq!(span(text), Ok(Duration::from_millis(millis)));
        }
        for text in ["", "2", "s", "-1s", "1h", "11m", "99999999999999999999s", "18446744073709551615m", "1.5s", "2 s"]
        {
            assert!(span(text).is_err(), "{text}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn decisions_are_carried_out() {
        let decision = |text: &str| Decision {
            answer: text.parse().unwrap(),
            delay: Duration::from_secs(2),
            retry_after: Some(30),
        };
        let answered = decision("503").carry_out().await.unwrap();
        assert_eq!(
            (answered.status().as_u16(), answered.headers()[header::RETRY_AFTER].to_str().unwrap()),
            (503, "30")
        );
        let answered = decision("200").carry_out().await.unwrap();
        assert!(answered.headers().get(header::RETRY_AFTER).is_none());
        assert!(decision("cut").carry_out().await.is_err());
        let held = tokio::time::timeout(HELD, decision("timeout").carry_out()).await;
        assert!(held.is_err(), "nothing is said for as long as anybody waits");
    }
}
