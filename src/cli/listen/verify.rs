//! Which signatures of a callback verify, with which keys of the rules, and what is wrong with the others.
//!
//! A receiver's view: nothing here is what callbacks are sent by, but for the two ways of signing requests that callbacks
//! share with them.

mod v1;
mod v2;
mod webhook;

#[cfg(test)]
mod tests;

use std::fmt;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Method};

use crate::domain::{MerchantId, UnixMillis};
use crate::rules::{ApiKey, Merchant, RuleSet, Secrets};

/// A callback as it came.
#[derive(Clone)]
pub struct Received {
    /// When.
    pub at: UnixMillis,
    /// The method.
    pub method: Method,
    /// The path as sent, without the query.
    pub path: String,
    /// What follows the first `?`.
    pub query: Option<String>,
    /// All headers.
    pub headers: HeaderMap,
    /// The raw body.
    pub body: Bytes,
}

/// In which shape a callback is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// The dialect's: of operations made from v1.
    V1,
    /// That of v2.
    V2,
}

/// What a signature is worth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It was made with a secret of this key.
    Verified(Signer),
    /// It is there and proves nothing, for this reason.
    Wrong(String),
    /// It is not there.
    Missing,
}

/// Whose secret made a signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signer {
    /// The merchant.
    pub merchant: MerchantId,
    /// The API key.
    pub key: String,
}

impl fmt::Display for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "key {}, merchant {}", self.key, self.merchant)
    }
}

/// A signature that the style asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// The header that holds it.
    pub header: HeaderName,
    /// What it is worth.
    pub verdict: Verdict,
}

/// What is known of a callback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Findings {
    /// Its shape.
    pub style: Style,
    /// The headers beside the signatures that the style has.
    pub shown: Vec<HeaderName>,
    /// Its signatures.
    pub checks: Vec<Check>,
}

/// The keys that callbacks are checked with: those of the rules, or of one merchant of theirs.
pub struct Keys<'a> {
    /// Whose keys count; `None`: everybody's.
    only: Option<&'a MerchantId>,
    /// Every key, ordered, so that the same callback is always told in the same way.
    all: Vec<Holder<'a>>,
}

/// A key and whose it is.
#[derive(Clone, Copy)]
struct Holder<'a> {
    merchant: &'a Merchant,
    key: &'a ApiKey,
}

impl Holder<'_> {
    fn signer(&self) -> Signer {
        Signer { merchant: self.merchant.id.clone(), key: self.key.key.to_string() }
    }
}

impl<'a> Keys<'a> {
    /// The keys of the rules, or of one merchant.
    #[must_use]
    pub fn new(rules: &'a RuleSet, only: Option<&'a MerchantId>) -> Self {
        let of = |merchant: &'a Merchant| merchant.api_keys.iter().map(move |key| Holder { merchant, key });
        let mut all: Vec<_> = rules.merchants.values().flat_map(|merchant| of(merchant)).collect();
        all.sort_by_key(|holder| (holder.merchant.id.as_str(), &holder.key.key));
        Self { only, all }
    }

    /// Which signatures of a callback verify.
    #[must_use]
    pub fn check(&self, received: &Received) -> Findings {
        if let Some((recipe, verdict)) = v1::check(self, received) {
            let check = Check { header: recipe.signature.clone(), verdict };
            let shown = vec![recipe.api_key.clone(), recipe.timestamp.clone()];
            return Findings { style: Style::V1, shown, checks: vec![check] };
        }
        let checks = vec![
            Check { header: v2::SIGNATURE, verdict: v2::check(self, received) },
            Check { header: webhook::SIGNATURE, verdict: webhook::check(self, received) },
        ];
        Findings { style: Style::V2, shown: vec![webhook::ID, webhook::TIMESTAMP], checks }
    }

    fn counts(&self, merchant: &Merchant) -> bool {
        self.only.is_none_or(|only| *only == merchant.id)
    }

    /// Whose secret satisfies; or, when nobody's whose keys count does, that somebody else's would have.
    fn signer<'s>(
        &self,
        secrets: impl Fn(&'a ApiKey) -> Option<&'s Secrets>,
        satisfies: impl Fn(&Secrets) -> bool,
    ) -> Option<Verdict>
    where
        'a: 's,
    {
        let mut makers = self.all.iter().filter(|holder| secrets(holder.key).is_some_and(&satisfies));
        let first = makers.clone().next()?;
        Some(match makers.find(|holder| self.counts(holder.merchant)) {
            Some(maker) => Verdict::Verified(maker.signer()),
            None => Verdict::Wrong(format!("made with the secret of another merchant: {}", first.signer())),
        })
    }

    /// Whether a secret of anybody satisfies.
    fn any(&self, secrets: impl Fn(&'a ApiKey) -> Option<&'a Secrets>, satisfies: impl Fn(&Secrets) -> bool) -> bool {
        self.all.iter().any(|holder| secrets(holder.key).is_some_and(&satisfies))
    }
}

const fn v1_secrets(key: &ApiKey) -> Option<&Secrets> {
    key.v1_secrets.as_ref()
}

const fn v2_secrets(key: &ApiKey) -> Option<&Secrets> {
    key.v2_secrets.as_ref()
}

/// The text of a header that is sent once; `None` when it is not sent.
fn once<'r>(received: &'r Received, name: &HeaderName) -> Result<Option<&'r str>, String> {
    let mut values = received.headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(format!("{name} is sent more than once"));
    }
    value.to_str().map(Some).map_err(|_| format!("{name} holds more than visible ASCII"))
}

const V1_SECRET: &str = "made with a v1_secret: callbacks in the shape of v2 are signed with the v2_secret";
