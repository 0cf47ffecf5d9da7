//! Writes times, counts, shares and links as the templates show them.

use std::fmt::Write as _;

use jiff::Timestamp;
use minijinja::value::Value;
use minijinja::{Environment, Error, HtmlEscape, Output, State, escape_formatter};

use crate::domain::{CallbackUrl, UnixMillis, escaped_where, is_deceptive, visible, wide};
use crate::telemetry::without_cards;
use crate::wire::time::{read_rfc3339, rfc3339};

/// Adds all filters to the templates' environment.
pub(super) fn add_filters(templates: &mut Environment<'_>) {
    templates.set_formatter(plain_text);
    templates.add_filter("time", |state: &State<'_, '_>, at: &Value| {
        let at = match at.as_str() {
            Some(text) => read_rfc3339(text).map(Timestamp::as_millisecond),
            None => at.as_i64(),
        };
        let now = state.lookup("chrome").and_then(|chrome| chrome.get_attr("made_at").ok()?.as_i64());
        Value::from_safe_string(time(UnixMillis(at.unwrap_or_default()), UnixMillis(now.unwrap_or_default())))
    });
    templates.add_filter("date", |at: i64| rfc3339(UnixMillis(at)).chars().take(10).collect::<String>());
    templates.add_filter("json", |value: &Value| serde_json::to_string(value).unwrap_or_default());
    templates.add_filter("badge", |word: &str| Value::from_safe_string(badge(word)));
    templates.add_filter("id", |id: &str| Value::from_safe_string(id_on_one_line(id)));
    templates.add_filter("count", count);
    templates.add_filter("millis", millis);
    templates.add_filter("url", percent_encoded);
    templates.add_filter("origin", |url: &str| {
        CallbackUrl::new_allowing_http(url).map_or_else(|_| String::new(), |url| url.origin())
    });
    templates.add_filter("address", |url: &str| Value::from_safe_string(address_without_query(url)));
    templates.add_filter("shortened", shortened);
    templates.add_filter("capitalized", capitalized);
    templates
        .add_filter("clock", |at: i64| rfc3339(UnixMillis(at)).chars().take(19).collect::<String>().replace('T', " "));
    templates.add_filter("outcome", outcome);
    templates.add_filter("share", |v1: u64, v2: u64| Value::from_safe_string(share(v1, v2)));
    templates.add_filter("query", |filter: &Value, after: Option<&str>| query(filter, after));
    templates.add_filter("plural", |count: u64, one: &str, many: &str| {
        format!("{} {}", self::count(count), if count == 1 { one } else { many })
    });
}

/// Writes a time in UTC to the second, with its age.
fn time(at: UnixMillis, now: UnixMillis) -> String {
    let exact = rfc3339(at);
    let day = exact.get(..10).unwrap_or_default();
    let clock = exact.get(11..19).unwrap_or_default();
    // The time of the page itself needs no age.
    let age = if at == now { String::new() } else { format!(" <small>{}</small>", age(at, now)) };
    format!("<time datetime=\"{exact}\">{day} {clock}</time>{age}")
}

/// Returns how long ago a time is, or how soon it comes, in its largest unit.
fn age(at: UnixMillis, now: UnixMillis) -> String {
    let (span, is_past) = if at > now { (now.until(at), false) } else { (at.until(now), true) };
    let seconds = span.as_secs();
    let text = match seconds {
        0 => return if is_past { "now" } else { "soon" }.to_owned(),
        1..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", count(seconds / 86_400)),
    };
    if is_past { format!("{text} ago") } else { format!("in {text}") }
}

/// Writes a whole number with commas between thousands.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Writes a duration of so many milliseconds.
fn millis(millis: u64) -> String {
    match millis {
        0..1000 => format!("{millis} ms"),
        _ => format!("{}.{} s", count(millis / 1000), millis % 1000 / 100),
    }
}

/// Writes a state as a coloured word. Words that are not known have no colour.
fn badge(word: &str) -> String {
    let tone = match word {
        "SUCCESS" | "delivered" | "ready" => "good",
        "FAILED" | "failed" | "not ready" | "open" => "bad",
        "PENDING" | "pending" | "not enough" | "unfinished" => "warn",
        _ => "plain",
    };
    format!("<b class=\"badge {tone}\">{}</b>", escaped(word))
}

/// Writes the outcome of an attempt to send a callback.
fn outcome(attempt: &Value) -> Result<Value, Error> {
    let (status, error) = (attempt.get_attr("status")?, attempt.get_attr("error")?);
    let tone = if error.is_none() && status.as_i64().is_some_and(|status| status / 100 == 2) { "good" } else { "bad" };
    let text = error.as_str().map_or_else(|| format!("HTTP {status}"), str::to_owned);
    Ok(Value::from_safe_string(format!("<span class=\"dot {tone}\">{}</span>", escaped(&text))))
}

/// Writes the address of a callback without its query, which may hold a token, but with the query's length.
fn address_without_query(url: &str) -> String {
    let url = url.split('#').next().unwrap_or_default();
    let (shown, query) = url.split_once('?').unwrap_or((url, ""));
    let code = format!("<code>{}</code>", escaped(&without_cards(shown)));
    match wide(query.chars().count()) {
        0 => code,
        1 => format!("{code} <small>and a query of 1 character</small>"),
        length => format!("{code} <small>and a query of {} characters</small>", count(length)),
    }
}

/// Returns the beginning of a text that others choose, which ends with `…`: a page has a bound.
pub(crate) fn shortened(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", &text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Returns a text with its first letter in upper case.
pub(crate) fn capitalized(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}

/// Writes a value of a template. Texts of others are escaped so that none can turn the text beside it or look like another
/// one. The values of forms and links keep such characters: they are escaped for HTML alone before, by the filters `e` and `url`.
fn plain_text(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    match value.as_str().filter(|text| !value.is_safe() && text.contains(is_deceptive)) {
        Some(text) => escape_formatter(out, state, &Value::from(&*escaped_where(text, is_deceptive))),
        None => escape_formatter(out, state, value),
    }
}

/// Writes an id, which stays on one line unless it is very long. One that has no room beside its label on a phone is marked.
fn id_on_one_line(id: &str) -> String {
    let id = visible(id);
    let class = match id.chars().count() {
        0..=32 => "id",
        33..=40 => "id wide",
        _ => "id long",
    };
    format!("<span class=\"{class}\">{}</span>", escaped(&id))
}

/// Draws the shares of v1 and v2 as a bar beside their percentages.
fn share(v1: u64, v2: u64) -> String {
    let all = u128::from(v1) + u128::from(v2);
    if all == 0 {
        return "<span class=\"none\">no calls</span>".to_owned();
    }
    // A share that exists is never shown as 0 %.
    let (least, most) = (u128::from(v1 > 0), 100 - u128::from(v2 > 0));
    let percent = ((u128::from(v1) * 100 + all / 2) / all).clamp(least, most);
    format!(
        "<svg class=\"share\" viewBox=\"0 0 100 6\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><path d=\"M0 0h{percent}v6H0z\"/>\
         </svg><span class=\"n\">v1 {percent} %, v2 {} %</span>",
        100 - percent
    )
}

/// Writes the members of a filter that are set, and the place of the next page, as a query string with its `?`.
fn query(filter: &Value, after: Option<&str>) -> Result<String, Error> {
    let mut members = Vec::new();
    for name in filter.try_iter()? {
        members.push((filter.get_item(&name)?, name));
    }
    let texts =
        members.iter().map(|(value, name)| (name.as_str().unwrap_or_default(), value.as_str().unwrap_or_default()));
    let members: Vec<_> = texts.chain([("after", after.unwrap_or_default())]).collect();
    let query = address("", &members);
    Ok(if query.is_empty() { "?".to_owned() } else { query })
}

/// Writes the address of a page: its path, and the members of its query that are not empty.
pub(crate) fn address(path: &str, members: &[(&str, &str)]) -> String {
    let mut text = path.to_owned();
    for (number, (name, value)) in members.iter().filter(|(_, value)| !value.is_empty()).enumerate() {
        // Writing to a string cannot fail.
        let _ = write!(text, "{}{name}={}", if number == 0 { '?' } else { '&' }, percent_encoded(value));
    }
    text
}

/// Encodes a text as a part of a path or a query.
pub(crate) fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// Escapes a text for HTML, in text and in attribute values in quotes, and what could turn the text beside it.
fn escaped(text: &str) -> String {
    HtmlEscape(&escaped_where(text, is_deceptive)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_their_age() {
        let now = UnixMillis(1_795_522_325_000);
        let html = "<time datetime=\"2026-11-24T12:00:05.000Z\">2026-11-24 12:00:05</time> <small>20 s ago</small>";
        assert_eq!(time(UnixMillis(now.0 - 20_000), now), html.replace("12:00:05", "12:11:45"));
        for (millis, expected) in [
            (0, "now"),
            (-400, "soon"),
            (59_999, "59 s ago"),
            (180_000, "3 min ago"),
            (-90_000, "in 1 min"),
            (7_200_000, "2 h ago"),
            (172_800_000, "2 days ago"),
            (1_795_522_325_000, "20,781 days ago"),
        ] {
            assert_eq!(age(UnixMillis(now.0 - millis), now), expected);
        }
    }

    #[test]
    fn numbers_are_grouped() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(count(number), text);
        }
        assert_eq!([millis(0), millis(999), millis(1250)], ["0 ms", "999 ms", "1.2 s"]);
    }

    #[test]
    fn shares_that_exist_are_not_zero() {
        for (v1, v2, text) in [(1, 0, "v1 100 %, v2 0 %"), (1, 9999, "v1 1 %, v2 99 %"), (9999, 1, "v1 99 %, v2 1 %")] {
            assert!(share(v1, v2).contains(text), "{}", share(v1, v2));
        }
        assert!(share(u64::MAX, u64::MAX).contains("v1 50 %"));
        assert!(share(0, 0).contains("no calls"));
    }

    #[test]
    fn queries_are_encoded() {
        let filter = minijinja::context! { state => "failed", order_id => "a&b=ü/<", since => "" };
        assert_eq!(query(&filter, None).unwrap(), "?state=failed&order_id=a%26b%3D%C3%BC%2F%3C");
        assert_eq!(query(&minijinja::context! { user => "" }, Some("1.2")).unwrap(), "?after=1.2");
    }

    #[test]
    fn addresses_have_no_query() {
        for (url, html) in [
            ("https://shop.example/a<", "<code>https:&#x2f;&#x2f;shop.example&#x2f;a&lt;</code>"),
            (
                "https://shop.example/4111111111111111?token=hush#part",
                "<code>https:&#x2f;&#x2f;shop.example&#x2f;411111******1111</code> <small>and a query of 10 characters</small>",
            ),
            (
                "https://shop.example?a",
                "<code>https:&#x2f;&#x2f;shop.example</code> <small>and a query of 1 character</small>",
            ),
        ] {
            assert_eq!(address_without_query(url), html);
        }
    }

    #[test]
    fn text_is_never_markup() {
        assert_eq!(id_on_one_line("a<"), "<span class=\"id\">a&lt;</span>");
        assert_eq!(badge("<b>\"'&"), "<b class=\"badge plain\">&lt;b&gt;&quot;&#x27;&amp;</b>");
    }
}
