//! `paybridge store`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::Rules;

/// `paybridge store`.
#[derive(Debug, Subcommand)]
#[command(after_help = STORE_EXAMPLES)]
pub enum StoreCommand {
    /// Prove that the store holds what it should
    Check(StoreCheck),
    /// Wrap the store's data keys with the first key of `store.keys`
    Rekey(StoreRekey),
    /// Copy a SQLite store to a file, while a gateway serves it
    Backup(StoreBackup),
    /// Copy a store from SQLite to PostgreSQL
    Copy(StoreCopy),
}

const STORE_EXAMPLES: &str = "\
Examples:
  paybridge store check
  paybridge store rekey
  paybridge store backup /backup/paybridge-2026-07-01.db
  paybridge store copy --from sqlite:data/paybridge.db \\
      --to file:secrets/database.url";

/// `paybridge store check`.
#[derive(Debug, Args)]
#[command(after_help = STORE_CHECK_EXAMPLES)]
pub struct StoreCheck {
    /// Which rule files.
    #[command(flatten)]
    pub rules: Rules,
}

const STORE_CHECK_EXAMPLES: &str = "\
Reads the whole store and changes nothing: every operation has the ledger entries that its state demands, \
entries sum to zero per merchant and currency, balances are the sum of their entries, sealed values open, \
customers' daily usage is the sum of the operations that count for it, every result has its callback, \
to the operation's own address, tables and indexes are those of this release, and \
the file's pages hang together.

Not checked: that every row is found through every index, usage of days that was removed, and whether \
providers and merchants saw what is stored.

May run while a gateway serves. Every problem is one line. Exits 0 when there is none, else 1.

Examples:
  paybridge store check
  paybridge store check --rules /etc/paybridge";

/// `paybridge store rekey`.
#[derive(Debug, Args)]
#[command(after_help = STORE_REKEY_EXAMPLES)]
pub struct StoreRekey {
    /// Which rule files.
    #[command(flatten)]
    pub rules: Rules,
}

const STORE_REKEY_EXAMPLES: &str = "\
To exchange a key of store.keys:
  1. put the new key first and keep the old one, in the rules of every gateway:
     keys = [\"file:../secrets/new.key\", \"file:../secrets/store.key\"]
  2. paybridge store rekey
  3. take the old key out of the rules

May run while gateways serve: they have the data keys in memory, and go on. One that starts after 2 needs the \
new key. All is changed or nothing, and a second run changes nothing.

The data keys themselves stay, and so does all that is sealed and hashed with them: no repeat of a request is \
disturbed. So the old key still opens older backups: keep it as long as you keep those. Whoever has it and an \
older copy of the store has the data keys: no new key takes that back.

A new key: openssl rand -base64 32

Examples:
  paybridge store rekey
  paybridge store rekey --rules /etc/paybridge";

/// `paybridge store backup`.
#[derive(Debug, Args)]
#[command(after_help = STORE_BACKUP_EXAMPLES)]
pub struct StoreBackup {
    /// Which rule files.
    #[command(flatten)]
    pub rules: Rules,
    /// Where the copy is to be; nothing may be there
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
}

const STORE_BACKUP_EXAMPLES: &str = "\
Copies a SQLite store as it is at one moment, while a gateway serves it and without holding it up; meanwhile \
the store's log grows. The copy is read again as `paybridge store check` reads a store, and gets its name \
when it is whole and on disk: a FILE that is there is a backup. Mode 0600; nothing is ever overwritten.

Where the store holds what it should not, so does the copy: it is kept, the problems are reported, one a line, and \
the exit code is 1.

The copy holds the data keys, wrapped: keep store.keys too, elsewhere, or nobody can open it.

To restore: stop the gateway, move the store's file aside together with its -wal and -shm, put a copy of FILE \
in its place, and start. What was acknowledged after the backup is gone then: repeats of it would be new \
operations.

A PostgreSQL store is backed up with PostgreSQL's own tools: pg_dump, pg_basebackup.

Examples:
  paybridge store backup /backup/paybridge-$(date +%F).db
  paybridge store backup --rules /etc/paybridge /backup/paybridge.db";

/// `paybridge store copy`.
#[derive(Debug, Args)]
#[command(after_help = STORE_COPY_EXAMPLES)]
pub struct StoreCopy {
    /// Which rule files.
    #[command(flatten)]
    pub rules: Rules,
    /// The store as it is: sqlite: and the path of its file, seen from here
    #[arg(long, value_name = "URL")]
    pub from: String,
    /// Where the empty database is that becomes the store.
    #[arg(long, value_name = "WHERE", help = TO_HELP)]
    pub to: Option<String>,
}

const TO_HELP: &str = "The empty database that becomes the store: file:PATH or env:NAME, where its postgres:// URL is, or \
    the URL itself [default: store.url of the rules]";

const STORE_COPY_EXAMPLES: &str = "\
Moves a store from SQLite to PostgreSQL. The gateway must be stopped, and no `import-ids` may run. The keys \
are those of the rules (store.keys), and open the copy too: the data keys are copied as they are wrapped.

All of it is copied: operations, ledger, reservations, provider jobs, the journal and \
every callback with its tries. Then each row is compared with what it should be, and the copy is proved as \
`paybridge store check` does it. Only then can gateways serve it. Stopped half way, by whatever it be, it is \
run again and goes on.

What changes: entries of the journal (there are some where the engine is remote) get other numbers, and so do \
the first 16 digits of the names of their callbacks.

The file is marked as moved then, and no gateway or command serves it or writes to it any more: it would take orders \
that the others do not know. Afterwards name the database in store.url. The way back, while the \
database has taken no orders that matter: stop its gateways, and sqlite3 FILE 'DELETE FROM moved'.

A URL that holds a password belongs into a file or a variable, by file:PATH or env:NAME: a command line is shown \
to everybody on the machine, and kept in the shell's history.

Examples:
  paybridge store copy --from sqlite:data/paybridge.db \\
      --to file:secrets/database.url
  paybridge store copy --from sqlite:data/paybridge.db --to env:DATABASE_URL
  paybridge store copy --from sqlite:data/paybridge.db";
