//! The pieces that need a store.

use std::future::Future;
use std::hint::black_box;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use paybridge::auth::{Caller, SignedBody};
use paybridge::clock::ManualClock;
use paybridge::domain::Direction;
use paybridge::engine::{Engine, PageSecret};
use paybridge::provider::Providers;
use paybridge::rules::{Secret, StoreKeys};
use paybridge::store::sqlite::{SqliteStore, open};
use paybridge::store::{Creation, Store};
use paybridge::upstream::Upstream;
use paybridge::v1;

use super::drafts::Drafts;
use super::fixture::{self, NOW, Repeating};
use super::{counted, repeat};

/// How many creates share a commit.
const BATCH: u32 = 64;

/// A store in a directory of its own.
struct Place {
    directory: tempfile::TempDir,
    store: Arc<SqliteStore>,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let keys = StoreKeys { create_at: None, keys: vec![Secret::new(&[1; 32])] };
        let path = directory.path().join("paybridge.db");
        let store = open(&path, &keys, Arc::new(Repeating::default()), Arc::default()).unwrap().store;
        Self { directory, store: Arc::new(store) }
    }

    fn upstream(&self) -> Upstream {
        let secret = PageSecret::new(Secret::new(&[3; 32]));
        let (store, random) = (Arc::clone(&self.store), Arc::new(Repeating::default()));
        let (clock, providers) = (Arc::new(ManualClock::at(NOW)), Arc::new(Providers::default()));
        Upstream::Embedded(Arc::new(Engine::new(store, clock, random, providers, secret, Arc::default())))
    }
}

/// A v1 create is counted up to where its draft waits for the commit.
pub fn create_to_queue(times: u32) {
    let (place, rules) = (Place::new(), fixture::rules());
    let upstream = place.upstream();
    for number in 0..=times {
        let (caller, body) = fixture::caller(&rules, fixture::body(number));
        let mut create = pin!(v1::create(&upstream, &caller, Direction::Payin, &body));
        let mut to_queue = || assert!(poll(create.as_mut(), Waker::noop()).is_pending());
        if number == 0 {
            to_queue();
        } else {
            counted(&mut to_queue);
        }
        wait(create.as_mut()).unwrap();
    }
}

/// Every round commits nothing and then 64 drafts.
///
/// Another connection holds the writer up until all of them wait: so there is one commit, and always the same one.
pub fn batches(rounds: u32) {
    let place = Place::new();
    let path = place.directory.path().join("paybridge.db");
    let others = rusqlite::Connection::open(path).unwrap();
    let drafts = Drafts::new("acme", "card-eur", place.store.comparer().clone());
    for round in 0..rounds {
        others.execute_batch("BEGIN IMMEDIATE").unwrap();
        let mut probe = place.store.probe();
        assert!(poll(probe.as_mut(), Waker::noop()).is_pending());
        // The writer has taken the probe then, and nothing beside it; it waits for two seconds.
        thread::sleep(Duration::from_millis(20));
        let numbers = (0..BATCH).map(|number| round * BATCH + number);
        let draft = |number: u32| drafts.deposit(&format!("order-{number:012}"), NOW, u64::from(number));
        let mut creates: Vec<_> = numbers.map(|number| place.store.create(draft(number))).collect();
        for create in &mut creates {
            assert!(poll(create.as_mut(), Waker::noop()).is_pending());
        }
        others.execute_batch("ROLLBACK").unwrap();
        // The last one is answered last.
        for create in creates.iter_mut().rev() {
            assert!(matches!(wait(create.as_mut()).unwrap(), Creation::Created(_)));
        }
        wait(probe.as_mut()).unwrap();
    }
}

/// A status question about an operation, one of a hundred.
pub fn v1_status(times: u32) {
    let (place, rules) = (Place::new(), fixture::rules());
    let upstream = place.upstream();
    let (mut last, mut caller) = (None, None);
    for number in 0..100 {
        let (proven, body): (Caller, SignedBody) = fixture::caller(&rules, fixture::body(number));
        last = Some(wait(pin!(v1::create(&upstream, &proven, Direction::Payin, &body))).unwrap());
        caller = Some(proven);
    }
    black_box(last);
    let (caller, query) = (caller.unwrap(), "external_id=order-000000000042");
    repeat(times, || {
        let status = pin!(v1::status(&upstream, &caller, Direction::Payin, Some(black_box(query))));
        let Poll::Ready(reply) = poll(status, Waker::noop()) else { panic!("a status waits for nothing") };
        drop(black_box(reply.unwrap()));
    });
}

fn poll<F: Future + ?Sized>(future: Pin<&mut F>, waker: &Waker) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(waker))
}

/// Wakes the thread that waits.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits on this thread, without a runtime: it would have threads and timers of its own.
fn wait<F: Future + ?Sized>(mut future: Pin<&mut F>) -> F::Output {
    let waker = Arc::new(Unpark(thread::current())).into();
    loop {
        if let Poll::Ready(output) = poll(future.as_mut(), &waker) {
            return output;
        }
        thread::park();
    }
}
