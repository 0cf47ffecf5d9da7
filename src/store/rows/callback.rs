//! Callbacks: their numbers and texts in columns.

use super::{CorruptRow, OrCorrupt};
use crate::domain::CallbackUrl;
use crate::store::{CallbackRecord, CallbackSender, CallbackState, CallbackTarget, TryOutcome};

pub(in crate::store) const PENDING: i64 = state_number(CallbackState::Pending);
pub(in crate::store) const DELIVERED: i64 = state_number(CallbackState::Delivered);
pub(in crate::store) const FAILED: i64 = state_number(CallbackState::Failed);

/// `callbacks.state`. Statements that need the partial index of pending callbacks say 0 themselves.
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

/// `callbacks.target` as it was written: no origin is the engine's word.
pub(in crate::store) fn target_of(text: String) -> CallbackTarget {
    if text == CallbackTarget::Engine.as_str() { CallbackTarget::Engine } else { CallbackTarget::Origin(text.into()) }
}

/// Where the result of an operation is told; `None`: nobody is.
pub(in crate::store) const fn address<'a>(
    callback_url: &'a CallbackUrl,
    v1: Option<&'a CallbackSender>,
) -> Option<&'a CallbackUrl> {
    match v1 {
        Some(CallbackSender::Relayed(url)) => url.as_ref(),
        Some(CallbackSender::Directly) | None => Some(callback_url),
    }
}

/// The target of an address that the store holds.
///
/// # Errors
/// It is no address.
pub(in crate::store) fn origin_of(url: &str) -> Result<String, CorruptRow> {
    Ok(CallbackUrl::new_allowing_http(url).or_corrupt("callback_url")?.origin())
}

/// How many tries of a callback are kept.
pub(in crate::store) fn kept() -> i64 {
    i64::try_from(CallbackRecord::MAX_TRIES).unwrap_or(i64::MAX)
}

/// The columns of an outcome: its status, its error.
pub(in crate::store) fn columns_of(outcome: &TryOutcome) -> (Option<u16>, Option<&str>) {
    match outcome {
        TryOutcome::Status(status) => (Some(*status), None),
        TryOutcome::Error(error) => (None, Some(error)),
    }
}

/// The outcome that two columns hold, if they hold one.
///
/// # Errors
/// They hold what was never written there.
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
