//! The rows of commands in the audit trail (contract section 13, "The console"): one for each thing that a command
//! changes.

use std::env;
use std::io::{self, Write};

use super::outcome::CliError;
use crate::clock::{Clock, Random, SystemRandomness};
use crate::store::{ActionId, AuditTrail, BeginOutcome, IdempotencyKey, NewAction, StoreError};

/// Writes the rows of one command.
pub(super) struct CommandTrail<'a> {
    pub(super) trail: &'a dyn AuditTrail,
    /// The version of the rules that the command uses.
    pub(super) rules_version: &'a str,
    pub(super) clock: &'a dyn Clock,
}

impl CommandTrail<'_> {
    /// Returns an action of this command that begins now. It has a key of its own, so that it may be begun again when
    /// the outcome of an attempt is unknown.
    pub(super) fn action(
        &self,
        kind: &'static str,
        target: &str,
        parameters: Vec<(&'static str, Box<str>)>,
    ) -> NewAction {
        let random = SystemRandomness::default();
        let mut request_id = [0; 16];
        random.fill(&mut request_id);
        NewAction {
            at: self.clock.now(),
            user: user().into(),
            role: Box::default(),
            address: Box::default(),
            request_id: hex::encode(request_id).into(),
            action: kind,
            target: target.into(),
            parameters,
            rules_version: self.rules_version.into(),
            idempotency_key: Some(IdempotencyKey::draw(&random)),
        }
    }

    /// Writes the row of an action of this command, before the action takes effect.
    ///
    /// # Errors
    /// The row is not on disk: the action must not take effect.
    pub(super) async fn begin(&self, action: NewAction) -> Result<ActionId, StoreError> {
        Ok(match self.trail.begin_action(action).await? {
            BeginOutcome::New(id) => id,
            BeginOutcome::Repeated(row) => row.id,
        })
    }

    /// Completes the row of an action. If the store does not allow that, prints a note: what was done stays done.
    ///
    /// # Errors
    /// The note cannot be written.
    pub(super) async fn end(&self, id: ActionId, outcome: &str, err: &mut dyn Write) -> io::Result<()> {
        if let Err(error) = self.trail.end_action(id, self.clock.now(), outcome).await {
            writeln!(err, "note: the audit trail shows this command as unfinished: {error}")?;
        }
        Ok(())
    }
}

/// Returns the outcome of work, for the audit trail.
pub(super) fn outcome_of<T>(done: &Result<T, CliError>, stated: impl FnOnce(&T) -> String) -> String {
    match done {
        Ok(done) => stated(done),
        Err(CliError::Failed(reason) | CliError::Usage(reason)) => format!("failed: {reason}"),
        Err(CliError::Output(error)) => format!("the output cannot be written: {error}"),
        Err(CliError::Reported | CliError::NotReady) => "failed".to_owned(),
    }
}

/// Returns the user of a command: `cli:` and the system's name of the user, or its number if it has no name.
pub(super) fn user() -> String {
    let named = ["USER", "LOGNAME"].into_iter().filter_map(env::var_os).find(|name| !name.is_empty());
    let name = named
        .map_or_else(|| rustix::process::getuid().as_raw().to_string(), |name| name.to_string_lossy().into_owned());
    format!("cli:{name}")
}
