//! A rules directory for fuzz targets: everything goes by way of files, as it does for the gateway.

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use paybridge::domain::UnixMillis;
use paybridge::rules::{LoadOptions, Problems, RuleSet, load};
use tempfile::TempDir;

/// The places that rule files have, each read in another way.
pub const PLACES: [&str; 8] = [
    "gateway.toml",
    "dialects/v1.toml",
    "merchants/m.toml",
    "shops/s.toml",
    "shops/s.json",
    "lists/banks.txt",
    "lists/m/banks.txt",
    "pages/en.toml",
];

const SHOP: &str = "currency = \"EUR\"\n[payin]\nschema = \"s.json\"\n[provider]\nkind = \"sandbox\"\n";

const MERCHANT: &str = "\
default_shop = \"s\"
[[api_keys]]
key = \"k\"
v1_secret = \"one\"
v2_secret = \"two\"
allowed_ips = [\"203.0.113.0/24\"]
[shops.s]
";

/// A directory with good rules, in memory where there is such a place.
pub struct Rules(TempDir);

impl Rules {
    /// The one of this process, with good rules in it.
    pub fn good() -> &'static Self {
        static RULES: OnceLock<Rules> = OnceLock::new();
        let rules = RULES.get_or_init(|| {
            let memory = PathBuf::from("/dev/shm");
            let above = if memory.is_dir() { memory } else { std::env::temp_dir() };
            Self(TempDir::with_prefix_in("paybridge-fuzz-", above).expect("a directory"))
        });
        for (place, text) in [
            ("gateway.toml", ""),
            ("dialects/v1.toml", ""),
            ("merchants/m.toml", MERCHANT),
            ("shops/s.toml", SHOP),
            ("shops/s.json", "{\"properties\":{\"bank\":{\"x-allowed-list\":\"banks\"}}}"),
            ("lists/banks.txt", "a\nb\n"),
            ("lists/m/banks.txt", "c\n"),
            ("pages/en.toml", ""),
        ] {
            rules.put(place, text.as_bytes());
        }
        rules
    }

    /// Writes a file.
    pub fn put(&self, place: &str, bytes: &[u8]) {
        let path = self.path().join(place);
        fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        fs::write(path, bytes).expect("written");
    }

    /// Where it is.
    pub fn path(&self) -> PathBuf {
        self.0.path().join("rules")
    }

    /// Reads it anew, after `previous` was in force. Secrets are not followed: what they lead to is not the fuzzer's.
    pub fn load(&self, previous: Option<&RuleSet>) -> Result<RuleSet, Problems> {
        let loaded = load(&self.path(), UnixMillis(0), previous, options());
        if let Err(problems) = &loaded {
            assert!(!problems.rendered().is_empty() && problems.len() <= 1100);
        }
        loaded
    }
}

/// Without secrets.
pub const fn options() -> LoadOptions {
    LoadOptions { check_secrets: false }
}

/// The first byte's choice, and the rest.
pub fn chosen<'a, T: Copy>(from: &[T], bytes: &'a [u8]) -> Option<(T, &'a [u8])> {
    let (first, rest) = bytes.split_first()?;
    Some((from[usize::from(*first) % from.len()], rest))
}
