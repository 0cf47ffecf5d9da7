//! The arguments of `paybridge callbacks`.

use std::time::Duration;

use clap::builder::PossibleValue;
use clap::{Args, Subcommand, ValueEnum, ValueHint};

use super::common::{Format, InterfaceArg, Rules, merchant_id};
use crate::callback::listing::{self, Moment, SpanEnd};
use crate::callback::resend::{RECEIVER, read_receiver};
use crate::domain::{CallbackUrl, MerchantId, OrderId};
use crate::rules::read_span;
use crate::store::{CallbackCursor, CallbackId, CallbackState};

/// `paybridge callbacks`.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub enum Callbacks {
    /// List callbacks, newest first
    List(ListCallbacks),
    /// Show a callback and all its attempts
    Show(ShowCallback),
    /// Queue callbacks to be sent again
    Resend(ResendCallbacks),
    /// Send a callback marked as a sample to a merchant's receiver
    Sample(SampleCallback),
}

const EXAMPLES: &str = "\
Examples:
  paybridge callbacks list
  paybridge callbacks show cb_0123456789abcdef00000000000000ff
  paybridge callbacks resend --failed --since 2h
  paybridge callbacks sample --merchant demo --url https://localhost:9443/cb";

/// `paybridge callbacks list`.
#[derive(Debug, Args)]
#[command(after_help = LIST_EXAMPLES)]
pub struct ListCallbacks {
    /// The rules directory.
    #[command(flatten)]
    pub rules: Rules,
    /// Filters.
    #[command(flatten)]
    pub which: Which,
    /// The most callbacks to list, up to 1000
    #[arg(long, value_name = "NUMBER", default_value_t = listing::DEFAULT_LIMIT, value_parser = limit)]
    pub limit: usize,
    /// Continue after this place, which the previous list printed
    #[arg(long, value_name = "PLACE", value_parser = place)]
    pub after: Option<CallbackCursor>,
    /// A table, or one JSON document
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: Format,
}

/// Filters on callbacks.
#[derive(Debug, Args)]
pub struct Which {
    /// Only in this state; several separated by commas, or repeated [default: pending, failed]
    #[arg(long = "state", value_enum, value_name = "STATE", value_delimiter = ',')]
    pub states: Vec<CallbackState>,
    /// Only of this merchant
    #[arg(long, value_name = "ID", value_parser = merchant_id)]
    pub merchant: Option<MerchantId>,
    /// Only of the merchant's operations with this order id
    #[arg(long, value_name = "ID", requires = "merchant", value_parser = order_id)]
    pub order_id: Option<OrderId>,
    /// Queued or resent since this time: an age (30m, 2h, 3d), a date (from its first instant, in UTC) or a time (RFC 3339)
    #[arg(long, value_name = "WHEN", value_parser = since)]
    pub since: Option<Moment>,
    /// Queued or resent until this time: an age, a date (to its last instant, in UTC) or a time
    #[arg(long, value_name = "WHEN", value_parser = until)]
    pub until: Option<Moment>,
}

const LIST_EXAMPLES: &str = "\
Columns: id, state, merchant, order_id, through (v1: in the merchant's dialect), number of attempts, time \
since it was queued or resent, time of the next attempt, the target (scheme, host and port), and the \
result of the last attempt.

Reads the store that the rules name, even while a gateway uses it.

Examples:
  paybridge callbacks list
  paybridge callbacks list --state failed --since 1d --merchant demo
  paybridge callbacks list --since 2026-11-24 --until 2026-11-25
  paybridge callbacks list --state failed --limit 1000 --format json | jq -r '.callbacks[].id'";

/// `paybridge callbacks show`.
#[derive(Debug, Args)]
#[command(after_help = SHOW_EXAMPLES)]
pub struct ShowCallback {
    /// The rules directory.
    #[command(flatten)]
    pub rules: Rules,
    /// The callback's id, from the X-Callback-Id header: `cb_` and 32 digits
    #[arg(value_name = "ID", value_parser = callback_id)]
    pub id: String,
    /// Text, or one JSON document
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: Format,
}

const SHOW_EXAMPLES: &str = "\
The latest 1000 attempts are kept. Exits with 1 if there is no such callback.

Examples:
  paybridge callbacks show cb_0123456789abcdef00000000000000ff
  paybridge callbacks show cb_0123456789abcdef00000000000000ff --format json | jq '.tries[-1]'";

/// `paybridge callbacks resend`.
#[derive(Debug, Args)]
#[command(after_help = RESEND_EXAMPLES)]
pub struct ResendCallbacks {
    /// The rules directory.
    #[command(flatten)]
    pub rules: Rules,
    /// The callbacks' ids; or use --failed or --pending
    #[arg(value_name = "ID", value_parser = callback_id, required_unless_present_any = ["failed", "pending"])]
    pub ids: Vec<String>,
    /// All failed callbacks
    #[arg(long, conflicts_with = "ids")]
    pub failed: bool,
    /// All pending callbacks of a receiver
    #[arg(long, conflicts_with_all = ["ids", "failed"], requires = "receiver")]
    pub pending: bool,
    /// With --pending: the receiver: scheme, host and port of its address
    #[arg(long, value_name = "ORIGIN", requires = "pending", value_parser = receiver)]
    pub receiver: Option<Box<str>>,
    /// With --failed or --pending: only of this merchant
    #[arg(long, value_name = "ID", conflicts_with = "ids", value_parser = merchant_id)]
    pub merchant: Option<MerchantId>,
    /// With --failed: queued or resent since this time: an age (30m, 2h, 3d), a date (from its first instant, in UTC) or a time (RFC 3339)
    #[arg(long, value_name = "WHEN", conflicts_with_all = ["ids", "pending"], value_parser = since)]
    pub since: Option<Moment>,
    /// With --failed: queued or resent until this time: an age, a date (to its last instant, in UTC) or a time
    #[arg(long, value_name = "WHEN", conflicts_with_all = ["ids", "pending"], value_parser = until)]
    pub until: Option<Moment>,
    /// With ids: wait at most this long until each was attempted, and show the results
    #[arg(long, value_name = "SPAN", conflicts_with_all = ["failed", "pending"], value_parser = span)]
    pub wait: Option<Duration>,
}

const RESEND_EXAMPLES: &str = "\
Queues callbacks in any state: a running gateway sends them within a second, with the same id, and \
retries them like new ones. Receivers recognize repeats by the id. A target that has not replied for a \
while is probed at least once a minute, and callbacks for it wait until it replies.

The command may be repeated: queued callbacks stay queued. A callback that is being sent at that moment \
is not queued, and the exit code is 1. With --wait, exits with 0 if all were delivered.

With --pending, the callbacks that wait for their next attempt at a receiver are due now. They keep their \
attempts and the time at which they are given up.

Examples:
  paybridge callbacks resend cb_0123456789abcdef00000000000000ff --wait 30s
  paybridge callbacks resend --failed --since 2h
  paybridge callbacks resend --failed --merchant demo --since 2026-01-02T03:00:00Z --until 30m
  paybridge callbacks resend --pending --receiver https://shop.example:443";

/// `paybridge callbacks sample`.
#[derive(Debug, Args)]
#[command(after_help = SAMPLE_EXAMPLES)]
pub struct SampleCallback {
    /// The rules directory.
    #[command(flatten)]
    pub rules: Rules,
    /// The merchant that receives the sample
    #[arg(long, value_name = "ID", value_parser = merchant_id)]
    pub merchant: MerchantId,
    /// The API key whose secret signs [default: the merchant's first usable key]
    #[arg(long, value_name = "API_KEY")]
    pub key: Option<String>,
    /// The API version of the callback [default: the merchant's `callbacks` setting]
    #[arg(long = "kind", value_enum, value_name = "THROUGH")]
    pub through: Option<InterfaceArg>,
    /// The receiver's URL [default: the merchant's `callback_url`]
    #[arg(long, value_name = "URL", value_parser = callback_url, value_hint = ValueHint::Url)]
    pub url: Option<CallbackUrl>,
    /// Text, or one JSON document
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: Format,
}

const SAMPLE_EXAMPLES: &str = "\
Sends one callback from this machine, signed like any other, and prints the request and the result. \
It has the header X-Callback-Sample: true and reports an order that does not exist, whose id begins with \
sample-. Nothing is stored, and there is no retry. Exits with 0 if the reply is a 2xx.

Examples:
  paybridge callbacks sample --merchant demo
  paybridge callbacks sample --merchant demo --kind v2 --url https://localhost:9443/cb";

impl ValueEnum for CallbackState {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self {
            Self::Pending => "Attempts are made or will be made",
            Self::Delivered => "The receiver accepted it",
            Self::Failed => "Given up; not attempted again unless resent",
        };
        Some(PossibleValue::new(self.as_str()).help(help))
    }
}

fn callback_url(text: &str) -> Result<CallbackUrl, String> {
    CallbackUrl::new_allowing_http(text).map_err(|invalid| invalid.reason().to_owned())
}

fn order_id(text: &str) -> Result<OrderId, String> {
    OrderId::new(text).map_err(|invalid| invalid.reason().to_owned())
}

/// Accepts any text of the right form, without the white space around it, which a paste brings along. An id that no callback can have is reported by the command as unknown.
fn callback_id(text: &str) -> Result<String, String> {
    let text = text.trim();
    CallbackId::has_form(text)
        .then(|| text.to_owned())
        .ok_or_else(|| "must be `cb_` and 32 hexadecimal digits, as in lists".to_owned())
}

fn since(text: &str) -> Result<Moment, String> {
    Moment::parse(text, SpanEnd::Since).ok_or_else(|| Moment::EXPECTED.to_owned())
}

fn until(text: &str) -> Result<Moment, String> {
    Moment::parse(text, SpanEnd::Until).ok_or_else(|| Moment::EXPECTED.to_owned())
}

fn span(text: &str) -> Result<Duration, String> {
    read_span(text).ok_or_else(|| "must be a duration such as 500ms, 30s or 2m".to_owned())
}

fn receiver(text: &str) -> Result<Box<str>, String> {
    read_receiver(text).ok_or_else(|| RECEIVER.to_owned())
}

fn place(text: &str) -> Result<CallbackCursor, String> {
    listing::read_cursor(text).ok_or_else(|| "must be the place at which a list ended".to_owned())
}

fn limit(text: &str) -> Result<usize, String> {
    let limit = text.parse().ok().filter(|limit| (1..=listing::MAX_CALLBACKS).contains(limit));
    limit.ok_or_else(|| format!("must be a number from 1 to {}", listing::MAX_CALLBACKS))
}
