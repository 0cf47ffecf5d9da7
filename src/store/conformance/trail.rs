//! The audit trail.

use super::*;
use crate::store::{
    ActionEnd, ActionId, ActionQuery, ActionRecord, BeginOutcome, IdempotencyKey, NewAction, StoreError,
};

fn at(offset: i64) -> UnixMillis {
    UnixMillis(NOW.0 + offset)
}

pub(super) fn action(user: &str, action: &'static str, offset: i64) -> NewAction {
    NewAction {
        at: at(offset),
        user: user.into(),
        role: "operator".into(),
        address: "192.0.2.7".into(),
        request_id: "5f0e2a".into(),
        action,
        target: "acme".into(),
        parameters: vec![("since", "1h".into()), ("merchant", "acme".into())],
        rules_version: "0123456789abcdef".into(),
        idempotency_key: None,
    }
}

pub(super) async fn begun(store: &dyn Store, new: NewAction) -> ActionId {
    match store.begin_action(new).await.unwrap() {
        BeginOutcome::New(id) => id,
        BeginOutcome::Repeated(row) => panic!("it is new: {row:?}"),
    }
}

pub(super) async fn all(store: &dyn Store) -> Vec<ActionRecord> {
    store.actions(ActionQuery { limit: 1000, ..ActionQuery::default() }).await.unwrap()
}

pub(in crate::store) async fn an_action_is_begun_and_ended(backend: &dyn TestBackend) {
    let store = backend.open().await;
    assert_eq!(all(&*store).await, []);
    let id = begun(&*store, action("ada", ActionRecord::RESEND_FAILED, 0)).await;
    let unfinished = ActionRecord {
        id,
        at: at(0),
        user: "ada".into(),
        role: "operator".into(),
        address: "192.0.2.7".into(),
        request_id: "5f0e2a".into(),
        action: "callbacks.resend_failed".into(),
        target: "acme".into(),
        parameters: r#"{"merchant":"acme","since":"1h"}"#.into(),
        rules_version: "0123456789abcdef".into(),
        idempotency_key: None,
        end: None,
    };
    assert_eq!(all(&*store).await, std::slice::from_ref(&unfinished));
    // As after a crash: the row stays, and shows that it is unfinished.
    store.close().await.unwrap();
    let store = backend.open().await;
    assert_eq!(all(&*store).await, std::slice::from_ref(&unfinished));
    store.end_action(id, at(5), "3 queued").await.unwrap();
    let ended = ActionRecord { end: Some(ActionEnd { at: at(5), outcome: "3 queued".into() }), ..unfinished };
    assert_eq!(all(&*store).await, std::slice::from_ref(&ended));
    store.end_action(id, at(6), "another").await.unwrap();
    store.end_action(ActionId(id.0 ^ 1), at(6), "of none").await.unwrap();
    assert_eq!(all(&*store).await, [ended], "the first outcome is kept");
    audited(&*store).await;
}

pub(in crate::store) async fn texts_of_an_action_are_bounded(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let long = "é".repeat(1000);
    let new = NewAction {
        user: format!("\0{long}").into(),
        request_id: CARD.into(),
        target: long.as_str().into(),
        parameters: vec![("note", CARD.into()), ("order_id", CARD.into()), ("reason", "é".repeat(500).into())],
        idempotency_key: Some(IdempotencyKey([0; 16])),
        ..action("", "callbacks.sample", 0)
    };
    let id = begun(&*store, new.clone()).await;
    store.end_action(id, at(1), &format!("\0{CARD}{long}")).await.unwrap();
    let user: Box<str> = format!("\u{fffd}{}…", "é".repeat(125)).into();
    let named = ActionQuery { user: Some(new.user.clone()), limit: 9, ..ActionQuery::default() };
    let found = store.actions(named).await.unwrap().remove(0);
    assert_eq!((&found.user, &*found.target), (&user, &*format!("{}…", "é".repeat(126))));
    let outcome = found.end.unwrap().outcome;
    assert!(outcome.len() <= ActionRecord::MAX_OUTCOME && outcome.starts_with("\u{fffd}492942******5709"), "{outcome}");
    let reason = "é".repeat(500);
    let parameters = format!(r#"{{"note":"492942******5709","order_id":"{CARD}","reason":"{reason}"}}"#);
    assert_eq!((&*found.request_id, &*found.parameters), ("492942******5709", &*parameters));
    let letters = "a b c d e f g h i j k l m n o p q".split(' ');
    let many = letters.map(|name| (name, Box::from("\0"))).collect();
    let id = begun(&*store, NewAction { parameters: many, ..action("ada", "callbacks.sample", 1) }).await;
    let found = all(&*store).await.remove(0);
    let parameters: serde_json::Value = serde_json::from_str(&found.parameters).unwrap();
    assert_eq!((found.id, parameters.as_object().unwrap().len()), (id, ActionRecord::MAX_PARAMETERS));
    assert_eq!(parameters["a"], "\u{fffd}");
}

pub(in crate::store) async fn a_form_acts_once(backend: &dyn TestBackend) {
    let (store, other) = (backend.open().await, IdempotencyKey([2; 16]));
    let key = IdempotencyKey([1; 16]);
    let begin = |key, user: &'static str| {
        let store = Arc::clone(&store);
        let new = NewAction { idempotency_key: Some(key), ..action(user, ActionRecord::RESEND_CALLBACK, 0) };
        tokio::spawn(async move { store.begin_action(new).await.unwrap() })
    };
    let tasks: Vec<_> = (0..24).map(|number| begin(key, if number % 2 == 0 { "ada" } else { "bob" })).collect();
    let (mut new, mut repeated) = (Vec::new(), Vec::new());
    for task in tasks {
        match task.await.unwrap() {
            BeginOutcome::New(id) => new.push(id),
            BeginOutcome::Repeated(row) => repeated.push(row.id),
        }
    }
    assert_eq!((new.len(), repeated), (1, vec![new[0]; 23]));
    assert!(matches!(begin(other, "ada").await.unwrap(), BeginOutcome::New(id) if id != new[0]));
    store.end_action(new[0], at(9), "done").await.unwrap();
    store.close().await.unwrap();
    let store = backend.open().await;
    let later = NewAction { idempotency_key: Some(key), ..action("cyd", "rules.reload", 99) };
    let BeginOutcome::Repeated(first) = store.begin_action(later).await.unwrap() else { panic!("it was sent before") };
    assert_eq!((first.id, first.idempotency_key, &*first.action), (new[0], Some(key), "callbacks.resend"));
    assert_eq!(first.end, Some(ActionEnd { at: at(9), outcome: "done".into() }));
    assert_eq!(all(&*store).await.len(), 2);
}

pub(in crate::store) async fn lists_of_actions_are_exact(backend: &dyn TestBackend) {
    let store = backend.open().await;
    for number in 0..60 {
        let (user, kind) = (["ada", "bob", "cli:ada"][number % 3], ["rules.reload", "store.rekey"][number / 3 % 2]);
        // Several in a millisecond, and a clock that is set back.
        let offset = [0, 7, 3, 7, 5][number / 12] + i64::try_from(number % 4).unwrap();
        begun(&*store, action(user, kind, offset)).await;
    }
    let all = all(&*store).await;
    assert_eq!(all.len(), 60);
    assert!(all.is_sorted_by(|one, next| one.id > next.id) && all.is_sorted_by_key(|one| std::cmp::Reverse(one.at)));
    let texts = |texts: &[&'static str]| {
        [None].into_iter().chain(texts.iter().map(|text| Some(Box::<str>::from(*text)))).collect::<Vec<_>>()
    };
    for user in texts(&["ada", "cli:ada", "ad", ""]) {
        for action in texts(&["rules.reload", "none"]) {
            for (since, until) in
                [(None, None), (Some(3), None), (None, Some(7)), (Some(4), Some(8)), (Some(8), Some(4))]
            {
                let (since, until) = (since.map(at), until.map(at));
                let matching: Vec<_> = all
                    .iter()
                    .filter(|one| user.as_ref().is_none_or(|user| one.user == *user))
                    .filter(|one| action.as_ref().is_none_or(|action| one.action == *action))
                    .filter(|one| since.is_none_or(|since| one.at >= since))
                    .filter(|one| until.is_none_or(|until| one.at <= until))
                    .cloned()
                    .collect();
                let query =
                    ActionQuery { user: user.clone(), action: action.clone(), since, until, after: None, limit: 7 };
                let mut found: Vec<ActionRecord> = Vec::new();
                loop {
                    let after = found.last().map(|last| last.id);
                    let page = store.actions(ActionQuery { after, ..query.clone() }).await.unwrap();
                    assert!(page.len() <= 7);
                    if page.is_empty() {
                        break;
                    }
                    found.extend(page);
                }
                assert_eq!(found, matching, "{query:?}");
            }
        }
    }
    assert_eq!(store.actions(ActionQuery::default()).await.unwrap(), [], "a limit of 0");
    audited(&*store).await;
}

pub(in crate::store) async fn a_closed_trail_is_unavailable(backend: &dyn TestBackend) {
    let store = backend.open().await;
    let id = begun(&*store, action("ada", "rules.reload", 0)).await;
    store.close().await.unwrap();
    let closed = [
        store.begin_action(action("ada", "rules.reload", 1)).await.err(),
        store.end_action(id, NOW, "done").await.err(),
        store.actions(ActionQuery::default()).await.err(),
    ];
    for error in closed {
        assert!(matches!(error, Some(StoreError::Unavailable(_))), "{error:?}");
    }
    let store = backend.open().await;
    let found = all(&*store).await;
    assert_eq!((found.len(), &found[0].end), (1, &None));
}
