//! Tests of `inspect`, which checks certificates and keys in addition to the rules.

use rcgen::{CertificateParams, KeyPair, date_time_ymd};

use super::*;
use crate::rules::{TlsRules, inspect};

/// 2026-06-15.
const NOW: UnixMillis = UnixMillis(1_781_481_600_000);

/// Returns a certificate for `name`, valid from the first day to the second, and its key.
fn pair(name: &str, from: (i32, u8, u8), to: (i32, u8, u8)) -> (String, String) {
    let mut params = CertificateParams::new([name.to_owned()]).unwrap();
    params.not_before = date_time_ymd(from.0, from.1, from.2);
    params.not_after = date_time_ymd(to.0, to.1, to.2);
    let key = KeyPair::generate().unwrap();
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

fn valid_pair() -> (String, String) {
    pair("localhost", (2026, 1, 1), (2027, 1, 1))
}

/// Returns rules with files in `certs` beside the rules directory.
fn rules(gateway: &str, certs: &[(&str, &str)]) -> Rules {
    let rules = Rules::small().with("gateway.toml", gateway);
    for (name, text) in certs {
        rules.put(&format!("../certs/{name}"), text);
    }
    rules
}

/// Returns the problems, one line each: `severity place message`.
fn found(rules: &Rules, check_secrets: bool) -> Vec<String> {
    let check_pair = |tls: &TlsRules| {
        assert!(tls.client_ca.is_none());
        let text = |path: &Path| fs::read_to_string(path).unwrap();
        if text(&tls.key).contains("PRIVATE") && !text(&tls.key).contains("other") {
            Ok(())
        } else {
            Err("the key does not belong".to_owned())
        }
    };
    let inspection = inspect(&rules.path(), NOW, LoadOptions { check_secrets }, &check_pair);
    assert_eq!(
        inspection.rules.is_none(),
        inspection.problems.iter().any(|problem| problem.severity == Severity::Error)
    );
    let shown = |problem: &Problem| {
        let severity = if problem.severity == Severity::Error { "error" } else { "warning" };
        let below = rules.below(problem).replace(&format!("{}/", rules.0.path().display()), "");
        format!("{severity} {below}")
    };
    inspection.problems.iter().map(shown).collect()
}

#[track_caller]
fn assert_found(rules: &Rules, expected: &[&str]) {
    let found = found(rules, true);
    let all = found.len() == expected.len()
        && found.iter().zip(expected).all(|(found, expected)| found.starts_with(expected));
    assert!(all, "{expected:#?} expected: {found:#?}");
}

#[test]
fn a_valid_pair_has_no_problems() {
    let (certificate, key) = valid_pair();
    assert_found(&rules("", &[("server.pem", &certificate), ("server.key", &key)]), &[]);
    assert_found(&rules("[tls]\ngenerate = true\n", &[]), &[]);
}

#[test]
fn validity_dates_are_checked() {
    for (from, to, message) in [
        ((2025, 1, 1), (2026, 6, 14), "expired on 2026-06-14"),
        ((2026, 6, 16), (2027, 1, 1), "is not valid before 2026-06-16"),
        ((2026, 1, 1), (2026, 6, 28), "expires on 2026-06-28, in less than 14 days"),
    ] {
        let (certificate, key) = pair("localhost", from, to);
        let files = [("server.pem", certificate.as_str()), ("server.key", &key)];
        let expected =
            format!("warning gateway.toml:1:1: `tls.certificate`: the certificate in certs/server.pem {message}");
        assert_found(&rules("", &files), &[&expected]);
        let named = "[tls]\nkey = \"../certs/server.key\"\ncertificate = \"../certs/server.pem\"\n";
        assert_found(&rules(named, &files), &[&expected.replace(":1:1:", ":3:15:")]);
    }
    let (certificate, key) = pair("localhost", (2026, 1, 1), (2026, 6, 30));
    assert_found(&rules("", &[("server.pem", &certificate), ("server.key", &key)]), &[]);
    let (old, _) = pair("localhost", (2024, 1, 1), (2025, 1, 1));
    let chain = format!("{}{old}", valid_pair().0);
    assert_found(
        &rules("", &[("server.pem", &chain), ("server.key", &key)]),
        &["warning gateway.toml:1:1: `tls.certificate`: certificate 2 of 2 in certs/server.pem expired on 2025-01-01"],
    );
}

#[test]
fn validity_dates_of_authorities_are_checked() {
    let (old, _) = pair("ca", (2024, 1, 1), (2025, 1, 1));
    let gateway = "[tls]\ngenerate = true\nclient_ca = \"../certs/old.pem\"\n[engine]\ntrust = [\"../certs/old.pem\"]\n\
                   [callbacks]\ntrust = [\"../certs/old.pem\"]\n";
    let shop = "currency = \"EUR\"\n[provider]\nkind = \"http\"\nurl = \"https://bank.example\"\nsecret = \"x\"\n\
                trust = [\"../../certs/old.pem\"]\n";
    let rules = rules(gateway, &[("old.pem", &old)]).with("shops/s.toml", shop);
    let expected = [
        "warning gateway.toml:3:13: `tls.client_ca`: the certificate in certs/old.pem expired on 2025-01-01",
        "warning gateway.toml:5:10: `engine.trust`: ",
        "warning gateway.toml:7:10: `callbacks.trust`: ",
        "warning shops/s.toml:6:10: `provider.trust`: ",
    ];
    assert_found(&rules, &expected);
}

#[test]
fn incomplete_pairs_are_reported() {
    let (certificate, key) = valid_pair();
    let other = format!("other\n{key}");
    let cut = &certificate[..certificate.len() / 2];
    let header = "[tls]\n";
    for (files, expected) in [
        (
            vec![("server.pem", certificate.as_str()), ("server.key", other.as_str())],
            vec!["warning gateway.toml:1:1: `tls.key`: the key does not belong"],
        ),
        (
            vec![("server.key", key.as_str())],
            vec!["warning gateway.toml:1:1: `tls.certificate`: certs/server.pem cannot be read: No such file"],
        ),
        (
            vec![("server.pem", certificate.as_str())],
            vec!["warning gateway.toml:1:1: `tls.key`: certs/server.key cannot be read: No such file"],
        ),
        (
            vec![("server.pem", cut), ("server.key", key.as_str())],
            vec![
                "warning gateway.toml:1:1: `tls.certificate`: certs/server.pem is not well-formed PEM: it may be cut short",
            ],
        ),
        (
            vec![("server.pem", ""), ("server.key", certificate.as_str())],
            vec![
                "warning gateway.toml:1:1: `tls.certificate`: certs/server.pem holds no PEM certificate",
                "warning gateway.toml:1:1: `tls.key`: certs/server.key holds no PEM private key",
            ],
        ),
    ] {
        assert_found(&rules(header, &files), &expected);
    }
    assert_found(
        &rules("[tls]\ngenerate = true\n", &[("server.pem", &certificate)]),
        &["warning gateway.toml:1:1: `tls.key`: "],
    );
}

#[test]
fn the_certificate_is_for_the_public_url() {
    let (certificate, key) = pair("pay.example.com", (2026, 1, 1), (2027, 1, 1));
    let files = [("server.pem", certificate.as_str()), ("server.key", &key)];
    let public = |url: &str| format!("[server]\npublic_url = \"{url}\"\n");
    assert_found(&rules(&public("https://pay.example.com:8443"), &files), &[]);
    assert_found(
        &rules(&public("https://pya.example.com"), &files),
        &["warning gateway.toml:2:14: `server.public_url`: the certificate in certs/server.pem is not for \
         `pya.example.com`; it is for pay.example.com (did you mean `pay.example.com`?)"],
    );
    assert_found(&rules("", &files), &["warning gateway.toml:1:1: `server.public_url`: "]);
    let (certificate, key) = pair("2001:db8::1", (2026, 1, 1), (2027, 1, 1));
    let files = [("server.pem", certificate.as_str()), ("server.key", &key)];
    assert_found(&rules(&public("https://[2001:db8::1]:8443"), &files), &[]);
    assert_found(
        &rules(&public("https://[2001:db8::2]"), &files),
        &["warning gateway.toml:2:14: `server.public_url`: "],
    );
}

#[test]
fn without_secrets_only_existing_files_are_checked() {
    let (old, key) = pair("localhost", (2024, 1, 1), (2025, 1, 1));
    let gateway = "[tls]\nclient_ca = \"../certs/none.pem\"\n[callbacks]\ntrust = [\"../certs/none.pem\"]\n";
    let merchant = MERCHANT.replace("\"two\"", "\"env:PAYBRIDGE_NOT_SET_ANYWHERE\"");
    let missing = rules(gateway, &[]).with("merchants/m.toml", &merchant);
    assert_eq!(found(&missing, false), Vec::<String>::new());
    assert_eq!(found(&missing, true).len(), 5, "{:?}", found(&missing, true));
    let there = rules("[callbacks]\ntrust = [\"../certs/bad.pem\"]\n", &[("server.pem", &old), ("bad.pem", "no PEM")]);
    let expected = [
        "warning gateway.toml:1:1: `tls.certificate`: the certificate",
        "error gateway.toml:2:10: `callbacks.trust`: ",
    ];
    let found = found(&there, false);
    assert!(
        found.len() == 2 && found.iter().zip(expected).all(|(found, start)| found.starts_with(start)),
        "{found:#?}"
    );
    drop(key);
}

#[test]
fn certificates_are_checked_with_wrong_rules() {
    let rules = rules("[tls]\ngenerate = false\n", &[]).with("shops/s.toml", "currency = 1\n");
    let severities: Vec<_> =
        found(&rules, true).iter().map(|line| line.split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(severities, ["warning", "warning", "error", "error"]);
    let rules = self::rules("[tls\n", &[]);
    assert_eq!(found(&rules, true).len(), 1, "invalid TOML is the only problem");
}

const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n";

/// Returns rules with a PostgreSQL store and a certificate.
fn on_postgres(parameters: &str, more: &str) -> Rules {
    let (certificate, key) = valid_pair();
    let store = format!("[store]\nurl = \"postgres://u:TOPSECRET@localhost/db{parameters}\"\n{more}");
    rules(&store, &[("server.pem", &certificate), ("server.key", &key)])
}

#[test]
fn keys_that_nodes_share_must_exist() {
    let rules = on_postgres("", "");
    let none = "does not exist, and with PostgreSQL it is not generated";
    assert_found(
        &rules,
        &[
            &format!("warning gateway.toml:2:7: `pages.secret`: secrets/pages.key {none}"),
            &format!("warning gateway.toml:2:7: `store.keys`: secrets/store.key {none}"),
        ],
    );
    assert_eq!(found(&rules, false), [""; 0]);
    rules.put("../secrets/store.key", KEY);
    rules.put("../secrets/pages.key", "short");
    assert_found(
        &rules,
        &["warning gateway.toml:2:7: `pages.secret`: secrets/pages.key does not hold 32 bytes in base64"],
    );
    rules.put("../secrets/pages.key", KEY);
    assert_found(&rules, &[]);
    let set = on_postgres("", "[pages]\nsecret = \"hush\"\n");
    set.put("../secrets/store.key", KEY);
    assert_found(&set, &[]);
}

#[test]
fn the_authorities_of_a_database_must_exist() {
    let keys = format!("keys = [\"{}\"]\n[pages]\nsecret = \"hush\"\n", KEY.trim());
    let rules = on_postgres("?sslmode=verify-full&sslrootcert=ca.pem", &keys);
    let path = "warning gateway.toml:2:7: `store.url`: sslrootcert: ca.pem";
    assert_found(&rules, &[&format!("{path} cannot be read: ")]);
    assert_eq!(found(&rules, false), [""; 0]);
    rules.put("ca.pem", "TOPSECRET");
    assert_found(&rules, &[&format!("{path} holds no PEM certificate")]);
    rules.put("ca.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    assert_found(&rules, &[&format!("{path} holds a certificate that cannot be read")]);
    rules.put("ca.pem", pair("old", (2025, 1, 1), (2026, 1, 1)).0);
    assert_found(&rules, &["warning gateway.toml:2:7: `sslrootcert`: the certificate in ca.pem"]);
    rules.put("ca.pem", valid_pair().0);
    assert_found(&rules, &[]);
}

#[test]
fn an_encrypted_key_is_called_encrypted() {
    let (certificate, _) = valid_pair();
    let pkcs8 = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIB\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let older = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nMIIB\n\
                 -----END RSA PRIVATE KEY-----\n";
    for key in [pkcs8, older] {
        assert_found(
            &rules("", &[("server.pem", &certificate), ("server.key", key)]),
            &["warning gateway.toml:1:1: `tls.key`: certs/server.key holds an encrypted private key"],
        );
    }
}

#[test]
fn a_byte_order_mark_hides_no_certificate_and_no_key() {
    let (certificate, key) = valid_pair();
    let (certificate, key) = (format!("\u{feff}{certificate}"), format!("\u{feff}{key}"));
    assert_found(&rules("", &[("server.pem", &certificate), ("server.key", &key)]), &[]);
    let trusting = rules("[tls]\ngenerate = true\n[callbacks]\ntrust = [\"../certs/server.pem\"]\n", &[]);
    trusting.put("../certs/server.pem", &certificate);
    assert_eq!(trusting.load().gateway.callbacks.trust.len(), 1);
}

/// What a trust names is an authority, or a server's own certificate, which is noted and no problem.
#[test]
fn a_servers_own_certificate_is_noted() {
    let (own, _) = pair("v2.example", (2026, 1, 1), (2027, 1, 1));
    let mut authority = CertificateParams::default();
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    (authority.not_before, authority.not_after) = (date_time_ymd(2026, 1, 1), date_time_ymd(2027, 1, 1));
    let authority = authority.self_signed(&KeyPair::generate().unwrap()).unwrap().pem();
    let trust = "trust = [\"../certs/authority.pem\", \"../certs/own.pem\"]\n";
    let gateway = format!(
        "[tls]\ngenerate = true\n[engine]\n{trust}[callbacks]\n{trust}[legacy]\nurl = \"https://v1.example\"\n{trust}"
    );
    let shop = "currency = \"EUR\"\n[provider]\nkind = \"http\"\nurl = \"https://bank.example\"\nsecret = \"x\"\n\
                trust = [\"../../certs/own.pem\"]\n";
    let rules = rules(&gateway, &[("own.pem", &own), ("authority.pem", &authority)]).with("shops/s.toml", shop);
    assert_found(&rules, &[]);
    let serves = |_: &TlsRules| Ok(());
    let notes = inspect(&rules.path(), NOW, LoadOptions { check_secrets: true }, &serves).notes;
    for (note, place) in
        notes.iter().zip(["`engine.trust`: ", "`legacy.trust`: ", "`callbacks.trust`: ", "`provider.trust`: "])
    {
        assert!(
            note.contains(place) && note.contains("own.pem holds a server's own certificate, for v2.example"),
            "{note}"
        );
    }
    assert_eq!(notes.len(), 4, "{notes:?}");
}

#[test]
fn a_schema_may_begin_with_a_byte_order_mark() {
    let shop = "currency = \"EUR\"\n[payin]\nschema = \"s.json\"\n[provider]\nkind = \"sandbox\"\n";
    let schema =
        |text: &str| rules("[tls]\ngenerate = true\n", &[]).with("shops/s.toml", shop).with("shops/s.json", text);
    schema("\u{feff}{\"type\": \"object\", \"properties\": {}}").load();
    schema("\u{feff}{\"type\": \"objet\"}").one_problem("shops/s.json:1:2", "must be \"object\"");
    schema("\u{feff}{\n  \"type\" \"object\"}").one_problem("shops/s.json:2:10", "not valid JSON");
}
