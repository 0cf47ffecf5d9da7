//! Whether a create repeats one that is stored (contract section 7, "repeat").

use crate::domain::{Deposit, Fingerprint, FingerprintInput, FingerprintKey, Kind, ShopCode, Withdrawal};
use crate::store::{SchemaFields, Stored};
use crate::wire::json::{self, Node, Object};
use crate::wire::v2::{CreateRequest, RequestKind};

/// The keyed hash of what a request says, reduced to the `fields` that `kept` keeps.
pub(super) fn fingerprint(
    fingerprint_key: &FingerprintKey,
    request: &CreateRequest<'_>,
    kept: &SchemaFields,
) -> Fingerprint {
    let mut parts = FingerprintInput::of("v2 create");
    parts.part(request.kind.direction().as_str().as_bytes());
    parts.part(&request.amount.hundredths().to_le_bytes());
    parts.part(request.currency.as_str().as_bytes());
    parts.optional(request.method.as_deref().map(str::as_bytes));
    parts.optional(request.customer_account_id.map(|id| id.0.to_le_bytes()).as_ref().map(|bytes| &bytes[..]));
    parts.part(request.callback_url.as_str().as_bytes());
    match &request.kind {
        RequestKind::Deposit { success_url, pending_url, fail_url } => {
            for url in [success_url, pending_url, fail_url] {
                parts.part(url.as_str().as_bytes());
            }
        }
        RequestKind::Withdrawal { account_number, account_channel } => {
            parts.part(account_number.expose().as_bytes());
            parts.optional(account_channel.as_deref().map(str::as_bytes));
        }
    }
    request.fields.hash(&mut parts, kept);
    fingerprint_key.fingerprint(&parts)
}

/// How a create stands to the operation that its order names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RepeatCheck {
    /// It says what the operation was created from.
    Repeat,
    /// It came through the same API version and says something else.
    Differs,
    /// It came through the other API version: "Switching shop or API version is not a way to retry" (merchant-api-v2),
    /// whatever it says.
    OtherVersion,
}

/// Compares a request with a stored operation; `v1` is the keyed hash of the v1 body that it was translated from. Such a
/// request is compared by what that body said, which no rule can change between the two.
pub(super) fn check_repeat(
    fingerprint_key: &FingerprintKey,
    request: &CreateRequest<'_>,
    v1: Option<Fingerprint>,
    stored: &Stored,
) -> RepeatCheck {
    if v1.is_some() != stored.v1.is_some() {
        return RepeatCheck::OtherVersion;
    }
    let sent = v1.unwrap_or_else(|| fingerprint(fingerprint_key, request, &stored.comparison.kept));
    if sent == stored.comparison.fingerprint { RepeatCheck::Repeat } else { RepeatCheck::Differs }
}

/// The members in which a v2 request differs from an operation that was made through v2, as paths; never their values.
/// `sent_fields` is the JSON text of the stored `fields`.
pub(super) fn differences(request: &CreateRequest<'_>, stored: &Stored, sent_fields: &str) -> Vec<String> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Direction;
    use crate::wire::v2::read_create;

    // What stands in stores.
    #[test]
    fn hashes_stay_what_they_are() {
        let common = r#""order_id":"o1","amount":10.50,"currency":"EUR","callback_url":"https://a.example/cb""#;
        let deposit = r#""success_url":"https://a.example/s","pending_url":"https://a.example/p","fail_url":
            "https://a.example/f","method":"card","customer_account_id":-7"#;
        let withdrawal = r#""account_number":"4111111111111111","account_channel":"x""#;
        let fields =
            r#""fields":{"b":[1.50,{"a":-0}],"merchant_user_ip":null,"a":"\u00e9","dropped":1,"n":1200,"t":true}"#;
        let fingerprint_key = FingerprintKey::new(&[3; 32]);
        let kept = SchemaFields::Names(["a", "b", "merchant_user_ip", "n", "t"].map(Box::from).into());
        for (direction, own, kept, expected) in [
            (Direction::Payin, deposit, &kept, 0x2f16_0e11_5183_391e_1e6b_1ec3_e1db_b2ff),
            (Direction::Payout, withdrawal, &SchemaFields::Everything, 0x55d0_f0bc_1e33_2e4a_fb1c_9dce_67be_172d),
        ] {
            let body = format!("{{{common},{own},{fields}}}");
            let request = read_create(direction, body.as_bytes()).unwrap();
            assert_eq!(u128::from_be_bytes(fingerprint(&fingerprint_key, &request, kept).0), expected);
        }
    }
}
