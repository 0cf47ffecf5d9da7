//! `paybridge store`: checks, backs up, adopts, moves and upgrades the store that the rules name.

mod adopt;
mod backup;
mod check;
mod copy;
mod finish_upgrade;
mod lost_ids;
mod rekey;
mod version;

use std::io::Write;

use super::args::StoreCommand;
use super::outcome::{ExitOutcome, load};

/// Runs the command.
///
/// # Errors
/// The rules or the store cannot be used, or the command failed.
pub fn run(args: &StoreCommand, out: &mut dyn Write, err: &mut dyn Write) -> ExitOutcome {
    match args {
        StoreCommand::Check(args) => check::run(&load(&args.rules.rules, err)?, out, err),
        StoreCommand::Backup(args) => backup::run(&load(&args.rules.rules, err)?, &args.file, out, err),
        StoreCommand::Adopt(args) => adopt::run(&load(&args.rules.rules, err)?, args, out, err),
        StoreCommand::Copy(args) => copy::run(&load(&args.rules.rules, err)?, args, out, err),
        StoreCommand::Version(args) => version::run(&load(&args.rules.rules, err)?, args.format, out),
        StoreCommand::FinishUpgrade(args) => finish_upgrade::run(&load(&args.rules.rules, err)?, out, err),
        StoreCommand::Rekey(args) => rekey::run(&load(&args.rules.rules, err)?, out, err),
    }
}
