//! `paybridge callbacks`.

use std::time::Duration;

use clap::builder::PossibleValue;
use clap::{Args, Subcommand, ValueEnum, ValueHint};

use super::{Format, InterfaceArg, Rules, merchant_id};
use crate::callback::listing::{self, Moment};
use crate::domain::{CallbackUrl, MerchantId, OrderId};
use crate::rules::read_span;
use crate::store::{CallbackCursor, CallbackId, CallbackState};

/// `paybridge callbacks`.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub enum Callbacks {
    /// List callbacks, the newest first
    List(ListCallbacks),
    /// Show a callback and every try of it
    Show(ShowCallback),
    /// Send callbacks again
    Resend(ResendCallbacks),
    /// Try a merchant's receiver with a callback that is marked as a sample
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
    /// Which rule files.
    #[command(flatten)]
    pub rules: Rules,
    /// Which callbacks.
    #[command(flatten)]
    pub which: Which,
    /// At most so many, up to 1000
    #[arg(long, value_name = "NUMBER", default_value_t = listing::DEFAULT_LIMIT, value_parser = limit)]
    pub limit: usize,
    /// Those behind a list that said where it ends
    #[arg(long, value_name = "PLACE", value_parser = place)]
    pub after: Option<CallbackCursor>,
    /// A table, or one JSON document
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: Format,
}

/// Which callbacks to list.
#[derive(Debug, Args)]
pub struct Which {
    /// In this state; several with commas, or repeated [default: pending, failed]
    #[arg(long = "state", value_enum, value_name = "STATE", value_delimiter = ',')]
    pub states: Vec<CallbackState>,
    /// Of this merchant
    #[arg(long, value_name = "ID", value_parser = merchant_id)]
    pub merchant: Option<MerchantId>,
    /// Of the operations that the merchant calls so
    #[arg(long, value_name = "ID", requires = "merchant", value_parser = order_id)]
    pub order_id: Option<OrderId>,
    /// Queued or resent since: an age (30m, 2h, 3d) or a time (RFC 3339)
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    pub since: Option<Moment>,
    /// Queued or resent until: an age or a time
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    pub until: Option<Moment>,
}

const LIST_EXAMPLES: &str = "\
The columns: id, state, merchant, order_id, kind (v1: in the merchant's dialect), how many tries, how long ago it was \
queued or resent, when it is tried next, scheme, host and port of the address, and what came of the last try.

Reads the store that the rules name; a gateway may serve meanwhile.

Examples:
  paybridge callbacks list
  paybridge callbacks list --state failed --since 1d --merchant demo
  paybridge callbacks list --state failed --limit 1000 --format json | jq -r '.callbacks[].id'";

/// `paybridge callbacks show`.
#[derive(Debug, Args)]
#[command(after_help = SHOW_EXAMPLES)]
pub struct ShowCallback {
    /// Which rule files.
    #[command(flatten)]
    pub rules: Rules,
    /// Its id: X-Callback-Id of the request, `cb_` and 32 digits
    #[arg(value_name = "ID", value_parser = callback_id)]
    pub id: String,
    /// For people, or one JSON document
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: Format,
}

const SHOW_EXAMPLES: &str = "\
The latest 1000 tries are kept. Exits 1 when there is no such callback.

Examples:
  paybridge callbacks show cb_0123456789abcdef00000000000000ff
  paybridge callbacks show cb_0123456789abcdef00000000000000ff --format json | jq '.tries[-1]'";

/// `paybridge callbacks resend`.
#[derive(Debug, Args)]
#[command(after_help = RESEND_EXAMPLES)]
pub struct ResendCallbacks {
    /// Which rule files.
    #[command(flatten)]
    pub rules: Rules,
    /// Their ids; or --failed
    #[arg(value_name = "ID", value_parser = callback_id, required_unless_present = "failed", conflicts_with = "failed")]
    pub ids: Vec<String>,
    /// All that were given up
    #[arg(long)]
    pub failed: bool,
    /// With --failed: of this merchant
    #[arg(long, value_name = "ID", conflicts_with = "ids", value_parser = merchant_id)]
    pub merchant: Option<MerchantId>,
    /// With --failed: queued or resent since: an age (30m, 2h, 3d) or a time (RFC 3339)
    #[arg(long, value_name = "WHEN", conflicts_with = "ids", value_parser = moment)]
    pub since: Option<Moment>,
    /// With --failed: queued or resent until: an age or a time
    #[arg(long, value_name = "WHEN", conflicts_with = "ids", value_parser = moment)]
    pub until: Option<Moment>,
    /// With ids: wait until each was tried, at most so long, and tell what came of it
    #[arg(long, value_name = "SPAN", conflicts_with = "failed", value_parser = span)]
    pub wait: Option<Duration>,
}

const RESEND_EXAMPLES: &str = "\
Queues callbacks, whatever became of them: the gateway that serves sends them within a second, with \
the same id, and tries as often as with a new one. Receivers know by the id what they have had. A \
target that gave no answer for a while is tried now and then, at least once a minute: what is queued \
for it waits for that.

May be run again: what is queued already stays queued. What is being sent at that moment is left \
alone, and the exit code is 1. With --wait exits 0 when each was delivered.

Examples:
  paybridge callbacks resend cb_0123456789abcdef00000000000000ff --wait 30s
  paybridge callbacks resend --failed --since 2h
  paybridge callbacks resend --failed --merchant demo --since 2026-01-02T03:00:00Z --until 30m";

/// `paybridge callbacks sample`.
#[derive(Debug, Args)]
#[command(after_help = SAMPLE_EXAMPLES)]
pub struct SampleCallback {
    /// Which rule files.
    #[command(flatten)]
    pub rules: Rules,
    /// Whose receiver
    #[arg(long, value_name = "ID", value_parser = merchant_id)]
    pub merchant: MerchantId,
    /// The API key whose secret signs [default: the merchant's first that can]
    #[arg(long, value_name = "API_KEY")]
    pub key: Option<String>,
    /// In whose words [default: as the merchant's `callbacks` says]
    #[arg(long, value_enum)]
    pub kind: Option<InterfaceArg>,
    /// Where to [default: the merchant's `callback_url`]
    #[arg(long, value_name = "URL", value_parser = callback_url, value_hint = ValueHint::Url)]
    pub url: Option<CallbackUrl>,
    /// For people, or one JSON document
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: Format,
}

const SAMPLE_EXAMPLES: &str = "\
Sends one callback now, from here, signed and sent like any other, and prints what was sent and what \
came of it. It has the header X-Callback-Sample: true and tells of an order that does not exist, whose \
id begins with sample-. Nothing is stored, and it is not sent again. Exits 0 when the answer is a 2xx.

Examples:
  paybridge callbacks sample --merchant demo
  paybridge callbacks sample --merchant demo --kind v2 --url https://localhost:9443/cb";

impl ValueEnum for CallbackState {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self {
            Self::Pending => "Tried, or will be",
            Self::Delivered => "The receiver has it",
            Self::Failed => "Given up, until it is resent",
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

/// A name that no callback can have is left to the command, which says that there is none.
fn callback_id(text: &str) -> Result<String, String> {
    CallbackId::has_form(text)
        .then(|| text.to_owned())
        .ok_or_else(|| "must be `cb_` and 32 hexadecimal digits, as lists show it".to_owned())
}

fn moment(text: &str) -> Result<Moment, String> {
    Moment::parse(text).ok_or_else(|| Moment::EXPECTED.to_owned())
}

fn span(text: &str) -> Result<Duration, String> {
    read_span(text).ok_or_else(|| "must be a span of time such as 500ms, 30s or 2m".to_owned())
}

fn place(text: &str) -> Result<CallbackCursor, String> {
    listing::read_place(text).ok_or_else(|| "must be the place that a list ended with".to_owned())
}

fn limit(text: &str) -> Result<usize, String> {
    let limit = text.parse().ok().filter(|limit| (1..=listing::MOST).contains(limit));
    limit.ok_or_else(|| format!("must be a number from 1 to {}", listing::MOST))
}
