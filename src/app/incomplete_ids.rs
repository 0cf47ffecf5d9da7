//! Warns of merchants whose list of old ids was not imported completely, where that matters (contract section 6, "Homes and
//! modes"). The rules cannot show it: the store has the marks.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::domain::{Direction, MerchantId};
use crate::rules::{Mode, RuleSet, Share};
use crate::store::{Store, StoreError};

/// How many merchants a line names.
const NAMED: usize = 10;

/// What of a merchant's direction needs its list to be complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Need {
    /// A share above nothing.
    Share,
    /// That old orders are not made anew.
    Repeats,
}

/// Warns once of each set of merchants.
#[derive(Default)]
pub(super) struct IncompleteIds {
    warned: Mutex<BTreeSet<(Need, String)>>,
    is_unread: AtomicBool,
}

impl IncompleteIds {
    /// Reports whether the marks could not be read the last time.
    pub(super) fn is_unread(&self) -> bool {
        self.is_unread.load(Ordering::Relaxed)
    }

    /// Logs a warning when merchants need complete lists under these rules and do not have them, unless the same was logged
    /// before.
    pub(super) async fn warn(&self, store: &dyn Store, rules: Arc<RuleSet>) {
        let found = incomplete(store, &rules).await;
        self.is_unread.store(found.is_err(), Ordering::Relaxed);
        let found = match found {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!(%error, "whether lists of old ids are complete could not be read yet");
                return;
            }
        };
        let before = {
            let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *warned, found.clone())
        };
        for need in [Need::Share, Need::Repeats] {
            let of_need = |set: &BTreeSet<(Need, String)>| -> Vec<String> {
                set.iter().filter(|(of, _)| *of == need).map(|(_, name)| name.clone()).collect()
            };
            let (now, before) = (of_need(&found), of_need(&before));
            if now.is_empty() || now == before {
                continue;
            }
            let more = now.len().saturating_sub(NAMED);
            let merchants = now.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
            match need {
                Need::Share => tracing::warn!(%merchants, more,
                    "mode staged makes none of their new orders here until `paybridge import-ids --complete` marks their lists \
                     of old ids as whole"),
                Need::Repeats => tracing::warn!(%merchants, more,
                    "there is a [legacy], and the lists of these merchants' old ids are not marked as whole: a repeat of an \
                     old order would be made anew; see `paybridge import-ids --complete`"),
            }
        }
    }
}

/// Returns the merchants, each with its direction, whose lists are needed and not complete.
async fn incomplete(store: &dyn Store, rules: &RuleSet) -> Result<BTreeSet<(Need, String)>, StoreError> {
    let mut found = BTreeSet::new();
    if rules.gateway.legacy.is_none() {
        return Ok(found);
    }
    for merchant in rules.merchants.values() {
        for direction in [Direction::Payin, Direction::Payout] {
            if let Some(need) = need(merchant.v1.mode, direction)
                && !store.ids_complete(&merchant.id, direction).await?
            {
                found.insert((need, name(&merchant.id, direction)));
            }
        }
    }
    Ok(found)
}

fn need(mode: Mode, direction: Direction) -> Option<Need> {
    match mode {
        Mode::Translate => Some(Need::Repeats),
        Mode::Staged(shares) => (shares.of(direction) != Share::default()).then_some(Need::Share),
        Mode::Legacy | Mode::Shadow => None,
    }
}

fn name(merchant: &MerchantId, direction: Direction) -> String {
    format!("{} ({})", merchant.as_str(), direction.as_str())
}
