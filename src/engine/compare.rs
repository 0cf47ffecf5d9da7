//! Whether a create repeats one that is stored (contract section 7, "repeat").

use crate::domain::{Deposit, Kind, ShopCode, Withdrawal};
use crate::store::{Comparer, Digest, Kept, Stored, V1Part};
use crate::wire::json::{self, Node, Object};
use crate::wire::v2::{CreateRequest, RequestKind};

/// The keyed hash of what a request says, reduced to the `fields` that `kept` keeps.
pub fn digest(comparer: &Comparer, request: &CreateRequest<'_>, kept: &Kept) -> Digest {
    let mut hashing = comparer.start("v2 create");
    hashing.part(request.kind.direction().as_str().as_bytes());
    hashing.part(&request.amount.hundredths().to_le_bytes());
    hashing.part(request.currency.as_str().as_bytes());
    hashing.optional(request.method.as_deref().map(str::as_bytes));
    hashing.optional(request.customer_account_id.map(|id| id.0.to_le_bytes()).as_ref().map(|bytes| &bytes[..]));
    hashing.part(request.callback_url.as_str().as_bytes());
    match &request.kind {
        RequestKind::Deposit { success_url, pending_url, fail_url } => {
            for url in [success_url, pending_url, fail_url] {
                hashing.part(url.as_str().as_bytes());
            }
        }
        RequestKind::Withdrawal { account_number, account_channel } => {
            hashing.part(account_number.expose().as_bytes());
            hashing.optional(account_channel.as_deref().map(str::as_bytes));
        }
    }
    request.fields.hash(&mut hashing, kept);
    hashing.finish()
}

/// How a create stands to the operation that its order names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Likeness {
    /// It says what the operation was created from.
    Repeat,
    /// It came through the same API version and says something else.
    Differs,
    /// It came through the other API version: "Switching shop or API version is not a way to retry" (merchant-api-v2),
    /// whatever it says.
    OtherVersion,
}

/// Compares a request, of v1 origin when `v1` is given, with a stored operation. A v1 request is compared by what the v1
/// body said, which no rule can change between the two.
pub fn likeness(comparer: &Comparer, request: &CreateRequest<'_>, v1: Option<&V1Part>, stored: &Stored) -> Likeness {
    let same = match (v1, &stored.v1) {
        (Some(sent), Some(kept)) => sent.digest == kept.digest,
        (None, None) => digest(comparer, request, &stored.comparison.kept) == stored.comparison.digest,
        (Some(_), None) | (None, Some(_)) => return Likeness::OtherVersion,
    };
    if same { Likeness::Repeat } else { Likeness::Differs }
}

/// The members in which a v2 request differs from an operation that was made through v2, as paths; never their values.
/// `sent_fields` is the JSON text of the stored `fields`.
pub fn differences(request: &CreateRequest<'_>, stored: &Stored, sent_fields: &str) -> Vec<String> {
    let operation = &stored.operation;
    let mut paths = Vec::new();
    let mut note = |same: bool, path: &str| {
        if !same {
            paths.push(path.to_owned());
        }
    };
    note(request.amount == operation.amount, "amount");
    note(request.currency == operation.currency, "currency");
    note(request.method.as_deref() == operation.method.as_ref().map(ShopCode::as_str), "method");
    note(request.customer_account_id == operation.customer_account_id, "customer_account_id");
    note(request.callback_url == operation.callback_url, "callback_url");
    match (&request.kind, &operation.kind) {
        (RequestKind::Deposit { success_url, pending_url, fail_url }, Kind::Deposit(deposit)) => {
            let Deposit { success_url: success, pending_url: pending, fail_url: fail, .. } = deposit;
            note(success_url == success, "success_url");
            note(pending_url == pending, "pending_url");
            note(fail_url == fail, "fail_url");
        }
        (RequestKind::Withdrawal { account_number, account_channel }, Kind::Withdrawal(withdrawal)) => {
            let Withdrawal { account_number: account, account_channel: channel } = withdrawal;
            note(account_number == account, "account_number");
            note(account_channel == channel, "account_channel");
        }
        // The two directions have separate order ids, so that a request is only compared with its own kind.
        _ => {}
    }
    paths.extend(request.fields.differences(&stored.comparison.kept, &stored_object(sent_fields)));
    paths
}

fn stored_object(text: &str) -> Object<'_> {
    match json::read(text.as_bytes()) {
        Ok(json::Value { node: Node::Object(object), .. }) => object,
        _ => Object::default(),
    }
}
