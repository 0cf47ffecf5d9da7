//! Compiles `[provider]` of a shop: the system that moves the money.

use std::time::Duration;

use serde_json::{Value, json};
use toml::Spanned;
use toml::de::DeValue;

use super::spellings::certificates;
use super::{Context, FileContext};
use crate::domain::{CallbackUrl, names_loopback};
use crate::rules::raw::{
    BoundedDuration, Field, FromToml, List, RawReader, RawSecrets, WEB_URL, from_words, raw_table,
};
use crate::rules::setting::Effect::{Neither, Refuses};
use crate::rules::setting::OnChange;
use crate::rules::{ExpectedWithin, HttpProvider, ProviderRules};

raw_table! {
    /// `[provider]`.
    struct RawProvider {
        /// The kind of provider.
        ///
        /// - `sandbox`: built in, moves no money; `delay` is its only key
        /// - `http`: an external service; `url` and `secret` are required
        kind: ProviderKindKey = required
            => OnChange::always(Refuses).meaning("pending operations of the other kind keep waiting for it"),
        /// Only for the sandbox: how long it takes to complete an operation, a span of time.
        delay: Duration = "1s" => OnChange::always(Neither),
        /// Only for an HTTP provider, required there: the address to which operations are posted, an absolute
        /// `https://` URL without credentials and fragment. `http://` is allowed only for a loopback host.
        url: String where { "pattern": WEB_URL, "maxLength": 2048, "examples": ["https://provider.example/operations"] }
            => OnChange::always(Refuses).meaning("pending operations are sent there too"),
        /// Only for an HTTP provider, required there: a secret or a list of secrets, `"env:NAME"`, `"file:PATH"` or the
        /// secret itself. The first signs requests to the provider, any of them verifies its reports.
        secret: RawSecrets where { "examples": ["env:PROVIDER_SECRET"] },
        /// Only for an HTTP provider: trusted roots in addition to the system's, PEM files, their paths relative to
        /// this file.
        trust: List<String> = [] => OnChange::always(Refuses).read_by(certificates),
        /// Only for an HTTP provider: how long one request may take, from connecting to the last byte of the reply,
        /// `"100ms"` to `"60s"`. A timeout is an unknown result, never FAILED.
        timeout: BoundedDuration<100, 60_000> = "10s" => OnChange::more(),
        /// Only for an HTTP provider: the wait after the first failed request, a span of time. It doubles, with jitter,
        /// up to `max_retry`.
        first_retry: BoundedDuration = "1s" => OnChange::always(Neither),
        /// Only for an HTTP provider: the longest wait between two requests, a span of time, not shorter than
        /// `first_retry`.
        max_retry: BoundedDuration = "5m" => OnChange::always(Neither),
        /// Only for an HTTP provider: how long requests for an operation are repeated, from its creation, a span of
        /// time. After that it stays PENDING until the provider reports a result, or an operator resolves it.
        give_up_after: BoundedDuration = "1d" => OnChange::more(),
        /// How long an operation may be PENDING before it needs an operator's attention, a span of time; without it, for
        /// ever. One span does not count for deposits that wait for their customers.
        ///
        /// - `"24h"`: for both directions
        /// - `{ payin = "48h", payout = "24h" }`: for each; `payin` counts also while the customer is to pay
        expected_within: ExpectedWithin where { "examples": ["24h"] } => OnChange::always(Neither),
    }
}

raw_table! {
    /// `expected_within = { ... }`.
    struct RawExpectedWithin {
        /// For deposits, also while the customer is to pay: a span of time.
        payin: BoundedDuration where { "examples": ["48h"] },
        /// For withdrawals: a span of time.
        payout: BoundedDuration where { "examples": ["24h"] },
    }
}

impl FromToml for ExpectedWithin {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut RawReader<'_>) -> Option<Self> {
        if value.get_ref().as_table().is_none() {
            let BoundedDuration(span) = <BoundedDuration>::from_toml(value, reader)?;
            return Some(Self { payin: Some(span), payout: Some(span), customers_too: false });
        }
        let raw = RawExpectedWithin::from_toml(value, reader)?;
        let span = |field: &Field<BoundedDuration>| field.get().map(|span| span.0);
        Some(Self { payin: span(&raw.payin), payout: span(&raw.payout), customers_too: true })
    }

    fn schema() -> Value {
        json!({ "anyOf": [<BoundedDuration>::schema(), RawExpectedWithin::schema()] })
    }
}

/// `[provider] kind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::rules) enum ProviderKindKey {
    /// The built-in sandbox.
    Sandbox,
    /// An external service.
    Http,
}

from_words! {
    ProviderKindKey {
        "sandbox" => ProviderKindKey::Sandbox,
        "http" => ProviderKindKey::Http,
    }
}

/// Returns the spans of a shop's operations.
pub(super) fn expected_within(field: &Field<RawProvider>) -> ExpectedWithin {
    field.get().and_then(|raw| raw.expected_within.get()).copied().unwrap_or_default()
}

impl Context<'_> {
    pub(super) fn provider(&mut self, context: FileContext<'_>, field: &Field<RawProvider>) -> Option<ProviderRules> {
        let given = field.given()?;
        let raw = given.get_ref();
        let kind = *raw.kind.get()?;
        self.keys_of_other_kind(context, kind, raw);
        match kind {
            ProviderKindKey::Sandbox => Some(ProviderRules::Sandbox { delay: *raw.delay }),
            ProviderKindKey::Http => self.http_provider(context, given).map(ProviderRules::Http),
        }
    }

    /// Notes keys of the other kind of provider: they would have no effect, though the file suggests one.
    fn keys_of_other_kind(&mut self, context: FileContext<'_>, kind: ProviderKindKey, raw: &RawProvider) {
        let http = [
            ("url", raw.url.place()),
            ("secret", raw.secret.place()),
            ("trust", raw.trust.place()),
            ("timeout", raw.timeout.place()),
            ("first_retry", raw.first_retry.place()),
            ("max_retry", raw.max_retry.place()),
            ("give_up_after", raw.give_up_after.place()),
        ];
        let (other, kind) = match kind {
            ProviderKindKey::Sandbox => (http.as_slice(), "the sandbox"),
            ProviderKindKey::Http => (&[("delay", raw.delay.place())][..], "an HTTP provider"),
        };
        for (key, place) in other {
            if let Some(at) = place {
                self.problem(context, at.clone(), format!("`provider.{key}` does not apply to {kind}"));
            }
        }
    }

    fn http_provider(&mut self, context: FileContext<'_>, given: &Spanned<RawProvider>) -> Option<HttpProvider> {
        let raw = given.get_ref();
        for (key, absent) in [("url", raw.url.is_absent()), ("secret", raw.secret.is_absent())] {
            if absent {
                self.problem(context, given.span(), format!("`provider.{key}` is required for an HTTP provider"));
            }
        }
        let url = raw.url.given().and_then(|url| self.provider_url(context, url));
        let secrets = self.secrets(context, &raw.secret);
        let trust = self.trusted_certificates(context, "provider.trust", &raw.trust.0, None);
        let RawProvider { timeout, first_retry, max_retry, give_up_after, .. } = raw;
        self.check_not_shorter(context, "provider", ("max_retry", max_retry), ("first_retry", first_retry));
        self.check_not_shorter(context, "provider", ("give_up_after", give_up_after), ("first_retry", first_retry));
        Some(HttpProvider {
            url: url?,
            secrets: secrets?,
            trust,
            timeout: timeout.0,
            first_retry: first_retry.0,
            max_retry: max_retry.0,
            give_up_after: give_up_after.0,
        })
    }

    fn provider_url(&mut self, context: FileContext<'_>, url: &Spanned<String>) -> Option<Box<str>> {
        let text = url.get_ref();
        let reason = match CallbackUrl::new_allowing_http(text) {
            Err(invalid) => invalid.reason().to_owned(),
            Ok(_) if text.contains('#') => "must not have a fragment (#)".to_owned(),
            Ok(checked) if checked.is_plain_http() && !names_loopback(text) => {
                "must be an https:// URL; http:// is only for loopback addresses".to_owned()
            }
            Ok(_) => return Some(text.as_str().into()),
        };
        self.problem(context, url.span(), format!("`provider.url` {reason}"));
        None
    }
}
