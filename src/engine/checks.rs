//! The payment checks of a shop, applied before a provider is asked anything, and why an operation was created FAILED.

use crate::domain::{CreateRequest, UnixMillis};
use crate::rules::PaymentChecks;
use crate::store::{CreateOutcome, DailyLimit};

/// Why an operation was created FAILED (merchant-api-v2: "HTTP 200 is also returned when the operation already has a
/// failed result"). For the log and the metrics: the caller reads FAILED and no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureCause {
    /// The provider refuses it at once.
    Provider,
    /// The shop refuses the customer's address.
    RefusedAddress,
    /// The shop refuses the customer's account id.
    RefusedAccount,
    /// It is over what the customer may do in a day.
    DailyLimit,
    /// The available balance does not cover it.
    Balance,
}

impl FailureCause {
    /// The word of the log and the metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Provider => "provider",
            Self::RefusedAddress => "refused_address",
            Self::RefusedAccount => "refused_account",
            Self::DailyLimit => "daily_limit",
            Self::Balance => "balance",
        }
    }

    /// What the store made of a draft that was to be pending.
    pub(super) const fn of_verdict(verdict: CreateOutcome) -> Option<Self> {
        match verdict {
            CreateOutcome::AsDrafted => None,
            CreateOutcome::OverDailyLimit => Some(Self::DailyLimit),
            CreateOutcome::NotCovered => Some(Self::Balance),
        }
    }
}

/// Why the shop's lists refuse the request's customer, if they do. What a request does not name is not refused.
pub(super) fn refusal(checks: &PaymentChecks, request: &CreateRequest<'_>) -> Option<FailureCause> {
    let address = request.fields.customer_ip.as_ref();
    if address.is_some_and(|ip| checks.refused_addresses.contains(ip.address())) {
        return Some(FailureCause::RefusedAddress);
    }
    let account = request.customer_account_id;
    account.is_some_and(|id| checks.refused_accounts.contains(&id)).then_some(FailureCause::RefusedAccount)
}

/// What the request's customer may do on the UTC day of `now`; `None` when it names no customer or there is no limit.
pub(super) fn daily_limit(checks: &PaymentChecks, request: &CreateRequest<'_>, now: UnixMillis) -> Option<DailyLimit> {
    request.customer_account_id?;
    let limits = checks.daily(request.kind.direction());
    let limited = limits.operations.is_some() || limits.amount.is_some();
    limited.then(|| DailyLimit { day: now.day(), operations: limits.operations, amount: limits.amount })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::domain::{Amount, CustomerAccountId, Direction, UnixDay};
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

    fn asked<T>(direction: Direction, members: &str, ask: impl FnOnce(&CreateRequest<'_>) -> T) -> T {
        let common = r#""order_id":"o","amount":1,"currency":"EUR","callback_url":"https://a.example/""#;
        let own = match direction {
            Direction::Payin => {
                r#""success_url":"https://a.example/","pending_url":"https://a.example/","fail_url":"https://a.example/""#
            }
            Direction::Payout => r#""account_number":"4111111111111111""#,
        };
        let body = format!("{{{common},{own}{members}}}");
        ask(&read_create(direction, body.as_bytes()).unwrap())
    }

    #[test]
    fn lists_refuse_the_customers_they_name() {
        let cause = |members: &str| asked(Direction::Payin, members, |request| refusal(&checks(), request));
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
        let none = asked(Direction::Payin, r#","customer_account_id":0"#, |request| {
            refusal(&PaymentChecks::default(), request)
        });
        assert_eq!(none, None);
    }

    #[test]
    fn only_named_customers_have_limits_in_the_directions_that_have_some() {
        let now = UnixMillis(86_400_000 * 20_000 + 86_399_999);
        let limit =
            |direction, members: &str| asked(direction, members, |request| daily_limit(&checks(), request, now));
        let day = DailyLimit { day: UnixDay(20_000), operations: Some(3), amount: Amount::from_hundredths(1000).ok() };
        assert_eq!(limit(Direction::Payin, r#","customer_account_id":0"#), Some(day));
        assert_eq!(limit(Direction::Payin, r#","customer_account_id":null"#), None);
        assert_eq!(limit(Direction::Payin, ""), None);
        assert_eq!(limit(Direction::Payout, r#","customer_account_id":0"#), None);
    }
}
