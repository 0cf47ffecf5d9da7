//! The tables, in the order in which they are copied.

use rusqlite::types::Value;

use super::Kind::{Big, Bool, Bytes, Integer, Small, Text};
use super::{Finisher, Misfit, Table};

/// Where the journal's account stands among its columns.
const JOURNAL_ACCOUNT: usize = 18;

pub(in crate::store) const TABLES: &[Table] = &[
    Table {
        name: "kept_names",
        columns: &[("id", Big), ("names", Text)],
        select: "id, names",
        from: "kept_names ORDER BY id",
        finish: as_it_is,
    },
    Table {
        name: "operations",
        columns: &[
            ("bucket", Small),
            ("transaction_id", Big),
            ("created_at", Big),
            ("finished_at", Big),
            ("amount", Big),
            ("customer_account_id", Big),
            ("kept", Big),
            ("counted_day", Integer),
            ("direction", Small),
            ("status", Small),
            ("provider", Small),
            ("from_v1", Bool),
            ("relayed", Bool),
            ("order_key", Bytes),
            ("digest", Bytes),
            ("currency", Text),
            ("merchant", Text),
            ("order_id", Text),
            ("api_key", Text),
            ("shop", Text),
            ("method", Text),
            ("payment_method", Text),
            ("callback_url", Text),
            ("v1_callback_url", Text),
            ("success_url", Text),
            ("pending_url", Text),
            ("fail_url", Text),
            ("redirect_url", Text),
            ("account", Bytes),
            ("payer", Bytes),
            ("fields", Bytes),
        ],
        select: "merchant, transaction_id, created_at, finished_at, amount, customer_account_id, kept, counted_day, \
            direction, status, provider, from_v1, relayed, order_key, digest, currency, merchant, order_id, \
            api_key, shop, method, payment_method, callback_url, v1_callback_url, success_url, pending_url, fail_url, \
            redirect_url, account, payer, fields",
        from: "operations ORDER BY transaction_id",
        finish: of_a_merchant,
    },
    Table {
        name: "entries",
        columns: &[
            ("bucket", Small),
            ("transaction_id", Big),
            ("posting", Small),
            ("currency", Text),
            ("account", Small),
            ("amount", Big),
            ("booked_at", Big),
            ("merchant", Text),
        ],
        select: "merchant, transaction_id, posting, currency, account, amount, booked_at, merchant",
        from: "entries ORDER BY transaction_id, posting, currency, account",
        finish: of_a_merchant,
    },
    Table {
        name: "accounts",
        columns: &[("bucket", Small), ("merchant", Text), ("currency", Text), ("account", Small), ("balance", Big)],
        select: "merchant, merchant, currency, account, balance",
        from: "accounts ORDER BY merchant, currency, account",
        finish: of_a_merchant,
    },
    Table {
        name: "merchants",
        columns: &[("bucket", Small), ("merchant", Text)],
        select: "merchant, merchant",
        from: "merchants ORDER BY merchant",
        finish: of_a_merchant,
    },
    Table {
        name: "daily_usage",
        columns: &[
            ("bucket", Small),
            ("day", Integer),
            ("merchant", Text),
            ("shop", Text),
            ("direction", Small),
            ("customer_account_id", Big),
            ("operations", Big),
            ("amount", Big),
        ],
        select: "merchant, day, merchant, shop, direction, customer_account_id, operations, amount",
        from: "daily_usage ORDER BY day, merchant, shop, direction, customer_account_id",
        finish: of_a_merchant,
    },
    Table {
        name: "reserved_ids",
        columns: &[("bucket", Small), ("order_key", Bytes)],
        select: "bucket, order_key",
        from: "reserved_ids ORDER BY order_key",
        finish: as_it_is,
    },
    Table {
        name: "provider_jobs",
        columns: &[
            ("bucket", Small),
            ("transaction_id", Big),
            ("due_at", Big),
            ("attempts", Integer),
            ("leased", Bool),
            ("shop", Text),
        ],
        select: "(transaction_id >> 12) & 1023, transaction_id, due_at, attempts, leased, shop",
        from: "provider_jobs ORDER BY transaction_id",
        finish: as_it_is,
    },
    Table {
        name: "preparations",
        columns: &[("bucket", Small), ("transaction_id", Big), ("sealed", Bytes)],
        select: "(transaction_id >> 12) & 1023, transaction_id, sealed",
        from: "preparations ORDER BY transaction_id",
        finish: as_it_is,
    },
    Table {
        name: "journal",
        columns: &[
            ("bucket", Small),
            ("entry", Big),
            ("created_at", Big),
            ("doubted_at", Big),
            ("amount", Big),
            ("direction", Small),
            ("state", Small),
            ("status", Small),
            ("order_key", Bytes),
            ("digest", Bytes),
            ("currency", Text),
            ("merchant", Text),
            ("order_id", Text),
            ("api_key", Text),
            ("shop", Text),
            ("v1_callback_url", Text),
            ("transaction_id", Text),
            ("redirect_url", Text),
            ("account", Bytes),
            ("body", Bytes),
        ],
        select: "merchant, entry, created_at, doubted_at, amount, direction, state, status, order_key, digest, \
            currency, merchant, order_id, api_key, shop, v1_callback_url, transaction_id, redirect_url, account, body",
        from: "journal ORDER BY entry",
        finish: entry,
    },
    Table {
        name: "callbacks",
        columns: &[
            ("bucket", Small),
            ("key", Big),
            ("nonce", Big),
            ("queued_at", Big),
            ("due_at", Big),
            ("attempts", Integer),
            ("tries", Big),
            ("leased", Bool),
            ("last_status", Integer),
            ("merchant", Text),
            ("target", Text),
            ("last_error", Text),
        ],
        select: "0, key, nonce, queued_at, due_at, attempts, tries, leased, last_status, merchant, target, last_error",
        from: "callbacks WHERE state = 0 ORDER BY key",
        finish: of_a_callback,
    },
    Table {
        name: "callbacks_told",
        columns: &[
            ("bucket", Small),
            ("key", Big),
            ("nonce", Big),
            ("queued_at", Big),
            ("due_at", Big),
            ("attempts", Integer),
            ("tries", Big),
            ("state", Small),
            ("last_status", Integer),
            ("merchant", Text),
            ("target", Text),
            ("last_error", Text),
        ],
        select: "0, key, nonce, queued_at, due_at, attempts, tries, state, last_status, merchant, target, last_error",
        from: "callbacks WHERE state <> 0 ORDER BY key",
        finish: of_a_callback,
    },
    Table {
        name: "forgotten",
        columns: &[("id", Integer), ("until", Big)],
        select: "1, until",
        from: "forgotten WHERE until > 0 ORDER BY until",
        finish: as_it_is,
    },
    Table {
        name: "callback_tries",
        columns: &[
            ("bucket", Small),
            ("key", Big),
            ("number", Big),
            ("began_at", Big),
            ("duration_us", Big),
            ("status", Integer),
            ("error", Text),
        ],
        select: "0, key, number, began_at, duration_us, status, error",
        from: "callback_tries ORDER BY key, number",
        finish: of_a_callback,
    },
];

#[allow(clippy::unnecessary_wraps, reason = "one of several that a table may have")]
fn as_it_is(_: &mut Finisher<'_>, _: &mut [Value]) -> Result<(), Misfit> {
    Ok(())
}

/// The first column is a merchant, and becomes its bucket.
fn of_a_merchant(finisher: &mut Finisher<'_>, row: &mut [Value]) -> Result<(), Misfit> {
    let Some(Value::Text(merchant)) = row.first() else { return Err(Misfit::NotOurs) };
    row[0] = Value::Integer(finisher.bucket(merchant)?);
    Ok(())
}

/// An entry gets a number that names its bucket, and its account is sealed for that.
fn entry(finisher: &mut Finisher<'_>, row: &mut [Value]) -> Result<(), Misfit> {
    of_a_merchant(finisher, row)?;
    let Value::Integer(before) = row[1] else { return Err(Misfit::NotOurs) };
    let number = finisher.number(before)?;
    row[1] = Value::Integer(number);
    if let Value::Blob(account) = &row[JOURNAL_ACCOUNT] {
        row[JOURNAL_ACCOUNT] = Value::Blob(finisher.sealed_anew(before, number, account)?);
    }
    Ok(())
}

fn of_a_callback(finisher: &mut Finisher<'_>, row: &mut [Value]) -> Result<(), Misfit> {
    let Value::Integer(key) = row[1] else { return Err(Misfit::NotOurs) };
    let entry = key.checked_neg().filter(|entry| *entry > 0);
    let of = entry.map_or(Ok(key), |entry| finisher.number(entry))?;
    row[0] = Value::Integer((of >> 12) & 1023);
    row[1] = Value::Integer(if entry.is_some() { -of } else { of });
    Ok(())
}
