//! `[checks]` of a shop: whom and how much it serves.

use toml::Spanned;

use super::{Context, Here};
use crate::domain::{Amount, CustomerAccountId, Direction};
use crate::rules::raw::{Field, Prefix, RawChecks, RawDailyLimits};
use crate::rules::{AddressSet, DailyLimits, PaymentChecks};

impl Context<'_> {
    pub(super) fn checks(&mut self, here: Here<'_>, raw: &RawChecks) -> PaymentChecks {
        let prefixes = raw.refused_addresses.get().map_or(&[][..], |list| &list.0);
        let accounts = raw.refused_accounts.get().map_or(&[][..], |list| &list.0);
        let prefix = |prefix: &Spanned<Prefix>| prefix.get_ref().0;
        PaymentChecks {
            refused_addresses: AddressSet::new(prefixes.iter().map(prefix)),
            refused_accounts: accounts.iter().map(|id| CustomerAccountId(*id.get_ref())).collect(),
            payin: self.daily_limits(here, &raw.payin, Direction::Payin),
            payout: self.daily_limits(here, &raw.payout, Direction::Payout),
        }
    }

    fn daily_limits(&mut self, here: Here<'_>, raw: &Field<RawDailyLimits>, direction: Direction) -> DailyLimits {
        let Some(raw) = raw.get() else { return DailyLimits::default() };
        let amount = raw.amount_per_day.get().and_then(|amount| {
            let read = Amount::from_decimal_string(amount.0.get_ref());
            let name = format!("`checks.{direction}.amount_per_day`");
            read.map_err(|invalid| self.problem(here, amount.0.span(), format!("{name} {invalid}"))).ok()
        });
        DailyLimits { operations: raw.operations_per_day.get().copied(), amount }
    }
}
