//! The journal between nodes.

use crate::domain::{CallbackUrl, UnixMillis};
use crate::store::conformance::{DOUBTED_AT, NOW, audited, engine_answer, journaled, pending_create};
use crate::store::postgres::audit::tests::{node_of, opened};
use crate::store::{Journal, JournalOutcome, Outbox, Relayed};

const ROUNDS: u64 = 20;

#[tokio::test(flavor = "multi_thread")]
async fn one_of_the_creates_of_two_nodes_is_written() {
    let Some((database, one)) = opened() else { return };
    let other = node_of(&database);
    for round in 0..ROUNDS {
        let create = pending_create("acme", &round.to_string());
        let (left, right) = tokio::join!(one.record_create(create.clone()), other.record_create(create));
        match (left.unwrap(), right.unwrap()) {
            (JournalOutcome::Written(id), JournalOutcome::Existing(entry))
            | (JournalOutcome::Existing(entry), JournalOutcome::Written(id)) => {
                assert_eq!(entry.id, id);
            }
            met => panic!("{met:?}"),
        }
    }
    assert_eq!(audited(&one).await.journal, ROUNDS);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_the_answers_of_two_nodes_brings_an_entry_back() {
    let Some((database, one)) = opened() else { return };
    let other = node_of(&database);
    for round in 0..ROUNDS {
        let entry = journaled(&one, pending_create("acme", &round.to_string())).await;
        assert!(one.cancel(entry.id, None).await.unwrap());
        let answers = [engine_answer(2 * round), engine_answer(2 * round + 1)];
        let [left, right] = answers.map(|answer| (entry.clone(), answer));
        let (left, right) = tokio::join!(one.answer(left.0, left.1), other.answer(right.0, right.1));
        let stands = left.unwrap().unwrap();
        assert!(stands.is_answered());
        assert_eq!(right.unwrap().unwrap(), stands);
    }
    assert_eq!(audited(&one).await.journal, ROUNDS);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_give_a_transaction_to_one_order() {
    let Some((database, one)) = opened() else { return };
    let other = node_of(&database);
    for round in 0..ROUNDS {
        let first = journaled(&one, pending_create("acme", &round.to_string())).await;
        let second = journaled(&one, pending_create("bolt", &round.to_string())).await;
        let answer = || engine_answer(round);
        let (left, right) = tokio::join!(one.answer(first, answer()), other.answer(second, answer()));
        assert_eq!(usize::from(left.unwrap().is_ok()) + usize::from(right.unwrap().is_ok()), 1);
    }
    audited(&one).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_announced_is_not_withdrawn_on_another_node() {
    let Some((database, one)) = opened() else { return };
    let other = node_of(&database);
    for round in 0..ROUNDS {
        let mut announced = pending_create("acme", &round.to_string());
        let url = CallbackUrl::new_allowing_http("https://acme.example/v1").unwrap();
        announced.callback_url = Some(url);
        let entry = journaled(&one, announced).await;
        let (withdrawn, relayed) = tokio::join!(one.cancel(entry.id, None), other.relayed(entry.id, NOW));
        match (withdrawn.unwrap(), relayed.unwrap()) {
            (true, Relayed::Nothing) | (false, Relayed::Queued) => {}
            both => panic!("{both:?}"),
        }
    }
    audited(&one).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_sent_again_is_detected_with_any_clock() {
    let Some((database, one)) = opened() else { return };
    let other = node_of(&database);
    let entry = journaled(&one, pending_create("acme", "order")).await;
    one.sent_again(entry.id, DOUBTED_AT).await.unwrap();
    other.sent_again(entry.id, UnixMillis(DOUBTED_AT.0 - 60_000)).await.unwrap();
    assert!(!one.cancel(entry.id, Some(DOUBTED_AT)).await.unwrap());
}
