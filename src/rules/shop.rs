//! A shop: one currency, one payment method, a schema for each direction, a provider behind it.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::CertificateDer;

use super::Secrets;
use super::limits::AddressSet;
use crate::domain::{
    AccountNumber, Amount, Currency, CustomerAccountId, Direction, InvalidValue, ProviderKind, ShopCode,
};

pub use super::schema::{FieldProblem, FieldsSchema};

/// A shop (contract section 2, `shops/<code>.toml`).
#[derive(Debug)]
pub struct Shop {
    /// Its code: the file's name.
    pub code: ShopCode,
    /// What customers read of it: `name`, else its code.
    pub name: Box<str>,
    /// The one currency it takes.
    pub currency: Currency,
    /// Whether it takes operations now.
    pub active: bool,
    /// The status record's `method` when the create request named none.
    pub payment_method: Option<Box<str>>,
    /// Deposits.
    pub payin: ShopSide,
    /// Withdrawals.
    pub payout: ShopSide,
    /// What a withdrawal's `account_number` must look like.
    pub account: AccountRule,
    /// Whom and how much it serves (`[checks]`).
    pub checks: PaymentChecks,
    /// What moves the money.
    pub provider: ProviderRules,
}

impl Shop {
    /// The rules of one direction.
    #[must_use]
    pub const fn side(&self, direction: Direction) -> &ShopSide {
        match direction {
            Direction::Payin => &self.payin,
            Direction::Payout => &self.payout,
        }
    }
}

/// The rules of a shop for one direction.
#[derive(Debug, Default)]
pub struct ShopSide {
    /// The input schema of `fields`; without one, any object passes.
    pub schema: Option<Arc<FieldsSchema>>,
    /// Whether pages offer the signed return link (deposits).
    pub browser_return: bool,
}

impl ProviderRules {
    /// Which kind of provider it is.
    #[must_use]
    pub const fn kind(&self) -> ProviderKind {
        match self {
            Self::Sandbox { .. } => ProviderKind::Sandbox,
            Self::Http(_) => ProviderKind::Http,
        }
    }
}

/// What a recipient's account must look like (merchant-api-v2, "POST /api/v2/withdrawals").
#[derive(Debug, Clone)]
pub enum AccountRule {
    /// 12 to 19 digits.
    Card,
    /// `+` and 8 to 15 digits.
    Mobile,
    /// As agreed for the shop.
    Pattern(regex::Regex),
    /// No rule beyond [`AccountNumber`]'s own.
    Any,
}

impl AccountRule {
    /// Checks an account by this rule.
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

/// The payment checks of a shop, applied before an operation goes to its provider (merchant-api-v2,
/// `customer_account_id` and `merchant_user_ip`). What they refuse is created FAILED.
#[derive(Debug, Default)]
pub struct PaymentChecks {
    /// Customers' addresses (`fields.merchant_user_ip`) that are refused.
    pub refused_addresses: AddressSet,
    /// Customers (`customer_account_id`) that are refused.
    pub refused_accounts: HashSet<CustomerAccountId>,
    /// What one customer may do on one UTC day: deposits.
    pub payin: DailyLimits,
    /// What one customer may do on one UTC day: withdrawals.
    pub payout: DailyLimits,
}

impl PaymentChecks {
    /// The daily limits of one direction.
    #[must_use]
    pub const fn daily(&self, direction: Direction) -> DailyLimits {
        match direction {
            Direction::Payin => self.payin,
            Direction::Payout => self.payout,
        }
    }
}

/// What one customer (`customer_account_id` of a merchant) may do in a shop and direction on one UTC day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DailyLimits {
    /// At most so many operations.
    pub operations: Option<u32>,
    /// At most this much in all.
    pub amount: Option<Amount>,
}

/// What moves the money behind a shop (contract section 8).
#[derive(Debug, Clone)]
pub enum ProviderRules {
    /// The built-in one, for development, demonstrations and tests.
    Sandbox {
        /// How long it takes to come to a result.
        delay: Duration,
    },
    /// A service of its own.
    Http(HttpProvider),
}

/// A provider that is asked over HTTP and reports back (contract section 8).
#[derive(Debug, Clone)]
pub struct HttpProvider {
    /// Where operations are posted: `https://`, or `http://` to a loopback address.
    pub url: Box<str>,
    /// The first signs requests, any of them verifies reports.
    pub secrets: Secrets,
    /// Certificates (DER) that are trusted beside the system's roots.
    pub trust: Arc<[CertificateDer<'static>]>,
    /// How long one request may take.
    pub timeout: Duration,
    /// The first wait after a failed request; it doubles, with jitter.
    pub first_retry: Duration,
    /// The longest wait between requests.
    pub max_retry: Duration,
    /// How long after its creation an operation is no longer asked for. It stays PENDING: only a report can end it.
    pub give_up_after: Duration,
}
