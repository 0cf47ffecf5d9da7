//! Implements [`AuditTrail`] for every [`Backend`].

use std::sync::Arc;

use super::{
    ActionEnd, ActionId, ActionQuery, ActionRecord, ActionRows as _, AuditTrail, BeginOutcome, NewAction, begin,
    bounded,
};
use crate::domain::UnixMillis;
use crate::store::backend::Backend;
use crate::store::{StoreError, StoreFuture};
use crate::telemetry::without_cards;

/// How often a number is drawn for an action. A clash is rare, two in a row are rarer.
const MAX_DRAWS: usize = 8;

impl<B: Backend> AuditTrail for B {
    fn begin_action(&self, action: NewAction) -> StoreFuture<'_, BeginOutcome> {
        Box::pin(async move {
            for _ in 0..MAX_DRAWS {
                let id = ActionId::draw(action.at, self.random());
                let new = Arc::new(action.clone().into_record(id));
                if let Some(begun) = self.transact(async move |rows: &mut B::Rows<'_>| begin(rows, &new).await).await? {
                    return Ok(begun);
                }
            }
            Err(StoreError::Unavailable("no free number was found for an action".to_owned()))
        })
    }

    fn end_action<'a>(&'a self, id: ActionId, at: UnixMillis, outcome: &'a str) -> StoreFuture<'a, ()> {
        let end = ActionEnd { at, outcome: bounded(&without_cards(outcome), ActionRecord::MAX_OUTCOME) };
        Box::pin(self.transact(async move |rows: &mut B::Rows<'_>| rows.finish_action(id, &end).await))
    }

    fn actions(&self, query: ActionQuery) -> StoreFuture<'_, Vec<ActionRecord>> {
        Box::pin(self.action_list(query.bounded()))
    }
}
