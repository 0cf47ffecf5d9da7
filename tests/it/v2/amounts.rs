//! `amount`, by value and at every edge.

use crate::support::stored::Create;
use crate::v2::table::{Table, raw_member};
use crate::v2::{KINDS, support::request::ACME};

/// A spelling and what the status shows for it.
const TAKEN: &[(&str, &str)] = &[
    // keeps D005
    ("10", "10"),
    ("10.0", "10"),
    ("10.00", "10"),
    ("10.000", "10"),
    ("10.000000000000000000000000000000000000000000", "10"),
    ("1e1", "10"),
    ("1E1", "10"),
    ("1E+1", "10"),
    ("1e+1", "10"),
    ("1.0e1", "10"),
    ("1.000e01", "10"),
    ("100e-1", "10"),
    ("10000e-3", "10"),
    ("0.1e2", "10"),
    ("0.0001e5", "10"),
    ("10e0", "10"),
    ("10e-0", "10"),
    ("10E000000000000000000000000000000", "10"),
    // keeps P118, P119
    ("0.01", "0.01"),
    ("1e-2", "0.01"),
    ("0.010", "0.01"),
    ("100e-4", "0.01"),
    ("0.1", "0.1"),
    ("0.10", "0.1"),
    ("1", "1"),
    ("1.1", "1.1"),
    // no binary float on the way
    ("0.29", "0.29"),
    ("1.15", "1.15"),
    ("4.35", "4.35"),
    ("1.005e2", "100.5"),
    ("4503599627370.51", "4503599627370.51"),
    ("8999999999999.99", "8999999999999.99"),
    // keeps D006, D047
    ("9999999999999.99", "9999999999999.99"),
    ("9999999999999.990", "9999999999999.99"),
    ("999999999999999e-2", "9999999999999.99"),
    ("9999999999999", "9999999999999"),
    ("1e12", "1000000000000"),
    ("1000000000000.1", "1000000000000.1"),
];

/// JSON numbers that are no amount.
const NOT_AMOUNTS: &[&str] = &[
    // keeps P118, P223
    "0",
    "0.0",
    "0.00",
    "0e5",
    "0e99999999999999999999",
    "-0",
    "-0.0",
    "-1",
    "-0.01",
    "-1e-1",
    "-9999999999999.99",
    // keeps P119, P248
    "0.001",
    "1e-3",
    "0.009",
    "0.011",
    "10.001",
    "10.555",
    "10.0000000000000000000000000000000000000000000000000001",
    "1e-400",
    "1.0e-3",
    "10011e-3",
    // keeps D006, D007
    "10000000000000",
    "10000000000000.00",
    "9999999999999.991",
    "9999999999999.995",
    "99999999999999.99",
    "1e13",
    "1e400",
    "1e-999999999",
    "1e999999999",
    "1e999999999999999999999",
    "1e-999999999999999999999",
    "1e9223372036854775807",
    "1e9223372036854775808",
    "1e-9223372036854775808",
    "1e18446744073709551616",
    "1e4294967297",
    "0.1e4294967298",
];

/// JSON values of other types.
const NOT_NUMBERS: &[&str] = &[
    // keeps P117, P120, P260
    "\"10\"",
    "\"10.50\"",
    "\"\"",
    "\"ten thousand\"",
    "true",
    "false",
    "null",
    "[10]",
    "[]",
    "{}",
    "{\"value\":10}",
];

/// No JSON at all: the message cannot name a member.
const NOT_JSON: &[&str] = &[
    // keeps P212
    "1.",
    ".5",
    "01",
    "00",
    "+1",
    "-",
    "--1",
    "- 1",
    "0x10",
    "1_0",
    "1,5",
    "1 0",
    "NaN",
    "nan",
    "Infinity",
    "-Infinity",
    "inf",
    "1e",
    "1e+",
    "1.e1",
    "1e1.0",
    "1e1e1",
    "1f",
    "1n",
    "10€",
    "١٠",
    "１０",
    "True",
    "None",
    "undefined",
    "",
];

// keeps P023, P117, P118, P119, P154, D005, D006, D047
#[tokio::test]
async fn amounts_are_taken_by_value() {
    let mut table = Table::new();
    for kind in KINDS {
        for (spelling, shown) in TAKEN {
            let id = table.order();
            let body = raw_member(kind.body(&id), "amount", spelling);
            table.take(kind, &body, Some(shown)).await;
        }
    }
}

// keeps P118, P119, P154, P223, P248, D006, D007
#[tokio::test]
async fn numbers_that_are_no_amount_are_refused() {
    let mut table = Table::new();
    let long = [
        "9".repeat(60_000),
        format!("0.{}1", "0".repeat(60_000)),
        format!("1{}", "0".repeat(60_000)),
        format!("1e{}", "9".repeat(60_000)),
        format!("1e-{}", "9".repeat(60_000)),
        format!("0.{}", "3".repeat(60_000)),
    ];
    for kind in KINDS {
        for spelling in NOT_AMOUNTS.iter().copied().chain(long.iter().map(String::as_str)) {
            table.refuse_member(kind, "amount", spelling).await;
        }
    }
    // What is long and still an amount is one.
    let padded = [format!("10.{}", "0".repeat(60_000)), format!("1{}e-60000", "0".repeat(60_001))];
    for spelling in &padded {
        let id = table.order();
        let body = raw_member(Create::Deposit.body(&id), "amount", spelling);
        table.send(&Create::Deposit.request(&ACME, body)).await.expect(200);
    }
}

// keeps P116, P117, P120, P154, P212, P260
#[tokio::test]
async fn what_is_no_number_is_refused() {
    let mut table = Table::new();
    for kind in KINDS {
        for value in NOT_NUMBERS {
            table.refuse_member(kind, "amount", value).await;
        }
        for text in NOT_JSON {
            let id = table.order();
            let body = raw_member(kind.body(&id), "amount", text);
            table.refuse(kind, &id, body, 400).await;
        }
    }
}
