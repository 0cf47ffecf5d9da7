//! The trait [`AuditTrail`], implemented for every [`Backend`].

use std::sync::Arc;

use super::{ActionEnd, ActionId, ActionQuery, ActionRecord, BeginOutcome, NewAction, begin, bounded, finish, page};
use crate::domain::UnixMillis;
use crate::store::backend::{Backend, ReadKind};
use crate::store::{StoreError, StoreFuture};
use crate::telemetry::without_cards;

/// How often an id is drawn for an action. A clash is rare, two in a row are rarer.
const MAX_DRAWS: usize = 8;

/// The durable audit trail. Each method is one transaction.
pub trait AuditTrail: Send + Sync + 'static {
    /// Writes the row of an action that is about to take effect. Resolves only after the commit is on disk; after an
    /// error the action must not take effect. The action of a form that was sent before is not written again, not even
    /// when two nodes receive it at once: the caller gets the row of the first.
    fn begin_action(&self, action: NewAction) -> StoreFuture<'_, BeginOutcome>;

    /// Completes the row of an action, also when the action failed. Does nothing if the row was completed before.
    fn end_action<'a>(&'a self, id: ActionId, at: UnixMillis, outcome: &'a str) -> StoreFuture<'a, ()>;

    /// Returns actions, newest first; those of one millisecond in no particular order. One search in an index, however
    /// many rows there are.
    fn actions(&self, query: ActionQuery) -> StoreFuture<'_, Vec<ActionRecord>>;
}

impl<B: Backend> AuditTrail for B {
    fn begin_action(&self, action: NewAction) -> StoreFuture<'_, BeginOutcome> {
        Box::pin(async move {
            for _ in 0..MAX_DRAWS {
                let id = ActionId::draw(action.at, self.random());
                let new = Arc::new(action.clone().into_record(id));
                if let Some(begun) = self.transact(async move |tx| begin(tx, &new).await).await? {
                    return Ok(begun);
                }
            }
            Err(StoreError::Unavailable("no free id was found for an action".to_owned()))
        })
    }

    fn end_action<'a>(&'a self, id: ActionId, at: UnixMillis, outcome: &'a str) -> StoreFuture<'a, ()> {
        let end = ActionEnd { at, outcome: bounded(&without_cards(outcome), ActionRecord::MAX_OUTCOME) };
        Box::pin(self.run_alone(async move |tx| finish(tx, id, &end).await))
    }

    fn actions(&self, query: ActionQuery) -> StoreFuture<'_, Vec<ActionRecord>> {
        let query = query.bounded();
        Box::pin(self.read(ReadKind::Page, async move |tx| page(tx, &query).await))
    }
}
