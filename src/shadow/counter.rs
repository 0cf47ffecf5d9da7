//! Counts of checked creates in memory, between two commits to the store. Everything has a bound.

use std::collections::{HashMap, HashSet};

use super::verdict::{CreateVerdict, Loss, Refusal};
use crate::domain::{Direction, Fingerprint, MerchantId, UnixMillis};
use crate::store::{CheckClass, CheckCount};
use crate::wire::v1::MEMBERS;

/// The most counts between two commits; what has no room is counted as not checked.
const MOST_COUNTS: usize = 10_000;

/// The most members of a merchant that no rule has and that are counted by name; the others count as one.
const MOST_MEMBERS: usize = 200;

/// What legacy did with a create.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LegacyOutcome {
    /// It accepted it.
    Accepted,
    /// It refused the content.
    Refused,
    /// Neither can be concluded from its reply.
    Unclear,
}

impl LegacyOutcome {
    /// Concludes from the status of legacy's reply; `None`: there was no reply.
    #[must_use]
    pub const fn of_status(status: Option<u16>) -> Self {
        match status {
            Some(200..=299) => Self::Accepted,
            Some(400 | 422) => Self::Refused,
            _ => Self::Unclear,
        }
    }
}

/// A v1 create that was checked.
#[derive(Debug, Clone, Copy)]
pub struct CheckedCreate<'c> {
    /// Its merchant.
    pub merchant: &'c MerchantId,
    /// The merchant's [`rules_fingerprint`](crate::rules::Merchant::rules_fingerprint) that it was checked under.
    pub rules: Fingerprint,
    /// Payin or payout.
    pub direction: Direction,
    /// What v2 would do.
    pub verdict: &'c CreateVerdict,
    /// What legacy did.
    pub legacy: LegacyOutcome,
    /// The sample of its body.
    pub sample: &'c str,
    /// When it was checked.
    pub at: UnixMillis,
}

/// What identifies a count.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct CountKey {
    merchant: MerchantId,
    rules: Fingerprint,
    shop: Box<str>,
    direction: Direction,
    class: CheckClass,
    member: Box<str>,
    reason: Box<str>,
    file: Box<str>,
    key: Box<str>,
}

#[derive(Debug)]
struct Counted {
    count: u64,
    since: UnixMillis,
    samples: Vec<Box<str>>,
}

/// Counts checked creates until they are stored.
#[derive(Debug, Default)]
pub struct Counter {
    counts: HashMap<CountKey, Counted>,
    /// By merchant, its latest rules and the members counted under them that no rule has. They outlive the counts.
    members: HashMap<MerchantId, (Fingerprint, HashSet<Box<str>>)>,
}

impl Counter {
    /// Reports whether the members counted by name under these rules of a merchant are known.
    #[must_use]
    pub fn knows_members(&self, merchant: &MerchantId, rules: Fingerprint) -> bool {
        self.members.get(merchant).is_some_and(|(known, _)| *known == rules)
    }

    /// Learns which members were counted by name, also by other processes, from the stored counts under these rules of a
    /// merchant: the bound holds for all of them together.
    pub fn learn_members(&mut self, merchant: &MerchantId, rules: Fingerprint, stored: Vec<CheckCount>) {
        let members = stored.into_iter().map(|count| count.member);
        let members = members.filter(|member| !member.is_empty() && !MEMBERS.contains(&&**member));
        self.members.insert(merchant.clone(), (rules, members.collect()));
    }

    /// Counts a checked create.
    pub fn record(&mut self, check: &CheckedCreate<'_>) {
        let CreateVerdict { shop, refusal, losses } = check.verdict;
        let base = |class| CountKey {
            merchant: check.merchant.clone(),
            rules: check.rules,
            shop: shop.clone(),
            direction: check.direction,
            class,
            member: Box::default(),
            reason: Box::default(),
            file: Box::default(),
            key: Box::default(),
        };
        let mut keys = vec![base(if refusal.is_none() { CheckClass::WouldCreate } else { CheckClass::WouldRefuse })];
        match (check.legacy, refusal) {
            (LegacyOutcome::Unclear, _) => keys.push(base(CheckClass::NotCompared)),
            (LegacyOutcome::Accepted, Some(Refusal { member, reason, file, key, is_named })) => {
                let member = if *is_named { member.clone() } else { self.member(check, member) };
                let (reason, file, key) = (reason.clone(), file.clone(), key.clone());
                keys.push(CountKey { member, reason, file, key, ..base(CheckClass::Blocker) });
            }
            (LegacyOutcome::Refused, None) => keys.push(base(CheckClass::Widening)),
            (LegacyOutcome::Accepted, None) | (LegacyOutcome::Refused, Some(_)) => {}
        }
        let mut lost = HashSet::new();
        for Loss { member, reason } in losses {
            let member = if MEMBERS.contains(&&**member) { member.clone() } else { self.member(check, member) };
            let key = CountKey { member, reason: reason.clone(), ..base(CheckClass::Loss) };
            if lost.insert(key.clone()) {
                keys.push(key);
            }
        }
        let new = keys.iter().filter(|key| !self.counts.contains_key(key)).count();
        if new > 0 && self.counts.len() + new > MOST_COUNTS {
            return self.not_checked(check.merchant, check.rules, shop, check.direction, check.at);
        }
        for key in keys {
            let is_total =
                matches!(key.class, CheckClass::WouldCreate | CheckClass::WouldRefuse | CheckClass::NotCompared);
            self.add(key, check.at, Some(check.sample).filter(|_| !is_total));
        }
    }

    /// Counts a create that was not checked, for lack of room. `shop` is empty where it is not known.
    pub fn not_checked(
        &mut self,
        merchant: &MerchantId,
        rules: Fingerprint,
        shop: &str,
        direction: Direction,
        at: UnixMillis,
    ) {
        // Not bounded by `MOST_COUNTS`: merchants, shops and directions are.
        let key = CountKey {
            merchant: merchant.clone(),
            rules,
            shop: shop.into(),
            direction,
            class: CheckClass::NotChecked,
            member: Box::default(),
            reason: Box::default(),
            file: Box::default(),
            key: Box::default(),
        };
        self.add(key, at, None);
    }

    /// Returns the counts since the last call.
    #[must_use]
    pub fn drain(&mut self) -> Vec<CheckCount> {
        let counts = std::mem::take(&mut self.counts).into_iter();
        let count = |(of, counted): (CountKey, Counted)| {
            let CountKey { merchant, rules, shop, direction, class, member, reason, file, key } = of;
            let Counted { count, since, samples } = counted;
            CheckCount { merchant, rules, shop, direction, class, member, reason, file, key, count, since, samples }
        };
        counts.map(count).collect()
    }

    fn add(&mut self, key: CountKey, at: UnixMillis, sample: Option<&str>) {
        let counted = self.counts.entry(key).or_insert_with(|| Counted { count: 0, since: at, samples: Vec::new() });
        counted.count = counted.count.saturating_add(1);
        counted.since = counted.since.min(at);
        if let Some(sample) = sample
            && counted.samples.len() < CheckCount::MAX_SAMPLES
            && !counted.samples.iter().any(|known| **known == *sample)
        {
            counted.samples.push(sample.into());
        }
    }

    /// Returns the name under which a member that no rule has is counted: empty beyond [`MOST_MEMBERS`].
    fn member(&mut self, check: &CheckedCreate<'_>, member: &str) -> Box<str> {
        let (rules, members) =
            self.members.entry(check.merchant.clone()).or_insert_with(|| (check.rules, HashSet::new()));
        if *rules != check.rules {
            *rules = check.rules;
            members.clear();
        }
        if members.contains(member) {
            return member.into();
        }
        if members.len() >= MOST_MEMBERS {
            return Box::default();
        }
        members.insert(member.into());
        member.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Direction::Payin;

    fn count(counts: &[CheckCount], class: CheckClass) -> Vec<(&str, &str, u64)> {
        let of_class = counts.iter().filter(|count| count.class == class);
        let mut all: Vec<_> = of_class.map(|count| (&*count.member, &*count.key, count.count)).collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn creates_are_classified_by_both_replies() {
        let merchant = MerchantId::new("acme").unwrap();
        let refusal = Refusal {
            member: "paymentData.a".into(),
            reason: "is required".into(),
            file: "shops/card.payin.json".into(),
            key: "required".into(),
            is_named: true,
        };
        let loss = Loss { member: "extra#".into(), reason: "dropped".into() };
        let created = CreateVerdict { shop: "card".into(), refusal: None, losses: vec![loss] };
        let refused = CreateVerdict { shop: "card".into(), refusal: Some(refusal), losses: Vec::new() };
        let mut counter = Counter::default();
        let mut at = 10;
        for (verdict, status) in [
            (&created, Some(200)),
            (&created, Some(201)),
            (&created, Some(422)),
            (&created, None),
            (&refused, Some(200)),
            (&refused, Some(400)),
            (&refused, Some(503)),
            (&refused, Some(409)),
        ] {
            let legacy = LegacyOutcome::of_status(status);
            let sample = format!("\"{at}\"");
            counter.record(&CheckedCreate {
                merchant: &merchant,
                rules: Fingerprint([7; 16]),
                direction: Payin,
                verdict,
                legacy,
                sample: &sample,
                at: UnixMillis(at),
            });
            at -= 1;
        }
        counter.not_checked(&merchant, Fingerprint([7; 16]), "", Payin, UnixMillis(50));
        let counts = counter.drain();
        for (class, expected) in [
            (CheckClass::WouldCreate, vec![("", "", 4)]),
            (CheckClass::WouldRefuse, vec![("", "", 4)]),
            (CheckClass::NotCompared, vec![("", "", 3)]),
            (CheckClass::NotChecked, vec![("", "", 1)]),
            (CheckClass::Blocker, vec![("paymentData.a", "required", 1)]),
            (CheckClass::Widening, vec![("", "", 1)]),
            (CheckClass::Loss, vec![("extra#", "", 4)]),
        ] {
            assert_eq!(count(&counts, class), expected, "{class:?}");
        }
        let loss = counts.iter().find(|count| count.class == CheckClass::Loss).unwrap();
        assert_eq!((loss.since, loss.samples.len()), (UnixMillis(7), 4));
        assert!(counter.drain().is_empty());
    }

    #[test]
    fn counts_are_bounded() {
        let merchant = MerchantId::new("acme").unwrap();
        let mut counter = Counter::default();
        let record = |counter: &mut Counter, rules, member: String, reason: String| {
            let losses = vec![Loss { member: member.into(), reason: reason.into() }];
            let verdict = CreateVerdict { shop: "card".into(), refusal: None, losses };
            counter.record(&CheckedCreate {
                merchant: &merchant,
                rules: Fingerprint([rules; 16]),
                direction: Payin,
                verdict: &verdict,
                legacy: LegacyOutcome::Accepted,
                sample: "{}",
                at: UnixMillis(0),
            });
        };
        for n in 0..300 {
            record(&mut counter, 1, format!("name{n}"), String::new());
            record(&mut counter, 1, "merchant_user_id".to_owned(), String::new());
        }
        let counts = counter.drain();
        let losses = count(&counts, CheckClass::Loss);
        assert_eq!((losses.len(), losses[0], losses[1]), (202, ("", "", 100), ("merchant_user_id", "", 300)));
        record(&mut counter, 1, "later".to_owned(), String::new());
        assert_eq!(count(&counter.drain(), CheckClass::Loss), [("", "", 1)], "the members outlive a commit");
        record(&mut counter, 2, "later".to_owned(), String::new());
        assert_eq!(count(&counter.drain(), CheckClass::Loss), [("later", "", 1)], "other rules, other members");
        let mut restarted = Counter::default();
        let rules = Fingerprint([1; 16]);
        assert!(!restarted.knows_members(&merchant, rules));
        restarted.learn_members(&merchant, rules, counts);
        assert!(restarted.knows_members(&merchant, rules) && !restarted.knows_members(&merchant, Fingerprint([2; 16])));
        record(&mut restarted, 1, "name7".to_owned(), String::new());
        record(&mut restarted, 1, "later".to_owned(), String::new());
        assert_eq!(count(&restarted.drain(), CheckClass::Loss), [("", "", 1), ("name7", "", 1)], "of all processes");
        for n in 0..10_010 {
            record(&mut counter, 2, "later".to_owned(), format!("reason {n}"));
        }
        let counts = counter.drain();
        assert_eq!(counts.len(), 10_001);
        assert_eq!(count(&counts, CheckClass::NotChecked), [("", "", 11)]);
        assert_eq!(count(&counts, CheckClass::WouldCreate), [("", "", 9_999)]);
    }
}
