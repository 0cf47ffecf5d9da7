//! The schemas of `fields`: the members that they keep, add and refuse, and the wording of refusals.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::*;
use crate::rules::schema::given;
use crate::rules::{FieldProblem, FieldsSchema};

fn with_schema(schema: &str) -> Rules {
    let shop = format!("{SHOP}[payin]\nschema = \"s.json\"");
    Rules::small().with("shops/s.toml", shop).with("shops/s.json", schema)
}

#[track_caller]
fn checked(rules: &Rules, merchant: &str, members: &Value) -> Result<Map<String, Value>, FieldProblem> {
    let rules = rules.load();
    let schema: &FieldsSchema = rules.shops["s"].payin.schema.as_ref().unwrap();
    let added = schema.check(&merchant_id(merchant), given(members.as_object().unwrap()))?;
    Ok(serde_json::from_str(&added).unwrap())
}

#[track_caller]
fn refused(schema: &Value, members: &Value, path: &str, reason: &str) {
    let problem = checked(&with_schema(&schema.to_string()), "m", members).unwrap_err();
    assert_eq!((problem.path.as_str(), problem.reason.as_str()), (path, reason));
}

#[test]
fn refusals_have_the_gateways_wording() {
    let property = |property: Value| json!({ "type": "object", "properties": { "a": property } });
    let required = json!({ "type": "object", "required": ["a"], "properties": { "a": {} } });
    refused(&required, &json!({}), "a", "is required");
    for (schema, value, path, reason) in [
        (json!({ "type": "string" }), json!(4111), "a", "must be a string"),
        (json!({ "type": ["string", "integer"] }), json!(true), "a", "must be an integer or a string"),
        (json!({ "enum": ["x", "y"] }), json!("z"), "a", "must be one of the values agreed for this shop"),
        (json!({ "const": "x" }), json!("z"), "a", "must be one of the values agreed for this shop"),
        (json!({ "format": "email" }), json!("z"), "a", "must be an email address"),
        (json!({ "format": "date" }), json!("2026-02-30"), "a", "must be a date (YYYY-MM-DD)"),
        (json!({ "format": "ipv4" }), json!("1.2.3"), "a", "must be an IPv4 address"),
        (json!({ "pattern": "^x$" }), json!("z"), "a", "must have the format agreed for this shop"),
        (json!({ "minLength": 2 }), json!("z"), "a", "must be at least 2 characters"),
        (json!({ "maxLength": 2 }), json!("zzz"), "a", "must be at most 2 characters"),
        (json!({ "uniqueItems": true }), json!([[1, []], 2, [1.0, []]]), "a", "must not hold an element twice"),
        (json!({ "minimum": 2 }), json!(1), "a", "must be at least 2"),
        (json!({ "anyOf": [{ "type": "null" }] }), json!(1), "a", "must be as agreed for this shop"),
        (json!(false), json!(1), "a", "is not accepted by this shop"),
        (json!({ "properties": { "city": { "type": "string" } } }), json!({ "city": 1 }), "a.city", "must be a string"),
        (json!({ "required": ["city"] }), json!({}), "a.city", "is required"),
        (json!({ "items": { "type": "string" } }), json!(["x", 1]), "a.1", "must be a string"),
        (
            json!({ "additionalProperties": false }),
            json!({ "4111111111111111": 1 }),
            "a",
            "must have no other members than those agreed for this shop",
        ),
    ] {
        refused(&property(schema), &json!({ "a": value }), path, reason);
    }
}

#[test]
fn defaults_are_added_and_checked_with_the_rest() {
    let schema = r#"{ "required": ["a"], "properties": {
        "a": { "type": "string", "default": "x" },
        "b": { "properties": { "deep": { "default": 1 } } },
        "c": { "type": "integer" } } }"#;
    let added = |members: &Value| Value::Object(checked(&with_schema(schema), "m", members).unwrap());
    assert_eq!(added(&json!({})), json!({ "a": "x" }));
    assert_eq!(added(&json!({ "a": "y", "b": {} })), json!({}));
    let problem = checked(&with_schema(schema), "m", &json!({ "a": null })).unwrap_err();
    assert_eq!(problem.reason, "must be a string", "null is not the same as absent");
    let wrong = r#"{ "properties": { "a": { "type": "string", "default": 5 } } }"#;
    with_schema(wrong).one_problem("shops/s.json:1:44", "the default must be a string");
}

#[test]
fn merchant_user_ip_is_always_accepted_and_never_filled_in() {
    let ip = json!({ "merchant_user_ip": "203.0.113.7" });
    for silent in [r#"{ "additionalProperties": false }"#, r#"{ "maxProperties": 0 }"#, "{}"] {
        assert!(checked(&with_schema(silent), "m", &ip).unwrap().is_empty(), "{silent}");
        assert!(checked(&with_schema(silent), "m", &json!({})).is_ok(), "{silent}");
    }
    let required = r#"{ "required": ["merchant_user_ip"] }"#;
    assert!(checked(&with_schema(required), "m", &ip).is_ok());
    let problem = checked(&with_schema(required), "m", &json!({})).unwrap_err();
    assert_eq!((problem.path.as_str(), problem.reason.as_str()), ("merchant_user_ip", "is required"));
    let default = r#"{ "required": ["merchant_user_ip"],
        "properties": { "merchant_user_ip": { "type": "string", "default": "127.0.0.1" } } }"#;
    assert!(checked(&with_schema(default), "m", &json!({})).is_err(), "a schema default is ignored");
    for silent in [
        r#"{ "required": ["merchant_user_ip"], "additionalProperties": false }"#,
        r#"{ "required": ["merchant_user_ip"], "unevaluatedProperties": false }"#,
        r#"{ "required": ["merchant_user_ip"], "maxProperties": 0 }"#,
        r#"{ "required": ["merchant_user_ip"], "propertyNames": { "maxLength": 1 } }"#,
        r#"{ "properties": { "a": {} }, "additionalProperties": false,
            "if": { "required": ["a"] }, "then": { "required": ["merchant_user_ip"] } }"#,
    ] {
        assert!(checked(&with_schema(silent), "m", &ip).is_ok(), "{silent}");
    }
    let sometimes = r#"{ "properties": { "a": {} }, "if": { "required": ["a"] },
        "then": { "required": ["merchant_user_ip"] } }"#;
    assert!(checked(&with_schema(sometimes), "m", &json!({})).is_ok());
    let problem = checked(&with_schema(sometimes), "m", &json!({ "a": 1 })).unwrap_err();
    assert_eq!((problem.path.as_str(), problem.reason.as_str()), ("merchant_user_ip", "is required"));
    for (rule, fits, misfits) in [
        (r#"{ "type": "string" }"#, "::1", None),
        (r#"{ "pattern": "^203\\." }"#, "203.0.113.7", Some("198.51.100.7")),
        (r#"{ "enum": ["203.0.113.7", "::1"] }"#, "::1", Some("::2")),
        (r#"{ "format": "ipv6", "default": "::1" }"#, "::2", Some("203.0.113.7")),
        ("false", "", Some("::1")),
    ] {
        let schema = format!(r#"{{ "properties": {{ "merchant_user_ip": {rule} }} }}"#);
        let rules = with_schema(&schema);
        let given = |ip: &str| checked(&rules, "m", &json!({ "merchant_user_ip": ip }));
        assert!(fits.is_empty() || given(fits).is_ok(), "{rule}");
        if let Some(misfit) = misfits {
            assert_eq!(given(misfit).unwrap_err().path, "merchant_user_ip", "{rule}");
        }
        assert!(checked(&rules, "m", &json!({})).unwrap().is_empty(), "{rule}");
    }
    let narrow = r#"{ "properties": { "merchant_user_ip": { "format": "ipv4" } } }"#;
    assert!(checked(&with_schema(narrow), "m", &json!({ "merchant_user_ip": "::1" })).is_err());
    assert!(checked(&with_schema(narrow), "m", &json!({})).unwrap().is_empty());
}

#[test]
fn own_lists_replace_common_ones() {
    let schema = r##"{ "properties": {
        "bank": { "x-allowed-list": "banks" },
        "deep": { "properties": { "bank": { "$ref": "#/properties/bank" } } } } }"##;
    let rules = with_schema(schema).with("lists/banks.txt", "# c\nalpha\n42\n").with("lists/m/banks.txt", "beta");
    let fits = |merchant: &str, members: Value| checked(&rules, merchant, &members).is_ok();
    assert!(fits("other", json!({ "bank": "alpha" })));
    assert!(fits("other", json!({ "bank": 42 })));
    assert!(!fits("other", json!({ "bank": "beta" })));
    assert!(!fits("other", json!({ "bank": null })));
    assert!(!fits("other", json!({ "bank": "# c" })));
    assert!(fits("m", json!({ "bank": "beta" })));
    assert!(!fits("m", json!({ "bank": "alpha" })));
    assert!(!fits("m", json!({ "deep": { "bank": "alpha" } })));
    let problem = checked(&rules, "m", &json!({ "deep": { "bank": "alpha" } })).unwrap_err();
    assert_eq!(problem.path, "deep.bank");
    assert_eq!(problem.reason, "must be one of the values agreed for this shop");
    with_schema(schema).with("lists/bank.txt", "alpha").one_problem(
        "shops/s.json:2:19",
        "there is no list lists/banks.txt (the payin schema of a shop) (did you mean `bank`?)",
    );
    with_schema("{}").with("lists/banks.txt", "# nothing").one_problem("lists/banks.txt:1:1", "has no values");
}

#[test]
fn schemas_that_cannot_be_used_are_refused_with_their_place() {
    for (schema, place, message) in [
        ("{ \"a\": 1,\n  ]", "2:3", "not valid JSON"),
        ("", "1:1", "not valid JSON: EOF"),
        ("true", "1:1", "must be a JSON object"),
        ("{ \"a\": 1, \"a\": 2 }", "1:11", "duplicate key `a`"),
        ("{ \"type\": \"array\" }", "1:3", "must be \"object\""),
        ("{ \"type\": 5 }", "1:3", "must be \"object\""),
        ("{ \"$schema\": \"http://json-schema.org/draft-07/schema#\" }", "1:3", "draft/2020-12"),
        ("{ \"properties\": { \"a\": { \"type\": \"strng\" } } }", "1:26", "not a usable JSON Schema"),
        (
            "{ \"properties\": { \"a\": { \"format\": \"emial\" } } }",
            "1:26",
            "`emial` is no format of JSON Schema (the payin schema of a shop) (did you mean `email`?)",
        ),
        ("{ \"properties\": { \"a\": { \"format\": 5 } } }", "1:26", "must be the name of a format"),
        ("{ \"properties\": { \"a\": { \"pattern\": \"(?=x)\" } } }", "1:26", "not a usable JSON Schema"),
        ("{ \"properties\": { \"a\": { \"$ref\": \"https://x.example/s\" } } }", "1:26", "must point into this file"),
        ("{ \"properties\": { \"a\": { \"$ref\": \"file:///etc/passwd\" } } }", "1:26", "must point into this file"),
        ("{ \"properties\": { \"a\": { \"$ref\": \"#/$defs/x\" } } }", "1:26", "refers to nothing"),
        ("{ \"properties\": { \"a\": { \"$ref\": \"#/properties/a\" } } }", "1:26", "leads back to itself"),
        ("{ \"properties\": { \"a\": { \"$ref\": \"#/properties\" } } }", "1:26", "refers to no schema"),
        ("{ \"$ref\": \"#\" }", "1:3", "must point into this file"),
        ("{ \"$id\": \"https://x\" }", "1:3", "`$id` is not supported here"),
        ("{ \"$dynamicRef\": \"#x\" }", "1:3", "`$dynamicRef` is not supported here"),
        ("{ \"properties\": { \"a\": {} }, \"required\": [\"aa\"] }", "1:43", "`properties` does not name it"),
        ("{ \"properties\": { \"method\": {} } }", "1:19", "`method` is reserved by v2"),
        ("{ \"properties\": { \"success_url\": {} } }", "1:19", "`success_url` is reserved by v2"),
        ("{ \"properties\": { \"a\": { \"x-allowed-list\": 5 } } }", "1:26", "must be the name of a list"),
    ] {
        with_schema(schema).one_problem(&format!("shops/s.json:{place}"), message);
    }
    let payout = format!("{SHOP}[payout]\nschema = \"s.json\"");
    let schema = "{ \"properties\": { \"account_number\": {} }, \"required\": [\"account_number\"] }";
    let problems = Rules::small().with("shops/s.toml", payout).with("shops/s.json", schema).problems();
    assert_eq!(problems.len(), 2, "{problems:#?}");
    assert!(
        with_schema("{ \"properties\": { \"account_number\": {} } }").try_load().is_ok(),
        "not reserved for deposits"
    );
}

#[test]
fn a_pattern_that_cannot_be_used_has_the_parsers_message() {
    let unsupported = "is not a regular expression that is matched in linear time (no look-around, no references)";
    for (pattern, message) in [
        ("[a", "is no usable regular expression: unclosed character class"),
        ("(a", "is no usable regular expression: unclosed group"),
        ("a{2", "is no usable regular expression: unclosed counted repetition"),
        ("*a", "is no usable regular expression: repetition operator missing expression"),
        ("[z-a]", "is no usable regular expression: invalid character class range"),
        ("(?:a{999}){999}{9}", "is no usable regular expression: it takes more than 10240 KiB of memory"),
        ("(?=x)", unsupported),
        ("(?<!x)", unsupported),
        ("(x)\\1", unsupported),
    ] {
        let message = format!("not a usable JSON Schema: {message}");
        let schema = json!({ "properties": { "a": { "pattern": pattern } } });
        with_schema(&schema.to_string()).one_problem("shops/s.json:1:21", &message);
        let schema = json!({ "properties": { "a": { "patternProperties": { pattern: {} } } } });
        with_schema(&schema.to_string()).one_problem("shops/s.json:1:42", &message);
    }
}

#[test]
fn references_that_end_are_followed() {
    let schema = r##"{ "properties": { "a": { "$ref": "#/$defs/word" }, "b": { "items": { "$ref": "#/$defs/word" } } },
        "$defs": { "word": { "$ref": "#/$defs/text", "minLength": 2 }, "text": { "type": "string" } } }"##;
    assert!(checked(&with_schema(schema), "m", &json!({ "a": "xx", "b": ["xx"] })).is_ok());
    assert!(checked(&with_schema(schema), "m", &json!({ "a": "x" })).is_err());
}

#[test]
fn deep_schemas_do_not_overflow() {
    let deep = format!("{}{{}}{}", "{\"allOf\":[".repeat(60), "]}".repeat(60));
    let schema = format!("{{ \"properties\": {{ \"a\": {deep} }} }}");
    assert!(checked(&with_schema(&schema), "m", &json!({ "a": 1 })).is_ok());
    let deeper = "{\"allOf\":[".repeat(100_000);
    with_schema(&deeper).one_problem("shops/s.json:1:640", "not valid JSON: recursion limit exceeded");
    let nested = (0..100).fold(json!({}), |inner, _| json!({ "not": inner }));
    let mut chain: Map<String, Value> =
        (0..20_000).map(|n| (format!("d{n}"), json!({ "$ref": format!("#/$defs/d{}", n + 1) }))).collect();
    chain.insert("d20000".into(), json!({}));
    for schema in [nested, json!({ "$ref": "#/$defs/d0", "$defs": chain })] {
        let problems = with_schema(&schema.to_string()).problems();
        assert!(problems.len() == 1 && problems[0].contains("nests deeper than 64 schemas"), "{problems:?}");
    }
}

#[test]
fn the_number_of_a_schemas_reported_problems_is_limited() {
    let broken: Map<String, Value> = (0..200).map(|n| (format!("n{n}"), json!({ "requierd": [] }))).collect();
    assert_eq!(with_schema(&json!({ "properties": broken }).to_string()).problems().len(), 50);
}

#[test]
fn numbers_are_compared_by_value() {
    let numbers = |schema: Value, number: &str| {
        let members: Value = serde_json::from_str(&format!("{{\"a\":{number}}}")).unwrap();
        checked(&with_schema(&json!({ "properties": { "a": schema } }).to_string()), "m", &members).is_ok()
    };
    for (schema, number, fits) in [
        (json!({ "const": 1 }), "1.0", true),
        (json!({ "const": 0 }), "-0", true),
        (json!({ "enum": [10] }), "1e1", true),
        (json!({ "const": 9_007_199_254_740_993_u64 }), "9007199254740993", true),
        (json!({ "const": 9_007_199_254_740_993_u64 }), "9007199254740992", false),
        (json!({ "maximum": 18_446_744_073_709_551_615_u64 }), "18446744073709551615", true),
        (json!({ "maximum": 18_446_744_073_709_551_614_u64 }), "18446744073709551615", false),
        (json!({ "maximum": 1e300 }), "123456789012345678901234567890", true),
        (json!({ "maximum": 5 }), "123456789012345678901234567890", false),
        (json!({ "minimum": 0 }), "-1e308", false),
        (json!({ "type": "integer" }), "1e3", true),
        (json!({ "type": "integer" }), "1.5", false),
        (json!({ "multipleOf": 0.01 }), "0.29", true),
        (json!({ "multipleOf": 0.01 }), "0.295", false),
        (json!({ "multipleOf": 1e-300 }), "1e308", true),
    ] {
        assert_eq!(numbers(schema.clone(), number), fits, "{schema} {number}");
    }
}

#[test]
fn every_format_of_the_draft_is_asserted() {
    for (format, good, bad) in [
        ("date", "2024-02-29", "2023-02-29"),
        ("date-time", "2026-01-02T03:04:05.6+02:00", "2026-01-02 03:04:05"),
        ("time", "23:59:59Z", "24:00:00Z"),
        ("duration", "P1DT2H", "1 day"),
        ("email", "ann@example.com", "ann@"),
        ("idn-email", "änn@bücher.example", "änn"),
        ("hostname", "a-b.example", "-a.example"),
        ("idn-hostname", "bücher.example", "\u{302e}x"),
        ("ipv4", "203.0.113.7", "203.0.113.07"),
        ("ipv6", "2001:db8::1", "2001:db8::1::"),
        ("uri", "https://a.example/x?y#z", "/x"),
        ("uri-reference", "../x", "\\x"),
        ("iri", "https://bücher.example/ä", "/ä"),
        ("iri-reference", "../ä", "\\ä"),
        ("uri-template", "https://a.example/{id}", "https://a.example/{id"),
        ("json-pointer", "/a/~0b", "a"),
        ("relative-json-pointer", "1/a", "/a"),
        ("regex", "^[a-z]+$", "^[a-z+$"),
        ("uuid", "2eb8aa08-aa98-11ea-b4aa-73b441d16380", "2eb8aa08aa9811eab4aa73b441d16380"),
    ] {
        let rules = with_schema(&json!({ "properties": { "a": { "format": format } } }).to_string());
        assert!(checked(&rules, "m", &json!({ "a": good })).is_ok(), "{format} {good}");
        let problem = checked(&rules, "m", &json!({ "a": bad })).expect_err(format);
        assert_eq!(problem.path, "a", "{format}");
        assert!(problem.reason.starts_with("must be "), "{format}: {}", problem.reason);
        assert!(checked(&rules, "m", &json!({ "a": 5 })).is_ok(), "{format} applies only to strings");
    }
}

#[test]
fn names_that_apply_to_the_whole_object_are_kept() {
    let schema = r##"{
        "properties": { "country": { "type": "string" } }, "$ref": "#/$defs/base",
        "allOf": [{ "properties": { "b": { "type": "integer" } } }],
        "if": { "properties": { "country": { "const": "KE" } }, "required": ["country"] },
        "then": { "properties": { "mobile": {} }, "required": ["mobile"] },
        "else": { "properties": { "iban": {} } },
        "dependentSchemas": { "b": { "properties": { "d": {} } } },
        "$defs": { "base": { "properties": { "a": { "properties": { "deep": {} } } }, "required": ["a"] },
                   "unused": { "properties": { "never": {} } } } }"##;
    let rules = with_schema(schema).load();
    let kept = rules.shops["s"].payin.schema.as_ref().unwrap().kept().iter().map(|name| &**name).collect::<Vec<_>>();
    assert_eq!(kept, ["a", "b", "country", "d", "iban", "merchant_user_ip", "mobile"]);
    let rules = with_schema(schema);
    assert!(checked(&rules, "m", &json!({ "a": 1, "country": "KE", "mobile": 1 })).is_ok());
    assert_eq!(checked(&rules, "m", &json!({ "a": 1, "country": "KE" })).unwrap_err().path, "mobile");
    assert_eq!(checked(&rules, "m", &json!({ "country": "DE" })).unwrap_err().path, "a");
    assert_eq!(checked(&rules, "m", &json!({ "a": 1, "b": "x" })).unwrap_err().path, "b");
    with_schema(r#"{ "then": { "properties": { "method": {} } } }"#)
        .one_problem("shops/s.json:1:29", "`method` is reserved by v2");
}

#[test]
fn defaults_of_referenced_schemas_apply() {
    let schema = r##"{ "properties": { "a": { "$ref": "#/$defs/a" }, "b": { "$ref": "#/$defs/a", "default": "own" } },
        "$defs": { "a": { "$ref": "#/$defs/text" }, "text": { "type": "string", "default": "x" } } }"##;
    let added = Value::Object(checked(&with_schema(schema), "m", &json!({})).unwrap());
    assert_eq!(added, json!({ "a": "x", "b": "own" }));
    for (default, wrong) in [("5", true), ("{}", true), ("null", false), ("\"\"", false), ("\"Ann\"", false)] {
        let schema = format!(r#"{{ "properties": {{ "first_name": {{ "default": {default} }} }} }}"#);
        if wrong {
            with_schema(&schema).one_problem("shops/s.json:1:35", "the default of `first_name` must be a string");
        } else {
            with_schema(&schema).load();
        }
    }
}

#[test]
fn lists_apply_anywhere_in_a_schema() {
    let schema = r##"{ "properties": {
        "all": { "items": { "$ref": "#/$defs/bank" } }, "first": { "prefixItems": [{ "$ref": "#/$defs/bank" }] },
        "one": { "anyOf": [{ "x-allowed-list": "banks" }, { "type": "integer" }] },
        "not": { "not": { "x-allowed-list": "banks" } } },
        "$defs": { "bank": { "type": "string", "x-allowed-list": "banks" } } }"##;
    let rules = with_schema(schema).with("lists/banks.txt", "alpha\n").with("lists/m/banks.txt", "beta\n");
    let fits = |merchant: &str, members: Value| checked(&rules, merchant, &members).is_ok();
    for (merchant, on, off) in [("other", "alpha", "beta"), ("m", "beta", "alpha")] {
        assert!(fits(merchant, json!({ "all": [on, on], "first": [on, 1], "one": on, "not": off })));
        assert!(fits(merchant, json!({ "all": [], "one": 5 })));
        for refused in
            [json!({ "all": [on, off] }), json!({ "first": [off] }), json!({ "one": off }), json!({ "not": on })]
        {
            assert!(!fits(merchant, refused.clone()), "{merchant} {refused}");
        }
    }
}

#[test]
fn shops_share_a_schema_of_the_same_text() {
    let schema = "{\"properties\": {\"note\": {\"type\": \"string\"}}}";
    let shop = |name: &str| format!("{SHOP}[payin]\nschema = \"{name}\"\n");
    let rules = Rules::small().with("shops/one.json", schema).with("shops/copy.json", schema);
    for (code, name) in [("a", "one.json"), ("b", "./one.json"), ("c", "copy.json")] {
        rules.put(&format!("shops/{code}.toml"), shop(name));
    }
    let set = rules.load();
    let schema = |code: &str| set.shops[code].payin.schema.as_ref().unwrap();
    assert!(Arc::ptr_eq(schema("a"), schema("b")) && Arc::ptr_eq(schema("a"), schema("c")));
}
