//! The ids of callbacks.

use std::fmt;

use super::EntryId;
use crate::domain::TransactionId;

/// What a callback is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallbackSubject {
    /// An operation of the embedded engine.
    Operation(TransactionId),
    /// An operation of a remote engine: an entry of the journal.
    Entry(EntryId),
}

/// The id of a callback, the same at every try: its subject and a random number. Written as `cb_` and 32 lowercase
/// hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CallbackId {
    subject: CallbackSubject,
    nonce: u64,
}

impl CallbackId {
    /// Makes the id of a subject's callback from its random number.
    #[must_use]
    pub const fn new(subject: CallbackSubject, nonce: u64) -> Self {
        Self { subject, nonce }
    }

    /// Reports whether a text has the form of a callback id. Not every text of this form is a possible id.
    #[must_use]
    pub fn has_form(text: &str) -> bool {
        let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        text.strip_prefix("cb_").is_some_and(|digits| digits.len() == 32 && digits.bytes().all(is_digit))
    }

    /// Parses the written form of an id.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix("cb_").filter(|_| Self::has_form(text))?;
        let (key, nonce) = digits.split_at(16);
        let key = u64::from_str_radix(key, 16).ok()?.cast_signed();
        Some(Self { subject: CallbackSubject::from_key(key)?, nonce: u64::from_str_radix(nonce, 16).ok()? })
    }

    /// Returns what the callback is about.
    #[must_use]
    pub const fn subject(self) -> CallbackSubject {
        self.subject
    }

    /// Returns the random number.
    #[must_use]
    pub const fn nonce(self) -> u64 {
        self.nonce
    }
}

impl fmt::Display for CallbackId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cb_{:016x}{:016x}", self.subject.key(), self.nonce)
    }
}

impl CallbackSubject {
    /// Returns one number for both kinds: a `transaction_id`, or the negated number of an entry.
    #[must_use]
    pub const fn key(self) -> i64 {
        match self {
            Self::Operation(id) => id.to_stored(),
            Self::Entry(id) => -id.0,
        }
    }

    /// Returns the subject with this number; `None` for zero and for numbers that no entry can have.
    #[must_use]
    pub fn from_key(key: i64) -> Option<Self> {
        match TransactionId::from_stored(key) {
            Some(id) => Some(Self::Operation(id)),
            None => key.checked_neg().filter(|number| *number > 0).map(|number| Self::Entry(EntryId(number))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_round_trip() {
        let operation = CallbackSubject::Operation(TransactionId::from_stored(0x0123_4567_89ab_cdef).unwrap());
        for (subject, text) in [
            (operation, "cb_0123456789abcdef00000000000000ff"),
            (CallbackSubject::Entry(EntryId(1)), "cb_ffffffffffffffff00000000000000ff"),
        ] {
            let id = CallbackId::new(subject, 255);
            assert_eq!(id.to_string(), text);
            assert_eq!(CallbackId::parse(text), Some(id));
        }
        for wrong in [
            "",
            "cb_",
            "0123456789abcdef00000000000000ff",
            "cb_0123456789ABCDEF00000000000000ff",
            "cb_0123456789abcdef00000000000000f",
            "cb_0123456789abcdef00000000000000fff",
            "cb_+123456789abcdef00000000000000ff",
            "cb_000000000000000000000000000000ff",
            "cb_800000000000000000000000000000ff",
        ] {
            assert_eq!(CallbackId::parse(wrong), None, "{wrong}");
        }
    }
}
