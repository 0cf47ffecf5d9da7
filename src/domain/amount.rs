//! Amounts of money as whole hundredths.

use std::fmt;

use super::digits::digit;
use super::{Digits, InvalidValue};

/// An amount of money: hundredths of the currency's unit, greater than zero, at most 9999999999999.99 (contract
/// sections 5 and 7). No constructor takes a binary float.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount(u64);

const NOT_POSITIVE: InvalidValue = InvalidValue::new("must be greater than 0");
const TOO_PRECISE: InvalidValue = InvalidValue::new("must have at most two decimal places");
const TOO_LARGE: InvalidValue = InvalidValue::new("must be at most 9999999999999.99");
const NOT_DECIMAL: InvalidValue =
    InvalidValue::new("must be a decimal string: digits, optionally a point and one or two digits");
const NOT_NUMBER: InvalidValue = InvalidValue::new("must be a JSON number");

impl Amount {
    /// The largest amount, in hundredths.
    pub const MAX_HUNDREDTHS: u64 = 999_999_999_999_999;

    /// Creates an amount from hundredths.
    ///
    /// # Errors
    /// Zero, or more than [`Amount::MAX_HUNDREDTHS`].
    pub const fn from_hundredths(hundredths: u64) -> Result<Self, InvalidValue> {
        if hundredths == 0 {
            Err(NOT_POSITIVE)
        } else if hundredths > Self::MAX_HUNDREDTHS {
            Err(TOO_LARGE)
        } else {
            Ok(Self(hundredths))
        }
    }

    /// Returns the amount in hundredths as a signed number, which always fits.
    #[must_use]
    pub const fn signed(self) -> i64 {
        self.hundredths().cast_signed()
    }

    /// Returns the amount in hundredths.
    #[must_use]
    pub const fn hundredths(self) -> u64 {
        self.0
    }

    /// Returns the last two digits of the amount, which decide the sandbox's result.
    #[must_use]
    pub const fn cents(self) -> u64 {
        self.0 % 100
    }

    /// Parses the decimal string of v1: digits, optionally a point and one or two digits (contract section 5,
    /// `amount`).
    ///
    /// # Errors
    /// Any other spelling (sign, exponent, spaces, a third decimal), zero, or a value over the limit.
    pub fn from_decimal_string(text: &str) -> Result<Self, InvalidValue> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(fraction) {
            return Err(NOT_DECIMAL);
        }
        if fraction.len() > 2 {
            return Err(TOO_PRECISE);
        }
        Self::from_digits(whole, fraction, 0)
    }

    /// Parses the text of a JSON number by value, not by spelling: 10, 10.0, 10.000 and 1e1 are the same amount
    /// (contract section 7, `amount`). The cost is bounded by the length of the text, independent of the exponent.
    ///
    /// # Errors
    /// Text that is not a JSON number, zero or less, more than two decimal places by value, or a value over the limit.
    pub fn from_json_number(text: &str) -> Result<Self, InvalidValue> {
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, saturating_exponent(exponent)?),
            None => (text, 0),
        };
        let (negative, mantissa) = match mantissa.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, mantissa),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(fraction) {
            return Err(NOT_NUMBER);
        }
        let amount = Self::from_digits(whole, fraction, exponent)?;
        if negative { Err(NOT_POSITIVE) } else { Ok(amount) }
    }

    /// Computes `whole.fraction` times ten to the power of `exponent`.
    fn from_digits(whole: &str, fraction: &str, exponent: i64) -> Result<Self, InvalidValue> {
        let fraction = fraction.trim_end_matches('0');
        let digits = || whole.bytes().chain(fraction.bytes());
        let trailing_zeros = if fraction.is_empty() { whole.len() - whole.trim_end_matches('0').len() } else { 0 };
        let total = whole.len() + fraction.len();
        let leading_zeros = digits().take_while(|b| *b == b'0').count();
        if leading_zeros == total {
            return Err(NOT_POSITIVE);
        }
        // The value is (significant digits as an integer) x 10^scale hundredths.
        let length = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        let scale =
            exponent.saturating_add(2).saturating_sub(length(fraction.len())).saturating_add(length(trailing_zeros));
        if scale < 0 {
            return Err(TOO_PRECISE);
        }
        let significant = total - leading_zeros - trailing_zeros;
        if length(significant).saturating_add(scale) > 15 {
            return Err(TOO_LARGE);
        }
        let shift = u32::try_from(scale).map_err(|_| TOO_LARGE)?;
        let value = digits()
            .skip(leading_zeros)
            .take(significant)
            .fold(0_u64, |value, digit| value * 10 + u64::from(digit - b'0'));
        Self::from_hundredths(value * 10_u64.pow(shift))
    }

    /// Appends the text that `Display` writes, but faster.
    pub fn write_to(self, out: &mut String) {
        out.push_str(Digits::of(self.0 / 100).as_str());
        out.push('.');
        self.write_cents(2, out);
    }

    /// Appends the first one or two digits after the point.
    fn write_cents(self, places: u8, out: &mut String) {
        out.push(char::from(digit(self.0 / 10)));
        if places > 1 {
            out.push(char::from(digit(self.0)));
        }
    }

    /// Returns the amount for display as a JSON number without trailing zeros (contract section 7, status `amount`).
    #[must_use]
    pub const fn as_number(self) -> AmountNumber {
        AmountNumber(self)
    }
}

/// Parses an exponent, saturating far outside the range of amounts.
fn saturating_exponent(text: &str) -> Result<i64, InvalidValue> {
    const FAR: i64 = 1 << 40;
    let (sign, digits) = match text.as_bytes().first() {
        Some(b'-') => (-1, &text[1..]),
        Some(b'+') => (1, &text[1..]),
        _ => (1, text),
    };
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(NOT_NUMBER);
    }
    let magnitude = digits.bytes().fold(0_i64, |value, digit| (value * 10 + i64::from(digit - b'0')).min(FAR));
    Ok(sign * magnitude)
}

/// Writes two decimals always, as v1 does: `10.50`.
impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:02}", self.0 / 100, self.0 % 100)
    }
}

/// Displays an [`Amount`] as v2 does: a JSON number without trailing zeros, `10.5`.
#[derive(Debug, Clone, Copy)]
pub struct AmountNumber(Amount);

impl AmountNumber {
    /// Appends the text that `Display` writes, but faster.
    pub fn write_to(self, out: &mut String) {
        let (amount, cents) = (self.0, self.0.cents());
        out.push_str(Digits::of(amount.0 / 100).as_str());
        if cents != 0 {
            out.push('.');
            amount.write_cents(if cents.is_multiple_of(10) { 1 } else { 2 }, out);
        }
    }
}

impl fmt::Display for AmountNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, cents) = (self.0.0 / 100, self.0.0 % 100);
        match (cents, cents % 10) {
            (0, _) => write!(f, "{whole}"),
            (_, 0) => write!(f, "{whole}.{}", cents / 10),
            _ => write!(f, "{whole}.{cents:02}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn decimal_strings_of_v1() {
        for (text, hundredths) in [
            ("10", 1000),
            ("10.5", 1050),
            ("10.50", 1050),
            ("0.01", 1),
            ("000.10", 10),
            ("0000000000000000000000010", 1000),
            ("9999999999999.99", 999_999_999_999_999),
        ] {
            assert_eq!(Amount::from_decimal_string(text).map(Amount::hundredths), Ok(hundredths), "{text}");
        }
        for text in [
            "",
            ".",
            "1.",
            ".5",
            "+1",
            "-1",
            " 1",
            "1 ",
            "1e1",
            "1,5",
            "1.234",
            "1.000",
            "0",
            "0.00",
            "1.2.3",
            "٣",
            "10000000000000",
            "9999999999999.999",
            "NaN",
            "0x10",
            "1_0",
        ] {
            assert!(Amount::from_decimal_string(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_refusal_says_what_is_wrong() {
        assert_eq!(Amount::from_json_number("-5"), Err(NOT_POSITIVE));
        assert_eq!(Amount::from_json_number("1e-3"), Err(TOO_PRECISE));
        assert_eq!(Amount::from_json_number("1e13"), Err(TOO_LARGE));
    }

    #[test]
    fn displayed_for_both_versions() {
        for (hundredths, v1, v2) in
            [(1, "0.01", "0.01"), (10, "0.10", "0.1"), (1050, "10.50", "10.5"), (1000, "10.00", "10")]
        {
            let amount = Amount::from_hundredths(hundredths).unwrap();
            assert_eq!(amount.to_string(), v1);
            assert_eq!(amount.as_number().to_string(), v2);
        }
    }

    proptest! {
        #[test]
        fn write_to_matches_display(hundredths in 1..=Amount::MAX_HUNDREDTHS, shift in 0..50_u32, round: u8) {
            let unit = [1, 10, 100][usize::from(round % 3)];
            let hundredths = ((hundredths >> shift) / unit * unit).max(unit);
            let amount = Amount::from_hundredths(hundredths).unwrap();
            let (mut decimals, mut number) = (String::new(), String::new());
            amount.write_to(&mut decimals);
            amount.as_number().write_to(&mut number);
            prop_assert_eq!(decimals, amount.to_string());
            prop_assert_eq!(number, amount.as_number().to_string());
        }

        #[test]
        fn displayed_amounts_parse_back(hundredths in 1..=Amount::MAX_HUNDREDTHS) {
            let amount = Amount::from_hundredths(hundredths).unwrap();
            prop_assert_eq!(Amount::from_decimal_string(&amount.to_string()), Ok(amount));
            prop_assert_eq!(Amount::from_json_number(&amount.as_number().to_string()), Ok(amount));
        }

        #[test]
        fn the_exponent_only_moves_the_point(hundredths in 1..=Amount::MAX_HUNDREDTHS, zeros in 0_usize..40) {
            let padded = format!("{hundredths}{}e-{}", "0".repeat(zeros), zeros + 2);
            prop_assert_eq!(Amount::from_json_number(&padded).map(Amount::hundredths), Ok(hundredths));
        }

        #[test]
        fn no_text_panics(text in "\\PC*") {
            let _ = Amount::from_decimal_string(&text);
            let _ = Amount::from_json_number(&text);
        }

        #[test]
        fn number_like_text_never_panics(text in "-?[0-9]{0,30}(\\.[0-9]{0,30})?([eE][+-]?[0-9]{0,25})?") {
            let _ = Amount::from_json_number(&text);
        }
    }
}
