//! A schema, and after a NUL the fields that it is applied to.
#![no_main]

use libfuzzer_sys::fuzz_target;
use paybridge::rules::given;
use paybridge_fuzz::Rules;
use serde_json::{Map, Value};

fuzz_target!(|bytes: &[u8]| {
    let (schema, fields) = bytes.split_at(bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len()));
    let rules = Rules::good();
    rules.put("shops/s.json", schema);
    let Ok(loaded) = rules.load(None) else { return };
    let fields: Map<String, Value> = serde_json::from_slice(fields.get(1..).unwrap_or_default()).unwrap_or_default();
    let shop = loaded.shops.values().next().expect("the shop");
    let merchant = loaded.merchants.values().next().expect("the merchant");
    let schema = shop.payin.schema.as_ref().expect("its schema");
    if let Ok(added) = schema.check(&merchant.id, given(&fields)) {
        let mut fields = fields;
        fields.extend(added);
        assert!(
            schema.check(&merchant.id, given(&fields)).is_ok_and(|added| added.is_empty()),
            "defaults pass, and once is enough"
        );
    }
});
