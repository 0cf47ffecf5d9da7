//! Reads a request's body: whole, bounded, in time.

use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use http_body::Body;
use http_body_util::BodyExt as _;
use tokio::time::timeout;

use crate::domain::wide;
use crate::error::AdmissionError;

const TRAILERS: AdmissionError = AdmissionError::Malformed("trailers are not accepted");
const BROKEN: AdmissionError = AdmissionError::Malformed("the body could not be read");

/// Reads the body. `deadline` is for the whole of it, however it is dripped.
///
/// # Errors
/// The body is longer than `limit` bytes, late, broken off, or followed by trailers.
pub(super) async fn read<B>(body: B, limit: usize, deadline: Duration) -> Result<Bytes, AdmissionError>
where
    B: Body<Data = Bytes>,
{
    timeout(deadline, collect(body, limit)).await.map_err(|_| AdmissionError::BodyTooSlow)?
}

/// The most of a refused request's body that is read and dropped, in bytes, and for how long.
const AT_HAND: usize = 8 * 1024;
const AT_HAND_IN: Duration = Duration::from_millis(20);

/// Reads and drops a body that is at hand, as most are: short, and sent with the head or right behind it. Then nothing is left
/// on the connection before the next request. Returns whether it was at hand.
pub(super) async fn is_at_hand<B>(body: B) -> bool
where
    B: Body<Data = Bytes>,
{
    body.size_hint().lower() <= wide(AT_HAND) && read(body, AT_HAND, AT_HAND_IN).await.is_ok()
}

/// Reports whether a body of this length that was read in this time was at hand.
pub(super) const fn was_at_hand(length: usize, read_in: Duration) -> bool {
    length <= AT_HAND && read_in.as_nanos() <= AT_HAND_IN.as_nanos()
}

/// Collects a body. One piece, the usual case, is not copied. Several pieces are joined in a buffer of the announced length:
/// kept as they came, they would keep the buffers that they were read into.
async fn collect<B>(body: B, limit: usize) -> Result<Bytes, AdmissionError>
where
    B: Body<Data = Bytes>,
{
    let announced = body.size_hint().exact().and_then(|length| usize::try_from(length).ok());
    let mut body = pin!(body);
    let (mut whole, mut joined) = (Bytes::new(), Vec::new());
    while let Some(frame) = body.frame().await {
        let data = frame.map_err(|_| BROKEN)?.into_data().map_err(|_| TRAILERS)?;
        let arrived = whole.len() + joined.len();
        if arrived + data.len() > limit {
            return Err(AdmissionError::BodyTooLarge);
        }
        if arrived == 0 && announced == Some(data.len()) {
            whole = data;
        } else {
            if let Some(length) = announced {
                joined.reserve_exact(length.min(limit).saturating_sub(joined.len()));
            }
            joined.extend_from_slice(&data);
        }
    }
    Ok(if joined.is_empty() { whole } else { joined.into() })
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use http::HeaderMap;
    use http_body::{Frame, SizeHint};

    use super::*;

    /// Gives its frames, then ends, breaks off or stays silent. Its length may be announced.
    struct Script {
        frames: VecDeque<Frame<Bytes>>,
        end: End,
        announced: Option<u64>,
    }

    enum End {
        Clean,
        Broken,
        Silent,
    }

    impl Body for Script {
        type Data = Bytes;
        type Error = &'static str;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
            match (self.frames.pop_front(), &self.end) {
                (Some(frame), _) => Poll::Ready(Some(Ok(frame))),
                (None, End::Clean) => Poll::Ready(None),
                (None, End::Broken) => Poll::Ready(Some(Err("broken off"))),
                (None, End::Silent) => Poll::Pending,
            }
        }

        fn size_hint(&self) -> SizeHint {
            self.announced.map_or_else(SizeHint::default, SizeHint::with_exact)
        }
    }

    fn script(pieces: &[&'static str], end: End) -> Script {
        let frames = pieces.iter().map(|piece| Frame::data(Bytes::from_static(piece.as_bytes()))).collect();
        Script { frames, end, announced: None }
    }

    async fn outcome(body: Script) -> Result<Bytes, AdmissionError> {
        read(body, 8, Duration::from_secs(10)).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_is_read_whole() {
        for pieces in [&[][..], &["1234"], &["12", "34"], &["", "12", "", "34", "", "5678"], &["12345678"]] {
            assert_eq!(outcome(script(pieces, End::Clean)).await.unwrap(), pieces.concat(), "{pieces:?}");
        }
    }

    #[tokio::test]
    async fn a_body_in_pieces_takes_no_more_than_its_announced_length() {
        let data = Bytes::from(vec![b'x'; 1000]);
        for sizes in [&[1000][..], &[1, 999], &[0, 1000, 0], &[400, 400, 200]] {
            let mut rest = data.clone();
            let frames = sizes.iter().map(|size| Frame::data(rest.split_to(*size))).collect();
            let announced = Script { frames, end: End::Clean, announced: Some(1000) };
            let body = read(announced, 4096, Duration::from_secs(10)).await.unwrap();
            assert_eq!(body, data, "{sizes:?}");
            assert_eq!(Vec::from(body).capacity(), 1000, "{sizes:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_is_bounded_in_size_and_time() {
        assert_eq!(outcome(script(&["123456789"], End::Clean)).await, Err(AdmissionError::BodyTooLarge));
        assert_eq!(outcome(script(&["1234", "56789"], End::Silent)).await, Err(AdmissionError::BodyTooLarge));
        assert_eq!(outcome(script(&["1234"], End::Silent)).await, Err(AdmissionError::BodyTooSlow));
    }

    #[tokio::test]
    async fn a_broken_body_and_trailers_are_refused() {
        assert_eq!(outcome(script(&["1234"], End::Broken)).await, Err(BROKEN));
        let mut body = script(&["1234"], End::Clean);
        body.frames.push_back(Frame::trailers(HeaderMap::new()));
        assert_eq!(outcome(body).await, Err(TRAILERS));
    }
}
