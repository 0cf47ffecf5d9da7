//! A language of customers' pages.

use crate::domain::Amount;

/// A language that pages are written in.
#[derive(Debug)]
pub struct Language {
    /// Its BCP 47 tag, such as `en` or `pt-BR`.
    pub tag: Box<str>,
    /// The writing direction.
    pub direction: TextDirection,
    /// The separator between whole units and hundredths.
    pub decimal: Box<str>,
    /// The separator between thousands.
    pub group: Box<str>,
    /// All texts, by table and key.
    pub texts: serde_json::Value,
}

/// The writing direction of a language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextDirection {
    /// Left to right.
    Ltr,
    /// Right to left.
    Rtl,
}

impl TextDirection {
    /// Returns the value of HTML's `dir` attribute.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ltr => "ltr",
            Self::Rtl => "rtl",
        }
    }
}

impl Language {
    /// Returns a text; an empty one where the language has none.
    #[must_use]
    pub fn text(&self, table: &str, key: &str) -> &str {
        self.texts.get(table).and_then(|texts| texts.get(key)?.as_str()).unwrap_or_default()
    }

    /// Formats an amount for this language, without its currency.
    #[must_use]
    pub fn amount(&self, amount: Amount) -> String {
        let text = amount.to_string();
        let Some((whole, hundredths)) = text.split_once('.') else { return text };
        let mut grouped = String::new();
        for (index, digit) in whole.chars().enumerate() {
            if index > 0 && (whole.len() - index).is_multiple_of(3) {
                grouped.push_str(&self.group);
            }
            grouped.push(digit);
        }
        grouped + &self.decimal + hundredths
    }
}
