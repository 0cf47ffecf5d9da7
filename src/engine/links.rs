//! The signed links of a deposit (contract section 9).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::auth::links::{self, Link, LinkRefused};
use crate::domain::{RedirectUrl, Secret, TransactionId, UnixMillis};
use crate::rules::GatewayRules;

/// The default secret of links, used when the rules have no `pages.secret`: 32 bytes in a file beside the store's key.
#[derive(Debug, Clone)]
pub struct PageSecret {
    secret: Secret,
    /// The content of its file: the secret in base64.
    file: Secret,
}

impl PageSecret {
    /// Signs with this secret.
    #[must_use]
    pub fn new(secret: Secret) -> Self {
        let file = Secret::new(STANDARD.encode(secret.expose()).as_bytes());
        Self { secret, file }
    }

    /// Signs the entry link of a deposit created at `now`.
    #[must_use]
    pub fn entry_link(&self, gateway: &GatewayRules, id: TransactionId, now: UnixMillis) -> RedirectUrl {
        self.sign(gateway, links::ENTRY, id, now.plus(gateway.pages.link_lifetime).seconds())
    }

    /// Signs the link to which the customer of a deposit returns after paying. It is a secret of the customer.
    #[must_use]
    pub fn return_link(&self, gateway: &GatewayRules, id: TransactionId, created_at: UnixMillis) -> RedirectUrl {
        self.sign(gateway, links::RETURN, id, created_at.plus(gateway.pages.return_lifetime).seconds())
    }

    /// Signs the link of the sandbox's hosted page; it expires with the entry link that led there.
    #[must_use]
    pub fn sandbox_link(&self, gateway: &GatewayRules, entry: Link) -> RedirectUrl {
        self.sign(gateway, links::SANDBOX, entry.id, entry.expires)
    }

    /// Verifies a link of a kind and returns its content; `target` is the path and query exactly as received.
    ///
    /// # Errors
    /// The link was not issued like this, or is too late.
    pub fn verify(
        &self,
        gateway: &GatewayRules,
        kind: &str,
        target: &str,
        now: UnixMillis,
    ) -> Result<Link, LinkRefused> {
        let Some(secrets) = &gateway.pages.secret else { return links::verify([&self.secret], kind, target, now) };
        // The file of the default secret may be listed, so that links signed with it stay valid.
        let default = secrets.verifying().any(|secret| secret.expose() == self.file.expose()).then_some(&self.secret);
        links::verify(secrets.verifying().chain(default), kind, target, now)
    }

    fn sign(&self, gateway: &GatewayRules, kind: &str, id: TransactionId, expires: i64) -> RedirectUrl {
        let secret = gateway.pages.secret.as_ref().map_or(&self.secret, |secrets| secrets.signing());
        RedirectUrl::new(links::sign(secret, &gateway.server.public_url, kind, id, expires))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{LoadOptions, load};

    const CREATED: UnixMillis = UnixMillis(1_735_689_600_999);

    fn gateway(pages: &str) -> GatewayRules {
        let directory = tempfile::tempdir().unwrap();
        let text = format!("[server]\npublic_url = \"https://pay.example\"\n[pages]\n{pages}");
        std::fs::write(directory.path().join("gateway.toml"), text).unwrap();
        load(directory.path(), CREATED, None, LoadOptions::default()).unwrap().gateway
    }

    #[test]
    fn a_return_link_lives_from_the_creation_and_is_signed_with_the_first_secret() {
        let id = TransactionId::parse("123456789").unwrap();
        let default = PageSecret::new(Secret::new(b"page-secret"));
        // Computed with Python's hmac.
        for (pages, link) in [
            (
                "",
                "/return/123456789?expires=1736294400&signature=b33d71c3d3a4e75a2b2998bfd52c2f3047edd3deb8a1a1369a0efc604f6eead0",
            ),
            (
                "secret = [\"new\", \"page-secret\"]\nreturn_lifetime = \"1d\"\n",
                "/return/123456789?expires=1735776000&signature=4acc081c10b2576f57eac8353fde69f5c395344abd7e054cace2f83c24672e68",
            ),
        ] {
            let made = default.return_link(&gateway(pages), id, CREATED);
            assert_eq!(made.expose(), format!("https://pay.example{link}"));
            assert_eq!(format!("{made:?}"), "RedirectUrl(..)");
        }
    }
}
