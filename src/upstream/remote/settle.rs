//! Settling an entry of the journal: sending its body, and keeping what became of it before anybody is told.

use bytes::Bytes;

use super::Remote;
use super::asking::{Credentials, Deadline, Said};
use super::{answers, words};
use crate::failure::{Complaint, Failure};
use crate::rules::ApiKey;
use crate::store::{EngineAnswer, Entry};

/// What became of an entry whose body was sent.
pub(super) enum Settled {
    /// The engine has an operation for it: the entry with its answer, as it is kept.
    Made(Box<Entry>),
    /// The engine refused it, and the entry is withdrawn.
    Declined(Declined),
}

/// How an engine refused a create, in v1 words but for the member that the complaint is about.
#[derive(Debug)]
pub(super) enum Declined {
    /// A rule refuses it.
    Invalid(Complaint),
    /// The engine knows the order from other data.
    Conflict(Complaint),
}

/// What sending a body came to.
pub(super) enum Delivered {
    Made(EngineAnswer),
    Declined(Declined),
    /// Nobody knows.
    Unknown(Failure),
}

impl Remote {
    /// Sends an entry's body and keeps what comes of it. When that stays unknown, the entry is in doubt before its caller
    /// is told so.
    ///
    /// # Errors
    /// The outcome is unknown, or could not be kept: the entry stands, and the same request may be sent again.
    pub(super) async fn settle(&self, key: &ApiKey, entry: Entry, deadline: Deadline) -> Result<Settled, Failure> {
        match self.deliver(key, &entry, deadline).await {
            Delivered::Made(answer) => Ok(Settled::Made(Box::new(self.journal().answer(entry, answer).await?))),
            Delivered::Declined(declined) => {
                self.journal().withdraw(entry.id).await?;
                Ok(Settled::Declined(declined))
            }
            Delivered::Unknown(failure) => {
                self.journal().doubt(entry.id).await?;
                Err(failure)
            }
        }
    }

    /// Sends an entry's body, signed with a key's secret.
    pub(super) async fn deliver(&self, key: &ApiKey, entry: &Entry, deadline: Deadline) -> Delivered {
        let intent = &entry.intent;
        let body = Bytes::copy_from_slice(&intent.body);
        let said = match Credentials::signing(key, &body) {
            Ok(credentials) => self.post(intent.direction, &credentials, body, deadline).await,
            Err(failure) => Err(failure),
        };
        match said {
            Ok(Said::Done(body)) => match answers::created(intent.direction, &body) {
                Ok(answer) => Delivered::Made(answer),
                Err(cause) => Delivered::Unknown(Failure::BadEngineReply { cause }),
            },
            Ok(Said::Invalid(body)) => Delivered::Declined(Declined::Invalid(words::complaint(&body))),
            Ok(Said::Conflict(body)) => Delivered::Declined(Declined::Conflict(words::complaint(&body))),
            Ok(Said::Busy(busy, retry_after, _)) => Delivered::Unknown(Failure::EngineBusy { busy, retry_after }),
            Ok(Said::NotFound(_)) => {
                Delivered::Unknown(Failure::BadEngineReply { cause: "it answered HTTP 404 to a create".to_owned() })
            }
            Err(failure) => Delivered::Unknown(failure),
        }
    }
}
