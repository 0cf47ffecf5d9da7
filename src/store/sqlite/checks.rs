//! The tables `check_counts` and `complete_ids`: see [`checks`](crate::store::checks).

use std::collections::HashMap;

use rusqlite::{Connection, Row, params};

use super::row::direction_number;
use super::transaction::SqliteRows;
use crate::domain::{Direction, Fingerprint, MerchantId, UnixMillis};
use crate::store::checks::{CheckColumns, CheckRow, CheckRows};

const ADD: &str = "INSERT INTO check_counts (merchant, rules, id, shop, direction, class, member, reason, file, key, \
    count, since, updated_at, samples) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14) \
    ON CONFLICT DO UPDATE SET count = count + excluded.count, since = min(since, excluded.since), \
    updated_at = max(updated_at, excluded.updated_at) RETURNING samples";

impl CheckRows for SqliteRows<'_> {
    async fn add_checks(
        &mut self,
        given: &[CheckRow],
        at: UnixMillis,
    ) -> rusqlite::Result<HashMap<Fingerprint, String>> {
        let mut add = self.0.prepare_cached(ADD)?;
        let added = given.iter().map(|CheckRow { merchant, rules, id, columns }| {
            let columns = params![
                merchant.as_str(),
                rules.0,
                id.0,
                columns.shop,
                columns.direction,
                columns.class,
                columns.member,
                columns.reason,
                columns.file,
                columns.key,
                columns.count,
                columns.since,
                at.0,
                columns.samples,
            ];
            Ok((*id, add.query_row(columns, |row| row.get(0))?))
        });
        added.collect()
    }

    async fn set_samples(&mut self, of: &CheckRow, samples: &str) -> rusqlite::Result<()> {
        self.0
            .prepare_cached("UPDATE check_counts SET samples = ?4 WHERE merchant = ?1 AND rules = ?2 AND id = ?3")?
            .execute((of.merchant.as_str(), of.rules.0, of.id.0, samples))
            .map(drop)
    }

    async fn delete_checks(&mut self, merchant: &MerchantId, until: UnixMillis) -> rusqlite::Result<()> {
        let delete = "DELETE FROM check_counts WHERE merchant = ?1 AND rules IN \
            (SELECT rules FROM check_counts WHERE merchant = ?1 GROUP BY rules HAVING max(updated_at) < ?2)";
        self.0.prepare_cached(delete)?.execute((merchant.as_str(), until.0)).map(drop)
    }

    async fn mark_complete(
        &mut self,
        merchant: &MerchantId,
        direction: Direction,
        at: UnixMillis,
    ) -> rusqlite::Result<()> {
        let mark = "INSERT INTO complete_ids (merchant, direction, complete_at) VALUES (?1, ?2, ?3) \
            ON CONFLICT DO UPDATE SET complete_at = excluded.complete_at";
        self.0.prepare_cached(mark)?.execute((merchant.as_str(), direction_number(direction), at.0)).map(drop)
    }

    async fn mark_incomplete(&mut self, merchant: &MerchantId, direction: Direction) -> rusqlite::Result<()> {
        let remove = "DELETE FROM complete_ids WHERE merchant = ?1 AND direction = ?2";
        self.0.prepare_cached(remove)?.execute((merchant.as_str(), direction_number(direction))).map(drop)
    }
}

/// Reads the counts of a merchant under some rules.
pub(super) fn columns(
    connection: &Connection,
    merchant: &MerchantId,
    rules: Fingerprint,
) -> rusqlite::Result<Vec<CheckColumns>> {
    let read = |row: &Row<'_>| {
        Ok(CheckColumns {
            shop: row.get(0)?,
            direction: row.get(1)?,
            class: row.get(2)?,
            member: row.get(3)?,
            reason: row.get(4)?,
            file: row.get(5)?,
            key: row.get(6)?,
            count: row.get(7)?,
            since: row.get(8)?,
            samples: row.get(9)?,
        })
    };
    connection
        .prepare_cached(
            "SELECT shop, direction, class, member, reason, file, key, count, since, samples FROM check_counts \
             WHERE merchant = ?1 AND rules = ?2",
        )?
        .query_map((merchant.as_str(), rules.0), read)?
        .collect()
}

/// Reports whether a merchant's ids of a direction are marked as complete.
pub(super) fn is_complete(
    connection: &Connection,
    merchant: &MerchantId,
    direction: Direction,
) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM complete_ids WHERE merchant = ?1 AND direction = ?2)")?
        .query_row((merchant.as_str(), direction_number(direction)), |row| row.get(0))
}
