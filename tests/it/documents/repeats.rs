//! The table of repeats in `docs/merchants-v1.md`: each row is sent to a gateway on the shipped rules.

use super::{page, shipped};
use crate::support::Request;
use crate::support::request::Key;

/// The merchant of the shipped rules.
const DEMO: Key = Key { name: "demo-v1", v1: Some("demo-v1-secret-for-demonstration-only"), v2: None };

/// The cells of the table's rows.
fn rows(page: &str) -> Vec<[&str; 4]> {
    let table = page.lines().skip_while(|line| !line.starts_with("| what differs | first | again |")).skip(2);
    table
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
            cells.try_into().unwrap_or_else(|cells| panic!("four cells: {cells:?}"))
        })
        .collect()
}

/// A deposit with the members of a cell, and with those that a deposit needs and no cell of the row has.
fn deposit(external_id: &str, members: &str, row: &[&str; 4]) -> String {
    let needed = [r#""amount":"25.00""#, r#""currency":"EUR""#];
    let missing = needed.into_iter().filter(|member| {
        let name = member.split(':').next().unwrap();
        !row.iter().any(|cell| cell.contains(name))
    });
    let members = Some(members.trim_matches('`')).filter(|members| *members != "–");
    let all: Vec<_> = missing.chain(members).collect();
    format!(r#"{{"external_id":"{external_id}",{}}}"#, all.join(","))
}

#[tokio::test]
async fn each_row_of_the_table_of_repeats_holds() {
    let (gateway, _) = shipped();
    let client = gateway.client();
    let page = page("docs/merchants-v1.md");
    let rows = rows(&page);
    assert!(rows.len() > 20, "the table is read: {rows:?}");
    for (number, row) in rows.iter().enumerate() {
        let [_, first, again, reply] = row;
        let external_id = format!("row-{number}");
        let send = async |members| client.send(&Request::payin(&DEMO, &deposit(&external_id, members, row))).await;
        let created = send(first).await.expect(200).text();
        let repeated = send(again).await;
        let (status, names) = reply.split_once(' ').unwrap_or((reply, ""));
        match status {
            "the" => assert_eq!((repeated.status, repeated.text()), (200, created.clone()), "{row:?}"),
            "409" => {
                let differing = format!("; differs in: {}", names.trim_matches('`'));
                assert_eq!(repeated.status, 409, "{row:?}: {repeated:?}");
                assert!(repeated.message().ends_with(&differing), "{row:?}: {}", repeated.message());
            }
            "400" => assert_eq!(repeated.status, 400, "{row:?}: {repeated:?}"),
            other => panic!("{other} in {row:?}"),
        }
        // Whatever differed, the order is the first one.
        assert_eq!(send(first).await.expect(200).text(), created, "{row:?}");
    }
}
