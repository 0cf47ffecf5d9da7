//! Reply templates that are made to cost: refused before they run, or bounded when they do.

use super::*;

/// A template of a reply, as a dialect's file has it.
fn template(reply: &str, source: &str) -> Rules {
    assert!(!source.contains("'''"));
    Rules::small().with("dialects/d.toml", format!("[replies]\n{reply} = '''\n{source}'''"))
}

#[track_caller]
fn taken(reply: &str, source: &str) {
    let result = template(reply, source).try_load();
    assert!(result.is_ok(), "{reply} = {source}: {}", result.unwrap_err());
}

/// Expects one problem of the template, at this text in it.
#[track_caller]
fn refused(reply: &str, source: &str, reason: &str, at: &str) {
    let problems = template(reply, source).refused();
    let problem = problems.iter().next().unwrap();
    let message = problem.message();
    let short = source.get(..200).unwrap_or(source);
    assert!(problems.count() == 1 && message.contains(reason), "{short}: {problems}");
    let line = source.lines().nth(problem.line().saturating_sub(3)).unwrap_or_default();
    let found: String = line.chars().skip(problem.column() - 1).collect();
    assert!(found.starts_with(at), "{short}: {message} at {found}");
}

const TOO_MUCH: &str = "asks for too much";

#[test]
fn what_multiplies_is_refused_where_it_does() {
    let doubled = format!("{{% set a = message %}}\n{}1", "{% set a = a ~ a %}\n".repeat(40));
    let with = (0..30).fold("1".to_owned(), |inner, _| format!("{{% with a = a ~ a %}}{inner}{{% endwith %}}"));
    let with = format!("{{% set a = message %}}{with}");
    let lists = format!("{{% set a = [message] %}}\n{}1", "{% set a = [a, a, a, a] %}\n".repeat(20));
    let captured = format!("{{% set a = message %}}{}1", "{% set a %}{{ a }}{{ a }}{% endset %}".repeat(30));
    let replaced = format!("{{% set a = message %}}{}1", "{% set a = a|replace(\"\", a) %}".repeat(4));
    let escaped = format!("{{{{ message{} }}}}", "|tojson|string".repeat(12));
    let filtered = format!("{}x{}1", "{% filter tojson %}".repeat(12), "{% endfilter %}".repeat(12));
    for (source, at) in [
        (doubled.as_str(), "a ~"),
        (&with, ""),
        (&lists, ""),
        (&captured, ""),
        (&replaced, ""),
        (&escaped, ""),
        (&filtered, ""),
        (r#"{{ "x" * 1000000000 }}"#, r#""x" * 1000000000"#),
        (r#"{{ 100000000 * "x" }}"#, "100000000 *"),
        (r#"{{ ["x"] * 100000000 }}"#, "[\"x\"] * "),
        (r#"{{ (message * 1000)|replace("", message * 1000) }}"#, ""),
        (r#"{{ range(100000)|join("x" * 1000) }}"#, ""),
        ("{% for a in range(10000) %}{% for b in range(10000) %}{% endfor %}{% endfor %}1", "range(10000) %}{% endfor"),
        ("{% for a in message %}{% for b in message %}{% for c in message %}{% endfor %}{% endfor %}{% endfor %}1", ""),
        (r#"{% for a in range(90000) %}{{ "x" * 1000 }}{% endfor %}"#, ""),
    ] {
        refused("error", source, TOO_MUCH, at.get(..3).unwrap_or(at));
    }
    let pages = "{% for t in transactions %}{% for u in transactions %}{{ transactions }}{% endfor %}{% endfor %}1";
    refused("transactions", pages, TOO_MUCH, "");
}

#[test]
fn what_nothing_bounds_is_refused_by_name() {
    for (source, reason, at) in [
        ("{{ message * code }}", "multiplies what may be a text", "message * code"),
        ("{{ message * (\"9\" ~ \"9\")|int }}", "multiplies what may be a text", "message *"),
        ("{{ message|indent(1000000000) }}", "unknown filter `indent`; replies have abs, attr, ", "indent"),
        ("{{ [1]|batch(1000000000, \"x\") }}", "unknown filter `batch`", "batch"),
        ("{{ message|pprint }}", "unknown filter `pprint`", "pprint"),
        ("{{ [message]|map(\"indent\", 9999999)|list }}", "a `map` without `attribute=`", "map"),
        ("{{ message|tojson(indent=99999999) }}", "a `tojson` with an indent", "tojson"),
        ("{{ [[]]|sum(start=[]) }}", "a `sum` that starts with", "sum"),
        ("{{ \"%1000000000d\"|format(1) }}", "a `format` whose pattern", "format(1)"),
        ("{{ \"%*d\"|format(999999999, 1) }}", "a `format` whose pattern", "format(999"),
        ("{{ message|format(1) }}", "a `format` whose pattern", "format"),
        ("{{ message[::-9223372036854775808] }}", "a slice with a step", "-922"),
        ("{% set n = namespace() %}1", "calls something else than `range(…)`", "namespace()"),
        ("{{ dict(a=1) }}", "calls something else", "dict(a=1)"),
        ("{{ debug() }}", "calls something else", "debug()"),
        ("{{ range(0, 9, 1) }}", "calls something else", "range(0"),
        ("{{ message.upper() }}", "calls something else", ".upper()"),
        ("{{ range(*[1]) }}", "has `*` before an argument", "[1]"),
        ("{% for a in [1] recursive %}{{ loop([a]) }}{% endfor %}1", "a `recursive` loop", ""),
        ("{% set a.b = 1 %}1", "sets something else than a name", "b"),
        ("{% do range(3) %}1", "a `{% do %}`", ""),
    ] {
        refused("error", source, reason, at);
    }
    let problems = template("error", "{{ message|uper }}").refused();
    assert_eq!(problems.iter().next().unwrap().suggestion(), Some("did you mean `upper`?"));
}

/// Read in a thread with as little stack as the process gives its own.
#[test]
fn what_is_nested_deep_does_not_go_over_the_stack() {
    let nested = |open: &str, inner: &str, close: &str, times: usize| {
        format!("{}{inner}{}", open.repeat(times), close.repeat(times))
    };
    let mut sources = Vec::new();
    for times in [30, 60, 95, 140, 1_000, 8_000] {
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
            format!("{{% set a = [1] %}}{}{{{{ a }}}}", "{% set a = [a] %}".repeat(times.min(3_000))),
            format!("{{% set a = [1] %}}{}{{{{ a }}}}", "{% set a = a[0:] %}".repeat(times.min(3_000))),
            format!("{{% set a = [1] %}}{}{{{{ a }}}}", "{% set a = a|reverse %}".repeat(times.min(2_000))),
            format!("{{% set a = [1] %}}{}{{{{ a }}}}", "{% set a = a + a[0:0] %}".repeat(times.min(2_000))),
        ]);
    }
    // Blocks, branches and operators, all at their limits.
    let branches = "{% elif code %}1".repeat(63);
    for operators in ["+1", "|string", "~1", "[0]", " if code", " and 1", ".a", " is none"].map(|one| one.repeat(95)) {
        for (open, close) in [("{% if code %}", "{% endif %}"), ("{% filter upper %}", "{% endfilter %}")] {
            let innermost = format!("{{% if code %}}{branches}{{% elif code{operators} %}}1{{% endif %}}");
            sources.push(nested(open, &innermost, close, 31));
        }
    }
    let read = move || {
        for source in sources {
            // Whether it is taken is not the matter.
            if let Err(problems) = template("error", &source).try_load() {
                assert!(!problems.rendered().is_empty());
            }
        }
    };
    std::thread::Builder::new().stack_size(2 << 20).spawn(read).unwrap().join().unwrap();
    refused("error", &format!("{{{{ code{} }}}}", "+1".repeat(101)), "more than 100 operators", "+1");
    let branches = format!("{{% if code %}}{}1{{% endif %}}", "{% elif code %}1".repeat(65));
    refused("error", &branches, "more than 64 `elif`", "%}11{% endif");
    let lists = format!("{{% set a = [1] %}}{}1", "{% set a = [a] %}".repeat(40));
    refused("error", &lists, "values deeper in each other than 32", "[a]");
    let blocks = nested("{% if code %}", "1", "{% endif %}", 33);
    refused("error", &blocks, "more than 32 blocks in each other", "%}1{% endif");
    refused("error", &"1".repeat((64 << 10) + 1), "is longer than 64 KiB", "1");
}

#[test]
fn what_replies_need_is_taken() {
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
        taken("transactions", source);
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
        taken("payin", source);
    }
}

#[test]
fn replies_that_say_a_member_twice_are_refused() {
    let twice = "does not render JSON: a member is there twice";
    refused("error", r#"{"a": {{ code }}, "a": {{ code }}}"#, twice, "");
    refused("error", r#"[{"b": {"a": 1, "\u0061": 2}}]"#, twice, "");
    refused("balance", r#"{ {% for b in balances %}"x": 1, {% endfor %} "x": 2}"#, twice, "");
    let deep = format!("{}1{}", "[".repeat(33), "]".repeat(33));
    refused("error", &deep, "does not render JSON: more than 32 levels", "");
}
