//! The double-entry ledger: a merchant's accounts in a currency, and the postings that move money between them
//! (contract section 7, "money").

use std::fmt;

use super::{Direction, Status};

/// An account of one merchant in one currency. A posting moves money from one account to another, so that the balances
/// of all accounts sum to zero at every commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LedgerAccount {
    /// The outside world: what providers took in (negative) and paid out.
    Outside,
    /// The source of opening balances.
    Opening,
    /// What the merchant can withdraw.
    Available,
    /// What pending withdrawals hold.
    Held,
}

impl LedgerAccount {
    /// All accounts.
    pub const ALL: [Self; 4] = [Self::Outside, Self::Opening, Self::Available, Self::Held];

    /// Returns its name, as exports show it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Outside => "outside",
            Self::Opening => "opening",
            Self::Available => "available",
            Self::Held => "held",
        }
    }
}

/// Why money moves between two accounts. An operation has at most one posting of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Posting {
    /// The merchant's `balance.opening`, posted once.
    Opened,
    /// A deposit succeeded.
    Credited,
    /// A withdrawal was created.
    Held,
    /// A withdrawal succeeded.
    Taken,
    /// A withdrawal failed.
    Released,
}

impl Posting {
    /// All kinds.
    pub const ALL: [Self; 5] = [Self::Opened, Self::Credited, Self::Held, Self::Taken, Self::Released];

    /// Returns its name, as exports show it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Opened => "opened",
            Self::Credited => "credited",
            Self::Held => "held",
            Self::Taken => "taken",
            Self::Released => "released",
        }
    }

    /// Returns what is posted when an operation is created with this status.
    #[must_use]
    pub const fn of_creation(direction: Direction, status: Status) -> &'static [Self] {
        match (direction, status) {
            (Direction::Payin, Status::Success) => &[Self::Credited],
            (Direction::Payout, Status::Pending) => &[Self::Held],
            (Direction::Payout, Status::Success) => &[Self::Held, Self::Taken],
            (Direction::Payin, Status::Pending | Status::Failed) | (Direction::Payout, Status::Failed) => &[],
        }
    }

    /// Returns what is posted when a pending operation is completed with this status.
    #[must_use]
    pub const fn of_result(direction: Direction, status: Status) -> &'static [Self] {
        match (direction, status) {
            (Direction::Payin, Status::Success) => &[Self::Credited],
            (Direction::Payout, Status::Success) => &[Self::Taken],
            (Direction::Payout, Status::Failed) => &[Self::Released],
            (_, Status::Pending) | (Direction::Payin, Status::Failed) => &[],
        }
    }

    /// Returns the account that the money leaves and the account that it enters.
    #[must_use]
    pub const fn from_to(self) -> (LedgerAccount, LedgerAccount) {
        use LedgerAccount::{Available, Held, Opening, Outside};
        match self {
            Self::Opened => (Opening, Available),
            Self::Credited => (Outside, Available),
            Self::Held => (Available, Held),
            Self::Taken => (Held, Outside),
            Self::Released => (Held, Available),
        }
    }
}

/// A merchant's balance in one currency, in hundredths. `available` is negative if withdrawals were accepted without
/// cover (`balance.enforce = false`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Balance {
    /// What can be withdrawn.
    pub available: i64,
    /// What pending withdrawals hold.
    pub held: i64,
}

/// Displays signed hundredths as v1 writes amounts: two decimals always, `-0.05`.
#[derive(Debug, Clone, Copy)]
pub struct Decimals(pub i64);

impl fmt::Display for Decimals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let hundredths = self.0.unsigned_abs();
        write!(f, "{sign}{}.{:02}", hundredths / 100, hundredths % 100)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn balances_have_two_decimals_on_either_side_of_zero() {
        for (hundredths, text) in [
            (0, "0.00"),
            (5, "0.05"),
            (-5, "-0.05"),
            (-99, "-0.99"),
            (-100, "-1.00"),
            (1050, "10.50"),
            (-1200, "-12.00"),
            (999_999_999_999_999, "9999999999999.99"),
            (1_000_000_000_000_001, "10000000000000.01"),
            (i64::MAX, "92233720368547758.07"),
            (i64::MIN, "-92233720368547758.08"),
        ] {
            assert_eq!(Decimals(hundredths).to_string(), text);
        }
    }

    #[test]
    fn money_goes_from_one_account_to_another() {
        for posting in Posting::ALL {
            let (from, to) = posting.from_to();
            assert_ne!(from, to, "{posting:?}");
        }
        // Held money is either captured or released, from the account where it was put.
        let (given_by, held) = Posting::Held.from_to();
        assert_eq!(Posting::Released.from_to(), (held, given_by));
        assert_eq!(Posting::Taken.from_to(), (held, LedgerAccount::Outside));
    }
}
