//! The body as a document: one JSON object in UTF-8, without duplicate keys, of bounded depth and length.

use serde_json::json;

use crate::support::bodies::with;
use crate::support::request::ACME;
use crate::support::stored::Create;
use crate::v2::KINDS;
use crate::v2::table::{Table, head};

/// A good body with a place to put things: the text `Lee` inside `fields`, which `fields` of its own surround.
fn good(kind: Create, id: &str) -> String {
    with(kind.body(id), "fields", Some(json!({ "last_name": "Lee" }))).to_string()
}

/// Bodies that are no document, each made from a good one.
const BROKEN: &[fn(&str) -> String] = &[
    // keeps P214
    |_| "null".into(),
    |_| "true".into(),
    |_| "false".into(),
    |_| "0".into(),
    |_| "\"text\"".into(),
    |good| serde_json::Value::from(good).to_string(),
    // keeps P213
    |_| "[]".into(),
    |_| "[{}]".into(),
    |good| format!("[{good}]"),
    |good| format!("[{good},{good}]"),
    // keeps P212
    // nothing, too much, too little
    |_| String::new(),
    |_| " ".into(),
    |_| "\r\n\t".into(),
    |_| "\0".into(),
    |good| format!("{good}{good}"),
    |good| format!("{good} {good}"),
    |good| format!("{good}\n{good}"),
    |good| format!("{good},"),
    |good| format!("{good};"),
    |good| format!("{good}]"),
    |good| format!("{good}}}"),
    |good| format!("{good}\0"),
    |good| format!("{good}x"),
    |good| format!(",{good}"),
    |good| good[1..].into(),
    |good| good[..good.len() - 1].into(),
    |good| format!("({good})"),
    |good| format!("data={good}"),
    |good| format!(")]}}',\n{good}"),
    |good| format!("{good}\u{1a}"),
    // commas and colons
    |good| good.replacen('}', ",}", 1),
    |good| good.replacen('{', "{,", 1),
    |good| good.replacen(',', ",,", 1),
    |good| good.replacen(',', " ", 1),
    |good| good.replacen(':', "=", 1),
    |good| good.replacen(':', "::", 1),
    |good| good.replacen(':', "", 1),
    |good| good.replace("\"Lee\"", "[1,]"),
    |good| good.replace("\"Lee\"", "[,1]"),
    |good| good.replace("\"Lee\"", "[1 2]"),
    |good| good.replace("\"Lee\"", "[1}"),
    |good| good.replace("\"Lee\"", "{\"a\"}"),
    |good| good.replace("\"Lee\"", "{\"a\":}"),
    |good| good.replace("\"Lee\"", "{1:2}"),
    |good| good.replace("\"Lee\"", "{null:2}"),
    // comments, other quotes, other words
    |good| format!("{good}// comment"),
    |good| format!("/* comment */{good}"),
    |good| format!("# comment\n{good}"),
    |good| good.replacen(',', ",/**/", 1),
    |good| good.replace("\"Lee\"", "'Lee'"),
    |good| good.replace("\"last_name\"", "last_name"),
    |good| good.replace("\"last_name\"", "'last_name'"),
    |good| good.replace("\"Lee\"", "Lee"),
    |good| good.replace("\"Lee\"", "“Lee”"),
    |good| good.replace("\"Lee\"", "`Lee`"),
    |good| good.replace("\"Lee\"", "NaN"),
    |good| good.replace("\"Lee\"", "Infinity"),
    |good| good.replace("\"Lee\"", "-Infinity"),
    |good| good.replace("\"Lee\"", "undefined"),
    |good| good.replace("\"Lee\"", "TRUE"),
    |good| good.replace("\"Lee\"", "True"),
    |good| good.replace("\"Lee\"", "nul"),
    |good| good.replace("\"Lee\"", "nulll"),
    |good| good.replace("\"Lee\"", "truefalse"),
    |good| good.replace("\"Lee\"", "01"),
    |good| good.replace("\"Lee\"", "1."),
    |good| good.replace("\"Lee\"", ".1"),
    |good| good.replace("\"Lee\"", "1e"),
    |good| good.replace("\"Lee\"", "+1"),
    |good| good.replace("\"Lee\"", "0xA"),
    // white space that is none in JSON
    |good| good.replacen(',', ",\u{b}", 1),
    |good| good.replacen(',', ",\u{c}", 1),
    |good| good.replacen(',', ",\u{85}", 1),
    |good| good.replacen(',', ",\u{a0}", 1),
    |good| good.replacen(',', ",\u{2028}", 1),
    // strings
    |good| good.replace("Lee", "a\tb"),
    |good| good.replace("Lee", "a\nb"),
    |good| good.replace("Lee", "a\0b"),
    |good| good.replace("Lee", "a\u{1f}b"),
    |good| good.replace("Lee", "\\x41"),
    |good| good.replace("Lee", "\\'"),
    |good| good.replace("Lee", "\\0"),
    |good| good.replace("Lee", "\\v"),
    |good| good.replace("Lee", "\\U0041"),
    |good| good.replace("Lee", "\\u12"),
    |good| good.replace("Lee", "\\u00g0"),
    |good| good.replace("Lee", "\\u+041"),
    |good| good.replace("Lee", "\\u{41}"),
    |good| good.replace("Lee", "\\u"),
    |good| good.replace("\"Lee\"", "\"Lee\\\""),
    |good| good.replace("\"Lee\"", "\"Lee"),
    |good| good.replace("\"Lee\"", "\"Lee\\"),
    |good| good.replace("\"Lee\"", "\"Lee\"\"Ann\""),
    // keeps D022
    |good| format!("\u{feff}{good}"),
    |good| format!(" \u{feff}{good}"),
    |good| format!("{good}\u{feff}"),
    |good| good.replacen(',', ",\u{feff}", 1),
    // keeps D024
    |good| good.replace("Lee", "\\ud800"),
    |good| good.replace("Lee", "\\uDBFF"),
    |good| good.replace("Lee", "\\udc00"),
    |good| good.replace("Lee", "\\uDFFF"),
    |good| good.replace("Lee", "\\udc00\\ud800"),
    |good| good.replace("Lee", "\\ud83d\\ud83d\\ude00"),
    |good| good.replace("Lee", "\\ud83dx"),
    |good| good.replace("Lee", "\\ud83d\\n"),
    |good| good.replace("Lee", "\\ud83d\\u0041"),
    |good| good.replace("last_name", "last\\ud800name"),
    |good| good.replacen('{', "{\"\\udead\":1,", 1),
    // keeps D023
    // at the top, inside fields, deep inside what the schema drops; plain and spelt with escapes
    |good| good.replacen('{', "{\"currency\":\"EUR\",", 1),
    |good| good.replacen('{', "{\"curr\\u0065ncy\":\"EUR\",", 1),
    |good| good.replacen('{', "{\"\\u0063\\u0075\\u0072\\u0072\\u0065\\u006E\\u0063\\u0079\":\"EUR\",", 1),
    |good| good.replacen('{', "{\"amount\":1,", 1),
    |good| good.replacen('{', "{\"fields\":{},", 1),
    |good| good.replacen('{', "{\"order_id\":\"another\",", 1),
    |good| good.replace("\"Lee\"", "\"Lee\",\"last_name\":\"Lee\""),
    |good| good.replace("\"Lee\"", "\"Lee\",\"l\\u0061st_name\":\"Lee\""),
    |good| good.replace("\"Lee\"", "\"Lee\",\"dropped\":1,\"dropped\":1"),
    |good| good.replace("\"Lee\"", "\"Lee\",\"d\":{\"a\":{\"b\":{\"c\":{\"k\":1,\"k\":1}}}}"),
    |good| good.replace("\"Lee\"", "\"Lee\",\"d\":[[[[{\"k\":1,\"\\u006b\":1}]]]]"),
    |good| good.replace("\"Lee\"", "\"Lee\",\"d\":{\"\":1,\"\":1}"),
    |good| good.replace("\"Lee\"", "\"Lee\",\"d\":{\"/\":1,\"\\/\":1}"),
    |good| good.replace("\"Lee\"", "\"Lee\",\"d\":{\"😀\":1,\"\\uD83D\\uDE00\":1}"),
    |good| good.replace("\"Lee\"", "\"Lee\",\"d\":{\"é\":1,\"\\u00E9\":1}"),
];

// keeps P103, P150, P212, P213, P214, D022, D023, D024
#[tokio::test]
async fn what_is_no_object_in_json_is_refused() {
    let mut table = Table::new();
    for kind in KINDS {
        for broken in BROKEN {
            let id = table.order();
            let good = good(kind, &id);
            let body = broken(&good);
            assert_ne!(body, good, "a row that changes nothing");
            let message = table.refuse(kind, &id, body.as_str(), 400).await.message();
            assert!(
                !message.contains("Lee") && !message.contains("another") && !message.contains(&id),
                "an echo: {message}"
            );
        }
    }
}

/// What is not UTF-8, to be put inside a string, a name, or anywhere else.
const NOT_UTF_8: &[&[u8]] = &[
    b"\xff",
    b"\xfe",
    b"\x80",
    b"\xbf",
    b"\xc3",
    b"\xc0\x80",
    b"\xc0\xaf",
    b"\xc1\x81",
    b"\xe0\x80\x80",
    b"\xe0\x9f\xbf",
    b"\xe2\x82",
    b"\xe2\x28\xa1",
    b"\xed\xa0\x80",
    b"\xed\xbf\xbf",
    b"\xed\xa0\xbd\xed\xb8\x80",
    b"\xf0\x80\x80\x80",
    b"\xf0\x9f\x98",
    b"\xf4\x90\x80\x80",
    b"\xf5\x80\x80\x80",
    b"\xf8\x88\x80\x80\x80",
];

// keeps P199, P212, D021
#[tokio::test]
async fn what_is_not_utf_8_is_refused_wherever_it_stands() {
    let mut table = Table::new();
    for kind in KINDS {
        for bytes in NOT_UTF_8 {
            for place in ["Lee", "last_name", "\"order_id\"", "EUR", "{"] {
                let id = table.order();
                let good = good(kind, &id);
                let at = good.find(place).unwrap() + place.len() / 2;
                let body = [&good.as_bytes()[..at], bytes, &good.as_bytes()[at..]].concat();
                table.refuse(kind, &id, body, 400).await;
            }
            let id = table.order();
            table.refuse(kind, &id, [good(kind, &id).as_bytes(), bytes].concat(), 400).await;
        }
        let id = table.order();
        let good = good(kind, &id);
        let little: Vec<u8> = good.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = good.encode_utf16().flat_map(u16::to_be_bytes).collect();
        let wide: Vec<u8> = good.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
        for body in
            [little.clone(), big.clone(), wide, [&b"\xff\xfe"[..], &little].concat(), [&b"\xfe\xff"[..], &big].concat()]
        {
            table.refuse(kind, &id, body, 400).await;
            let id = table.order();
            table.assert_nothing_stored(kind, &id).await;
        }
    }
}

// keeps D025
#[tokio::test]
async fn thirty_two_levels_are_read_and_no_more() {
    let mut table = Table::new();
    for kind in KINDS {
        // The body is level 1 and `fields` level 2.
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            for (levels, inner) in
                [(29, "1"), (30, "1"), (30, ""), (31, "1"), (31, ""), (32, "1"), (1000, "1"), (9000, "1")]
            {
                if inner.is_empty() && open != "[" {
                    continue;
                }
                let id = table.order();
                let deep = format!("{}{inner}{}", open.repeat(levels), close.repeat(levels));
                let body = good(kind, &id).replace("\"Lee\"", &format!("\"Lee\",\"deep\":{deep}"));
                let reply = table.send(&kind.request(&ACME, body)).await;
                assert_eq!(reply.status, if levels <= 30 { 200 } else { 400 }, "{levels} {open}: {}", reply.text());
                if levels > 30 {
                    table.assert_nothing_stored(kind, &id).await;
                }
            }
            let id = table.order();
            table.refuse(kind, &id, open.repeat(60_000 / open.len()), 400).await;
        }
    }
}

// keeps P006, P103, P150, P199
#[tokio::test]
async fn odd_but_good_documents_are_taken() {
    let mut table = Table::new();
    for kind in KINDS {
        let odd: &[fn(&str) -> String] = &[
            |good| format!(" \t\r\n{good}\r\n\t "),
            |good| good.replace("\":", "\" \n:\t ").replace(",\"", " ,\r\n \""),
            |good| good.replace("\"currency\"", "\"\\u0063urrency\"").replace("EUR", "\\u0045\\u0055\\u0052"),
            |good| good.replace("https://", "https:\\/\\/"),
            |good| good.replace("Lee", "\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\uFFFF\\uD83D\\uDE00"),
            |good| good.replace("Lee", "\u{7f}\u{2028}\u{feff}\u{10ffff}"),
            |good| good.replace("\"Lee\"", "\"Lee\",\"n\":[1e400,-0,1E-400,0.10,123456789012345678901234567890]"),
            |good| good.replace("\"Lee\"", "\"Lee\",\"k\":{\"K\":1,\"k\":1,\"k \":1,\"\":1}"),
            |good| {
                good.replace(
                    "\"Lee\"",
                    "\"Lee\",\"$serde_json::private::Number\":\"1\",\"x\":{\"$serde_json::private::RawValue\":\"1\"}",
                )
            },
            |good| good.replace("\"Lee\"", "\"Lee\",\"__proto__\":{},\"constructor\":{}"),
        ];
        for change in odd {
            let id = table.order();
            let body = change(&good(kind, &id));
            let reply = table.send(&kind.request(&ACME, body.as_str())).await;
            assert_eq!(reply.status, 200, "{}: {}", head(&body), reply.text());
            let again = table.send(&kind.request(&ACME, body.as_str())).await.expect(200);
            assert_eq!(again.text(), reply.text(), "the same bytes again");
        }
    }
}

// keeps P159
#[tokio::test]
async fn a_body_may_have_64_kib_and_no_more() {
    const LIMIT: usize = 64 * 1024;
    let mut table = Table::new();
    for kind in KINDS {
        for length in [LIMIT - 1, LIMIT, LIMIT + 1] {
            for inside in [true, false] {
                let id = table.order();
                let good = good(kind, &id);
                let filling = length - good.len();
                let body = if inside {
                    good.replace("\"Lee\"", &format!("\"Lee\",\"f\":\"{}\"", "x".repeat(filling - 7)))
                } else {
                    format!("{good}{}", " ".repeat(filling))
                };
                assert_eq!(body.len(), length);
                let reply = table.send(&kind.request(&ACME, body)).await;
                assert_eq!(reply.status, if length <= LIMIT { 200 } else { 413 }, "{length}: {}", reply.text());
                if length > LIMIT {
                    table.assert_nothing_stored(kind, &id).await;
                }
            }
        }
    }
}

// keeps P047, P048, P159, P216, D030
#[tokio::test]
async fn fields_are_an_object() {
    let mut table = Table::new();
    for kind in KINDS {
        for raw in ["[]", "[{}]", "null", "true", "7", "\"\"", "\"{}\"", "\"last_name=Lee-the-first\""] {
            table.refuse_member(kind, "fields", raw).await;
        }
        table.take_member(kind, "fields", "{}").await;
        // keeps P040, P041, P049
        let id = table.order();
        table.take(kind, &with(kind.body(&id), "fields", None).to_string(), None).await;
    }
}

/// Every document that differs from a good one in one byte, or in its length: each with an order id of its own, in place
/// of `m00000`.
fn mutations(good: &str) -> Vec<Vec<u8>> {
    const IN_PLACE: &[u8] = b"\0\x1f\x7f\x80\xff \"\\,:{}[]0-1eEa+.x/";
    let bytes = good.as_bytes();
    let mut documents = Vec::new();
    for at in 0..bytes.len() {
        let mut without = bytes.to_vec();
        without.remove(at);
        documents.push(without);
        documents.push(bytes[..at].to_vec());
        documents.push([&bytes[..at], &bytes[at..=at], &bytes[at..]].concat());
        // One in three of the replacements at each place; all of them at neighbouring places together.
        for byte in IN_PLACE.iter().skip(at % 3).step_by(3).filter(|byte| **byte != bytes[at]) {
            let mut replaced = bytes.to_vec();
            replaced[at] = *byte;
            documents.push(replaced);
        }
    }
    for (number, document) in documents.iter_mut().enumerate() {
        let place = document.windows(6).position(|window| window == b"m00000");
        if let Some(at) = place {
            document[at..at + 6].copy_from_slice(format!("m{number:05}").as_bytes());
        }
    }
    documents
}

/// The order id of a mutated document, where it was not hit itself.
fn whole_id(document: &str) -> Option<&str> {
    let at = document.find("\"m0")? + 1;
    let id = document.get(at..at + 6)?;
    id[1..].bytes().all(|byte| byte.is_ascii_digit()).then_some(id)
}

// keeps P212, P236, P237
#[tokio::test]
async fn a_document_with_one_byte_wrong_is_refused_or_means_what_it_says() {
    let mut table = Table::new();
    let (mut taken, mut refused) = (0, 0);
    for kind in KINDS {
        let good = with(good(kind, "m00000").parse().unwrap(), "amount", Some(json!(10.25))).to_string();
        for document in mutations(&good) {
            let shown = String::from_utf8_lossy(&document).into_owned();
            let reply = table.send(&kind.request(&ACME, document.clone())).await;
            assert!([200, 400, 409].contains(&reply.status), "{shown}: {}", reply.text());
            if reply.status == 200 {
                taken += 1;
                let says: serde_json::Value =
                    serde_json::from_slice(&document).unwrap_or_else(|error| panic!("{error}: {shown}"));
                let id = reply.json()["transaction_id"].as_str().unwrap().to_owned();
                let record = table.send(&crate::support::Request::status(&ACME, &id)).await.expect(200).json();
                assert_eq!(record["order_id"], says["order_id"], "{shown}");
                assert_eq!(record["method"], says["method"], "{shown}");
                assert_eq!(record["amount"].as_f64(), says["amount"].as_f64(), "{shown}");
            } else if reply.status == 409 {
                assert!(!shown.contains("\"m0"), "an order id of its own: {shown}: {}", reply.text());
            } else if let Some(id) = whole_id(&shown).filter(|_| refused % 5 == 0) {
                table.assert_nothing_stored(kind, id).await;
            }
            refused += usize::from(reply.status == 400);
        }
    }
    assert!(taken > 100, "some are good: {taken}");
}
