//! What operators queue again in slices: failed callbacks that a filter matches, and pending ones of a receiver.

use super::listing::filter_parameters;
use crate::domain::{CallbackUrl, MerchantId, UnixMillis};
use crate::rules::RuleSet;
use crate::store::{ActionRecord, CallbackCursor, CallbackQuery, CallbackTarget, Outbox, PendingQuery, StoreError};

/// What a malformed receiver is expected to be.
pub const RECEIVER: &str = "must be scheme, host and port of an address, such as https://shop.example:443";

/// Parses a receiver: an address without a path. Returns it as [`CallbackTarget::origin`] has it.
#[must_use]
pub fn read_receiver(text: &str) -> Option<Box<str>> {
    let url = CallbackUrl::new_allowing_http(text).ok()?;
    let (_, rest) = text.split_once("://")?;
    let is_origin = !rest.strip_suffix('/').unwrap_or(rest).contains(['/', '?', '#']);
    is_origin.then(|| url.origin().into())
}

/// The pending callbacks of a receiver that are not being sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingOfReceiver {
    /// Scheme, host and port, as [`CallbackTarget::origin`] has them.
    pub receiver: Box<str>,
    /// Of this merchant alone; `None`: of all merchants of the rules.
    pub merchant: Option<MerchantId>,
}

impl PendingOfReceiver {
    /// Returns what selects the first `limit` of them in the store.
    #[must_use]
    pub fn query(&self, rules: &RuleSet, limit: usize) -> PendingQuery {
        let target = |merchant| CallbackTarget::new(merchant, &self.receiver);
        let targets = match &self.merchant {
            Some(merchant) => vec![target(merchant)],
            None => rules.merchants.keys().map(target).collect(),
        };
        PendingQuery { targets, after: None, limit }
    }
}

/// Which callbacks are queued again, and how many of them at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resending {
    /// Failed ones that match.
    Failed(CallbackQuery),
    /// Pending ones of a receiver.
    Pending(PendingOfReceiver, PendingQuery),
}

/// Kind, target and parameters of the action.
pub type ResendingAction = (&'static str, Box<str>, Vec<(&'static str, Box<str>)>);

impl Resending {
    /// Returns the action, as its row in the audit trail has it.
    #[must_use]
    pub fn action(&self) -> ResendingAction {
        match self {
            Self::Failed(query) => (ActionRecord::RESEND_FAILED, "failed callbacks".into(), filter_parameters(query)),
            Self::Pending(PendingOfReceiver { receiver, merchant }, _) => {
                let merchant = merchant.iter().map(|merchant| ("merchant", merchant.as_str().into())).collect();
                (ActionRecord::RESEND_PENDING, receiver.clone(), merchant)
            }
        }
    }

    /// Queues the next slice. Returns how many callbacks it had, and its end; `None`: it was the last one.
    ///
    /// # Errors
    /// The store is unavailable.
    pub async fn next_slice(
        &mut self,
        outbox: &dyn Outbox,
        now: UnixMillis,
    ) -> Result<(usize, Option<CallbackCursor>), StoreError> {
        match self {
            Self::Failed(query) => {
                let (count, end) = outbox.resend_failed(query.clone(), now).await?;
                query.after = end;
                Ok((count, end))
            }
            Self::Pending(_, query) => {
                let (count, end) = outbox.resend_pending(query.clone(), now).await?;
                query.after = end;
                Ok((count, end))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receivers_are_origins() {
        for text in ["https://Shop.example", "https://shop.example:443", "https://shop.example/"] {
            assert_eq!(read_receiver(text).as_deref(), Some("https://shop.example:443"), "{text}");
        }
        assert_eq!(read_receiver("http://127.0.0.1:8080").as_deref(), Some("http://127.0.0.1:8080"));
        for wrong in [
            "",
            "engine",
            "shop.example:443",
            "https://shop.example/cb",
            "https://shop.example?a",
            "https://a@b.example",
        ] {
            assert_eq!(read_receiver(wrong), None, "{wrong}");
        }
    }
}
