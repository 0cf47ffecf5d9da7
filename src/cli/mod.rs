//! The command line (contract section 12). Results go to stdout, messages to stderr; the exit code is 0 for success, 1
//! for failure, 2 for wrong usage.

pub mod args;
pub mod callbacks;
pub mod certs;
pub mod check;
mod columns;
pub mod demo;
pub mod diff;
pub mod import_ids;
pub mod input;
pub mod lines;
pub mod listen;
pub mod progress;
pub mod schema;
pub mod serve;
pub mod sign;
pub mod signals;
pub mod store;
pub mod translate;

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anstream::{AutoStream, ColorChoice};
use clap::{CommandFactory, Parser};

use crate::clock::{Clock, SystemClock};
use crate::domain::MerchantId;
use crate::rules::{self, LoadOptions, Merchant, Problems, RuleSet, did_you_mean};
use args::{Arguments, Command};

/// Why a command ends with another exit code than 0.
#[derive(Debug)]
pub enum CliError {
    /// The reason was already written to stderr.
    Reported,
    /// The reason, in one line.
    Failed(String),
    /// The arguments are wrong in a way that the parser cannot detect.
    Usage(String),
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

/// The result of a command.
pub type ExitOutcome = Result<(), CliError>;

/// Runs the command that the arguments name; the first argument is the program's name.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    // Not locked: while the gateway serves, another thread writes its log.
    let (mut out, mut err) = (io::stdout(), io::stderr());
    let arguments = match Arguments::try_parse_from(args) {
        Ok(arguments) => arguments,
        Err(usage) => {
            // A help text that cannot be written is not a failure.
            let _ = usage.print();
            return ExitCode::from(if usage.use_stderr() { 2 } else { 0 });
        }
    };
    let outcome = dispatch(arguments.command, &mut out, &mut err).and_then(|()| Ok(out.flush()?));
    ExitCode::from(exit_code(outcome, &mut err))
}

fn exit_code(outcome: ExitOutcome, err: &mut dyn Write) -> u8 {
    let (code, message) = match outcome {
        Ok(()) => return 0,
        Err(CliError::Reported) => return 1,
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

fn dispatch(command: Command, out: &mut dyn Write, err: &mut dyn Write) -> ExitOutcome {
    match command {
        Command::Serve(args) => serve::run(&args, out, err),
        Command::Check(args) => {
            let colored = AutoStream::choice(&io::stderr()) != ColorChoice::Never;
            ok_if(check::run(&args, colored, out, err)?)
        }
        Command::Diff(args) => diff::run(&args, out, err),
        Command::Translate(args) => {
            let rules = load(&args.rules.rules, err)?;
            let merchant = merchant(&rules, &args.merchant)?;
            let body = input::read(args.file.as_deref(), rules.gateway.limits.body, err)?;
            ok_if(translate::run(&rules, merchant, args.kind, args.explain, &body, out, err)?)
        }
        Command::Sign(args) => {
            let rules = load(&args.rules.rules, err)?;
            sign::run(&rules, &args, SystemClock.now(), out, err)
        }
        Command::Listen(args) => listen::run(&load(&args.rules.rules, err)?, &args, out, err),
        Command::Certs(args) => certs::run(&args, SystemClock.now(), out, err),
        Command::ImportIds(args) => import_ids::run(&load(&args.rules.rules, err)?, &args, out, err),
        Command::Callbacks(args) => callbacks::run(&args, out, err),
        Command::Store(args) => store::run(&args, out, err),
        Command::Schema(args) => Ok(schema::run(args.kind, out)?),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "paybridge", &mut script);
            Ok(out.write_all(&script)?)
        }
    }
}

const fn ok_if(done: bool) -> ExitOutcome {
    if done { Ok(()) } else { Err(CliError::Reported) }
}

/// Loads the rules, or writes all their problems to `err`.
fn load(directory: &Path, err: &mut dyn Write) -> Result<RuleSet, CliError> {
    rules::load(directory, SystemClock.now(), None, LoadOptions::default())
        .map_err(|problems| wrong_rules(directory, &problems, err))
}

/// Returns a merchant that the command line names.
fn merchant<'a>(rules: &'a RuleSet, id: &MerchantId) -> Result<&'a Arc<Merchant>, CliError> {
    rules.merchants.get(id).ok_or_else(|| {
        let near = did_you_mean(id.as_str(), rules.merchants.keys().map(MerchantId::as_str));
        let near = near.map_or_else(String::new, |near| format!(" ({near})"));
        CliError::failed(format!("there is no merchant {:?} in the rules{near}", id.as_str()))
    })
}

/// Runs a future on this thread. Tasks that still run when it ends do not delay the exit.
fn on_runtime<T>(job: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CliError::failed)?;
    let outcome = runtime.block_on(job);
    runtime.shutdown_background();
    outcome
}

/// Writes every problem of a rule set with its place. A single problem of one line, such as a missing directory,
/// becomes the reason itself.
fn wrong_rules(directory: &Path, problems: &Problems, err: &mut dyn Write) -> CliError {
    let (rendered, count) = (problems.rendered(), problems.len());
    if count == 1 && !rendered.contains('\n') {
        return CliError::Failed(problems.to_string());
    }
    if let Err(error) = writeln!(err, "{rendered}\n") {
        return CliError::Output(error);
    }
    CliError::Failed(format!("the rules in {} cannot be used: {count} problem{}", directory.display(), plural(count)))
}

const fn plural(count: usize) -> &'static str {
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
        assert_eq!(ended(Err(CliError::Usage("so".to_owned()))), (2, "error: so\n".to_owned()));
        assert_eq!(ended(Err(CliError::Output(io::ErrorKind::BrokenPipe.into()))), (1, String::new()));
        assert_eq!(ended(Err(CliError::Output(io::ErrorKind::StorageFull.into()))).0, 1);
    }

    #[test]
    fn completions_are_printed() {
        let mut out = Vec::new();
        dispatch(Command::Completions { shell: clap_complete::Shell::Bash }, &mut out, &mut Vec::new()).unwrap();
        let script = String::from_utf8(out).unwrap();
        assert!(script.contains("translate") && script.contains("gateway merchant shop dialect"), "{script}");
    }

    #[test]
    fn rules_that_cannot_be_used_are_reported() {
        let directory = tempfile::tempdir().unwrap();
        let mut err = Vec::new();
        let stop = load(&directory.path().join("none"), &mut err).unwrap_err();
        assert!(matches!(stop, CliError::Failed(text) if text.contains("is missing") && !text.contains('\n')));
        assert!(err.is_empty());
        std::fs::write(directory.path().join("gateway.toml"), "[limits]\nbodies = 1\n").unwrap();
        let stop = load(directory.path(), &mut err).unwrap_err();
        assert!(matches!(stop, CliError::Failed(text) if text.ends_with("cannot be used: 1 problem")));
        assert!(String::from_utf8(err).unwrap().contains("gateway.toml:2:1: "));
    }
}
