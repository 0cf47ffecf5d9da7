use proptest::prelude::*;

use super::*;
use crate::store::{CallbackId, CallbackSubject, EntryId};

const START: UnixMillis = UnixMillis(1_790_000_000_000);

fn rules() -> CallbackRules {
    CallbackRules {
        timeout: Duration::from_secs(10),
        first_retry: Duration::from_secs(5),
        max_retry: Duration::from_hours(1),
        give_up_after: Duration::from_hours(72),
        forget_after: Duration::from_hours(90 * 24),
        allow_private_addresses: false,
        trust: [].into(),
    }
}

fn sent(outcome: TryOutcome, retry_after: Option<u64>) -> SentCallback {
    SentCallback {
        tried: CallbackTry { at: START, duration: Duration::ZERO, outcome },
        retry_after: retry_after.map(Duration::from_secs),
        probe: ProbeResult::Lives,
        label: "failed",
    }
}

fn lease(attempts: u32) -> CallbackLease {
    let id = CallbackId::new(CallbackSubject::Entry(EntryId(1)), 0);
    CallbackLease { id, queued_at: START, attempts }
}

/// Times without a jump of the clock.
fn times(now: UnixMillis) -> Times {
    let passed = UnixMillis(0).until(now).saturating_sub(rules().give_up_after);
    Times { now, given_up_until: Some(UnixMillis(0).plus(passed)) }
}

fn after(attempts: u32, outcome: TryOutcome, retry_after: Option<u64>) -> CallbackNext {
    next(&rules(), lease(attempts), &sent(outcome, retry_after), times(START), 0)
}

#[test]
fn retry_after_counts_within_the_longest_wait() {
    let wait = |attempts, retry_after| match after(attempts, TryOutcome::Status(503), Some(retry_after)) {
        CallbackNext::RetryAt(at) => START.until(at).as_secs(),
        other => panic!("{other:?}"),
    };
    assert_eq!(wait(0, 30), 30);
    assert_eq!(wait(0, 86_400), 3600);
    assert_eq!(wait(9, 1), 1280, "it never shortens a wait");
}

proptest! {
    #[test]
    fn the_last_attempt_is_at_give_up_after(attempts: u32, passed in 0_u64..300_000, random: u64, retry_after: Option<u16>) {
        let (rules, now) = (rules(), START.plus(Duration::from_secs(passed)));
        let last = START.plus(rules.give_up_after);
        let retry_after = retry_after.map(|seconds| Duration::from_secs(seconds.into()));
        match next_time(&rules, lease(attempts), retry_after, times(now), random) {
            None => prop_assert!(now >= last),
            Some(at) => {
                prop_assert!(at > now && at <= last);
                prop_assert!(at == last || now.until(at) >= rules.first_retry / 2);
            }
        }
    }
}

#[test]
fn nothing_is_given_up_while_the_clock_is_in_doubt() {
    let now = START.plus(Duration::from_hours(96));
    let times = Times { now, given_up_until: None };
    let due = next_time(&rules(), lease(0), None, times, 0);
    assert_eq!(due, Some(now.plus(rules().first_retry / 2)), "an attempt after the last one waits as any other");
}
