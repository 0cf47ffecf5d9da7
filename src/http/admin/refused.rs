//! Why a handler refuses a request that was admitted, by the kind of the route.

use crate::error::RequestError;
use crate::operations::ActionRefusal;
use crate::store::StoreError;

/// Who makes the requests of a route, which decides how they are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RouteKind {
    /// Supervisors, without a user.
    Probe,
    /// Programs: refusals are JSON.
    Program,
    /// People, in a browser: refusals are pages, and without a session it is sent to the sign-in form.
    Page,
    /// Their browser, without a user.
    Static,
}

/// Why a handler refuses a request.
pub(super) enum Refused {
    /// A parameter or a field is wrong.
    Invalid(RequestError),
    /// There is no such thing; what there is not, as a part of a sentence, unless the path names it.
    NotFound(Option<String>),
    /// The state of an operation, or the user, does not allow an action.
    Action(ActionRefusal),
    /// The store does not respond, or the action takes long and continues.
    Unavailable(String),
}

impl From<RequestError> for Refused {
    fn from(error: RequestError) -> Self {
        Self::Invalid(error)
    }
}

impl From<ActionRefusal> for Refused {
    fn from(refusal: ActionRefusal) -> Self {
        Self::Action(refusal)
    }
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

impl Refused {
    /// Returns the reason, as a part of a sentence.
    pub(super) fn reason(&self) -> String {
        match self {
            Self::Invalid(error) => error.to_string(),
            Self::NotFound(reason) => reason.as_deref().unwrap_or("there is no such thing").to_owned(),
            Self::Action(refusal) => refusal.reason().to_owned(),
            Self::Unavailable(reason) => reason.clone(),
        }
    }
}
