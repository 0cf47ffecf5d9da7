//! The default v1 replies that hold lists: balances and histories (contract section 4).

use std::fmt::Write as _;

use super::time::rfc3339;
use super::v1::push_status;
use crate::domain::{Balance, Currency, Decimals, OperationView, Page};
use crate::json::write_string;

/// Writes the default body of a balance reply.
#[must_use]
pub fn balance_reply(balances: impl IntoIterator<Item = (Currency, Balance)>) -> String {
    let mut body = String::from("{\"balances\":[");
    for (number, (currency, balance)) in balances.into_iter().enumerate() {
        let comma = if number > 0 { "," } else { "" };
        let (available, held) = (Decimals(balance.available), Decimals(balance.held));
        // Writing to a String cannot fail.
        let _ =
            write!(body, "{comma}{{\"currency\":\"{currency}\",\"available\":\"{available}\",\"held\":\"{held}\"}}");
    }
    body.push_str("]}");
    body
}

/// The page of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PagePlace {
    /// Counted from 1.
    pub page: u64,
    /// The most operations on a page.
    pub per_page: u16,
}

/// Writes the default body of a history reply: status bodies with `type` and `created_at`, with the dialect's words of
/// statuses.
#[must_use]
pub fn transactions_reply<'w>(
    page: &Page<OperationView>,
    place: PagePlace,
    word: impl Fn(&OperationView) -> &'w str,
) -> String {
    let mut body = String::from("{\"transactions\":[");
    for (number, shown) in page.items.iter().enumerate() {
        if number > 0 {
            body.push(',');
        }
        push_status(&mut body, shown, word(shown));
        body.push_str(",\"type\":");
        write_string(&mut body, shown.direction.as_str());
        body.push_str(",\"created_at\":");
        write_string(&mut body, &rfc3339(shown.created_at));
        body.push('}');
    }
    let (PagePlace { page: number, per_page }, has_more) = (place, page.has_more);
    // Writing to a String cannot fail.
    let _ = write!(body, "],\"page\":{number},\"per_page\":{per_page},\"has_more\":{has_more}}}");
    body
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Amount, Direction, OrderId, Status, UnixMillis};

    #[test]
    fn balances_are_written_byte_for_byte_as_the_contract_shows() {
        let eur = Currency::new("EUR").unwrap();
        assert_eq!(balance_reply([]), r#"{"balances":[]}"#);
        assert_eq!(
            balance_reply([
                (eur, Balance { available: 12_000, held: 1000 }),
                (Currency::new("usd").unwrap(), Balance { available: -7, held: 0 }),
            ]),
            r#"{"balances":[{"currency":"EUR","available":"120.00","held":"10.00"},{"currency":"USD","available":"-0.07","held":"0.00"}]}"#
        );
    }

    #[test]
    fn histories_are_written_byte_for_byte_as_the_contract_shows() {
        let shown = OperationView {
            transaction_id: "12".into(),
            external_id: OrderId::new("a\"b").unwrap(),
            direction: Direction::Payout,
            status: Status::Success,
            amount: Amount::from_hundredths(1050).unwrap(),
            currency: Currency::new("EUR").unwrap(),
            shop_code: "card-eur".into(),
            account_number: Some("400012******1234".to_owned()),
            created_at: UnixMillis(1_767_323_045_678),
        };
        let bare = OperationView { account_number: None, direction: Direction::Payin, ..shown.clone() };
        let place = PagePlace { page: 1, per_page: 50 };
        assert_eq!(
            transactions_reply(&Page::empty(), place, |_| "done"),
            r#"{"transactions":[],"page":1,"per_page":50,"has_more":false}"#
        );
        let page = Page { items: vec![shown, bare], has_more: true };
        assert_eq!(
            transactions_reply(&page, PagePlace { page: u64::MAX, per_page: 2 }, |_| "d\\ne"),
            concat!(
                r#"{"transactions":[{"transaction_id":"12","external_id":"a\"b","status":"d\\ne","amount":"10.50","#,
                r#""currency":"EUR","shop_code":"card-eur","account_number":"400012******1234","type":"payout","#,
                r#""created_at":"2026-01-02T03:04:05.678Z"},{"transaction_id":"12","external_id":"a\"b","#,
                r#""status":"d\\ne","amount":"10.50","currency":"EUR","shop_code":"card-eur","type":"payin","#,
                r#""created_at":"2026-01-02T03:04:05.678Z"}],"page":18446744073709551615,"per_page":2,"#,
                r#""has_more":true}"#
            )
        );
    }
}
