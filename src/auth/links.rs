//! Signs and verifies links: `{public_url}/{kind}/{transaction_id}?expires=<unix>&signature=<hex>`, with HMAC-SHA256
//! over path and query up to the signature (contract section 9).

use hmac::Mac;

use super::signatures::verifies_lower_hex;
use crate::domain::{Secret, TransactionId, UnixMillis};

/// The path of entry links.
pub const ENTRY: &str = "pay";
/// The path of return links.
pub const RETURN: &str = "return";
/// The path of the sandbox's hosted page.
pub const SANDBOX: &str = "sandbox";

/// The content of a verified link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// The operation that it belongs to.
    pub id: TransactionId,
    /// The end of its validity, in Unix seconds: it is valid before.
    pub expires: i64,
}

/// Returns a signed link that is valid before `expires`, in Unix seconds.
#[must_use]
pub fn sign(secret: &Secret, public_url: &str, kind: &str, id: TransactionId, expires: i64) -> String {
    // Each number has at most 20 digits, the signature 64.
    let mut link = String::with_capacity(public_url.len() + kind.len() + 128);
    for piece in [public_url, "/", kind, "/"] {
        link.push_str(piece);
    }
    link.push_str(id.digits().as_str());
    link.push_str("?expires=");
    link.push_str(itoa::Buffer::new().format(expires));
    let mut mac = secret.sha256();
    let (_, signed) = link.split_at(public_url.len());
    mac.update(signed.as_bytes());
    link.push_str("&signature=");
    link.push_str(&hex::encode(mac.finalize().into_bytes()));
    link
}

/// The link was not issued here, was altered, or has expired. Its user gets the same page for all of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the link is not valid or no longer valid")]
pub struct LinkRefused;

/// Verifies a link and returns its content. `target` is the path and query exactly as received: anything added, left
/// out, reordered or spelled differently is refused. Any of the secrets verifies.
///
/// # Errors
/// The link was not issued in this form, or has expired at `now`.
pub fn verify<'a>(
    secrets: impl IntoIterator<Item = &'a Secret>,
    kind: &str,
    target: &str,
    now: UnixMillis,
) -> Result<Link, LinkRefused> {
    let (signed, signature) = target.split_once("&signature=").ok_or(LinkRefused)?;
    if !verifies_lower_hex(secrets, signed.as_bytes(), signature.as_bytes()) {
        return Err(LinkRefused);
    }
    let rest =
        signed.strip_prefix('/').and_then(|rest| rest.strip_prefix(kind)).and_then(|rest| rest.strip_prefix('/'));
    let (id, expires) = rest.and_then(|rest| rest.split_once("?expires=")).ok_or(LinkRefused)?;
    let expires: i64 = expires.parse().map_err(|_| LinkRefused)?;
    if now.seconds() >= expires {
        return Err(LinkRefused);
    }
    let id = TransactionId::parse(id).map_err(|_| LinkRefused)?;
    Ok(Link { id, expires })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixMillis = UnixMillis(1_735_689_600_000);
    const EXPIRES: i64 = 1_735_691_400;

    fn id() -> TransactionId {
        TransactionId::parse("123456789").unwrap()
    }

    fn link() -> Link {
        Link { id: id(), expires: EXPIRES }
    }

    fn target(secret: &Secret) -> String {
        sign(secret, "", ENTRY, id(), EXPIRES)
    }

    #[test]
    fn a_link_has_the_form_of_the_contract() {
        // Computed with Python's hmac.
        let link = sign(&Secret::new(b"page-secret"), "https://pay.example", ENTRY, id(), EXPIRES);
        let signature = "182c132d932abee1553946cdf13ad48fbe5735fa36cfb297b197ebc8d3c5d657";
        assert_eq!(link, format!("https://pay.example/pay/123456789?expires=1735691400&signature={signature}"));
    }

    #[test]
    fn any_listed_secret_verifies() {
        let (old, new, other) = (Secret::new(b"old"), Secret::new(b"new"), Secret::new(b"other"));
        assert_eq!(verify([&new, &old], ENTRY, &target(&old), NOW), Ok(link()));
        assert_eq!(verify([&new, &old], ENTRY, &target(&new), NOW), Ok(link()));
        assert_eq!(verify([&new, &old], ENTRY, &target(&other), NOW), Err(LinkRefused));
        assert_eq!(verify([], ENTRY, &target(&new), NOW), Err(LinkRefused));
    }

    #[test]
    fn a_link_is_valid_while_now_is_before_its_end() {
        let secret = Secret::new(b"page-secret");
        let at = |millis| verify([&secret], ENTRY, &target(&secret), UnixMillis(millis));
        assert!(at(EXPIRES * 1000 - 1).is_ok());
        assert!(at(EXPIRES * 1000).is_err());
    }

    #[test]
    fn an_altered_link_is_refused() {
        let secret = Secret::new(b"page-secret");
        let good = target(&secret);
        let (signed, signature) = good.split_once("&signature=").unwrap();
        for altered in [
            String::new(),
            signed.to_owned(),
            good.replace("123456789", "123456788"),
            good.replace("123456789", "0123456789"),
            good.replace("1735691400", "1735691401"),
            good.replace("1735691400", "+1735691400"),
            good.replace("/pay/", "/return/"),
            good.replace("/pay/", "//pay/"),
            good.replace("pay", "%70ay"),
            good.replace("expires", "Expires"),
            good.replace('?', "?x=1&"),
            format!("{good}&x=1"),
            format!("{good}#x"),
            format!("{good}&signature={signature}"),
            format!("{signed}&x=1&signature={signature}"),
            format!("/pay/123456789?signature={signature}&expires=1735691400"),
            format!("{signed}&signature={}", signature.to_uppercase()),
            format!("{signed}&signature={}", &signature[..63]),
            format!("https://pay.example{good}"),
        ] {
            assert_eq!(verify([&secret], ENTRY, &altered, NOW), Err(LinkRefused), "{altered}");
        }
        assert!(verify([&secret], RETURN, &good, NOW).is_err(), "another kind");
    }
}
