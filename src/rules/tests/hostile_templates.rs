//! Reply templates of any shape are limited when they run, and never crash the process.

use super::*;

/// Returns rules with a dialect that has this reply template.
fn template(reply: &str, source: &str) -> Rules {
    assert!(!source.contains("'''"));
    Rules::small().with("dialects/d.toml", format!("[replies]\n{reply} = '''\n{source}'''"))
}

#[track_caller]
fn accepted(reply: &str, source: &str) {
    let result = template(reply, source).try_load();
    assert!(result.is_ok(), "{reply} = {source}: {}", result.unwrap_err());
}

/// Asserts one problem of the template, at this text in it.
#[track_caller]
fn refused(reply: &str, source: &str, reason: &str, at: &str) {
    let problems = template(reply, source).refused();
    let problem = problems.iter().next().unwrap();
    let message = problem.message.as_str();
    let short = source.get(..200).unwrap_or(source);
    assert!(problems.len() == 1 && message.contains(reason), "{short}: {problems}");
    let line = source.lines().nth(problem.place.start.0.saturating_sub(3)).unwrap_or_default();
    let found: String = line.chars().skip(problem.place.start.1 - 1).collect();
    assert!(found.starts_with(at), "{short}: {message} at {found}");
}

#[test]
fn slow_and_large_templates_are_stopped() {
    for source in [
        "{% for a in range(10000) %}{% for b in range(10000) %}{% endfor %}{% endfor %}1",
        r#"{% for a in range(9000) %}{{ "x" * 1000 }}{% endfor %}"#,
        r#"{{ "x" * 5000000 }}"#,
        r#"{{ "x" * 1000000000000 }}"#,
    ] {
        refused("error", source, "is not a usable template", "");
    }
}

/// Loads in a thread with as small a stack as the process uses.
#[test]
fn deep_nesting_does_not_overflow_the_stack() {
    let nested = |open: &str, inner: &str, close: &str, times: usize| {
        format!("{}{inner}{}", open.repeat(times), close.repeat(times))
    };
    let mut sources = Vec::new();
    for times in [30, 140, 1_000, 8_000] {
        sources.extend([
            nested("{% if code %}", "1", "{% endif %}", times.min(2_000)),
            nested("{% for a in [1] %}", "1", "{% endfor %}", times.min(2_000)),
            nested("{% with %}", "1", "{% endwith %}", times.min(2_000)),
            nested("{% filter upper %}", "1", "{% endfilter %}", times.min(2_000)),
            format!("{{% if code %}}{}1{{% endif %}}", "{% elif code %}1".repeat(times.min(4_000))),
            nested("{{ ", &nested("(", "1", ")", times), " }}", 1),
            nested("{{ ", &nested("[", "1", "]", times), " }}", 1),
            nested("{{ ", &nested("{1:", "1", "}", times), " }}", 1),
            nested("{{ ", &nested("a[", "1", "]", times), " }}", 1),
            nested("{{ ", &nested("range(", "1", ")", times), " }}", 1),
            nested("{% for ", &nested("(", "a", ")", times), " in [1] %}1{% endfor %}", 1),
            nested("{% set ", &nested("(", "a", ")", times), " = 1 %}1", 1),
            format!("{{{{ {}code }}}}", "not ".repeat(times)),
            format!("{{{{ {}code }}}}", "-".repeat(times)),
            format!("{{{{ code{} }}}}", "+1".repeat(times)),
            format!("{{{{ code{} }}}}", "~1".repeat(times)),
            format!("{{{{ code{} }}}}", "|string".repeat(times)),
            format!("{{{{ code{} }}}}", ".a".repeat(times)),
            format!("{{{{ code{} }}}}", "[0]".repeat(times)),
            format!("{{{{ code{} }}}}", " if code".repeat(times)),
            format!("{{{{ code{} }}}}", " if code else 1".repeat(times)),
            format!("{{{{ code{} }}}}", " is none".repeat(times)),
            format!("{{{{ code{} }}}}", " and 1".repeat(times)),
        ]);
    }
    let read = move || {
        for source in sources {
            // Accepted or refused: either is fine, as long as the process does not crash.
            if let Err(problems) = template("error", &source).try_load() {
                assert!(!problems.rendered().is_empty());
            }
        }
    };
    std::thread::Builder::new().stack_size(2 << 20).spawn(read).unwrap().join().unwrap();
    refused("error", &"1".repeat((64 << 10) + 1), "is longer than 64 KiB", "");
}

#[test]
fn common_templates_are_accepted() {
    for source in [
        r#"{"offset": {{ (page - 1) * per_page }}}"#,
        r#"{"sum": {{ transactions|map(attribute="amount")|map(attribute="x", default=0)|sum }}}"#,
        r#"{"all": {{ transactions|map(attribute="external_id")|join(", ") }}}"#,
        r#"{"paid": {{ transactions|selectattr("status", "eq", "SUCCESS")|list|length }}}"#,
        "[{% for t in transactions|reverse %}[{{ t }}, {{ loop.cycle(1, 2) }}]{% if not loop.last %},{% endif %}{% endfor %}]",
        "[{% for t in transactions if t.type == \"payin\" %}{% if not loop.first %},{% endif %}{{ t }}{% endfor %}]",
        "[{% for t in transactions %}[{% for name, value in t|items %}{{ value }}{% if not loop.last %},{% endif %}\
         {% endfor %}]{% if not loop.last %},{% endif %}{% endfor %}]",
        r#"{"first": {{ (transactions|first).external_id if transactions else none }}}"#,
        r#"{% set kinds = {"payin": 1, "payout": 2} %}
           [{% for t in transactions %}{{ kinds[t.type] }}{% if not loop.last %},{% endif %}{% endfor %}]"#,
        r#"{% set row %}{% for t in transactions %}{{ t.external_id }},{% endfor %}{% endset %}{"row": {{ row|string|length }}}"#,
        "{\"rows\": {{ transactions }}, \"again\": {{ transactions|tojson }}}",
        "{\"some\": {{ transactions[:20] }}}",
    ] {
        accepted("transactions", source);
    }
    for source in [
        r#"{"id": {{ "%012d"|format(transaction_id|int) }}}"#,
        r#"{"id": {{ "0" * 5 ~ transaction_id }}}"#,
        r#"{"id": {{ "payin:" ~ transaction_id ~ ":" ~ external_id|upper }}}"#,
        r#"{"short": {{ external_id[:10] }}, "last": {{ external_id[-4:] }}}"#,
        r#"{% set id = transaction_id %}{% set id = id ~ "-" %}{"id": {{ id ~ id }}}"#,
        r#"{% if external_id %}{% set name = external_id %}{% else %}{% set name = "" %}{% endif %}{"name": {{ name }}}"#,
        r#"{"host": {{ (redirect_url|split("/"))[2] }}, "power": {{ 2 ** 10 }}, "float": {{ 1e308 }}}"#,
    ] {
        accepted("payin", source);
    }
}

#[test]
fn replies_with_duplicate_members_are_refused() {
    let twice = "does not render JSON: a member occurs twice";
    refused("error", r#"{"a": {{ code }}, "a": {{ code }}}"#, twice, "");
    refused("error", r#"[{"b": {"a": 1, "\u0061": 2}}]"#, twice, "");
    refused("balance", r#"{ {% for b in balances %}"x": 1, {% endfor %} "x": 2}"#, twice, "");
    let deep = format!("{}1{}", "[".repeat(33), "]".repeat(33));
    refused("error", &deep, "does not render JSON: more than 32 levels", "");
}
