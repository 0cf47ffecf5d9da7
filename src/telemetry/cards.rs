//! Masks card numbers in texts that others choose freely: request ids, traces, an engine's messages.

use std::borrow::Cow;
use std::ops::Range;

/// The lengths of card numbers.
const LENGTHS: std::ops::RangeInclusive<usize> = 13..=19;

/// How the digits of a card number are grouped: fours with a rest, or as on cards with 15 digits.
const GROUPS: [&[usize]; 7] =
    [&[4, 4, 4, 1], &[4, 4, 4, 2], &[4, 6, 5], &[4, 4, 4, 4], &[4, 4, 4, 4, 1], &[4, 4, 4, 4, 2], &[4, 4, 4, 4, 3]];

/// How many digits of a card number may be shown, at its start and at its end.
const SHOWN_DIGITS: (usize, usize) = (6, 4);

/// Masks the middle digits of every card number: 13 to 19 digits in one group, or in groups split by single spaces or
/// hyphens, with no digit beside them, first digits of a card scheme and a valid check digit.
///
/// This is for showing: ids are never masked, and no decision depends on it.
#[must_use]
pub fn without_cards(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    if count_digits(bytes) < *LENGTHS.start() {
        return Cow::Borrowed(text);
    }
    let mut hidden = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let length = group_at(bytes, at);
        if LENGTHS.contains(&length) {
            hide(bytes, at..at + length, &mut hidden);
        } else if length == 4 {
            let ends = GROUPS.iter().filter_map(|groups| end_of_groups(bytes, at, groups));
            ends.for_each(|end| hide(bytes, at..end, &mut hidden));
        }
        at += length.max(1);
    }
    if hidden.is_empty() {
        return Cow::Borrowed(text);
    }
    text.char_indices().map(|(at, shown)| if hidden.contains(&at) { '*' } else { shown }).collect()
}

/// Counts the digits. Counts pieces whose count fits a byte, so that the compiler can handle many bytes at a time.
fn count_digits(text: &[u8]) -> usize {
    let of = |piece: &[u8]| piece.iter().map(|byte| u8::from(byte.is_ascii_digit())).sum::<u8>();
    text.chunks(128).map(|piece| usize::from(of(piece))).sum()
}

/// Returns the length of the group of digits that begins at `at`; 0 if none does.
fn group_at(text: &[u8], at: usize) -> usize {
    text.iter().skip(at).take_while(|byte| byte.is_ascii_digit()).count()
}

/// Returns where these groups of digits end, if they begin at `at`.
fn end_of_groups(text: &[u8], at: usize, groups: &[usize]) -> Option<usize> {
    let mut end = at;
    for (place, length) in groups.iter().enumerate() {
        if place > 0 {
            text.get(end).filter(|byte| matches!(byte, b' ' | b'-'))?;
            end += 1;
        }
        if group_at(text, end) != *length {
            return None;
        }
        end += length;
    }
    Some(end)
}

/// Adds the positions of the middle digits of a part, if it is a card number.
fn hide(text: &[u8], part: Range<usize>, hidden: &mut Vec<usize>) {
    let digits =
        || part.clone().filter_map(|at| text.get(at).filter(|b| b.is_ascii_digit()).map(|b| (at, u32::from(b - b'0'))));
    let length = digits().count();
    let first_four = digits().take(4).fold(0, |number, (_, digit)| number * 10 + digit);
    if is_of_scheme(first_four, length) && luhn_holds(digits().map(|(_, digit)| digit), length) {
        hidden.extend(digits().take(length - SHOWN_DIGITS.1).skip(SHOWN_DIGITS.0).map(|(at, _)| at));
    }
}

/// Reports whether cards of this length begin with these four digits.
const fn is_of_scheme(first_four: u32, length: usize) -> bool {
    match first_four {
        4000..=4999 => matches!(length, 13 | 16 | 19),
        5100..=5599 | 2221..=2720 => length == 16,
        3400..=3499 | 3700..=3799 => length == 15,
        3000..=3059 | 3600..=3699 | 3800..=3999 => length == 14,
        3528..=3589 => matches!(length, 16..=19),
        5000..=5099 | 5600..=5899 | 6000..=6999 => matches!(length, 13..=19),
        _ => false,
    }
}

/// Reports whether the Luhn sum is valid, as it is for every card number and one in ten of other numbers.
fn luhn_holds(digits: impl Iterator<Item = u32>, length: usize) -> bool {
    let doubled = |digit: u32| if digit > 4 { digit * 2 - 9 } else { digit * 2 };
    let values = digits.enumerate();
    let sum: u32 =
        values.map(|(place, digit)| if (length - place).is_multiple_of(2) { doubled(digit) } else { digit }).sum();
    sum.is_multiple_of(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Appends the check digit.
    fn card(digits: &str) -> String {
        let length = digits.len() + 1;
        let numbers = |last| digits.bytes().map(|b| u32::from(b - b'0')).chain([last]);
        let last = (0..10).find(|last| luhn_holds(numbers(*last), length)).unwrap();
        format!("{digits}{last}")
    }

    #[test]
    fn card_numbers_are_masked_as_they_are_written() {
        for (text, shown) in [
            ("4111111111111111", "411111******1111"),
            ("4111-1111-1111-1111", "4111-11**-****-1111"),
            ("4111 1111-1111 1111", "4111 11**-**** 1111"),
            ("1234 4111 1111 1111 1111 99", "1234 4111 11** **** 1111 99"),
            ("order-378282246310005", "order-378282*****0005"),
            ("3782 822463-10005", "3782 82****-*0005"),
            ("4222 2222 2222 2", "4222 22** *222 2"),
            ("4000 0000 0000 0000 006", "4000 00** **** ***0 006"),
            ("id\u{e9}4111111111111111x", "id\u{e9}411111******1111x"),
            ("x-7-4111111111111111-9", "x-7-411111******1111-9"),
            ("5555555555554444,4111111111111111", "555555******4444,411111******1111"),
        ] {
            assert_eq!(without_cards(text), shown);
        }
    }

    #[test]
    fn other_digits_stay_as_they_are() {
        for text in [
            "",
            "order-20260302",
            "000000000001",
            "0000000000000000",
            "1234567890123452",
            // The check digit is wrong.
            "4111111111111112",
            // A digit beside it, other groups, other separators.
            "41111111111111110",
            "04111111111111111",
            "00004111111111111111000000000000",
            "41111111-11111111",
            "411-1111-1111-11111",
            "4111  1111 1111 1111",
            "4111.1111.1111.1111",
            "4111_1111_1111_1111",
            "4111-1111-1111-111x-1",
            "41111111-1111-1111-0000-000000000000",
            "550e8400-e29b-41d4-a716-446655440000",
            "4bf92f3577b34da6a3ce929d0e0e4736",
        ] {
            assert_eq!(without_cards(text), text);
        }
    }

    #[test]
    fn each_scheme_has_its_first_digits_and_lengths() {
        for (first, lengths) in [
            ("4", &[13, 16, 19][..]),
            ("51", &[16]),
            ("55", &[16]),
            ("2221", &[16]),
            ("2720", &[16]),
            ("34", &[15]),
            ("37", &[15]),
            ("300", &[14]),
            ("305", &[14]),
            ("36", &[14]),
            ("38", &[14]),
            ("39", &[14]),
            ("3528", &[16, 17, 18, 19]),
            ("3589", &[16, 17, 18, 19]),
            ("6011", &[13, 14, 15, 16, 17, 18, 19]),
            ("62", &[13, 14, 15, 16, 17, 18, 19]),
            ("50", &[13, 14, 15, 16, 17, 18, 19]),
            ("58", &[13, 14, 15, 16, 17, 18, 19]),
            ("69", &[13, 14, 15, 16, 17, 18, 19]),
            ("2220", &[]),
            ("2721", &[]),
            ("306", &[]),
            ("35", &[]),
            ("3590", &[]),
            ("59", &[]),
            ("1", &[]),
            ("7", &[]),
            ("9", &[]),
        ] {
            let masked = |length: &usize| {
                let number = card(&format!("{first:0<width$}", width = length - 1));
                without_cards(&number) != number
            };
            let found: Vec<_> = (12..=20).filter(masked).collect();
            assert_eq!(found, lengths, "{first}");
        }
    }
}
