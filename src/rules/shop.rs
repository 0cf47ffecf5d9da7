//! A shop: one currency, one payment method, a schema for each direction, and a provider.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::CertificateDer;

use super::limits::AddressSet;
use super::reconcile::StatementRules;
use crate::domain::{
    AccountNumber, Amount, Currency, CustomerAccountId, Direction, InvalidValue, ProviderKind, Secrets, ShopCode,
};

pub use super::schema::{FieldProblem, FieldRule, FieldsSchema};

/// A shop (contract section 2, `shops/<code>.toml`).
#[derive(Debug)]
pub struct Shop {
    /// Its code, which is the name of its file.
    pub code: ShopCode,
    /// The name shown to customers: `name`, or its code.
    pub name: Box<str>,
    /// The currency of its operations.
    pub currency: Currency,
    /// Whether it accepts new operations.
    pub active: bool,
    /// The status record's `method` when the create request named no shop.
    pub payment_method: Option<Arc<str>>,
    /// The rules of deposits.
    pub payin: DirectionRules,
    /// The rules of withdrawals.
    pub payout: DirectionRules,
    /// The format of a withdrawal's `account_number`.
    pub account: AccountRule,
    /// Its payment checks (`[checks]`).
    pub checks: PaymentChecks,
    /// The provider that moves the money.
    pub provider: ProviderRules,
    /// After which an operation needs attention.
    pub expected_within: ExpectedWithin,
    /// How its provider's statement is read (`[reconcile]`).
    pub reconcile: Option<StatementRules>,
}

impl Shop {
    /// Returns the rules of one direction.
    #[must_use]
    pub const fn rules_of(&self, direction: Direction) -> &DirectionRules {
        match direction {
            Direction::Payin => &self.payin,
            Direction::Payout => &self.payout,
        }
    }
}

/// The rules of a shop for one direction.
#[derive(Debug, Default)]
pub struct DirectionRules {
    /// The input schema of `fields`; without one, any object passes.
    pub schema: Option<Arc<FieldsSchema>>,
    /// The schema's file name, relative to the directory of the shop; empty without a schema.
    pub schema_file: Box<str>,
    /// Whether pages of deposits offer the signed return link.
    pub browser_return: bool,
}

impl ProviderRules {
    /// Returns the kind of the provider.
    #[must_use]
    pub const fn kind(&self) -> ProviderKind {
        match self {
            Self::Sandbox { .. } => ProviderKind::Sandbox,
            Self::Http(_) => ProviderKind::Http,
        }
    }
}

/// The format of a recipient's account (promises P161 to P163).
#[derive(Debug, Clone)]
pub enum AccountRule {
    /// 12 to 19 digits.
    Card,
    /// `+` and 8 to 15 digits.
    Mobile,
    /// A pattern agreed for the shop.
    Pattern(regex::Regex),
    /// No rule beyond [`AccountNumber`]'s own.
    Any,
}

impl AccountRule {
    /// Checks an account against this rule.
    ///
    /// # Errors
    /// What the account must look like.
    pub fn check(&self, account: &AccountNumber) -> Result<(), InvalidValue> {
        let text = account.expose();
        let digits = |text: &str, length: std::ops::RangeInclusive<usize>| {
            length.contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit())
        };
        let (holds, reason) = match self {
            Self::Card => (digits(text, 12..=19), "must be 12 to 19 digits"),
            Self::Mobile => (
                text.strip_prefix('+').is_some_and(|rest| digits(rest, 8..=15)),
                "must be a + followed by 8 to 15 digits",
            ),
            Self::Pattern(pattern) => (pattern.is_match(text), "must have the format agreed for this shop"),
            Self::Any => (true, ""),
        };
        if holds { Ok(()) } else { Err(InvalidValue::new(reason)) }
    }
}

/// The payment checks of a shop, applied before an operation goes to its provider: of `merchant_user_ip` and of
/// `customer_account_id` (promises P090 and P132). An operation that fails them is created FAILED.
#[derive(Debug, Default)]
pub struct PaymentChecks {
    /// Customers' addresses (`fields.merchant_user_ip`) that are refused.
    pub refused_addresses: AddressSet,
    /// Customers (`customer_account_id`) that are refused.
    pub refused_accounts: HashSet<CustomerAccountId>,
    /// The limits of one customer's deposits on one UTC day.
    pub payin: DailyLimits,
    /// The limits of one customer's withdrawals on one UTC day.
    pub payout: DailyLimits,
}

impl PaymentChecks {
    /// Returns the daily limits of one direction.
    #[must_use]
    pub const fn daily(&self, direction: Direction) -> DailyLimits {
        match direction {
            Direction::Payin => self.payin,
            Direction::Payout => self.payout,
        }
    }
}

/// The limits of one customer (`customer_account_id` of a merchant) in a shop and direction on one UTC day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DailyLimits {
    /// The most operations.
    pub operations: Option<u32>,
    /// The largest sum.
    pub amount: Option<Amount>,
}

/// How long operations may be PENDING before they need attention (contract section 14).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExpectedWithin {
    /// Deposits; `None`: for ever.
    pub payin: Option<Duration>,
    /// Withdrawals; `None`: for ever.
    pub payout: Option<Duration>,
    /// Whether deposits count that wait for their customers.
    pub customers_too: bool,
}

/// The provider that moves the money of a shop (contract section 8).
#[derive(Debug, Clone)]
pub enum ProviderRules {
    /// The built-in provider, for development, demonstrations and tests.
    Sandbox {
        /// How long it takes to reach a result.
        delay: Duration,
    },
    /// A separate service.
    Http(HttpProvider),
}

/// A provider that receives operations over HTTP and reports their results (contract section 8).
#[derive(Debug, Clone)]
pub struct HttpProvider {
    /// The URL that operations are sent to: `https://`, or `http://` to a loopback address.
    pub url: Box<str>,
    /// The first one signs requests, all verify reports.
    pub secrets: Secrets,
    /// Certificates (DER) that are trusted besides the system's roots.
    pub trust: Arc<[CertificateDer<'static>]>,
    /// The timeout of one request.
    pub timeout: Duration,
    /// The first wait after a failed request; it doubles, with jitter.
    pub first_retry: Duration,
    /// The longest wait between requests.
    pub max_retry: Duration,
    /// How long after its creation an operation is still sent. It then stays PENDING until a report completes it, or an
    /// operator does.
    pub give_up_after: Duration,
}
