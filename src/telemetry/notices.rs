//! Warnings that are worth a line now and then, not one for each thing that goes wrong.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::domain::UnixMillis;

/// How often somebody's trouble of one kind is told of, at most.
const BETWEEN: Duration = Duration::from_mins(1);
/// How many are remembered; beyond, all are forgotten, which costs some lines too many.
const REMEMBERED: usize = 4096;

/// When what was last told, and of whom: `K` names them, such as a shop, whose provider it is.
#[derive(Debug)]
pub struct Notices<K>(Mutex<Told<K>>);

#[derive(Debug)]
struct Told<K> {
    last: HashMap<(K, &'static str), UnixMillis>,
    /// Those last told to be silent.
    silent: HashSet<K>,
}

impl<K> Default for Notices<K> {
    fn default() -> Self {
        Self(Mutex::new(Told { last: HashMap::new(), silent: HashSet::new() }))
    }
}

impl<K: Clone + Eq + Hash> Notices<K> {
    /// Whether it is time for a line about this trouble of somebody; if so, it counts as told.
    pub fn due(&self, whose: &K, trouble: &'static str, now: UnixMillis) -> bool {
        self.told().due(whose, trouble, now)
    }

    /// As [`Self::due`], of somebody who gives no answer, by the kind of the silence: each kind has a cause of its own.
    pub fn silent(&self, whose: &K, kind: &'static str, now: UnixMillis) -> bool {
        let mut told = self.told();
        let due = told.due(whose, kind, now);
        if due {
            if told.silent.len() >= REMEMBERED {
                told.silent.clear();
            }
            told.silent.insert(whose.clone());
        }
        due
    }

    /// Whether somebody who has answered was told to be silent; it is so once.
    pub fn answers_again(&self, whose: &K) -> bool {
        self.told().silent.remove(whose)
    }

    fn told(&self) -> MutexGuard<'_, Told<K>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Clone + Eq + Hash> Told<K> {
    fn due(&mut self, whose: &K, trouble: &'static str, now: UnixMillis) -> bool {
        if self.last.len() >= REMEMBERED {
            self.last.clear();
        }
        let last = self.last.entry((whose.clone(), trouble)).or_insert(UnixMillis(i64::MIN));
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
    use crate::domain::ShopCode;

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
