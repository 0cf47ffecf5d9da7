//! A signed `curl` command that creates a v1 deposit, for trying a new gateway.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;

use super::sign::{payin_path, v1_headers};
use crate::certs::Files;
use crate::domain::UnixMillis;
use crate::rules::{CallbackStyle, KeyEntry, Merchant, RuleSet, Shop};

const RETURN_URL: &str = "https://shop.example/done";
const CALLBACK_URL: &str = "https://shop.example/callback";

/// Returns a command to paste into a shell in the working directory while the signature is valid. It creates a v1
/// deposit for the first merchant with a key that may call v1 from this machine and a shop that needs no `fields`;
/// `None` if there is no such merchant.
#[must_use]
pub fn demo_curl(rules: &RuleSet, now: UnixMillis) -> Option<String> {
    let mut merchants: Vec<_> = rules.merchants.values().collect();
    merchants.sort_by(|one, other| one.id.as_str().cmp(other.id.as_str()));
    let entries = merchants.into_iter().flat_map(|merchant| {
        (0..merchant.api_keys.len()).map(|index| KeyEntry { merchant: Arc::clone(merchant), index })
    });
    entries.filter(may_call_from_here).find_map(|entry| curl_line(rules, &entry, now))
}

/// Reports whether a v1 request with this key from this machine would be accepted.
fn may_call_from_here(entry: &KeyEntry) -> bool {
    let key = entry.api_key();
    key.v1_secrets.is_some() && key.v2_secrets.is_some() && key.allowed_ips.contains(IpAddr::V4(Ipv4Addr::LOCALHOST))
}

/// Returns the default shop, else the first by code, of those that accept a deposit without `fields`.
fn simple_shop(entry: &KeyEntry) -> Option<&Shop> {
    let merchant = &entry.merchant;
    let mut shops: Vec<_> = merchant
        .shops
        .values()
        .filter(|access| access.payin && access.shop.active && entry.api_key().may_use(&access.shop.code))
        .map(|access| access.shop.as_ref())
        .filter(|shop| {
            shop.payin.schema.as_ref().is_none_or(|schema| schema.check(&merchant.id, std::iter::empty()).is_ok())
        })
        .collect();
    shops.sort_by_key(|shop| (merchant.default_shop.as_ref() != Some(&shop.code), shop.code.as_str().to_owned()));
    shops.first().copied()
}

/// Returns a body with the fewest members that these rules require; members that the merchant's rules fill in are left
/// out.
fn body(merchant: &Merchant, shop: &Shop, now: UnixMillis) -> String {
    let mut members = vec![
        ("external_id", json!(format!("demo-{}", now.0))),
        ("amount", json!("10.50")),
        ("currency", json!(shop.currency.as_str())),
        ("shop_code", json!(shop.code.as_str())),
    ];
    if merchant.v1.callbacks == CallbackStyle::V2 && merchant.v1.callback_url.is_none() {
        members.push(("callback_url", json!(CALLBACK_URL)));
    }
    if merchant.v1.return_url.is_none() {
        members.push(("paymentData", json!({ "return_user_url": RETURN_URL })));
    }
    let members: Vec<_> = members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    format!("{{{}}}", members.join(","))
}

fn curl_line(rules: &RuleSet, entry: &KeyEntry, now: UnixMillis) -> Option<String> {
    let secret = entry.api_key().v1_secrets.as_ref()?.signing();
    let (method, path) = payin_path(entry)?;
    let body = body(&entry.merchant, simple_shop(entry)?, now);
    let mut line = "curl".to_owned();
    let ca = Files::of_rules(&rules.gateway.tls).ca;
    // Writing to a String does not fail.
    if ca.exists() {
        let _ = write!(line, " --cacert {}", quoted(&relative_to_cwd(&ca).to_string_lossy()));
    }
    for (name, value) in v1_headers(entry, secret, now, method, path, body.as_bytes()) {
        let _ = write!(line, " -H {}", quoted(&format!("{name}: {value}")));
    }
    let url = format!("{}{path}", rules.gateway.server.public_url);
    let _ = write!(line, " -H 'Content-Type: application/json' -d {} {}", quoted(&body), quoted(&url));
    Some(line)
}

/// Returns a path relative to the working directory if it lies inside: `rules/../certs/ca.pem` becomes `certs/ca.pem`.
pub(super) fn relative_to_cwd(path: &Path) -> PathBuf {
    let here = std::env::current_dir().and_then(|here| here.canonicalize());
    let (Ok(whole), Ok(here)) = (path.canonicalize(), here) else { return path.to_owned() };
    whole.strip_prefix(here).map_or_else(|_| whole.clone(), Path::to_owned)
}

/// Quotes a text as one word for a POSIX shell.
fn quoted(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_./:@%+=,".contains(&b);
    if !text.is_empty() && text.bytes().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{LoadOptions, load};

    fn shipped() -> RuleSet {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("rules");
        load(&directory, UnixMillis(0), None, LoadOptions::default()).unwrap()
    }

    #[test]
    fn the_shipped_rules_give_a_command() {
        let line = demo_curl(&shipped(), UnixMillis(1_772_409_600_007)).unwrap();
        assert!(line.starts_with("curl ") && line.lines().count() == 1, "{line}");
        for part in [
            "-H 'X-Api-Key: demo-v1' -H 'X-Timestamp: 1772409600' -H 'X-Signature: ",
            r#"-d '{"external_id":"demo-1772409600007","amount":"10.50","currency":"EUR","shop_code":"card-eur"}'"#,
            " https://localhost:8443/api/v1/payin",
        ] {
            assert!(line.contains(part), "{part}: {line}");
        }
    }

    #[test]
    fn no_command_without_a_usable_merchant() {
        let mut rules = shipped();
        rules.merchants.clear();
        assert_eq!(demo_curl(&rules, UnixMillis(0)), None);
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quoted("certs/ca.pem"), "certs/ca.pem");
        assert_eq!(quoted("X-Api-Key: a"), "'X-Api-Key: a'");
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn paths_are_relative_to_the_working_directory() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert_eq!(relative_to_cwd(&here.join("src/../Cargo.toml")), Path::new("Cargo.toml"));
        assert_eq!(relative_to_cwd(Path::new("none/../such")), Path::new("none/../such"));
    }
}
