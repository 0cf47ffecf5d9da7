//! What the gateway keeps of its callbacks, read beside it, as its own commands do.

use std::sync::Arc;

use paybridge::clock::SystemRandomness;
use paybridge::domain::{MerchantId, OrderId, UnixMillis};
use paybridge::rules::{self, LoadOptions};
use paybridge::store::{
    CallbackId, CallbackQuery, CallbackRecord, CallbackState, CallbackTry, Resent, Store, StoreAccess, TryOutcome,
    open_beside,
};

use crate::support::receiver::Received;
use crate::support::request::unix_now;
use crate::support::{Gateway, eventually};

/// The gateway's store.
pub struct Book(Arc<dyn Store>);

impl Book {
    #[track_caller]
    pub fn of(gateway: &Gateway) -> Self {
        let rules = rules::load(&gateway.rules_dir(), UnixMillis(0), None, LoadOptions::default()).unwrap();
        Self(
            open_beside(&rules.gateway.store, StoreAccess::Read, Arc::new(SystemRandomness::default()), Arc::default())
                .unwrap(),
        )
    }

    /// Every callback of an order.
    pub async fn of_order(&self, merchant: &str, order_id: &str) -> Vec<CallbackRecord> {
        let query = CallbackQuery {
            states: vec![CallbackState::Pending, CallbackState::Delivered, CallbackState::Failed],
            merchant: MerchantId::new(merchant).ok(),
            order_id: OrderId::new(order_id).ok(),
            since: None,
            until: None,
            after: None,
            limit: 10,
        };
        self.0.callbacks(query).await.unwrap()
    }

    /// A callback with its tries, oldest first.
    pub async fn callback(&self, id: CallbackId) -> (CallbackRecord, Vec<CallbackTry>) {
        self.0.callback(id).await.unwrap().expect("the callback is kept")
    }

    /// The callback that a receiver got.
    pub async fn received(&self, received: &Received) -> (CallbackRecord, Vec<CallbackTry>) {
        self.callback(CallbackId::parse(received.id()).unwrap()).await
    }

    /// Waits until a callback that a receiver got stands so.
    pub async fn becomes(&self, received: &Received, state: CallbackState) -> (CallbackRecord, Vec<CallbackTry>) {
        let what = format!("{} is {}", received.id(), state.as_str());
        eventually(&what, async || Some(self.received(received).await).filter(|(record, _)| record.state == state))
            .await
    }

    /// Resends a callback by hand.
    pub async fn resend(&self, received: &Received) -> Resent {
        let now = UnixMillis(i64::try_from(unix_now()).unwrap() * 1000);
        self.0.resend_callback(CallbackId::parse(received.id()).unwrap(), now).await.unwrap()
    }

    /// How many callbacks wait, and how many were given up.
    pub async fn sizes(&self) -> (u64, u64) {
        let size = self.0.outbox_size().await.unwrap();
        (size.pending, size.failed)
    }
}

/// What came of tries: statuses, and 0 for no answer.
pub fn outcomes(tries: &[CallbackTry]) -> Vec<u16> {
    let outcome = |one: &CallbackTry| match one.outcome {
        TryOutcome::Status(status) => status,
        TryOutcome::Error(_) => 0,
    };
    tries.iter().map(outcome).collect()
}
