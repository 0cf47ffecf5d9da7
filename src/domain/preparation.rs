//! What a provider prepared for a deposit's customer.

use std::fmt;

use super::{BrowserUrl, InvalidValue, is_deceptive};

/// The outcome of preparing a deposit (promises P176 to P181).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Preparation {
    /// A payment page to open.
    Page(BrowserUrl),
    /// Instructions to show.
    Instructions(Instructions),
    /// Preparation stopped, and the financial result is unknown: the deposit stays PENDING.
    Stopped,
}

/// Payment instructions: a text, values to copy, or both. They may contain account numbers, so `Debug` hides them.
#[derive(Clone, PartialEq, Eq)]
pub struct Instructions {
    text: Option<Box<str>>,
    details: Box<[Detail]>,
}

/// A line of payment instructions, such as "IBAN" and its value.
#[derive(Clone, PartialEq, Eq)]
pub struct Detail {
    /// The name of the value.
    pub label: Box<str>,
    /// The value to copy.
    pub value: Box<str>,
}

impl Instructions {
    /// The longest text, in characters.
    pub const MAX_TEXT: usize = 2000;
    /// The most details.
    pub const MAX_DETAILS: usize = 20;
    /// The longest label, in characters.
    pub const MAX_LABEL: usize = 80;
    /// The longest value, in characters.
    pub const MAX_VALUE: usize = 300;

    /// Accepts instructions for plain-text display.
    ///
    /// # Errors
    /// No text and no details, a part over its limit, an empty text, label or value, or control characters (line breaks
    /// are allowed in the text).
    pub fn new(text: Option<Box<str>>, details: Vec<Detail>) -> Result<Self, InvalidValue> {
        if text.is_none() && details.is_empty() {
            return Err(InvalidValue::new("must have a text or details"));
        }
        if details.len() > Self::MAX_DETAILS {
            return Err(InvalidValue::new("must have at most 20 details"));
        }
        let fits = |text: &str, limit: usize| (1..=limit).contains(&text.chars().count());
        let plain = |text: &str| !text.chars().any(|c| c.is_control() || is_deceptive(c));
        if text.as_deref().is_some_and(|text| !fits(text, Self::MAX_TEXT) || !plain(&text.replace('\n', " "))) {
            return Err(InvalidValue::new("must have a text of 1 to 2000 characters without control characters"));
        }
        let usable = |detail: &Detail| {
            fits(&detail.label, Self::MAX_LABEL)
                && fits(&detail.value, Self::MAX_VALUE)
                && plain(&detail.label)
                && plain(&detail.value)
        };
        if !details.iter().all(usable) {
            return Err(InvalidValue::new(
                "must have details with a label of 1 to 80 and a value of 1 to 300 characters, without control characters",
            ));
        }
        Ok(Self { text, details: details.into() })
    }

    /// Returns the text, if there is one.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Returns the details, in order.
    #[must_use]
    pub const fn details(&self) -> &[Detail] {
        &self.details
    }
}

impl fmt::Debug for Instructions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Instructions({} details)", self.details.len())
    }
}

impl fmt::Debug for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Detail(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_bounded_and_plain() {
        let detail = |label: &str, value: &str| Detail { label: label.into(), value: value.into() };
        let ok = Instructions::new(Some("Pay\nnow".into()), vec![detail("IBAN", "DE44")]).unwrap();
        assert_eq!((ok.text(), ok.details().len()), (Some("Pay\nnow"), 1));
        assert_eq!(format!("{ok:?} {:?}", ok.details()[0]), "Instructions(1 details) Detail(..)");
        assert!(Instructions::new(None, vec![detail("a", "b")]).is_ok());
        assert!(Instructions::new(None, Vec::new()).is_err());
        assert!(Instructions::new(Some("".into()), Vec::new()).is_err());
        assert!(Instructions::new(Some("x".repeat(2001).into()), Vec::new()).is_err());
        for wrong in ["a\u{7}", "a\u{202e}b", "\u{200f}", "a\u{2028}b", "\u{feff}a"] {
            assert!(Instructions::new(Some(wrong.into()), Vec::new()).is_err(), "{wrong:?}");
        }
        for wrong in [detail("", "b"), detail("a", ""), detail("a\n", "b"), detail("a", &"é".repeat(301))] {
            assert!(Instructions::new(None, vec![wrong]).is_err());
        }
        assert!(Instructions::new(None, vec![detail("a", "b"); 21]).is_err());
    }
}
