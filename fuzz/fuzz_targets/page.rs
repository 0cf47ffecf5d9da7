//! A template of customers' pages. What is taken is rendered with values as large as they get.
#![no_main]

use libfuzzer_sys::fuzz_target;
use paybridge::rules::{DetailValues, InstructionValues, PageState, PageValues, PaymentValues};
use paybridge_fuzz::Rules;

fuzz_target!(|source: &[u8]| {
    let rules = Rules::good();
    rules.put("pages/page.html", source);
    let Ok(loaded) = rules.load(None) else { return };
    let language = loaded.pages.language("en");
    // Another text than samples have may make it fail, and nothing worse.
    for text in [String::new(), "0".to_owned(), "\u{1}\"'<script>&é付😀".repeat(25)] {
        for state in PageState::ALL {
            if let Ok(html) = loaded.pages.render(language, &values(state, &text)) {
                assert!(html.len() < 16 << 20 && !html.contains("<script>&"), "{} bytes", html.len());
            }
        }
    }
});

fn values(state: PageState, text: &str) -> PageValues<'_> {
    let payment = PaymentValues {
        merchant: text,
        shop: text,
        order_id: text,
        amount: text.to_owned(),
        value: text.to_owned(),
        currency: text,
    };
    let details = (0..20).map(|_| DetailValues { label: text, value: text }).collect();
    PageValues {
        state,
        payment: Some(payment),
        instructions: Some(InstructionValues { text: Some(text), details }),
        return_url: Some(text),
        action: Some(text),
        here: Some(text),
        refresh: Some(text),
        request_id: text,
    }
}
