//! Proves the store's invariants on one snapshot, a slice of operations at a time, beside whoever writes.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, HashSet};

use rusqlite::{Connection, ErrorCode, Row};

use super::connection::store_error;
use super::journal;
use super::outbox;
use super::preparations;
use super::row::{self, StoredRow};
use super::schema::MIGRATIONS;
use crate::domain::{Direction, Kind, State, Status, TransactionId};
use crate::store::rows::booked::{Entry, are_an_opening, booked_as_demanded};
use crate::store::vault::Vault;
use crate::store::{Audit, AuditProgress, Digest, Kept, StoreError, Stored};

/// Operations in memory at once.
const SLICE: i64 = 500;

/// Rows of daily usage in memory at once. Each slice of them costs a scan of the operations.
const USAGE_SLICE: i64 = 50_000;

/// Audits the store as it stands when this begins. Ends early, with what it has, when nobody wants it any more.
///
/// # Errors
/// The store cannot be read.
pub(super) fn run(
    connection: &Connection,
    vault: &Vault,
    progress: &dyn Fn(AuditProgress),
    wanted: &dyn Fn() -> bool,
) -> Result<Audit, StoreError> {
    let mut auditor = Auditor {
        connection,
        vault,
        found: Audit::default(),
        sums: HashMap::new(),
        opened: HashSet::new(),
        damaged: false,
    };
    let audited = connection
        .execute_batch("BEGIN")
        .and_then(|()| auditor.all(progress, wanted))
        .and_then(|()| connection.execute_batch("COMMIT"));
    match audited {
        Ok(()) => {}
        // What was found until then says more than SQLite's two words.
        Err(error) if is_damage(&error) => auditor.damaged = true,
        Err(error) => return Err(store_error(&error)),
    }
    let Auditor { mut found, damaged, .. } = auditor;
    if damaged {
        advise(&mut found, connection.path().unwrap_or_default());
    }
    Ok(found)
}

fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// Says first what is to be done about a damaged file, however much else was found.
fn advise(found: &mut Audit, path: &str) {
    found.problem_count += 1;
    found.problems.truncate(Audit::MAX_PROBLEMS - 1);
    let advice = format!("{path}: the file is damaged: stop the gateway, keep the file aside and restore a backup");
    found.problems.insert(0, advice);
}

/// An account of a merchant in a currency.
type Account = (Box<str>, Box<str>, i64);

struct Auditor<'a> {
    connection: &'a Connection,
    vault: &'a Vault,
    found: Audit,
    /// What the entries of each account sum to.
    sums: HashMap<Account, i128>,
    /// The merchants whose ledger was opened.
    opened: HashSet<Box<str>>,
    /// The file's pages are not as SQLite wrote them.
    damaged: bool,
}

/// The key of daily usage: day, merchant, shop, direction, `customer_account_id`.
type UsageKey = (i64, Box<str>, Box<str>, i64, i64);

fn usage_key(row: &Row<'_>) -> rusqlite::Result<UsageKey> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
}

/// Operations and hundredths.
type Usage = (i128, i128);

/// In the order of the key; [`read_entry`] takes what this selects.
const ENTRIES_BETWEEN: &str = "SELECT transaction_id, posting, currency, account, amount, merchant FROM entries \
    WHERE transaction_id > ?1 AND transaction_id <= ?2 ORDER BY transaction_id, posting, currency, account";

/// An entry, and the occasion it was booked with.
fn read_entry(row: &Row<'_>) -> rusqlite::Result<(i64, Entry)> {
    let entry = Entry {
        posting: row.get(1)?,
        currency: row.get(2)?,
        account: row.get(3)?,
        amount: row.get(4)?,
        merchant: row.get(5)?,
    };
    Ok((row.get(0)?, entry))
}

/// What stands around an operation.
struct Surroundings {
    order_key: Digest,
    fields: Vec<u8>,
    finished: bool,
    kept_missing: bool,
    reserved: bool,
    told: bool,
    job: bool,
    preparation: Option<Vec<u8>>,
    counted: bool,
    customer: bool,
    forgotten: bool,
}

impl Surroundings {
    const SELECT: &str = "SELECT transaction_id, order_key, fields, finished_at IS NOT NULL, \
        kept IS NOT NULL AND NOT EXISTS (SELECT 1 FROM kept_names WHERE id = kept), \
        EXISTS (SELECT 1 FROM reserved_ids r WHERE r.order_key = o.order_key), \
        EXISTS (SELECT 1 FROM callbacks c WHERE c.key = o.transaction_id), \
        EXISTS (SELECT 1 FROM provider_jobs j WHERE j.transaction_id = o.transaction_id), \
        (SELECT sealed FROM preparations p WHERE p.transaction_id = o.transaction_id), \
        counted_day IS NOT NULL, customer_account_id IS NOT NULL, \
        coalesce(finished_at <= (SELECT until FROM forgotten), 0) \
        FROM operations o WHERE transaction_id > ?1 ORDER BY transaction_id LIMIT ?2";

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            order_key: Digest(row.get(1)?),
            fields: row.get(2)?,
            finished: row.get(3)?,
            kept_missing: row.get(4)?,
            reserved: row.get(5)?,
            told: row.get(6)?,
            job: row.get(7)?,
            preparation: row.get(8)?,
            counted: row.get(9)?,
            customer: row.get(10)?,
            forgotten: row.get(11)?,
        })
    }
}

impl Auditor<'_> {
    fn all(&mut self, progress: &dyn Fn(AuditProgress), wanted: &dyn Fn() -> bool) -> rusqlite::Result<()> {
        let total: i64 = self.connection.query_row("SELECT count(*) FROM operations", [], |row| row.get(0))?;
        let total = total.unsigned_abs() + journal::count(self.connection)? + outbox::count(self.connection)?;
        progress(AuditProgress { done: 0, total });
        self.pages()?;
        self.structure()?;
        self.lone_openings()?;
        let mut after = i64::MIN;
        while wanted() {
            progress(AuditProgress { done: self.found.operations, total });
            match self.slice(after)? {
                Some(last) => after = last,
                None => break,
            }
        }
        self.accounts()?;
        self.references()?;
        self.daily_usage(wanted)?;
        let step = |looked_at| progress(AuditProgress { done: looked_at, total });
        self.journal(&step, wanted)?;
        self.outbox(&step, wanted)
    }

    fn outbox(&mut self, progress: &dyn Fn(u64), wanted: &dyn Fn() -> bool) -> rusqlite::Result<()> {
        let mut after = i64::MIN;
        while wanted() {
            match outbox::slice(self.connection, after, SLICE, &mut self.found)? {
                Some(last) => after = last,
                None => break,
            }
            progress(self.found.operations + self.found.journal + self.found.callbacks);
        }
        Ok(())
    }

    fn journal(&mut self, progress: &dyn Fn(u64), wanted: &dyn Fn() -> bool) -> rusqlite::Result<()> {
        let mut after = i64::MIN;
        while wanted() {
            match journal::slice(self.connection, self.vault, after, SLICE, &mut self.found)? {
                Some(last) => after = last,
                None => break,
            }
            progress(self.found.operations + self.found.journal);
        }
        Ok(())
    }

    /// The pages of the file hang together, and rows keep the constraints of their tables.
    fn pages(&mut self) -> rusqlite::Result<()> {
        let mut statement = self.connection.prepare("PRAGMA quick_check(20)")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let said: String = row.get(0)?;
            for line in said.lines().filter(|line| *line != "ok") {
                self.damaged = true;
                self.found.problem(format!("the file: {line}"));
            }
        }
        Ok(())
    }

    /// Tables and indexes are those that the migrations make: without the index of orders, one could be paid twice.
    fn structure(&mut self) -> rusqlite::Result<()> {
        let fresh = Connection::open_in_memory()?;
        for migration in MIGRATIONS {
            fresh.execute_batch(migration)?;
        }
        let mut found = parts(self.connection)?;
        for (name, made) in parts(&fresh)? {
            match found.remove(&name) {
                None => self.found.problem(format!("the schema: {name} is missing")),
                Some(sql) if sql != made => {
                    self.found.problem(format!("the schema: {name} is not as this release makes it"));
                }
                Some(_) => {}
            }
        }
        for name in found.into_keys() {
            self.found.problem(format!("the schema: {name} is not of this release"));
        }
        Ok(())
    }

    /// Looks at the next operations and their entries; gives the last id, or `None` after the last slice.
    fn slice(&mut self, after: i64) -> rusqlite::Result<Option<i64>> {
        let mut operations = self.connection.prepare_cached(StoredRow::SLICE)?;
        let operations: Vec<_> = operations
            .query_map((after, SLICE), |row| Ok((row.get::<_, i64>(0)?, StoredRow::read(row).ok())))?
            .collect::<Result<_, _>>()?;
        let mut surroundings = self.connection.prepare_cached(Surroundings::SELECT)?;
        let surroundings: Vec<_> = surroundings
            .query_map((after, SLICE), |row| Ok(Surroundings::read(row).ok()))?
            .collect::<Result<_, _>>()?;
        let last = operations.last().map(|(id, _)| *id);
        let mut entries = self.entries(after.max(-1), last.unwrap_or(i64::MAX))?.into_iter().peekable();
        for ((id, row), surroundings) in operations.into_iter().zip(surroundings) {
            self.found.operations += 1;
            let mut own = Vec::new();
            while let Some((of, entry)) = entries.next_if(|(of, _)| *of <= id) {
                match of.cmp(&id) {
                    Ordering::Equal => own.push(entry),
                    _ => self.found.problem(format!("operation {of}: has entries but does not exist")),
                }
            }
            match (row, surroundings) {
                (Some(row), Some(surroundings)) => self.operation(id, row, &surroundings, own),
                _ => self.found.problem(format!("operation {id}: a column is not ours")),
            }
        }
        for (of, _) in entries {
            self.found.problem(format!("operation {of}: has entries but does not exist"));
        }
        Ok(last)
    }

    fn entries(&mut self, after: i64, last: i64) -> rusqlite::Result<Vec<(i64, Entry)>> {
        let mut statement = self.connection.prepare_cached(ENTRIES_BETWEEN)?;
        let entries: Vec<_> = statement.query_map((after, last), read_entry)?.collect::<Result<_, _>>()?;
        for (_, entry) in &entries {
            self.count(entry);
        }
        Ok(entries)
    }

    fn count(&mut self, entry: &Entry) {
        self.found.entries += 1;
        let account = (entry.merchant.clone(), entry.currency.clone(), entry.account);
        *self.sums.entry(account).or_default() += i128::from(entry.amount);
    }

    /// Openings that were booked without an operation: their ids are below zero, and nothing else has such ids.
    fn lone_openings(&mut self) -> rusqlite::Result<()> {
        let mut statement = self.connection.prepare_cached(ENTRIES_BETWEEN)?;
        let mut rows = statement.query((i64::MIN, -1))?;
        let mut opening = (0, Vec::new());
        while let Some(row) = rows.next()? {
            let (of, entry) = read_entry(row)?;
            self.count(&entry);
            if of != opening.0 {
                let whole = std::mem::replace(&mut opening, (of, Vec::new()));
                self.lone_opening(&whole);
            }
            opening.1.push(entry);
        }
        self.lone_opening(&opening);
        Ok(())
    }

    fn lone_opening(&mut self, (of, entries): &(i64, Vec<Entry>)) {
        let Some(first) = entries.first() else { return };
        if !entries.iter().all(Entry::is_opening) {
            self.found.problem(format!("opening {of}: has entries of another kind"));
        }
        self.opening(&first.merchant, format_args!("opening {of}"), entries);
    }

    fn operation(&mut self, id: i64, row: StoredRow, around: &Surroundings, mut entries: Vec<Entry>) {
        let stored = match row.decode(self.vault, Kept::Everything) {
            Ok(stored) => stored,
            Err(error) => return self.found.problem(said(error)),
        };
        let operation = &stored.operation;
        let booked = entries.split_off(entries.partition_point(Entry::is_opening));
        self.opening(operation.merchant.as_str(), format_args!("operation {}", operation.id), &entries);
        if !booked_as_demanded(operation, &booked) {
            let status = operation.state.status().as_str();
            self.found.problem(format!("operation {id}: its entries are not those of a {status} operation"));
        }
        self.sealed(operation.id, around);
        self.surroundings(&stored, around);
    }

    /// A ledger is opened once: with any one operation of its merchant, or alone.
    fn opening(&mut self, merchant: &str, with: std::fmt::Arguments<'_>, entries: &[Entry]) {
        if entries.is_empty() {
            return;
        }
        if !are_an_opening(entries, merchant) {
            self.found.problem(format!("{with}: the opening booked with it is not one"));
        }
        if !self.opened.insert(merchant.into()) {
            self.found.problem(format!("merchant {merchant}: its ledger was opened more than once"));
        }
    }

    fn sealed(&mut self, id: TransactionId, around: &Surroundings) {
        if let Err(error) = row::opened_fields(self.vault, id, &around.fields) {
            self.found.problem(said(error));
        }
        let preparation = around.preparation.as_deref().map(|sealed| preparations::opened(self.vault, id, sealed));
        if let Some(Err(error)) = preparation {
            self.found.problem(said(error));
        }
    }

    fn surroundings(&mut self, stored: &Stored, around: &Surroundings) {
        let operation = &stored.operation;
        let pending = operation.state == State::Pending;
        let key = self.vault.comparer().order_key(&operation.merchant, operation.direction(), &operation.order_id);
        let tells = !pending && outbox::address(&operation.callback_url, stored.v1.as_ref()).is_some();
        let deposit = matches!(operation.kind, Kind::Deposit(_));
        let problems = [
            (key != around.order_key, "its order key is not the one of its order_id"),
            (around.finished == pending, "its time of being finished does not fit its status"),
            (around.kept_missing, "the names that its schema kept are missing"),
            (around.reserved, "its order_id is reserved for v1 as well"),
            (tells && !around.told && !around.forgotten, "its result is not queued to be told"),
            (!tells && around.told, "it is queued to be told of, and nobody is to be told"),
            (around.job && !pending, "it is finished and has a provider job"),
            (
                around.counted && operation.state.status() == Status::Failed,
                "it failed and counts for its customer's day",
            ),
            (around.counted && !around.customer, "it counts for a day of no customer"),
            (around.preparation.is_some() && !(pending && deposit), "only a pending deposit has a preparation"),
        ];
        for (_, problem) in problems.into_iter().filter(|(wrong, _)| *wrong) {
            self.found.problem(format!("operation {}: {problem}", operation.id));
        }
    }

    /// The running balances are the sums of the entries, and sum to zero.
    fn accounts(&mut self) -> rusqlite::Result<()> {
        let mut totals: HashMap<(Box<str>, Box<str>), i128> = HashMap::new();
        for ((merchant, currency, _), sum) in &self.sums {
            *totals.entry((merchant.clone(), currency.clone())).or_default() += sum;
        }
        for ((merchant, currency), total) in totals.into_iter().filter(|(_, total)| *total != 0) {
            self.found.problem(format!("merchant {merchant}, {currency}: the entries sum to {total} hundredths"));
        }
        let mut statement = self.connection.prepare("SELECT merchant, currency, account, balance FROM accounts")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let account: Account = (row.get(0)?, row.get(1)?, row.get(2)?);
            let balance: i64 = row.get(3)?;
            if self.sums.remove(&account) != Some(i128::from(balance)) {
                let (merchant, currency, account) = account;
                self.found.problem(format!(
                    "merchant {merchant}, {currency}: the balance of account {account} is not the sum of its entries"
                ));
            }
        }
        for (merchant, currency, account) in std::mem::take(&mut self.sums).into_keys() {
            self.found.problem(format!("merchant {merchant}, {currency}: account {account} has no balance"));
        }
        Ok(())
    }

    /// What customers did on a day is what their operations of that day sum to. The rows of old days may be gone.
    fn daily_usage(&mut self, wanted: &dyn Fn() -> bool) -> rusqlite::Result<()> {
        let mut after: UsageKey = (i64::MIN, "".into(), "".into(), i64::MIN, i64::MIN);
        while wanted() {
            let mut missing = self.usage_after(&after)?;
            let Some((last, _)) = missing.last_key_value() else { break };
            after = last.clone();
            self.take_counted(&mut missing)?;
            for ((day, merchant, shop, direction, customer), _) in
                missing.into_iter().filter(|(_, left)| *left != (0, 0))
            {
                let of = row::direction_of(direction).map_or("unknown", Direction::as_str);
                self.found.problem(format!(
                    "merchant {merchant}, shop {shop}: the {of} usage of customer {customer} on day {day} is not the \
                     sum of the operations that count for it"
                ));
            }
        }
        Ok(())
    }

    fn usage_after(&self, after: &UsageKey) -> rusqlite::Result<BTreeMap<UsageKey, Usage>> {
        let (day, merchant, shop, direction, customer) = after;
        self.connection
            .prepare_cached(
                "SELECT day, merchant, shop, direction, customer_account_id, operations, amount FROM daily_usage \
                 WHERE (day, merchant, shop, direction, customer_account_id) > (?1, ?2, ?3, ?4, ?5) \
                 ORDER BY day, merchant, shop, direction, customer_account_id LIMIT ?6",
            )?
            .query_map((day, merchant, shop, direction, customer, USAGE_SLICE), |row| {
                Ok((usage_key(row)?, (row.get::<_, i64>(5)?.into(), row.get::<_, i64>(6)?.into())))
            })?
            .collect()
    }

    /// Takes from each usage what its operations did.
    fn take_counted(&self, usage: &mut BTreeMap<UsageKey, Usage>) -> rusqlite::Result<()> {
        let (Some((first, _)), Some((last, _))) = (usage.first_key_value(), usage.last_key_value()) else {
            return Ok(());
        };
        let days = (first.0, last.0, row::status_number(Status::Failed));
        let mut statement = self.connection.prepare_cached(
            "SELECT counted_day, merchant, shop, direction, customer_account_id, amount FROM operations \
             WHERE counted_day BETWEEN ?1 AND ?2 AND status <> ?3 AND customer_account_id IS NOT NULL",
        )?;
        let mut rows = statement.query(days)?;
        while let Some(row) = rows.next()? {
            if let Some((operations, amount)) = usage.get_mut(&usage_key(row)?) {
                *operations -= 1;
                *amount -= i128::from(row.get::<_, i64>(5)?);
            }
        }
        Ok(())
    }

    /// No row stands without its operation.
    fn references(&mut self) -> rusqlite::Result<()> {
        let mut statement = self.connection.prepare("PRAGMA foreign_key_check")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (table, id): (String, Option<i64>) = (row.get(0)?, row.get(1)?);
            self.found.problem(format!("operation {}: is in {table} but does not exist", id.unwrap_or(0)));
        }
        Ok(())
    }
}

/// What of its own a store is made of: the SQL of every table, index, view and trigger, by type and name.
fn parts(connection: &Connection) -> rusqlite::Result<BTreeMap<String, String>> {
    connection
        .prepare("SELECT type || ' ' || name, coalesce(sql, '') FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")?
        .query_map([], |row| Ok((row.get(0)?, normal(&row.get::<_, String>(1)?))))?
        .collect()
}

/// SQL without what means nothing: comments, white space, and the quotes that a renaming adds.
fn normal(sql: &str) -> String {
    let code = sql.lines().map(|line| line.split("--").next().unwrap_or_default());
    code.flat_map(str::chars).filter(|char| !char.is_whitespace() && *char != '"').collect()
}

/// What an error says of a row; it names no value.
fn said(error: StoreError) -> String {
    match error {
        StoreError::Unavailable(text) | StoreError::Corrupt(text) => text,
    }
}
