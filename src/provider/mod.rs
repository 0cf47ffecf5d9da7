//! Payment providers, which move the money behind a shop (contract section 8).

pub mod events;
mod http;
mod in_flight;
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

/// Returns the rules in force.
pub type CurrentRules = Arc<dyn Fn() -> Arc<RuleSet> + Send + Sync>;

/// All providers, behind the engine's [`Provider`] interface.
#[derive(Debug, Default)]
pub struct Providers {
    stored: Notify,
}

impl Provider for Providers {
    fn at_creation(&self, shop: &Shop, direction: Direction, amount: Amount, now: UnixMillis) -> AtCreation {
        match &shop.provider {
            ProviderRules::Sandbox { delay } => sandbox::at_creation(direction, amount, *delay, now),
            ProviderRules::Http(_) => AtCreation::ScheduleAt(now),
        }
    }

    fn next_action(&self, provider: &ProviderRules, operation: &Operation, now: UnixMillis) -> Option<NextAction> {
        match provider {
            // An operation created for an HTTP provider cannot be paid in the sandbox.
            ProviderRules::Sandbox { delay } if operation.provider == ProviderKind::Sandbox => {
                sandbox::next_action(operation, *delay, now)
            }
            ProviderRules::Sandbox { .. } | ProviderRules::Http(_) => None,
        }
    }

    fn job_stored(&self) {
        self.stored.notify_one();
    }
}
