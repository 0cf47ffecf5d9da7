//! `dialects/<name>.toml` as it is written.

use std::time::Duration;

use http::HeaderName;

use super::leaf::LONGER_THAN_ZERO;
use super::{Route, Words, raw_table};
use crate::rules::{Algorithm, Encoding, TimestampFormat};

raw_table! {
    /// `dialects/<name>.toml`: a v1 wire format, how requests are signed, where they go and what answers look like. Every
    /// key may be left out; a merchant names the dialect in its `[v1]`.
    struct RawDialect {
        /// How requests and callbacks are signed.
        signature: RawSignature,
        /// Method and path of each endpoint. Two endpoints may have the same path with different methods; dialects may share
        /// routes if they name the same three headers.
        routes: RawRoutes,
        /// The dialect's words for the v2 statuses: three different ones.
        statuses: Words,
        /// Templates of bodies, minijinja (Jinja2); a reply without one has its default shape.
        replies: RawReplies,
        /// How requests are read.
        requests: RawRequests,
    }
}

raw_table! {
    /// `[signature]`.
    struct RawSignature {
        /// The header with the API key. The three headers must differ, and be none that HTTP, proxies or the gateway give a
        /// meaning.
        api_key: HeaderName = "X-Api-Key" where { "examples": ["X-Api-Key"] },
        /// The header with the signature, and nothing else: no scheme, no prefix.
        signature: HeaderName = "X-Signature",
        /// The header with the timestamp.
        timestamp: HeaderName = "X-Timestamp" where { "examples": ["X-Timestamp"] },
        /// How the timestamp is written.
        ///
        /// - `unix`: seconds since 1970
        /// - `unix-ms`: milliseconds since 1970
        /// - `rfc3339`: `2026-01-02T03:04:05Z`
        timestamp_format: TimestampFormat = "unix",
        /// How far the timestamp may be from the gateway's clock, on either side, the ends included: a span of time. Beyond
        /// is 401.
        window: Duration = "5m" where { "pattern": LONGER_THAN_ZERO },
        /// What is signed: text with the placeholders `{timestamp}`, `{method}`, `{path}`, `{query}`, `{target}`, `{body}`,
        /// `{body_sha256}` and `{api_key}`. It must hold `{body}` or `{body_sha256}`; `{{` and `}}` stand for braces.
        payload: String = "{timestamp}.{method}.{path}.{body}" where { "pattern": r"\{body(_sha256)?\}" },
        /// The hash, keyed with the bytes of the key's `v1_secret`.
        algorithm: Algorithm = "hmac-sha256",
        /// How the signature is written.
        ///
        /// - `hex`: either case is accepted
        /// - `base64`: the standard alphabet with its padding
        encoding: Encoding = "hex",
    }
}

raw_table! {
    /// `[routes]`.
    struct RawRoutes {
        /// Creates a deposit: `POST` and a path.
        payin: Route = "POST /api/v1/payin",
        /// Creates a withdrawal: `POST` and a path.
        payout: Route = "POST /api/v1/payout",
        /// Shows a deposit: `GET` and a path.
        payin_status: Route = "GET /api/v1/payin/status",
        /// Shows a withdrawal: `GET` and a path.
        payout_status: Route = "GET /api/v1/payout/status",
        /// Shows balances: `GET` and a path.
        balance: Route = "GET /api/v1/balance",
        /// Lists operations: `GET` and a path.
        transactions: Route = "GET /api/v1/transactions",
    }
}

raw_table! {
    /// `[replies]`: minijinja templates; a reply without one has its default shape.
    struct RawReplies {
        /// 200 to a deposit's create.
        ///
        /// Values: `transaction_id`, `external_id`, `redirect_url`. They are written as JSON, without quotes around them.
        payin: String where {
            "examples": ["{\"id\": {{ transaction_id }}, \"order\": {{ external_id }}, \"go_to\": {{ redirect_url }}}"],
        },
        /// 200 to a withdrawal's create.
        ///
        /// Values: `transaction_id`, `external_id`. They are written as JSON, without quotes around them.
        payout: String where { "examples": ["{\"id\": {{ transaction_id }}, \"order\": {{ external_id }}}"] },
        /// 200 to the status of a deposit or a withdrawal.
        ///
        /// Values: `transaction_id`, `external_id`, `status`, `amount`, `currency`, `shop_code`, `account_number` (may be
        /// `null`), `type`, `created_at`. They are written as JSON, without quotes around them.
        status: String where { "examples": ["{\"id\": {{ transaction_id }}, \"state\": {{ status }}}"] },
        /// 200 to the balance.
        ///
        /// Values: `balances`, a list of `currency`, `available`, `held`. They are written as JSON, without quotes around
        /// them.
        balance: String where { "examples": ["{\"balances\": {{ balances }}}"] },
        /// 200 to the history.
        ///
        /// Values: `transactions`, a list of what `status` has, newest first; `page`, `per_page`, `has_more`. They are written
        /// as JSON, without quotes around them.
        transactions: String where { "examples": ["{\"more\": {{ has_more }}, \"result\": {{ transactions }}}"] },
        /// Any error of a proven caller.
        ///
        /// Values: `code` (the HTTP status), `message`. They are written as JSON, without quotes around them.
        error: String where { "examples": ["{\"ok\": false, \"code\": {{ code }}, \"text\": {{ message }}}"] },
        /// What is sent to the merchant's callback address.
        ///
        /// Values: those of `status`. They are written as JSON, without quotes around them.
        callback: String where { "examples": ["{\"order\": {{ external_id }}, \"state\": {{ status }}}"] },
    }
}

raw_table! {
    /// `[requests]`.
    struct RawRequests {
        /// `true`: `paymentData` `[]`, PHP's empty array, is `{}`. `false`: it is 400.
        empty_list_is_object: bool = false,
    }
}
