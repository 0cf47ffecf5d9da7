//! The double-entry ledger's words: accounts of a merchant in a currency, and the postings that move money between
//! them (contract section 7, "money").

use std::fmt;

/// An account of one merchant in one currency. What one posting takes from an account it gives to another, so that the
/// balances of all of them sum to zero at every commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LedgerAccount {
    /// The world outside: what providers took in (negative) and paid out.
    Outside,
    /// Where opening balances come from.
    Opening,
    /// What the merchant can withdraw.
    Available,
    /// What withdrawals in progress hold.
    Held,
}

impl LedgerAccount {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Outside, Self::Opening, Self::Available, Self::Held];
}

/// Why money moves between two accounts. An operation has at most one posting of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Posting {
    /// `balance.opening`, once for a merchant.
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
    /// The account that the money leaves and the one it enters.
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

/// What a merchant has in one currency, in hundredths. `available` is below zero where withdrawals were taken that
/// nothing covered (`balance.enforce = false`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Balance {
    /// What can be withdrawn.
    pub available: i64,
    /// What withdrawals in progress hold.
    pub held: i64,
}

/// Shows hundredths, above or below zero, as v1 writes amounts: two decimals always, `-0.05`.
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
        for posting in [Posting::Opened, Posting::Credited, Posting::Held, Posting::Taken, Posting::Released] {
            let (from, to) = posting.from_to();
            assert_ne!(from, to, "{posting:?}");
        }
        // What was held is either taken or given back, from where it was put.
        let (given_by, held) = Posting::Held.from_to();
        assert_eq!(Posting::Released.from_to(), (held, given_by));
        assert_eq!(Posting::Taken.from_to(), (held, LedgerAccount::Outside));
    }
}
