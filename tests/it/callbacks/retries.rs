//! When a callback is tried again, when it is given up, and how it comes back. Waits are compared with the least that the
//! rules allow, and never with a most.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use paybridge::store::{CallbackState, CallbackTry, Resent, TryOutcome};

use crate::callbacks::book::{Book, outcomes};
use crate::callbacks::verify::assert_v2;
use crate::callbacks::{a_while, assert_all, assert_one, path, quick, rules, withdraw};
use crate::support::Gateway;
use crate::support::receiver::{Play, Received, Receiver};
use crate::support::request::ACME;

/// Clocks that tell whole milliseconds.
const GRAIN: Duration = Duration::from_millis(5);

/// The time between a try and the next one.
fn waits(tries: &[Received]) -> Vec<Duration> {
    tries.windows(2).map(|pair| pair[1].at.duration_since(pair[0].at)).collect()
}

#[tokio::test]
async fn whatever_is_no_2xx_is_tried_again() {
    const STATUSES: [u16; 18] =
        [304, 400, 401, 402, 403, 404, 405, 408, 409, 413, 418, 422, 429, 451, 500, 502, 503, 599];
    let receiver = Receiver::start(|received, before| {
        let status = received.target.rsplit('/').next().unwrap().parse().unwrap();
        Play::Say(if before < 2 { status } else { 200 })
    });
    let gateway = quick(&receiver);
    for status in STATUSES {
        withdraw(&gateway, &receiver, &status.to_string()).await;
    }
    let book = Book::of(&gateway);
    for status in STATUSES {
        let tries = receiver.got(&path(&status.to_string()), 3).await;
        assert_all(&tries, |received| assert_v2(received, ACME.v2.unwrap(), &status.to_string()));
        let (record, kept) = book.becomes(&tries[0], CallbackState::Delivered).await;
        assert_eq!((record.tries, record.last), (3, Some(TryOutcome::Status(200))));
        assert_eq!(outcomes(&kept), [status, status, 200]);
        for (kept, received) in kept.iter().zip(&tries) {
            let began = u64::try_from(kept.at.seconds()).unwrap();
            assert!(began <= received.unix, "a try begins before it comes");
        }
    }
    a_while(&gateway).await;
    assert_eq!(receiver.count(), 3 * STATUSES.len());
}

/// Half of the wait is the least that jitter leaves.
#[tokio::test]
async fn waits_grow_and_are_never_cut_short() {
    let receiver = Receiver::start(|_, before| Play::Say(if before < 6 { 500 } else { 200 }));
    let keys = "first_retry = \"200ms\"\nmax_retry = \"1s\"\ntimeout = \"2s\"";
    let gateway = Gateway::start(&rules(&[&receiver], keys));
    withdraw(&gateway, &receiver, "patient").await;
    let tries = receiver.got(&path("patient"), 7).await;
    assert_one(&tries);
    let waits = waits(&tries);
    for (wait, whole) in waits.iter().zip([200, 400, 800, 1000, 1000, 1000]) {
        assert!(*wait + GRAIN >= Duration::from_millis(whole / 2), "{wait:?} of {whole} ms in {waits:?}");
    }
    let stamps: Vec<u64> = tries.iter().map(|received| received.header("webhook-timestamp").parse().unwrap()).collect();
    for (stamps, tries) in stamps.windows(2).zip(tries.windows(2)) {
        assert!(stamps[1] >= tries[0].unix, "{stamps:?}: the time of this try");
    }
    assert!(stamps[0] < stamps[6], "{stamps:?}");
}

#[tokio::test]
async fn a_receiver_that_asks_for_time_gets_it() {
    let receiver = Receiver::start(|received, before| match (received.target.as_str(), before) {
        ("/cb/seconds", 0) => Play::With(503, "Retry-After: 2\r\n".to_owned()),
        ("/cb/busy", 0) => Play::With(429, "Retry-After: 2\r\n".to_owned()),
        ("/cb/for-ever", 0) => Play::With(503, "Retry-After: 86400\r\n".to_owned()),
        ("/cb/nonsense", 0) => Play::With(503, "Retry-After: when I am back\r\n".to_owned()),
        ("/cb/done", 0) => Play::With(200, "Retry-After: 1\r\n".to_owned()),
        _ => Play::Say(200),
    });
    let keys = "first_retry = \"100ms\"\nmax_retry = \"3s\"\ntimeout = \"2s\"";
    let gateway = Gateway::start(&rules(&[&receiver], keys));
    for (order_id, least) in [("seconds", 2000), ("busy", 2000), ("for-ever", 3000), ("nonsense", 50)] {
        withdraw(&gateway, &receiver, order_id).await;
        let tries = receiver.got(&path(order_id), 2).await;
        let wait = waits(&tries)[0];
        assert!(wait + GRAIN >= Duration::from_millis(least), "{order_id}: {wait:?}");
        assert_one(&tries);
    }
    withdraw(&gateway, &receiver, "done").await;
    receiver.got(&path("done"), 1).await;
    a_while(&gateway).await;
    assert_eq!(receiver.of(&path("done")).len(), 1);
}

#[tokio::test]
async fn who_is_gone_is_asked_no_more_until_somebody_resends() {
    let says = Arc::new(AtomicU16::new(410));
    let script = says.clone();
    let receiver = Receiver::start(move |_, _| Play::Say(script.load(Ordering::Relaxed)));
    let gateway = quick(&receiver);
    withdraw(&gateway, &receiver, "gone").await;
    let reported = receiver.got(&path("gone"), 1).await;
    let book = Book::of(&gateway);
    let (record, tries) = book.becomes(&reported[0], CallbackState::Failed).await;
    assert_eq!((record.last, outcomes(&tries)), (Some(TryOutcome::Status(410)), vec![410]));
    a_while(&gateway).await;
    assert_eq!(receiver.count(), 1);
    says.store(200, Ordering::Relaxed);
    assert_eq!(book.resend(&reported[0]).await, Resent::Queued);
    let tries = receiver.got(&path("gone"), 2).await;
    assert_one(&tries);
    let (_, kept) = book.becomes(&reported[0], CallbackState::Delivered).await;
    assert_eq!(outcomes(&kept), [410, 200]);
    // What was delivered may be sent again, too: its receiver lost it.
    assert_eq!(book.resend(&reported[0]).await, Resent::Queued);
    assert_one(&receiver.got(&path("gone"), 3).await);
    book.becomes(&reported[0], CallbackState::Delivered).await;
}

#[tokio::test]
async fn a_callback_that_is_given_up_is_kept_until_it_is_resent() {
    let says = Arc::new(AtomicU16::new(500));
    let script = says.clone();
    let receiver = Receiver::start(move |_, _| Play::Say(script.load(Ordering::Relaxed)));
    let keys = "first_retry = \"100ms\"\nmax_retry = \"300ms\"\ntimeout = \"2s\"\ngive_up_after = \"2500ms\"";
    let mut gateway = Gateway::start(&rules(&[&receiver], keys));
    withdraw(&gateway, &receiver, "given-up").await;
    let reported = receiver.got(&path("given-up"), 1).await;
    let book = Book::of(&gateway);
    let (record, tries) = book.becomes(&reported[0], CallbackState::Failed).await;
    assert!(tries.len() >= 3, "{tries:?}");
    let end = record.queued_at.plus(Duration::from_millis(2500));
    // A try is the last when its time is up at its end: it may have begun a moment before.
    let ended = |made: &CallbackTry| made.at.plus(made.duration + Duration::from_millis(1));
    let (last, earlier) = tries.split_last().unwrap();
    assert!(ended(last) >= end, "one last try when time is up: {tries:?} of {record:?}");
    assert!(earlier.iter().all(|earlier| earlier.at < end), "{tries:?} of {record:?}");
    let before = receiver.count();
    assert_eq!(before, tries.len());
    a_while(&gateway).await;
    drop(book);
    gateway.kill();
    gateway.restart();
    a_while(&gateway).await;
    assert_eq!(receiver.count(), before, "failed is failed, after a restart too");
    let book = Book::of(&gateway);
    says.store(202, Ordering::Relaxed);
    assert_eq!(book.resend(&reported[0]).await, Resent::Queued);
    let tries = receiver.got(&path("given-up"), before + 1).await;
    assert_one(&tries);
    assert_v2(tries.last().unwrap(), ACME.v2.unwrap(), "given-up");
    let (record, kept) = book.becomes(&reported[0], CallbackState::Delivered).await;
    assert_eq!(usize::try_from(record.tries).unwrap(), kept.len());
    assert_eq!(kept.len(), before + 1, "every try is kept");
}

/// A resent callback has all its time again.
#[tokio::test]
async fn a_resent_callback_is_tried_as_a_new_one() {
    let receiver = Receiver::start(|_, before| Play::Say([410, 500, 500, 200][before.min(3)]));
    let gateway = quick(&receiver);
    withdraw(&gateway, &receiver, "again").await;
    let reported = receiver.got(&path("again"), 1).await;
    let book = Book::of(&gateway);
    book.becomes(&reported[0], CallbackState::Failed).await;
    book.resend(&reported[0]).await;
    assert_one(&receiver.got(&path("again"), 4).await);
    let (_, kept) = book.becomes(&reported[0], CallbackState::Delivered).await;
    assert_eq!(outcomes(&kept), [410, 500, 500, 200]);
}
