//! What can be said on the command line (contract section 12).

mod callbacks;
mod store;

pub use callbacks::{Callbacks, ListCallbacks, ResendCallbacks, SampleCallback, ShowCallback, Which};
pub use store::{StoreBackup, StoreCheck, StoreCommand, StoreCopy, StoreRekey};

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::path::PathBuf;

use clap::builder::{PathBufValueParser, PossibleValue, TypedValueParser};
use clap::parser::ValueSource;
use clap::{Arg, Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;

use super::listen::ListenAnswer;
use crate::domain::{Direction, MerchantId};
use crate::rules::FileKind;
use crate::telemetry::LogFormat;

/// Serves the v1 payments API of merchants who have not moved to v2, and v2 itself.
///
/// A v1 order arrives over TLS, becomes a signed v2 request, and is on disk before it is answered.
#[derive(Debug, Parser)]
#[command(name = "paybridge", version, propagate_version = true, after_help = ROOT_EXAMPLES)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const ROOT_EXAMPLES: &str = "\
Try it, in a clone of the repository:
  paybridge serve                        starts on the shipped rules and prints a curl line to paste
  paybridge check                        says whether the rules are right, and where they are not

Results go to standard output, messages to standard error.

Exit codes: 0 done, 1 failed, 2 wrong usage.";

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the gateway
    Serve(Serve),
    /// Check a rule set and show every problem where it stands
    Check(Check),
    /// Show what changes for whom between two rule directories
    Diff(Diff),
    /// Show the v2 body that a v1 body becomes, or why it cannot
    Translate(Translate),
    /// Print the headers that authenticate a request
    Sign(Sign),
    /// Receive callbacks, and show which of their signatures verify
    Listen(Listen),
    /// Make a local CA and a server certificate
    Certs(Certs),
    /// Reserve v1 external ids, so that no operation is made here under their names
    ImportIds(ImportIds),
    /// Look at the callbacks to merchants, and send them again
    #[command(subcommand)]
    Callbacks(Callbacks),
    /// Look after the store
    #[command(subcommand)]
    Store(StoreCommand),
    /// Print the JSON Schema of a kind of rule file, for editors
    Schema(Schema),
    /// Print shell completions
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// For which shell
        shell: Shell,
    },
}

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  paybridge completions bash > ~/.local/share/bash-completion/completions/paybridge
  paybridge completions fish > ~/.config/fish/completions/paybridge.fish";

/// Which rule files.
#[derive(Debug, Args)]
pub struct Rules {
    /// The directory of the rule files: gateway.toml, dialects/, merchants/, shops/, lists/
    #[arg(
        long,
        value_name = "DIR",
        env = "PAYBRIDGE_RULES",
        default_value = DEFAULT_RULES,
        value_hint = ValueHint::DirPath,
        value_parser = RulesDirectory,
    )]
    pub rules: PathBuf,
}

const DEFAULT_RULES: &str = "rules";

/// A path; an environment variable that is empty is as good as none.
#[derive(Debug, Clone)]
struct RulesDirectory;

impl TypedValueParser for RulesDirectory {
    type Value = PathBuf;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<PathBuf, clap::Error> {
        PathBufValueParser::new().parse_ref(command, argument, value)
    }

    fn parse_ref_(
        &self,
        command: &clap::Command,
        argument: Option<&Arg>,
        value: &OsStr,
        source: ValueSource,
    ) -> Result<PathBuf, clap::Error> {
        if source == ValueSource::EnvVariable && value.is_empty() {
            return Ok(PathBuf::from(DEFAULT_RULES));
        }
        self.parse_ref(command, argument, value)
    }
}

/// `paybridge serve`.
#[derive(Debug, Args)]
#[command(after_help = SERVE_EXAMPLES)]
pub struct Serve {
    /// Which rule files.
    #[command(flatten)]
    pub rules: Rules,
    /// How the log on standard error is written
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub log_format: LogFormat,
}

const SERVE_EXAMPLES: &str = "\
Examples:
  paybridge serve
  paybridge serve --rules /etc/paybridge --log-format json
  RUST_LOG=warn paybridge serve                            no access lines
  RUST_LOG=info,paybridge::access=off paybridge serve      everything but access lines

Signals: SIGTERM and SIGINT let requests in flight finish, for shutdown_grace at most, and exit 0; a \
second one exits at once with 1. SIGHUP reads the rules again (they are watched as well).

A signed curl line to try it with is printed only where the rules say [tls] generate = true.";

/// `paybridge check`.
#[derive(Debug, Args)]
#[command(after_help = CHECK_EXAMPLES)]
pub struct Check {
    /// Which rule files.
    #[command(flatten)]
    pub rules: Rules,
    /// Do not look secrets up: for machines that do not have them, such as CI
    #[arg(long)]
    pub no_secrets: bool,
    /// Exit 0 when nothing but warnings is found
    #[arg(long)]
    pub allow_warnings: bool,
    /// Problems for people, on standard error, or one JSON document on standard output
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: Format,
}

/// How what was found is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    #[default]
    Text,
    /// For programs: one document
    Json,
}

const CHECK_EXAMPLES: &str = "\
Every problem is shown as file:line:column with its line. An error keeps the rules from being loaded. \
A warning does not: it tells of what would fail requests, such as a key that nobody may use or a \
certificate that has expired. Exits 0 when there is neither, else 1.

Examples:
  paybridge check
  paybridge check --rules staging/rules --no-secrets
  paybridge check --format json | jq -r '.problems[] | \"\\(.file):\\(.line) \\(.message)\"'";

/// `paybridge diff`.
#[derive(Debug, Args)]
#[command(after_help = DIFF_EXAMPLES)]
pub struct Diff {
    /// The rule files as they are
    #[arg(value_name = "A", value_hint = ValueHint::DirPath)]
    pub old: PathBuf,
    /// The rule files as they are to be
    #[arg(value_name = "B", value_hint = ValueHint::DirPath)]
    pub new: PathBuf,
    /// Changes for people, or a list of them as one JSON document
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: Format,
    /// Exit with 1 when there are changes
    #[arg(long)]
    pub exit_code: bool,
}

const DIFF_EXAMPLES: &str = "\
Every change in what the rules mean is listed, by whom it concerns, the most dangerous first:
  !  refuses, or changes, what worked before
  -  takes away
  +  allows more
Comments, order and other spellings of the same are no change. No secret is looked up or shown: \
secrets are compared as they are written. What only the next start puts in force is marked so.

A directory with problems is shown as `check` shows it. Exits 0, with changes too, unless asked.

Examples:
  paybridge diff /etc/paybridge/rules staging/rules
  git worktree add /tmp/main main && paybridge diff /tmp/main/rules rules --format json";

/// `paybridge translate`.
#[derive(Debug, Args)]
#[command(after_help = TRANSLATE_EXAMPLES)]
pub struct Translate {
    /// Which rule files.
    #[command(flatten)]
    pub rules: Rules,
    /// Whose rules apply
    #[arg(long, value_name = "ID", value_parser = merchant_id)]
    pub merchant: MerchantId,
    /// What the body creates
    #[arg(long, value_enum)]
    pub kind: Direction,
    /// Say of every member where it came from, and what was dropped or filled in
    #[arg(long)]
    pub explain: bool,
    /// The v1 body; standard input when missing or -
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
    /// Which interface the request is for
    pub interface: InterfaceArg,
    /// Which rule files.
    #[command(flatten)]
    pub rules: Rules,
    /// The API key; its secret is taken from the rules
    #[arg(long, value_name = "API_KEY")]
    pub key: String,
    /// The request method
    #[arg(long, value_name = "METHOD", default_value = "POST", value_parser = method)]
    pub method: http::Method,
    /// Path and query of the request [default for v1: the merchant's path of payin]
    #[arg(long, value_name = "TARGET", value_parser = target)]
    pub target: Option<http::uri::PathAndQuery>,
    /// The body, signed byte for byte; standard input when missing or -; a GET has none
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
}

const SIGN_EXAMPLES: &str = "\
Prints the authentication headers, one a line. A v1 signature holds for one method and path and \
only within the dialect's window (5 minutes by default); a v2 signature covers the body alone.

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
    /// Which rule files.
    #[command(flatten)]
    pub rules: Rules,
    /// Where to listen
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9443")]
    pub address: SocketAddr,
    /// Speak plain HTTP, without a certificate
    #[arg(long)]
    pub plain: bool,
    /// Answers in turn, the last one from then on: a status from 200 to 599, or `timeout` (none)
    #[arg(long, value_name = "ANSWERS", value_delimiter = ',', default_value = "200")]
    pub answer: Vec<ListenAnswer>,
    /// End after so many callbacks
    #[arg(long, value_name = "N")]
    pub count: Option<NonZeroU64>,
    /// Callbacks for people, or one JSON object a line
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub format: Format,
}

const LISTEN_EXAMPLES: &str = "\
For whoever writes the receiving end: every callback is shown as it comes, with its signatures checked \
against the keys of the rules (v1 by the merchant's dialect; v2 X-Signature and the webhook-* headers of \
Standard Webhooks), and why a wrong one is wrong. Neither secrets nor signatures are shown.

Serves HTTPS with the rules' own certificate. The gateway sends to this machine if its rules say \
[callbacks] allow_private_addresses = true and trust = [\"../certs/ca.pem\"]. Ctrl-C ends it with 0.

Examples:
  paybridge listen
  paybridge listen --answer 500,timeout,200            how a callback is tried again
  paybridge listen --count 1 --format json | jq .signatures";

/// `paybridge certs`.
#[derive(Debug, Args)]
#[command(after_help = CERTS_EXAMPLES)]
pub struct Certs {
    /// Where the files are put
    #[arg(long, value_name = "DIR", default_value = "certs", value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,
    /// A name or address of the server; may be repeated.
    #[arg(long = "name", value_name = "HOST", value_hint = ValueHint::Hostname, help = NAMES_HELP)]
    pub names: Vec<String>,
    /// Make a new server pair in place of the one that exists; the CA stays
    #[arg(long)]
    pub force: bool,
}

const NAMES_HELP: &str =
    "A host name, *.name or IP address of the server; may be repeated [default: localhost, 127.0.0.1, ::1]";

const CERTS_EXAMPLES: &str = "\
Makes ca.pem, ca.key, server.pem and server.key, for development: whoever holds ca.key can pose \
as any server to those who trust ca.pem. A CA that exists is used again. `serve` does the same by \
itself where the rules say generate = true.

Examples:
  paybridge certs
  paybridge certs --dir /tmp/certs --name pay.test --name '*.pay.test' --name 192.0.2.7";

/// `paybridge import-ids`.
#[derive(Debug, Args)]
#[command(after_help = IMPORT_IDS_EXAMPLES)]
pub struct ImportIds {
    /// Which rule files.
    #[command(flatten)]
    pub rules: Rules,
    /// Whose ids they are
    #[arg(long, value_name = "ID", value_parser = merchant_id)]
    pub merchant: MerchantId,
    /// What the ids name
    #[arg(long, value_enum)]
    pub kind: Direction,
    /// The external ids, one a line, in UTF-8; - for standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
}

const IMPORT_IDS_EXAMPLES: &str = "\
For the external ids that the old v1 service has: a create of one is answered 409 from then on, in v1 \
and in v2, so that it cannot be paid twice. Run it before a merchant's v1 traffic is sent here.

May run while a gateway serves, and may be run again: what is reserved stays reserved. Ids that name \
an operation here are skipped and counted. Every line is checked first, and a bad one reserves \
nothing; a pipe is held in memory for that.

Examples:
  paybridge import-ids --merchant demo --kind payin ids.txt
  zcat ids.txt.gz | paybridge import-ids --merchant demo --kind payout -";

/// `paybridge schema`.
#[derive(Debug, Args)]
#[command(after_help = SCHEMA_EXAMPLES)]
pub struct Schema {
    /// Which kind of rule file
    #[arg(value_enum)]
    pub kind: FileKind,
}

const SCHEMA_EXAMPLES: &str = "\
With it, editors complete and explain the keys of rule files and underline what is wrong as it is \
written: taplo, and the editors that it is built into (VS Code: Even Better TOML). A rule file names \
its schema in its first line: #:schema ../schemas/merchant.schema.json

The schema is that of this version. It does not know what files say of each other: for that there \
is `paybridge check`.

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
            Self::PageTexts => "What customers read in a language: a file in pages/",
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

/// An interface of the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum InterfaceArg {
    /// By the dialect of the key's merchant
    V1,
    /// Over the raw body
    V2,
}

fn merchant_id(text: &str) -> Result<MerchantId, String> {
    MerchantId::new(text).map_err(|invalid| invalid.reason().to_owned())
}

fn method(text: &str) -> Result<http::Method, String> {
    text.to_ascii_uppercase().parse().map_err(|_| "not an HTTP method".to_owned())
}

fn target(text: &str) -> Result<http::uri::PathAndQuery, String> {
    let parsed = text.parse::<http::uri::PathAndQuery>().ok().filter(|target| target.as_str() == text);
    parsed
        .filter(|_| text.starts_with('/'))
        .ok_or_else(|| "must be a path and perhaps a query: /api/v1/payin".to_owned())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::CommandFactory;

    use super::*;
    use crate::callback::listing::Moment;
    use crate::domain::{OrderId, UnixMillis};
    use crate::store::{CallbackCursor, CallbackState};

    fn parsed(line: &str) -> Result<Command, clap::error::ErrorKind> {
        let words = std::iter::once("paybridge").chain(line.split_whitespace());
        Arguments::try_parse_from(words).map(|arguments| arguments.command).map_err(|error| error.kind())
    }

    #[test]
    fn the_definition_is_sound() {
        Arguments::command().debug_assert();
    }

    /// As clap wraps where it knows of no terminal.
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
            assert!(!is_broken, "paragraphs are wrapped for the terminal, and here alone:\n{after}");
            let is_whole = |line: &&str| is_prose(line) || line.chars().count() <= WIDTH_WITHOUT_TERMINAL;
            assert!(lines.iter().all(is_whole), "what is to be pasted stays in one line:\n{after}");
            commands.extend(command.get_subcommands_mut());
        }
        assert!(Arguments::command().render_long_help().to_string().contains("paybridge serve"));
    }

    #[test]
    fn lines_mean_what_they_say() {
        let Ok(Command::Sign(sign)) = parsed("sign v1 --key k --method get --target /a?b=c") else { panic!() };
        assert_eq!((sign.method, sign.target.unwrap().as_str()), (http::Method::GET, "/a?b=c"));
        let Ok(Command::Sign(sign)) = parsed("sign v2 --key k body.json") else { panic!() };
        assert_eq!((sign.interface, sign.method, sign.target), (InterfaceArg::V2, http::Method::POST, None));
        let Ok(Command::Certs(certs)) = parsed("certs --name a --name b --force") else { panic!() };
        assert_eq!((certs.names, certs.force), (vec!["a".to_owned(), "b".to_owned()], true));
        let Ok(Command::Serve(serve)) = parsed("serve --rules r --log-format json") else { panic!() };
        assert_eq!((serve.rules.rules, serve.log_format), (PathBuf::from("r"), LogFormat::Json));
        let Ok(Command::Listen(listen)) = parsed("listen --answer 500,timeout,204 --count 3") else { panic!() };
        assert_eq!(listen.answer.iter().map(ToString::to_string).collect::<Vec<_>>(), ["500", "timeout", "204"]);
        assert_eq!(listen.count, NonZeroU64::new(3));
        let Ok(Command::Diff(diff)) = parsed("diff a b --format json --exit-code") else { panic!() };
        assert_eq!((diff.old, diff.new), (PathBuf::from("a"), PathBuf::from("b")));
        assert!(diff.exit_code && diff.format == Format::Json);
        let Ok(Command::ImportIds(import)) = parsed("import-ids --merchant a --kind payout -") else { panic!() };
        assert_eq!((import.kind, import.file), (Direction::Payout, PathBuf::from("-")));
        let Ok(Command::Store(StoreCommand::Check(check))) = parsed("store check --rules r") else { panic!() };
        assert_eq!(check.rules.rules, PathBuf::from("r"));
        let Ok(Command::Store(StoreCommand::Rekey(rekey))) = parsed("store rekey --rules r") else { panic!() };
        assert_eq!(rekey.rules.rules, PathBuf::from("r"));
        let Ok(Command::Store(StoreCommand::Backup(backup))) = parsed("store backup copy.db") else { panic!() };
        assert_eq!(backup.file, PathBuf::from("copy.db"));
        let line = "store copy --from sqlite:a.db --to postgres://b/c";
        let Ok(Command::Store(StoreCommand::Copy(copy))) = parsed(line) else { panic!() };
        assert_eq!((copy.from.as_str(), copy.to.as_deref()), ("sqlite:a.db", Some("postgres://b/c")));
        let Ok(Command::Schema(schema)) = parsed("schema shop") else { panic!() };
        assert_eq!(schema.kind, FileKind::Shop);
        let Ok(Command::Callbacks(Callbacks::List(list))) = parsed("callbacks list --state failed --state pending")
        else {
            panic!()
        };
        assert_eq!(list.which.states, [CallbackState::Failed, CallbackState::Pending]);
        assert_eq!((list.limit, list.after, list.format), (50, None, Format::Text));
        let line = "callbacks list --merchant a --order-id o --since 2h --until 2026-01-02T03:04:05Z --after 1.2";
        let Ok(Command::Callbacks(Callbacks::List(list))) = parsed(line) else { panic!() };
        assert_eq!(list.which.order_id, Some(OrderId::new("o").unwrap()));
        assert_eq!(list.which.since, Moment::parse("2h"));
        assert_eq!(list.after, Some(CallbackCursor { queued_at: UnixMillis(1), key: 2 }));
        let id = "cb_0123456789abcdef00000000000000ff";
        let Ok(Command::Callbacks(Callbacks::Show(show))) = parsed(&format!("callbacks show {id}")) else { panic!() };
        assert_eq!(show.id, id);
        let line = format!("callbacks resend {id} {id} --wait 30s");
        let Ok(Command::Callbacks(Callbacks::Resend(resend))) = parsed(&line) else { panic!() };
        assert_eq!((resend.ids.len(), resend.wait), (2, Some(Duration::from_secs(30))));
        let line = "callbacks resend --failed --since 1d --merchant a";
        let Ok(Command::Callbacks(Callbacks::Resend(resend))) = parsed(line) else { panic!() };
        let line = "callbacks sample --merchant a --key k --kind v1 --url http://a.example/cb";
        let Ok(Command::Callbacks(Callbacks::Sample(sample))) = parsed(line) else { panic!() };
        assert_eq!((sample.kind, sample.url.unwrap().as_str()), (Some(InterfaceArg::V1), "http://a.example/cb"));
        assert!(resend.failed && resend.since == Moment::parse("1d"));
        assert!(matches!(parsed("completions zsh"), Ok(Command::Completions { shell: Shell::Zsh })));
    }

    #[test]
    fn wrong_usage_is_refused() {
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
            "callbacks resend cb_0123456789abcdef00000000000000ff --merchant a",
            "callbacks resend cb_0123456789abcdef00000000000000ff --wait soon",
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
