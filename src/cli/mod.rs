//! The command line (contract section 12). Results go to stdout, messages to stderr; the exit code is 0 for success, 1
//! for failure, 2 for wrong usage, 4 for a merchant that is not ready or a statement that differs.

pub mod args;
mod batches;
pub mod callbacks;
pub mod certs;
pub mod check;
mod columns;
mod csv_records;
pub mod demo;
pub mod diff;
mod export;
mod health;
pub mod import_ids;
pub mod input;
mod line_report;
pub mod lines;
pub mod listen;
pub mod man;
pub mod operations;
mod outcome;
pub mod progress;
pub mod readiness;
mod reconcile;
mod rows;
pub mod schema;
pub mod serve;
pub mod sign;
pub mod signals;
pub mod store;
pub mod stub;
mod trail;
pub mod translate;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use anstream::{AutoStream, ColorChoice};
use clap::{CommandFactory, Parser};

use crate::clock::{Clock, SystemClock};
use args::{Arguments, Command};
pub use outcome::{CliError, ExitOutcome};
use outcome::{exit_code, load, merchant, ok_if};

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
            ok_if(translate::run(&rules, merchant, args.direction, args.explain, &body, out, err)?)
        }
        Command::Sign(args) => {
            let rules = load(&args.rules.rules, err)?;
            sign::run(&rules, &args, SystemClock.now(), out, err)
        }
        Command::Listen(args) => listen::run(&args, out, err),
        Command::Certs(args) => certs::run(&args, SystemClock.now(), out, err),
        Command::ImportIds(args) => import_ids::run(&load(&args.rules.rules, err)?, &args, out, err),
        Command::Readiness(args) => readiness::run(&args, out, err),
        Command::Callbacks(args) => callbacks::run(&args, out, err),
        Command::Operations(args) => operations::run(&args, out, err),
        Command::Export(args) => export::run(&args, out, err),
        Command::Reconcile(args) => reconcile::run(&args, out, err),
        Command::Store(args) => store::run(&args, out, err),
        Command::Health(args) => health::run(&args.rules, err),
        Command::Schema(args) => Ok(schema::run(args.kind, out)?),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "paybridge", &mut script);
            Ok(out.write_all(&script)?)
        }
        Command::Man(args) => man::run(&args, out),
        Command::Stub(stub) => stub::run(stub, out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completions_are_printed() {
        let mut out = Vec::new();
        dispatch(Command::Completions { shell: clap_complete::Shell::Bash }, &mut out, &mut Vec::new()).unwrap();
        let script = String::from_utf8(out).unwrap();
        assert!(script.contains("translate") && script.contains("gateway merchant shop dialect"), "{script}");
    }
}
