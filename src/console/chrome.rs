//! What surrounds every page: who is signed in, what is broken, and the sign-in form.

use serde::Serialize;

use crate::domain::UnixMillis;

/// The meaning of a state or a message, which decides its colour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tone {
    /// Neither good nor bad.
    #[default]
    Plain,
    /// It went well.
    Good,
    /// It has to be watched.
    Warn,
    /// It failed, or is broken.
    Bad,
}

/// What surrounds every page.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Chrome {
    /// The user; `None` on the sign-in form and on errors without a session, which have no navigation.
    pub user: Option<SignedInUser>,
    /// Whether `[admin] read_only` is set.
    pub is_read_only: bool,
    /// What is broken now, such as refused rules, the worst first.
    pub banners: Vec<PageMessage>,
    /// The outcome of the action that led to this page.
    pub notice: Option<PageMessage>,
    /// The time the page is made.
    pub made_at: UnixMillis,
    /// The node that made the page.
    pub node: String,
    /// The version of the rules in force.
    pub rules_version: String,
    /// The version, commit and target of the running binary.
    pub build: String,
    /// The one-time key of the page's forms, sent in the field `form`. Only one form of a page is sent, because the reply
    /// takes the page's place.
    pub form_key: String,
    /// The merchants that a field of the page offers; empty on pages without one.
    pub merchants: Vec<MerchantChoice>,
}

/// A merchant that a field offers.
#[derive(Debug, Clone, Default, Serialize)]
pub struct MerchantChoice {
    /// The id.
    pub id: String,
    /// The name.
    pub name: String,
}

impl Chrome {
    /// Reports whether forms that change something are shown.
    #[must_use]
    pub fn can_act(&self) -> bool {
        !self.is_read_only && self.user.as_ref().is_some_and(|user| user.may_act)
    }
}

/// The signed-in user.
#[derive(Debug, Clone, Default, Serialize)]
pub struct SignedInUser {
    /// The user's name.
    pub name: String,
    /// The user's role, as a word.
    pub role: String,
    /// Whether the role allows actions.
    pub may_act: bool,
    /// Whether there is a session to sign out of: not for the user `local`.
    pub has_session: bool,
}

/// A sentence about something that is broken or was done.
#[derive(Debug, Clone, Default, Serialize)]
pub struct PageMessage {
    /// Its meaning.
    pub tone: Tone,
    /// The sentence.
    pub text: String,
    /// Where to look next.
    pub link: Option<PageLink>,
}

/// A link to a page of the console.
#[derive(Debug, Clone, Default, Serialize)]
pub struct PageLink {
    /// The path and query.
    pub href: String,
    /// The text.
    pub text: String,
}

/// The sign-in form: fields `token` and `to`.
#[derive(Debug, Clone, Default, Serialize)]
pub struct SignInView {
    /// The path to show after signing in.
    pub to: String,
    /// Whether the browser requests that path at once, since it may have a session whose cookie it did not send.
    pub is_repeated: bool,
    /// Why the last attempt failed.
    pub problem: Option<String>,
}
