//! The keys of each kind of file: how they are read, their defaults, and what a change of one comes to. A key that is
//! not here is told all the same, as the text that it holds.

use super::Effect::{self, Allows, Neither, Refuses, TakesAway};

/// A key of a file.
#[derive(Clone, Copy)]
pub(super) struct Key {
    /// Its name, with those of the tables above it.
    pub path: &'static str,
    /// How it is read.
    pub kind: Kind,
    /// What it is when the file does not say it, as the file would; without one, nothing.
    pub default: Option<&'static str>,
    /// What a change of it comes to.
    pub told: Told,
}

/// How a key's value is read.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// A text, said as it is.
    Text,
    /// A URL, or a word in its place: said without what may be a secret.
    Url,
    /// A URL that may end with a slash.
    Origin,
    /// A text that is too long to be said.
    Template,
    /// True or false.
    Flag,
    /// A count.
    Number,
    /// A span of time.
    Span,
    /// A number of bytes.
    Size,
    /// A day.
    Date,
    /// An address and port.
    Socket,
    /// A header's name.
    Header,
    /// A currency.
    Currency,
    /// A language's tag.
    Language,
    /// A file.
    Path,
    /// Where the store is: a file, or a database whose URL may hold a password.
    Store,
    /// Files.
    Paths,
    /// Networks.
    Addresses,
    /// Secrets, as written.
    Secrets,
    /// A rate.
    Rate,
    /// An amount.
    Amount,
    /// Amounts by currency.
    Amounts,
    /// Names without an order.
    Names,
    /// Whole numbers without an order.
    Numbers,
    /// A rule of accounts.
    Account,
    /// A table that is told by itself.
    Elsewhere,
}

/// What a change of a key comes to.
#[derive(Clone, Copy)]
pub(super) enum Told {
    /// This, and what it means (or nothing more than the values).
    As(Effect, &'static str),
    /// More allows more; without one, there is no bound.
    More,
    /// By what it is now: the word, what that comes to, and what it means. Else as the last one.
    Now(&'static [(&'static str, Effect, &'static str)]),
    /// What comes of addresses that are there now, and of those that are no longer.
    Addresses {
        /// Effect, and the end of "203.0.113.0/24 is ...".
        new: (Effect, &'static str),
        /// The same.
        gone: (Effect, &'static str),
    },
    /// Secrets that are called this.
    Secrets(&'static str),
}

const fn key(path: &'static str, kind: Kind, default: &'static str, told: Told) -> Key {
    Key { path, kind, default: if default.is_empty() { None } else { Some(default) }, told }
}

const PLAIN: Told = Told::As(Neither, "");
const OTHER: Told = Told::As(Refuses, "");

/// `gateway.toml`.
pub(super) const GATEWAY: &[Key] = &[
    key("server.listen", Kind::Socket, "\"127.0.0.1:8443\"", Told::As(Refuses, "callers reach it there alone")),
    key("server.public_url", Kind::Origin, "\"https://localhost:8443\"", Told::As(Refuses, "new links begin with it")),
    key("server.shutdown_grace", Kind::Span, "\"30s\"", PLAIN),
    key("server.drain_delay", Kind::Span, "\"0s\"", PLAIN),
    key("tls.certificate", Kind::Path, "\"../certs/server.pem\"", OTHER),
    key("tls.key", Kind::Path, "\"../certs/server.key\"", OTHER),
    key("tls.generate", Kind::Flag, "false", PLAIN),
    key("tls.client_ca", Kind::Path, "", Told::As(Refuses, "callers without a certificate that it signed are refused")),
    key("admin.listen", Kind::Socket, "\"127.0.0.1:9090\"", OTHER),
    key("admin.hosts", Kind::Paths, "[]", OTHER),
    key("admin.token", Kind::Secrets, "", Told::Secrets("admin token")),
    key(
        "store.url",
        Kind::Store,
        "\"sqlite:../data/paybridge.db\"",
        Told::As(Refuses, "what is in the old store is not seen"),
    ),
    key("store.connections", Kind::Number, "16", Told::More),
    key("store.keys", Kind::Secrets, "[\"file:../secrets/store.key\"]", Told::Secrets("store key")),
    key("engine.url", Kind::Origin, "\"embedded\"", Told::As(Refuses, "a store belongs to one kind of engine")),
    key("engine.legacy_url", Kind::Url, "", OTHER),
    key("engine.trust", Kind::Paths, "[]", OTHER),
    key("engine.timeout", Kind::Span, "\"10s\"", Told::More),
    key("engine.callback_signature.header", Kind::Header, "\"X-Signature\"", OTHER),
    key("engine.callback_signature.payload", Kind::Text, "\"{body}\"", OTHER),
    key("engine.callback_signature.encoding", Kind::Text, "\"hex\"", OTHER),
    key("pages.secret", Kind::Secrets, "", Told::Secrets("secret of links")),
    key("pages.link_lifetime", Kind::Span, "\"30m\"", Told::More),
    key("pages.return_lifetime", Kind::Span, "\"7d\"", Told::More),
    key("pages.language", Kind::Language, "\"en\"", Told::As(Neither, "for customers who ask for none of the others")),
    key("pages.name", Kind::Text, "", Told::As(Neither, "what the header of customers' pages says")),
    key("pages.color", Kind::Text, "", Told::As(Neither, "the accent of customers' pages")),
    key("pages.logo", Kind::Path, "", Told::As(Neither, "in the header of customers' pages")),
    key("callbacks.timeout", Kind::Span, "\"10s\"", PLAIN),
    key("callbacks.first_retry", Kind::Span, "\"5s\"", PLAIN),
    key("callbacks.max_retry", Kind::Span, "\"1h\"", PLAIN),
    key("callbacks.give_up_after", Kind::Span, "\"3d\"", Told::More),
    key("callbacks.forget_after", Kind::Span, "\"90d\"", Told::More),
    key(
        "callbacks.allow_private_addresses",
        Kind::Flag,
        "false",
        Told::Now(&[
            ("true", Allows, "loopback and private targets are called"),
            ("false", Refuses, "loopback and private targets are no longer called"),
        ]),
    ),
    key("callbacks.trust", Kind::Paths, "[]", OTHER),
    key("limits.body", Kind::Size, "\"64KiB\"", Told::More),
    key("limits.head", Kind::Size, "\"16KiB\"", Told::More),
    key("limits.head_timeout", Kind::Span, "\"10s\"", Told::More),
    key("limits.body_timeout", Kind::Span, "\"10s\"", Told::More),
    key("limits.idle_timeout", Kind::Span, "\"75s\"", Told::More),
    key("limits.connections", Kind::Number, "10000", Told::More),
    key("limits.unauthenticated_per_ip", Kind::Rate, "{ per_second = 50, burst = 100 }", Told::More),
    key("limits.pages_per_ip", Kind::Rate, "{ per_second = 50, burst = 200 }", Told::More),
    key("clients.proxy_protocol", Kind::Flag, "false", Told::As(Refuses, "connections of the other kind are refused")),
    key(
        "clients.trusted_proxies",
        Kind::Addresses,
        "[]",
        Told::Addresses {
            new: (Refuses, "believed as a proxy now: who the caller is, its X-Forwarded-For says"),
            gone: (Refuses, "no longer believed as a proxy: who comes through it counts as coming from it"),
        },
    ),
];

/// `merchants/<id>.toml`.
pub(super) const MERCHANT: &[Key] = &[
    key("name", Kind::Text, "", PLAIN),
    key("default_shop", Kind::Text, "", OTHER),
    key("api_keys", Kind::Elsewhere, "", PLAIN),
    key("shops", Kind::Elsewhere, "", PLAIN),
    key("v1.dialect", Kind::Text, "\"v1\"", Told::As(Refuses, "its v1 requests are read by the other one")),
    key("v1.mode", Kind::Text, "\"translate\"", OTHER),
    key(
        "v1.callbacks",
        Kind::Text,
        "\"v1\"",
        Told::Now(&[
            ("v1", Refuses, "callbacks are relayed in the dialect's shape"),
            ("v2", Refuses, "callbacks are sent as v2 sends them"),
        ]),
    ),
    key("v1.callback_url", Kind::Url, "", Told::As(Refuses, "for requests that name no address")),
    key("v1.return_url", Kind::Url, "", Told::As(Refuses, "for deposits that name no return address")),
    key(
        "v1.non_numeric_user_id",
        Kind::Text,
        "\"reject\"",
        Told::Now(&[
            ("reject", Refuses, "a merchant_user_id that no integer equals is 400"),
            ("omit", Allows, "a merchant_user_id that no integer equals is left out"),
        ]),
    ),
    key(
        "v1.unknown_fields",
        Kind::Text,
        "\"reject\"",
        Told::Now(&[
            ("reject", Refuses, "unknown top-level members are 400"),
            ("ignore", Allows, "unknown top-level members are dropped"),
        ]),
    ),
    key(
        "v1.allow_http_callbacks",
        Kind::Flag,
        "false",
        Told::Now(&[
            ("true", Allows, "v1 requests may name plain http callback addresses"),
            ("false", Refuses, "v1 requests that name a plain http callback address are 400"),
        ]),
    ),
    key("v1.deprecated_since", Kind::Date, "", Told::As(Neither, "the Deprecation header of v1 replies")),
    key("v1.sunset", Kind::Date, "", Told::As(Neither, "the Sunset header of v1 replies")),
    key("v1.migration_url", Kind::Url, "", Told::As(Neither, "the Link header of v1 replies")),
    key(
        "balance.enforce",
        Kind::Flag,
        "false",
        Told::Now(&[
            ("true", Refuses, "a withdrawal over the available balance is created FAILED"),
            ("false", Allows, "a withdrawal may go over the available balance"),
        ]),
    ),
    key(
        "balance.opening",
        Kind::Amounts,
        "{}",
        Told::As(Neither, "booked only for a merchant that was not seen yet: for others this does nothing"),
    ),
];

/// An element of `[[api_keys]]`.
pub(super) const API_KEY: &[Key] = &[
    key("key", Kind::Elsewhere, "", PLAIN),
    key("v1_secret", Kind::Secrets, "", Told::Secrets("v1 secret")),
    key("v2_secret", Kind::Secrets, "", Told::Secrets("v2 secret")),
    key("allowed_ips", Kind::Addresses, "[]", Told::Addresses { new: (Allows, "opened"), gone: (TakesAway, "closed") }),
    key("rate_limit", Kind::Rate, "", Told::More),
    key("shops", Kind::Names, "", OTHER),
];

/// `[shops.<code>]` of a merchant.
pub(super) const SHOP_ACCESS: &[Key] =
    &[key("payin", Kind::Flag, "true", PLAIN), key("payout", Kind::Flag, "true", PLAIN)];

/// `shops/<code>.toml`.
pub(super) const SHOP: &[Key] = &[
    key("name", Kind::Text, "", Told::As(Neither, "what customers read on payment pages")),
    key("currency", Kind::Currency, "", Told::As(Refuses, "operations in the old currency are 400")),
    key(
        "active",
        Kind::Flag,
        "true",
        Told::Now(&[("true", Allows, "new operations are taken"), ("false", TakesAway, "new operations are 400")]),
    ),
    key("payment_method", Kind::Text, "", Told::As(Refuses, "`method` of a status whose request named no shop")),
    key("payin.schema", Kind::Text, "", PLAIN),
    key("payin.browser_return", Kind::Flag, "true", PLAIN),
    key("payout.schema", Kind::Text, "", PLAIN),
    key(
        "payout.account",
        Kind::Account,
        "",
        Told::Now(&[
            ("card", Refuses, "other accounts than 12 to 19 digits are 400"),
            ("mobile", Refuses, "other accounts than + and 8 to 15 digits are 400"),
            ("any", Allows, "any account is taken"),
            ("", Refuses, "other accounts are 400"),
        ]),
    ),
    key(
        "checks.refused_addresses",
        Kind::Addresses,
        "[]",
        Told::Addresses {
            new: (Refuses, "refused now as customers' addresses (their operations are created FAILED)"),
            gone: (Allows, "no longer refused as customers' addresses"),
        },
    ),
    key("checks.refused_accounts", Kind::Numbers, "[]", PLAIN),
    key("checks.payin.operations_per_day", Kind::Number, "", Told::More),
    key("checks.payin.amount_per_day", Kind::Amount, "", Told::More),
    key("checks.payout.operations_per_day", Kind::Number, "", Told::More),
    key("checks.payout.amount_per_day", Kind::Amount, "", Told::More),
    key("provider.kind", Kind::Text, "", Told::As(Refuses, "operations that wait for the other kind go on waiting")),
    key("provider.delay", Kind::Span, "\"1s\"", PLAIN),
    key("provider.url", Kind::Url, "", Told::As(Refuses, "waiting operations are asked for there, too")),
    key("provider.secret", Kind::Secrets, "", Told::Secrets("secret of the provider")),
    key("provider.trust", Kind::Paths, "[]", OTHER),
    key("provider.timeout", Kind::Span, "\"10s\"", Told::More),
    key("provider.first_retry", Kind::Span, "\"1s\"", PLAIN),
    key("provider.max_retry", Kind::Span, "\"5m\"", PLAIN),
    key("provider.give_up_after", Kind::Span, "\"1d\"", Told::More),
];

const TEMPLATE: Told = Told::As(Refuses, "that reply has another shape");
const ROUTE: Told = Told::As(Refuses, "requests to the old path are 404");
const WORD: Told = Told::As(Refuses, "replies, callbacks and the `status` filter use the new word");
const RECIPE: Told = Told::As(Refuses, "requests as they were signed so far are refused");

/// `dialects/<name>.toml`.
pub(super) const DIALECT: &[Key] = &[
    key("signature.api_key", Kind::Header, "\"X-Api-Key\"", RECIPE),
    key("signature.signature", Kind::Header, "\"X-Signature\"", RECIPE),
    key("signature.timestamp", Kind::Header, "\"X-Timestamp\"", RECIPE),
    key("signature.timestamp_format", Kind::Text, "\"unix\"", RECIPE),
    key("signature.window", Kind::Span, "\"5m\"", Told::More),
    key("signature.payload", Kind::Text, "\"{timestamp}.{method}.{path}.{body}\"", RECIPE),
    key("signature.algorithm", Kind::Text, "\"hmac-sha256\"", RECIPE),
    key("signature.encoding", Kind::Text, "\"hex\"", RECIPE),
    key("routes.payin", Kind::Text, "\"POST /api/v1/payin\"", ROUTE),
    key("routes.payout", Kind::Text, "\"POST /api/v1/payout\"", ROUTE),
    key("routes.payin_status", Kind::Text, "\"GET /api/v1/payin/status\"", ROUTE),
    key("routes.payout_status", Kind::Text, "\"GET /api/v1/payout/status\"", ROUTE),
    key("routes.balance", Kind::Text, "\"GET /api/v1/balance\"", ROUTE),
    key("routes.transactions", Kind::Text, "\"GET /api/v1/transactions\"", ROUTE),
    key("statuses.PENDING", Kind::Text, "\"PENDING\"", WORD),
    key("statuses.SUCCESS", Kind::Text, "\"SUCCESS\"", WORD),
    key("statuses.FAILED", Kind::Text, "\"FAILED\"", WORD),
    key("replies.payin", Kind::Template, "", TEMPLATE),
    key("replies.payout", Kind::Template, "", TEMPLATE),
    key("replies.status", Kind::Template, "", TEMPLATE),
    key("replies.balance", Kind::Template, "", TEMPLATE),
    key("replies.transactions", Kind::Template, "", TEMPLATE),
    key("replies.error", Kind::Template, "", TEMPLATE),
    key("replies.callback", Kind::Template, "", TEMPLATE),
    key(
        "requests.empty_list_is_object",
        Kind::Flag,
        "false",
        Told::Now(&[("true", Allows, "paymentData [] is taken for {}"), ("false", Refuses, "paymentData [] is 400")]),
    ),
];
