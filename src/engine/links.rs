//! The signed entry link of a deposit (contract section 9).

use crate::auth::links;
use crate::domain::{RedirectUrl, TransactionId, UnixMillis};
use crate::rules::{Gateway, Secret};

/// Signs links where the rules name no `pages.secret`: 32 bytes kept beside the store's key.
#[derive(Debug, Clone)]
pub struct PageSecret(pub Secret);

impl PageSecret {
    /// The entry link of a deposit created at `now`.
    #[must_use]
    pub fn entry_link(&self, gateway: &Gateway, id: TransactionId, now: UnixMillis) -> RedirectUrl {
        let secret = gateway.pages.secret.as_ref().map_or(&self.0, |secrets| secrets.signing());
        let expires = now.plus(gateway.pages.link_lifetime).seconds();
        RedirectUrl::new(links::sign(secret, &gateway.server.public_url, links::ENTRY, id, expires))
    }
}
