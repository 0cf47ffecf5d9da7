//! The arguments of `paybridge store`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::common::{Format, Rules};

/// `paybridge store`.
#[derive(Debug, Subcommand)]
#[command(after_help = STORE_EXAMPLES)]
pub enum StoreCommand {
    /// Check the invariants of the store
    Check(StoreCheck),
    /// Wrap the store's data keys with the first key of `store.keys`
    Rekey(StoreRekey),
    /// Copy a SQLite store to a file while a gateway uses it
    Backup(StoreBackup),
    /// Put a restored backup to use, without orders of after it being made anew
    Adopt(StoreAdopt),
    /// Copy a store from SQLite to PostgreSQL
    Copy(StoreCopy),
    /// Show the format of the store, and the oldest one whose releases can serve it
    Version(StoreVersion),
    /// Finish an upgrade: lock older releases out, and remove what only they needed
    FinishUpgrade(StoreFinishUpgrade),
}

const STORE_EXAMPLES: &str = "\
Examples:
  paybridge store check
  paybridge store rekey
  paybridge store backup /backup/paybridge-2026-07-01.db
  paybridge store adopt --ids since-the-backup.csv
  paybridge store copy --from sqlite:data/paybridge.db \\
      --to file:secrets/database.url
  paybridge store version
  paybridge store finish-upgrade";

/// `paybridge store check`.
#[derive(Debug, Args)]
#[command(after_help = STORE_CHECK_EXAMPLES)]
pub struct StoreCheck {
    /// The rules directory.
    #[command(flatten)]
    pub rules: Rules,
}

const STORE_CHECK_EXAMPLES: &str = "\
Reads the whole store, changes nothing, and checks that every operation has the ledger entries that its \
state requires, entries sum to zero per merchant and currency, balances are the sum of their entries, \
encrypted values can be decrypted, customers' daily usage is the sum of the operations that count for it, \
every result has its callback to the operation's own address, tables and indexes are those of this \
release, and the pages of the file are consistent. What a newer release has added is passed over.

Not checked: that every row can be found through every index, usage of days that was removed, and whether \
providers and merchants have received what is stored.

It may run while a gateway serves. Prints one line per problem. Exits with 0 if there is none, else with 1.

Examples:
  paybridge store check
  paybridge store check --rules /etc/paybridge/rules";

/// `paybridge store rekey`.
#[derive(Debug, Args)]
#[command(after_help = STORE_REKEY_EXAMPLES)]
pub struct StoreRekey {
    /// The rules directory.
    #[command(flatten)]
    pub rules: Rules,
}

const STORE_REKEY_EXAMPLES: &str = "\
To replace a key of store.keys:
  1. put the new key first and keep the old one, in the rules of every gateway:
     keys = [\"file:../secrets/new.key\", \"file:../secrets/store.key\"]
  2. paybridge store rekey
  3. remove the old key from the rules

It may run while gateways serve: they keep the data keys in memory. A gateway that starts after step 2 needs \
the new key. All keys are rewrapped or none, and a second run changes nothing.

The data keys themselves do not change, nor does anything encrypted or hashed with them, so repeated requests \
are still recognized. The old key still opens older backups: keep it as long as you keep those. Anyone who has \
it and an older copy of the store has the data keys, and no new key can revoke that.

A new key: openssl rand -base64 32

Examples:
  paybridge store rekey
  paybridge store rekey --rules /etc/paybridge/rules";

/// `paybridge store backup`.
#[derive(Debug, Args)]
#[command(after_help = STORE_BACKUP_EXAMPLES)]
pub struct StoreBackup {
    /// The rules directory.
    #[command(flatten)]
    pub rules: Rules,
    /// The path of the copy; no file may exist there
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
}

const STORE_BACKUP_EXAMPLES: &str = "\
Copies a SQLite store as of one moment, while a gateway uses it and without delaying the gateway; meanwhile \
the store's write-ahead log grows. The copy is checked as by `paybridge store check`, and gets its name only \
when it is complete and on disk: if FILE exists, it is a backup. Its mode is 0600; no file is overwritten.

Problems of the store are problems of the copy too: it is kept, the problems are printed, one per line, and the \
exit code is 1.

The copy contains the data keys, wrapped: keep store.keys too, in another place, or the copy cannot be opened.

To restore: stop the gateway, and paybridge.socket where systemd has it, move the store's file away together with its \
-wal and -shm files, put a copy of FILE in its place, run `paybridge store adopt`, and start the gateway. The copy is \
marked: until it is adopted, no gateway serves it and no command changes it, since everything acknowledged after the \
backup is lost then, and repeated requests would create new operations.

Back up a PostgreSQL store with PostgreSQL's own tools: pg_dump, pg_basebackup.

Examples:
  paybridge store backup /backup/paybridge-$(date +%F).db
  paybridge store backup --rules /etc/paybridge/rules /backup/paybridge.db";

/// `paybridge store adopt`.
#[derive(Debug, Args)]
#[command(after_help = STORE_ADOPT_EXAMPLES)]
pub struct StoreAdopt {
    /// The rules directory.
    #[command(flatten)]
    pub rules: Rules,
    /// The orders that merchants have created since the backup: CSV with the head `merchant,direction,order_id`; - for standard
    /// input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, required_unless_present = "accept_loss")]
    pub ids: Option<PathBuf>,
    /// Accept that repeats of orders that were created after the backup are made anew
    #[arg(long, conflicts_with = "ids")]
    pub accept_loss: bool,
}

const STORE_ADOPT_EXAMPLES: &str = "\
A backup knows no order that was created after it. Merchants repeat requests, so each of these orders would be made \
a second time. Ask the merchants for the ids of the orders that they have created since (the refusal of \
`paybridge serve` names the time), and pass them as CSV:

  merchant,direction,order_id
  acme,payin,order-1001
  acme,payout,order-1002

direction is payin or payout, order_id the id that the merchant chose (v1: external_id), as it was sent. Each id \
that this store does not know gets the home lost, for ever: its creates are 409, its v1 status is 404, and it is \
never forwarded to an old v1 service. Ids that have a home are skipped and counted. A line that is no order adopts \
nothing. An interrupted run is run again.

With --accept-loss no id is lost, and every repeat of an order of after the backup is made anew.

It cannot be undone. For SQLite, no gateway may be running. For a PostgreSQL database that was restored with \
PostgreSQL's own tools, which leave no mark, run it with --ids before the gateways are started.

Examples:
  paybridge store adopt --ids since-the-backup.csv
  paybridge store adopt --accept-loss --rules /etc/paybridge/rules";

/// `paybridge store copy`.
#[derive(Debug, Args)]
#[command(after_help = STORE_COPY_EXAMPLES)]
pub struct StoreCopy {
    /// The rules directory.
    #[command(flatten)]
    pub rules: Rules,
    /// The store to copy: sqlite: and the path of its file, relative to the working directory
    #[arg(long, value_name = "URL")]
    pub from: String,
    /// The empty database that becomes the store.
    #[arg(long, value_name = "WHERE", help = TO_HELP)]
    pub to: Option<String>,
}

const TO_HELP: &str = "The empty database that becomes the store: file:PATH or env:NAME with its postgres:// URL, or the \
    URL itself [default: store.url of the rules]";

const STORE_COPY_EXAMPLES: &str = "\
Moves a store from SQLite to PostgreSQL. The gateway must be stopped, and `import-ids` must not run. The keys \
in the rules (store.keys) must open the store, and open the copy too: the data keys are copied in wrapped form.

Everything is copied: operations, ledger, reservations, provider jobs, the journal, and all callbacks with \
their attempts. Then the number of rows and the sums of the columns are compared for each table, and the copy \
is checked as by `paybridge store check`. Only after that can gateways use it. If the command is interrupted, \
run it again to continue.

Differences: journal entries (which exist only with a remote engine) get new numbers, and so do the first 16 \
digits of the ids of their callbacks.

Finally the file is marked as moved, and gateways and commands refuse to use it: it would accept orders that \
the database does not have. Then set store.url to the database. To go back, as long as the database has \
accepted no orders that matter: stop its gateways, and run sqlite3 FILE 'DELETE FROM moved'.

Put a URL with a password into a file or a variable and pass file:PATH or env:NAME: other users of the machine \
can see a command line, and the shell keeps it in its history.

Examples:
  paybridge store copy --from sqlite:data/paybridge.db \\
      --to file:secrets/database.url
  paybridge store copy --from sqlite:data/paybridge.db --to env:DATABASE_URL
  paybridge store copy --from sqlite:data/paybridge.db";

/// `paybridge store version`.
#[derive(Debug, Args)]
#[command(after_help = STORE_VERSION_EXAMPLES)]
pub struct StoreVersion {
    /// The rules directory.
    #[command(flatten)]
    pub rules: Rules,
    /// The output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: Format,
}

const STORE_VERSION_EXAMPLES: &str = "\
A store has the format of the newest release that has served it. Releases of that format and of the one before \
can serve it, until `paybridge store finish-upgrade` was run. It is also shown for a store that this release \
cannot serve.

Examples:
  paybridge store version
  paybridge store version --format json | jq .readable_from";

/// `paybridge store finish-upgrade`.
#[derive(Debug, Args)]
#[command(after_help = STORE_FINISH_UPGRADE_EXAMPLES)]
pub struct StoreFinishUpgrade {
    /// The rules directory.
    #[command(flatten)]
    pub rules: Rules,
}

const STORE_FINISH_UPGRADE_EXAMPLES: &str = "\
Run it when every gateway runs the new release and you no longer want to go back. It cannot be undone: \
older releases cannot serve the store afterwards. The next release but one needs it.

It may run while gateways of this release serve. Gateways of older releases answer 503 and leave within 5 \
seconds; the store is narrowed when none has touched it for 10 seconds. If the command is interrupted, run it \
again to continue. A second run changes nothing.

Examples:
  paybridge store finish-upgrade
  paybridge store finish-upgrade --rules /etc/paybridge/rules";
