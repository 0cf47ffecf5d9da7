//! Requests and the checks of their replies.

use std::sync::Arc;

use crate::common::load::{Check, Requests, holds};
use crate::stub;
use crate::support::Request;
use crate::support::request::ACME;

/// A kind of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Workload {
    /// New v1 deposits. Their ids ascend, so that consecutive orders share pages of the store.
    Create,
    /// New v1 deposits whose ids are random UUIDs.
    RandomCreate,
    /// Repeats of existing v1 deposits.
    Repeat,
    /// Status reads of v1 deposits.
    Status,
    /// Status reads with a wrong signature.
    RefusedQuestion,
    /// v1 deposits with a wrong signature.
    RefusedCreate,
    /// v1 deposits, signed, with a malformed amount.
    RefusedBody,
    /// New v2 deposits.
    NativeCreate,
}

/// The kind of a server's replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answers {
    /// A static reply, or the stub's.
    Stub,
    /// A v1 gateway.
    Gateway,
}

impl Workload {
    /// Returns its name in tables and options.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::RandomCreate => "create-random",
            Self::Repeat => "repeat",
            Self::Status => "status",
            Self::RefusedQuestion => "refused-question",
            Self::RefusedCreate => "refused-create",
            Self::RefusedBody => "refused-body",
            Self::NativeCreate => "v2-create",
        }
    }

    /// Returns its description.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Create => "v1 create",
            Self::RandomCreate => "v1 create, random order ids",
            Self::Repeat => "repeated create",
            Self::Status => "status read",
            Self::RefusedQuestion => "refused status read, 401",
            Self::RefusedCreate => "refused create, 401",
            Self::RefusedBody => "refused create, 400",
            Self::NativeCreate => "native v2 create",
        }
    }

    /// Reports whether it uses existing orders.
    pub const fn is_about_known(self) -> bool {
        matches!(self, Self::Repeat | Self::Status | Self::RefusedQuestion)
    }
}

/// The source of order numbers: none is used twice for new orders.
#[derive(Debug, Default)]
pub struct Orders {
    next: usize,
    /// Numbers below this one belong to the orders for repeats and status reads.
    known: usize,
}

impl Orders {
    /// Creates the source after the first `known` orders were created.
    #[must_use]
    pub const fn after(known: usize) -> Self {
        Self { next: known, known }
    }

    /// Prepares `count` requests, and the check of their replies.
    pub fn prepare(&mut self, workload: Workload, answers: Answers, count: usize) -> (Requests, Arc<Check>) {
        let first = self.next;
        let known = self.known.max(1);
        let order = move |number: usize| if workload.is_about_known() { number % known } else { first + number };
        if !workload.is_about_known() {
            self.next += count;
        }
        let requests = (0..count).map(|number| request(workload, order(number))).collect();
        (requests, check(workload, answers, order))
    }
}

/// Returns the bytes of one request.
#[must_use]
pub fn request(workload: Workload, order: usize) -> Vec<u8> {
    const WRONG: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
    let create = |body: String| Request::payin(&ACME, &body);
    let question = || Request::v1_status(&ACME, "payin", &external_id(order));
    let refused = |request: Request| request.replace("X-Signature", Some(WRONG));
    let request = match workload {
        Workload::Create | Workload::Repeat => create(v1_body(order)),
        Workload::RandomCreate => create(v1_body(order).replace(&external_id(order), &random_id(order))),
        Workload::Status => question(),
        Workload::RefusedQuestion => refused(question()),
        Workload::RefusedCreate => refused(create(v1_body(order))),
        Workload::RefusedBody => create(v1_body(order).replace("\"amount\":\"", "\"amount\":\"x")),
        Workload::NativeCreate => Request::deposit(&ACME, &v2_body(order)),
    };
    request.bytes()
}

/// Returns the `external_id` of an order.
#[must_use]
pub fn external_id(order: usize) -> String {
    format!("order-{order:012}")
}

/// Returns a UUID that depends on the number alone, and is another one for every number.
fn random_id(order: usize) -> String {
    // An odd factor: no two numbers share a product.
    let high = (order as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let low = (high ^ high >> 32).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let (time, middle, node) = (high >> 32, high >> 16 & 0xffff, low >> 16);
    format!("{time:08x}-{middle:04x}-4{:03x}-8{:03x}-{node:012x}", high >> 4 & 0xfff, low & 0xfff)
}

/// Returns a v1 create of about 445 bytes. Its amount has no special meaning for the sandbox.
#[must_use]
pub fn v1_body(order: usize) -> String {
    format!(
        r#"{{"external_id":"order-{order:012}","amount":"{}.{:02}","currency":"EUR","shop_code":"card-eur","callback_url":"https://acme.example/payments/callback","merchant_user_id":"{order}","merchant_user_ip":"203.0.113.9","paymentData":{{"return_user_url":"https://acme.example/payments/done?order={order}","email":"customer-{order}@example.com","first_name":"Annabelle","phone":"+491701234567","bank_code":"BANK-A","channel":"app","level":3}}}}"#,
        10 + order % 900,
        order % 90 + 5
    )
}

/// Returns the same deposit as a v2 create.
fn v2_body(order: usize) -> String {
    let back = format!("https://acme.example/payments/done?order={order}");
    format!(
        r#"{{"order_id":"native-{order:012}","amount":{}.{:02},"currency":"EUR","method":"card-eur","customer_account_id":{order},"callback_url":"https://acme.example/payments/callback","success_url":"{back}","pending_url":"{back}","fail_url":"{back}","fields":{{"email":"customer-{order}@example.com","first_name":"Annabelle","phone":"+491701234567","bank_code":"BANK-A","channel":"app","level":3,"merchant_user_ip":"203.0.113.9"}}}}"#,
        10 + order % 900,
        order % 90 + 5
    )
}

fn check(workload: Workload, answers: Answers, order: impl Fn(usize) -> usize + Send + Sync + 'static) -> Arc<Check> {
    if answers == Answers::Stub {
        return Arc::new(|_, reply| reply.status == 200 && reply.body == stub::BODY.as_bytes());
    }
    let refused = |status| -> Arc<Check> {
        Arc::new(move |_, reply| reply.status == status && reply.body.starts_with(br#"{"error":{"code":"#))
    };
    let id_of = if workload == Workload::RandomCreate { random_id } else { external_id };
    match workload {
        Workload::Create | Workload::RandomCreate | Workload::Repeat | Workload::Status => {
            Arc::new(move |number, reply| {
                let id = id_of(order(number));
                reply.status == 200 && holds(reply.body, br#""transaction_id":""#) && holds(reply.body, id.as_bytes())
            })
        }
        Workload::NativeCreate => Arc::new(|_, reply| {
            reply.status == 200
                && reply.body.starts_with(br#"{"transaction_id":""#)
                && holds(reply.body, br#""redirect_url":"https://"#)
        }),
        Workload::RefusedQuestion | Workload::RefusedCreate => refused(401),
        Workload::RefusedBody => refused(400),
    }
}
