//! Checks the schema: that tables and indexes are those that this release creates. Without the index of orders, one
//! order could be created twice.
//!
//! Tables of others are ignored: a database may hold more than this store.

use deadpool_postgres::Transaction;

use crate::store::audit::{AuditFindings, SchemaParts};
use crate::store::format;
use crate::store::postgres::errors::PgError;
use crate::store::postgres::schema::{FORMATS, in_common};
use crate::store::postgres::transaction::get;

const COLUMNS: &str = "SELECT c.relname::text, a.attname::text, format_type(a.atttypid, a.atttypmod), a.attnotnull, \
    coalesce(l.collname = 'C', false) \
    FROM unnest($1::text[]) AS given (name) JOIN pg_class c ON c.oid = to_regclass(given.name) \
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped \
    LEFT JOIN pg_collation l ON l.oid = a.attcollation ORDER BY c.relname, a.attnum";

const INDEXES: &str = "SELECT i.relname::text, given.name, x.indisunique, x.indisvalid, \
    array(SELECT a.attname::text FROM unnest(x.indkey::smallint[]) WITH ORDINALITY AS k (number, place) \
    LEFT JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = k.number ORDER BY k.place), \
    coalesce(pg_get_expr(x.indpred, x.indrelid), '') \
    FROM unnest($1::text[]) AS given (name) JOIN pg_index x ON x.indrelid = to_regclass(given.name) \
    JOIN pg_class i ON i.oid = x.indexrelid";

const CONSTRAINTS: &str = "SELECT conname::text, given.name FROM unnest($1::text[]) AS given (name) \
    JOIN pg_constraint ON conrelid = to_regclass(given.name) WHERE contype = 'c' AND convalidated";

/// Compares the schema with what the steps of the formats create.
pub(super) async fn compare(snapshot: &Transaction<'_>, findings: &mut AuditFindings) -> Result<(), PgError> {
    let formats = format::load(&in_common(snapshot)).await?;
    let (tables, made) = tables_of(&formats.steps_taken(FORMATS).concat());
    let mut found = columns(snapshot, &tables).await?;
    found.append(&mut indexes(snapshot, &tables).await?);
    let constraints = snapshot.query(CONSTRAINTS, &[&tables]).await?;
    for row in &constraints {
        found.insert(format!("constraint {}", get::<&str>(row, 0)?), get(row, 1)?);
    }
    // Rules that an operator has added to a column are no damage.
    found.retain(|name, _| !name.starts_with("constraint ") || made.contains_key(name));
    findings.structure(made, found, formats.count() > FORMATS.len());
    Ok(())
}

async fn columns(snapshot: &Transaction<'_>, tables: &[String]) -> Result<SchemaParts, PgError> {
    let mut found = SchemaParts::new();
    for row in snapshot.query(COLUMNS, &[&tables]).await? {
        let (table, column, of): (&str, &str, &str) = (get(&row, 0)?, get(&row, 1)?, get(&row, 2)?);
        let reported = found.entry(format!("table {table}")).or_default();
        *reported += &column_text(column, of, get(&row, 3)?, get(&row, 4)?);
    }
    Ok(found)
}

fn column_text(name: &str, of: &str, not_null: bool, by_bytes: bool) -> String {
    let (not_null, by_bytes) = (if not_null { " not null" } else { "" }, if by_bytes { " C" } else { "" });
    format!("{name} {of}{by_bytes}{not_null};")
}

async fn indexes(snapshot: &Transaction<'_>, tables: &[String]) -> Result<SchemaParts, PgError> {
    let mut found = SchemaParts::new();
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

/// Returns SQL without what the server formats in its own way: spaces and brackets.
fn bare(sql: &str) -> String {
    sql.chars().filter(|char| !char.is_whitespace() && !['(', ')'].contains(char)).collect()
}

/// Returns the tables that SQL creates, with all their parts, in the form of [`columns`] and [`indexes`]. It has to
/// understand everything that the steps of a format do to them.
fn tables_of(sql: &str) -> (Vec<String>, SchemaParts) {
    let code: Vec<_> = sql.lines().map(|line| line.split("--").next().unwrap_or_default()).collect();
    let (mut tables, mut parts) = (Vec::new(), SchemaParts::new());
    for statement in code.join("\n").split(';').map(str::trim) {
        if let Some(table) = statement.strip_prefix("CREATE TABLE ") {
            let (name, rest) = table.split_once(" (").unwrap_or_default();
            made_table(name, rest, &mut parts);
            tables.push(name.to_owned());
        } else if let Some(index) = statement.strip_prefix("CREATE INDEX ") {
            made_index(false, index, &mut parts);
        } else if let Some(index) = statement.strip_prefix("CREATE UNIQUE INDEX ") {
            made_index(true, index, &mut parts);
        } else if let Some((table, column)) = added_column(statement) {
            *parts.entry(format!("table {table}")).or_default() += &line_text(column);
        } else if let Some(index) = statement.strip_prefix("DROP INDEX ") {
            parts.remove(&format!("index {index}"));
        }
    }
    (tables, parts)
}

/// `ALTER TABLE table ADD COLUMN column`
fn added_column(statement: &str) -> Option<(&str, &str)> {
    statement.strip_prefix("ALTER TABLE ")?.split_once(" ADD COLUMN ")
}

/// Returns the text of the column that a line declares.
fn line_text(line: &str) -> String {
    let mut words = line.trim_end_matches(',').split_whitespace();
    let (name, of) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let not_null = line.contains("NOT NULL") || line.contains("PRIMARY KEY");
    column_text(name, of, not_null, line.contains("COLLATE \"C\""))
}

/// One line for each column; of several columns, the primary key is the last line.
fn made_table(name: &str, rest: &str, parts: &mut SchemaParts) {
    let mut columns = String::new();
    // Lines that are indented further continue a constraint.
    let is_part = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
    for line in rest.lines().take_while(|line| !line.starts_with(')')).filter(is_part).map(str::trim) {
        let mut words = line.trim_end_matches(',').split_whitespace();
        let (Some(first), Some(of)) = (words.next(), words.next()) else { continue };
        let key = match (first, line.split_once("PRIMARY KEY (")) {
            ("PRIMARY", Some((_, keys))) => keys,
            _ => first,
        };
        if line.contains("PRIMARY KEY") {
            parts.insert(format!("index {name}_pkey"), index_text(true, name, key.trim_end_matches(','), ""));
        }
        if first == "CONSTRAINT" {
            // The server words conditions in its own way.
            parts.insert(format!("constraint {of}"), name.to_owned());
        } else if first != "PRIMARY" {
            columns += &line_text(line);
        }
    }
    parts.insert(format!("table {name}"), columns);
}

/// `name ON table (columns) WHERE condition`
fn made_index(unique: bool, index: &str, parts: &mut SchemaParts) {
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
    fn migrations_create_what_is_expected() {
        let (tables, parts) = tables_of(FORMATS[0].adds);
        assert!(tables.iter().any(|table| table == "callback_tries"));
        let count = |kind: &str| parts.keys().filter(|name| name.starts_with(kind)).count();
        assert_eq!(count("table "), tables.len());
        for (name, expected) in [
            ("table probe", "id integer not null;count bigint not null;"),
            ("table merchants", "merchant text C not null;"),
            ("index probe_pkey", "unique probe(id)"),
            ("index operations_pkey", "unique operations(transaction_id)"),
            ("index homes_pkey", "unique homes(order_key)"),
            ("constraint journal_answer", "journal"),
            ("index journal_open", "journal(entry)state=0"),
            ("index journal_by_transaction", "unique journal(transaction_id)"),
        ] {
            assert_eq!(parts.get(name).map(String::as_str), Some(expected), "{name}");
        }
    }

    #[test]
    fn later_steps_are_parsed() {
        let sql = "CREATE TABLE a (\n  b bigint PRIMARY KEY\n);\nCREATE INDEX a_b ON a (b);\n\
                   ALTER TABLE a ADD COLUMN c text COLLATE \"C\";\nDROP INDEX a_b;\n";
        let (tables, parts) = tables_of(sql);
        assert_eq!(tables, ["a"]);
        let parts: Vec<_> = parts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        assert_eq!(parts, [("index a_pkey", "unique a(b)"), ("table a", "b bigint not null;c text C;")]);
    }
}
