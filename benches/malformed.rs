//! What the most expensive bodies of 64 KiB cost the reader, beside well-formed ones of the same length.
//!
//! ```sh
//! cargo bench --bench malformed
//! ```
//!
//! A malformed request must never cost more than a well-formed one. Each row is a body that some reader somewhere finds
//! hard; it is read as a deposit, and where it is taken its `fields` are hashed for the comparison with repeats, as the
//! engine does. The figure is the best of many runs, in microseconds, and its ratio to the dearest well-formed body of the
//! same run. Nothing is asserted about time.
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on panics")]

use std::fmt::Write as _;
use std::hint::black_box;
use std::io::Write as _;
use std::time::{Duration, Instant};

use paybridge::domain::Direction;
use paybridge::store::{Comparer, Kept, Parts};
use paybridge::wire::v2::read_create;

const LENGTH: usize = 64 * 1024;

/// A name, whether the body is well-formed, and the body.
struct Row {
    name: &'static str,
    good: bool,
    body: Vec<u8>,
}

fn main() {
    let measured = std::env::args().any(|argument| argument == "--bench");
    let rounds = if measured { 400 } else { 1 };
    let rows = rows();
    let comparer = Comparer::new(&[7; 32]);
    let mut best = vec![Duration::MAX; rows.len()];
    // Round by round, so that a slow moment of the machine hits all alike.
    for _ in 0..rounds {
        for (row, best) in rows.iter().zip(&mut best) {
            let started = Instant::now();
            let good = read(&comparer, &row.body);
            *best = started.elapsed().min(*best);
            assert_eq!(good, row.good, "{}", row.name);
        }
    }
    report(&rows, &best);
}

/// Reads a body and hashes what it says; whether it was taken.
fn read(comparer: &Comparer, body: &[u8]) -> bool {
    match read_create(Direction::Payin, black_box(body)) {
        Ok(request) => {
            let mut parts = Parts::of("bench");
            request.fields.hash(&mut parts, &Kept::Everything);
            black_box(comparer.digest(&parts));
            true
        }
        Err(complaint) => {
            black_box(complaint.to_string());
            false
        }
    }
}

fn report(rows: &[Row], best: &[Duration]) {
    let micros =
        |time: &Duration| u32::try_from(time.as_nanos() / 100).map_or(f64::MAX, |tenths| f64::from(tenths) / 10.0);
    let dearest = rows.iter().zip(best).filter(|(row, _)| row.good).map(|(_, time)| micros(time)).fold(0.1, f64::max);
    let mut text = String::new();
    for (row, time) in rows.iter().zip(best) {
        let kind = if row.good { "well-formed" } else { "malformed" };
        let (time, ratio) = (micros(time), micros(time) / dearest);
        let _ = writeln!(text, "{kind:<12} {:<48} {time:>9.1} us {ratio:>6.2}", row.name);
    }
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// The bodies: a good deposit whose `fields` hold what `filling` makes of the room that is left.
fn rows() -> Vec<Row> {
    let good = |name, filling: fn(usize) -> String| Row { name, good: true, body: filled(filling) };
    let bad = |name, filling: fn(usize) -> String| Row { name, good: false, body: filled(filling) };
    let mut rows = vec![
        good("one long string", |room| format!("\"text\":\"{}\"", "x".repeat(room - 9))),
        good("a long string of escapes", |room| format!("\"text\":\"{}\"", "\\u00e9".repeat((room - 9) / 6))),
        good("many members", |room| members(room, |number| format!("\"m{number}\":{number}"))),
        good("many members, names all escapes", |room| members(room, |number| format!("{}:1", escaped(number)))),
        good("long names with equal starts", |room| members(room, |n| format!("\"{}{n:04}\":1", "n".repeat(250)))),
        good("many small numbers", |room| format!("\"list\":[{}1]", "1,".repeat((room - 12) / 2))),
        good("many empty objects", |room| format!("\"list\":[{}{{}}]", "{},".repeat((room - 14) / 3))),
        good("objects of 16 members", |room| {
            format!("\"list\":[{}{{}}]", sixteen().repeat((room - 14) / sixteen().len()))
        }),
        good("one number of 60,000 digits", |room| format!("\"number\":{}", "7".repeat(room - 9))),
        bad("many members, the last one twice", |room| {
            members(room - 10, |n| format!("\"m{n}\":{n}")) + ",\"a\":1,\"a\":1"
        }),
        bad("escaped names, the last one twice", |room| {
            members(room - 16, |n| format!("{}:1", escaped(n))) + ",\"a\":1,\"\\u0061\":1"
        }),
        bad("long names with equal starts, one twice", |room| {
            members(room - 600, |n| format!("\"{}{n:04}\":1", "n".repeat(250)))
                + &format!(",\"{0}0000\":1", "n".repeat(250))
        }),
        bad("16 names of 4,000 characters, one twice", |room| {
            members(room - 4200, |n| format!("\"{}{n:02}\":1", "n".repeat(4000)))
                + &format!(",\"{0}01\":1", "n".repeat(4000))
        }),
        bad("many numbers, a comma too much", |room| format!("\"list\":[{}]", "1,".repeat((room - 10) / 2))),
        bad("many empty objects, unclosed", |room| format!("\"list\":[{}", "{},".repeat((room - 14) / 3))),
        bad("objects of 16 members, unclosed", |room| {
            format!("\"list\":[{}", sixteen().repeat((room - 14) / sixteen().len()))
        }),
        bad("33 levels at the very end", |room| {
            members(room - 80, |n| format!("\"m{n}\":{n}")) + &format!(",\"d\":{}{}", "[".repeat(31), "]".repeat(31))
        }),
        bad("a lone surrogate at the end of escapes", |room| {
            format!("\"t\":\"{}\\ud800\"", "\\u00e9".repeat((room - 16) / 6))
        }),
        bad("a reserved name at the end", |room| members(room - 12, |n| format!("\"m{n}\":{n}")) + ",\"method\":1"),
        bad("a customer field of a wrong type at the end", |room| {
            members(room - 12, |n| format!("\"m{n}\":{n}")) + ",\"email\":1"
        }),
    ];
    let number = |name, digits: String| Row { name, good: false, body: deposit(&digits, "") };
    rows.extend([
        number("an amount of 60,000 digits", "7".repeat(60_000)),
        number("an amount of 60,000 decimals", format!("1.{}", "7".repeat(60_000))),
        number("an amount of 60,000 zeros and a digit", format!("0.{}1", "0".repeat(60_000))),
        number("an exponent of 60,000 digits", format!("1e{}", "9".repeat(60_000))),
        Row { name: "60,000 brackets", good: false, body: "[".repeat(LENGTH).into_bytes() },
        Row {
            name: "unknown members",
            good: false,
            body: format!("{{{}}}", members(LENGTH - 2, |n| format!("\"m{n}\":{n}"))).into(),
        },
        Row {
            name: "one byte at the end that is not UTF-8",
            good: false,
            body: [filled(|room| format!("\"text\":\"{}\"", "é".repeat((room - 9) / 2))), vec![0xff]].concat(),
        },
        Row { name: "white space and nothing else", good: false, body: " ".repeat(LENGTH).into_bytes() },
    ]);
    rows
}

fn deposit(amount: &str, fields: &str) -> Vec<u8> {
    format!(
        r#"{{"order_id":"o","amount":{amount},"currency":"EUR","callback_url":"https://a.example/","success_url":"https://a.example/","pending_url":"https://a.example/","fail_url":"https://a.example/","fields":{{{fields}}}}}"#
    )
    .into_bytes()
}

fn filled(filling: impl Fn(usize) -> String) -> Vec<u8> {
    let body = deposit("10", &filling(LENGTH - deposit("10", "").len()));
    assert!(body.len() <= LENGTH, "{}", body.len());
    body
}

/// As many members as there is room for.
fn members(room: usize, member: impl Fn(usize) -> String) -> String {
    let mut text = member(0);
    for number in 1.. {
        let next = member(number);
        if text.len() + 1 + next.len() > room {
            break;
        }
        text.push(',');
        text.push_str(&next);
    }
    text
}

/// A name of four characters, all of them escapes.
fn escaped(number: usize) -> String {
    let digit = |place: u32| u8::try_from(number / 10_usize.pow(place) % 10).unwrap() + b'0';
    let escapes = (0..4).fold(String::new(), |mut text, place| {
        let _ = write!(text, "\\u00{:02x}", digit(place));
        text
    });
    format!("\"{escapes}\"")
}

/// As many members as are compared one by one.
fn sixteen() -> String {
    format!("{{{}}},", members(1000, |n| if n < 16 { format!("\"abcdef{n:02}\":1") } else { "x".repeat(2000) }))
}
