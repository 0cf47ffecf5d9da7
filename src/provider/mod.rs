//! Payment providers, which move the money behind a shop, and the built-in one: the sandbox, where the last two digits of
//! the amount decide the result (contract section 8).

pub mod events;
mod handler;
mod http;
mod in_flight;
mod job;
#[cfg(test)]
mod testing;

use std::time::Duration;

use tokio::sync::Notify;

use crate::domain::{
    Amount, Detail, Direction, Instructions, Operation, Outcome, ProviderKind, ProviderReason, UnixMillis,
};
use crate::engine::{NextAction, Provider, Report};
use crate::rules::ProviderRules;

pub use handler::ProviderHandler;

/// All providers, behind the engine's [`Provider`] interface.
#[derive(Debug, Default)]
pub struct Providers {
    stored: Notify,
}

impl Provider for Providers {
    fn next_action(&self, provider: &ProviderRules, operation: &Operation, now: UnixMillis) -> Option<NextAction> {
        match provider {
            // An operation created for an HTTP provider cannot be paid in the sandbox.
            ProviderRules::Sandbox { delay } if operation.provider == ProviderKind::Sandbox => {
                next_action(operation, *delay, now)
            }
            ProviderRules::Sandbox { .. } | ProviderRules::Http(_) => None,
        }
    }

    fn job_stored(&self) {
        self.stored.notify_one();
    }
}

/// How long the preparation of deposits ending in .04 takes, from their creation.
const SLOW_PREPARATION: Duration = Duration::from_secs(10);

/// Returns the report on a withdrawal whose delay is over.
fn withdrawal_report(amount: Amount) -> Report {
    let outcome = match amount.cents() {
        2 => return Report::Pending,
        4 => Outcome::Failed,
        _ => Outcome::Success { payer: None },
    };
    Report::Finished(outcome, ProviderReason::default())
}

/// Returns the next action of a pending deposit's customer at `now`. Nothing is stored for it: the amount and the age
/// of the deposit determine it. Withdrawals have none.
fn next_action(operation: &Operation, delay: Duration, now: UnixMillis) -> Option<NextAction> {
    if operation.direction() == Direction::Payout {
        return None;
    }
    let cents = operation.amount.cents();
    let preparation = if cents == 4 { SLOW_PREPARATION } else { delay };
    if now < operation.created_at.plus(preparation) {
        return Some(NextAction::Preparing);
    }
    match cents {
        2 => Some(NextAction::Stopped),
        3 => instructions(operation).map(NextAction::Instructions),
        _ => Some(NextAction::SandboxPage),
    }
}

/// Returns instructions without any account, real or not, so that no customer tries to pay.
fn instructions(operation: &Operation) -> Option<Instructions> {
    let detail = |label: &str, value: String| Detail { label: label.into(), value: value.into() };
    let details = vec![
        detail("Amount", format!("{} {}", operation.amount, operation.currency)),
        detail("Reference", operation.id.to_string()),
    ];
    let text = "This is the sandbox: a real provider would explain here how to pay. No money can be sent.";
    Instructions::new(Some(text.into()), details).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{
        AccountNumber, BrowserUrl, CallbackUrl, Currency, Deposit, Kind, MerchantId, OrderId, ProviderKind,
        RedirectUrl, ShopCode, State, TransactionId, Withdrawal,
    };

    const CREATED: UnixMillis = UnixMillis(1_780_000_000_000);

    fn operation(hundredths: u64, kind: Kind) -> Operation {
        Operation {
            id: TransactionId::from_stored(4711).unwrap(),
            merchant: MerchantId::new("acme").unwrap(),
            order_id: OrderId::new("o").unwrap(),
            amount: Amount::from_hundredths(hundredths).unwrap(),
            currency: Currency::new("EUR").unwrap(),
            method: None,
            shop: ShopCode::new("card").unwrap(),
            payment_method: None,
            customer_account_id: None,
            callback_url: CallbackUrl::new("https://a.example/cb").unwrap(),
            kind,
            provider: ProviderKind::Sandbox,
            state: State::Pending,
            created_at: CREATED,
        }
    }

    fn deposit(hundredths: u64) -> Operation {
        let url = || BrowserUrl::new("https://a.example/r").unwrap();
        let redirect_url = RedirectUrl::new("https://p.example/pay/4711".into());
        let kind = Deposit { success_url: url(), pending_url: url(), fail_url: url(), redirect_url };
        operation(hundredths, Kind::Deposit(kind))
    }

    #[test]
    fn the_next_action_depends_on_amount_and_age() {
        let delay = Duration::from_secs(3);
        let action =
            |hundredths, millis| next_action(&deposit(hundredths), delay, UnixMillis(CREATED.0 + millis)).unwrap();
        for hundredths in [1000, 1002, 1003, 1004, 1005, 1099] {
            assert_eq!(action(hundredths, 0), NextAction::Preparing, "{hundredths}");
            assert_eq!(action(hundredths, 2_999), NextAction::Preparing, "{hundredths}");
            assert_eq!(action(hundredths, -5_000), NextAction::Preparing, "a clock that was set back: {hundredths}");
        }
        assert_eq!(action(1002, 3_000), NextAction::Stopped);
        assert!(matches!(action(1003, 3_000), NextAction::Instructions(_)));
        for hundredths in [1000, 1005, 1099] {
            assert_eq!(action(hundredths, 3_000), NextAction::SandboxPage, "{hundredths}");
        }
        assert_eq!(action(1004, 9_999), NextAction::Preparing);
        assert_eq!(action(1004, 10_000), NextAction::SandboxPage);
    }

    #[test]
    fn instructions_name_the_deposit_and_no_account() {
        let instructions_of_deposit = instructions(&deposit(1003)).unwrap();
        let details: Vec<_> =
            instructions_of_deposit.details().iter().map(|d| (d.label.as_ref(), d.value.as_ref())).collect();
        assert_eq!(details, [("Amount", "10.03 EUR"), ("Reference", "4711")]);
        assert!(instructions_of_deposit.text().is_some());
    }

    #[test]
    fn a_withdrawal_ending_in_02_stays_pending_whenever_it_is_called() {
        let report = |hundredths| withdrawal_report(Amount::from_hundredths(hundredths).unwrap());
        assert_eq!(report(1002), Report::Pending);
        assert_eq!(report(1004), Report::Finished(Outcome::Failed, ProviderReason::default()));
        assert_eq!(report(1003), Report::Finished(Outcome::Success { payer: None }, ProviderReason::default()));
    }

    #[test]
    fn a_withdrawal_has_no_next_action() {
        let kind =
            Withdrawal { account_number: AccountNumber::new("4111111111111111").unwrap(), account_channel: None };
        assert_eq!(next_action(&operation(1000, Kind::Withdrawal(kind)), Duration::ZERO, CREATED), None);
    }
}
