//! Parses signing payloads and compiles reply templates.

use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde_json::Value;

use super::render_bounded;
use super::samples::samples;
use crate::domain::Segment;
use crate::names::{did_you_mean, quoted};
use crate::rules::problems::Span;
use crate::rules::{Replies, StatusWords};

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

/// The most unknown placeholders of a payload that are reported.
const MOST_PLACEHOLDER_PROBLEMS: usize = 20;

/// The most steps of a reply template: a page of 200 operations takes about ten thousand.
const TEMPLATE_FUEL: u64 = 200_000;

/// Parses a signing payload: text, `{placeholder}`s, and `{{` and `}}` for braces. It must cover the body.
///
/// # Errors
/// Unknown placeholders, at most [`MOST_PLACEHOLDER_PROBLEMS`] and none after an unbalanced brace; or that the body is
/// not covered.
pub(in crate::rules) fn payload(text: &str) -> Result<Vec<Segment>, Vec<TemplateProblem>> {
    let mut segments = Vec::new();
    let mut problems = Vec::new();
    let mut literal = String::new();
    let mut from = 0;
    while let Some(at) = text[from..].find(['{', '}']).map(|at| from + at) {
        literal.push_str(&text[from..at]);
        let (brace, rest) = text[at..].split_at(1);
        from = at + 1;
        if rest.starts_with(brace) {
            literal.push_str(brace);
            from += 1;
            continue;
        }
        let Some(length) = rest.find('}').filter(|_| brace == "{") else {
            let other = if brace == "{" { "}" } else { "{" };
            let reason = format!("has a `{brace}` without its `{other}` (write `{brace}{brace}` for a brace)");
            problems.push(TemplateProblem { reason, at: Some(at..from), suggestion: None });
            return Err(problems);
        };
        if !literal.is_empty() {
            segments.push(Segment::Literal(std::mem::take(&mut literal).into()));
        }
        from += length + 1;
        match placeholder(&rest[..length], at..from) {
            Ok(segment) => segments.push(segment),
            Err(problem) => problems.push(problem),
        }
        if problems.len() == MOST_PLACEHOLDER_PROBLEMS {
            return Err(problems);
        }
    }
    literal.push_str(&text[from..]);
    if !literal.is_empty() {
        segments.push(Segment::Literal(literal.into()));
    }
    if problems.is_empty() && !segments.iter().any(|segment| matches!(segment, Segment::Body | Segment::BodySha256)) {
        let reason = "must contain `{body}` or `{body_sha256}`: a signature without the body does not protect it";
        problems.push(TemplateProblem { reason: reason.into(), at: None, suggestion: None });
    }
    if problems.is_empty() { Ok(segments) } else { Err(problems) }
}

fn placeholder(name: &str, at: Span) -> Result<Segment, TemplateProblem> {
    if let Some((_, segment)) = PLACEHOLDERS.iter().find(|(known, _)| *known == name) {
        return Ok(segment.clone());
    }
    let braced = |name: &str| format!("{{{name}}}");
    let known: Vec<String> = PLACEHOLDERS.iter().map(|(known, _)| braced(known)).collect();
    // Upper case and spaces are the most common mistakes.
    let suggestion = did_you_mean(&braced(&name.trim().to_lowercase()), known.iter().map(String::as_str));
    let reason = format!("has an unknown placeholder {}; known are {}", quoted(&braced(name)), known.join(", "));
    Err(TemplateProblem { reason, at: Some(at), suggestion })
}

/// Returns an environment for reply templates: values are written as JSON, using an undefined value is an error, and
/// the number of steps is limited.
pub(in crate::rules) fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Json);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(TEMPLATE_FUEL));
    environment.set_recursion_limit(50);
    environment.set_debug(true);
    environment
}

/// A problem of a signing payload or a reply template.
#[derive(Debug)]
pub(in crate::rules) struct TemplateProblem {
    /// The reason, which follows the key's name.
    pub reason: String,
    /// The place in the text, if known.
    pub at: Option<Span>,
    /// What was probably meant.
    pub suggestion: Option<String>,
}

/// Adds a template, if it renders with all sample values.
///
/// # Errors
/// The template does not compile, fails for a sample, or does not render JSON.
pub(in crate::rules) fn add_reply(
    environment: &mut Environment<'static>,
    name: &'static str,
    source: &str,
    words: &StatusWords,
) -> Result<(), TemplateProblem> {
    let samples = samples(name, words);
    compile(environment, name, source)?;
    let result = try_samples(environment, name, &samples);
    if result.is_err() {
        environment.remove_template(name);
    }
    result
}

/// The largest template, in bytes.
const LONGEST_TEMPLATE: usize = 64 << 10;
const STACK: usize = 256 << 20;
/// The deepest nesting of brackets. Values of this depth are built and dropped while requests are served.
const DEEPEST: usize = 64;

/// Compiles a template on a separate stack: the template engine recurses with nested expressions, and a stack overflow
/// would end the process.
fn compile(environment: &mut Environment<'static>, name: &'static str, source: &str) -> Result<(), TemplateProblem> {
    let problem = |reason: String| TemplateProblem { reason, at: None, suggestion: None };
    if source.len() > LONGEST_TEMPLATE {
        return Err(problem(format!("is longer than {} KiB", LONGEST_TEMPLATE >> 10)));
    }
    if deepest_brackets(source) > DEEPEST {
        return Err(problem(format!("nests brackets more than {DEEPEST} deep")));
    }
    on_deep_stack(|| environment.add_template_owned(name, source.to_owned()))
        .unwrap_or_else(|| Err(minijinja::ErrorKind::InvalidOperation.into()))
        .map_err(|error| template_problem(&error))
}

/// Runs a recursive function on a thread with a large stack. `None`: the thread could not be created, or it panicked.
fn on_deep_stack<T: Send>(run: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, run).ok()?;
        thread.join().ok()
    })
}

fn deepest_brackets(source: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for byte in source.bytes() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

fn try_samples(environment: &Environment<'_>, name: &str, samples: &[Value]) -> Result<(), TemplateProblem> {
    let template = environment.get_template(name).map_err(|error| template_problem(&error))?;
    for sample in samples {
        let text = render_bounded(&template, sample).map_err(|error| template_problem(&error))?;
        Replies::check_json(&text).map_err(|error| TemplateProblem {
            reason: format!(
                "does not render JSON: {error} of its output for sample values (values are written as JSON: no quotes \
                 around them)"
            ),
            at: None,
            suggestion: None,
        })?;
    }
    Ok(())
}

fn template_problem(error: &minijinja::Error) -> TemplateProblem {
    let reason = match error.detail() {
        Some(detail) => format!("is not a usable template: {}: {detail}", error.kind()),
        None => format!("is not a usable template: {}", error.kind()),
    };
    TemplateProblem { reason, at: error.range(), suggestion: None }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
        assert_eq!(
            payload("{{{timestamp}}}\n{body}\n").unwrap(),
            [
                Segment::Literal("{".into()),
                Segment::Timestamp,
                Segment::Literal("}\n".into()),
                Segment::Body,
                Segment::Literal("\n".into()),
            ]
        );
        for (text, reason) in [
            ("{body", "`{` without"),
            ("{Body}", "unknown placeholder"),
            ("{ body }", "unknown placeholder"),
            ("{{{body}}", "`}` without"),
            ("{body}}", "`}` without"),
            ("{body}{nonce}", "unknown placeholder"),
            ("{body}{}", "unknown placeholder"),
            ("{timestamp}", "must contain `{body}`"),
            ("", "must contain `{body}`"),
            ("{{body}}", "must contain `{body}`"),
        ] {
            let problems = payload(text).unwrap_err();
            assert!(problems.len() == 1 && problems[0].reason.contains(reason), "{text}: {problems:?}");
        }
    }

    #[test]
    fn every_unknown_placeholder_is_named_in_its_place() {
        let text = "{{é{Body}{ nonce }}}{api-key}{}{body}{body";
        let problems = payload(text).unwrap_err();
        let reported: Vec<_> = problems
            .iter()
            .map(|problem| (&text[problem.at.clone().unwrap()], problem.suggestion.as_deref().unwrap_or_default()))
            .collect();
        let expected = [
            ("{Body}", "did you mean `{body}`?"),
            ("{ nonce }", ""),
            ("{api-key}", "did you mean `{api_key}`?"),
            ("{}", ""),
            ("{", ""),
        ];
        assert_eq!(reported, expected);
        assert!(problems[1].reason.starts_with("has an unknown placeholder `{ nonce }`; known are {timestamp}, "));
    }

    const REPLIES: [&str; 7] = ["payin", "payout", "status", "balance", "transactions", "error", "callback"];

    fn words() -> StatusWords {
        StatusWords { pending: "new".into(), success: "done".into(), failed: "lost".into() }
    }

    /// Returns the output of a template for each sample.
    fn render_samples(name: &'static str, source: &str) -> Result<Vec<Value>, String> {
        let mut environment = environment();
        add_reply(&mut environment, name, source, &words()).map_err(|problem| problem.reason)?;
        let replies = Replies::new(environment);
        let render = |sample: &Value| replies.render(name, sample).unwrap().unwrap();
        Ok(samples(name, &words()).iter().map(|sample| serde_json::from_str(&render(sample)).unwrap()).collect())
    }

    #[test]
    fn every_sample_value_is_written_as_the_json_it_is() {
        for name in REPLIES {
            let samples = samples(name, &words());
            assert!(samples.iter().all(Value::is_object) && !samples.is_empty(), "{name}");
            for key in samples[0].as_object().unwrap().keys() {
                let written = render_samples(name, &format!("{{{{ {key} }}}}")).unwrap();
                let expected: Vec<_> = samples.iter().map(|sample| sample[key].clone()).collect();
                assert_eq!(written, expected, "{name}.{key}");
            }
        }
    }

    #[test]
    fn samples_have_unusual_characters() {
        let text = serde_json::to_string(&samples("payin", &words())).unwrap();
        for odd in [r#"\""#, r"\\", r"\u0001", r"\n", "é", "付款", "😀", "</script>", "{{"] {
            assert!(text.contains(odd), "{odd}");
        }
        let callbacks = samples("callback", &words());
        for (status, account) in [("done", false), ("lost", false), ("done", true), ("lost", true)] {
            let is_such = |of: &Value| of["status"] == status && of["account_number"].is_string() == account;
            assert!(callbacks.iter().any(is_such), "{status}, {account}");
        }
        assert!(callbacks.iter().all(|callback| callback["status"] != "new"), "a callback reports a result");
        let operations = samples("status", &words());
        let seen = |key: &str, value: Value| operations.iter().any(|operation| operation[key] == value);
        for (key, values) in [
            ("status", vec![json!("new"), json!("done"), json!("lost")]),
            ("type", vec![json!("payin"), json!("payout")]),
            ("account_number", vec![Value::Null, json!("411111******1111")]),
            ("amount", vec![json!("0.01"), json!("9999999999999.99")]),
        ] {
            assert!(values.into_iter().all(|value| seen(key, value)), "{key}");
        }
        let lengths: Vec<_> = samples("transactions", &words())
            .iter()
            .map(|page| page["transactions"].as_array().unwrap().len())
            .collect();
        assert_eq!(lengths, [0, 1, 2, 200]);
    }

    #[test]
    fn optional_values_may_be_tested() {
        for source in [
            r#"{"s": {{ status }}{% if account_number %}, "a": {{ account_number }}{% endif %}}"#,
            r#"{"s": {{ status }}{% if account_number is not none %}, "a": {{ account_number }}{% endif %}}"#,
            r#"{"s": {{ status }}, "a": {{ account_number or "none" }}}"#,
        ] {
            let written = render_samples("status", source).unwrap();
            assert!(written.iter().any(|reply| reply["a"] == "411111******1111"), "{source}");
        }
        let undefined = r#"{"s": {{ status }}{% if no_such is defined %}, "a": {{ no_such }}{% endif %}}"#;
        assert!(render_samples("status", undefined).unwrap().iter().all(|reply| reply.get("a").is_none()));
        let list = r"[{% for t in transactions %}{{ t.type }}{% if not loop.last %},{% endif %}{% endfor %}]";
        assert_eq!(render_samples("transactions", list).unwrap()[3].as_array().unwrap().len(), 200);
        assert!(render_samples("transactions", r#"{"rows": {{ transactions }}}"#).is_ok());
    }

    #[test]
    fn values_may_be_formatted() {
        for (name, source, first) in [
            ("payin", r#"{"id": {{ "tx-" ~ transaction_id }}}"#, json!({ "id": "tx-7" })),
            ("payin", r#"{"id": {{ transaction_id|int }}}"#, json!({ "id": 7 })),
            ("payin", r#"{"id": "{{ transaction_id|safe }}"}"#, json!({ "id": "7" })),
            ("status", r#"{"cents": {{ amount|replace(".", "")|int }}}"#, json!({ "cents": 1050 })),
            ("status", r#"{"paid": {{ status == "done" }}}"#, json!({ "paid": false })),
            ("callback", r#"{"paid": {{ status == "done" }}}"#, json!({ "paid": true })),
            (
                "error",
                r#"{"bad": {{ code < 500 }}, "why": {{ message|tojson }}}"#,
                json!({ "bad": true, "why": "amount: is required" }),
            ),
        ] {
            assert_eq!(
                render_samples(name, source).unwrap_or_else(|why| panic!("{source}: {why}"))[0],
                first,
                "{source}"
            );
        }
    }

    #[test]
    fn templates_that_cannot_serve_are_refused() {
        for (name, source, reason) in [
            ("payin", "{{ transaction_id", "is not a usable template"),
            ("payin", "{{ no_such_value }}", "undefined"),
            ("payout", r#"{"u": {{ redirect_url }}}"#, "undefined"),
            ("status", r#"{"a": {{ redirect_url }}}"#, "undefined"),
            ("payin", "", "does not render JSON"),
            ("payin", "OK {{ transaction_id }}", "does not render JSON"),
            ("error", r#"{"m": "{{ message }}"}"#, "no quotes around them"),
            (
                "error",
                "{% for a in range(10000) %}{% for b in range(10000) %}{% endfor %}{% endfor %}1",
                "ran out of fuel",
            ),
            ("error", "{{ message|nosuchfilter }}", "unknown filter"),
            // Strict: an undefined value cannot be tested as if it were false either.
            ("payin", "{% if no_such_value %}1{% else %}2{% endif %}", "undefined"),
            ("payin", "{% for x in no_such_value %}{% endfor %}1", "undefined"),
            ("payin", "{{ no_such_value.member }}", "undefined"),
            ("payout", "{% if redirect_url %}1{% else %}2{% endif %}", "undefined"),
            // Every state, size and kind of value is tried, in the dialect's words.
            ("status", r#"{% if status == "lost" %}oops{% else %}1{% endif %}"#, "does not render JSON"),
            ("status", r#"{% if type == "payout" %}oops{% else %}1{% endif %}"#, "does not render JSON"),
            ("status", r#"{"a": {{ account_number|length }}}"#, "is not a usable template"),
            (
                "status",
                r#"{"a": "{{ account_number|safe }}"{% if not account_number %}oops{% endif %}}"#,
                "does not render JSON",
            ),
            ("payin", r#"{"o": "{{ external_id|safe }}"}"#, "does not render JSON"),
            ("error", r#"{% autoescape false %}{"m": "{{ message }}"}{% endautoescape %}"#, "does not render JSON"),
            ("error", "{% if code == 413 %}oops{% else %}1{% endif %}", "does not render JSON"),
            (
                "transactions",
                "[{% for t in transactions %}{{ t.type }},{% endfor %}0]{{ transactions[0].type }}",
                "undefined",
            ),
            (
                "transactions",
                "[{% for t in transactions %}{{ t.type }}{% if loop.index < 200 %},{% endif %}{% endfor %}]",
                "does not render JSON",
            ),
            ("balance", "[{% for b in balances %}{{ b.available }},{% endfor %}]", "does not render JSON"),
            ("callback", "{{ redirect_url }}", "undefined"),
            ("error", r#"{"a": {{ code }}, "a": {{ code }}}"#, "a member occurs twice"),
            ("error", r#"[{"b": {"a": 1, "\u0061": 2}}]"#, "a member occurs twice"),
            ("error", &format!("{}1{}", "[".repeat(33), "]".repeat(33)), "more than 32 levels"),
            ("error", r#"{% for a in range(9000) %}{{ "x" * 1000 }}{% endfor %}"#, "is not a usable template"),
            ("error", r#"{{ "x" * 1000000000000 }}"#, "is not a usable template"),
            ("error", &"1".repeat((64 << 10) + 1), "is longer than 64 KiB"),
        ] {
            let refused = render_samples(name, source).unwrap_err();
            assert!(refused.contains(reason), "{source}: {refused}");
        }
    }

    #[test]
    fn deep_nesting_does_not_overflow_the_stack() {
        for (before, open, inner, close, after) in [
            ("", "{% if code %}", "1", "{% endif %}", ""),
            ("", "{% for a in [1] %}", "1", "{% endfor %}", ""),
            ("{% if code %}", "{% elif code %}1", "1", "", "{% endif %}"),
            ("{{ ", "(", "1", ")", " }}"),
            ("{{ ", "a[", "1", "]", " }}"),
            ("{{ ", "range(", "1", ")", " }}"),
            ("{% set ", "(", "a", ")", " = 1 %}1"),
            ("{{ ", "not ", "code", "", " }}"),
            ("{{ code", "+1", "", "", " }}"),
            ("{{ code", "|string", "", "", " }}"),
            ("{{ code", "[0]", "", "", " }}"),
            ("{{ code", " if code else 1", "", "", " }}"),
        ] {
            for times in [140, 2_000] {
                let source = format!("{before}{}{inner}{}{after}", open.repeat(times), close.repeat(times));
                // Accepted or refused: either is fine, as long as the process does not crash.
                let _ = render_samples("error", &source);
            }
        }
    }
}
