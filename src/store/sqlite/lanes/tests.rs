//! Pages against sorted lists, and the plans that SQLite makes of the statements.

use std::fmt::Write as _;

use super::*;
use crate::domain::{Direction, Status};
use crate::store::conformance::first_page;
use crate::store::sqlite::history::OPERATIONS;
use crate::store::sqlite::schema::MIGRATIONS;

/// A row as far as lanes know it.
#[derive(Debug, Clone, Copy)]
struct Entry {
    id: i64,
    merchant: &'static str,
    direction: i64,
    shop: &'static str,
    currency: &'static str,
    status: i64,
    from_v1: bool,
}

fn database(entries: &[Entry]) -> Connection {
    let connection = Connection::open_in_memory().unwrap();
    for migration in MIGRATIONS {
        connection.execute_batch(migration).unwrap();
    }
    connection.execute_batch("BEGIN").unwrap();
    let mut insert = connection
        .prepare(
            "INSERT INTO operations (transaction_id, merchant, direction, shop, currency, status, from_v1, order_key, \
             relayed, provider, created_at, amount, digest, order_id, api_key, callback_url, fields) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, randomblob(16), 0, 0, 0, 1, x'00', '', '', '', x'00')",
        )
        .unwrap();
    for entry in entries {
        let &Entry { id, merchant, direction, shop, currency, status, from_v1 } = entry;
        insert.execute((id, merchant, direction, shop, currency, status, from_v1)).unwrap();
    }
    drop(insert);
    connection.execute_batch("COMMIT").unwrap();
    connection
}

/// Numbers without a pattern (splitmix64).
fn mixed(number: u64) -> u64 {
    let mixed = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ (mixed >> 31)
}

fn pick<T: Copy>(list: &[T], number: u64) -> T {
    list[usize::try_from(number % list.len() as u64).unwrap()]
}

/// Most entries are in one lane, some lanes are rare, one had its day long ago.
fn entries(count: u64) -> Vec<Entry> {
    let entry = |number: u64| {
        let chance = mixed(number);
        let usual = !chance.is_multiple_of(4);
        let shop = if number < 200 { "gone" } else { pick(&["card-eur", "card", "mobile-kes"], chance >> 8) };
        Entry {
            id: i64::try_from(number * 3 + chance % 3).unwrap() + 1,
            merchant: if chance % 7 == 6 { "acme-2" } else { "acme" },
            direction: if usual { 0 } else { i64::try_from(chance >> 2 & 1).unwrap() },
            shop: if usual { "card-eur" } else { shop },
            currency: if usual { "EUR" } else { pick(&["EUR", "KES", "USD"], chance >> 16) },
            status: if usual { 1 } else { i64::try_from((chance >> 24) % 3).unwrap() },
            from_v1: chance % 11 != 10,
        }
    };
    (0..count).map(entry).collect()
}

fn everything() -> HistoryQuery {
    HistoryQuery { limit: 7, ..first_page("acme") }
}

/// Every combination of filters, absent values among them.
fn filters() -> Vec<HistoryQuery> {
    let mut queries = Vec::new();
    for direction in [None, Some(Direction::Payin), Some(Direction::Payout)] {
        for status in [None, Some(Status::Pending), Some(Status::Success), Some(Status::Failed)] {
            for shop in [None, Some("card"), Some("card-eur"), Some("gone"), Some("a"), Some("zzz")] {
                for currency in [None, Some("EUR"), Some("USD"), Some("AAA"), Some("ZZZ")] {
                    let shop = shop.map(|code| ShopCode::new(code).unwrap());
                    let currency = currency.map(|code| Currency::new(code).unwrap());
                    queries.push(HistoryQuery { direction, status, shop, currency, ..everything() });
                }
            }
        }
    }
    queries
}

/// The ids of a list, newest first, found by looking at every entry.
fn list(entries: &[Entry], query: &HistoryQuery, within: &RangeInclusive<i64>) -> Vec<i64> {
    let asked_for = |entry: &&Entry| {
        entry.from_v1
            && entry.merchant == query.merchant.as_str()
            && query.direction.is_none_or(|direction| direction_number(direction) == entry.direction)
            && query.status.is_none_or(|status| status_number(status) == entry.status)
            && query.shop.as_ref().is_none_or(|shop| shop.as_str() == entry.shop)
            && query.currency.as_ref().is_none_or(|currency| currency.as_str() == entry.currency)
            && within.contains(&entry.id)
    };
    let mut ids: Vec<_> = entries.iter().filter(asked_for).map(|entry| entry.id).collect();
    ids.sort_unstable_by(|one, other| other.cmp(one));
    ids
}

fn assert_page(connection: &Connection, query: &HistoryQuery, within: &RangeInclusive<i64>, list: &[i64]) {
    let found = page(connection, &OPERATIONS, query, within, &|| true).unwrap();
    let from = usize::try_from(query.skip).unwrap_or(usize::MAX).min(list.len());
    let to = (from + usize::from(query.limit)).min(list.len());
    let expected = Found { ids: list[from..to].to_vec(), has_more: to < list.len() };
    assert_eq!(found, expected, "{query:?} within {within:?} of {}", list.len());
}

const ALL: RangeInclusive<i64> = 0..=i64::MAX - 1;

#[test]
fn pages_are_those_of_the_sorted_list() {
    let entries = entries(1500);
    let connection = database(&entries);
    let newest = entries.last().unwrap().id;
    for query in filters() {
        for within in [ALL, newest / 3..=newest / 2, newest / 2..=newest / 3] {
            let list = list(&entries, &query, &within);
            let length = list.len() as u64;
            for skip in [0, 1, length / 2, length.saturating_sub(8), length.saturating_sub(7), length, u64::MAX] {
                assert_page(&connection, &HistoryQuery { skip, ..query.clone() }, &within, &list);
            }
        }
    }
}

#[test]
fn walks_stop_at_the_right_entry() {
    let entries = entries(40_000);
    let connection = database(&entries);
    let within = 1000..=entries.last().unwrap().id - 1000;
    let payouts = HistoryQuery { direction: Some(Direction::Payout), ..everything() };
    let usual =
        HistoryQuery { status: Some(Status::Success), shop: Some(ShopCode::new("card-eur").unwrap()), ..everything() };
    for query in [everything(), payouts, usual] {
        let list = list(&entries, &query, &within);
        let length = list.len() as u64;
        let near_the_end = length - 20..length + 20;
        for skip in (0..length).step_by(977).chain(near_the_end).chain([length * 2, length * 1000]) {
            assert_page(&connection, &HistoryQuery { skip, ..query.clone() }, &within, &list);
        }
    }
}

#[test]
fn pages_tile_the_list() {
    let entries = entries(600);
    let connection = database(&entries);
    for limit in [1, 7, 200] {
        let list = list(&entries, &everything(), &ALL);
        let mut tiled = Vec::new();
        loop {
            let query = HistoryQuery { skip: tiled.len() as u64, limit, ..everything() };
            let found = page(&connection, &OPERATIONS, &query, &ALL, &|| true).unwrap();
            tiled.extend(found.ids);
            if !found.has_more {
                break;
            }
        }
        assert_eq!(tiled, list);
    }
}

#[test]
fn an_unwanted_walk_ends() {
    let connection = database(&entries(2000));
    let shop = Some(ShopCode::new("card-eur").unwrap());
    let query = HistoryQuery { skip: 1000, shop, status: Some(Status::Success), ..everything() };
    assert_eq!(page(&connection, &OPERATIONS, &query, &ALL, &|| false).unwrap(), Found::default());
    assert!(!page(&connection, &OPERATIONS, &query, &ALL, &|| true).unwrap().ids.is_empty());
}

/// What SQLite would do, a step a line.
fn plan(connection: &Connection, sql: &str) -> String {
    let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    for number in 1..=statement.parameter_count() {
        statement.raw_bind_parameter(number, 1).unwrap();
    }
    let mut rows = statement.raw_query();
    let mut plan = String::new();
    while let Some(row) = rows.next().unwrap() {
        writeln!(plan, "{}", row.get::<_, String>(3).unwrap()).unwrap();
    }
    plan
}

/// Every statement of a page is a search in the one index, and nothing is sorted; whatever SQLite knows of the table.
#[test]
fn plans_search_the_one_index() {
    let connection = database(&[]);
    let few = database(&entries(500));
    let analyzed = database(&entries(5000));
    analyzed.execute_batch("ANALYZE").unwrap();
    let LaneIndex { leap, slice, nth, count } = OPERATIONS;
    let in_lane = "SEARCH operations USING COVERING INDEX operations_by_v1 \
        (merchant=? AND direction=? AND shop=? AND currency=? AND status=? AND rowid>? AND rowid<?)\n";
    for connection in [connection, few, analyzed] {
        assert_eq!(
            plan(&connection, leap),
            "SEARCH operations USING COVERING INDEX operations_by_v1 \
             (merchant=? AND (direction,shop,currency,status)<(?,?,?,?))\n"
        );
        assert_eq!(plan(&connection, slice), in_lane);
        assert_eq!(plan(&connection, nth), in_lane);
        assert_eq!(plan(&connection, count), in_lane);
        assert_eq!(
            plan(&connection, super::super::row::StoredRow::BY_ID),
            "SEARCH operations USING INTEGER PRIMARY KEY (rowid=?)\n"
        );
    }
}

/// SQLite compares NULL with nothing: a lane of it would never be found.
#[test]
fn no_column_of_a_lane_may_be_null() {
    let connection = database(&[]);
    for table in ["operations", "journal"] {
        for column in ["merchant", "direction", "shop", "currency", "status"] {
            let sql = "SELECT \"notnull\" FROM pragma_table_info(?1) WHERE name = ?2";
            assert!(
                connection.query_row(sql, [table, column], |row| row.get::<_, bool>(0)).unwrap(),
                "{table}.{column}"
            );
        }
    }
}
