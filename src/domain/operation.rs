//! Operations and their life: PENDING to SUCCESS or FAILED, once.

use std::fmt;
use std::sync::Arc;

use super::{
    AccountNumber, Amount, BrowserUrl, CallbackUrl, Currency, CustomerAccountId, InvalidValue, MerchantId, OrderId,
    ShopCode, TransactionId, UnixMillis,
};

/// The direction of a payment. `order_id` is unique per merchant and direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// A deposit: the customer pays the merchant.
    Payin,
    /// A withdrawal: the merchant pays the customer.
    Payout,
}

impl Direction {
    /// Reads `payin` or `payout`.
    ///
    /// # Errors
    /// It is another word.
    pub fn parse(word: &str) -> Result<Self, InvalidValue> {
        let known = [Self::Payin, Self::Payout].into_iter().find(|direction| direction.as_str() == word);
        known.ok_or(InvalidValue::new("must be payin or payout"))
    }

    /// Returns `payin` or `payout`, as rule files and v1 filters write it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Payin => "payin",
            Self::Payout => "payout",
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The status that status endpoints show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// No result yet.
    Pending,
    /// The money moved.
    Success,
    /// The money did not move and will not.
    Failed,
}

impl Status {
    /// Returns the v2 spelling.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Success => "SUCCESS",
            Self::Failed => "FAILED",
        }
    }
}

/// The final result of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The money moved.
    Success {
        /// The account that a deposit was paid from, if the provider reported one.
        payer: Option<AccountNumber>,
    },
    /// The money did not move and will not.
    Failed,
}

impl Outcome {
    /// Returns the status that it leads to.
    #[must_use]
    pub const fn status(&self) -> Status {
        match self {
            Self::Success { .. } => Status::Success,
            Self::Failed => Status::Failed,
        }
    }
}

/// The state of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// No result yet.
    Pending,
    /// Completed; this never changes.
    Finished {
        /// The result.
        outcome: Outcome,
        /// When the result was stored.
        at: UnixMillis,
    },
}

/// A report that contradicts the stored result: it is refused and logged, and changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contradiction {
    /// The stored result.
    pub completed: Status,
}

impl State {
    /// Returns the status that this state shows.
    #[must_use]
    pub const fn status(&self) -> Status {
        match self {
            Self::Pending => Status::Pending,
            Self::Finished { outcome: Outcome::Success { .. }, .. } => Status::Success,
            Self::Finished { outcome: Outcome::Failed, .. } => Status::Failed,
        }
    }

    /// Completes the operation. `Ok(Err(state))` means that the same result was reported again; the state is unchanged.
    ///
    /// # Errors
    /// The operation already has the other result.
    pub fn finish(self, outcome: Outcome, at: UnixMillis) -> Result<Result<Self, Self>, Contradiction> {
        match (&self, &outcome) {
            (Self::Pending, _) => Ok(Ok(Self::Finished { outcome, at })),
            (Self::Finished { outcome: Outcome::Success { .. }, .. }, Outcome::Success { .. })
            | (Self::Finished { outcome: Outcome::Failed, .. }, Outcome::Failed) => Ok(Err(self)),
            (Self::Finished { .. }, _) => Err(Contradiction { completed: self.status() }),
        }
    }
}

/// The data that only deposits have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deposit {
    /// Browser destination for SUCCESS.
    pub success_url: BrowserUrl,
    /// Browser destination for PENDING.
    pub pending_url: BrowserUrl,
    /// Browser destination for FAILED.
    pub fail_url: BrowserUrl,
    /// The signed customer entry link, stored and returned verbatim for ever (contract section 7, "links").
    pub redirect_url: RedirectUrl,
}

/// A signed link. It is a secret of the customer, so `Debug` hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct RedirectUrl(Arc<str>);

impl RedirectUrl {
    /// Accepts a link made by an engine.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(text.into())
    }

    /// Returns the whole link.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for RedirectUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RedirectUrl(..)")
    }
}

/// The data that only withdrawals have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Withdrawal {
    /// The recipient's account.
    pub account_number: AccountNumber,
    /// The optional `account_channel`, 1 to 64 characters.
    pub account_channel: Option<Box<str>>,
}

/// The kinds of providers. Each operation stores its kind, and a provider of another kind never works on it or reports
/// its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProviderKind {
    /// The built-in sandbox.
    Sandbox,
    /// An external HTTP service.
    Http,
}

impl ProviderKind {
    /// Why a provider is not called for an operation of its kind, in words for operators.
    pub const NOT_GIVEN: &str = "the rules no longer give its shop the kind of provider that it was created for";

    /// Returns its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sandbox => "sandbox",
            Self::Http => "http",
        }
    }
}

/// The part of an operation that depends on its direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A payin.
    Deposit(Deposit),
    /// A payout.
    Withdrawal(Withdrawal),
}

impl Kind {
    /// Returns the direction of this kind.
    #[must_use]
    pub const fn direction(&self) -> Direction {
        match self {
            Self::Deposit(_) => Direction::Payin,
            Self::Withdrawal(_) => Direction::Payout,
        }
    }
}

/// A deposit or a withdrawal. Its `fields` are not here: they stay encrypted in the store until the provider needs
/// them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// The service's id.
    pub id: TransactionId,
    /// The merchant that created it; only this merchant may see it.
    pub merchant: MerchantId,
    /// The merchant's id.
    pub order_id: OrderId,
    /// The amount.
    pub amount: Amount,
    /// The currency.
    pub currency: Currency,
    /// The shop code in the create request, if it named one.
    pub method: Option<ShopCode>,
    /// The shop that serves the operation.
    pub shop: ShopCode,
    /// The shop's payment-method code at creation.
    pub payment_method: Option<Arc<str>>,
    /// The merchant's id of its customer.
    pub customer_account_id: Option<CustomerAccountId>,
    /// Where callbacks are sent.
    pub callback_url: CallbackUrl,
    /// The data that depends on the direction.
    pub kind: Kind,
    /// The kind of provider that moves the money, even if the shop's rules change later.
    pub provider: ProviderKind,
    /// The state.
    pub state: State,
    /// When it was created.
    pub created_at: UnixMillis,
}

impl Operation {
    /// Returns the direction of its kind.
    #[must_use]
    pub const fn direction(&self) -> Direction {
        self.kind.direction()
    }

    /// Returns the status record's `method`: the code sent at creation, else the shop's payment-method code, else
    /// `unknown` (promises P025 to P027).
    #[must_use]
    pub fn shown_method(&self) -> &str {
        match (&self.method, &self.payment_method) {
            (Some(named), _) => named.as_str(),
            (None, Some(payment_method)) => payment_method,
            (None, None) => "unknown",
        }
    }

    /// Returns the status record's `account_number`, masked: a withdrawal's recipient, or a deposit's payer if
    /// reported.
    #[must_use]
    pub fn shown_account(&self) -> Option<String> {
        match (&self.kind, &self.state) {
            (Kind::Withdrawal(withdrawal), _) => Some(withdrawal.account_number.masked()),
            (Kind::Deposit(_), State::Finished { outcome: Outcome::Success { payer }, .. }) => {
                payer.as_ref().map(AccountNumber::masked)
            }
            (Kind::Deposit(_), _) => None,
        }
    }
}

/// How the merchant receives the result of an operation created through v1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallbackSender {
    /// From the engine itself, in the v2 format: the merchant's rules have `callbacks = "v2"`. A journal entry does not
    /// store this: it has no callback address then, because the remote engine calls the merchant.
    Directly,
    /// From the relay, at this address of the merchant, in its dialect. `None`: the merchant gave no address and is not
    /// called back.
    Relayed(Option<CallbackUrl>),
}

impl CallbackSender {
    /// Returns the address to which an operation's result is sent; `None`: the merchant is not called back. `sender` is
    /// that of an operation created through v1.
    #[must_use]
    pub const fn called_address<'a>(
        sender: Option<&'a Self>,
        callback_url: &'a CallbackUrl,
    ) -> Option<&'a CallbackUrl> {
        match sender {
            Some(Self::Relayed(url)) => url.as_ref(),
            Some(Self::Directly) | None => Some(callback_url),
        }
    }

    /// Returns the merchant's address that the relay calls.
    #[must_use]
    pub const fn relayed_to(&self) -> Option<&CallbackUrl> {
        match self {
            Self::Relayed(url) => url.as_ref(),
            Self::Directly => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_is_completed_once() {
        let (early, late) = (UnixMillis(1), UnixMillis(2));
        let success = || Outcome::Success { payer: None };
        let completed = State::Pending.finish(success(), early).unwrap().unwrap();
        assert_eq!(completed.status(), Status::Success);
        let again = completed.clone().finish(success(), late).unwrap();
        assert_eq!(again, Err(completed.clone()), "the first time is kept");
        assert_eq!(completed.finish(Outcome::Failed, late), Err(Contradiction { completed: Status::Success }));
        let failed = State::Pending.finish(Outcome::Failed, early).unwrap().unwrap();
        assert_eq!(failed.finish(success(), late), Err(Contradiction { completed: Status::Failed }));
    }

    fn deposit(state: State) -> Operation {
        let url = || BrowserUrl::new("https://a.example/").unwrap();
        Operation {
            id: TransactionId::from_stored(7).unwrap(),
            merchant: MerchantId::new("acme").unwrap(),
            order_id: OrderId::new("o").unwrap(),
            amount: Amount::from_hundredths(1000).unwrap(),
            currency: Currency::new("EUR").unwrap(),
            method: None,
            shop: ShopCode::new("card").unwrap(),
            payment_method: None,
            customer_account_id: None,
            callback_url: CallbackUrl::new("https://a.example/").unwrap(),
            kind: Kind::Deposit(Deposit {
                success_url: url(),
                pending_url: url(),
                fail_url: url(),
                redirect_url: RedirectUrl::new("https://a.example/".into()),
            }),
            provider: ProviderKind::Sandbox,
            state,
            created_at: UnixMillis(1),
        }
    }

    // keeps P029, P030, P031, P032
    #[test]
    fn a_deposit_shows_the_payer_that_its_provider_reported() {
        let finished = |outcome| State::Finished { outcome, at: UnixMillis(2) };
        let paid_by = |account: &str| finished(Outcome::Success { payer: Some(AccountNumber::new(account).unwrap()) });
        for (state, shown) in [
            (State::Pending, None),
            (finished(Outcome::Failed), None),
            (finished(Outcome::Success { payer: None }), None),
            (paid_by("4111111111111111"), Some("411111******1111")),
            (paid_by("411111111111"), Some("411111**1111")),
            (paid_by("4111111111111111111"), Some("411111*********1111")),
            (paid_by("+254712345678"), Some("+254712345678")),
            (paid_by("41111111111"), Some("41111111111")),
        ] {
            assert_eq!(deposit(state.clone()).shown_account().as_deref(), shown, "{state:?}");
        }
    }
}
