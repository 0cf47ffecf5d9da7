//! What callers send.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::common::load::{Check, Requests, holds};
use super::support::bodies::with;
use super::support::{Key, Request, payin, payout};

/// A merchant's key, and the shop that it uses.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Signs.
    pub key: Key,
    /// Is named by requests.
    pub shop: String,
}

/// Names that look random, none of them twice in a run.
#[derive(Debug, Default)]
pub struct Orders(AtomicU64);

impl Orders {
    /// The next name. Its hash is random in any store; so is the name itself.
    pub fn next(&self) -> String {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        format!("order-{:016x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(std::process::id()))
    }

    /// So many names.
    pub fn some(&self, count: usize) -> Vec<String> {
        (0..count).map(|_| self.next()).collect()
    }

    /// v1 deposits, each of the next caller.
    pub fn payins(&self, callers: &[Caller], count: usize) -> Requests {
        payins(callers, &self.some(count))
    }

    /// v1 withdrawals whose results this receiver is told of.
    pub fn payouts(&self, caller: &Caller, receiver: &str, count: usize) -> Requests {
        let request = |_| {
            let body = with(payout(&self.next()), "shop_code", Some(caller.shop.clone().into()));
            let body = with(body, "callback_url", Some(receiver.into()));
            Request::payout(&caller.key, &body).bytes()
        };
        (0..count).map(request).collect()
    }
}

/// v1 deposits of these names, each of the next caller.
pub fn payins(callers: &[Caller], names: &[String]) -> Requests {
    let request = |(caller, name): (&Caller, &String)| {
        let body = with(payin(name), "shop_code", Some(caller.shop.clone().into()));
        Request::payin(&caller.key, &body).bytes()
    };
    callers.iter().cycle().zip(names).map(request).collect()
}

/// Pages of a merchant's history, one of the first twenty after the other.
pub fn histories(caller: &Caller, count: usize) -> Requests {
    let page = |number| format!("/api/v1/transactions?page={}", number % 20 + 1);
    (0..count).map(|number| Request::v1_get(&caller.key, &page(number)).bytes()).collect()
}

/// Questions about these orders, again and again.
pub fn statuses(caller: &Caller, orders: &[String], count: usize) -> Requests {
    let question = |order: &String| Request::v1_status(&caller.key, "payin", order).bytes();
    orders.iter().cycle().take(count).map(question).collect()
}

/// A reply of 200 that holds this.
pub fn says(part: &'static str) -> Arc<Check> {
    Arc::new(move |_, reply| reply.status == 200 && holds(reply.body, part.as_bytes()))
}

/// The reply to a create.
pub fn created() -> Arc<Check> {
    says("\"transaction_id\":\"")
}
