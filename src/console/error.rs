//! The pages of refused requests. Each explains what happened and leads to a page that works.

use serde::Serialize;

/// Why a request of a browser is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsoleError {
    /// 400: a parameter or field is wrong.
    BadRequest,
    /// 403: the user's role does not allow it.
    MissingRole,
    /// 403: `[admin] read_only` is set.
    ReadOnly,
    /// 403: the request names another host or is of another origin, or the browser does not state its origin.
    OtherOrigin,
    /// 404: there is no such page or thing.
    NotFound,
    /// 429: too many failed sign-ins of the address.
    TooManyAttempts,
    /// 503: the store or the audit trail is away.
    Unavailable,
}

impl ConsoleError {
    /// All errors.
    pub const ALL: [Self; 7] = [
        Self::BadRequest,
        Self::MissingRole,
        Self::ReadOnly,
        Self::OtherOrigin,
        Self::NotFound,
        Self::TooManyAttempts,
        Self::Unavailable,
    ];

    /// Returns the title of the page.
    #[must_use]
    pub const fn title(self) -> &'static str {
        self.texts().0
    }

    /// Returns the title, and what happened and what helps.
    const fn texts(self) -> (&'static str, &'static str) {
        match self {
            Self::BadRequest => ("This request cannot be read", "Nothing was changed. Go back and correct the value."),
            Self::MissingRole => (
                "Your role does not allow this",
                "Viewers look, operators act. Nothing was changed. Sign in with the token of an operator.",
            ),
            Self::ReadOnly => (
                "This console is read-only",
                "Nothing was changed. To act from here, set read_only = false under [admin] in gateway.toml; it needs no restart.",
            ),
            Self::OtherOrigin => (
                "This request came from another place",
                "Nothing was changed. Open the console by a name of its own, and send the forms of its own pages. If a proxy is in \
                 between, it must pass Host and Origin on.",
            ),
            Self::NotFound => ("There is nothing here", "The address may be mistyped, or what it named was removed."),
            Self::TooManyAttempts => (
                "Too many failed attempts",
                "Further wrong tokens of this address are refused for a minute. The right token still works.",
            ),
            Self::Unavailable => (
                "The store does not respond",
                "Accepted payments are safe. The audit trail shows whether an action was begun. Try again in a few seconds.",
            ),
        }
    }
}

/// The page of a refused request.
#[derive(Debug, Clone)]
pub struct ErrorView {
    /// The error.
    pub error: ConsoleError,
    /// What exactly is wrong, if more is known.
    pub detail: Option<String>,
    /// The request's id, which log lines have too.
    pub request_id: String,
}

/// The values of the template.
#[derive(Serialize)]
pub(super) struct ShownError<'a> {
    advice: &'static str,
    detail: Option<&'a str>,
    request_id: &'a str,
}

impl ErrorView {
    pub(super) fn shown(&self) -> ShownError<'_> {
        let Self { error, detail, request_id } = self;
        ShownError { advice: error.texts().1, detail: detail.as_deref(), request_id }
    }
}
