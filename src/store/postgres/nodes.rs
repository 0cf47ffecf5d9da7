//! The list of nodes. Its times are the database's: nodes tell for how long something has been so.

use std::time::Duration;

use tokio_postgres::Row;

use super::PostgresStore;
use super::fault::Fault;
use super::row::get;
use crate::domain::UnixMillis;
use crate::store::nodes::{Announcement, FORGOTTEN_AFTER, Node, Nodes, Roll};
use crate::store::{Answer, StoreError};

/// The time of the database in milliseconds.
macro_rules! now {
    () => {
        "(extract(epoch FROM now()) * 1000)::bigint"
    };
}

const ANNOUNCE: &str = concat!(
    "INSERT INTO nodes (name, release, rules_version, rules_error, started_at, rules_loaded_at, seen_at) VALUES ($1, $2, \
     $3, $4, ",
    now!(),
    " - $5, ",
    now!(),
    " - $6, ",
    now!(),
    ") ON CONFLICT (name) DO UPDATE SET release = excluded.release, rules_version = excluded.rules_version, \
     rules_error = excluded.rules_error, rules_loaded_at = excluded.rules_loaded_at, seen_at = excluded.seen_at"
);

/// By itself, so that nodes that forget the same ones never wait for each other with something in their hands.
const FORGET: &str = concat!("DELETE FROM nodes WHERE seen_at < ", now!(), " - $1");

const LEAVE: &str = "DELETE FROM nodes WHERE name = $1";

/// The time also where there are no nodes.
const NODES: &str = concat!(
    "SELECT t.now, n.name, n.release, n.rules_version, n.rules_error, n.started_at, n.rules_loaded_at, n.seen_at \
     FROM (SELECT ",
    now!(),
    " AS now) t LEFT JOIN nodes n ON true ORDER BY n.name"
);

impl Nodes for PostgresStore {
    fn announce(&self, node: Announcement) -> Answer<'_, ()> {
        Box::pin(self.thread.run(async move |thread| {
            let Announcement { name, running, release, rules_version, rules_age, rules_error } = node;
            let (running, rules_age) = (millis(running), millis(rules_age));
            let (name, release, rules_version, rules_error) =
                (&*name, &*release, &*rules_version, rules_error.as_deref());
            thread
                .ask(async |client| {
                    let announce = client.prepare_cached(ANNOUNCE).await?;
                    client
                        .execute(&announce, &[&name, &release, &rules_version, &rules_error, &running, &rules_age])
                        .await?;
                    let forget = client.prepare_cached(FORGET).await?;
                    client.execute(&forget, &[&millis(FORGOTTEN_AFTER)]).await?;
                    Ok(())
                })
                .await
        }))
    }

    fn leave<'a>(&'a self, name: &'a str) -> Answer<'a, ()> {
        let name = name.to_owned();
        Box::pin(self.thread.run(async move |thread| {
            thread.ask(async |client| Ok(client.execute(LEAVE, &[&name]).await.map(drop)?)).await
        }))
    }

    fn nodes(&self) -> Answer<'_, Option<Roll>> {
        Box::pin(async move { self.thread.run(async move |thread| thread.ask(roll).await).await.map(Some) })
    }
}

async fn roll(client: &deadpool_postgres::Object) -> Result<Roll, Fault> {
    let statement = client.prepare_cached(NODES).await?;
    let rows = client.query(&statement, &[]).await?;
    let first = rows.first().ok_or_else(|| StoreError::Corrupt("the database has no time".to_owned()))?;
    let now = UnixMillis(get(first, 0)?);
    let nodes: Result<Vec<_>, _> = rows.iter().filter_map(|row| node(row).transpose()).collect();
    Ok(Roll { now, nodes: nodes? })
}

/// `None` for the row that stands for the time alone.
fn node(row: &Row) -> Result<Option<Node>, Fault> {
    let Some(name) = get::<Option<&str>>(row, 1)? else { return Ok(None) };
    Ok(Some(Node {
        name: name.into(),
        release: get::<&str>(row, 2)?.into(),
        rules_version: get::<&str>(row, 3)?.into(),
        rules_error: get::<Option<&str>>(row, 4)?.map(Into::into),
        started_at: UnixMillis(get(row, 5)?),
        rules_loaded_at: UnixMillis(get(row, 6)?),
        seen_at: UnixMillis(get(row, 7)?),
    }))
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}
