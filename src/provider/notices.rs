//! Warnings that are worth a line now and then, not one for each operation.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::domain::{ShopCode, UnixMillis};

/// How often a shop's trouble of one kind is told of, at most.
const BETWEEN: Duration = Duration::from_mins(1);
/// How many are remembered; beyond, all are forgotten, which costs some lines too many.
const REMEMBERED: usize = 4096;

/// When what was last told.
#[derive(Debug, Default)]
pub struct Notices {
    told: Mutex<HashMap<(ShopCode, &'static str), UnixMillis>>,
}

impl Notices {
    /// Whether it is time for a line about this trouble of a shop; if so, it counts as told.
    pub fn due(&self, shop: &ShopCode, trouble: &'static str, now: UnixMillis) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() >= REMEMBERED {
            told.clear();
        }
        let last = told.entry((shop.clone(), trouble)).or_insert(UnixMillis(i64::MIN));
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
}
