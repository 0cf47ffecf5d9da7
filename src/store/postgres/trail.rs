//! The table `actions`: see [`trail`](crate::store::trail).

use deadpool_postgres::GenericClient;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::errors::PgError;
use super::row::{get, sized};
use super::transaction::PgRows;
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

/// Waits for a transaction that inserts the same form's key.
const INSERT: &str = "INSERT INTO actions (id, began_at, user_name, role, address, request_id, action, target, \
    parameters, rules_version, form) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT DO NOTHING";

/// One action; the parameters are its number and its form's key.
const SAME: &str = select!("WHERE id = $1 OR form = $2 ORDER BY form IS NOT DISTINCT FROM $2 DESC LIMIT 1");

/// Pages of all actions and of those that match filters. Parameters: the least and the greatest number, the limit, and
/// the filters in the order of the name. Rows are compared and sorted with their filters, so that the primary key, along
/// which other users' actions would have to be skipped, is no way to read them.
pub(super) const ALL: &str = select!("WHERE id BETWEEN $1 AND $2 ORDER BY id DESC LIMIT $3");
pub(super) const OF_USER: &str = select!(
    "WHERE (user_name, id) >= ($4, $1) AND (user_name, id) <= ($4, $2) ORDER BY user_name DESC, id DESC LIMIT $3"
);
pub(super) const OF_ACTION: &str =
    select!("WHERE (action, id) >= ($4, $1) AND (action, id) <= ($4, $2) ORDER BY action DESC, id DESC LIMIT $3");
pub(super) const OF_USER_AND_ACTION: &str = select!(
    "WHERE (user_name, action, id) >= ($4, $5, $1) AND (user_name, action, id) <= ($4, $5, $2) \
     ORDER BY user_name DESC, action DESC, id DESC LIMIT $3"
);

impl ActionRows for PgRows<'_> {
    async fn insert_action(&mut self, new: &ActionRecord) -> Result<bool, PgError> {
        let form = new.form.as_ref().map(bytes_of);
        let parameters: [&(dyn ToSql + Sync); 11] = [
            &new.id.0,
            &new.at.0,
            &&*new.user,
            &&*new.role,
            &&*new.address,
            &&*new.request_id,
            &&*new.action,
            &&*new.target,
            &&*new.parameters,
            &&*new.rules_version,
            &form,
        ];
        let statement = self.0.prepare_cached(INSERT).await?;
        Ok(self.0.execute(&statement, &parameters).await? == 1)
    }

    async fn same_action(&mut self, new: &ActionRecord) -> Result<Option<ActionRecord>, PgError> {
        let statement = self.0.prepare_cached(SAME).await?;
        let form = new.form.as_ref().map(bytes_of);
        self.0.query_opt(&statement, &[&new.id.0, &form]).await?.as_ref().map(read).transpose()
    }

    async fn finish_action(&mut self, id: ActionId, end: &ActionEnd) -> Result<(), PgError> {
        let update = "UPDATE actions SET ended_at = $2, outcome = $3 WHERE id = $1 AND ended_at IS NULL";
        let statement = self.0.prepare_cached(update).await?;
        self.0.execute(&statement, &[&id.0, &end.at.0, &&*end.outcome]).await?;
        Ok(())
    }
}

fn bytes_of(FormKey(key): &FormKey) -> &[u8] {
    key
}

/// Reads a page of actions, newest first.
pub(super) async fn page(client: &impl GenericClient, query: &ActionQuery) -> Result<Vec<ActionRecord>, PgError> {
    let sql = match (&query.user, &query.action) {
        (None, None) => ALL,
        (Some(_), None) => OF_USER,
        (None, Some(_)) => OF_ACTION,
        (Some(_), Some(_)) => OF_USER_AND_ACTION,
    };
    let (first, last) = query.numbers();
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
    let filters: Vec<&str> = [&query.user, &query.action].into_iter().flatten().map(|text| &**text).collect();
    let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![&first, &last, &limit];
    for filter in &filters {
        parameters.push(filter);
    }
    let statement = client.prepare_cached(sql).await?;
    client.query(&statement, &parameters).await?.iter().map(read).collect()
}

fn read(row: &Row) -> Result<ActionRecord, PgError> {
    Ok(ActionRecord {
        id: ActionId(get(row, 0)?),
        at: UnixMillis(get(row, 1)?),
        user: get(row, 3)?,
        role: get(row, 4)?,
        address: get(row, 5)?,
        request_id: get(row, 6)?,
        action: get(row, 7)?,
        target: get(row, 8)?,
        parameters: get(row, 9)?,
        rules_version: get(row, 10)?,
        form: get::<Option<&[u8]>>(row, 11)?.map(|key| sized(row, 11, key)).transpose()?.map(FormKey),
        end: ActionEnd::of_columns(get(row, 2)?, get(row, 12)?)?,
    })
}
