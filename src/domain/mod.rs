//! The payment domain, as types that reject invalid values.
//!
//! This module knows no HTTP, storage or runtime, and of JSON its values alone ([`crate::json`]). Each type has one checked
//! constructor and no setter, so the layers above never check a value again.

mod account;
mod address;
mod amount;
pub mod canonical;
mod deceptive;
mod digits;
mod failure;
mod fields;
mod fingerprint;
mod fingerprint_recipe;
mod history;
mod ids;
mod invalid;
mod ledger;
mod operation;
mod preparation;
mod quota;
mod relay;
mod request;
mod secret;
mod shown;
mod signature;
mod time;
mod url;
mod wide;

pub use account::{AccountNumber, masked};
pub use address::{CustomerIp, canonical_ip, subscriber_network};
pub use amount::{Amount, AmountNumber};
pub(crate) use deceptive::{escaped_where, is_deceptive, visible};
pub use digits::{Digits, push_hex};
pub use failure::{FailureCause, ProviderReason, WaitsFor};
pub use fields::{
    CUSTOMER_FIELDS, Fields, KeptFields, MERCHANT_USER_IP, RETURN_USER_URL, RequestFields, SchemaFields,
    dropped_members, reserved_names,
};
pub use fingerprint::{Fingerprint, FingerprintInput, FingerprintKey, MemberFingerprint, MemberFingerprints};
pub use fingerprint_recipe::{PINNED_FINGERPRINTS, PinnedFingerprints, fingerprint_recipe};
pub use history::{HistoryQuery, Page};
pub use ids::{BUCKETS, Bucket, Currency, CustomerAccountId, MerchantId, OrderId, ShopCode, TransactionId};
pub use invalid::InvalidValue;
pub use ledger::{Balance, Decimals, LedgerAccount, Posting};
pub use operation::{
    CallbackSender, Contradiction, Deposit, Direction, Kind, Operation, Outcome, ProviderKind, RedirectUrl, State,
    Status, Withdrawal,
};
pub use preparation::{Detail, Instructions, Preparation};
pub use quota::Quota;
pub use request::{CreateRequest, RequestKind};
pub use secret::{Secret, Secrets};
pub use shown::{Answer, CreateReply, OperationView, StatusRecord};
pub use signature::{Algorithm, CallbackSignature, Encoding, Recipe, Segment, TimestampFormat};
pub use time::{UnixDay, UnixMillis};
pub use url::{BrowserUrl, CallbackUrl, host_of, is_host, names_loopback, service_url};
pub use wide::wide;
