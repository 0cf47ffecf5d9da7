//! `paybridge store`: checks, backs up and moves the store that the rules name.

mod backup;
mod check;
mod copy;
mod rekey;

use std::io::Write;

use super::args::StoreCommand;
use super::{ExitOutcome, load};

/// Runs the command.
///
/// # Errors
/// The rules or the store cannot be used, or the command failed.
pub fn run(asked: &StoreCommand, out: &mut dyn Write, err: &mut dyn Write) -> ExitOutcome {
    match asked {
        StoreCommand::Check(asked) => check::run(&load(&asked.rules.rules, err)?, out, err),
        StoreCommand::Backup(asked) => backup::run(&load(&asked.rules.rules, err)?, &asked.file, out, err),
        StoreCommand::Copy(asked) => copy::run(&load(&asked.rules.rules, err)?, asked, out, err),
        StoreCommand::Rekey(asked) => rekey::run(&load(&asked.rules.rules, err)?, out),
    }
}
