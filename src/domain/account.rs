//! Account numbers, which must not appear in logs.

use std::fmt;

use super::InvalidValue;

/// The account that a withdrawal pays to, or that a deposit was paid from. `Debug` shows its length only;
/// [`AccountNumber::expose`] returns the text.
#[derive(Clone, PartialEq, Eq)]
pub struct AccountNumber(Box<str>);

impl AccountNumber {
    /// The longest account number in characters, even if a shop's pattern allows more.
    pub const MAX_CHARACTERS: usize = 255;

    /// Accepts the text of an account number. Stricter checks are rules of the shop.
    ///
    /// # Errors
    /// Empty text, more than [`AccountNumber::MAX_CHARACTERS`] characters, or control characters.
    pub fn new(text: &str) -> Result<Self, InvalidValue> {
        if text.is_empty() {
            return Err(InvalidValue::new("must not be empty"));
        }
        if text.chars().count() > Self::MAX_CHARACTERS {
            return Err(InvalidValue::new("must be at most 255 characters"));
        }
        if text.chars().any(char::is_control) {
            return Err(InvalidValue::new("must not contain control characters"));
        }
        Ok(Self(text.into()))
    }

    /// Returns the whole text, for the code that needs it: encryption, comparison and the provider.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns the text as status records show it.
    #[must_use]
    pub fn masked(&self) -> String {
        masked(&self.0)
    }
}

impl fmt::Debug for AccountNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AccountNumber({} characters)", self.0.chars().count())
    }
}

/// Masks a text that looks like a card number (12 to 19 digits, with or without spaces, dashes or points between them):
/// keeps the first six and the last four digits, and replaces the others by `*` (promises P031 and P032;
/// contract section 7, status `account_number`). Returns other text unchanged.
#[must_use]
pub fn masked(text: &str) -> String {
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let separator = |c: char| c.is_whitespace() || ['-', '.', '\u{2010}', '\u{2011}', '\u{2013}'].contains(&c);
    if !(12..=19).contains(&digits) || !text.chars().all(|c| c.is_ascii_digit() || separator(c)) {
        return text.to_owned();
    }
    let mut place = 0;
    let shown = |c: char| {
        if !c.is_ascii_digit() {
            return c;
        }
        place += 1;
        if place <= 6 || place > digits - 4 { c } else { '*' }
    };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn card_numbers_are_masked_and_nothing_else() {
        assert_eq!(masked("4111111111111111"), "411111******1111");
        assert_eq!(masked("123456789012"), "123456**9012");
        assert_eq!(masked("1234567890123456789"), "123456*********6789");
        assert_eq!(masked("4111 1111 1111 1111"), "4111 11** **** 1111");
        assert_eq!(masked(" 4111-1111.1111\u{a0}1111"), " 4111-11**.****\u{a0}1111");
        assert_eq!(masked("1234 5678 901"), "1234 5678 901");
        assert_eq!(masked("order 411111111111"), "order 411111111111");
        assert_eq!(masked("12345678901"), "12345678901");
        assert_eq!(masked("12345678901234567890"), "12345678901234567890");
        assert_eq!(masked("+491701234567"), "+491701234567");
        assert_eq!(masked("DE44500105175407324931"), "DE44500105175407324931");
    }

    #[test]
    fn debug_shows_no_digit_of_the_account() {
        let account = AccountNumber::new("4111111111111111").unwrap();
        assert_eq!(format!("{account:?}"), "AccountNumber(16 characters)");
    }
}
