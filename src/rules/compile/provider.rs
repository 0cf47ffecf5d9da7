//! `[provider]` of a shop: what moves the money.

use std::time::Duration;

use toml::Spanned;

use super::gateway::{DAY, MINUTE, SECOND};
use super::{Context, Here};
use crate::domain::{CallbackUrl, names_loopback};
use crate::rules::problems::Span;
use crate::rules::raw::{Field, ProviderKind, RawProvider};
use crate::rules::{HttpProvider, ProviderRules};

/// How long one request to a provider may be given.
const TIMEOUTS: std::ops::RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_mins(1);

impl Context<'_> {
    pub(super) fn provider(&mut self, here: Here<'_>, field: &Field<RawProvider>) -> Option<ProviderRules> {
        let given = match field {
            Field::Given(given) => given,
            Field::Wrong => return None,
            Field::Absent => {
                self.problem(here, 0..0, "a shop needs a `[provider]`, such as `kind = \"sandbox\"`");
                return None;
            }
        };
        let raw = given.get_ref();
        match &raw.kind {
            Field::Given(kind) => {
                self.keys_of_other_kind(here, *kind.get_ref(), raw);
                match kind.get_ref() {
                    ProviderKind::Sandbox => Some(ProviderRules::Sandbox { delay: raw.delay.or(SECOND) }),
                    ProviderKind::Http => self.http_provider(here, given).map(ProviderRules::Http),
                }
            }
            Field::Wrong => None,
            Field::Absent => {
                self.problem(here, given.span(), "`provider.kind` is required: `sandbox` or `http`");
                None
            }
        }
    }

    /// A key that does nothing for the shop's kind of provider would be believed to do something.
    fn keys_of_other_kind(&mut self, here: Here<'_>, kind: ProviderKind, raw: &RawProvider) {
        let http = [
            ("url", place(&raw.url)),
            ("secret", place(&raw.secret)),
            ("trust", place(&raw.trust)),
            ("timeout", place(&raw.timeout)),
            ("first_retry", place(&raw.first_retry)),
            ("max_retry", place(&raw.max_retry)),
            ("give_up_after", place(&raw.give_up_after)),
        ];
        let (other, kind): (&[(&str, Option<Span>)], _) = match kind {
            ProviderKind::Sandbox => (&http, "the sandbox"),
            ProviderKind::Http => (&[("delay", place(&raw.delay))], "an HTTP provider"),
        };
        for (key, span) in other {
            if let Some(span) = span {
                self.problem(here, span.clone(), format!("`provider.{key}` is no key of {kind}"));
            }
        }
    }

    fn http_provider(&mut self, here: Here<'_>, given: &Spanned<RawProvider>) -> Option<HttpProvider> {
        let raw = given.get_ref();
        for (key, absent) in [("url", raw.url.is_absent()), ("secret", raw.secret.is_absent())] {
            if absent {
                self.problem(here, given.span(), format!("`provider.{key}` is required of an HTTP provider"));
            }
        }
        let url = raw.url.given().and_then(|url| self.provider_url(here, url));
        let secrets = self.secrets(here, &raw.secret);
        let trust = self.trusted_certificates(here, "provider.trust", &raw.trust, None);
        let first_retry = self.positive(here, "provider.first_retry", &raw.first_retry, SECOND);
        let max_retry = self.positive(here, "provider.max_retry", &raw.max_retry, 5 * MINUTE);
        if let (true, Some(given)) = (first_retry > max_retry, raw.max_retry.given().or(raw.first_retry.given())) {
            self.problem(here, given.span(), "`provider.max_retry` must not be shorter than `provider.first_retry`");
        }
        let give_up_after = self.positive(here, "provider.give_up_after", &raw.give_up_after, DAY);
        self.give_up_after(here, "provider", (&raw.first_retry, first_retry), (&raw.give_up_after, give_up_after));
        let timeout = self.provider_timeout(here, &raw.timeout);
        Some(HttpProvider { url: url?, secrets: secrets?, trust, timeout, first_retry, max_retry, give_up_after })
    }

    fn provider_timeout(&mut self, here: Here<'_>, field: &Field<Duration>) -> Duration {
        if let Some(given) = field.given()
            && !TIMEOUTS.contains(given.get_ref())
        {
            self.problem(here, given.span(), "`provider.timeout` must be from \"100ms\" to \"60s\"");
        }
        field.or(10 * SECOND)
    }

    fn provider_url(&mut self, here: Here<'_>, url: &Spanned<String>) -> Option<Box<str>> {
        let text = url.get_ref();
        let reason = match CallbackUrl::new_allowing_http(text) {
            Err(invalid) => invalid.reason().to_owned(),
            Ok(_) if text.contains('#') => "must not have a fragment (#)".to_owned(),
            Ok(checked) if checked.is_plain_http() && !names_loopback(text) => {
                "must be an https:// URL; http:// is for a loopback address alone".to_owned()
            }
            Ok(_) => return Some(text.as_str().into()),
        };
        self.problem(here, url.span(), format!("`provider.url` {reason}"));
        None
    }
}

fn place<T>(field: &Field<T>) -> Option<Span> {
    field.given().map(Spanned::span)
}
