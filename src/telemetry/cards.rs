//! Masks card numbers in texts that others choose freely: request ids, traces, an engine's messages.

use std::borrow::Cow;
use std::iter::once;

/// The lengths of card numbers.
const LENGTHS: std::ops::RangeInclusive<usize> = 12..=19;

/// The characters that people write between the digits of a card number, and programs between the parts of an id.
const SEPARATORS: &[u8] = b"-._:/ \t\r\n";

/// How many digits of a card number may be shown, at its start and at its end.
const SHOWN: (usize, usize) = (6, 4);

/// The lengths of ids that programs generate as hexadecimal digits.
const HEX_IDS: [usize; 3] = [32, 40, 64];

/// UUIDs and hexadecimal ids have at least this many letters (all but one in a thousand); card numbers have none.
const LETTERS: usize = 4;

/// Masks the middle digits of everything that could be a card number: 12 to 19 digits with a valid Luhn sum, with or
/// without separators, also within a longer run of digits. UUIDs and hexadecimal ids of usual lengths are left
/// unchanged, since logs would be unreadable otherwise; a caller that hides a number in such a shape could as well
/// encode it.
#[must_use]
pub fn without_cards(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    if count(bytes, |byte| byte.is_ascii_digit()) < *LENGTHS.start() || is_hex_id(bytes) {
        return Cow::Borrowed(text);
    }
    let mut hidden = Vec::new();
    let mut run = Vec::new();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let id_length = generated_id_at(bytes, at);
        match *byte {
            digit @ b'0'..=b'9' if id_length == 0 => run.push((at, u32::from(digit - b'0'))),
            separator if id_length == 0 && SEPARATORS.contains(&separator) => {}
            _ => hide(&std::mem::take(&mut run), &mut hidden),
        }
        at += id_length.max(1);
    }
    hide(&run, &mut hidden);
    if hidden.is_empty() {
        return Cow::Borrowed(text);
    }
    hidden.sort_unstable();
    text.char_indices().map(|(at, shown)| if hidden.binary_search(&at).is_ok() { '*' } else { shown }).collect()
}

/// Reports whether the whole text is a hexadecimal id, like the ids that the gateway generates.
fn is_hex_id(text: &[u8]) -> bool {
    let letters = || count(text, |byte| matches!(byte, b'a'..=b'f' | b'A'..=b'F'));
    HEX_IDS.contains(&text.len())
        && letters() >= LETTERS
        && letters() + count(text, |byte| byte.is_ascii_digit()) == text.len()
}

/// Counts the bytes of a kind. Counts pieces whose count fits a byte, so that the compiler can handle many bytes at a
/// time.
fn count(text: &[u8], kind: impl Fn(u8) -> bool) -> usize {
    let of = |piece: &[u8]| piece.iter().map(|byte| u8::from(kind(*byte))).sum::<u8>();
    text.chunks(128).map(|piece| usize::from(of(piece))).sum()
}

/// Adds the positions of the middle digits of every part that could be a card number.
fn hide(run: &[(usize, u32)], hidden: &mut Vec<usize>) {
    for start in 0..run.len() {
        let parts = LENGTHS.filter_map(|length| run.get(start..start + length));
        for part in parts.filter(|part| luhn_holds(part)) {
            hidden.extend(part.iter().take(part.len() - SHOWN.1).skip(SHOWN.0).map(|(place, _)| place));
        }
    }
}

/// Reports whether the Luhn sum is valid, as it is for every card number and one in ten of other numbers.
fn luhn_holds(digits: &[(usize, u32)]) -> bool {
    let doubled = |digit: u32| if digit > 4 { digit * 2 - 9 } else { digit * 2 };
    let values = digits.iter().rev().enumerate();
    let sum: u32 = values.map(|(place, &(_, digit))| if place % 2 == 1 { doubled(digit) } else { digit }).sum();
    sum.is_multiple_of(10)
}

/// Returns the length of the UUID or hexadecimal id at `at`, if it is a word of its own; otherwise 0.
fn generated_id_at(text: &[u8], at: usize) -> usize {
    let in_word = |place: usize| text.get(place).is_some_and(u8::is_ascii_alphanumeric);
    if at > 0 && in_word(at - 1) {
        return 0;
    }
    let uuid = text.get(at..at + 36).filter(|word| is_uuid(word)).map(<[u8]>::len);
    let hex = text.iter().skip(at).take_while(|byte| byte.is_ascii_hexdigit()).count();
    let lengths = uuid.into_iter().chain(once(hex).filter(|length| HEX_IDS.contains(length)));
    let letters = |length: usize| text.iter().skip(at).take(length).filter(|byte| byte.is_ascii_alphabetic()).count();
    lengths.filter(|&length| !in_word(at + length) && letters(length) >= LETTERS).max().unwrap_or(0)
}

fn is_uuid(word: &[u8]) -> bool {
    word.iter().enumerate().all(|(place, byte)| match place {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn card_numbers_are_masked_in_any_spelling() {
        for (text, shown) in [
            ("4111111111111111", "411111******1111"),
            ("4111-1111-1111-1111", "4111-11**-****-1111"),
            ("4111 1111_1111.1111", "4111 11**_****.1111"),
            ("4/1:1-1.1.1.1.1.1.1.1.1.1.1.1.1", "4/1:1-1.1.1.*.*.*.*.*.*.1.1.1.1"),
            ("order-378282246310005", "order-378282*****0005"),
            ("id\u{e9}4111111111111111x", "id\u{e9}411111******1111x"),
            ("card4111111111111111-a", "card411111******1111-a"),
        ] {
            assert_eq!(without_cards(text), shown);
        }
        for text in
            ["x-7-4111111111111111-9", "41111111-1111-1111-0000-000000000000", "00004111111111111111000000000000"]
        {
            assert!(without_cards(text).contains('*'), "{text}");
        }
    }

    #[test]
    fn other_ids_stay_as_they_are() {
        for text in [
            "",
            "order-20260302",
            "12345678901",
            "000000000001",
            "4111-1111-1111-111x-1",
            "550e8400-e29b-41d4-a716-446655440000",
            "req-550E8400-E29B-41D4-A716-446655440000.1",
            "4bf92f3577b34da6a3ce929d0e0e4736",
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "abcd41111111111111110000abcd0000",
        ] {
            assert_eq!(without_cards(text), text);
        }
    }

    proptest! {
        #[test]
        fn nothing_that_could_be_a_card_is_left(text in "[0-9]{0,3}[-._:/ ]?[0-9x]{10,40}") {
            let shown = without_cards(&text);
            let runs = shown.split(|c: char| !c.is_ascii_digit() && !SEPARATORS.contains(&(c as u8)));
            for run in runs {
                let digits: Vec<_> = run.bytes().filter(u8::is_ascii_digit).map(|b| (0, u32::from(b - b'0'))).collect();
                let mut hidden = Vec::new();
                hide(&digits, &mut hidden);
                prop_assert!(hidden.is_empty(), "{} in {}", run, shown);
            }
        }
    }
}
