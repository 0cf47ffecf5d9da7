//! The arguments of `paybridge readiness`.

use clap::Args;

use super::common::{Format, Rules, merchant_id};
use crate::domain::{Direction, MerchantId};

/// `paybridge readiness`.
#[derive(Debug, Args)]
#[command(after_help = READINESS_EXAMPLES)]
pub struct ReadinessArgs {
    /// The rules directory.
    #[command(flatten)]
    pub rules: Rules,
    /// Only this merchant, in any mode
    #[arg(long, value_name = "ID", value_parser = merchant_id)]
    pub merchant: Option<MerchantId>,
    /// Only this shop
    #[arg(long, value_name = "SHOP")]
    pub shop: Option<String>,
    /// Only creates of this direction
    #[arg(long = "kind", value_enum, value_name = "DIRECTION")]
    pub direction: Option<Direction>,
    /// The least number of checked creates of a shop and direction
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub min_creates: u64,
    /// The least number of days since the first of them
    #[arg(long, value_name = "N", default_value_t = 7)]
    pub min_days: u32,
    /// The report as text, or as one JSON document
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: Format,
}

const READINESS_EXAMPLES: &str = "\
Shows what v2 would have done with the v1 creates that the old service answered, for each merchant, shop \
and direction, under the rules in force: a change of the rules that creates are checked by starts new counts. \
A blocker is a create that the old service accepted and v2 would refuse, with the rule to change. A shop is \
`not ready` with a blocker, or while its direction's old ids are not imported completely, and `not enough` \
below the minimums. A shop and direction without a create is `no traffic` and does not count.

Exits with 0 if all merchants in the report are ready, else with 4; one without traffic counts only if the \
report is limited with `--merchant`, `--shop` or `--kind`. It may run while a gateway serves.

Examples:
  paybridge readiness
  paybridge readiness --merchant demo --min-creates 200 --min-days 3
  paybridge readiness --merchant demo --shop card-eur --kind payin
  paybridge readiness --format json | jq '.merchants[].rows[].blockers[] | {file, key, count}'";
