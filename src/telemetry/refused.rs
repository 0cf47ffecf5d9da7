//! The last requests that were refused or failed, by which operators find the one that a merchant or a customer names
//! (contract section 13, `/requests`). They are kept in memory, and lost with the process.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Serialize, Serializer};

use super::access::{AccessLine, loggable, write_time};
use super::cards::without_cards;
use crate::domain::{OrderId, UnixMillis, subscriber_network};

/// The most requests that are kept.
const REQUESTS: usize = 10_000;

/// The most bytes that they take together.
const BYTES: usize = 8 * 1024 * 1024;

/// A request costs at least this share of [`BYTES`], so that bounding the bytes bounds the requests too.
const UNIT: usize = BYTES.div_ceil(REQUESTS);

/// The most bytes of the requests whose caller was not authenticated: 2,000 requests.
const OTHERS_BYTES: usize = 2_000 * UNIT;

/// The most characters of a text that a caller chose. Ids are shorter.
const TEXT_CHARS: usize = 256;

/// A request that was refused or failed. None of its texts is secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RefusedRequest {
    /// When it was replied to; serialized in RFC 3339.
    #[serde(serialize_with = "serialize_time")]
    pub at: UnixMillis,
    /// `X-Request-Id`, with card numbers masked.
    pub request_id: Box<str>,
    /// The merchant whose key was used.
    pub merchant: Option<Box<str>>,
    /// Whether a signature proved it.
    pub authenticated: bool,
    /// The request method.
    pub method: Box<str>,
    /// The route's name.
    pub route: &'static str,
    /// The reply's status.
    pub status: u16,
    /// The reason, as in the access line.
    pub reason: &'static str,
    /// The members at fault, as in the access line.
    pub member: Option<Box<str>>,
    /// The merchant's id of the order, where it could be read.
    pub order_id: Option<Box<str>>,
    /// The operation that was found or in conflict.
    pub transaction_id: Option<Box<str>>,
    /// The client's address.
    pub peer: IpAddr,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn serialize_time<S: Serializer>(at: &UnixMillis, serializer: S) -> Result<S::Ok, S::Error> {
    let mut text = String::new();
    write_time(&mut text, *at);
    serializer.serialize_str(&text)
}

impl RefusedRequest {
    /// Makes it of the request's access line, the order that it names, and whether its caller was authenticated.
    #[must_use]
    pub fn of(line: &AccessLine<'_>, order_id: Option<&OrderId>, authenticated: bool) -> Self {
        Self {
            at: line.time,
            request_id: loggable(line.request_id).into(),
            merchant: line.merchant.map(Into::into),
            authenticated,
            method: line.method.into(),
            route: line.route,
            status: line.status,
            reason: line.reason.unwrap_or_default(),
            member: line.member.map(|member| without_cards(member).into()),
            order_id: order_id.map(|order_id| order_id.as_str().into()),
            transaction_id: line.transaction_id.map(Into::into),
            peer: line.peer,
        }
    }

    /// Shortens the texts that a caller chose, and returns what the request costs, in bytes.
    fn bound(&mut self) -> usize {
        let texts = [&mut self.member, &mut self.order_id].into_iter().flatten();
        for text in texts.chain([&mut self.request_id]) {
            if let Some((end, _)) = text.char_indices().nth(TEXT_CHARS) {
                *text = text[..end].into();
            }
        }
        let optional = [&self.merchant, &self.member, &self.order_id, &self.transaction_id];
        let texts: usize = optional.into_iter().flatten().map(|text| text.len()).sum();
        (size_of::<Self>() + size_of::<Entry>() + self.request_id.len() + self.method.len() + texts).max(UNIT)
    }
}

/// Selects refused requests.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RefusedQuery {
    /// With this request id, card numbers masked as [`RefusedRequest::request_id`].
    pub request_id: Option<Box<str>>,
    /// With a key of this merchant.
    pub merchant: Option<Box<str>>,
    /// For this reason.
    pub reason: Option<Box<str>>,
    /// The most requests to return.
    pub limit: usize,
}

impl RefusedQuery {
    fn matches(&self, request: &RefusedRequest) -> bool {
        self.request_id.as_ref().is_none_or(|id| *id == request.request_id)
            && self.merchant.as_ref().is_none_or(|id| request.merchant.as_ref() == Some(id))
            && self.reason.as_ref().is_none_or(|reason| **reason == *request.reason)
    }
}

/// The requests of one sender, oldest first.
#[derive(Debug, Default)]
struct Queue {
    entries: VecDeque<Entry>,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    request: Arc<RefusedRequest>,
    /// Ascends over all queues.
    number: u64,
    bytes: usize,
}

/// The queues of senders of one kind.
#[derive(Debug)]
struct Queues<S> {
    by_sender: HashMap<S, Queue>,
    bytes: usize,
}

impl<S> Default for Queues<S> {
    fn default() -> Self {
        Self { by_sender: HashMap::new(), bytes: 0 }
    }
}

impl<S: Clone + Eq + Hash> Queues<S> {
    fn push(&mut self, sender: S, entry: Entry) {
        let queue = self.by_sender.entry(sender).or_default();
        self.bytes += entry.bytes;
        queue.bytes += entry.bytes;
        queue.entries.push_back(entry);
    }

    /// Drops the oldest requests of the sender that has most, until all take at most `limit` bytes. A sender loses none to
    /// another that has more.
    fn shrink_to(&mut self, limit: usize) {
        while self.bytes > limit {
            let Some((sender, queue)) = self.by_sender.iter_mut().max_by_key(|(_, queue)| queue.bytes) else { return };
            let dropped = queue.entries.pop_front().map_or(0, |entry| entry.bytes);
            queue.bytes -= dropped;
            self.bytes -= dropped;
            if queue.entries.is_empty() {
                let sender = sender.clone();
                self.by_sender.remove(&sender);
            }
        }
    }
}

#[derive(Debug, Default)]
struct Kept {
    /// By merchant.
    authenticated: Queues<Box<str>>,
    /// By address.
    others: Queues<IpAddr>,
    last_number: u64,
}

/// Keeps the last refused requests of the process: at most 10,000, in 8 MiB. At most 2,000 are of callers that were not
/// authenticated. When there is no room, the merchant, or the address, with the most loses its oldest.
#[derive(Debug, Default)]
pub struct RefusedRequests(Mutex<Kept>);

impl RefusedRequests {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a request.
    pub fn add(&self, mut request: RefusedRequest) {
        let (bytes, peer) = (request.bound(), subscriber_network(request.peer));
        let merchant = request.merchant.clone().filter(|_| request.authenticated);
        let mut kept = self.kept();
        kept.last_number += 1;
        let entry = Entry { request: Arc::new(request), number: kept.last_number, bytes };
        match merchant {
            Some(merchant) => kept.authenticated.push(merchant, entry),
            None => kept.others.push(peer, entry),
        }
        kept.others.shrink_to(OTHERS_BYTES);
        let left = BYTES - kept.others.bytes;
        kept.authenticated.shrink_to(left);
    }

    /// Returns the requests of a query, the newest first.
    #[must_use]
    pub fn find(&self, query: &RefusedQuery) -> Vec<Arc<RefusedRequest>> {
        let kept = self.kept();
        let queues = kept.authenticated.by_sender.values().chain(kept.others.by_sender.values());
        let found = queues.flat_map(|queue| &queue.entries).filter(|entry| query.matches(&entry.request));
        let mut found: Vec<_> = found.map(|entry| (entry.number, Arc::clone(&entry.request))).collect();
        drop(kept);
        found.sort_unstable_by_key(|(number, _)| std::cmp::Reverse(*number));
        found.into_iter().take(query.limit).map(|(_, request)| request).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(number: usize, merchant: &str, authenticated: bool) -> RefusedRequest {
        RefusedRequest {
            at: UnixMillis(1_772_409_600_007),
            request_id: format!("request-{number}").into(),
            merchant: Some(merchant.into()),
            authenticated,
            method: "POST".into(),
            route: "payin",
            status: 401,
            reason: "signature",
            member: None,
            order_id: None,
            transaction_id: None,
            peer: IpAddr::from([203, 0, 113, 9]),
        }
    }

    fn of_merchant(kept: &RefusedRequests, merchant: &str) -> usize {
        kept.find(&RefusedQuery { merchant: Some(merchant.into()), limit: usize::MAX, ..RefusedQuery::default() }).len()
    }

    #[test]
    fn requests_are_found_newest_first() {
        let kept = RefusedRequests::default();
        for number in 0..10 {
            kept.add(refused(number, if number % 2 == 0 { "acme" } else { "beta" }, number % 3 == 0));
        }
        kept.add(RefusedRequest { reason: "timestamp", ..refused(10, "acme", true) });
        let ids = |query: RefusedQuery| -> Vec<_> {
            let found = kept.find(&RefusedQuery { limit: 4, ..query });
            found.iter().map(|request| request.request_id["request-".len()..].parse::<u32>().unwrap()).collect()
        };
        let query = RefusedQuery::default();
        assert_eq!(ids(query.clone()), [10, 9, 8, 7]);
        assert_eq!(ids(RefusedQuery { merchant: Some("beta".into()), ..query.clone() }), [9, 7, 5, 3]);
        assert_eq!(ids(RefusedQuery { reason: Some("timestamp".into()), ..query.clone() }), [10]);
        assert_eq!(ids(RefusedQuery { request_id: Some("request-5".into()), ..query.clone() }), [5]);
        assert!(ids(RefusedQuery { request_id: Some("request".into()), ..query }).is_empty());
    }

    #[test]
    fn no_caller_pushes_out_the_requests_of_another() {
        let kept = RefusedRequests::default();
        for number in 0..900 {
            kept.add(refused(number, "small", true));
        }
        for number in 0..90 {
            let peer = IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, number]);
            kept.add(RefusedRequest { peer, ..refused(0, "unproven, from another address", false) });
        }
        for number in 0..30_000 {
            kept.add(refused(number, "acme", true));
            kept.add(refused(number, "unproven", false));
        }
        assert_eq!(of_merchant(&kept, "small"), 900);
        assert_eq!(of_merchant(&kept, "unproven, from another address"), 90);
        assert_eq!(of_merchant(&kept, "unproven"), 2_000 - 90);
        let all = BYTES / UNIT;
        assert!(all <= REQUESTS);
        assert_eq!(of_merchant(&kept, "acme"), all - 2_000 - 900, "what others do not need");
        for number in 0..20 * 1_000 {
            kept.add(refused(number, &format!("merchant {}", number % 20), true));
        }
        let share = (all - 2_000) / 22;
        for merchant in ["acme", "small", "merchant 0", "merchant 19"] {
            assert!(of_merchant(&kept, merchant).abs_diff(share) <= 1, "{merchant}");
        }
        assert_eq!(kept.find(&RefusedQuery { limit: usize::MAX, ..RefusedQuery::default() }).len(), all);
    }

    #[test]
    fn texts_and_bytes_are_bounded() {
        let kept = RefusedRequests::default();
        let long: Box<str> = "é".repeat(TEXT_CHARS + 1).into();
        let long = RefusedRequest {
            request_id: long.clone(),
            member: Some(long.clone()),
            order_id: Some(long),
            ..refused(0, "acme", true)
        };
        for _ in 0..REQUESTS {
            kept.add(long.clone());
        }
        let found = kept.find(&RefusedQuery { limit: usize::MAX, ..RefusedQuery::default() });
        let bytes = 3 * 2 * TEXT_CHARS;
        assert!(found.len() > 3_000 && found.len() * bytes < BYTES, "{}", found.len());
        for text in [Some(&found[0].request_id), found[0].member.as_ref(), found[0].order_id.as_ref()] {
            assert_eq!(text.map(|text| text.chars().count()), Some(TEXT_CHARS));
        }
        assert!(kept.kept().authenticated.bytes <= BYTES);
    }
}
