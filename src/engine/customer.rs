//! The next step of a deposit's customer, for the pages that show it (promises P176 to P186), and the links
//! between these pages.

use super::Engine;
use crate::auth::signatures::{self, Link, LinkRefused};
use crate::domain::{BrowserUrl, Instructions, Operation, Preparation, RedirectUrl, Status, TransactionId, UnixMillis};
use crate::rules::{GatewayRules, ProviderRules};
use crate::store::StoreError;

/// The next step of a deposit's customer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextAction {
    /// Preparation is in progress.
    Preparing,
    /// The provider's payment page is ready.
    Page(BrowserUrl),
    /// The sandbox's own hosted page is ready.
    SandboxPage,
    /// Payment instructions are ready to be shown.
    Instructions(Instructions),
    /// Preparation stopped while the result is unknown.
    Stopped,
    /// There is a result: the customer goes to its URL.
    Finished(Status),
}

impl From<Preparation> for NextAction {
    fn from(preparation: Preparation) -> Self {
        match preparation {
            Preparation::Page(url) => Self::Page(url),
            Preparation::Instructions(instructions) => Self::Instructions(instructions),
            Preparation::Stopped => Self::Stopped,
        }
    }
}

impl Engine {
    /// Returns the next step of a deposit's customer; `provider` is the one of its shop, `None` when the shop is gone. A result
    /// comes first, then what a provider prepared for this deposit, then the default of the provider. When no provider is
    /// left that could prepare anything (the shop is gone, or has another kind of provider than at the deposit's creation),
    /// preparation has stopped.
    ///
    /// # Errors
    /// The store could not answer.
    pub async fn next_action(
        &self,
        operation: &Operation,
        provider: Option<&ProviderRules>,
    ) -> Result<NextAction, StoreError> {
        let status = operation.state.status();
        if status != Status::Pending {
            return Ok(NextAction::Finished(status));
        }
        if let Some(preparation) = self.deps.store.preparation(operation.id).await? {
            return Ok(preparation.into());
        }
        let Some(provider) = provider.filter(|provider| provider.kind() == operation.provider) else {
            return Ok(NextAction::Stopped);
        };
        let reported = self.provider.next_action(provider, operation, self.deps.clock.now());
        Ok(reported.unwrap_or(NextAction::Preparing))
    }

    /// Signs the link to which the customer of a deposit returns after paying. It is a secret of the customer.
    #[must_use]
    pub fn return_link(&self, gateway: &GatewayRules, id: TransactionId, created_at: UnixMillis) -> RedirectUrl {
        self.link(gateway, signatures::RETURN, id, created_at.plus(gateway.pages.return_lifetime).seconds())
    }

    /// Signs the link of the sandbox's hosted page; it expires with the entry link that led there.
    #[must_use]
    pub fn sandbox_link(&self, gateway: &GatewayRules, entry: Link) -> RedirectUrl {
        self.link(gateway, signatures::SANDBOX, entry.id, entry.expires)
    }

    /// Verifies a link of a kind and returns its content; `target` is the path and query exactly as received.
    ///
    /// # Errors
    /// The link was not issued like this, or is too late.
    pub fn verify_link(
        &self,
        gateway: &GatewayRules,
        kind: &str,
        target: &str,
        now: UnixMillis,
    ) -> Result<Link, LinkRefused> {
        self.page_secret.verify(gateway.pages.secret.as_ref(), kind, target, now)
    }
}
