//! Answers v1 GETs for a status and for balances (contract section 4), and decodes query strings like HTML forms.

use std::borrow::Cow;
use std::collections::BTreeMap;

use bytes::Bytes;

use super::{V1Frontend, reply};
use crate::domain::{Answer, Balance, Currency, Direction, OrderId};
use crate::error::{ApiError, RequestError};
use crate::rules::Merchant;
use crate::v2::ServiceCall;

impl V1Frontend {
    /// Answers a v1 balance request: every currency in which an entry was posted or a shop of the merchant's could post one,
    /// sorted. Like the status, it ignores its query.
    ///
    /// # Errors
    /// The engine could not answer, or has no balances.
    pub async fn balance(&self, call: ServiceCall<'_>) -> Result<Bytes, ApiError> {
        let merchant = call.caller.merchant();
        let mut balances: BTreeMap<Currency, Balance> =
            currencies(merchant).map(|currency| (currency, Balance::default())).collect();
        balances.extend(self.service.balances(call).await?);
        Ok(reply::balance(&merchant.v1.dialect, &balances))
    }
}

/// The currencies of the shops that are enabled for a merchant, closed ones too: a balance does not come and go with
/// them.
fn currencies(merchant: &Merchant) -> impl Iterator<Item = Currency> {
    let enabled = merchant
        .shops
        .values()
        .filter(|access| [Direction::Payin, Direction::Payout].into_iter().any(|direction| access.enabled(direction)));
    enabled.map(|access| access.shop.currency)
}

impl V1Frontend {
    /// Answers a v1 status request, whose query string (without `?`) is given as sent. Parameters that v1 does not know are
    /// ignored, as merchants' clients are used to adding some.
    ///
    /// # Errors
    /// A malformed parameter, or no such operation.
    pub async fn status(
        &self,
        call: ServiceCall<'_>,
        direction: Direction,
        query: Option<&str>,
    ) -> Result<Answer, ApiError> {
        let external_id = parameter(query, "external_id")?
            .ok_or_else(|| RequestError::member("external_id", "is required as a query parameter"))?;
        let external_id =
            OrderId::new(&external_id).map_err(|invalid| RequestError::invalid("external_id", &invalid))?;
        // Clients that know no shop code send an empty one, which means none.
        let shop_code = parameter(query, "shop_code")?.filter(|code| !code.is_empty());
        let operation = self.service.find(call, direction, &external_id).await?;
        if shop_code.is_some_and(|code| code != *operation.shop_code) {
            return Err(ApiError::NotFound);
        }
        let body = reply::status(&call.caller.merchant().v1.dialect, &operation);
        Ok(Answer { body, transaction_id: Some(operation.transaction_id) })
    }
}

const MALFORMED: &str = "must be percent-encoded UTF-8";
const ONCE: &str = "must be given once";

/// Returns the decoded value of a parameter; `None` when it is absent. Other parameters are ignored.
///
/// # Errors
/// The parameter appears twice, or is not percent-encoded UTF-8.
pub(crate) fn parameter<'q>(query: Option<&'q str>, name: &'static str) -> Result<Option<Cow<'q, str>>, RequestError> {
    let mut found = None;
    for (key, value) in pairs(query) {
        if decoded(key).as_deref() != Some(name) {
            continue;
        }
        if found.is_some() {
            return Err(RequestError::member(name, ONCE));
        }
        found = Some(decoded(value).ok_or_else(|| RequestError::member(name, MALFORMED))?);
    }
    Ok(found)
}

/// Returns the decoded values of parameters, in the order of `names`; `None` where one is absent. Others are refused. The
/// cost is linear in the length of the query.
///
/// # Errors
/// The first parameter in the query that is unknown, repeated, empty, or not percent-encoded UTF-8.
pub(crate) fn parameters<'q, const N: usize>(
    query: Option<&'q str>,
    names: [&'static str; N],
) -> Result<[Option<Cow<'q, str>>; N], RequestError> {
    let mut values = [const { None }; N];
    for (key, value) in pairs(query) {
        let key = decoded(key).ok_or_else(|| RequestError::body("the names of query parameters must be UTF-8"))?;
        let Some((name, place)) = names.iter().zip(&mut values).find(|(name, _)| **name == key) else {
            return Err(RequestError::member(key.into_owned(), "is not a parameter of this request"));
        };
        if place.is_some() {
            return Err(RequestError::member(*name, ONCE));
        }
        let value = decoded(value).ok_or_else(|| RequestError::member(*name, MALFORMED))?;
        if value.is_empty() {
            return Err(RequestError::member(*name, "must not be empty: leave it out instead"));
        }
        *place = Some(value);
    }
    Ok(values)
}

/// Returns the decoded names and values of a form; `None` for one that is not percent-encoded UTF-8.
pub(crate) fn form_fields(form: &str) -> impl Iterator<Item = Option<(Cow<'_, str>, Cow<'_, str>)>> {
    pairs(Some(form)).map(|(name, value)| Some((decoded(name)?, decoded(value)?)))
}

/// Splits a query into names and values as sent. Empty pieces between two `&` are skipped.
fn pairs(query: Option<&str>) -> impl Iterator<Item = (&str, &str)> {
    let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

/// Percent-decodes text in which `+` is a space; `None` when it is malformed.
pub(crate) fn decoded(text: &str) -> Option<Cow<'_, str>> {
    if !text.bytes().any(|byte| matches!(byte, b'%' | b'+')) {
        return Some(Cow::Borrowed(text));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let high = char::from(rest.next()?).to_digit(16)?;
                let low = char::from(rest.next()?).to_digit(16)?;
                u8::try_from(high * 16 + low).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parameters_are_decoded_as_forms_are_written() {
        let query = Some("&external_id=a%2Fb+c%20%C3%A9&&shop_code=&x&");
        assert_eq!(parameter(query, "external_id").unwrap().as_deref(), Some("a/b c é"));
        assert_eq!(parameter(query, "shop_code").unwrap().as_deref(), Some(""));
        assert_eq!(parameter(query, "x").unwrap().as_deref(), Some(""));
        assert_eq!(parameter(query, "y").unwrap(), None);
        assert_eq!(parameter(query, "").unwrap(), None);
        assert_eq!(parameter(None, "y").unwrap(), None);
        for bad in ["a=%", "a=%4", "a=%zz", "a=%ff", "a=%+1", "a=1&a=1", "a=1&%61=1", "a&a"] {
            assert!(parameter(Some(bad), "a").is_err(), "{bad}");
        }
        assert_eq!(parameter(Some("%zz=1&b=%ff&a=1"), "a").unwrap().as_deref(), Some("1"), "others are not read");
    }

    fn encoded(text: &str) -> String {
        text.bytes().fold(String::new(), |mut encoded, byte| {
            match byte {
                b' ' => encoded.push('+'),
                b'a'..=b'z' | b'0'..=b'9' => encoded.push(char::from(byte)),
                byte => {
                    let _ = write!(encoded, "%{byte:02X}");
                }
            }
            encoded
        })
    }

    proptest! {
        #[test]
        fn what_was_encoded_is_decoded(text in "\\PC*|[ +%&=a-f0-9]*", other in "\\PC*") {
            let query = format!("other={}&text={}", encoded(&other), encoded(&text));
            let value = parameter(Some(&query), "text").unwrap();
            prop_assert_eq!(value.as_deref(), Some(&*text));
        }

        #[test]
        fn nothing_makes_reading_panic(query in "\\PC*|[+%&=ab-f0-9]*") {
            let _ = parameter(Some(&query), "a");
            let _ = parameters(Some(&query), ["a", "b"]);
        }
    }
}
