//! `dialects/<name>.toml` as it is written.

use std::time::Duration;

use http::HeaderName;

use super::{Route, Words, raw_table};
use crate::rules::{Algorithm, Encoding, TimestampFormat};

raw_table! {
    /// `dialects/<name>.toml`.
    struct RawDialect {
        /// How requests and callbacks are signed.
        signature: RawSignature,
        /// Method and path of each endpoint.
        routes: RawRoutes,
        /// Its words for the v2 statuses.
        statuses: Words,
        /// Templates of its replies.
        replies: RawReplies,
        /// How its requests are read.
        requests: RawRequests,
    }
}

raw_table! {
    /// `[signature]`.
    struct RawSignature {
        /// The header with the API key.
        api_key: HeaderName,
        /// The header with the signature.
        signature: HeaderName,
        /// The header with the timestamp.
        timestamp: HeaderName,
        /// How the timestamp is written.
        timestamp_format: TimestampFormat,
        /// How far the timestamp may be from now, either side.
        window: Duration,
        /// What is signed.
        payload: String,
        /// With which hash.
        algorithm: Algorithm,
        /// How the signature is written.
        encoding: Encoding,
    }
}

raw_table! {
    /// `[routes]`.
    struct RawRoutes {
        /// Creates a deposit.
        payin: Route,
        /// Creates a withdrawal.
        payout: Route,
        /// Shows a deposit.
        payin_status: Route,
        /// Shows a withdrawal.
        payout_status: Route,
        /// Shows balances.
        balance: Route,
        /// Lists operations.
        transactions: Route,
    }
}

raw_table! {
    /// `[replies]`: minijinja templates; a reply without one has its default shape.
    struct RawReplies {
        /// Of a deposit's creation.
        payin: String,
        /// Of a withdrawal's creation.
        payout: String,
        /// Of a status.
        status: String,
        /// Of balances.
        balance: String,
        /// Of a list of operations.
        transactions: String,
        /// Of an error.
        error: String,
        /// Of a callback to the merchant.
        callback: String,
    }
}

raw_table! {
    /// `[requests]`.
    struct RawRequests {
        /// PHP's empty array: `paymentData` `[]` is `{}`.
        empty_list_is_object: bool,
    }
}
