//! Finds the end of a request's body: follows `Content-Length` and chunked framing through the bytes of a connection,
//! so that [`HeadGuard`](super::head_guard::HeadGuard) knows where the next head begins. It is stricter than hyper's
//! parser behind it: framing that two parsers could read differently is an error here.

use crate::domain::wide;

/// The most bytes of chunk extensions and trailers in one body, in all.
const OVERHEAD_LIMIT: usize = 16 * 1024;

/// The framing of one body, and how far it has been followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Framing {
    /// A body with a length: how many bytes are still to come.
    Length(u64),
    /// `Transfer-Encoding: chunked`.
    Chunked(Chunked),
}

/// The error of malformed chunked framing; nothing after it can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BadFraming;

impl Framing {
    /// The framing of a request without a body.
    pub(super) const NONE: Self = Self::Length(0);

    /// Returns the framing of a chunked body, at its first byte.
    pub(super) const fn chunked() -> Self {
        Self::Chunked(Chunked { state: State::SizeStart, remaining: 0, overhead: 0 })
    }

    /// Returns how many of the next bytes of the connection belong to this body: all of them, unless it ends among
    /// them.
    pub(super) fn follow(&mut self, input: &[u8]) -> Result<usize, BadFraming> {
        match self {
            Self::Length(remaining) => {
                let taken = usize::try_from(*remaining).unwrap_or(usize::MAX).min(input.len());
                *remaining -= wide(taken);
                Ok(taken)
            }
            Self::Chunked(chunked) => chunked.follow(input),
        }
    }

    /// Reports whether the body has ended.
    pub(super) const fn is_done(&self) -> bool {
        match self {
            Self::Length(remaining) => *remaining == 0,
            Self::Chunked(chunked) => matches!(chunked.state, State::Done),
        }
    }
}

/// The progress through a chunked body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chunked {
    state: State,
    /// The chunk size read so far, then how much of the chunk's data is left.
    remaining: u64,
    overhead: usize,
}

/// What the next byte has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The first digit of a size.
    SizeStart,
    /// A digit, `;` or CR.
    Size,
    /// Part of an extension, or CR.
    Extension,
    /// The LF of a size line.
    SizeLf,
    /// A chunk's data.
    Data,
    /// The CR after the data.
    DataCr,
    /// The LF after the data.
    DataLf,
    /// The start of a trailer line, or the CR of the empty one.
    TrailerStart,
    /// Inside a trailer line.
    Trailer,
    /// The LF of a trailer line.
    TrailerLf,
    /// The LF of the empty line at the end.
    EndLf,
    /// None: the body has ended.
    Done,
}

impl Chunked {
    fn follow(&mut self, input: &[u8]) -> Result<usize, BadFraming> {
        let mut at = 0;
        while let Some(byte) = input.get(at)
            && self.state != State::Done
        {
            if self.state == State::Data {
                let taken = usize::try_from(self.remaining).unwrap_or(usize::MAX).min(input.len() - at);
                self.remaining -= wide(taken);
                at += taken;
                if self.remaining == 0 {
                    self.state = State::DataCr;
                }
            } else {
                self.state = self.step(*byte)?;
                at += 1;
            }
        }
        Ok(at)
    }

    fn step(&mut self, byte: u8) -> Result<State, BadFraming> {
        match (self.state, byte) {
            (State::SizeStart, _) => {
                self.remaining = digit(byte)?;
                Ok(State::Size)
            }
            (State::Size | State::Extension, b'\r') => Ok(State::SizeLf),
            (State::Size, b';') => self.count_overhead(State::Extension),
            (State::Size, _) => {
                let shifted = self.remaining.checked_mul(16).ok_or(BadFraming)?;
                self.remaining = shifted | digit(byte)?;
                // Every further digit counts as overhead, so that leading zeros are bounded.
                self.count_overhead(State::Size)
            }
            (State::Extension, byte) if byte != b'\n' => self.count_overhead(State::Extension),
            (State::SizeLf, b'\n') if self.remaining == 0 => Ok(State::TrailerStart),
            (State::SizeLf, b'\n') => Ok(State::Data),
            (State::DataCr, b'\r') => Ok(State::DataLf),
            (State::DataLf, b'\n') => Ok(State::SizeStart),
            (State::TrailerStart, b'\r') => Ok(State::EndLf),
            (State::Trailer, b'\r') => Ok(State::TrailerLf),
            (State::TrailerStart | State::Trailer, byte) if byte != b'\n' => self.count_overhead(State::Trailer),
            (State::TrailerLf, b'\n') => Ok(State::TrailerStart),
            (State::EndLf, b'\n') => Ok(State::Done),
            _ => Err(BadFraming),
        }
    }

    fn count_overhead(&mut self, next: State) -> Result<State, BadFraming> {
        self.overhead += 1;
        if self.overhead > OVERHEAD_LIMIT { Err(BadFraming) } else { Ok(next) }
    }
}

fn digit(byte: u8) -> Result<u64, BadFraming> {
    char::from(byte).to_digit(16).map(u64::from).ok_or(BadFraming)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn follow_all(mut framing: Framing, input: &[u8], step: usize) -> Result<(usize, bool), BadFraming> {
        let mut at = 0;
        while at < input.len() && !framing.is_done() {
            let end = (at + step).min(input.len());
            at += framing.follow(&input[at..end])?;
        }
        Ok((at, framing.is_done()))
    }

    #[test]
    fn bodies_end_where_their_framing_ends() {
        assert!(Framing::NONE.is_done());
        assert_eq!(follow_all(Framing::Length(3), b"abcGET", 6), Ok((3, true)));
        assert_eq!(follow_all(Framing::Length(9), b"abc", 1), Ok((3, false)));
        for step in 1..40 {
            let body = b"3\r\nabc\r\n00a;x=\"1\"\r\n0123456789\r\n0\r\nA: b\r\n\r\n";
            let mut input = body.to_vec();
            input.extend_from_slice(b"GET / HTTP/1.1\r\n");
            assert_eq!(follow_all(Framing::chunked(), &input, step), Ok((body.len(), true)));
        }
    }

    #[test]
    fn ambiguous_framing_is_refused() {
        for body in [
            "\r\n",
            "x\r\n",
            "3\nabc\r\n",
            "3\r\nabcd\r\n",
            "3\r\nabc\n0\r\n\r\n",
            "3 \r\nabc",
            " 3\r\nabc",
            "+3\r\nabc",
            "0x3\r\nabc",
            "-1\r\n",
            ";x\r\n",
            "3;x\nabc",
            "3;x\rabc",
            "3\r\rabc",
            "0\r\n\n",
            "0\r\nA: b\n\r\n",
            "10000000000000000\r\n",
        ] {
            assert_eq!(follow_all(Framing::chunked(), body.as_bytes(), 64), Err(BadFraming), "{body:?}");
        }
        let padded = format!("{}1\r\na", "0".repeat(OVERHEAD_LIMIT + 2));
        assert_eq!(follow_all(Framing::chunked(), padded.as_bytes(), 64), Err(BadFraming));
        let extension = format!("1;{}\r\na", "x".repeat(OVERHEAD_LIMIT + 2));
        assert_eq!(follow_all(Framing::chunked(), extension.as_bytes(), 64), Err(BadFraming));
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_pieces_end_at_the_same_place(input: Vec<u8>, step in 1_usize..50) {
            let whole = follow_all(Framing::chunked(), &input, input.len().max(1));
            prop_assert_eq!(follow_all(Framing::chunked(), &input, step), whole);
        }
    }
}
