//! The rule files of the tests: one small world with every kind of merchant, key and shop that the contract tells apart.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use super::request::{ACME, ACME_LIMITED, ACME_NOWHERE, ACME_PLAIN_ONLY, ACME_V2, BETA, GAMMA, Key};

/// The file that names the store's database, where it is not the default, beside `rules/`.
pub const STORE_URL: &str = "store.url";

/// The rule files of one gateway, by their path inside the rules directory.
#[derive(Clone)]
pub struct Rules {
    files: BTreeMap<String, String>,
    sections: BTreeMap<&'static str, String>,
}

impl Default for Rules {
    fn default() -> Self {
        let mut rules = Self { files: BTreeMap::new(), sections: BTreeMap::new() };
        rules.put("merchants/acme.toml", acme());
        rules.put("merchants/beta.toml", beta());
        rules.put("merchants/gamma.toml", gamma());
        for (path, text) in SHOPS {
            rules.put(path, *text);
        }
        rules.put("lists/banks.txt", "# banks that are open\nBANK-A\nBANK-B\n");
        rules.put("lists/gamma/banks.txt", "BANK-G\n");
        rules
    }
}

impl Rules {
    /// Puts a file in place of what was there.
    pub fn put(&mut self, path: &str, text: impl Into<String>) {
        self.files.insert(path.to_owned(), text.into());
    }

    /// Adds keys to a section of `gateway.toml`.
    #[must_use]
    pub fn with(mut self, section: &'static str, keys: &str) -> Self {
        let lines = self.sections.entry(section).or_default();
        lines.push_str(keys);
        lines.push('\n');
        self
    }

    /// Puts a file and gives the rules back.
    #[must_use]
    pub fn file(mut self, path: &str, text: impl Into<String>) -> Self {
        self.put(path, text);
        self
    }

    /// Takes a file away.
    #[must_use]
    pub fn without(mut self, path: &str) -> Self {
        self.files.remove(path);
        self
    }

    /// Replaces text in a file that has it.
    #[must_use]
    pub fn edit(mut self, path: &str, from: &str, to: &str) -> Self {
        let text = self.files.get_mut(path).expect("the file is there");
        assert!(text.contains(from), "{path} does not hold {from}");
        *text = text.replace(from, to);
        self
    }

    /// Writes everything below `root/rules`, with these ports.
    pub fn write(&self, root: &Path, public_port: u16, admin_port: u16) {
        for (path, text) in &self.files {
            write_file(&root.join("rules").join(path), text);
        }
        let store = std::fs::read_to_string(root.join(STORE_URL)).ok();
        write_file(&root.join("rules/gateway.toml"), &self.gateway(public_port, admin_port, store.as_deref()));
    }

    fn gateway(&self, public_port: u16, admin_port: u16, store: Option<&str>) -> String {
        let mut sections = self.sections.clone();
        let mut default = |section, keys: &str| {
            let text: &mut String = sections.entry(section).or_default();
            for line in keys.lines() {
                let name = line.split('=').next().unwrap_or_default();
                if !text.lines().any(|written| written.split('=').next() == Some(name)) {
                    text.push_str(line);
                    text.push('\n');
                }
            }
        };
        default(
            "server",
            &format!("listen = \"127.0.0.1:{public_port}\"\npublic_url = \"https://localhost:{public_port}\"\n"),
        );
        default("tls", "generate = true\n");
        default("admin", &format!("listen = \"127.0.0.1:{admin_port}\"\n"));
        default("callbacks", "allow_private_addresses = true\n");
        if let Some(url) = store {
            default("store", &format!("url = \"{url}\"\n"));
        }
        default("limits", "unauthenticated_per_ip = { per_second = 10000, burst = 10000 }\n");
        sections.iter().fold(String::new(), |mut text, (section, keys)| {
            let _ = writeln!(text, "[{section}]\n{keys}");
            text
        })
    }
}

/// Writes a file and the directories above it as most editors do: beside it, then in its place, so that a gateway that
/// reads at the same time finds the old text or the new one.
pub fn write_file(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let beside = path.with_file_name(".save.tmp");
    std::fs::write(&beside, text).unwrap();
    std::fs::rename(beside, path).unwrap();
}

fn api_key(key: &Key, rest: &str) -> String {
    let mut text = format!("[[api_keys]]\nkey = \"{}\"\n", key.name);
    for (name, secret) in [("v1_secret", key.v1), ("v2_secret", key.v2)] {
        if let Some(secret) = secret {
            let _ = writeln!(text, "{name} = \"{secret}\"");
        }
    }
    text + rest + "\n"
}

const LOOPBACK: &str = "allowed_ips = [\"127.0.0.0/8\", \"::1\"]\n";

/// The merchant of most tests: nothing is filled in for it.
fn acme() -> String {
    let keys = [
        api_key(&ACME, LOOPBACK),
        api_key(&ACME_V2, LOOPBACK),
        api_key(&ACME_NOWHERE, "allowed_ips = [\"203.0.113.0/24\", \"2001:db8::/32\"]\n"),
        api_key(&ACME_LIMITED, &format!("{LOOPBACK}rate_limit = {{ per_second = 1, burst = 2 }}\n")),
        api_key(&ACME_PLAIN_ONLY, &format!("{LOOPBACK}shops = [\"plain-usd\"]\n")),
    ];
    format!(
        "name = \"Acme Ltd\"\ndefault_shop = \"card-eur\"\n\n{}\n\
         [shops.card-eur]\npayin = true\npayout = true\n\
         [shops.slow-eur]\npayin = true\npayout = true\n\
         [shops.strict-eur]\npayin = true\npayout = true\n\
         [shops.plain-usd]\npayin = true\npayout = true\n\
         [shops.mobile-kes]\npayin = true\npayout = true\n\
         [shops.half-eur]\npayin = true\npayout = false\n\
         [shops.off-eur]\npayin = true\npayout = true\n",
        keys.concat()
    )
}

/// A merchant whose v1 traffic is completed by its rules, without a default shop.
fn beta() -> String {
    format!(
        "name = \"Beta\"\n\n{}\n[shops.card-eur]\npayin = true\npayout = true\n\
         [shops.beta-only]\npayin = true\npayout = true\n\
         [v1]\nreturn_url = \"https://beta.example/back\"\nunknown_fields = \"ignore\"\n\
         non_numeric_user_id = \"omit\"\nallow_http_callbacks = true\n",
        api_key(&BETA, LOOPBACK)
    )
}

/// A merchant that takes v2 callbacks and is told to move on.
fn gamma() -> String {
    format!(
        "name = \"Gamma\"\ndefault_shop = \"card-eur\"\n\n{}\n[shops.card-eur]\npayin = true\npayout = true\n\
         [v1]\ncallbacks = \"v2\"\ndeprecated_since = \"2026-06-30\"\nsunset = \"2027-06-30\"\n\
         migration_url = \"https://docs.example/v2\"\n",
        api_key(&GAMMA, LOOPBACK)
    )
}

const SHOPS: &[(&str, &str)] = &[
    (
        "shops/card-eur.toml",
        "currency = \"EUR\"\npayment_method = \"card\"\n[payin]\nschema = \"card-eur.payin.json\"\n[payout]\n\
         schema = \"card-eur.payout.json\"\naccount = \"card\"\n[provider]\nkind = \"sandbox\"\ndelay = \"50ms\"\n",
    ),
    (
        "shops/card-eur.payin.json",
        r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{
            "email":{"type":"string","format":"email"},"first_name":{"type":"string","maxLength":40},
            "bank_code":{"type":"string","x-allowed-list":"banks"},"level":{"type":"integer","minimum":1,"maximum":5},
            "channel":{"type":"string","enum":["web","app"],"default":"web"},"phone":{"type":"string"},
            "card":{"type":"string"},"extra":{"type":"object"},"ratio":{"type":"number"}}}"#,
    ),
    (
        "shops/card-eur.payout.json",
        r#"{"type":"object","properties":{"holder":{"type":"string","minLength":2},"last_name":{"type":"string"}}}"#,
    ),
    (
        "shops/slow-eur.toml",
        "currency = \"EUR\"\n[payout]\naccount = \"card\"\n[provider]\nkind = \"sandbox\"\ndelay = \"6h\"\n",
    ),
    (
        "shops/strict-eur.toml",
        "currency = \"EUR\"\npayment_method = \"card\"\n[payin]\nschema = \"strict.json\"\n[payout]\n\
         schema = \"strict.json\"\naccount = \"card\"\n[provider]\nkind = \"sandbox\"\n",
    ),
    (
        "shops/strict.json",
        r#"{"type":"object","required":["merchant_user_ip","holder"],"properties":{"holder":{"type":"string"},
            "merchant_user_ip":{"type":"string","default":"192.0.2.1"},"birthday":{"type":"string","format":"date"}}}"#,
    ),
    (
        "shops/plain-usd.toml",
        "currency = \"USD\"\n[payout]\naccount = { pattern = \"^[A-Z]{2}[0-9]{10,32}$\" }\n[provider]\nkind = \"sandbox\"\n",
    ),
    (
        "shops/mobile-kes.toml",
        "currency = \"KES\"\npayment_method = \"mobile\"\n[payin]\nschema = \"mobile.json\"\n[payout]\n\
         account = \"mobile\"\n[provider]\nkind = \"sandbox\"\n",
    ),
    (
        "shops/mobile.json",
        r#"{"type":"object","required":["mobile_number"],"properties":{
            "mobile_number":{"type":"string","pattern":"^0[0-9]{9}$"}}}"#,
    ),
    ("shops/half-eur.toml", "currency = \"EUR\"\n[provider]\nkind = \"sandbox\"\n"),
    ("shops/off-eur.toml", "currency = \"EUR\"\nactive = false\n[provider]\nkind = \"sandbox\"\n"),
    ("shops/beta-only.toml", "currency = \"EUR\"\n[provider]\nkind = \"sandbox\"\n"),
];
