//! Conversion of callbacks between domain values and columns.

use super::{CorruptRow, OrCorrupt};
use crate::domain::CallbackUrl;
use crate::store::{CallbackRecord, CallbackState, TryOutcome};

pub(in crate::store) const PENDING: i64 = state_number(CallbackState::Pending);
pub(in crate::store) const DELIVERED: i64 = state_number(CallbackState::Delivered);
pub(in crate::store) const FAILED: i64 = state_number(CallbackState::Failed);

/// Returns the value of `callbacks.state`.
pub(in crate::store) const fn state_number(state: CallbackState) -> i64 {
    match state {
        CallbackState::Pending => 0,
        CallbackState::Delivered => 1,
        CallbackState::Failed => 2,
    }
}

pub(in crate::store) const fn state_of(number: i64) -> Option<CallbackState> {
    match number {
        PENDING => Some(CallbackState::Pending),
        DELIVERED => Some(CallbackState::Delivered),
        FAILED => Some(CallbackState::Failed),
        _ => None,
    }
}

/// Returns the target of a stored address.
///
/// # Errors
/// The text is not a valid address.
pub(in crate::store) fn origin_of(url: &str) -> Result<String, CorruptRow> {
    Ok(CallbackUrl::new_allowing_http(url).or_corrupt("callback_url")?.origin())
}

/// Returns the most tries that are stored for a callback.
pub(in crate::store) fn max_tries() -> i64 {
    i64::try_from(CallbackRecord::MAX_TRIES).unwrap_or(i64::MAX)
}

/// Returns the columns of an outcome: its status and its error.
pub(in crate::store) fn columns_of(outcome: &TryOutcome) -> (Option<u16>, Option<&str>) {
    match outcome {
        TryOutcome::Status(status) => (Some(*status), None),
        TryOutcome::Error(error) => (None, Some(error)),
    }
}

/// Decodes the outcome in two columns, if there is one.
///
/// # Errors
/// A column contains an invalid value.
pub(in crate::store) fn outcome_of(
    status: Option<i64>,
    error: Option<String>,
) -> Result<Option<TryOutcome>, &'static str> {
    match (status, error) {
        (None, None) => Ok(None),
        (Some(status), None) => {
            u16::try_from(status).map(|status| Some(TryOutcome::Status(status))).map_err(|_| "status")
        }
        (None, Some(error)) => Ok(Some(TryOutcome::Error(error.into()))),
        (Some(_), Some(_)) => Err("error"),
    }
}
