//! `paybridge store rekey`: replaces the key that wraps the store's data keys.

use std::io::Write;
use std::sync::Arc;

use crate::cli::outcome::{CliError, ExitOutcome, on_runtime, plural};
use crate::cli::trail::{CommandTrail, outcome_of};
use crate::clock::{SystemClock, SystemRandomness};
use crate::rules::RuleSet;
use crate::store::{ActionRecord, Rewrapped, StoreAccess, open_beside, rewrap_keys};

/// Wraps the data keys of the store that the rules name with the first of `store.keys`, and prints one line. Leaves a
/// row in the audit trail.
///
/// # Errors
/// The store cannot be opened with these keys, or cannot be written: no data key is changed.
pub(super) fn run(rules: &RuleSet, out: &mut dyn Write, err: &mut dyn Write) -> ExitOutcome {
    let rewrapped = on_runtime(rewrap(rules, err))?;
    Ok(writeln!(out, "{}", reported(&rewrapped))?)
}

async fn rewrap(rules: &RuleSet, err: &mut dyn Write) -> Result<Rewrapped, CliError> {
    let (settings, random) = (&rules.gateway.store, || Arc::new(SystemRandomness::default()));
    let store = open_beside(settings, StoreAccess::Change, random(), Arc::default()).map_err(CliError::failed)?;
    let trail = CommandTrail { trail: &*store, rules_version: &rules.version, clock: &SystemClock };
    let action = trail.begin(trail.action(ActionRecord::REKEY, "data keys", Vec::new())).await?;
    let rewrapped = rewrap_keys(settings, random()).map_err(CliError::failed);
    trail.end(action, &outcome_of(&rewrapped, reported), err).await?;
    let closed = store.close().await.map_err(CliError::failed);
    rewrapped.and_then(|rewrapped| closed.map(|()| rewrapped))
}

fn reported(Rewrapped { all, before }: &Rewrapped) -> String {
    let many = |count: usize| format!("{count} data key{}", plural(count));
    if before.is_empty() {
        return format!("nothing to do: {} are wrapped with key 1 of store.keys", many(*all));
    }
    let changed = before.values().sum();
    let from: Vec<_> = before.iter().map(|(position, count)| format!("{count} with key {position}")).collect();
    format!("wrapped {} with key 1 of store.keys (before: {})", many(changed), from.join(" and "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_reported_by_their_positions() {
        let stated =
            |before: &[(usize, usize)]| reported(&Rewrapped { all: 3, before: before.iter().copied().collect() });
        assert_eq!(stated(&[]), "nothing to do: 3 data keys are wrapped with key 1 of store.keys");
        assert_eq!(stated(&[(2, 1)]), "wrapped 1 data key with key 1 of store.keys (before: 1 with key 2)");
        assert_eq!(
            stated(&[(2, 1), (4, 2)]),
            "wrapped 3 data keys with key 1 of store.keys (before: 1 with key 2 and 2 with key 4)"
        );
    }
}
