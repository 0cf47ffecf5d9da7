//! Schemas and bodies of any shape are refused or applied, and never crash the process.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::domain::Direction;
use crate::json;
use crate::rules::schema::{AllowedLists, FieldValue, SchemaProblem, given};
use crate::rules::{FieldProblem, FieldsSchema};

fn compiled(schema: &Value) -> Result<FieldsSchema, Vec<SchemaProblem>> {
    FieldsSchema::compile(schema, Direction::Payin, &AllowedLists::default())
}

#[track_caller]
fn refused(schema: &Value, message: &str) {
    let problems = compiled(schema).expect_err("it cannot be used");
    assert!(problems.len() == 1 && problems[0].message.contains(message), "{problems:?}");
}

/// Returns a schema with one member `a`.
fn with_member(schema: Value) -> Value {
    let properties = Value::Object(Map::from_iter([("a".to_owned(), schema)]));
    Value::Object(Map::from_iter([("properties".to_owned(), properties)]))
}

/// Checks members in the form in which they are read from a request.
fn check_read(schema: &FieldsSchema, text: &str) -> Result<Map<String, Value>, FieldProblem> {
    let read = json::read(text.as_bytes()).unwrap();
    let json::Node::Object(json::Object(members)) = &read.node else { panic!("{text} is no object") };
    let members = members.iter().map(|member| (&*member.name, FieldValue::Read(&member.value)));
    schema.check(&merchant_id("m"), members).map(|added| serde_json::from_str(&added).unwrap())
}

fn check(schema: &Value, members: &Value) -> Result<Map<String, Value>, FieldProblem> {
    check_given(&compiled(schema).unwrap(), members.as_object().unwrap())
}

fn check_given(schema: &FieldsSchema, members: &Map<String, Value>) -> Result<Map<String, Value>, FieldProblem> {
    schema.check(&merchant_id("m"), given(members)).map(|added| serde_json::from_str(&added).unwrap())
}

#[test]
fn long_chains_of_references_are_refused() {
    let mut definitions: Map<String, Value> =
        (0..20_000).map(|n| (format!("d{n}"), json!({ "$ref": format!("#/$defs/d{}", n + 1) }))).collect();
    definitions.insert("d20000".into(), json!({}));
    refused(&json!({ "$ref": "#/$defs/d0", "$defs": definitions }), "nests deeper than 64 schemas");
    let nested = (0..100).fold(json!({}), |inner, _| json!({ "not": inner }));
    refused(&nested, "nests deeper than 64 schemas");
}

#[test]
fn the_number_of_reported_problems_is_limited() {
    let broken: Map<String, Value> = (0..200).map(|n| (format!("n{n}"), json!({ "requierd": [] }))).collect();
    assert_eq!(compiled(&json!({ "properties": broken })).unwrap_err().len(), 50);
}

#[test]
fn numbers_are_compared_by_value() {
    let numbers = |schema: Value, number: &str| {
        let members: Value = serde_json::from_str(&format!("{{\"a\":{number}}}")).unwrap();
        check(&with_member(schema), &members).is_ok()
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

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        Just(json!("alpha")),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::btree_map(member_name(), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn member_name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-e]", Just("merchant_user_ip".to_owned()), Just("items".to_owned()), "\\PC{0,5}"]
}

fn keyword() -> impl Strategy<Value = (String, Value)> {
    let name = proptest::sample::select(vec![
        "type",
        "properties",
        "required",
        "items",
        "anyOf",
        "allOf",
        "oneOf",
        "not",
        "if",
        "then",
        "else",
        "enum",
        "const",
        "pattern",
        "format",
        "default",
        "minimum",
        "maxLength",
        "uniqueItems",
        "additionalProperties",
        "contains",
        "unevaluatedProperties",
        "patternProperties",
        "propertyNames",
        "dependentSchemas",
        "$ref",
        "multipleOf",
        "x-allowed-list",
        "prefixItems",
    ]);
    let value = prop_oneof![
        any_json(),
        Just(json!("string")),
        Just(json!("#/properties/a")),
        Just(json!({ "a": { "type": "integer" }, "b": { "default": 1 } })),
        Just(json!([{ "required": ["a"] }, true])),
        Just(json!(["a"])),
        Just(json!(true)),
    ];
    (name.prop_map(str::to_owned), value)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn no_schema_and_no_fields_panic(
        keywords in proptest::collection::btree_map(keyword().prop_map(|(name, _)| name), keyword(), 0..6),
        fields in any_json(),
    ) {
        let mut schema: Map<String, Value> = keywords.into_values().collect();
        schema.remove("type");
        let fields = match fields {
            Value::Object(fields) => fields,
            other => Map::from_iter([("a".to_owned(), other)]),
        };
        if let Ok(schema) = compiled(&Value::Object(schema)) {
            let verdict = check_given(&schema, &fields);
            prop_assert_eq!(verdict, check_read(&schema, &Value::Object(fields).to_string()), "from JSON values, and from text");
        }
    }
}
