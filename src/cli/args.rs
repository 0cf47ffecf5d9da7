//! The arguments of the command line (contract section 12).

mod callbacks;
mod common;
mod export;
mod operations;
mod readiness;
mod reconcile;
mod store;

pub use callbacks::{Callbacks, ListCallbacks, ResendCallbacks, SampleCallback, ShowCallback, Which};
pub use common::{Format, InterfaceArg, Rules};
pub use export::{ExportArgs, ExportFormat, Period};
pub use operations::{ConfirmOperation, ListOperations, OperationArg, Operations, ResolveOperation, ShowOperation};
pub use readiness::ReadinessArgs;
pub use reconcile::{ReconcileArgs, ReportFormat};
pub use store::{StoreAdopt, StoreBackup, StoreCheck, StoreCommand, StoreCopy, StoreRekey};

use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::path::PathBuf;

use clap::builder::PossibleValue;
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;

use super::listen::exchange::ListenAnswer;
use super::stub::Stub;
use crate::build_info::BUILD;
use crate::domain::{Direction, MerchantId};
use crate::rules::FileKind;
use crate::telemetry::LogFormat;
use common::merchant_id;

/// Serves the v1 payments API for merchants that have not moved to v2, and the v2 API itself.
///
/// A v1 order arrives over TLS, becomes a signed v2 request, and is on disk before the reply.
#[derive(Debug, Parser)]
#[command(name = "paybridge", version = BUILD.as_str(), propagate_version = true, after_help = ROOT_EXAMPLES)]
pub struct Arguments {
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
}

const ROOT_EXAMPLES: &str = "\
Examples, in a clone of the repository:
  paybridge serve              start with the shipped rules and print a curl command to try
  paybridge check              check the rules and show every problem

Results go to standard output, messages to standard error.

Exit codes: 0 success, 1 failure, 2 wrong usage, 4 not ready (`readiness`) or different \
(`reconcile`).";

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the gateway
    Serve(Serve),
    /// Check a rule set and show every problem with its line
    Check(Check),
    /// Compare two rule directories and show what changes, and for which merchants
    Diff(Diff),
    /// Show the v2 body that a v1 body becomes, or why it cannot be translated
    Translate(Translate),
    /// Print the authentication headers of a request
    Sign(Sign),
    /// Receive callbacks and show which of their signatures are valid
    Listen(Listen),
    /// Create a local CA and a server certificate
    Certs(Certs),
    /// Reserve v1 external ids, so that no new operation can use them
    ImportIds(ImportIds),
    /// Show whether merchants can move from the old v1 service to v2
    Readiness(ReadinessArgs),
    /// List, show and resend callbacks, and send a sample
    #[command(subcommand)]
    Callbacks(Callbacks),
    /// List and show operations, and do what operators do about them
    #[command(subcommand)]
    Operations(Operations),
    /// Write operations, ledger entries, callbacks or the audit trail out, as CSV or JSON lines
    Export(ExportArgs),
    /// Compare a provider's statement with the operations of its shop
    Reconcile(ReconcileArgs),
    /// Check, rekey, back up, adopt or copy the store
    #[command(subcommand)]
    Store(StoreCommand),
    /// Query whether the running gateway is ready
    Health(Health),
    /// Print the JSON Schema of a kind of rule file, for editors
    Schema(Schema),
    /// Print shell completions
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// The shell to complete for
        shell: Shell,
    },
    /// Print the manual page of a command, or write all of them
    #[command(after_help = MAN_EXAMPLES)]
    Man(Man),
    /// Run a small service to try the gateway with: an old v1 service, or a provider
    #[command(subcommand, hide = true)]
    Stub(Stub),
}

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  paybridge completions bash > ~/.local/share/bash-completion/completions/paybridge
  paybridge completions fish > ~/.config/fish/completions/paybridge.fish";

const MAN_EXAMPLES: &str = "\
Examples:
  paybridge man | man -l -
  paybridge man store copy | man -l -
  paybridge man --dir ~/.local/share/man/man1";

/// `paybridge man`.
#[derive(Debug, Args)]
pub struct Man {
    /// The command; without one, paybridge itself
    #[arg(value_name = "COMMAND")]
    pub command: Vec<String>,
    /// Write the pages of all commands into this directory, which must exist
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "command")]
    pub dir: Option<PathBuf>,
}

/// `paybridge serve`.
#[derive(Debug, Args)]
#[command(after_help = SERVE_EXAMPLES)]
pub struct Serve {
    /// The rules directory.
    #[command(flatten)]
    pub rules: Rules,
    /// The format of the log on standard error
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub log_format: LogFormat,
}

const SERVE_EXAMPLES: &str = "\
Examples:
  paybridge serve
  paybridge serve --rules /etc/paybridge/rules --log-format json
  RUST_LOG=warn paybridge serve                            no access lines
  RUST_LOG=info,paybridge::access=off paybridge serve      everything but access lines

Signals: SIGTERM and SIGINT let requests in flight finish, for at most shutdown_grace, and exit with 0; a \
second signal exits at once with 1. SIGHUP reloads the rules, which are also watched for changes.

A signed curl command to try is printed only if the rules contain [tls] generate = true.";

/// `paybridge check`.
#[derive(Debug, Args)]
#[command(after_help = CHECK_EXAMPLES)]
pub struct Check {
    /// The rules directory.
    #[command(flatten)]
    pub rules: Rules,
    /// Do not read secrets, for machines that do not have them, such as CI
    #[arg(long)]
    pub no_secrets: bool,
    /// Exit with 0 if there are warnings but no errors
    #[arg(long)]
    pub allow_warnings: bool,
    /// Problems as text on standard error, or as one JSON document on standard output
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: Format,
}

const CHECK_EXAMPLES: &str = "\
Every problem is shown as file:line:column, with the line. An error prevents the rules from being loaded. \
A warning does not, but the rules are probably not what is meant: a key has no allowed addresses, a certificate \
has expired, or a file is not read. Exits with 0 if there is neither, else with 1.

Examples:
  paybridge check
  paybridge check --rules staging/rules --no-secrets
  paybridge check --format json | jq -r '.problems[] | \"\\(.file):\\(.line) \\(.message)\"'";

/// `paybridge diff`.
#[derive(Debug, Args)]
#[command(after_help = DIFF_EXAMPLES)]
pub struct Diff {
    /// The current rules
    #[arg(value_name = "A", value_hint = ValueHint::DirPath)]
    pub old: PathBuf,
    /// The new rules
    #[arg(value_name = "B", value_hint = ValueHint::DirPath)]
    pub new: PathBuf,
    /// Changes as text, or as one JSON document
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: Format,
    /// Exit with 1 if there are changes
    #[arg(long)]
    pub exit_code: bool,
}

const DIFF_EXAMPLES: &str = "\
Lists every change in the meaning of the rules, grouped by the merchants that it affects, the most dangerous first:
  !  rejects or changes what worked before
  -  takes something away
  +  allows more
Comments, order and other spellings of the same value are not changes. Secrets are neither read nor \
shown: they are compared as written. Changes that take effect only at the next start are marked.

Problems in a directory are shown as by `check`. Exits with 0 even if there are changes, unless \
--exit-code is given.

Examples:
  paybridge diff /etc/paybridge/rules staging/rules
  git worktree add /tmp/main main && paybridge diff /tmp/main/rules rules --format json";

/// `paybridge translate`.
#[derive(Debug, Args)]
#[command(after_help = TRANSLATE_EXAMPLES)]
pub struct Translate {
    /// The rules directory.
    #[command(flatten)]
    pub rules: Rules,
    /// The merchant whose rules apply
    #[arg(long, value_name = "ID", value_parser = merchant_id)]
    pub merchant: MerchantId,
    /// The direction of the operation that the body creates
    #[arg(long = "kind", value_enum, value_name = "DIRECTION")]
    pub direction: Direction,
    /// Show where every member came from, and what was dropped or filled in
    #[arg(long)]
    pub explain: bool,
    /// The v1 body; standard input if missing or -
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
}

const TRANSLATE_EXAMPLES: &str = r#"Nothing is sent or stored.

Examples:
  paybridge translate --merchant demo --kind payin order.json
  echo '{"external_id":"o-1","amount":"10.50","currency":"EUR"}' |
    paybridge translate --merchant demo --kind payin --explain"#;

/// `paybridge sign`.
#[derive(Debug, Args)]
#[command(after_help = SIGN_EXAMPLES)]
pub struct Sign {
    /// The API that the request is for
    pub interface: InterfaceArg,
    /// The rules directory.
    #[command(flatten)]
    pub rules: Rules,
    /// The API key; its secret is read from the rules
    #[arg(long, value_name = "API_KEY")]
    pub key: String,
    /// The request method
    #[arg(long, value_name = "METHOD", default_value = "POST", value_parser = method)]
    pub method: http::Method,
    /// Path and query of the request [default for v1: the dialect's path for payins]
    #[arg(long, value_name = "TARGET", value_parser = target)]
    pub target: Option<http::uri::PathAndQuery>,
    /// The body, signed byte for byte; standard input if missing or -. A GET has none
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
}

const SIGN_EXAMPLES: &str = "\
Prints the authentication headers, one per line. A v1 signature is valid for one method and path and \
only within the dialect's window (5 minutes by default); a v2 signature covers only the body.

Examples:
  paybridge sign v1 --key demo-v1 order.json |
    curl --cacert certs/ca.pem -H @- --json @order.json https://localhost:8443/api/v1/payin
  paybridge sign v1 --key demo-v1 --method GET --target '/api/v1/payin/status?external_id=o-1'
  paybridge sign v2 --key demo-v2 deposit.json
  paybridge sign v2 --key demo-v2 --method GET";

/// `paybridge listen`.
#[derive(Debug, Args)]
#[command(after_help = LISTEN_EXAMPLES)]
pub struct Listen {
    /// The rules directory.
    #[command(flatten)]
    pub rules: Rules,
    /// The address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9443")]
    pub address: SocketAddr,
    /// Use plain HTTP, without a certificate
    #[arg(long)]
    pub plain: bool,
    /// The replies in order, the last one repeated: a status from 200 to 599, or `timeout` (no reply)
    #[arg(long, value_name = "ANSWERS", value_delimiter = ',', default_value = "200")]
    pub answer: Vec<ListenAnswer>,
    /// Exit after this many callbacks
    #[arg(long, value_name = "N")]
    pub count: Option<NonZeroU64>,
    /// Callbacks as text, or as one JSON object per line
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: Format,
}

const LISTEN_EXAMPLES: &str = "\
For developers of callback receivers: shows every callback on arrival and checks its signatures against \
the keys in the rules (v1 by the merchant's dialect; v2 X-Signature and the webhook-* headers of \
Standard Webhooks), with the reason if one is wrong. Neither secrets nor signatures are shown.

Serves HTTPS with the certificate that the rules name. The gateway sends callbacks to this machine if its \
rules contain [callbacks] allow_private_addresses = true and trust = [\"../certs/ca.pem\"]. Ctrl-C exits \
with 0.

Examples:
  paybridge listen
  paybridge listen --answer 500,timeout,200            see how a callback is retried
  paybridge listen --count 1 --format json | jq .signatures";

/// `paybridge certs`.
#[derive(Debug, Args)]
#[command(after_help = CERTS_EXAMPLES)]
pub struct Certs {
    /// The directory for the files
    #[arg(long, value_name = "DIR", default_value = "certs", value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,
    /// A name or address of the server; may be repeated.
    #[arg(long = "name", value_name = "HOST", value_hint = ValueHint::Hostname, help = NAMES_HELP)]
    pub names: Vec<String>,
    /// Replace the existing server certificate and its key; the CA is kept
    #[arg(long)]
    pub force: bool,
}

const NAMES_HELP: &str =
    "A host name, *.name or IP address of the server; may be repeated [default: localhost, 127.0.0.1, ::1]";

const CERTS_EXAMPLES: &str = "\
Creates ca.pem, ca.key, server.pem and server.key, for development only: anyone with ca.key can \
impersonate any server to clients that trust ca.pem. An existing CA is reused. `serve` does the same \
if the rules contain [tls] generate = true.

Examples:
  paybridge certs
  paybridge certs --dir /tmp/certs --name pay.test --name '*.pay.test' --name 192.0.2.7";

/// `paybridge import-ids`.
#[derive(Debug, Args)]
#[command(after_help = IMPORT_IDS_EXAMPLES)]
pub struct ImportIds {
    /// The rules directory.
    #[command(flatten)]
    pub rules: Rules,
    /// The merchant that the ids belong to
    #[arg(long, value_name = "ID", value_parser = merchant_id)]
    pub merchant: MerchantId,
    /// The direction of the operations that the ids belong to
    #[arg(long = "kind", value_enum, value_name = "DIRECTION")]
    pub direction: Direction,
    /// Mark the merchant's list of this direction as complete: FILE, which may be empty, ends it
    #[arg(long)]
    pub complete: bool,
    /// The external ids, one per line, in UTF-8; - for standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
}

const IMPORT_IDS_EXAMPLES: &str = "\
Reserves the external ids that the old v1 service has used, so that nothing is paid twice: a v1 create with \
such an id is forwarded to that service, or gets 409 without [legacy]; a v2 create gets 409. Run it before \
orders of the merchant are made here.

It may run while a gateway serves, and may be repeated: reserved ids stay reserved. Ids of operations \
that exist here are skipped and counted. Every line is checked first, and if one is invalid, nothing is \
reserved; a pipe is kept in memory for that.

With --complete, the list is marked as complete after its last id, if nothing failed. A later import \
without it that reserves any id removes the mark, and prints a note.

Examples:
  paybridge import-ids --merchant demo --kind payin ids.txt
  paybridge import-ids --merchant demo --kind payin --complete last-ids.txt
  zcat ids.txt.gz | paybridge import-ids --merchant demo --kind payout -";

/// `paybridge health`.
#[derive(Debug, Args)]
#[command(after_help = HEALTH_EXAMPLES)]
pub struct Health {
    /// The rules directory.
    #[command(flatten)]
    pub rules: Rules,
}

const HEALTH_EXAMPLES: &str = "\
Queries /readyz of the admin listener, for at most two seconds. Exits with 0 if every listener accepts, and store \
and rules are usable, else with 1 and the reason on standard error. It needs no token.

Of gateway.toml it reads where the admin listener is, and with admin.tls the certificate, which must be the very \
one that the listener presents. Run it where the gateway runs.

Examples:
  paybridge health
  paybridge health --rules /etc/paybridge/rules
  until paybridge health; do sleep 1; done";

/// `paybridge schema`.
#[derive(Debug, Args)]
#[command(after_help = SCHEMA_EXAMPLES)]
pub struct Schema {
    /// The kind of rule file
    #[arg(value_enum)]
    pub kind: FileKind,
}

const SCHEMA_EXAMPLES: &str = "\
With the schema, editors complete and explain the keys of rule files and mark errors: taplo, and the \
editors that include it (VS Code: Even Better TOML). A rule file names its schema in its first line: \
#:schema ../schemas/merchant.schema.json

The schema belongs to this version. It cannot check references between files; `paybridge check` can.

Examples:
  paybridge schema merchant
  paybridge schema merchant > rules/schemas/merchant.schema.json";

impl ValueEnum for FileKind {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self {
            Self::Gateway => "The process: gateway.toml",
            Self::Merchant => "A merchant: a file in merchants/",
            Self::Shop => "A shop: a file in shops/",
            Self::Dialect => "A v1 wire format: a file in dialects/",
            Self::PageTexts => "Page texts in one language: a file in pages/",
        };
        Some(PossibleValue::new(self.as_str()).help(help))
    }
}

impl ValueEnum for Direction {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Payin, Self::Payout]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self {
            Self::Payin => "A deposit",
            Self::Payout => "A withdrawal",
        };
        Some(PossibleValue::new(self.as_str()).help(help))
    }
}

fn method(text: &str) -> Result<http::Method, String> {
    text.to_ascii_uppercase().parse().map_err(|_| "not an HTTP method".to_owned())
}

fn target(text: &str) -> Result<http::uri::PathAndQuery, String> {
    let parsed = text.parse::<http::uri::PathAndQuery>().ok().filter(|target| target.as_str() == text);
    parsed
        .filter(|_| text.starts_with('/'))
        .ok_or_else(|| "must be a path with an optional query, such as /api/v1/payin".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parsed(line: &str) -> Result<Command, clap::error::ErrorKind> {
        let words = std::iter::once("paybridge").chain(line.split_whitespace());
        Arguments::try_parse_from(words).map(|arguments| arguments.command).map_err(|error| error.kind())
    }

    #[test]
    fn the_definition_is_valid() {
        Arguments::command().debug_assert();
    }

    /// The width at which clap wraps without a terminal.
    const WIDTH_WITHOUT_TERMINAL: usize = 100;

    #[test]
    fn every_command_has_help_with_examples() {
        let mut root = Arguments::command();
        let mut commands: Vec<&mut clap::Command> = root.get_subcommands_mut().collect();
        while let Some(command) = commands.pop() {
            if command.get_name() == "help" {
                continue;
            }
            let help = command.render_long_help().to_string();
            assert!(help.contains("Examples:"), "{help}");
            let after = command.get_after_help().unwrap().to_string();
            let lines: Vec<_> = after.lines().collect();
            let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
            let is_broken = lines.windows(2).any(|pair| pair.iter().all(|line| is_prose(line)));
            assert!(!is_broken, "a paragraph must be one line, which clap wraps:\n{after}");
            let is_whole = |line: &&str| is_prose(line) || line.chars().count() <= WIDTH_WITHOUT_TERMINAL;
            assert!(lines.iter().all(is_whole), "a line to paste must fit the width:\n{after}");
            commands.extend(command.get_subcommands_mut());
        }
        assert!(Arguments::command().render_long_help().to_string().contains("paybridge serve"));
    }

    #[test]
    fn wrong_usage_is_rejected() {
        for line in [
            "",
            "serv",
            "serve --log-format xml",
            "diff a",
            "diff a b c",
            "translate --merchant a",
            "translate --merchant a --kind refund",
            "translate --merchant a/b --kind payin",
            "sign v3 --key k",
            "sign v1",
            "sign v1 --key k --target api",
            "sign v1 --key k --target https://localhost/api",
            "sign v1 --key k --method G(ET",
            "import-ids --merchant a --kind payin",
            "import-ids --merchant a ids.txt",
            "import-ids --kind payin ids.txt",
            "callbacks",
            "callbacks list --state sent",
            "callbacks list --order-id o",
            "callbacks list --since soon",
            "callbacks list --limit 0",
            "callbacks list --limit 1001",
            "callbacks list --after x",
            "callbacks sample",
            "callbacks sample --merchant a --kind v3",
            "callbacks sample --merchant a --url shop.example",
            "callbacks show",
            "callbacks show cb_1",
            "callbacks resend",
            "callbacks resend --failed cb_0123456789abcdef00000000000000ff",
            "callbacks resend --failed --wait 1s",
            "callbacks resend --pending",
            "callbacks resend --receiver https://shop.example",
            "callbacks resend --pending --receiver https://shop.example/cb",
            "callbacks resend --pending --receiver https://shop.example --since 1h",
            "callbacks resend --pending --failed --receiver https://shop.example",
            "callbacks resend cb_0123456789abcdef00000000000000ff --merchant a",
            "callbacks resend cb_0123456789abcdef00000000000000ff --wait soon",
            "readiness --min-days -1",
            "readiness acme",
            "store",
            "store rekey now",
            "store backup",
            "store backup a b",
            "store copy --to postgres://b/c",
            "listen --answer",
            "listen --answer 200,,500",
            "listen --answer 99",
            "listen --count 0",
            "listen --address localhost",
            "schema",
            "schema list",
            "completions klingon",
        ] {
            let kind = parsed(line).unwrap_err();
            assert!(kind != clap::error::ErrorKind::DisplayHelp, "{line}");
        }
    }
}
