//! The tables `check_counts` and `complete_ids`: see [`checks`](crate::store::checks).

use std::collections::HashMap;

use deadpool_postgres::GenericClient;

use super::errors::PgError;
use super::row::{bucket_of, bytes, get, key, narrow, small};
use super::transaction::PgRows;
use crate::domain::{Direction, Fingerprint, MerchantId, UnixMillis};
use crate::store::checks::{CheckColumns, CheckRow, CheckRows};
use crate::store::rows::direction_number;

/// Rows are locked in the order given.
const ADD: &str = "INSERT INTO check_counts (updated_at, bucket, merchant, rules, id, shop, direction, class, member, \
    reason, file, key, count, since, samples) \
    SELECT $1, given.* FROM unnest($2::smallint[], $3::text[], $4::bytea[], $5::bytea[], $6::text[], $7::smallint[], \
    $8::smallint[], $9::text[], $10::text[], $11::text[], $12::text[], $13::bigint[], $14::bigint[], $15::text[]) AS given \
    ON CONFLICT (bucket, merchant, rules, id) DO UPDATE SET count = check_counts.count + excluded.count, \
    since = least(check_counts.since, excluded.since), \
    updated_at = greatest(check_counts.updated_at, excluded.updated_at) RETURNING id, samples";

impl CheckRows for PgRows<'_> {
    async fn add_checks(
        &mut self,
        given: &[CheckRow],
        at: UnixMillis,
    ) -> Result<HashMap<Fingerprint, String>, PgError> {
        fn all<'a, T>(given: &'a [CheckRow], of: impl Fn(&'a CheckRow) -> T) -> Vec<T> {
            given.iter().map(of).collect()
        }
        let statement = self.0.prepare_cached(ADD).await?;
        let rows = self
            .0
            .query(
                &statement,
                &[
                    &at.0,
                    &all(given, |row| bucket_of(&row.merchant)),
                    &all(given, |row| row.merchant.as_str()),
                    &all(given, |row| key(&row.rules)),
                    &all(given, |row| key(&row.id)),
                    &all(given, |row| &*row.columns.shop),
                    &all(given, |row| narrow(row.columns.direction)),
                    &all(given, |row| narrow(row.columns.class)),
                    &all(given, |row| &*row.columns.member),
                    &all(given, |row| &*row.columns.reason),
                    &all(given, |row| &*row.columns.file),
                    &all(given, |row| &*row.columns.key),
                    &all(given, |row| row.columns.count),
                    &all(given, |row| row.columns.since),
                    &all(given, |row| row.columns.samples.as_str()),
                ],
            )
            .await?;
        rows.iter().map(|row| Ok((Fingerprint(bytes(row, 0)?), get(row, 1)?))).collect()
    }

    async fn set_samples(&mut self, of: &CheckRow, samples: &str) -> Result<(), PgError> {
        let update =
            "UPDATE check_counts SET samples = $5 WHERE bucket = $1 AND merchant = $2 AND rules = $3 AND id = $4";
        let statement = self.0.prepare_cached(update).await?;
        let (merchant, rules, id) = (of.merchant.as_str(), key(&of.rules), key(&of.id));
        self.0.execute(&statement, &[&bucket_of(&of.merchant), &merchant, &rules, &id, &samples]).await?;
        Ok(())
    }

    async fn delete_checks(&mut self, merchant: &MerchantId, until: UnixMillis) -> Result<(), PgError> {
        let delete = "DELETE FROM check_counts WHERE bucket = $1 AND merchant = $2 AND rules IN \
            (SELECT rules FROM check_counts WHERE bucket = $1 AND merchant = $2 \
            GROUP BY rules HAVING max(updated_at) < $3)";
        let statement = self.0.prepare_cached(delete).await?;
        self.0.execute(&statement, &[&bucket_of(merchant), &merchant.as_str(), &until.0]).await?;
        Ok(())
    }

    async fn mark_complete(
        &mut self,
        merchant: &MerchantId,
        direction: Direction,
        at: UnixMillis,
    ) -> Result<(), PgError> {
        let mark = "INSERT INTO complete_ids (bucket, merchant, direction, complete_at) VALUES ($1, $2, $3, $4) \
            ON CONFLICT (bucket, merchant, direction) DO UPDATE SET complete_at = excluded.complete_at";
        let statement = self.0.prepare_cached(mark).await?;
        let direction = narrow(direction_number(direction));
        self.0.execute(&statement, &[&bucket_of(merchant), &merchant.as_str(), &direction, &at.0]).await?;
        Ok(())
    }

    async fn mark_incomplete(&mut self, merchant: &MerchantId, direction: Direction) -> Result<(), PgError> {
        let remove = "DELETE FROM complete_ids WHERE bucket = $1 AND merchant = $2 AND direction = $3";
        let statement = self.0.prepare_cached(remove).await?;
        let direction = narrow(direction_number(direction));
        self.0.execute(&statement, &[&bucket_of(merchant), &merchant.as_str(), &direction]).await?;
        Ok(())
    }
}

/// Reads the counts of a merchant under some rules.
pub(super) async fn columns(
    client: &impl GenericClient,
    merchant: &MerchantId,
    rules: Fingerprint,
) -> Result<Vec<CheckColumns>, PgError> {
    let select = "SELECT shop, direction, class, member, reason, file, key, count, since, samples FROM check_counts \
        WHERE bucket = $1 AND merchant = $2 AND rules = $3";
    let statement = client.prepare_cached(select).await?;
    let rows = client.query(&statement, &[&bucket_of(merchant), &merchant.as_str(), &key(&rules)]).await?;
    rows.iter()
        .map(|row| {
            Ok(CheckColumns {
                shop: get(row, 0)?,
                direction: small(row, 1)?,
                class: small(row, 2)?,
                member: get(row, 3)?,
                reason: get(row, 4)?,
                file: get(row, 5)?,
                key: get(row, 6)?,
                count: get(row, 7)?,
                since: get(row, 8)?,
                samples: get(row, 9)?,
            })
        })
        .collect()
}

/// One mark, by bucket, merchant and direction.
pub(super) const IS_COMPLETE: &str =
    "SELECT EXISTS (SELECT FROM complete_ids WHERE bucket = $1 AND merchant = $2 AND direction = $3)";

/// Reports whether a merchant's ids of a direction are marked as complete.
pub(super) async fn is_complete(
    client: &impl GenericClient,
    merchant: &MerchantId,
    direction: Direction,
) -> Result<bool, PgError> {
    let statement = client.prepare_cached(IS_COMPLETE).await?;
    let direction = narrow(direction_number(direction));
    get(&client.query_one(&statement, &[&bucket_of(merchant), &merchant.as_str(), &direction]).await?, 0)
}
