//! A schema, and after a NUL the fields that it is applied to.
#![no_main]

use libfuzzer_sys::fuzz_target;
use paybridge::domain::{RequestFields, SchemaFields};
use paybridge::json::{Node, read};
use paybridge::rules::{FieldsSchema, Merchant};
use paybridge_fuzz::Rules;
use serde_json::{Map, Value};

/// The members that the schema's defaults add; `None` when it refuses the fields.
fn added(schema: &FieldsSchema, merchant: &Merchant, fields: &Map<String, Value>) -> Option<Map<String, Value>> {
    let text = Value::Object(fields.clone()).to_string();
    let Ok(Node::Object(object)) = read(text.as_bytes()).map(|value| value.node) else { return None };
    let fields = RequestFields::new(object, None);
    let kept = SchemaFields::Names(schema.kept().clone());
    let defaults = schema.check_fields(&merchant.id, &fields.reduced(&kept)).ok()?;
    Some(serde_json::from_str(&defaults).expect("defaults are an object"))
}

fuzz_target!(|bytes: &[u8]| {
    let (schema, fields) = bytes.split_at(bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len()));
    let rules = Rules::good();
    rules.put("shops/s.json", schema);
    let Ok(loaded) = rules.load(None) else { return };
    let fields: Map<String, Value> = serde_json::from_slice(fields.get(1..).unwrap_or_default()).unwrap_or_default();
    let shop = loaded.shops.values().next().expect("the shop");
    let merchant = loaded.merchants.values().next().expect("the merchant");
    let schema = shop.payin.schema.as_ref().expect("its schema");
    if let Some(defaults) = added(schema, merchant, &fields) {
        let mut fields = fields;
        fields.extend(defaults);
        let again = added(schema, merchant, &fields);
        assert!(again.is_some_and(|added| added.is_empty()), "defaults pass, and once is enough");
    }
});
