//! The double-entry ledger's words: accounts of a merchant in a currency, and the postings that move money between
//! them (contract section 7, "money").

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

#[cfg(test)]
mod tests {
    use super::*;

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
