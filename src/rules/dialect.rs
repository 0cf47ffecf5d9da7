//! A dialect: the v1 wire format of some merchants (contract section 4).

pub(crate) mod samples;
pub(super) mod template;

use std::fmt;
use std::io::{self, Write};

use bytes::Bytes;
use http::Method;
use serde::Serialize;

use crate::domain::{Recipe, Status};
use crate::json::{self, JsonError};

/// A v1 wire format.
#[derive(Debug)]
pub struct Dialect {
    /// Its name, which is the name of its file.
    pub name: Box<str>,
    /// How requests and callbacks are signed.
    pub signature: Recipe,
    /// The names of its three headers as the dialect spells them, for callbacks over HTTP/1.
    pub header_names: [Box<str>; 3],
    /// Method and path of each endpoint.
    pub routes: Vec<(Endpoint, Method, Box<str>)>,
    /// Its names of statuses.
    pub statuses: StatusWords,
    /// Its reply shapes.
    pub replies: Replies,
    /// Whether `paymentData` `[]` is read as `{}`: PHP writes an empty array so.
    pub empty_list_is_object: bool,
}

/// An endpoint of v1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Endpoint {
    /// Creates a deposit.
    Payin,
    /// Creates a withdrawal.
    Payout,
    /// Returns the status of a deposit.
    PayinStatus,
    /// Returns the status of a withdrawal.
    PayoutStatus,
    /// Returns balances.
    Balance,
    /// Lists operations.
    Transactions,
}

impl Endpoint {
    /// Returns the key of `[routes]`, which is also the route's name in logs and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Payin => "payin",
            Self::Payout => "payout",
            Self::PayinStatus => "payin_status",
            Self::PayoutStatus => "payout_status",
            Self::Balance => "balance",
            Self::Transactions => "transactions",
        }
    }
}

/// The dialect's names of statuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusWords {
    /// For PENDING.
    pub pending: Box<str>,
    /// For SUCCESS.
    pub success: Box<str>,
    /// For FAILED.
    pub failed: Box<str>,
}

impl StatusWords {
    /// Returns the dialect's name of a status.
    #[must_use]
    pub const fn word(&self, status: Status) -> &str {
        match status {
            Status::Pending => &self.pending,
            Status::Success => &self.success,
            Status::Failed => &self.failed,
        }
    }
}

/// Reply templates that replace the default shapes; a reply without a template has its default shape.
#[derive(Default)]
pub struct Replies {
    pub(super) environment: minijinja::Environment<'static>,
    /// The names of the templates. Looking up a missing template in `environment` builds an error, and most dialects
    /// have few templates or none.
    names: Vec<Box<str>>,
}

impl Dialect {
    /// Renders the template of a reply or callback, if there is one. When the template fails, the default shape is used: the
    /// operation exists, and the merchant has to learn of it.
    #[must_use]
    pub fn rendered<T: Serialize>(&self, name: &str, values: impl FnOnce() -> T) -> Option<Bytes> {
        if !self.replies.has(name) {
            return None;
        }
        match self.replies.render(name, &values())? {
            Ok(body) => Some(body.into_boxed_str().into_boxed_bytes().into()),
            Err(cause) => {
                tracing::error!(%cause, dialect = %self.name, "a reply has its default shape");
                None
            }
        }
    }
}

impl Replies {
    /// Takes templates that are named after replies (`payin`, `payout`, `status`, `balance`, `transactions`, `error`,
    /// `callback`).
    #[must_use]
    pub fn new(environment: minijinja::Environment<'static>) -> Self {
        let names = environment.templates().map(|(name, _)| name.into()).collect();
        Self { environment, names }
    }

    /// Reports whether the dialect has a template for a reply.
    #[must_use]
    fn has(&self, name: &str) -> bool {
        self.names.iter().any(|known| **known == *name)
    }

    /// Renders a reply by its template; returns `None` when the dialect has no template for it. The result is checked
    /// to be JSON, because filters such as `safe` can write values that the samples at load time did not cover. After
    /// an error the reply is sent in its default shape.
    ///
    /// # Errors
    /// The template failed for these values, or did not render JSON; the text names the template, never a value.
    pub fn render(&self, name: &str, values: &impl Serialize) -> Option<Result<String, String>> {
        if !self.has(name) {
            return None;
        }
        let template = self.environment.get_template(name).ok()?;
        let rendered = render_bounded(&template, values);
        Some(rendered.map_err(|error| format!("reply template {name}: {:?}", error.kind())).and_then(|text| {
            let checked = Self::check_json(&text);
            checked.map(|()| text).map_err(|error| format!("reply template {name} did not render JSON: {error}"))
        }))
    }

    /// Checks that a text is one JSON value, which every parser reads in the same way.
    ///
    /// # Errors
    /// What is wrong and where, without any value or name of the text.
    pub(super) fn check_json(text: &str) -> Result<(), String> {
        json::read(text.as_bytes()).map(drop).map_err(|error| match error {
            JsonError::DuplicateKey(_) => "a member occurs twice".to_owned(),
            JsonError::TooDeep(_) => format!("more than {} levels", json::MAX_DEPTH),
            JsonError::NotUtf8 | JsonError::ByteOrderMark => "not JSON".to_owned(),
            JsonError::Malformed(at) | JsonError::Trailing(at) | JsonError::LoneSurrogate(at) => {
                format!("not valid JSON at byte {at}")
            }
        })
    }
}

/// The longest reply that a template may render, in bytes: ten times a page of 200 operations with all members at their
/// longest.
const LONGEST_REPLY: usize = 4 << 20;

/// Renders a template; fails when the result is longer than [`LONGEST_REPLY`].
pub(super) fn render_bounded(
    template: &minijinja::Template<'_, '_>,
    values: &impl Serialize,
) -> Result<String, minijinja::Error> {
    let mut text = Bounded(Vec::new());
    template.render_captured_to(minijinja::value::Serde(values), &mut text)?;
    String::from_utf8(text.0).map_err(|_| minijinja::Error::from(minijinja::ErrorKind::BadSerialization))
}

/// The bytes rendered so far. A write beyond [`LONGEST_REPLY`] fails.
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > LONGEST_REPLY {
            return Err(io::Error::other(format!("a reply has more than {} MiB", LONGEST_REPLY >> 20)));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for Replies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.names).finish()
    }
}
