//! The callers' requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::common::load::{Check, Requests, holds};
use super::support::bodies::with;
use super::support::{Key, Request, payin, payout};

/// A merchant's key, and the shop that it uses.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The key that signs.
    pub key: Key,
    /// The shop that requests name.
    pub shop: String,
}

/// A source of order ids that are unique in a run.
#[derive(Debug, Default)]
pub struct Orders(AtomicU64);

impl Orders {
    /// Returns the next id. Both the id and its hash are randomly distributed.
    pub fn next(&self) -> String {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        format!("order-{:016x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(std::process::id()))
    }

    /// Returns `count` ids of orders that are numbered one after the other.
    pub fn ascending(&self, count: usize) -> Vec<String> {
        let first = self.0.fetch_add(count as u64, Ordering::Relaxed);
        (first..).take(count).map(|number| format!("number-{number:015}")).collect()
    }

    /// Returns `count` ids.
    pub fn some(&self, count: usize) -> Vec<String> {
        (0..count).map(|_| self.next()).collect()
    }

    /// Returns v1 deposits of the callers in turn.
    pub fn payins(&self, callers: &[Caller], count: usize) -> Requests {
        payins(callers, &self.some(count))
    }

    /// Returns v1 withdrawals with callbacks to this receiver.
    pub fn payouts(&self, caller: &Caller, receiver: &str, count: usize) -> Requests {
        let request = |_| {
            let body = with(payout(&self.next()), "shop_code", Some(caller.shop.clone().into()));
            let body = with(body, "callback_url", Some(receiver.into()));
            Request::payout(&caller.key, &body).bytes()
        };
        (0..count).map(request).collect()
    }
}

/// Returns v1 deposits with these ids, of the callers in turn.
pub fn payins(callers: &[Caller], names: &[String]) -> Requests {
    let request = |(caller, name): (&Caller, &String)| {
        let body = with(payin(name), "shop_code", Some(caller.shop.clone().into()));
        Request::payin(&caller.key, &body).bytes()
    };
    callers.iter().cycle().zip(names).map(request).collect()
}

/// Returns reads of a merchant's history: its first twenty pages in turn.
pub fn histories(caller: &Caller, count: usize) -> Requests {
    let page = |number| format!("/api/v1/transactions?page={}", number % 20 + 1);
    (0..count).map(|number| Request::v1_get(&caller.key, &page(number)).bytes()).collect()
}

/// Returns status reads of these orders in turn.
pub fn statuses(caller: &Caller, orders: &[String], count: usize) -> Requests {
    let question = |order: &String| Request::v1_status(&caller.key, "payin", order).bytes();
    orders.iter().cycle().take(count).map(question).collect()
}

/// Returns a check for a 200 that contains a text.
pub fn containing(part: &'static str) -> Arc<Check> {
    Arc::new(move |_, reply| reply.status == 200 && holds(reply.body, part.as_bytes()))
}

/// Returns the check of the reply to a create.
pub fn created() -> Arc<Check> {
    containing("\"transaction_id\":\"")
}
