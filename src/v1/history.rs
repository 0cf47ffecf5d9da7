//! v1 histories, endpoint `transactions`: filters, pages, newest first (contract section 4).

use bytes::Bytes;

use super::{V1Frontend, query, reply};
use crate::domain::{
    Currency, Direction, HistoryQuery, InvalidValue, MerchantId, OperationView, OrderId, Page, ShopCode, Status,
    UnixMillis,
};
use crate::error::{ApiError, RequestError};
use crate::rules::StatusWords;
use crate::v2::ServiceCall;
use crate::wire::time::read_rfc3339;
use crate::wire::v1_lists::PagePlace;

/// The parameters, in the order in which [`Wanted::read`] takes them.
const PARAMETERS: [&str; 9] =
    ["type", "status", "shop_code", "currency", "external_id", "created_from", "created_to", "page", "per_page"];

const DEFAULT_PER_PAGE: u16 = 50;
const MAX_PER_PAGE: u16 = 200;

impl V1Frontend {
    /// Answers a v1 history request, whose query string (without `?`) is given as sent.
    ///
    /// # Errors
    /// A parameter that is unknown, repeated, empty or malformed; or the engine could not answer.
    pub async fn transactions(&self, call: ServiceCall<'_>, query: Option<&str>) -> Result<Bytes, ApiError> {
        let merchant = call.caller.merchant();
        let Wanted { external_id, place, history } = Wanted::read(query, &merchant.id, &merchant.v1.dialect.statuses)?;
        let page = match external_id {
            Some(external_id) => self.named(call, &external_id, &history).await?,
            None => self.service.history(call, history).await?,
        };
        Ok(reply::transactions(&merchant.v1.dialect, &page, place))
    }

    /// Lists the operations that an `external_id` names: at most a payin and a payout, each found by its key.
    async fn named(
        &self,
        call: ServiceCall<'_>,
        external_id: &OrderId,
        history: &HistoryQuery,
    ) -> Result<Page<OperationView>, ApiError> {
        let mut found = Vec::new();
        for direction in [Direction::Payin, Direction::Payout] {
            if history.direction.is_some_and(|wanted| wanted != direction) {
                continue;
            }
            match self.service.find(call, direction, external_id).await {
                Ok(shown) if is_wanted(history, &shown) => found.push(shown),
                Ok(_) | Err(ApiError::NotFound) => {}
                Err(failure) => return Err(failure),
            }
        }
        // Ids are digits: the longer one is the later one.
        let age = |shown: &OperationView| (shown.created_at, shown.transaction_id.len(), shown.transaction_id.clone());
        found.sort_by_key(|shown| std::cmp::Reverse(age(shown)));
        let skipped = usize::try_from(history.skip).unwrap_or(usize::MAX);
        Ok(Page::of_one_more(found.into_iter().skip(skipped).collect(), history.limit))
    }
}

fn is_wanted(history: &HistoryQuery, shown: &OperationView) -> bool {
    history.status.is_none_or(|status| status == shown.status)
        && history.shop.as_ref().is_none_or(|shop| *shop.as_str() == *shown.shop_code)
        && history.currency.is_none_or(|currency| currency == shown.currency)
        && history.created_from.is_none_or(|from| from <= shown.created_at)
        && history.created_to.is_none_or(|to| shown.created_at <= to)
}

/// The filters and the page of a query string.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    external_id: Option<OrderId>,
    place: PagePlace,
    history: HistoryQuery,
}

impl Wanted {
    fn read(query: Option<&str>, merchant: &MerchantId, statuses: &StatusWords) -> Result<Self, RequestError> {
        let values = query::parameters(query, PARAMETERS)?;
        let [kind, status, shop, currency, external_id, from, to, page, per_page] =
            values.each_ref().map(Option::as_deref);
        let status_of = |word: &str| {
            let all = [Status::Pending, Status::Success, Status::Failed];
            all.into_iter().find(|status| statuses.word(*status) == word).ok_or(NO_STATUS)
        };
        let place = PagePlace {
            page: value("page", page, page_number)?.unwrap_or(1),
            per_page: value("per_page", per_page, page_size)?.unwrap_or(DEFAULT_PER_PAGE),
        };
        let history = HistoryQuery {
            merchant: merchant.clone(),
            direction: value("type", kind, Direction::parse)?,
            status: value("status", status, status_of)?,
            shop: value("shop_code", shop, ShopCode::new)?,
            currency: value("currency", currency, Currency::new)?,
            created_from: value("created_from", from, first_millisecond)?,
            created_to: value("created_to", to, last_millisecond)?,
            skip: (place.page - 1).saturating_mul(u64::from(place.per_page)),
            limit: place.per_page,
        };
        Ok(Self { external_id: value("external_id", external_id, OrderId::new)?, place, history })
    }
}

/// Reads a parameter's value, if it was given; the error names the parameter.
fn value<T>(
    name: &'static str,
    text: Option<&str>,
    read: impl FnOnce(&str) -> Result<T, InvalidValue>,
) -> Result<Option<T>, RequestError> {
    text.map(read).transpose().map_err(|invalid| RequestError::invalid(name, &invalid))
}

const NO_STATUS: InvalidValue = InvalidValue::new("must be one of the statuses that replies show");
const NO_TIME: InvalidValue = InvalidValue::new("must be a time like 2026-01-02T03:04:05.678Z (RFC 3339)");

fn page_number(text: &str) -> Result<u64, InvalidValue> {
    whole_number(text).ok_or(InvalidValue::new("must be a whole number from 1"))
}

fn page_size(text: &str) -> Result<u16, InvalidValue> {
    let size = whole_number(text).and_then(|number| u16::try_from(number).ok()).filter(|size| *size <= MAX_PER_PAGE);
    size.ok_or(InvalidValue::new("must be a whole number from 1 to 200"))
}

/// Reads digits without a leading zero, within 64 bits.
fn whole_number(text: &str) -> Option<u64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    if plain { text.parse().ok() } else { None }
}

/// Returns the first whole millisecond that is not before a time: operations are stored to the millisecond, and a finer
/// bound excludes those created just before it.
fn first_millisecond(text: &str) -> Result<UnixMillis, InvalidValue> {
    let nanoseconds = nanoseconds(text)?;
    in_milliseconds(-(-nanoseconds).div_euclid(1_000_000))
}

/// Returns the last whole millisecond that is not after a time.
fn last_millisecond(text: &str) -> Result<UnixMillis, InvalidValue> {
    in_milliseconds(nanoseconds(text)?.div_euclid(1_000_000))
}

/// Reads a time as nanoseconds since the epoch. The `+` of an offset that was not percent-encoded arrives as a space, which
/// appears nowhere else in a time.
fn nanoseconds(text: &str) -> Result<i128, InvalidValue> {
    read_rfc3339(&text.replace(' ', "+")).map(jiff::Timestamp::as_nanosecond).ok_or(NO_TIME)
}

fn in_milliseconds(milliseconds: i128) -> Result<UnixMillis, InvalidValue> {
    i64::try_from(milliseconds).map(UnixMillis).map_err(|_| NO_TIME)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn merchant() -> MerchantId {
        MerchantId::new("acme").unwrap()
    }

    fn read(query: &str) -> Result<Wanted, String> {
        let statuses = StatusWords { pending: "waiting".into(), success: "done".into(), failed: "no luck".into() };
        Wanted::read(Some(query), &merchant(), &statuses).map_err(|error| error.to_string())
    }

    #[test]
    fn bounds_in_time_are_exact() {
        let bounds = |text: &str| {
            let wanted = read(&format!("created_from={text}&created_to={text}"))?;
            Ok::<_, String>((wanted.history.created_from.unwrap().0, wanted.history.created_to.unwrap().0))
        };
        for (text, from, to) in [
            ("1970-01-01T00:00:00Z", 0, 0),
            ("1970-01-01t00:00:01.5z", 1500, 1500),
            ("1970-01-01T00:00:00.0005Z", 1, 0),
            ("1970-01-01T00:00:00.001000001Z", 2, 1),
            ("1969-12-31T23:59:59.9995Z", 0, -1),
            ("1970-01-01T02:00:00%2B02:00", 0, 0),
            ("1970-01-01T02:00:00+02:00", 0, 0),
            ("1969-12-31T23:00:00-01:00", 0, 0),
        ] {
            assert_eq!(bounds(text), Ok((from, to)), "{text}");
        }
        for text in [
            "yesterday",
            "0",
            "1970-01-01",
            "1970-01-01T00:00:00",
            "1970-01-01+00:00:00Z",
            "1970-01-01T00:00:00++02:00",
            "1970-01-01T00:00:00Z+",
            "1970-02-30T00:00:00Z",
            "1970-01-01T24:00:00Z",
            "1970-01-01T00:00:00.Z",
        ] {
            assert_eq!(
                bounds(text).unwrap_err(),
                "created_from: must be a time like 2026-01-02T03:04:05.678Z (RFC 3339)",
                "{text}"
            );
        }
    }

    proptest! {
        #[test]
        fn nothing_makes_reading_panic(name in prop::sample::select(PARAMETERS.to_vec()), value in "\\PC*|[-+:.TZ0-9]*") {
            let _ = read(&format!("{name}={value}"));
        }
    }
}
