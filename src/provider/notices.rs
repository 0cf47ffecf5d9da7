//! Warnings that are worth a line now and then, not one for each operation.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::domain::{ShopCode, UnixMillis};

/// How often a shop's trouble of one kind is told of, at most.
const BETWEEN: Duration = Duration::from_mins(1);
/// How many are remembered; beyond, all are forgotten, which costs some lines too many.
const REMEMBERED: usize = 4096;

/// When what was last told, and of whom.
#[derive(Debug, Default)]
pub struct Notices(Mutex<Told>);

#[derive(Debug, Default)]
struct Told {
    last: HashMap<(ShopCode, &'static str), UnixMillis>,
    /// The shops whose provider was last told to be silent.
    silent: HashSet<ShopCode>,
}

impl Notices {
    /// Whether it is time for a line about this trouble of a shop; if so, it counts as told.
    pub fn due(&self, shop: &ShopCode, trouble: &'static str, now: UnixMillis) -> bool {
        self.told().due(shop, trouble, now)
    }

    /// As [`Self::due`], of a provider that gives no result, by the kind of its silence: each kind has a cause of its own.
    pub fn silent(&self, shop: &ShopCode, kind: &'static str, now: UnixMillis) -> bool {
        let mut told = self.told();
        let due = told.due(shop, kind, now);
        if due {
            if told.silent.len() >= REMEMBERED {
                told.silent.clear();
            }
            told.silent.insert(shop.clone());
        }
        due
    }

    /// Whether a shop's provider, which has answered, was told to be silent; it is so once.
    pub fn answers_again(&self, shop: &ShopCode) -> bool {
        self.told().silent.remove(shop)
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Told {
    fn due(&mut self, shop: &ShopCode, trouble: &'static str, now: UnixMillis) -> bool {
        if self.last.len() >= REMEMBERED {
            self.last.clear();
        }
        let last = self.last.entry((shop.clone(), trouble)).or_insert(UnixMillis(i64::MIN));
        let due = now >= last.plus(BETWEEN);
        if due {
            *last = now;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trouble_is_told_once_a_minute_for_each_shop() {
        let (notices, [one, other]) = (Notices::default(), ["a", "b"].map(|code| ShopCode::new(code).unwrap()));
        let due = |shop, trouble, millis| notices.due(shop, trouble, UnixMillis(millis));
        assert!(due(&one, "x", 0) && !due(&one, "x", 59_999) && due(&one, "x", 60_000));
        assert!(due(&other, "x", 1) && due(&one, "y", 1));
    }

    #[test]
    fn each_kind_of_silence_is_told_and_its_end_once() {
        let (notices, [one, other]) = (Notices::default(), ["a", "b"].map(|code| ShopCode::new(code).unwrap()));
        let silent = |shop, kind, millis| notices.silent(shop, kind, UnixMillis(millis));
        assert!(!notices.answers_again(&one), "it was never silent");
        assert!(silent(&one, "refused", 0) && silent(&one, "timeout", 1) && !silent(&one, "timeout", 2));
        assert!(!notices.answers_again(&other));
        assert!(notices.answers_again(&one) && !notices.answers_again(&one));
        assert!(!silent(&one, "refused", 3) && !notices.answers_again(&one), "a flicker is not told of");
        assert!(silent(&one, "refused", 60_000) && notices.answers_again(&one));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let notices = Notices::default();
        for number in 0..=REMEMBERED {
            assert!(notices.silent(&ShopCode::new(&format!("s-{number}")).unwrap(), "timeout", UnixMillis(0)));
        }
        let told = notices.told();
        assert!(told.last.len() <= REMEMBERED && told.silent.len() <= REMEMBERED);
    }
}
