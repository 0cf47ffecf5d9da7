//! Checks that the reader refuses every value that the schema of its type refuses.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::domain::{Algorithm, BrowserUrl, Currency, Encoding, ShopCode, TimestampFormat};
use crate::rules::compile::{ModeWord, ProviderKindKey, RawStatuses};
use crate::rules::secret::SecretRef;
use crate::rules::{AccountRule, CallbackStyle, IdPolicy, UnknownFields};

/// Reports whether a value, written as TOML, is read as a `T`.
fn is_read<T: FromToml>(written: &str) -> bool {
    let text = format!("x = {written}");
    let mut diagnostics = Diagnostics::default();
    let file = diagnostics.file(Path::new("x.toml"), text.as_str());
    let table = DeTable::parse(&text).unwrap();
    let mut reader = RawReader { diagnostics: &mut diagnostics, file, path: Vec::new() };
    let value = table.get_ref().get("x").unwrap();
    T::from_toml(value, &mut reader).is_some() && !diagnostics.refuse()
}

struct Leaf {
    name: &'static str,
    is_read: fn(&str) -> bool,
    schema: jsonschema::Validator,
}

fn leaf<T: FromToml>() -> Leaf {
    let schema = jsonschema::validator_for(&T::schema()).unwrap();
    Leaf { name: std::any::type_name::<T>(), is_read: is_read::<T>, schema }
}

fn leaves() -> Vec<Leaf> {
    vec![
        leaf::<String>(),
        leaf::<bool>(),
        leaf::<u32>(),
        leaf::<i64>(),
        leaf::<Duration>(),
        leaf::<BoundedDuration>(),
        leaf::<Size>(),
        leaf::<SocketAddr>(),
        leaf::<Cidr>(),
        leaf::<Date>(),
        leaf::<RawSecrets>(),
        leaf::<List<SecretRef>>(),
        leaf::<RouteKey>(),
        leaf::<FieldName>(),
        leaf::<ShopCode>(),
        leaf::<Currency>(),
        leaf::<BrowserUrl>(),
        leaf::<AccountRule>(),
        leaf::<TimestampFormat>(),
        leaf::<Algorithm>(),
        leaf::<Encoding>(),
        leaf::<CallbackStyle>(),
        leaf::<IdPolicy>(),
        leaf::<UnknownFields>(),
        leaf::<ModeWord>(),
        leaf::<ProviderKindKey>(),
    ]
}

/// Returns a text as a TOML string.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// Converts a TOML value to JSON, as editors do.
fn to_json(written: &str) -> Value {
    let document: toml::Table = format!("x = {written}").parse().unwrap();
    crate::rules::tests::to_json(document["x"].clone())
}

#[track_caller]
fn assert_agree(leaf: &Leaf, written: &str) {
    let json = to_json(written);
    if let Err(refusal) = leaf.schema.validate(&json) {
        assert!(!(leaf.is_read)(written), "{} reads {written}, but its schema refuses it: {refusal}", leaf.name);
    }
}

#[test]
fn schemas_and_readers_agree_on_every_byte() {
    for leaf in leaves() {
        for byte in 0..=127_u8 {
            let byte = char::from(byte);
            for text in [format!("{byte}"), format!("a{byte}a"), format!("POST /a{byte}b"), format!("https://a/{byte}")]
            {
                assert_agree(&leaf, &quoted(&text));
            }
        }
        for length in [64, 65, 128, 129, 250, 255, 256, 2040, 2048, 2049] {
            let name = "a".repeat(length);
            for text in [name.clone(), format!("POST /{}", &name[1..]), format!("https://{}", &name[8..])] {
                assert_agree(&leaf, &quoted(&text));
            }
        }
    }
}

/// Guards against schemas that accept everything, which would agree with every reader.
#[test]
fn schemas_refuse_wrong_values() {
    let refused = [
        (leaf::<String>(), vec!["1", "true", "[]"]),
        (leaf::<bool>(), vec!["1", "\"true\""]),
        (leaf::<u32>(), vec!["0", "1000001", "-1", "1.5", "\"1\""]),
        (leaf::<i64>(), vec!["1.5", "\"1\""]),
        (leaf::<Duration>(), vec!["30", "\"30\"", "\"30 s\"", "\"1h30m\"", "\"-1s\"", "\"1.5s\"", "\"1w\"", "\"s\""]),
        (leaf::<BoundedDuration>(), vec!["\"0s\"", "\"00ms\"", "1"]),
        (leaf::<Size>(), vec!["0", "\"64KB\"", "\"64 KiB\"", "67108865", "true"]),
        (leaf::<SocketAddr>(), vec!["8443", "\"localhost:8443\"", "\"127.0.0.1\"", "\":8443\"", "\"::1:8443\""]),
        (leaf::<Cidr>(), vec!["\"localhost\"", "\"10.0.0.0/x\"", "\"10.0.0.0-10.0.0.9\"", "1"]),
        (leaf::<Date>(), vec!["\"30.06.2027\"", "\"2027-6-30\"", "20270630", "2027-06-30T00:00:00Z"]),
        (
            leaf::<RawSecrets>(),
            vec!["\"\"", "[]", "\"ENV:X\"", "\"file :x\"", "\"env:\"", "\"env:A=B\"", "1", "[\"\"]"],
        ),
        (
            leaf::<RouteKey>(),
            vec!["\"/a\"", "\"PUT /a\"", "\"GET a\"", "\"GET /a?b\"", "\"GET /a b\"", "\"GET /a//b\""],
        ),
        (leaf::<FieldName>(), vec!["\"\"", "\"X Signature\"", "\"X:\"", "\"ü\""]),
        (leaf::<ShopCode>(), vec!["\"\"", "\".a\"", "\"a/b\"", "\"a b\""]),
        (leaf::<Currency>(), vec!["\"EURO\"", "\"E1\"", "\"€\""]),
        (leaf::<BrowserUrl>(), vec!["\"example.com\"", "\"ftp://a\"", "\"https://a b\""]),
        (leaf::<AccountRule>(), vec!["\"iban\"", "{}", "{ pattern = 1 }", "{ patern = \"a\" }", "[]"]),
        (leaf::<Encoding>(), vec!["\"HEX\"", "\"\"", "1"]),
        (leaf::<RawStatuses>(), vec!["{ pending = \"a\" }", "1"]),
    ];
    for (leaf, values) in refused {
        for written in values {
            assert!(!leaf.schema.is_valid(&to_json(written)), "{}: {written}", leaf.name);
            assert!(!(leaf.is_read)(written), "{} reads {written}", leaf.name);
        }
    }
    assert_eq!(to_json("2027-06-30"), json!("2027-06-30"), "editors see dates as strings");
}
