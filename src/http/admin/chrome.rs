//! What surrounds every page of the console, as its layout shows it.

use serde::Serialize;

use super::sessions::SignedIn;
use crate::domain::UnixMillis;
use crate::store::ActionRecord;

/// What surrounds a page.
#[derive(Debug, Default, Serialize)]
pub(super) struct Chrome<'a> {
    /// `None` on the sign-in form and on errors without a session, which have no navigation.
    pub user: Option<&'a SignedIn>,
    /// Whether `[admin] read_only` is set, so that no form that changes something is shown.
    pub is_read_only: bool,
    /// Why new requests are not accepted, if so.
    pub not_ready: Option<String>,
    pub are_rules_refused: bool,
    /// The outcome of the action that led to this page.
    pub notice: Option<ActionNotice>,
    pub made_at: UnixMillis,
    /// The node that made the page.
    pub node: String,
    /// The version of the rules in force.
    pub rules_version: String,
    /// The version, commit and target of the running binary.
    pub build: &'a str,
    /// The idempotency key of the page's forms. Only one form of a page is sent, because the reply takes the page's place.
    pub idempotency_key: String,
    /// The ids and names of the merchants that a field of the page offers.
    pub merchants: Vec<(String, String)>,
}

/// The action that led to a page; `None`: it cannot be shown there.
#[derive(Debug, Serialize)]
pub(super) struct ActionNotice {
    pub action: Option<ActionRecord>,
}
