//! A language of customers' pages.

use crate::domain::Amount;

/// A language that pages are written in.
#[derive(Debug)]
pub struct Language {
    /// Its BCP 47 tag, such as `en` or `pt-BR`.
    pub tag: Box<str>,
    /// In which direction it is written.
    pub direction: TextDirection,
    /// Between whole units and hundredths.
    pub decimal: Box<str>,
    /// Between thousands.
    pub group: Box<str>,
    /// All texts, by table and key.
    pub texts: serde_json::Value,
}

/// In which direction a language is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextDirection {
    /// Left to right.
    Ltr,
    /// Right to left.
    Rtl,
}

impl TextDirection {
    /// What HTML's `dir` has for it.
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

    /// An amount as this language writes it, without its currency.
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
