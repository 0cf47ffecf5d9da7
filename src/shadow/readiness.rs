//! The report of readiness: whether the creates of merchants whose v1 service is still the old one would fare as well on
//! v2 (contract section 6).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::domain::{Direction, UnixMillis};
use crate::rules::{EngineRules, Merchant, Mode, RuleSet};
use crate::store::{CheckClass, CheckCount, Store, StoreError};
use crate::wire::time::rfc3339;

/// How much must have been checked before a report can be `ready`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Minimums {
    /// The least number of checked creates of a shop and direction.
    pub creates: u64,
    /// The least number of days since the first of them.
    pub days: u32,
}

impl Default for Minimums {
    fn default() -> Self {
        Self { creates: 1000, days: 7 }
    }
}

/// What is known of a merchant's creates under the rules in force.
#[derive(Debug, Clone, Default)]
pub struct MerchantChecks {
    /// The counts.
    pub counts: Vec<CheckCount>,
    /// The directions whose old ids were imported completely.
    pub ids_complete: Vec<Direction>,
}

/// The report, as `/api/readiness` and `paybridge readiness --format json` show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Readiness {
    /// The merchants, by id.
    pub merchants: Vec<MerchantReadiness>,
    /// What limits the report, if anything does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<&'static str>,
}

impl Readiness {
    /// Reports whether every merchant is ready. Merchants without traffic count only if the report is `limited` to some,
    /// and so does a report without rows.
    #[must_use]
    pub fn is_ready(&self, limited: bool) -> bool {
        let counts = |verdict| limited || verdict != ReadinessVerdict::NoTraffic;
        let mut verdicts = self.merchants.iter().map(|merchant| merchant.verdict).filter(|verdict| counts(*verdict));
        verdicts.all(|verdict| verdict == ReadinessVerdict::Ready) && !(limited && self.merchants.is_empty())
    }

    /// Keeps the rows of a shop and of a direction, where these are named, and the merchants that have such a row.
    #[must_use]
    pub fn selected(mut self, shop: Option<&str>, direction: Option<Direction>) -> Self {
        if shop.is_none() && direction.is_none() {
            return self;
        }
        for merchant in &mut self.merchants {
            merchant.rows.retain(|row| {
                shop.is_none_or(|shop| *row.shop == *shop)
                    && direction.is_none_or(|direction| row.direction == direction.as_str())
            });
            merchant.verdict = worst(&merchant.rows, self.note.is_none());
        }
        self.merchants.retain(|merchant| !merchant.rows.is_empty());
        self
    }
}

/// The note when a remote engine decides on creates.
const REMOTE: &str =
    "the remote engine applies rules of its own: creates are checked up to the shape of the v2 request";

/// The readiness of a merchant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MerchantReadiness {
    /// Its id.
    pub merchant: Box<str>,
    /// The worst verdict of its rows with traffic.
    pub verdict: ReadinessVerdict,
    /// A row for each shop and direction that is enabled, or has counts.
    pub rows: Vec<ReadinessRow>,
}

/// The conclusion for a row or a merchant; the later is the worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum ReadinessVerdict {
    /// There was no create: the row does not count.
    #[serde(rename = "no traffic")]
    NoTraffic,
    /// Nothing is known that speaks against v2.
    #[serde(rename = "ready")]
    Ready,
    /// Too few creates were checked, or for too short a time.
    #[serde(rename = "not enough")]
    NotEnough,
    /// v2 would refuse creates that legacy accepts, or old ids are not known completely.
    #[serde(rename = "not ready")]
    NotReady,
}

impl ReadinessVerdict {
    /// Returns the word in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoTraffic => "no traffic",
            Self::Ready => "ready",
            Self::NotEnough => "not enough",
            Self::NotReady => "not ready",
        }
    }
}

/// The readiness of a shop and direction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReadinessRow {
    /// The shop's code; empty for all shops that no rule has.
    pub shop: Box<str>,
    /// `payin` or `payout`.
    #[serde(rename = "kind")]
    pub direction: &'static str,
    /// The conclusion.
    pub verdict: ReadinessVerdict,
    /// When the first create was checked, RFC 3339.
    pub since: Option<String>,
    /// How many creates were checked.
    pub creates: u64,
    /// How many of them v2 would create.
    pub would_create: u64,
    /// How many of them v2 would refuse.
    pub would_refuse: u64,
    /// How many more were not checked, for lack of room.
    pub not_checked: u64,
    /// How many of the checked ones could not be compared with legacy's reply.
    pub not_compared: u64,
    /// Whether the old ids of the direction were imported completely.
    pub ids_complete: bool,
    /// Creates that legacy accepted and v2 would refuse, most frequent first.
    pub blockers: Vec<Finding>,
    /// Creates that legacy refused and v2 would accept.
    pub widenings: Vec<Finding>,
    /// Members that v2 would leave out.
    pub losses: Vec<Finding>,
}

/// What several creates of a row have in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The member by its v1 name; empty for the body as a whole, or for members that are not counted by name.
    pub member: Box<str>,
    /// What is wrong, or why it is left out.
    pub reason: Box<str>,
    /// How many creates.
    pub count: u64,
    /// Samples: names, lengths and shapes.
    pub samples: Vec<Value>,
    /// The rule to change, for blockers.
    #[serde(flatten)]
    pub rule: Option<RulePlace>,
}

/// The place of a rule; both parts are empty where no rule would help.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RulePlace {
    /// The file, relative to the rules directory.
    pub file: Box<str>,
    /// The key in it.
    pub key: Box<str>,
}

/// Reports on merchants from what is stored of them.
#[must_use]
pub fn readiness(
    rules: &RuleSet,
    merchants: &[(&Merchant, MerchantChecks)],
    minimums: Minimums,
    now: UnixMillis,
) -> Readiness {
    let embedded = rules.gateway.engine == EngineRules::Embedded;
    let report = |(merchant, checks): &(&Merchant, MerchantChecks)| {
        let rows: Vec<_> = places(merchant, checks)
            .into_iter()
            .map(|(shop, direction)| {
                // No shop's traffic has to be represented by creates that name shops that do not exist.
                let minimums = if embedded && shop.is_empty() { Minimums { creates: 0, days: 0 } } else { minimums };
                row(shop, direction, checks, minimums, now)
            })
            .collect();
        MerchantReadiness { merchant: merchant.id.as_str().into(), verdict: worst(&rows, embedded), rows }
    };
    Readiness { merchants: merchants.iter().map(report).collect(), note: (!embedded).then_some(REMOTE) }
}

/// Returns the worst verdict of the rows that count. Creates that name shops that do not exist make no merchant ready.
fn worst(rows: &[ReadinessRow], embedded: bool) -> ReadinessVerdict {
    let counts = |row: &&ReadinessRow| !(embedded && row.shop.is_empty() && row.verdict == ReadinessVerdict::Ready);
    rows.iter().filter(counts).map(|row| row.verdict).max().unwrap_or(ReadinessVerdict::NoTraffic)
}

/// Returns the shops and directions that are enabled, or have counts.
fn places<'m>(merchant: &'m Merchant, checks: &'m MerchantChecks) -> BTreeSet<(&'m str, Direction)> {
    let enabled = merchant.shops.iter().flat_map(|(code, access)| {
        let directions = [Direction::Payin, Direction::Payout].into_iter();
        directions.filter(|direction| access.enabled(*direction)).map(|direction| (code.as_str(), direction))
    });
    enabled.chain(checks.counts.iter().map(|count| (&*count.shop, count.direction))).collect()
}

fn row(shop: &str, direction: Direction, checks: &MerchantChecks, minimums: Minimums, now: UnixMillis) -> ReadinessRow {
    let own: Vec<_> =
        checks.counts.iter().filter(|count| *count.shop == *shop && count.direction == direction).collect();
    let total = |class| own.iter().filter(|count| count.class == class).map(|count| count.count).sum();
    let (would_create, would_refuse): (u64, u64) = (total(CheckClass::WouldCreate), total(CheckClass::WouldRefuse));
    let checked = own.iter().filter(|count| matches!(count.class, CheckClass::WouldCreate | CheckClass::WouldRefuse));
    let since = checked.map(|count| count.since).min_by_key(|since| since.0);
    let (creates, ids_complete) = (would_create.saturating_add(would_refuse), checks.ids_complete.contains(&direction));
    let findings = |class| {
        let mut of_class: Vec<_> = own.iter().filter(|count| count.class == class).collect();
        of_class.sort_by(|one, other| {
            (other.count, &one.member, &one.reason).cmp(&(one.count, &other.member, &other.reason))
        });
        of_class.into_iter().map(|count| finding(count)).collect::<Vec<_>>()
    };
    let blockers = findings(CheckClass::Blocker);
    let least = Duration::from_secs(u64::from(minimums.days) * 86_400);
    let long_enough = minimums.days == 0 || since.is_some_and(|since| since.until(now) >= least);
    let verdict = if !blockers.is_empty() || !ids_complete {
        ReadinessVerdict::NotReady
    } else if creates == 0 && total(CheckClass::NotChecked) == 0 {
        ReadinessVerdict::NoTraffic
    } else if creates.saturating_sub(total(CheckClass::NotCompared)) < minimums.creates || !long_enough {
        ReadinessVerdict::NotEnough
    } else {
        ReadinessVerdict::Ready
    };
    ReadinessRow {
        shop: shop.into(),
        direction: direction.as_str(),
        verdict,
        since: since.map(rfc3339),
        creates,
        would_create,
        would_refuse,
        not_checked: total(CheckClass::NotChecked),
        not_compared: total(CheckClass::NotCompared),
        ids_complete,
        blockers,
        widenings: findings(CheckClass::Widening),
        losses: findings(CheckClass::Loss),
    }
}

fn finding(count: &CheckCount) -> Finding {
    let samples = count.samples.iter().filter_map(|sample| serde_json::from_str(sample).ok()).collect();
    let place = || RulePlace { file: count.file.clone(), key: count.key.clone() };
    Finding {
        member: count.member.clone(),
        reason: count.reason.clone(),
        count: count.count,
        samples,
        rule: (count.class == CheckClass::Blocker).then(place),
    }
}

/// Returns the merchants that a report covers when none is named, by id: those whose orders are not all made here.
#[must_use]
pub fn reported_merchants(rules: &RuleSet) -> Vec<Arc<Merchant>> {
    let by_id: BTreeMap<&str, &Arc<Merchant>> =
        rules.merchants.iter().map(|(id, merchant)| (id.as_str(), merchant)).collect();
    by_id.into_values().filter(|merchant| merchant.v1.mode != Mode::Translate).cloned().collect()
}

/// Reads what the store has on merchants of the rules in force, and reports on them, in their order. Each costs three reads
/// by an index.
///
/// # Errors
/// The store cannot be read.
pub async fn read_readiness(
    store: &dyn Store,
    rules: &RuleSet,
    merchants: &[Arc<Merchant>],
    minimums: Minimums,
    now: UnixMillis,
) -> Result<Readiness, StoreError> {
    let mut read = Vec::with_capacity(merchants.len());
    for merchant in merchants {
        let counts = store.check_counts(&merchant.id, merchant.rules_fingerprint).await?;
        let mut ids_complete = Vec::new();
        for direction in [Direction::Payin, Direction::Payout] {
            if store.ids_complete(&merchant.id, direction).await? {
                ids_complete.push(direction);
            }
        }
        read.push((&**merchant, MerchantChecks { counts, ids_complete }));
    }
    Ok(readiness(rules, &read, minimums, now))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::{Fingerprint, MerchantId};
    use crate::shadow::tests::RuleFixture;

    const SINCE: UnixMillis = UnixMillis(1_767_323_045_678);
    const DAY: i64 = 86_400_000;

    const ACME: &str = "[[api_keys]]\nkey = \"k\"\nv2_secret = \"b\"\n[shops.card]\npayout = false\n";

    fn count(shop: &str, class: CheckClass, count: u64) -> CheckCount {
        CheckCount {
            merchant: MerchantId::new("acme").unwrap(),
            rules: Fingerprint([0; 16]),
            shop: shop.into(),
            direction: Direction::Payin,
            class,
            member: Box::default(),
            reason: Box::default(),
            file: Box::default(),
            key: Box::default(),
            count,
            since: SINCE,
            samples: Vec::new(),
        }
    }

    fn report(gateway: &str, counts: Vec<CheckCount>, complete: bool, after: i64) -> Readiness {
        let files = RuleFixture::new();
        files.put("gateway.toml", gateway);
        files.put("merchants/acme.toml", ACME);
        let rules = files.load();
        let checks =
            MerchantChecks { counts, ids_complete: complete.then_some(Direction::Payin).into_iter().collect() };
        let merchant = &*rules.merchants[&MerchantId::new("acme").unwrap()];
        readiness(&rules, &[(merchant, checks)], Minimums::default(), UnixMillis(SINCE.0 + after))
    }

    #[test]
    fn verdicts_have_thresholds() {
        use CheckClass::{Blocker, NotChecked, WouldCreate, WouldRefuse};
        use ReadinessVerdict::{NoTraffic, NotEnough, NotReady, Ready};
        let enough = || vec![count("card", WouldCreate, 990), count("card", WouldRefuse, 10)];
        let and = |more: Vec<CheckCount>| [enough(), more].concat();
        for (counts, complete, after, expected) in [
            (enough(), true, 7 * DAY, Ready),
            (enough(), true, 7 * DAY - 1, NotEnough),
            (vec![count("card", WouldCreate, 999)], true, 7 * DAY, NotEnough),
            (Vec::new(), true, 0, NoTraffic),
            (vec![count("", WouldRefuse, 1)], true, 7 * DAY, NoTraffic),
            (vec![count("card", NotChecked, 1)], true, 7 * DAY, NotEnough),
            (Vec::new(), false, 0, NotReady),
            (enough(), false, 7 * DAY, NotReady),
            (and(vec![count("card", Blocker, 1)]), true, 7 * DAY, NotReady),
            // A shop that is no longer enabled has its row, too.
            (and(vec![count("idle", WouldCreate, 1)]), true, 7 * DAY, NotEnough),
            (and(vec![count("idle", Blocker, 1)]), true, 7 * DAY, NotReady),
            // No minimum holds for shops that do not exist.
            (and(vec![count("", WouldRefuse, 1), count("", NotChecked, 1)]), true, 7 * DAY, Ready),
            (and(vec![count("", WouldRefuse, 1), count("", Blocker, 1)]), true, 7 * DAY, NotReady),
        ] {
            let report = report("", counts, complete, after);
            assert_eq!(report.merchants[0].verdict, expected, "{report:?}");
            assert_eq!((report.is_ready(true), report.note), (expected == Ready, None));
            assert_eq!(report.is_ready(false), matches!(expected, Ready | NoTraffic));
        }
        let remote = "[engine]\nurl = \"https://v2.example\"\n";
        let unknown = report(remote, and(vec![count("", WouldCreate, 1)]), true, 7 * DAY);
        assert_eq!((unknown.merchants[0].verdict, unknown.note), (NotEnough, Some(REMOTE)));
        let none = Readiness { merchants: Vec::new(), note: None };
        assert!(none.is_ready(false) && !none.is_ready(true));
    }

    #[test]
    fn rows_are_selected_by_shop_and_direction() {
        use ReadinessVerdict::{NotEnough, NotReady, Ready};
        let counts = vec![
            count("card", CheckClass::WouldCreate, 1000),
            count("idle", CheckClass::WouldCreate, 1),
            CheckCount { direction: Direction::Payout, ..count("card", CheckClass::WouldCreate, 1000) },
        ];
        let report = report("", counts, true, 7 * DAY);
        assert_eq!((report.merchants[0].verdict, report.merchants[0].rows.len()), (NotReady, 3));
        for (shop, direction, expected) in [
            (Some("card"), Some(Direction::Payin), Some((Ready, 1))),
            (Some("card"), None, Some((NotReady, 2))),
            (Some("idle"), None, Some((NotEnough, 1))),
            (None, Some(Direction::Payin), Some((NotEnough, 2))),
            (None, Some(Direction::Payout), Some((NotReady, 1))),
            (Some("idle"), Some(Direction::Payout), None),
        ] {
            let selected = report.clone().selected(shop, direction);
            let found = selected.merchants.first().map(|merchant| (merchant.verdict, merchant.rows.len()));
            assert_eq!(found, expected, "{shop:?} {direction:?}");
            assert_eq!(selected.is_ready(true), expected.is_some_and(|(verdict, _)| verdict == Ready));
        }
    }

    #[test]
    fn a_merchant_without_a_shop_has_no_traffic() {
        let files = RuleFixture::new();
        files.put("merchants/acme.toml", "[[api_keys]]\nkey = \"k\"\nv2_secret = \"b\"\n");
        let rules = files.load();
        let merchant = &*rules.merchants[&MerchantId::new("acme").unwrap()];
        let report = readiness(&rules, &[(merchant, MerchantChecks::default())], Minimums::default(), SINCE);
        assert_eq!((report.merchants[0].verdict, report.merchants[0].rows.len()), (ReadinessVerdict::NoTraffic, 0));
    }

    #[test]
    fn the_document_is_as_the_contract_shows() {
        let named = |class, member: &str, reason: &str, of| CheckCount {
            member: member.into(),
            reason: reason.into(),
            samples: vec![r#"{"amount":"string(5)"}"#.into(), r#""text(3)""#.into()],
            ..count("card", class, of)
        };
        let rare = CheckCount { file: "f".into(), key: "k".into(), ..named(CheckClass::Blocker, "amount", "r", 1) };
        let frequent = CheckCount { samples: Vec::new(), ..named(CheckClass::Blocker, "", "the body", 2) };
        let counts = vec![
            CheckCount { since: UnixMillis(SINCE.0 + 5), ..count("card", CheckClass::WouldRefuse, 3) },
            count("card", CheckClass::WouldCreate, 7),
            CheckCount { since: UnixMillis(0), ..count("card", CheckClass::NotChecked, 2) },
            count("card", CheckClass::NotCompared, 1),
            rare,
            frequent,
            CheckCount { samples: Vec::new(), ..named(CheckClass::Widening, "", "", 1) },
            named(CheckClass::Loss, "extra#", "dropped", 4),
        ];
        let document = serde_json::to_string(&report("", counts, true, 0)).unwrap();
        let samples = json!([{ "amount": "string(5)" }, "text(3)"]);
        assert_eq!(
            document,
            [
                r#"{"merchants":[{"merchant":"acme","verdict":"not ready","rows":[{"shop":"card","kind":"payin","#,
                r#""verdict":"not ready","since":"2026-01-02T03:04:05.678Z","creates":10,"would_create":7,"#,
                r#""would_refuse":3,"not_checked":2,"not_compared":1,"ids_complete":true,"blockers":["#,
                r#"{"member":"","reason":"the body","count":2,"samples":[],"file":"","key":""},"#,
                &format!(r#"{{"member":"amount","reason":"r","count":1,"samples":{samples},"file":"f","key":"k"}}],"#),
                r#""widenings":[{"member":"","reason":"","count":1,"samples":[]}],"#,
                &format!(
                    r#""losses":[{{"member":"extra#","reason":"dropped","count":4,"samples":{samples}}}]}}]}}]}}"#
                ),
            ]
            .concat()
        );
        let empty = serde_json::to_value(report("", Vec::new(), false, 0)).unwrap();
        let row = &empty["merchants"][0]["rows"][0];
        assert_eq!((&row["since"], &row["ids_complete"]), (&json!(null), &json!(false)));
    }
}
