//! Why no host took a connection, as one error.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::error::{DbError, SqlState};
use tokio_postgres::{Config, Error, NoTls};

use super::words::with_source;

/// Each host with its error; `None`: it did not answer.
#[derive(Debug)]
pub(super) struct Refusals(Vec<(String, Option<Error>)>);

impl Refusals {
    pub(super) const fn new(refusals: Vec<(String, Option<Error>)>) -> Self {
        Self(refusals)
    }

    /// Those that an error is made of.
    pub(super) fn of(error: &Error) -> Option<&Self> {
        let source: &io::Error = std::error::Error::source(error)?.downcast_ref()?;
        source.get_ref()?.downcast_ref()
    }

    /// What a server says tells more than that another one is no leader, or not there.
    pub(super) fn code(&self) -> Option<&SqlState> {
        self.0.iter().find_map(|(_, error)| error.as_ref()?.code())
    }

    /// Each host with its reason, in words for what a server said.
    pub(super) fn reported(&self, describe: impl Fn(&DbError) -> String) -> String {
        let reason = |error: &Error| error.as_db_error().map_or_else(|| with_source(error), &describe);
        let reported = |(host, error): &(String, Option<Error>)| {
            format!("{host}: {}", error.as_ref().map_or_else(|| "does not answer".to_owned(), reason))
        };
        self.0.iter().map(reported).collect::<Vec<_>>().join("; ")
    }

    /// The pool wants the driver's error, which only the driver makes: it is led to a connection that fails with this.
    pub(super) async fn into_error(self) -> Error {
        match Config::new().user("none").connect_raw(Refusing(Some(self)), NoTls).await {
            Err(error) => error,
            // It cannot be: there is nobody to talk to. Whoever waits has a limit.
            Ok(_) => std::future::pending().await,
        }
    }
}

impl fmt::Display for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no host takes connections")
    }
}

impl std::error::Error for Refusals {}

/// A connection that fails at the first byte.
struct Refusing(Option<Refusals>);

impl Refusing {
    fn fail<T>(&mut self) -> Poll<io::Result<T>> {
        Poll::Ready(Err(self.0.take().map_or_else(|| io::ErrorKind::BrokenPipe.into(), io::Error::other)))
    }
}

impl AsyncRead for Refusing {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.fail()
    }
}

impl AsyncWrite for Refusing {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        self.fail()
    }

    fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.fail()
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.fail()
    }
}
