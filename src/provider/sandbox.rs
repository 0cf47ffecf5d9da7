//! The built-in provider: decides by the last two digits of the amount (contract section 8).

use std::time::Duration;

use crate::domain::{Amount, Direction, Outcome, UnixMillis};
use crate::engine::AtCreation;

/// What the sandbox makes of a new operation. Withdrawals that come to a result by themselves are asked for after
/// `delay`; deposits wait for what the customer does.
pub fn at_creation(direction: Direction, amount: Amount, delay: Duration, now: UnixMillis) -> AtCreation {
    match (amount.cents(), direction) {
        (1, _) => AtCreation::Fail,
        (2, _) | (_, Direction::Payin) => AtCreation::Wait,
        (_, Direction::Payout) => AtCreation::AskAt(now.plus(delay)),
    }
}

/// The result of a withdrawal whose delay is over.
pub fn withdrawal_result(amount: Amount) -> Outcome {
    match amount.cents() {
        4 => Outcome::Failed,
        _ => Outcome::Success { payer: None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_two_digits_decide() {
        let now = UnixMillis(1_000);
        let delay = Duration::from_secs(1);
        let at =
            |hundredths, direction| at_creation(direction, Amount::from_hundredths(hundredths).unwrap(), delay, now);
        let later = AtCreation::AskAt(UnixMillis(2_000));
        for (hundredths, deposit, withdrawal) in [
            (1001, AtCreation::Fail, AtCreation::Fail),
            (1002, AtCreation::Wait, AtCreation::Wait),
            (1003, AtCreation::Wait, later),
            (1004, AtCreation::Wait, later),
            (1000, AtCreation::Wait, later),
        ] {
            assert_eq!(at(hundredths, Direction::Payin), deposit, "{hundredths}");
            assert_eq!(at(hundredths, Direction::Payout), withdrawal, "{hundredths}");
        }
        let result = |hundredths| withdrawal_result(Amount::from_hundredths(hundredths).unwrap());
        assert_eq!(result(1004), Outcome::Failed);
        assert_eq!(result(1003), Outcome::Success { payer: None });
        assert_eq!(result(1050), Outcome::Success { payer: None });
    }
}
