//! Statements in the shapes that providers send.

use super::*;
use crate::rules::{SkippedLines, StatementColumns};

/// A statement of orders in the default format, with a status.
pub(in crate::cli::reconcile) fn rules() -> StatementRules {
    StatementRules {
        key: StatementKey::OrderId,
        columns: StatementColumns {
            key: "reference".into(),
            amount: "amount".into(),
            currency: Some("currency".into()),
            status: Some("state".into()),
            merchant: None,
            direction: None,
        },
        statuses: vec![("paid".into(), Status::Success), ("declined".into(), Status::Failed)],
        delimiter: b',',
        decimal: '.',
        encoding: StatementEncoding::Utf8,
        skip: None,
    }
}

/// A statement as banks in Germany send it.
fn german() -> StatementRules {
    let columns = StatementColumns {
        key: "Verwendungszweck".into(),
        amount: "Betrag (€)".into(),
        currency: Some("Währung".into()),
        status: None,
        merchant: None,
        direction: None,
    };
    StatementRules { columns, statuses: Vec::new(), delimiter: b';', decimal: ',', ..rules() }
}

/// Each line as `number key amount currency status`, and the error at the end.
fn read(bytes: &[u8], rules: &StatementRules) -> Vec<String> {
    let mut statement = match Statement::read_from(bytes, Path::new("s.csv"), rules) {
        Ok(statement) => statement,
        Err(error) => return vec![reason(error)],
    };
    let mut lines = Vec::new();
    loop {
        lines.push(match statement.read() {
            Ok(None) => return lines,
            Ok(Some(StatementLine { line, key, amount, is_negative, currency, status, .. })) => {
                let sign = if is_negative { "-" } else { "" };
                let currency = currency.map_or_else(String::new, |currency| format!(" {currency}"));
                let status = status.map_or("?", Status::as_str);
                format!("{line} {} {sign}{amount}{currency} {status}", key.text())
            }
            Err(error) => {
                lines.push(reason(error));
                return lines;
            }
        });
    }
}

fn reason(error: CliError) -> String {
    match error {
        CliError::Failed(reason) => reason.strip_prefix("s.csv: ").unwrap().to_owned(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn shapes_of_providers_are_read() {
    let plain = "reference,amount,currency,state\no-1,10.50,EUR,paid\no-2,3,EUR,declined\no-3,4.000,eur,refunded\n";
    let expected = ["2 o-1 10.50 EUR SUCCESS", "3 o-2 3.00 EUR FAILED", "4 o-3 4.00 EUR ?"];
    assert_eq!(read(plain.as_bytes(), &rules()), expected);
    assert_eq!(read(plain.replace('\n', "\r\n").as_bytes(), &rules()), expected, "CRLF");
    assert_eq!(read(plain.trim_end().as_bytes(), &rules()), expected, "no end of the last line");
    assert_eq!(read(format!("\u{feff}{plain}").as_bytes(), &rules()), expected, "a byte order mark");
    assert_eq!(read(plain.replace("EUR,", "EUR , ").as_bytes(), &rules()), expected, "white space around");
    let trailing = plain.replace('\n', ",\n");
    assert_eq!(read(trailing.as_bytes(), &rules()), expected, "an empty last column");
    assert_eq!(read(trailing.replace("state,", "state").as_bytes(), &rules()), expected, "without a name");
    assert_eq!(read(plain.replace("\no", ",\no").replace("state,", "state").as_bytes(), &rules()), expected);

    let quoted = "\"state\",\"currency\",\"note\",\"amount\",\"reference\"\r\n\r\n\
                  \"paid\",\"EUR\",\"two\r\nlines, \"\"quoted\"\"\",\"10.50\",\"a,b\"\r\n,,,,\r\n\
                  paid,EUR,,7.00,\"=x\"\r\n";
    assert_eq!(read(quoted.as_bytes(), &rules()), ["3 a,b 10.50 EUR SUCCESS", "6 =x 7.00 EUR SUCCESS"]);

    let text = "Buchungstag;Verwendungszweck;Betrag (€);Währung;\r\n24.11.2026;o-1;1234,50;EUR;\r\n24.11.2026;Müller;-7,5;EUR;\r\n";
    let expected = ["2 o-1 1234.50 EUR SUCCESS", "3 Müller -7.50 EUR SUCCESS"];
    assert_eq!(read(text.as_bytes(), &german()), expected);
    let latin1: Vec<u8> = text.replace('€', "EUR").chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
    let mut rules = german();
    rules.columns.amount = "Betrag (EUR)".into();
    assert_eq!(read(&latin1, &rules), ["line 1: is not UTF-8"]);
    rules.encoding = StatementEncoding::Latin1;
    assert_eq!(read(&latin1, &rules), expected);
}

#[test]
fn an_order_id_keeps_the_white_space_around_it() {
    let padded = format!(" o-2{}", " ".repeat(300));
    let text =
        format!("reference,amount,currency,state\n\" o-1\t\", 1 ,EUR,paid\n{padded},2,EUR,paid\n\"  \",3,EUR,paid\n");
    let expected = ["2  o-1\t 1.00 EUR SUCCESS", "3 o-2 2.00 EUR SUCCESS", "line 4: `reference` must not be empty"];
    assert_eq!(read(text.as_bytes(), &rules()), expected, "one that is too long with it loses it");
    let by_id = StatementRules { key: StatementKey::TransactionId, ..rules() };
    assert_eq!(read(b"reference,amount,currency,state\n\" 42 \",1,EUR,paid\n", &by_id), ["2 42 1.00 EUR SUCCESS"]);
    let order = |id: &str| LineKey::Order(OrderId::new(id).unwrap());
    assert_eq!(order(" o\t").trimmed(), Some(order("o")));
    assert_eq!((order("o o").trimmed(), order(" ").trimmed()), (None, None));
}

#[test]
fn a_line_that_cannot_be_read_has_its_number() {
    let after = |line: &str| {
        let text = format!("reference,amount,currency,state\no-1,10.50,EUR,paid\n\n\n{line}\n");
        read(text.as_bytes(), &rules()).pop().unwrap()
    };
    for (line, reason) in [
        ("Total,1234.50,,", "line 5: `state` is empty"),
        ("Total,1234.50", "line 5: has 2 fields instead of 4"),
        (",1234.50,EUR,paid", "line 5: `reference` must not be empty"),
        (
            "o-2,\"1,234.50\",EUR,paid",
            "line 5: `amount` must be an amount such as 1234.50, without a separator of thousands",
        ),
        ("o-2,10,50,EUR,paid", "line 5: has 5 fields instead of 4"),
        ("o-2,1e3,EUR,paid", "line 5: `amount` must be an amount such as 1234.50, without a separator of thousands"),
        ("o-2,1.2.3,EUR,paid", "line 5: `amount` must be an amount"),
        ("o-2,1.005,EUR,paid", "line 5: `amount` must have at most two decimal places"),
        ("o-2,0.00,EUR,paid", "line 5: `amount` must be greater than 0"),
        ("o-2,7.00,EURO,paid", "line 5: `currency` must be exactly 3 letters"),
    ] {
        assert_eq!(after(line), reason, "{line}");
    }
    let mut by_id = rules();
    by_id.key = StatementKey::TransactionId;
    let text = "reference,amount,currency,state\n42,1,EUR,paid\nTotal,1,EUR,paid\n";
    let read_by_id = |rules: &StatementRules| read(text.as_bytes(), rules);
    assert_eq!(read_by_id(&by_id), ["2 42 1.00 EUR SUCCESS", "line 3: `reference` must be a transaction id"]);
    by_id.skip = Some(SkippedLines { column: "reference".into(), values: vec!["Total".into()] });
    assert_eq!(read_by_id(&by_id), ["2 42 1.00 EUR SUCCESS"]);
    assert_eq!(read(b"reference,state\n", &rules()), ["line 1: has no column `amount`, but: reference, state"]);
    assert_eq!(read(b"", &rules()), ["line 1: has no column `reference`, but: "]);
    let twice = "reference,amount,amount,currency,state\n";
    assert_eq!(read(twice.as_bytes(), &rules()), ["line 1: has several columns `amount`"]);
}

#[test]
fn merchants_and_directions_narrow() {
    let mut narrowed = rules();
    narrowed.columns.merchant = Some("who".into());
    narrowed.columns.direction = Some("way".into());
    let text =
        b"reference,amount,currency,state,who,way\no,1,EUR,paid,acme,payout\no,1,EUR,paid,,\no,1,EUR,paid,a/b,\n";
    let mut statement = Statement::read_from(&text[..], Path::new("s.csv"), &narrowed).unwrap();
    let line = statement.read().unwrap().unwrap();
    assert_eq!((line.merchant, line.direction), (MerchantId::new("acme").ok(), Some(Direction::Payout)));
    let line = statement.read().unwrap().unwrap();
    assert_eq!((line.merchant, line.direction), (None, None));
    assert!(reason(statement.read().unwrap_err()).starts_with("line 4: `who` must be 1 to 64"));
}
