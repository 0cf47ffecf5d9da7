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
