//! Parses the form of the sandbox's page.

use crate::domain::{AccountNumber, Outcome, Status};
use crate::error::RequestError;

/// The payer's account in a deposit completed by Pay.
const PAYER: &str = "4111111111111111";

/// The name of the form's field, and the error for a wrong value.
const DECISION: &str = "decision";
const NO_DECISION: &str = "must be sent once, as `pay` or `decline`";

/// The decision made on the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The deposit succeeds.
    Pay,
    /// The deposit fails.
    Decline,
}

impl Decision {
    /// Reads the form's `application/x-www-form-urlencoded` body; other members are ignored.
    ///
    /// # Errors
    /// `decision` is missing, sent twice, or neither `pay` nor `decline`.
    pub fn read(body: &[u8]) -> Result<Self, RequestError> {
        let mut values = body.split(|byte| *byte == b'&').filter_map(|pair| {
            let rest = pair.strip_prefix(DECISION.as_bytes())?;
            if rest.is_empty() { Some(rest) } else { rest.strip_prefix(b"=") }
        });
        match (values.next(), values.next()) {
            (Some(b"pay"), None) => Ok(Self::Pay),
            (Some(b"decline"), None) => Ok(Self::Decline),
            _ => Err(RequestError::member(DECISION, NO_DECISION)),
        }
    }

    /// Returns the result that it reports.
    pub(super) fn outcome(self) -> Outcome {
        match self {
            Self::Pay => Outcome::Success { payer: AccountNumber::new(PAYER).ok() },
            Self::Decline => Outcome::Failed,
        }
    }

    /// Returns the status that it leads to.
    pub(super) const fn status(self) -> Status {
        match self {
            Self::Pay => Status::Success,
            Self::Decline => Status::Failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_holds_one_decision() {
        for (body, expected) in [
            ("decision=pay", Some(Decision::Pay)),
            ("decision=decline", Some(Decision::Decline)),
            ("a=b&decision=pay", Some(Decision::Pay)),
            ("decision=pay&decisions=decline", Some(Decision::Pay)),
            ("", None),
            ("decision", None),
            ("decision=", None),
            ("decision=Pay", None),
            ("decision=pay&decision=pay", None),
            ("decision=pay&decision", None),
            ("decision=p%61y", None),
            ("{\"decision\":\"pay\"}", None),
        ] {
            assert_eq!(Decision::read(body.as_bytes()).ok(), expected, "{body}");
        }
        assert_eq!(Decision::Pay.outcome(), Outcome::Success { payer: Some(AccountNumber::new(PAYER).unwrap()) });
    }
}
