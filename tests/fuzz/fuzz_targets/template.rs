//! A reply template: the first byte says of which reply. What is taken is rendered with values as large as they get.
#![no_main]

use libfuzzer_sys::fuzz_target;
use paybridge_fuzz::{Rules, chosen};
use serde_json::{Value, json};

const REPLIES: [&str; 7] = ["payin", "payout", "status", "balance", "transactions", "error", "callback"];

fuzz_target!(|bytes: &[u8]| {
    let Some((reply, source)) = chosen(&REPLIES, bytes) else { return };
    let Ok(source) = std::str::from_utf8(source) else { return };
    let mut quoted = String::new();
    for c in source.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    let rules = Rules::good();
    rules.put("dialects/v1.toml", format!("[replies]\n{reply} = \"{quoted}\"\n").as_bytes());
    let Ok(loaded) = rules.load(None) else { return };
    // Another text than samples have may make it fail, and nothing worse.
    for text in [String::new(), "0".to_owned(), "\u{1}\"'<é付😀".repeat(25)] {
        let rendered = loaded.dialects["v1"].replies.render(reply, &values(reply, &text)).expect("it has the template");
        if let Ok(body) = rendered {
            assert!(body.len() <= 4 << 20, "{} bytes", body.len());
        }
    }
});

fn values(reply: &str, text: &str) -> Value {
    let row = || {
        json!({ "transaction_id": text, "external_id": text, "status": text, "amount": text, "currency": text,
            "shop_code": text, "account_number": text, "type": text, "created_at": text })
    };
    match reply {
        "payin" => json!({ "transaction_id": text, "external_id": text, "redirect_url": text }),
        "payout" => json!({ "transaction_id": text, "external_id": text }),
        "balance" => json!({ "balances": [{ "currency": text, "available": text, "held": text }] }),
        "transactions" => {
            let rows: Vec<Value> = (0..200).map(|_| row()).collect();
            json!({ "transactions": rows, "page": 1, "per_page": 200, "has_more": true })
        }
        "error" => json!({ "code": 400, "message": text }),
        _ => row(),
    }
}
