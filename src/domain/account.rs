//! Account numbers, which no log may show.

use std::fmt;

use super::Invalid;

/// The account a withdrawal pays to, or the one a deposit was paid from. Its `Debug` masks; only [`AccountNumber::expose`]
/// shows the text.
#[derive(Clone, PartialEq, Eq)]
pub struct AccountNumber(Box<str>);

impl AccountNumber {
    /// The longest account number in characters, whatever a shop's pattern allows.
    pub const MAX_CHARACTERS: usize = 255;

    /// Takes the text of an account number. What a shop accepts beyond this is the shop's rule.
    ///
    /// # Errors
    /// Empty text, more than [`AccountNumber::MAX_CHARACTERS`] characters, or control characters.
    pub fn new(text: &str) -> Result<Self, Invalid> {
        if text.is_empty() {
            return Err(Invalid::new("must not be empty"));
        }
        if text.chars().count() > Self::MAX_CHARACTERS {
            return Err(Invalid::new("must be at most 255 characters"));
        }
        if text.chars().any(char::is_control) {
            return Err(Invalid::new("must not contain control characters"));
        }
        Ok(Self(text.into()))
    }

    /// The whole text, for the places that must have it: the seal, the comparison and the provider.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The text as status records show it.
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

/// Masks text shaped like a card number (12 to 19 digits): the first six and last four stay, the rest becomes `*`
/// (contract section 7, status `account_number`). Other text is returned as it is.
#[must_use]
pub fn masked(text: &str) -> String {
    let card = (12..=19).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    if !card {
        return text.to_owned();
    }
    let hidden = text.len() - 10;
    format!("{}{}{}", &text[..6], "*".repeat(hidden), &text[text.len() - 4..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn card_numbers_are_masked_and_nothing_else() {
        assert_eq!(masked("4111111111111111"), "411111******1111");
        assert_eq!(masked("123456789012"), "123456**9012");
        assert_eq!(masked("1234567890123456789"), "123456*********6789");
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
