use std::time::Duration;

use super::Remote;
use crate::clock::Clock as _;
use crate::domain::{Amount, Currency, Direction, Fingerprint, MemberFingerprints, MerchantId, OrderId, UnixMillis};
use crate::engine::tests::{START, World};
use crate::rules::RemoteEngine;
use crate::store::{EntryId, EntryProgress, JournalEntry, PendingCreate};

/// An open entry of 10.50 EUR.
pub(super) fn entry(order_id: &str) -> JournalEntry {
    let create = PendingCreate {
        merchant: MerchantId::new("acme").unwrap(),
        direction: Direction::Payin,
        order_id: OrderId::new(order_id).unwrap(),
        api_key: "k".into(),
        amount: Amount::from_hundredths(1050).unwrap(),
        currency: Currency::new("EUR").unwrap(),
        shop: None,
        fingerprint: Fingerprint([1; 16]),
        v1_members: MemberFingerprints::default(),
        callback_url: None,
        body: (*b"{}").into(),
        created_at: UnixMillis(1),
    };
    JournalEntry { id: EntryId(1), create, progress: EntryProgress::Open }
}

/// In milliseconds.
const HOUR: i64 = 3_600_000;

fn remote(world: &World) -> Remote {
    let (base, timeout) = ("https://engine.example".into(), Duration::from_secs(10));
    Remote::new(RemoteEngine { base, trust: [].into(), timeout }, world.deps.clone())
}

#[test]
fn a_jump_of_the_clock_makes_no_request_over() {
    let world = World::new();
    let in_doubt = |since| JournalEntry { progress: EntryProgress::InDoubt { since }, ..entry("o") };
    let engine = remote(&world);
    let since = world.clock.now();
    world.clock.set_ahead(HOUR);
    assert!(!engine.is_over(&in_doubt(since)), "it may still be in progress");
    let ahead = world.clock.now();
    world.clock.set_ahead(-HOUR);
    assert!(!engine.is_over(&in_doubt(ahead)));
    world.clock.advance(Duration::from_secs(119));
    assert!(!engine.is_over(&in_doubt(since)) && !engine.is_over(&in_doubt(ahead)));
    world.clock.advance(Duration::from_secs(1));
    assert!(engine.is_over(&in_doubt(since)), "twelve times the time-out has passed");
    assert!(engine.is_over(&in_doubt(ahead)), "and nothing waits for the hour");
    assert!(!engine.is_over(&in_doubt(world.clock.now())));
}

#[test]
fn a_jump_of_the_clock_makes_no_interrupted_create_old() {
    let world = World::new();
    let engine = remote(&world);
    let mut open = entry("o");
    open.create.created_at = START;
    world.clock.set_ahead(96 * HOUR);
    assert!(engine.is_old(&open) && !engine.is_old_by_itself(&open), "a caller may repeat it, recovery sends it");
    world.clock.set_ahead(-96 * HOUR);
    world.clock.advance(Duration::from_hours(24));
    assert!(engine.is_old(&open) && engine.is_old_by_itself(&open));
}
