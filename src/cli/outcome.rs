//! How commands end, and what all of them need: rules, a runtime, the wording of counts.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;

use crate::clock::{Clock, SystemClock};
use crate::domain::MerchantId;
use crate::operations::ActionRefusal;
use crate::rules::{self, LoadOptions, Merchant, Problems, RuleSet};
use crate::store::StoreError;

/// Why a command ends with another exit code than 0.
#[derive(Debug)]
pub enum CliError {
    /// The reason was already written to stderr.
    Reported,
    /// The reason, in one line.
    Failed(String),
    /// The arguments are wrong in a way that the parser cannot detect.
    Usage(String),
    /// A merchant in the report is not ready, or a statement differs.
    NotReady,
    /// The output could not be written.
    Output(io::Error),
}

impl CliError {
    /// Creates a failure with a one-line reason.
    pub fn failed(reason: impl fmt::Display) -> Self {
        Self::Failed(reason.to_string())
    }
}

impl From<io::Error> for CliError {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl From<ActionRefusal> for CliError {
    fn from(refusal: ActionRefusal) -> Self {
        Self::failed(refusal.reason())
    }
}

impl From<StoreError> for CliError {
    fn from(error: StoreError) -> Self {
        Self::failed(error)
    }
}

/// The result of a command.
pub type ExitOutcome = Result<(), CliError>;

pub(super) fn exit_code(outcome: ExitOutcome, err: &mut dyn Write) -> u8 {
    let (code, message) = match outcome {
        Ok(()) => return 0,
        Err(CliError::Reported) => return 1,
        Err(CliError::NotReady) => return 4,
        // The reader has closed the pipe, as `head` does, and needs no message.
        Err(CliError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => return 1,
        Err(CliError::Output(error)) => (1, format!("the output cannot be written: {error}")),
        Err(CliError::Failed(message)) => (1, message),
        Err(CliError::Usage(message)) => (2, message),
    };
    // If this cannot be written, the exit code still reports the failure.
    let _ = writeln!(err, "error: {message}");
    code
}

pub(super) const fn ok_if(done: bool) -> ExitOutcome {
    if done { Ok(()) } else { Err(CliError::Reported) }
}

/// Writes a JSON document on one line.
pub(super) fn write_json(document: &impl Serialize, out: &mut dyn Write) -> ExitOutcome {
    let json = serde_json::to_string(document).map_err(CliError::failed)?;
    Ok(writeln!(out, "{json}")?)
}

/// Loads the rules, or writes all their problems to `err`.
pub(super) fn load(directory: &Path, err: &mut dyn Write) -> Result<RuleSet, CliError> {
    rules::load(directory, SystemClock.now(), None, LoadOptions::default())
        .map_err(|problems| wrong_rules(directory, &problems, err))
}

/// Returns a merchant that the command line names.
pub(super) fn merchant<'a>(rules: &'a RuleSet, id: &MerchantId) -> Result<&'a Arc<Merchant>, CliError> {
    rules.merchants.get(id).ok_or_else(|| CliError::failed(rules.no_such_merchant(id.as_str())))
}

/// Notes that a filter names no merchant of the rules. The store may have rows of one that was removed, so that this ends
/// nothing.
pub(super) fn note_unknown(rules: &RuleSet, merchant: Option<&MerchantId>, err: &mut dyn Write) -> io::Result<()> {
    match merchant.filter(|id| !rules.merchants.contains_key(*id)) {
        Some(unknown) => writeln!(err, "note: {}", rules.no_such_merchant(unknown.as_str())),
        None => Ok(()),
    }
}

/// Runs a future on this thread. Tasks that still run when it ends do not delay the exit.
pub(super) fn on_runtime<T>(job: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CliError::failed)?;
    let outcome = runtime.block_on(job);
    runtime.shutdown_background();
    outcome
}

/// Writes every problem of a rule set with its place. A single problem of one line, such as a missing directory,
/// becomes the reason itself.
pub(super) fn wrong_rules(directory: &Path, problems: &Problems, err: &mut dyn Write) -> CliError {
    let (rendered, count) = (problems.rendered(), problems.errors().count());
    if problems.len() == 1 && !rendered.contains('\n') {
        return CliError::Failed(problems.to_string());
    }
    if let Err(error) = writeln!(err, "{rendered}\n") {
        return CliError::Output(error);
    }
    CliError::Failed(format!("the rules in {} cannot be used: {count} problem{}", directory.display(), plural(count)))
}

pub(super) const fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_become_exit_codes_and_one_line() {
        let ended = |outcome| {
            let mut err = Vec::new();
            (exit_code(outcome, &mut err), String::from_utf8(err).unwrap())
        };
        assert_eq!(ended(Ok(())), (0, String::new()));
        assert_eq!(ended(Err(CliError::Reported)), (1, String::new()));
        assert_eq!(ended(Err(CliError::failed("no"))), (1, "error: no\n".to_owned()));
        assert_eq!(ended(Err(CliError::NotReady)), (4, String::new()));
        assert_eq!(ended(Err(CliError::Usage("so".to_owned()))), (2, "error: so\n".to_owned()));
        assert_eq!(ended(Err(CliError::Output(io::ErrorKind::BrokenPipe.into()))), (1, String::new()));
        assert_eq!(ended(Err(CliError::Output(io::ErrorKind::StorageFull.into()))).0, 1);
    }

    #[test]
    fn rules_that_cannot_be_used_are_reported() {
        let directory = tempfile::tempdir().unwrap();
        let mut err = Vec::new();
        let stop = load(&directory.path().join("none"), &mut err).unwrap_err();
        assert!(matches!(stop, CliError::Failed(text) if text.contains("is missing") && !text.contains('\n')));
        assert!(err.is_empty());
        std::fs::write(directory.path().join("gateway.toml"), "[limits]\nbodies = 1\n").unwrap();
        // A warning, which is shown and does not count.
        std::fs::create_dir(directory.path().join("merchants")).unwrap();
        std::fs::write(directory.path().join("merchants/a b.toml"), "").unwrap();
        let stop = load(directory.path(), &mut err).unwrap_err();
        assert!(matches!(stop, CliError::Failed(text) if text.ends_with("cannot be used: 1 problem")));
        assert!(String::from_utf8(err).unwrap().contains("gateway.toml:2:1: "));
    }
}
