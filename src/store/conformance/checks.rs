//! Counts of checked creates, and marks of complete ids.

use super::*;
use crate::domain::Direction;
use crate::store::{CheckClass, CheckCount, StoreError};

/// The hashes of two versions of a merchant's rules.
const RULES: Fingerprint = Fingerprint([1; 16]);
const NEW_RULES: Fingerprint = Fingerprint([2; 16]);

const HOUR: i64 = 3_600_000;

fn count(class: CheckClass, count: u64) -> CheckCount {
    CheckCount {
        merchant: merchant("acme"),
        rules: RULES,
        shop: "card-eur".into(),
        direction: Direction::Payin,
        class,
        member: "".into(),
        reason: "".into(),
        file: "".into(),
        key: "".into(),
        count,
        since: NOW,
        samples: Vec::new(),
    }
}

fn blocker(member: &str, times: u64, samples: &[&str]) -> CheckCount {
    CheckCount {
        member: member.into(),
        reason: "too_long".into(),
        file: "merchants/acme.toml".into(),
        key: "v1.shop_code".into(),
        samples: samples.iter().map(|sample| (*sample).into()).collect(),
        ..count(CheckClass::Blocker, times)
    }
}

fn later(millis: i64) -> UnixMillis {
    UnixMillis(NOW.0 + millis)
}

pub(in crate::store) async fn counts_of_checks_add_up(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let acme = merchant("acme");
    store.add_check_counts(Vec::new(), NOW).await.unwrap();
    assert_eq!(store.check_counts(&acme, RULES).await.unwrap(), []);

    let long = "é".repeat(4000);
    let mut first = vec![
        CheckCount { since: later(7), ..blocker("amount", 2, &["{\"a\":1}", "{}", "{}"]) },
        // The same count twice, and texts that a database may refuse.
        CheckCount { since: later(5), ..blocker("amount", 1, &["[]"]) },
        blocker(&format!("\0{long}"), 9, &["\"\\u0000\"", "\0"]),
        count(CheckClass::WouldCreate, 1000),
    ];
    let whole = u64::try_from(i64::MAX).unwrap();
    first.push(CheckCount { shop: "".into(), direction: Direction::Payout, ..count(CheckClass::NotChecked, whole) });
    store.add_check_counts(first, later(8)).await.unwrap();
    store.close().await.unwrap();
    let store = backend.open().await;
    let more = vec![
        CheckCount { since: later(6), ..blocker("amount", 4, &["{}", "3", "4", "5", "6"]) },
        CheckCount { since: later(-1), ..count(CheckClass::WouldCreate, 1) },
        // Other counts by one of their parts.
        CheckCount { reason: "unknown".into(), ..blocker("amount", 8, &[]) },
        CheckCount { key: "v1.amount".into(), ..blocker("amount", 3, &[]) },
        CheckCount { file: "gateway.toml".into(), ..blocker("amount", 3, &[]) },
        CheckCount { class: CheckClass::Loss, ..blocker("amount", 3, &[]) },
        CheckCount { direction: Direction::Payout, ..blocker("amount", 3, &[]) },
        CheckCount { merchant: merchant("bolt"), ..blocker("amount", 3, &["7"]) },
        CheckCount { rules: NEW_RULES, ..blocker("amount", 3, &["8"]) },
    ];
    store.add_check_counts(more.clone(), later(9)).await.unwrap();
    let expected = [
        CheckCount { shop: "".into(), direction: Direction::Payout, ..count(CheckClass::NotChecked, whole) },
        CheckCount { since: later(-1), ..count(CheckClass::WouldCreate, 1001) },
        blocker(&format!("\u{fffd}{long}"), 9, &["\"\\u0000\"", "\0"]),
        CheckCount { reason: "unknown".into(), ..blocker("amount", 8, &[]) },
        CheckCount { since: later(5), ..blocker("amount", 7, &["{\"a\":1}", "{}", "[]", "3", "4"]) },
        CheckCount { file: "gateway.toml".into(), ..blocker("amount", 3, &[]) },
        CheckCount { key: "v1.amount".into(), ..blocker("amount", 3, &[]) },
        CheckCount { class: CheckClass::Loss, ..blocker("amount", 3, &[]) },
        CheckCount { direction: Direction::Payout, ..blocker("amount", 3, &[]) },
    ];
    assert_eq!(store.check_counts(&acme, RULES).await.unwrap(), expected);
    assert_eq!(store.check_counts(&merchant("bolt"), RULES).await.unwrap(), [more[7].clone()]);
    assert_eq!(store.check_counts(&acme, NEW_RULES).await.unwrap(), [more[8].clone()]);
    assert_eq!(store.check_counts(&merchant("bolt"), NEW_RULES).await.unwrap(), []);
    audited(&*store).await;
}

pub(in crate::store) async fn counts_under_unused_rules_are_deleted(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let add = async |counts: Vec<CheckCount>, at| store.add_check_counts(counts, at).await.unwrap();
    let under = |rules| CheckCount { rules, ..count(CheckClass::WouldCreate, 1) };
    let left = async |name: &str| {
        let name = merchant(name);
        [
            store.check_counts(&name, RULES).await.unwrap().len(),
            store.check_counts(&name, NEW_RULES).await.unwrap().len(),
        ]
    };
    let of_bolt = CheckCount { merchant: merchant("bolt"), ..under(RULES) };
    add(vec![under(RULES), CheckCount { rules: RULES, ..blocker("amount", 1, &[]) }, of_bolt], NOW).await;
    add(vec![under(NEW_RULES)], later(HOUR)).await;
    assert_eq!(left("acme").await, [2, 1], "another node may still have them");
    // As long as any count is added to, all counts under its rules stay.
    add(vec![under(RULES)], later(HOUR)).await;
    add(vec![under(NEW_RULES)], later(2 * HOUR)).await;
    assert_eq!(left("acme").await, [2, 1]);
    // A clock that is behind takes nothing back.
    add(vec![under(RULES)], later(-HOUR)).await;
    add(vec![under(NEW_RULES)], later(2 * HOUR)).await;
    assert_eq!(left("acme").await, [2, 1]);
    add(vec![under(NEW_RULES)], later(2 * HOUR + 1)).await;
    assert_eq!(left("acme").await, [0, 1]);
    assert_eq!(left("bolt").await, [1, 0], "nothing was added to this merchant's counts");
}

pub(in crate::store) async fn concurrent_counts_of_checks_all_count(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let mut tasks = Vec::new();
    for number in 0..32 {
        let (store, sample) = (Arc::clone(&store), number.to_string());
        let mut counts = vec![blocker("amount", 1, &[&sample]), blocker("currency", 2, &[&sample])];
        if number % 2 == 0 {
            counts.reverse();
        }
        tasks.push(tokio::spawn(async move { store.add_check_counts(counts, NOW).await.unwrap() }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let counts = store.check_counts(&merchant("acme"), RULES).await.unwrap();
    let found: Vec<_> = counts.iter().map(|one| (&*one.member, one.count, one.samples.len())).collect();
    assert_eq!(found, [("currency", 64, 5), ("amount", 32, 5)]);
}

pub(in crate::store) async fn new_reservations_take_the_mark_of_complete_ids_away(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let acme = merchant("acme");
    let complete = async || store.ids_complete(&acme, Direction::Payin).await.unwrap();
    let reserve = async |name: &str, direction, text: &str| {
        store.reserve(&merchant(name), direction, &[order(text)], NOW).await.unwrap();
    };
    created(&*store, deposit("acme", "made")).await;
    assert!(!complete().await);
    for _ in 0..2 {
        store.mark_complete(&acme, Direction::Payin, NOW).await.unwrap();
        assert!(complete().await);
    }
    assert!(!store.ids_complete(&acme, Direction::Payout).await.unwrap());
    assert!(!store.ids_complete(&merchant("bolt"), Direction::Payin).await.unwrap());
    reserve("acme", Direction::Payout, "a").await;
    reserve("bolt", Direction::Payin, "a").await;
    reserve("acme", Direction::Payin, "made").await;
    store.reserve(&acme, Direction::Payin, &[], NOW).await.unwrap();
    assert!(complete().await, "nothing was reserved");
    reserve("acme", Direction::Payin, "a").await;
    assert!(!complete().await);
    reserve("acme", Direction::Payin, "a").await;
    // A store that lost orders may have lost those of the old service, too.
    store.mark_complete(&acme, Direction::Payin, NOW).await.unwrap();
    store.lose(&[(acme.clone(), Direction::Payin, order("lost"))], NOW).await.unwrap();
    assert!(!complete().await);
    store.mark_complete(&acme, Direction::Payin, NOW).await.unwrap();
    store.adopt().await.unwrap();
    assert!(!complete().await);
    store.mark_complete(&acme, Direction::Payin, NOW).await.unwrap();
    reserve("acme", Direction::Payin, "a").await;
    store.close().await.unwrap();
    let closed = store.ids_complete(&acme, Direction::Payin).await;
    assert!(matches!(closed, Err(StoreError::Unavailable(_))), "{closed:?}");
    let store = backend.open().await;
    assert!(store.ids_complete(&acme, Direction::Payin).await.unwrap(), "it survives reopening");
    audited(&*store).await;
}
