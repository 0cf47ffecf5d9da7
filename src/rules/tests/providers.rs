//! `[provider]` of a shop.

use std::time::Duration;

use super::*;
use crate::rules::{HttpProvider, ProviderRules, RuleSet};

const HTTP: &str = "currency = \"EUR\"\n[provider]\nkind = \"http\"\n";

fn with_provider(keys: &str) -> Rules {
    Rules::bare().with("shops/s.toml", format!("{HTTP}{keys}"))
}

#[track_caller]
fn http(rules: &RuleSet) -> &HttpProvider {
    match &rules.shops["s"].provider {
        ProviderRules::Http(provider) => provider,
        ProviderRules::Sandbox { .. } => panic!("an HTTP provider expected"),
    }
}

/// Returns a certificate as PEM.
fn certificate(name: &str) -> String {
    rcgen::generate_simple_self_signed([name.to_owned()]).unwrap().cert.pem()
}

#[test]
fn all_keys_of_an_http_provider() {
    let rules = with_provider(
        "url = \"http://127.0.0.1:9000/\"\nsecret = [\"new\", \"file:provider.key\"]\ntrust = [\"../ca.pem\", \"b.pem\"]\n\
         timeout = \"100ms\"\nfirst_retry = \"2s\"\nmax_retry = \"2s\"\ngive_up_after = \"2h\"\n",
    )
    .with("shops/provider.key", "old\n")
    .with("ca.pem", certificate("a.example"))
    .with("shops/b.pem", certificate("b.example") + &certificate("c.example"));
    let (loader, first) = rules.loader();
    let provider = http(&first);
    let secrets: Vec<&[u8]> = provider.secrets.verifying().map(crate::domain::Secret::expose).collect();
    assert_eq!(secrets, [b"new", b"old"]);
    assert_eq!(provider.trust.len(), 3);
    let external_files = loader.external_files();
    for named in
        [rules.path().join("ca.pem"), rules.path().join("shops/b.pem"), rules.path().join("shops/provider.key")]
    {
        assert!(external_files.contains(&named), "{external_files:?}");
    }
    assert_eq!(provider.timeout, Duration::from_millis(100));
    assert_eq!((provider.first_retry, provider.max_retry), (Duration::from_secs(2), Duration::from_secs(2)));
    assert_eq!(provider.give_up_after, Duration::from_hours(2));
}

#[test]
fn urls_are_https_or_loopback() {
    for good in [
        "https://a.example",
        "https://a.example:8443/x?y=z",
        "http://localhost:1/",
        "http://[::1]/",
        "http://127.8.8.8/",
    ] {
        with_provider(&format!("url = \"{good}\"\nsecret = \"s\"\n")).load();
    }
    let long = format!("https://a.example/{}", "x".repeat(2031));
    for (bad, message) in [
        ("", "must not be empty"),
        ("/pay", "must be an absolute URL"),
        ("a.example/pay", "must be an absolute URL"),
        ("ftp://a.example/", "must be an absolute URL"),
        ("http://a.example/", "must be an https:// URL; http:// is only for loopback addresses"),
        ("http://10.0.0.1/", "only for loopback addresses"),
        ("http://localhost.a.example/", "only for loopback addresses"),
        ("https://a.example/#x", "must not have a fragment"),
        ("https://a.example/#", "must not have a fragment"),
        ("https://bücher.example/", "outside RFC 3986"),
        ("https://a.example/ x", "outside RFC 3986"),
        (&long, "at most 2048 characters"),
    ] {
        let rules = with_provider(&format!("url = \"{bad}\"\nsecret = \"s\"\n"));
        rules.one_problem("shops/s.toml:4:7", message);
    }
    let rules = with_provider("url = \"https://user:pa55word@a.example/\"\nsecret = \"s3cret\"\n");
    let shown = rules.refused().rendered();
    assert!(shown.contains("`provider.url` must not contain credentials"), "{shown}");
    assert!(!shown.contains("pa55word"), "{shown}");
}

#[test]
fn problems_have_places() {
    let url = "url = \"https://a.example\"\n";
    let secret = "secret = \"s\"\n";
    for (keys, place, message) in [
        (secret.to_owned(), "2:1", "`provider.url` is required for an HTTP provider"),
        (url.to_owned(), "2:1", "`provider.secret` is required for an HTTP provider"),
        (format!("{url}secret = \"\"\n"), "5:10", "must not be empty"),
        (format!("{url}secret = \"env:PAYBRIDGE_NO_SUCH_NAME\"\n"), "5:10", "is not set"),
        (format!("{url}{secret}timeout = \"99ms\"\n"), "6:11", "`provider.timeout` must be from \"100ms\" to \"1m\""),
        (format!("{url}{secret}timeout = \"61s\"\n"), "6:11", "`provider.timeout` must be from \"100ms\" to \"1m\""),
        (format!("{url}{secret}timeout = 10\n"), "6:11", "must be a span of time"),
        (format!("{url}{secret}first_retry = \"0s\"\n"), "6:15", "must be from \"1ms\" to"),
        (format!("{url}{secret}first_retry = \"6m\"\n"), "6:15", "must not be shorter than `provider.first_retry`"),
        (format!("{url}{secret}max_retry = \"500ms\"\n"), "6:13", "must not be shorter than `provider.first_retry`"),
        (format!("{url}{secret}give_up_after = \"0d\"\n"), "6:17", "must be from \"1ms\" to"),
        (format!("{url}{secret}delay = \"1s\"\n"), "6:9", "`provider.delay` does not apply to an HTTP provider"),
        (format!("{url}{secret}retry = \"1s\"\n"), "6:1", "unknown key `retry` in `provider`"),
        (format!("{url}{secret}trust = \"ca.pem\"\n"), "6:9", "`provider.trust` must be a list, not a string"),
        (format!("{url}{secret}trust = [\"no.pem\"]\n"), "6:10", "no.pem cannot be read: No such file"),
    ] {
        with_provider(&keys).one_problem(&format!("shops/s.toml:{place}"), message);
    }
    for (key, value) in [
        ("url", "\"https://a.example\""),
        ("secret", "\"s\""),
        ("trust", "[]"),
        ("timeout", "\"1s\""),
        ("first_retry", "\"1s\""),
        ("max_retry", "\"1s\""),
        ("give_up_after", "\"1s\""),
    ] {
        let shop = format!("{SHOP}{key} = {value}\n");
        let place = format!("shops/s.toml:4:{}", key.len() + 4);
        let message = format!("`provider.{key}` does not apply to the sandbox");
        Rules::bare().with("shops/s.toml", shop).one_problem(&place, &message);
    }
}

#[test]
fn trusted_files_must_hold_certificates() {
    let good = certificate("a.example");
    let garbled = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    for (content, message) in [
        (String::new(), "ca.pem holds no PEM certificate"),
        ("no PEM at all".to_owned(), "ca.pem holds no PEM certificate"),
        (garbled.to_owned(), "ca.pem holds a certificate that cannot be read"),
        (format!("{good}{garbled}"), "ca.pem holds a certificate that cannot be read"),
        (good.replace("-----END", "-----END OF"), "ca.pem holds "),
    ] {
        let rules = with_provider("url = \"https://a.example\"\nsecret = \"s\"\ntrust = [\"ca.pem\"]\n");
        rules.with("shops/ca.pem", content).one_problem("shops/s.toml:6:10", message);
    }
    let rules = with_provider("url = \"https://a.example\"\nsecret = \"s\"\ntrust = [\"no.pem\"]\n");
    let without = load(&rules.path(), UnixMillis(0), None, LoadOptions { check_secrets: false }).unwrap();
    assert!(http(&without).trust.is_empty(), "without secrets, missing certificates are not reported");
}

#[test]
fn trusted_certificates_are_part_of_the_rules() {
    let trust = "url = \"https://a.example\"\nsecret = \"s\"\ntrust = [\"../../ca.pem\"]\n";
    let rules = with_provider(trust).with("../ca.pem", certificate("a.example"));
    let (loader, first) = rules.loader();
    assert_eq!(rules.load().version, first.version);
    assert!(loader.external_files().contains(&rules.0.path().join("ca.pem")));
    rules.put("../ca.pem", certificate("a.example"));
    let second = rules.load();
    assert_ne!(second.version, first.version);
    assert_ne!(http(&second).trust, http(&first).trust);
}
