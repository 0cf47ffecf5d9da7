//! The signed links of a deposit (contract section 9).

use crate::auth::links::{self, Link, LinkRefused};
use crate::domain::{RedirectUrl, TransactionId, UnixMillis};
use crate::rules::{Gateway, Secret};

/// Signs links where the rules name no `pages.secret`: 32 bytes kept beside the store's key.
#[derive(Debug, Clone)]
pub struct PageSecret(pub Secret);

impl PageSecret {
    /// The entry link of a deposit created at `now`.
    #[must_use]
    pub fn entry_link(&self, gateway: &Gateway, id: TransactionId, now: UnixMillis) -> RedirectUrl {
        self.sign(gateway, links::ENTRY, id, now.plus(gateway.pages.link_lifetime).seconds())
    }

    /// The return link of a deposit.
    #[must_use]
    pub fn return_link(&self, gateway: &Gateway, id: TransactionId, created_at: UnixMillis) -> RedirectUrl {
        self.sign(gateway, links::RETURN, id, created_at.plus(gateway.pages.return_lifetime).seconds())
    }

    /// The link of the sandbox's hosted page, for whoever came by the entry link `entry`: valid as long.
    #[must_use]
    pub fn sandbox_link(&self, gateway: &Gateway, entry: Link) -> RedirectUrl {
        self.sign(gateway, links::SANDBOX, entry.id, entry.expires)
    }

    /// What a link of this kind says; `target` is the path and query exactly as received.
    ///
    /// # Errors
    /// The link was not issued like this, or is too late.
    pub fn verify(&self, gateway: &Gateway, kind: &str, target: &str, now: UnixMillis) -> Result<Link, LinkRefused> {
        match &gateway.pages.secret {
            Some(secrets) => links::verify(secrets.verifying(), kind, target, now),
            None => links::verify([&self.0], kind, target, now),
        }
    }

    fn sign(&self, gateway: &Gateway, kind: &str, id: TransactionId, expires: i64) -> RedirectUrl {
        let secret = gateway.pages.secret.as_ref().map_or(&self.0, |secrets| secrets.signing());
        RedirectUrl::new(links::sign(secret, &gateway.server.public_url, kind, id, expires))
    }
}
