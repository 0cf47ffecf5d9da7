//! Today's rules for a create: pure functions from a request and a snapshot of the rules to an operation that may be
//! created, pending or FAILED.

use std::borrow::Cow;
use std::sync::Arc;

use crate::auth::Interface;
use crate::domain::{
    Amount, CreateRequest, Direction, FailureCause, Fields, InvalidValue, RequestKind, SchemaFields, UnixMillis,
};
use crate::error::RequestError;
use crate::rules::{ApiKey, FieldProblem, FieldRule, Merchant, PaymentChecks, ProviderRules, Shop};
use crate::store::DailyLimit;

/// A request that today's rules accept.
#[derive(Debug)]
pub struct AcceptedRequest {
    /// The selected shop.
    pub shop: Arc<Shop>,
    /// The members of `fields` that the shop's schema keeps.
    pub kept: SchemaFields,
    /// The `fields` to be stored.
    pub fields: Fields,
    /// Whether the schema may drop members of `fields`.
    pub drops_fields: bool,
    /// Why it is created FAILED, when the shop's payment checks refuse it.
    pub failure: Option<FailureCause>,
}

/// A refusal by today's rules.
#[derive(Debug)]
pub struct RuleRefusal {
    /// For the caller, with v2 names.
    pub error: RequestError,
    /// The rule behind it.
    pub rule: RefusingRule,
}

/// A rule that refuses a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefusingRule {
    /// The request names no shop, and the merchant has no default one.
    NoDefaultShop,
    /// The shop is not one of the merchant's.
    NotOfMerchant,
    /// The shop is not enabled for the merchant and this direction, or not for its native v2 creates.
    NotEnabled,
    /// The shop is not active.
    Inactive,
    /// The API key may not use the shop.
    NotOfKey,
    /// The shop has another currency.
    Currency,
    /// The account does not have the format of the shop.
    Account,
    /// The shop's schema.
    Schema(FieldRule),
}

impl RefusingRule {
    fn refuse(self, member: &'static str, reason: impl Into<Cow<'static, str>>) -> RuleRefusal {
        RuleRefusal { error: RequestError::member(member, reason), rule: self }
    }
}

/// Applies today's rules to a request that was received through `interface`, in this order: shop, currency, account,
/// `fields`, payment checks. A request that the checks refuse is accepted as an operation created FAILED.
///
/// # Errors
/// The first rule that refuses it, named by its v2 member.
pub fn check_rules(
    merchant: &Merchant,
    api_key: &ApiKey,
    request: &CreateRequest<'_>,
    interface: Interface,
) -> Result<AcceptedRequest, RuleRefusal> {
    let shop = select_shop(merchant, api_key, request, interface)?;
    if request.currency != shop.currency {
        return Err(RefusingRule::Currency.refuse("currency", "must be the currency of the shop"));
    }
    if let RequestKind::Withdrawal { account_number, .. } = &request.kind {
        let refuse =
            |invalid: InvalidValue| RefusingRule::Account.refuse("account_number", invalid.reason().to_owned());
        shop.account.check(account_number).map_err(refuse)?;
    }
    let failure = refused_customer(&shop.checks, request);
    let Some(schema) = &shop.rules_of(request.kind.direction()).schema else {
        let sent = request.fields.reduced(&SchemaFields::Everything).text().into();
        let fields = Fields { sent, ..Fields::default() };
        return Ok(AcceptedRequest { shop, kept: SchemaFields::Everything, fields, drops_fields: false, failure });
    };
    let kept = SchemaFields::Names(Arc::clone(schema.kept()));
    let reduced = request.fields.reduced(&kept);
    let defaults = schema.check_fields(&merchant.id, &reduced).map_err(refused_field)?;
    let fields = Fields { sent: reduced.text().into(), defaults, ..Fields::default() };
    let drops_fields = request.fields.exceed(&reduced);
    Ok(AcceptedRequest { shop, kept, fields, drops_fields, failure })
}

/// Selects the shop that a request names, or the merchant's default. Unknown, inactive and not enabled shops get the same
/// error.
fn select_shop(
    merchant: &Merchant,
    api_key: &ApiKey,
    request: &CreateRequest<'_>,
    interface: Interface,
) -> Result<Arc<Shop>, RuleRefusal> {
    let direction = request.kind.direction();
    let (code, reason) = match (request.method.as_deref(), &merchant.default_shop) {
        (Some(named), _) => (named, "must be the code of an active shop that is enabled for this operation"),
        (None, Some(default)) => {
            (default.as_str(), "must be given: the default shop is not enabled for this operation")
        }
        (None, None) => {
            return Err(RefusingRule::NoDefaultShop.refuse("method", "is required: there is no default shop"));
        }
    };
    let rule = match merchant.shops.get(code) {
        None => RefusingRule::NotOfMerchant,
        Some(access) if !access.enabled(direction) => RefusingRule::NotEnabled,
        Some(access) if interface == Interface::V2 && !access.v2.enabled(direction) => RefusingRule::NotEnabled,
        Some(access) if !access.shop.active => RefusingRule::Inactive,
        Some(access) if !api_key.may_use(&access.shop.code) => RefusingRule::NotOfKey,
        Some(access) => return Ok(Arc::clone(&access.shop)),
    };
    Err(rule.refuse("method", reason))
}

fn refused_field(problem: FieldProblem) -> RuleRefusal {
    let path = if problem.path.is_empty() { "fields".to_owned() } else { format!("fields.{}", problem.path) };
    RuleRefusal { error: RequestError::member(path, problem.reason), rule: RefusingRule::Schema(problem.rule) }
}

/// Returns why the shop's lists refuse the request's customer, if they do. A member that is absent is not refused.
fn refused_customer(checks: &PaymentChecks, request: &CreateRequest<'_>) -> Option<FailureCause> {
    let address = request.fields.customer_ip.as_ref();
    if address.is_some_and(|ip| checks.refused_addresses.contains(ip.address())) {
        return Some(FailureCause::RefusedAddress);
    }
    let account = request.customer_account_id;
    account.is_some_and(|id| checks.refused_accounts.contains(&id)).then_some(FailureCause::RefusedAccount)
}

/// Returns the limits of the request's customer on the UTC day of `now`; `None` when the request names no customer or there
/// is no limit.
pub(super) fn daily_limit(checks: &PaymentChecks, request: &CreateRequest<'_>, now: UnixMillis) -> Option<DailyLimit> {
    request.customer_account_id?;
    let limits = checks.daily(request.kind.direction());
    let limited = limits.operations.is_some() || limits.amount.is_some();
    limited.then(|| DailyLimit { day: now.day(), operations: limits.operations, amount: limits.amount })
}

/// How a provider begins a new operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AtCreation {
    /// It fails at once: the operation is created FAILED.
    Fail,
    /// A job of the durable queue has to request the result at this time.
    ScheduleAt(UnixMillis),
    /// It waits for the customer.
    Wait,
}

/// Returns how a provider begins an operation. The sandbox decides by the last two digits of the amount (contract section
/// 8): withdrawals are scheduled after its delay; deposits wait for the customer.
pub(super) fn at_creation(
    provider: &ProviderRules,
    direction: Direction,
    amount: Amount,
    now: UnixMillis,
) -> AtCreation {
    match provider {
        ProviderRules::Http(_) => AtCreation::ScheduleAt(now),
        ProviderRules::Sandbox { delay } => match (amount.cents(), direction) {
            (1, _) => AtCreation::Fail,
            (_, Direction::Payin) => AtCreation::Wait,
            (_, Direction::Payout) => AtCreation::ScheduleAt(now.plus(*delay)),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::time::Duration;

    use super::*;
    use crate::domain::{CustomerAccountId, UnixDay};
    use crate::rules::{AddressSet, DailyLimits};
    use crate::wire::v2::read_create;

    fn checks() -> PaymentChecks {
        let prefixes = ["203.0.113.0/24", "2001:db8::/32"];
        let limits = DailyLimits { operations: Some(3), amount: Amount::from_hundredths(1000).ok() };
        PaymentChecks {
            refused_addresses: AddressSet::new(prefixes.iter().map(|text| text.parse().unwrap())),
            refused_accounts: HashSet::from([CustomerAccountId(0), CustomerAccountId(-7)]),
            payin: limits,
            payout: DailyLimits::default(),
        }
    }

    fn decided<T>(direction: Direction, members: &str, decide: impl FnOnce(&CreateRequest<'_>) -> T) -> T {
        let common = r#""order_id":"o","amount":1,"currency":"EUR","callback_url":"https://a.example/""#;
        let own = match direction {
            Direction::Payin => {
                r#""success_url":"https://a.example/","pending_url":"https://a.example/","fail_url":"https://a.example/""#
            }
            Direction::Payout => r#""account_number":"4111111111111111""#,
        };
        let body = format!("{{{common},{own}{members}}}");
        decide(&read_create(direction, body.as_bytes()).unwrap())
    }

    #[test]
    fn lists_refuse_the_customers_they_name() {
        let cause = |members: &str| decided(Direction::Payin, members, |request| refused_customer(&checks(), request));
        for (members, expected) in [
            ("", None),
            (r#","fields":{"merchant_user_ip":null}"#, None),
            (r#","fields":{"merchant_user_ip":"203.0.114.1"}"#, None),
            (r#","fields":{"merchant_user_ip":"203.0.113.255"}"#, Some(FailureCause::RefusedAddress)),
            (r#","fields":{"merchant_user_ip":"::ffff:203.0.113.1"}"#, Some(FailureCause::RefusedAddress)),
            (r#","fields":{"merchant_user_ip":"::ffff:cb00:7101"}"#, Some(FailureCause::RefusedAddress)),
            (r#","fields":{"merchant_user_ip":"2001:DB8:0::1"}"#, Some(FailureCause::RefusedAddress)),
            (r#","fields":{"merchant_user_ip":"2001:db9::1"}"#, None),
            // The customer is named at the top level alone.
            (r#","fields":{"merchant_user_id":0}"#, None),
            (r#","customer_account_id":null"#, None),
            (r#","customer_account_id":7"#, None),
            (r#","customer_account_id":0"#, Some(FailureCause::RefusedAccount)),
            (r#","customer_account_id":-7"#, Some(FailureCause::RefusedAccount)),
            (
                r#","customer_account_id":0,"fields":{"merchant_user_ip":"203.0.113.1"}"#,
                Some(FailureCause::RefusedAddress),
            ),
        ] {
            assert_eq!(cause(members), expected, "{members}");
        }
        let none = decided(Direction::Payin, r#","customer_account_id":0"#, |request| {
            refused_customer(&PaymentChecks::default(), request)
        });
        assert_eq!(none, None);
    }

    #[test]
    fn only_named_customers_have_limits_in_the_directions_that_have_some() {
        let now = UnixMillis(86_400_000 * 20_000 + 86_399_999);
        let limit =
            |direction, members: &str| decided(direction, members, |request| daily_limit(&checks(), request, now));
        let day = DailyLimit { day: UnixDay(20_000), operations: Some(3), amount: Amount::from_hundredths(1000).ok() };
        assert_eq!(limit(Direction::Payin, r#","customer_account_id":0"#), Some(day));
        assert_eq!(limit(Direction::Payin, r#","customer_account_id":null"#), None);
        assert_eq!(limit(Direction::Payin, ""), None);
        assert_eq!(limit(Direction::Payout, r#","customer_account_id":0"#), None);
    }

    #[test]
    fn the_last_two_digits_decide_how_the_sandbox_begins() {
        let sandbox = ProviderRules::Sandbox { delay: Duration::from_secs(1) };
        let at = |hundredths, direction| {
            at_creation(&sandbox, direction, Amount::from_hundredths(hundredths).unwrap(), UnixMillis(1_000))
        };
        let later = AtCreation::ScheduleAt(UnixMillis(2_000));
        for (hundredths, deposit, withdrawal) in [
            (1, AtCreation::Fail, AtCreation::Fail),
            (1001, AtCreation::Fail, AtCreation::Fail),
            (1002, AtCreation::Wait, later),
            (1003, AtCreation::Wait, later),
            (1004, AtCreation::Wait, later),
            (1000, AtCreation::Wait, later),
            (1099, AtCreation::Wait, later),
        ] {
            assert_eq!(at(hundredths, Direction::Payin), deposit, "{hundredths}");
            assert_eq!(at(hundredths, Direction::Payout), withdrawal, "{hundredths}");
        }
    }
}
