//! `paybridge store finish-upgrade`: locks older releases out of the store, and narrows it.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use crate::cli::outcome::{CliError, ExitOutcome, on_runtime};
use crate::cli::progress::Progress;
use crate::cli::trail::{CommandTrail, outcome_of};
use crate::clock::{SystemClock, SystemRandomness};
use crate::rules::RuleSet;
use crate::store::{ActionRecord, FORMAT, Store, StoreAccess, UNTOUCHED, UpgradeWait, finish_upgrade, open_beside};

/// Finishes the upgrade of the store that the rules name, shows what it waits for, and prints one line. Leaves a row in
/// the audit trail.
///
/// # Errors
/// The store cannot be opened, read or written. Running it again continues.
pub(super) fn run(rules: &RuleSet, out: &mut dyn Write, err: &mut dyn Write) -> ExitOutcome {
    let finished = on_runtime(finish(rules, err))?;
    Ok(writeln!(out, "{}", reported(finished))?)
}

async fn finish(rules: &RuleSet, err: &mut dyn Write) -> Result<bool, CliError> {
    let random = Arc::new(SystemRandomness::default());
    let store =
        open_beside(&rules.gateway.store, StoreAccess::Change, random, Arc::default()).map_err(CliError::failed)?;
    let trail = CommandTrail { trail: &*store, rules_version: &rules.version, clock: &SystemClock };
    let target = format!("format {FORMAT}");
    let action = trail.begin(trail.action(ActionRecord::FINISH_UPGRADE, &target, Vec::new())).await?;
    let finished = wait(&*store, err).await;
    trail.end(action, &outcome_of(&finished, |finished| reported(*finished)), err).await?;
    let closed = store.close().await.map_err(CliError::failed);
    finished.and_then(|finished| closed.map(|()| finished))
}

async fn wait(store: &dyn Store, err: &mut dyn Write) -> Result<bool, CliError> {
    let mut progress =
        Progress::start("waiting for older gateways to leave", "s without one", Some(UNTOUCHED.as_secs()));
    let mut was_used = false;
    let report = |wait| {
        if wait == UpgradeWait::Used && !was_used {
            was_used = true;
            let note = "note: an older gateway uses the store; it leaves within seconds, unless its process hangs: end it then";
            progress.print_line(note, err);
        }
        let untouched = if let UpgradeWait::Untouched(time) = wait { time } else { Duration::ZERO };
        progress.at(untouched.as_secs(), err);
    };
    finish_upgrade(store, UNTOUCHED, report).await.map_err(CliError::failed)
}

fn reported(finished: bool) -> String {
    if finished {
        format!("the upgrade to format {FORMAT} is finished: older releases cannot serve the store any more")
    } else {
        format!("nothing to do: the upgrade to format {FORMAT} was finished before")
    }
}
