//! What an audit looks at in the schema: tables and indexes are those that this release makes. Without the index of orders,
//! one could be paid twice.
//!
//! What is of other tables is none of its business: a database may hold more than this store. How tables are partitioned is
//! the operator's own choice.

use std::collections::BTreeMap;

use deadpool_postgres::Transaction;

use super::Findings;
use crate::store::postgres::fault::Fault;
use crate::store::postgres::grants;
use crate::store::postgres::row::get;

/// What makes the schema. A later migration that alters what this makes has to be understood here.
const MADE: &str = include_str!("../0001.sql");

/// What a store is made of, and how, by type and name.
type Parts = BTreeMap<String, String>;

const COLUMNS: &str = "SELECT c.relname::text, a.attname::text, format_type(a.atttypid, a.atttypmod), a.attnotnull, \
    coalesce(l.collname = 'C', false) \
    FROM unnest($1::text[]) AS given (name) JOIN pg_class c ON c.oid = to_regclass(given.name) \
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped \
    LEFT JOIN pg_collation l ON l.oid = a.attcollation ORDER BY c.relname, a.attname";

const INDEXES: &str = "SELECT i.relname::text, given.name, x.indisunique, x.indisvalid, \
    array(SELECT a.attname::text FROM unnest(x.indkey::smallint[]) WITH ORDINALITY AS k (number, place) \
    LEFT JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = k.number ORDER BY k.place), \
    coalesce(pg_get_expr(x.indpred, x.indrelid), '') \
    FROM unnest($1::text[]) AS given (name) JOIN pg_index x ON x.indrelid = to_regclass(given.name) \
    JOIN pg_class i ON i.oid = x.indexrelid";

/// The tables and their partitions.
macro_rules! parts {
    () => {
        "WITH ours AS (SELECT to_regclass(name)::oid AS id FROM unnest($1::text[]) AS given (name)), \
         parts AS (SELECT id FROM ours UNION SELECT inhrelid FROM pg_inherits WHERE inhparent IN (SELECT id FROM ours)) "
    };
}

/// Triggers and rules.
const TRIGGERS: &str = concat!(
    parts!(),
    "SELECT 'trigger ' || tgname FROM pg_trigger WHERE NOT tgisinternal AND tgrelid IN (SELECT id FROM parts) \
    UNION SELECT 'rule ' || rulename FROM pg_rewrite WHERE ev_class IN (SELECT id FROM parts) ORDER BY 1"
);

/// Constraints, but for those that are indexes or `NOT NULL`, and those of other tables that name these; and the unique
/// indexes that partitions have alone, which refuse rows as well.
const CONSTRAINTS: &str = concat!(
    parts!(),
    "SELECT 'constraint ' || conname, pg_get_constraintdef(oid) FROM pg_constraint \
     WHERE contype NOT IN ('p', 'u', 'n') AND conparentid = 0 \
     AND (conrelid IN (SELECT id FROM parts) OR confrelid IN (SELECT id FROM parts)) \
     UNION SELECT 'index ' || i.relname, '' FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid \
     WHERE x.indisunique AND x.indrelid IN (SELECT id FROM parts EXCEPT SELECT id FROM ours) \
     AND NOT EXISTS (SELECT FROM pg_inherits h WHERE h.inhrelid = x.indexrelid) ORDER BY 1"
);

/// Tables that a crash would empty, and those that show and take some rows alone.
const KINDS: &str = concat!(
    parts!(),
    "SELECT c.relname::text, c.relpersistence <> 'p', c.relrowsecurity OR c.relforcerowsecurity FROM pg_class c \
     WHERE c.oid IN (SELECT id FROM parts) AND (c.relpersistence <> 'p' OR c.relrowsecurity OR c.relforcerowsecurity) \
     ORDER BY c.relname"
);

/// Compares what is there with what this release makes.
pub(super) async fn compare(snapshot: &Transaction<'_>, findings: &mut Findings) -> Result<(), Fault> {
    let (tables, made) = made(MADE);
    let mut found = columns(snapshot, &tables).await?;
    found.append(&mut indexes(snapshot, &tables).await?);
    for row in snapshot.query(TRIGGERS, &[&tables]).await? {
        found.insert(get(&row, 0)?, String::new());
    }
    for row in snapshot.query(CONSTRAINTS, &[&tables]).await? {
        found.insert(get(&row, 0)?, bare(get(&row, 1)?));
    }
    for (name, made) in made {
        match found.remove(&name) {
            None => findings.found.problem(format!("the schema: {name} is missing")),
            Some(found) if found != made => {
                findings.found.problem(format!("the schema: {name} is not as this release makes it"));
            }
            Some(_) => {}
        }
    }
    for name in found.into_keys() {
        findings.found.problem(format!("the schema: {name} is not of this release"));
    }
    for told in grants::to_others(snapshot).await? {
        findings.found.problem(format!("the schema: {told}"));
    }
    kinds(snapshot, &tables, findings).await
}

async fn kinds(snapshot: &Transaction<'_>, tables: &[String], findings: &mut Findings) -> Result<(), Fault> {
    for row in snapshot.query(KINDS, &[&tables]).await? {
        let (table, unlogged, by_row): (&str, bool, bool) = (get(&row, 0)?, get(&row, 1)?, get(&row, 2)?);
        let problems = [
            (unlogged, "is UNLOGGED: a crash of the server empties it"),
            (by_row, "has row-level security: rows can be hidden"),
        ];
        for (_, problem) in problems.into_iter().filter(|(wrong, _)| *wrong) {
            findings.found.problem(format!("the schema: table {table} {problem}"));
        }
    }
    Ok(())
}

async fn columns(snapshot: &Transaction<'_>, tables: &[String]) -> Result<Parts, Fault> {
    let mut found = Parts::new();
    for row in snapshot.query(COLUMNS, &[&tables]).await? {
        let (table, column, of): (&str, &str, &str) = (get(&row, 0)?, get(&row, 1)?, get(&row, 2)?);
        let told = found.entry(format!("table {table}")).or_default();
        *told += &column_text(column, of, get(&row, 3)?, get(&row, 4)?);
    }
    Ok(found)
}

fn column_text(name: &str, of: &str, not_null: bool, by_bytes: bool) -> String {
    let (not_null, by_bytes) = (if not_null { " not null" } else { "" }, if by_bytes { " C" } else { "" });
    format!("{name} {of}{by_bytes}{not_null};")
}

async fn indexes(snapshot: &Transaction<'_>, tables: &[String]) -> Result<Parts, Fault> {
    let mut found = Parts::new();
    for row in snapshot.query(INDEXES, &[&tables]).await? {
        let (index, table): (&str, &str) = (get(&row, 0)?, get(&row, 1)?);
        let (unique, valid): (bool, bool) = (get(&row, 2)?, get(&row, 3)?);
        // An expression has no name.
        let columns: Vec<Option<&str>> = get(&row, 4)?;
        let columns: Vec<_> = columns.into_iter().map(Option::unwrap_or_default).collect();
        let mut text = index_text(unique, table, &columns.join(","), get(&row, 5)?);
        if !valid {
            text += " invalid";
        }
        found.insert(format!("index {index}"), text);
    }
    Ok(found)
}

fn index_text(unique: bool, table: &str, columns: &str, condition: &str) -> String {
    format!("{}{table}({}){}", if unique { "unique " } else { "" }, bare(columns), bare(condition))
}

/// SQL without what the server spells its own way: spaces and brackets.
fn bare(sql: &str) -> String {
    sql.chars().filter(|char| !char.is_whitespace() && !['(', ')'].contains(char)).collect()
}

/// The tables that SQL makes, and all their parts, as [`columns`] and [`indexes`] tell them.
fn made(sql: &str) -> (Vec<String>, Parts) {
    let code: Vec<_> = sql.lines().map(|line| line.split("--").next().unwrap_or_default()).collect();
    let (mut tables, mut parts) = (Vec::new(), Parts::new());
    for statement in code.join("\n").split(';').map(str::trim) {
        if let Some(table) = statement.strip_prefix("CREATE TABLE ") {
            let (name, rest) = table.split_once(" (").unwrap_or_default();
            made_table(name, rest, &mut parts);
            tables.push(name.to_owned());
        } else if let Some(index) = statement.strip_prefix("CREATE INDEX ") {
            made_index(false, index, &mut parts);
        } else if let Some(index) = statement.strip_prefix("CREATE UNIQUE INDEX ") {
            made_index(true, index, &mut parts);
        }
    }
    (tables, parts)
}

/// A line a column; of several columns, the primary key is the last.
fn made_table(name: &str, rest: &str, parts: &mut Parts) {
    let mut columns = BTreeMap::new();
    for line in rest.lines().map(str::trim).take_while(|line| !line.starts_with(')')).filter(|line| !line.is_empty()) {
        let mut words = line.trim_end_matches(',').split_whitespace();
        let (Some(first), Some(of)) = (words.next(), words.next()) else { continue };
        let key = match (first, line.split_once("PRIMARY KEY (")) {
            ("PRIMARY", Some((_, keys))) => keys,
            _ => first,
        };
        if line.contains("PRIMARY KEY") {
            parts.insert(format!("index {name}_pkey"), index_text(true, name, key.trim_end_matches(','), ""));
        }
        if let Some((_, check)) = line.split_once("CHECK ") {
            parts.insert(
                format!("constraint {name}_{first}_check"),
                bare(&format!("CHECK {}", check.trim_end_matches(','))),
            );
        }
        if first != "PRIMARY" {
            let not_null = line.contains("NOT NULL") || line.contains("PRIMARY KEY");
            columns.insert(first, column_text(first, of, not_null, line.contains("COLLATE \"C\"")));
        }
    }
    parts.insert(format!("table {name}"), columns.into_values().collect());
}

/// `name ON table (columns) WHERE condition`
fn made_index(unique: bool, index: &str, parts: &mut Parts) {
    let words: Vec<_> = index.split_whitespace().collect();
    let index = words.join(" ");
    let (name, rest) = index.split_once(" ON ").unwrap_or_default();
    let (table, rest) = rest.split_once(" (").unwrap_or_default();
    let (columns, rest) = rest.split_once(')').unwrap_or_default();
    let condition = rest.trim().strip_prefix("WHERE ").unwrap_or_default();
    parts.insert(format!("index {name}"), index_text(unique, table, columns, condition));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_is_understood() {
        let (tables, parts) = made(MADE);
        assert!(tables.iter().any(|table| table == "callback_tries"));
        let count = |kind: &str| parts.keys().filter(|name| name.starts_with(kind)).count();
        assert_eq!(count("table "), tables.len());
        for (name, expected) in [
            ("table probe", "count bigint not null;id integer not null;"),
            ("table merchants", "bucket smallint not null;merchant text C not null;"),
            ("index probe_pkey", "unique probe(id)"),
            ("constraint probe_id_check", "CHECKid=1"),
            ("index operations_pkey", "unique operations(bucket,transaction_id)"),
            ("index operations_by_order", "unique operations(bucket,order_key)"),
            ("index journal_open", "journal(entry)state=0"),
            ("index journal_by_transaction", "journal(transaction_id)transaction_idISNOTNULL"),
        ] {
            assert_eq!(parts.get(name).map(String::as_str), Some(expected), "{name}");
        }
    }
}
