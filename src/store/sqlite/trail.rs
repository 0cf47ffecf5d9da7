//! The table `actions`: see [`trail`](crate::store::trail).

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};

use super::transaction::SqliteRows;
use crate::domain::UnixMillis;
use crate::store::trail::{ActionEnd, ActionId, ActionQuery, ActionRecord, ActionRows, FormKey};

/// In the order of [`read`].
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, began_at, ended_at, user_name, role, address, request_id, action, target, parameters, \
             rules_version, form, outcome FROM actions ",
            $rest
        )
    };
}

const INSERT: &str = "INSERT INTO actions (id, began_at, user_name, role, address, request_id, action, target, \
    parameters, rules_version, form) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) ON CONFLICT DO NOTHING";

/// One action; the parameters are its number and its form's key.
const SAME: &str = select!("WHERE id = ?1 OR form = ?2 ORDER BY form IS ?2 DESC LIMIT 1");

/// Pages of all actions and of those that match filters. Parameters: the least and the greatest number, the limit, and
/// the filters in the order of the name.
pub(super) const ALL: &str = select!("WHERE id BETWEEN ?1 AND ?2 ORDER BY id DESC LIMIT ?3");
pub(super) const OF_USER: &str =
    select!("INDEXED BY actions_by_user WHERE user_name = ?4 AND id BETWEEN ?1 AND ?2 ORDER BY id DESC LIMIT ?3");
pub(super) const OF_ACTION: &str =
    select!("INDEXED BY actions_by_action WHERE action = ?4 AND id BETWEEN ?1 AND ?2 ORDER BY id DESC LIMIT ?3");
pub(super) const OF_USER_AND_ACTION: &str = select!(
    "INDEXED BY actions_by_both WHERE user_name = ?4 AND action = ?5 AND id BETWEEN ?1 AND ?2 ORDER BY id DESC LIMIT ?3"
);

impl ActionRows for SqliteRows<'_> {
    async fn insert_action(&mut self, new: &ActionRecord) -> rusqlite::Result<bool> {
        let inserted = self.0.prepare_cached(INSERT)?.execute(params![
            new.id.0,
            new.at.0,
            new.user,
            new.role,
            new.address,
            new.request_id,
            new.action,
            new.target,
            new.parameters,
            new.rules_version,
            new.form.map(|FormKey(key)| key),
        ])?;
        Ok(inserted == 1)
    }

    async fn same_action(&mut self, new: &ActionRecord) -> rusqlite::Result<Option<ActionRecord>> {
        let form = new.form.map(|FormKey(key)| key);
        self.0.prepare_cached(SAME)?.query_row((new.id.0, form), read).optional()
    }

    async fn finish_action(&mut self, id: ActionId, end: &ActionEnd) -> rusqlite::Result<()> {
        self.0
            .prepare_cached("UPDATE actions SET ended_at = ?2, outcome = ?3 WHERE id = ?1 AND ended_at IS NULL")?
            .execute((id.0, end.at.0, &end.outcome))
            .map(drop)
    }
}

/// Reads a page of actions, newest first.
pub(super) fn page(connection: &Connection, query: &ActionQuery) -> rusqlite::Result<Vec<ActionRecord>> {
    let sql = match (&query.user, &query.action) {
        (None, None) => ALL,
        (Some(_), None) => OF_USER,
        (None, Some(_)) => OF_ACTION,
        (Some(_), Some(_)) => OF_USER_AND_ACTION,
    };
    let (first, last) = query.numbers();
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
    let filters = [&query.user, &query.action].into_iter().flatten().map(|text| Value::from(String::from(&**text)));
    let parameters = [first, last, limit].map(Value::from).into_iter().chain(filters);
    connection.prepare_cached(sql)?.query_map(params_from_iter(parameters), read)?.collect()
}

fn read(row: &Row<'_>) -> rusqlite::Result<ActionRecord> {
    Ok(ActionRecord {
        id: ActionId(row.get(0)?),
        at: UnixMillis(row.get(1)?),
        user: row.get(3)?,
        role: row.get(4)?,
        address: row.get(5)?,
        request_id: row.get(6)?,
        action: row.get(7)?,
        target: row.get(8)?,
        parameters: row.get(9)?,
        rules_version: row.get(10)?,
        form: row.get::<_, Option<[u8; 16]>>(11)?.map(FormKey),
        end: ActionEnd::of_columns(row.get(2)?, row.get(12)?)?,
    })
}
