//! Query strings of v1 GETs, read the way HTML forms are written.

use std::borrow::Cow;

use crate::failure::Complaint;

/// The decoded value of a parameter; absent parameters are `None`.
///
/// # Errors
/// The parameter stands twice, or is not percent-encoded UTF-8.
pub fn parameter<'q>(query: Option<&'q str>, name: &'static str) -> Result<Option<Cow<'q, str>>, Complaint> {
    let mut found = None;
    for pair in query.unwrap_or_default().split('&') {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        if decoded(key).as_deref() != Some(name) {
            continue;
        }
        if found.is_some() {
            return Err(Complaint::member(name, "must be given once"));
        }
        let value = decoded(value).ok_or_else(|| Complaint::member(name, "must be percent-encoded UTF-8"))?;
        found = Some(value);
    }
    Ok(found)
}

/// Percent-decodes text in which `+` is a space; `None` when it is malformed.
fn decoded(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains(['%', '+']) {
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
    use super::*;

    #[test]
    fn parameters_are_decoded_as_forms_are_written() {
        let query = Some("external_id=a%2Fb+c%20%C3%A9&shop_code=&x");
        assert_eq!(parameter(query, "external_id").unwrap().as_deref(), Some("a/b c é"));
        assert_eq!(parameter(query, "shop_code").unwrap().as_deref(), Some(""));
        assert_eq!(parameter(query, "x").unwrap().as_deref(), Some(""));
        assert_eq!(parameter(query, "y").unwrap(), None);
        assert_eq!(parameter(None, "y").unwrap(), None);
        for bad in ["a=%", "a=%4", "a=%zz", "a=%ff", "a=1&a=1", "a=1&%61=1"] {
            assert!(parameter(Some(bad), "a").is_err(), "{bad}");
        }
    }
}
