//! `[checks]` of a shop and `[balance]` of a merchant.

use super::*;
use crate::domain::{Amount, CustomerAccountId, Direction};
use crate::rules::DailyLimits;

fn loaded(checks: &str) -> std::sync::Arc<crate::rules::Shop> {
    let rules = Rules::bare().with("shops/s.toml", format!("{SHOP}{checks}")).load();
    std::sync::Arc::clone(&rules.shops["s"])
}

fn amount(text: &str) -> Amount {
    Amount::from_decimal_string(text).unwrap()
}

#[test]
fn lists_and_limits_are_read() {
    let shop = loaded(
        "[checks]\nrefused_addresses = [\"203.0.113.0/24\", \"2001:db8::/32\", \"198.51.100.7\"]\n\
         refused_accounts = [0, -1, 9223372036854775807, -9223372036854775808, 1_000, 0x10]\n\
         [checks.payin]\noperations_per_day = 1\namount_per_day = \"0.01\"\n\
         [checks.payout]\noperations_per_day = 1000000\n",
    );
    let refused = |address: &str| shop.checks.refused_addresses.contains(address.parse().unwrap());
    for address in ["203.0.113.255", "2001:db8:1::1", "198.51.100.7", "::ffff:203.0.113.1"] {
        assert!(refused(address), "{address}");
    }
    for address in ["203.0.114.1", "2001:db9::1", "198.51.100.8"] {
        assert!(!refused(address), "{address}");
    }
    let mut accounts: Vec<i64> = shop.checks.refused_accounts.iter().map(|id: &CustomerAccountId| id.0).collect();
    accounts.sort_unstable();
    assert_eq!(accounts, [i64::MIN, -1, 0, 16, 1000, i64::MAX]);
    let payin = DailyLimits { operations: Some(1), amount: Some(amount("0.01")) };
    assert_eq!(shop.checks.daily(Direction::Payin), payin);
    assert_eq!(shop.checks.daily(Direction::Payout), DailyLimits { operations: Some(1_000_000), amount: None });
}

#[test]
fn problems_have_places() {
    for (checks, place, message) in [
        ("checks = 1\n", "1:10", "`checks` must be a table, not an integer"),
        ("[checks]\nrefused_address = []\n", "2:1", "did you mean `refused_addresses`?"),
        ("[checks]\nrefused_addresses = \"::1\"\n", "2:21", "must be a list, not a string"),
        (
            "[checks]\nrefused_addresses = [\"::1\", \"x\"]\n",
            "2:29",
            "`checks.refused_addresses[1]` must be an address",
        ),
        ("[checks]\nrefused_addresses = [\"10.1.0.0/8\"]\n", "2:22", "the network is `10.0.0.0/8`"),
        ("[checks]\nrefused_accounts = [\"7\"]\n", "2:21", "`checks.refused_accounts[0]` must be a whole number"),
        ("[checks]\nrefused_accounts = [1.0]\n", "2:21", "must be a whole number within 64 bits"),
        ("[checks]\nrefused_accounts = [9223372036854775808]\n", "2:21", "must be a whole number within 64 bits"),
        (
            "[checks.payin]\noperations_per_day = 0\n",
            "2:22",
            "`checks.payin.operations_per_day` must be a whole number",
        ),
        ("[checks.payin]\noperations_per_day = 1000001\n", "2:22", "from 1 to 1000000"),
        ("[checks.payout]\namount_per_day = 10.0\n", "2:18", "must be an amount as a string"),
        ("[checks.payout]\namount_per_day = \"0\"\n", "2:18", "`checks.payout.amount_per_day` must be greater than 0"),
        ("[checks.payout]\namount_per_day = \"1.001\"\n", "2:18", "`checks.payout.amount_per_day`"),
        ("[checks.payot]\n", "1:9", "did you mean `payout`?"),
        ("[checks.payin]\nper_day = 1\n", "2:1", "known keys: operations_per_day, amount_per_day"),
    ] {
        let text = format!("{checks}[provider]\nkind = \"sandbox\"\n");
        // `currency` must precede the first table.
        let (text, place) = match place.split_once(':') {
            Some((line, column)) => {
                let line: usize = line.parse().unwrap();
                (format!("currency = \"EUR\"\n{text}"), format!("{}:{column}", line + 1))
            }
            None => unreachable!("places have a column"),
        };
        Rules::bare().with("shops/s.toml", text).one_problem(&format!("shops/s.toml:{place}"), message);
    }
}

#[test]
fn balances_may_be_enforced() {
    let balance = "[balance]\nenforce = true\nopening = { EUR = \"10000.00\", usd = \"1\" }\n";
    let rules = Rules::small().with("merchants/m.toml", format!("{MERCHANT}{balance}")).load();
    let balance = &rules.merchants["m"].balance;
    assert!(balance.enforce);
    let opening: Vec<String> =
        balance.opening.iter().map(|(code, amount)| format!("{code} {}", amount.hundredths())).collect();
    assert_eq!(opening, ["EUR 1000000", "USD 100"]);
    let silent = Rules::small().load();
    assert!(!silent.merchants["m"].balance.enforce && silent.merchants["m"].balance.opening.is_empty());
}
