//! Signing payloads and reply templates.

use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde_json::{Value, json};

use crate::rules::Segment;

/// The placeholders of a payload.
const PLACEHOLDERS: &[(&str, Segment)] = &[
    ("timestamp", Segment::Timestamp),
    ("method", Segment::Method),
    ("path", Segment::Path),
    ("query", Segment::Query),
    ("target", Segment::Target),
    ("body", Segment::Body),
    ("body_sha256", Segment::BodySha256),
    ("api_key", Segment::ApiKey),
];

/// How many steps a reply template may take: a page of 200 operations takes some ten thousand.
const TEMPLATE_FUEL: u64 = 1_000_000;

/// Reads a signing payload: text, `{placeholder}`s, and `{{` and `}}` for braces. It must cover the body.
///
/// # Errors
/// Half a sentence after the key's name.
pub(super) fn payload(text: &str) -> Result<Vec<Segment>, String> {
    let mut segments = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        literal.push_str(&rest[..at]);
        let brace = &rest[at..=at];
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix(brace) {
            literal.push_str(brace);
            rest = after;
        } else if brace == "{" {
            let (name, after) = rest.split_once('}').ok_or("has a `{` without its `}` (write `{{` for a brace)")?;
            if !literal.is_empty() {
                segments.push(Segment::Literal(std::mem::take(&mut literal).into()));
            }
            segments.push(placeholder(name)?);
            rest = after;
        } else {
            return Err("has a `}` without its `{` (write `}}` for a brace)".into());
        }
    }
    literal.push_str(rest);
    if !literal.is_empty() {
        segments.push(Segment::Literal(literal.into()));
    }
    if segments.iter().any(|segment| matches!(segment, Segment::Body | Segment::BodySha256)) {
        Ok(segments)
    } else {
        Err("must hold `{body}` or `{body_sha256}`: a signature that leaves the body out protects nothing".into())
    }
}

fn placeholder(name: &str) -> Result<Segment, String> {
    let known = PLACEHOLDERS.iter().find(|(known, _)| *known == name);
    known.map(|(_, segment)| segment.clone()).ok_or_else(|| {
        let known: Vec<String> = PLACEHOLDERS.iter().map(|(known, _)| format!("{{{known}}}")).collect();
        format!("has an unknown placeholder; known are {}", known.join(", "))
    })
}

/// An environment for reply templates: values are written as JSON, printing an undefined one is an error, and the work
/// is bounded. Asking whether an optional value is there is allowed.
pub(super) fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Json);
    environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    environment.set_fuel(Some(TEMPLATE_FUEL));
    environment.set_recursion_limit(50);
    environment.set_debug(true);
    environment
}

/// What is wrong with a reply template, and where in it when that is known.
pub(super) struct TemplateProblem {
    pub reason: String,
    pub at: Option<std::ops::Range<usize>>,
}

/// Adds a template after rendering it with every kind of sample values.
///
/// # Errors
/// It does not compile, fails for values that it will be given, or renders something else than JSON.
pub(super) fn add_reply(
    environment: &mut Environment<'static>,
    name: &'static str,
    source: &str,
) -> Result<(), TemplateProblem> {
    environment.add_template_owned(name, source.to_owned()).map_err(|error| template_problem(&error))?;
    let result = environment.get_template(name).map_err(|error| template_problem(&error)).and_then(|template| {
        samples(name).into_iter().try_for_each(|sample| {
            let text = template.render(minijinja::value::Serde(&sample)).map_err(|error| template_problem(&error))?;
            let parsed: Result<Value, _> = serde_json::from_str(&text);
            parsed.map(drop).map_err(|error| TemplateProblem {
                reason: format!(
                    "does not render JSON: {error} of what it renders for sample values (values are written as JSON: no \
                     quotes around them)"
                ),
                at: None,
            })
        })
    });
    if result.is_err() {
        environment.remove_template(name);
    }
    result
}

fn template_problem(error: &minijinja::Error) -> TemplateProblem {
    let reason = match error.detail() {
        Some(detail) => format!("is no usable template: {}: {detail}", error.kind()),
        None => format!("is no usable template: {}", error.kind()),
    };
    TemplateProblem { reason, at: error.range() }
}

/// Values as replies have them, the optional ones present, `null` and absent, with text that must be escaped.
fn samples(reply: &str) -> Vec<Value> {
    let text = "a\"b\\c\u{1}é";
    let withdrawal = json!({ "transaction_id": "123", "external_id": text });
    let deposit = json!({ "transaction_id": "123", "external_id": text, "redirect_url": "https://a.example/?b=c&d" });
    let status = json!({
        "external_id": text, "transaction_id": "123", "status": "PENDING", "amount": "10.50", "currency": "EUR",
        "shop_code": "card-eur", "account_number": "411111******1111", "type": "payin",
        "created_at": "2026-01-02T03:04:05.678Z",
    });
    let (mut without_account, mut null_account) = (status.clone(), status.clone());
    null_account["account_number"] = Value::Null;
    if let Some(members) = without_account.as_object_mut() {
        members.remove("account_number");
    }
    let page = |list: Vec<Value>| json!({ "transactions": list, "page": 1, "per_page": 50, "has_more": false });
    match reply {
        "payin" => vec![deposit],
        "payout" => vec![withdrawal],
        "status" => vec![status, null_account],
        "balance" => {
            let balance = json!({ "currency": "EUR", "available": "120.00", "held": "10.00" });
            vec![
                json!({ "balances": [] }),
                json!({ "balances": [balance.clone()] }),
                json!({ "balances": [balance.clone(), balance] }),
            ]
        }
        "transactions" => vec![page(vec![]), page(vec![status.clone()]), page(vec![status, null_account])],
        "error" => vec![json!({ "code": 400, "message": text })],
        _ => vec![without_account],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_are_read() {
        assert_eq!(
            payload("{timestamp}.{method}.{path}.{body}").unwrap(),
            [
                Segment::Timestamp,
                Segment::Literal(".".into()),
                Segment::Method,
                Segment::Literal(".".into()),
                Segment::Path,
                Segment::Literal(".".into()),
                Segment::Body,
            ]
        );
        assert_eq!(
            payload("{{a}}{body_sha256}|{query}{target}{api_key}x").unwrap(),
            [
                Segment::Literal("{a}".into()),
                Segment::BodySha256,
                Segment::Literal("|".into()),
                Segment::Query,
                Segment::Target,
                Segment::ApiKey,
                Segment::Literal("x".into()),
            ]
        );
        for (text, reason) in [
            ("{body", "`{` without"),
            ("{body}}", "`}` without"),
            ("{body}{nonce}", "unknown placeholder"),
            ("{body}{}", "unknown placeholder"),
            ("{timestamp}", "must hold `{body}`"),
            ("", "must hold `{body}`"),
            ("{{body}}", "must hold `{body}`"),
        ] {
            assert!(payload(text).unwrap_err().contains(reason), "{text}");
        }
    }

    fn added(name: &'static str, source: &str) -> Result<String, String> {
        let mut environment = environment();
        add_reply(&mut environment, name, source).map_err(|problem| problem.reason)?;
        let sample = samples(name).remove(0);
        Ok(environment.get_template(name).unwrap().render(minijinja::value::Serde(&sample)).unwrap())
    }

    #[test]
    fn values_are_written_as_json() {
        let text = added("payin", r#"{"id": {{ transaction_id }}, "order": {{ external_id }}}"#).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value, json!({ "id": "123", "order": "a\"b\\c\u{1}é" }));
    }

    #[test]
    fn optional_values_may_be_asked_for() {
        let source = r#"{"s": {{ status }}{% if account_number %}, "a": {{ account_number }}{% endif %}}"#;
        assert!(added("status", source).unwrap().contains("411111******1111"));
        let list = r"[{% for t in transactions %}{{ t.type }}{% if not loop.last %},{% endif %}{% endfor %}]";
        assert!(added("transactions", list).is_ok());
    }

    #[test]
    fn templates_that_cannot_serve_are_refused() {
        for (name, source, reason) in [
            ("payin", "{{ transaction_id", "is no usable template"),
            ("payin", "{{ no_such_value }}", "undefined"),
            ("payout", r#"{"u": {{ redirect_url }}}"#, "undefined"),
            ("status", r#"{"a": {{ redirect_url }}}"#, "undefined"),
            ("payin", "", "does not render JSON"),
            ("payin", "OK {{ transaction_id }}", "does not render JSON"),
            ("error", r#"{"m": "{{ message }}"}"#, "no quotes around them"),
            ("error", "{% for a in range(10000) %}{% for b in range(10000) %}{% endfor %}{% endfor %}1", "fuel"),
            ("error", "{{ message|nosuchfilter }}", "unknown filter"),
        ] {
            let refused = added(name, source).unwrap_err();
            assert!(refused.contains(reason), "{source}: {refused}");
        }
    }
}
