//! The arguments of `paybridge operations`.

use clap::{Args, Subcommand};

use super::common::{Format, Rules, merchant_id};
use crate::domain::MerchantId;
use crate::operations::{DEFAULT_LIMIT, MAX_OPERATIONS, OperationFilter};

/// `paybridge operations`.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub enum Operations {
    /// List operations, newest first
    List(ListOperations),
    /// Show an operation and its timeline
    Show(ShowOperation),
    /// Have the provider of a pending operation called again
    #[command(after_help = ASK_EXAMPLES)]
    Ask(OperationArg),
    /// Set the result of a pending operation
    Resolve(ResolveOperation),
    /// Confirm a result that another operator set
    Confirm(ConfirmOperation),
    /// Acknowledge a report that contradicts an operation's result
    #[command(after_help = ACKNOWLEDGE_EXAMPLES)]
    Acknowledge(OperationArg),
}

const EXAMPLES: &str = "\
Where admin.read_only is set, ask, resolve, confirm and acknowledge change nothing, and end with 1.

Examples:
  paybridge operations list --status PENDING --merchant demo
  paybridge operations list --attention
  paybridge operations show 4823916530237440
  paybridge operations resolve 4823916530237440 --status FAILED --reason 'not in the statement'";

const ASK_EXAMPLES: &str = "\
A running gateway calls the provider within a second, under the same id. Exits with 1 if the operation has its result, or \
an operator had its provider called less than ten seconds ago.

Examples:
  paybridge operations ask 4823916530237440";

const ACKNOWLEDGE_EXAMPLES: &str = "\
The result stays as it is. Exits with 1 if there is no such report.

Examples:
  paybridge operations acknowledge 4823916530237440";

/// `paybridge operations list`.
#[derive(Debug, Args)]
#[command(after_help = LIST_EXAMPLES)]
pub struct ListOperations {
    /// The rules directory.
    #[command(flatten)]
    pub rules: Rules,
    /// Only of this merchant
    #[arg(long, value_name = "ID", value_parser = merchant_id)]
    pub merchant: Option<MerchantId>,
    /// Only of this shop
    #[arg(long, value_name = "CODE", default_value = "", hide_default_value = true)]
    pub shop: String,
    /// Only of this direction: payin or payout
    #[arg(long, value_name = "DIRECTION", default_value = "", hide_default_value = true)]
    pub direction: String,
    /// Only with this status: PENDING, SUCCESS or FAILED
    #[arg(long, value_name = "STATUS", default_value = "", hide_default_value = true)]
    pub status: String,
    /// Only those created through this API version: v1 or v2
    #[arg(long, value_name = "VERSION", default_value = "", hide_default_value = true)]
    pub through: String,
    /// Only with this order id, of any merchant of the rules
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    pub order_id: String,
    /// Only with this id
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    pub transaction_id: String,
    /// Created at or after this time: RFC 3339, or a date (its first instant in UTC)
    #[arg(long, value_name = "WHEN", default_value = "", hide_default_value = true)]
    pub created_from: String,
    /// Created before this time: RFC 3339, or a date (its first instant in UTC)
    #[arg(long, value_name = "WHEN", default_value = "", hide_default_value = true)]
    pub created_to: String,
    /// Only those that need attention
    #[arg(long)]
    pub attention: bool,
    /// The most operations to list, up to 200
    #[arg(long, value_name = "NUMBER", default_value_t = DEFAULT_LIMIT, value_parser = limit)]
    pub limit: usize,
    /// Continue after this place, which the previous list printed
    #[arg(long, value_name = "PLACE", default_value = "", hide_default_value = true)]
    pub after: String,
    /// A table, or one JSON document
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: Format,
}

impl ListOperations {
    /// Returns the filter.
    #[must_use]
    pub fn filter(&self) -> OperationFilter {
        OperationFilter {
            merchant: self.merchant.as_ref().map(MerchantId::to_string).unwrap_or_default(),
            shop: self.shop.clone(),
            direction: self.direction.clone(),
            status: self.status.clone(),
            through: self.through.clone(),
            order_id: self.order_id.clone(),
            transaction_id: self.transaction_id.clone(),
            created_from: self.created_from.clone(),
            created_to: self.created_to.clone(),
            attention: if self.attention { "true".to_owned() } else { String::new() },
        }
    }
}

const LIST_EXAMPLES: &str = "\
Reads the store that the rules name, even while a gateway uses it. A search that takes over two seconds \
ends with 1, and names what to narrow.

Examples:
  paybridge operations list --status FAILED --created-from 2026-11-24 --created-to 2026-11-25
  paybridge operations list --order-id o-1
  paybridge operations list --attention --format json | jq -r '.operations[].transaction_id'";

/// `paybridge operations show`.
#[derive(Debug, Args)]
#[command(after_help = SHOW_EXAMPLES)]
pub struct ShowOperation {
    /// The rules directory.
    #[command(flatten)]
    pub rules: Rules,
    /// The operation's id
    #[arg(value_name = "ID")]
    pub id: String,
    /// Text, or one JSON document
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: Format,
}

const SHOW_EXAMPLES: &str = "\
Examples:
  paybridge operations show 4823916530237440
  paybridge operations show 4823916530237440 --format json | jq '.timeline[-1]'";

/// An operation to act on.
#[derive(Debug, Args)]
pub struct OperationArg {
    /// The rules directory.
    #[command(flatten)]
    pub rules: Rules,
    /// The operation's id
    #[arg(value_name = "ID")]
    pub id: String,
}

/// `paybridge operations resolve`.
#[derive(Debug, Args)]
#[command(after_help = RESOLVE_EXAMPLES)]
pub struct ResolveOperation {
    /// The operation.
    #[command(flatten)]
    pub operation: OperationArg,
    /// The result: SUCCESS or FAILED
    #[arg(long, value_name = "STATUS")]
    pub status: String,
    /// Why, for the audit trail: 1 to 500 characters
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
}

const RESOLVE_EXAMPLES: &str = "\
Sets the result as a report of the provider does: the merchant is called back. It cannot be undone. \
Where admin.second_operator is set, results are set in the console alone, and the command ends with 1.

Examples:
  paybridge operations resolve 4823916530237440 --status SUCCESS --reason 'in the statement'";

/// `paybridge operations confirm`.
#[derive(Debug, Args)]
#[command(after_help = CONFIRM_EXAMPLES)]
pub struct ConfirmOperation {
    /// The operation.
    #[command(flatten)]
    pub operation: OperationArg,
    /// The number of the resolution
    #[arg(long, value_name = "NUMBER")]
    pub resolution: String,
}

const CONFIRM_EXAMPLES: &str = "\
The number is that of the resolution, as `show` has it. Where admin.second_operator is set, results are confirmed in \
the console alone, and the command ends with 1.

Examples:
  paybridge operations confirm 4823916530237440 --resolution 4823916534431744";

fn limit(text: &str) -> Result<usize, String> {
    let limit = text.parse().ok().filter(|limit| (1..=MAX_OPERATIONS).contains(limit));
    limit.ok_or_else(|| format!("must be a number from 1 to {MAX_OPERATIONS}"))
}
