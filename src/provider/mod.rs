//! What moves the money behind a shop (contract section 8).

pub mod events;
mod flights;
mod http;
mod job;
mod sandbox;
#[cfg(test)]
mod testing;
mod worker;

use std::sync::Arc;

use tokio::sync::Notify;

pub use worker::{ProviderDeps, ProviderWorker};

use crate::domain::{Amount, Direction, Operation, ProviderKind, UnixMillis};
use crate::engine::{AtCreation, NextAction, Provider};
use crate::rules::{ProviderRules, RuleSet, Shop};

/// The rules of the moment.
pub type CurrentRules = Arc<dyn Fn() -> Arc<RuleSet> + Send + Sync>;

/// All providers, as the engine asks them.
#[derive(Debug, Default)]
pub struct Providers {
    stored: Notify,
}

impl Provider for Providers {
    fn at_creation(&self, shop: &Shop, direction: Direction, amount: Amount, now: UnixMillis) -> AtCreation {
        match &shop.provider {
            ProviderRules::Sandbox { delay } => sandbox::at_creation(direction, amount, *delay, now),
            ProviderRules::Http(_) => AtCreation::AskAt(now),
        }
    }

    fn customer_way(&self, provider: &ProviderRules, operation: &Operation, now: UnixMillis) -> Option<NextAction> {
        match provider {
            // What was made for a provider of its own can be paid nowhere else.
            ProviderRules::Sandbox { delay } if operation.provider == ProviderKind::Sandbox => {
                sandbox::customer_way(operation, *delay, now)
            }
            ProviderRules::Sandbox { .. } | ProviderRules::Http(_) => None,
        }
    }

    fn job_stored(&self) {
        self.stored.notify_one();
    }
}
