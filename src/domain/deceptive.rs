//! Characters with which a text of others could be shown as another one, and how they are shown instead.

use std::borrow::Cow;

/// Reports whether a character is invisible or reorders others: with it, an account number could be shown as another
/// one.
pub(crate) const fn is_deceptive(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Writes the characters that are chosen visibly, such as `\u{202e}`.
pub(crate) fn escaped_where(text: &str, chosen: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&chosen) {
        return text.into();
    }
    let shown = |c: char| if chosen(c) { c.escape_unicode().to_string() } else { c.to_string() };
    text.chars().map(shown).collect::<String>().into()
}

/// Writes control characters, line breaks, and characters that are invisible or reorder others visibly.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    escaped_where(text, |c| c.is_control() || is_deceptive(c))
}
