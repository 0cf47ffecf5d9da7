//! Customers' pages: what they are made of, what is refused, and what a reload makes of it.

use std::sync::Arc;

use super::*;
use crate::clock::ManualClock;
use crate::rules::{
    Language, LiveRules, PageState, PageValues, Pages, ReadRules, ReloadOutcome, TextDirection, built_in_pages, diff,
};

const TEMPLATE: &str = include_str!("../../../rules/pages/page.html");
const STYLE: &str = include_str!("../../../rules/pages/style.css");

fn shipped() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("rules")
}

fn built_in() -> Arc<Pages> {
    built_in_pages().unwrap()
}

fn values(state: PageState) -> PageValues<'static> {
    PageValues {
        state,
        payment: None,
        instructions: None,
        return_url: None,
        action: None,
        here: None,
        refresh: None,
        request_id: "r",
    }
}

fn html(pages: &Pages, accept: &str, state: PageState) -> String {
    pages.render(pages.language(accept), &values(state)).unwrap()
}

/// All that customers may meet.
fn meaning(pages: &Pages) -> String {
    let language = |language: &Language| {
        let Language { tag, direction, decimal, group, texts } = language;
        format!("{tag} {direction:?} {decimal:?} {group:?} {texts}\n")
    };
    let languages: String = pages.languages().iter().map(language).collect();
    format!("{languages}{}{}", pages.style(), pages.template().unwrap().source())
}

#[test]
fn what_is_shipped_is_what_is_built_in() {
    let options = LoadOptions { check_secrets: false };
    let rules = load(&shipped(), UnixMillis(0), None, options).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(meaning(&rules.pages), meaning(&built_in()));
    assert!(Arc::ptr_eq(&Rules::bare().load().pages, &built_in()));
    let tags = |pages: &Pages| pages.languages().iter().map(|language| language.tag.to_string()).collect::<Vec<_>>();
    let mut files: Vec<String> = fs::read_dir(shipped().join("pages"))
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.strip_suffix(".toml").map(str::to_owned))
        .collect();
    let mut built_in = tags(&built_in());
    assert_eq!(built_in[0], "en");
    files.sort();
    built_in.sort();
    assert_eq!(built_in, files, "each shipped language is built in");
}

/// Nothing is missing that a page may show, and no language falls back on another one.
#[test]
fn every_shipped_language_has_every_text() {
    let english = fs::read_to_string(shipped().join("pages/en.toml")).unwrap();
    let keys = |text: &str| {
        let tables: toml::Table = text.parse().unwrap();
        let keys = |(table, value): (&String, &toml::Value)| match value {
            toml::Value::Table(texts) => texts.keys().map(|key| format!("{table}.{key}")).collect(),
            _ => vec![table.clone()],
        };
        tables.iter().flat_map(keys).collect::<std::collections::BTreeSet<_>>()
    };
    for language in built_in().languages() {
        let text = fs::read_to_string(shipped().join(format!("pages/{}.toml", language.tag))).unwrap();
        assert_eq!(keys(&text), keys(&english), "{}", language.tag);
        for (table, texts) in language.texts.as_object().unwrap() {
            for (key, text) in texts.as_object().unwrap() {
                let is_there = text.as_str().is_some_and(|text| !text.is_empty());
                assert!(is_there || key == "hint", "{} {table}.{key}", language.tag);
            }
        }
        assert!(!language.decimal.is_empty());
    }
    for state in PageState::ALL {
        let name = serde_json::to_value(state).unwrap();
        assert!(english.contains(&format!("[{}]", name.as_str().unwrap())), "{name}");
    }
}

/// The built-in template is not tried when rules are read: here it is, with a change that means nothing.
#[test]
fn the_built_in_template_is_good() {
    let rules = Rules::small().with("pages/page.html", format!("{TEMPLATE}{{# #}}")).with("pages/style.css", STYLE);
    assert_eq!(rules.warnings(), [""; 0]);
    assert_eq!(Rules::small().with("pages/page.html", example()).warnings(), [""; 0], "the README's");
}

#[test]
fn a_file_of_texts_says_what_is_other() {
    let rules = Rules::small()
        .with("pages/en.toml", "[preparing]\ntitle = \"Just a <second>\"\nhint = \"One\\ntwo\"\n")
        .with("pages/IT-ch.toml", "direction = \"rtl\"\ngroup = \"\"\n[actions]\nreturn = \"Indietro\"\n")
        .with("pages/en-GB.toml", "[labels]\norder = \"Your order\"\n");
    let pages = rules.load().pages;
    let english = html(&pages, "en", PageState::Preparing);
    assert!(english.contains("Just a &lt;second&gt;") && english.contains("lang=\"en\""), "{english}");
    let language = |accept: &str| pages.language(accept);
    assert_eq!(language("en").texts["preparing"]["hint"], "One\ntwo");
    assert_eq!(language("en").texts["stopped"], built_in().language("en").texts["stopped"]);
    let italian = language("it");
    assert_eq!(
        (&*italian.tag, italian.direction, &*italian.group, &*italian.decimal),
        ("it-CH", TextDirection::Rtl, "", ".")
    );
    assert_eq!(italian.texts["actions"]["return"], "Indietro");
    assert_eq!(italian.texts["preparing"]["title"], built_in().language("en").texts["preparing"]["title"]);
    assert_eq!(language("en-GB").texts["labels"]["order"], "Your order");
    assert_eq!(&*language("xx").tag, "en");
    rules.put("gateway.toml", "[pages]\nlanguage = \"it-ch\"\n");
    let loaded = rules.load();
    assert_eq!((&*loaded.gateway.pages.language, &*loaded.pages.language("xx").tag), ("it-CH", "it-CH"));
}

#[test]
fn what_is_wrong_with_texts_is_told_in_its_place() {
    let texts = |text: &str, place: &str, message: &str| {
        Rules::small().with("pages/it.toml", text).one_problem(&format!("pages/it.toml:{place}"), message);
    };
    texts("directoin = \"ltr\"", "1:1", "did you mean `direction`?");
    texts("direction = \"up\"", "1:13", "must be `ltr` or `rtl`");
    texts("[prepraring]\n", "1:2", "did you mean `preparing`?");
    texts("[preparing]\ntitel = \"x\"", "2:1", "unknown key `titel` in `preparing` (did you mean `title`?)");
    texts("[labels]\nfoo = \"x\"", "2:1", "known here: merchant, amount, ");
    texts("labels = 1", "1:10", "`labels` must be a table");
    texts("decimal = \"\"", "1:11", "must not be empty");
    texts("decimal = \"1\"", "1:11", "`decimal` must be at most 4 characters without letters");
    texts("group = \"\\u200B\"", "1:9", "`group` must be at most 4 characters");
    texts("group = \".....\"", "1:9", "`group` must be at most 4 characters");
    for text in ["", "  ", "a\\nb", "a\\tb", "a\\u202Eb", "\\u200Ba", "\\uFEFFa", "a\\u0085"] {
        texts(
            &format!("[busy]\ntitle = \"{text}\""),
            "2:9",
            "`busy.title` must be 1 to 500 characters that can be read",
        );
    }
    texts("[busy]\ntext = \"a\\r\\nb\"", "2:8", "no control characters other than line breaks");
    texts(&format!("[busy]\nhint = \"{}\"", "é".repeat(501)), "2:8", "`busy.hint` must be 1 to 500 characters");
    let long = format!("[busy]\nhint = \"{}\"\ntext = \"a\\nb \\u200C\"", "é".repeat(500));
    Rules::small().with("pages/fa.toml", long).load();
}

#[test]
fn names_of_languages_are_tags_and_each_is_there_once() {
    for name in ["english", "e", "en.us", "en_US", "en-"] {
        let rules = Rules::small().with(&format!("pages/{name}.toml"), "");
        rules.one_problem(&format!("pages/{name}.toml:1:1"), "is no language tag: two or three letters");
    }
    let rules = Rules::small().with("pages/pt-BR.toml", "").with("pages/PT-br.toml", "");
    rules.one_problem("pages/pt-BR.toml:1:1", "the language `pt-BR` is there twice: ");
    let many = Rules::small();
    for n in 0..=64 {
        many.put(&format!("pages/en-{n}.toml"), "");
    }
    let problems = many.problems();
    assert!(problems.len() == 1 && problems[0].ends_with("there are more than 64 languages"), "{problems:?}");
    let rules = Rules::small().with("gateway.toml", "[pages]\nlanguage = \"it\"\n");
    rules.one_problem("gateway.toml:2:12", "`pages.language`: there is no language `it` (");
    let rules = rules.with("pages/it.toml", b"\xff");
    rules.one_problem("pages/it.toml:1:1", "is not UTF-8");
    let rules = Rules::small().with("pages/README.md", "x").with("pages/other.html", "{{").with("pages/.en.toml", "x");
    assert!(Arc::ptr_eq(&rules.load().pages, &built_in()), "what has another name is no page");
}

#[track_caller]
fn style(text: &str, place: &str, message: &str) {
    Rules::small().with("pages/style.css", text).one_problem(&format!("pages/style.css:{place}"), message);
}

#[test]
fn stylesheets_load_nothing_and_end_nothing() {
    style("a { }\n</STYLE>", "2:1", "it would end the element");
    style("<!-- a", "1:1", "begins a comment there");
    style("@IMPORT 'x';", "1:1", "no other stylesheet may be loaded");
    style("a { b: url(x.png) }", "1:8", "may name nothing but `data:`");
    style("a { b: URL( 'https://x' ) }", "1:8", "may name nothing but `data:`");
    style("a\0b", "1:2", "browsers read another character");
    style(&"a".repeat((32 << 10) + 1), "1:1", "larger than 32 KiB");
    let rules = Rules::small().with("pages/style.css", "\u{feff}a > b {\r\n c: url(\"data:,\") }\r");
    let pages = rules.load().pages;
    assert_eq!(pages.style(), "a > b {\n c: url(\"data:,\") }\n", "as browsers read it");
    assert!(html(&pages, "en", PageState::Busy).contains("<style>a > b {\n c: url(\"data:,\") }\n</style>"));
    assert_ne!(pages.style_source(), built_in().style_source());
    let largest = "a".repeat(32 << 10);
    assert_eq!(Rules::small().with("pages/style.css", &largest).load().pages.style(), largest);
    Rules::small().with("pages/style.css", "").load();
}

/// The template that the README shows.
fn example() -> &'static str {
    let (_, example) = include_str!("../../../rules/README.md").split_once("```html\n").unwrap();
    example.split("```").next().unwrap()
}

/// It with something in place of something else.
fn changed(from: &str, to: &str) -> String {
    assert!(example().contains(from), "{from}");
    example().replacen(from, to, 1)
}

fn template(from: &str, to: &str) -> Rules {
    Rules::small().with("pages/page.html", changed(from, to))
}

/// Where a text stands first in a template: `line:column`.
fn place(source: &str, text: &str) -> String {
    let (before, _) = source.split_once(text).unwrap();
    let line = before.matches('\n').count() + 1;
    format!("{line}:{}", before.rsplit('\n').next().unwrap().chars().count() + 1)
}

/// Expects one problem of the README's template with something in place of something else, at this text in it; without one,
/// at its start.
fn mismatch((from, to, at, message): &(&str, &str, &str, &str)) -> Option<String> {
    let start = format!("pages/page.html:{}: ", place(&changed(from, to), at));
    let problems = template(from, to).problems();
    let fits = problems.len() == 1 && problems[0].starts_with(&start) && problems[0].contains(message);
    (!fits).then(|| format!("{to}: {start}{message} expected: {problems:#?}"))
}

#[track_caller]
fn refused(cases: &[(&str, &str, &str, &str)]) {
    let mismatches: Vec<String> = cases.iter().filter_map(mismatch).collect();
    assert!(mismatches.is_empty(), "{}", mismatches.join("\n"));
}

#[test]
fn templates_that_cannot_be_rendered_are_refused_in_their_place() {
    let filters = ["e", "escape", "tojson"].map(|filter| format!("<main>{{{{ 1|{filter} }}}}!"));
    let large = format!("<main><!-- {} -->", "x".repeat(64 << 10));
    let twice = "<main>{% for a in range(90000) %}{{ lang }}{% endfor %}";
    let always = "in pages, values are always written as text, so that nothing that anybody sent becomes markup";
    refused(&[
        ("<main>", "<main>{{ paymnt }}", "paymnt", "`paymnt` is undefined (did you mean `payment`?)"),
        ("<main>", "<main>{{ text.labels.ammount }}", ".labels.ammount", "is undefined (did you mean `amount`?)"),
        ("<main>", "<main>{{ text.busy.titl }}", ".busy.titl", "is undefined (did you mean `title`?)"),
        (
            "<main>",
            "<main>{% if refresh or 1 %}{{ payment.merchant }}{% endif %}",
            "payment.merchant }}{% endif",
            "`payment.merchant` is undefined (it is none on some pages: ask first, as in `{% if payment %}`)",
        ),
        ("<main>", "<main>{% if state == 'busy' %}{{ xyz }}{% endif %}", "xyz", "undefined"),
        ("<main>", "<main>{% if lang == 'en' %}{{ xyz }}{% endif %}", "xyz", "undefined"),
        ("<main>", "<main>{% if text[state].hint is none %}{{ xyz }}{% endif %}", "xyz", "undefined"),
        ("<main>", "<main>{{ request_id|safe }}", "safe", always),
        ("<main>", &filters[0], "e }}!", always),
        ("<main>", &filters[1], "escape", always),
        ("<main>", &filters[2], "tojson", always),
        ("<main>", "<main>{{ 1|nosuch }}", "nosuch", "unknown filter `nosuch`; pages have abs, attr"),
        ("<main>", "<main>{% autoescape false %}{% endautoescape %}", "autoescape", always),
        ("<main>", "<main>{% set a %}b{% endset %}", "set a", always),
        ("<main>", "<main>{% filter upper %}b{% endfilter %}", "filter upper", always),
        (
            "<main>",
            "<main>{{ 'x' * 99999999 }}",
            "'x' * 9",
            "asks for too much: for the largest page this comes to more",
        ),
        ("<main>", twice, "{{ lang }}{% endfor", "asks for too much"),
        ("<main>", &large, "", "is longer than 64 KiB"),
    ]);
    for unfinished in
        ["{{ request_id", "{% if state %}", "{% include 'x' %}", "{{ debug() }}", "{{ request_id|upper( }}"]
    {
        let problems = template("<main>", &format!("<main>{unfinished}")).problems();
        assert!(problems.len() == 1 && !problems[0].starts_with("pages/page.html:1:1:"), "{unfinished}: {problems:?}");
    }
}

#[test]
fn templates_whose_pages_cannot_serve_are_refused_in_their_place() {
    refused(&[
        ("<!doctype html>", "", "", "must begin with `<!doctype html>`"),
        ("<!doctype html>", "\n<!doctype html>", "", "must begin with `<!doctype html>`"),
        ("lang=\"{{ lang }}\"", "lang=\"en\"", "<html", "must have `<html lang=\"{{ lang }}\">`"),
        ("href=\"{{ return_url }}\"", "href=\"{{ here }}\"", "", "must have a link `<a href=\"{{ return_url }}\">`"),
        ("method=\"post\"", "method=\"get\"", "<form", "must have `<form method=\"post\" action=\"{{ action }}\">`"),
        ("value=\"pay\"", "value=\"Pay\"", "<form", "`<button name=\"decision\" value=\"pay\">` in the form"),
        ("value=\"decline\"", "", "<form", "value=\"decline\">` in the form"),
        ("<style>", "<style>a { }", "<style", "must have the stylesheet unchanged"),
        ("{{ style }}", "{{ style|trim|upper }}", "<style", "must have the stylesheet unchanged"),
        ("<style>{{ style }}</style>", "", "", "must have `<style>{{ style }}</style>`"),
        ("</head>", "<style>a { }</style></head>", "<style", "one `<style>` alone"),
        ("<main>", "<main><SCRIPT>x</SCRIPT>", "<SCRIPT", "must not have `<script>`"),
        ("<main>", "<main><iframe></iframe>", "<iframe", "must not have `<iframe>`"),
        ("<main>", "<main OnClick='x'>", "OnClick", "must not have the attribute `onclick`"),
        ("<main>", "<main style='x'>", "style", "must not have the attribute `style`"),
        ("<main>", "<main><a href=' JavaScript:x'>", "JavaScript", "must not have `javascript:` in the attribute"),
        ("<main>", "<main><img src='/x.png'>", "/x.png", "may load nothing but `data:` URLs"),
        ("<main>", "<main><link rel=x href='/x.css'>", "/x.css", "may load nothing but `data:` URLs"),
        ("<main>", "<main><a href='https://x.example/a'>x</a>", "https://x.example/a", "another origin would learn"),
        ("<main>", "<main><a href='//x.example/a'>x</a>", "//x.example/a", "another origin would learn"),
        ("<main>", "<main><a href='/help'>x</a>", "/help", "another origin would learn"),
        ("<main>", "<main><a href='/\\x.example/a'>x</a>", "/\\x.example/a", "another origin would learn"),
        (
            "<main>",
            "<main><a href='ht&#9;tps://x.example/a'>x</a>",
            "ht&#9;tps://x.example/a",
            "another origin would learn",
        ),
        (
            "</head>",
            "<meta http-equiv='Refresh' content='0; url=https://x.example/'></head>",
            "http-equiv",
            "may have no `http-equiv=\"refresh\"` but the one of `{{ refresh }}`",
        ),
        ("<main>", "<main><p title={{ request_id }}>", "={{ request_id }}>", "without quotes around it"),
        ("<main>", "<main><p title=\"{{ request_id }}\" {{ request_id }}>", "", "without quotes around it"),
    ]);
}

/// A stylesheet and instructions are longer than what replies hold.
#[test]
fn long_values_weigh_what_they_are() {
    let source = changed("<main>", "<main>{% for a in range(300) %}{{ style }}{% endfor %}");
    let rules = Rules::small().with("pages/style.css", "a".repeat(32 << 10)).with("pages/page.html", &source);
    rules.one_problem(&format!("pages/page.html:{}", place(&source, "{{ style }}{% endfor")), "asks for too much");
    rules.put("pages/style.css", "a { }");
    rules.load();
}

#[test]
fn values_that_are_never_there_are_warned_of() {
    assert_eq!(template("<main>", "<main>{{ 'x'|default('y') }}").warnings(), [""; 0]);
    let added = "<main>{% if paymnt is defined %}x{% endif %}";
    let warnings = template("<main>", added).warnings();
    let start = format!("pages/page.html:{}: ", place(&changed("<main>", added), "paymnt"));
    assert!(warnings.len() == 1 && warnings[0].starts_with(&start), "{warnings:?}");
    assert!(warnings[0].contains("reads `paymnt`, which is never defined (did you mean `payment`?)"), "{warnings:?}");
}

#[test]
fn what_templates_may_do() {
    for added in [
        "<main><a href='mailto:help@shop.example'>x</a><img src='data:image/png;base64,'><a href='{{ here or '#' }}'>x</a>",
        "<main>{% for d in (instructions.details if instructions else []) %}{{ d.value|replace(' ', '') }}{% endfor %}",
        "<main>{% set a = request_id|upper %}{{ a }}{% with b = a ~ a %}{{ b|length }}{% endwith %}",
        "<main><!-- <script> --><textarea><b onclick=1></textarea>{{ state|title }}",
        "<main>{{ text }}{{ payment }}{{ instructions }}",
    ] {
        let rules = template("<main>", added);
        assert_eq!(rules.warnings(), [""; 0], "{added}");
    }
    let rules = Rules::small().with("pages/page.html", format!("\u{feff}{}", example().replace('\n', "\r\n")));
    assert!(html(&rules.load().pages, "en", PageState::Busy).starts_with("<!doctype html>"));
    let source = changed("<main>", "<main>{{ x }}");
    let rules = Rules::small().with("pages/page.html", format!("\u{feff}{source}"));
    rules.one_problem(&format!("pages/page.html:{}", place(&source, "x }}")), "`x` is undefined");
}

#[test]
fn only_changed_pages_are_made_anew() {
    let rules = Rules::small().with("pages/en.toml", "[busy]\ntitle = \"One\"\n").with("pages/style.css", "a { }");
    let (mut loader, first) = rules.loader();
    let mut pages = Arc::clone(&first.pages);
    for (name, text, anew) in [
        ("merchants/m.toml", format!("name = \"M\"\n{MERCHANT}"), false),
        ("gateway.toml", "[limits]\nbody = 700\n".to_owned(), false),
        ("pages/README.md", "x".to_owned(), false),
        ("gateway.toml", "[pages]\nlanguage = \"en\"\n".to_owned(), false),
        ("pages/en.toml", "[busy]\ntitle = \"Two\"\n".to_owned(), true),
        ("pages/style.css", "b { }".to_owned(), true),
        ("pages/it.toml", "# it\n".to_owned(), true),
        ("gateway.toml", "[pages]\nlanguage = \"it\"\n".to_owned(), true),
        ("pages/page.html", changed("<main>", "<main id=\"m\">"), true),
    ] {
        rules.put(name, text);
        let set = loader.load(UnixMillis(i64::MAX), None).unwrap_or_else(|problems| panic!("{name}: {problems}"));
        assert_eq!(!Arc::ptr_eq(&set.pages, &pages), anew, "{name}");
        pages = set.pages;
        assert_eq!(meaning(&pages), meaning(&rules.load().pages), "{name}");
    }
    assert!(html(&pages, "en", PageState::Busy).contains("Two</h1>"));
    assert!(html(&pages, "", PageState::Busy).contains("<main id=\"m\">"));
}

#[test]
fn broken_pages_keep_the_old_ones() {
    let rules = Rules::small().with("pages/en.toml", "[busy]\ntitle = \"One\"\n").with("pages/page.html", TEMPLATE);
    let (loader, first) = rules.loader();
    let live = LiveRules::new(loader, first, Arc::new(ManualClock::at(UnixMillis(7))));
    let heading = || html(&live.current().pages, "en", PageState::Busy).contains("Two</h1>");
    assert!(!heading());
    rules.put("pages/en.toml", "[busy]\ntitle = \"Two\"\n");
    assert!(matches!(live.reload(), ReloadOutcome::Loaded { .. }) && heading());
    for (name, wrong) in [
        ("pages/page.html", changed("{{ style }}", "")),
        ("pages/page.html", String::new()),
        ("pages/style.css", "@import".to_owned()),
        ("pages/en.toml", "[busy]\ntitle = 1\n".to_owned()),
        ("pages/en.toml", String::new()),
    ] {
        let good = fs::read_to_string(rules.path().join(name)).ok();
        rules.put(name, wrong);
        for _ in 0..2 {
            let ReloadOutcome::Refused(problems) = live.reload() else { panic!("{name} is wrong") };
            assert!(problems.count() >= 1 && problems.to_string().contains(name), "{problems}");
            assert!(heading(), "{name}: the old pages serve");
        }
        match good {
            Some(good) => rules.put(name, good),
            None => fs::remove_file(rules.path().join(name)).unwrap(),
        }
        assert!(matches!(live.reload(), ReloadOutcome::Loaded { .. }), "{name}");
    }
    fs::remove_dir_all(rules.path().join("pages")).unwrap();
    assert!(live.stale() && matches!(live.reload(), ReloadOutcome::Loaded { .. }));
    assert!(Arc::ptr_eq(&live.current().pages, &built_in()));
}

#[test]
fn merchants_and_shops_have_names_for_people() {
    let name = |name: &str| Rules::small().with("shops/s.toml", format!("name = \"{name}\"\n{SHOP}"));
    assert_eq!(&*Rules::small().load().shops["s"].name, "s");
    assert_eq!(&*name("Karten <EUR> \u{5d0}").load().shops["s"].name, "Karten <EUR> \u{5d0}");
    name(&"é".repeat(100)).load();
    for wrong in ["", " ", "a\\nb", "a\\u202Eb", &"é".repeat(101)] {
        let told = "`name` must be 1 to 100 characters that can be read";
        name(wrong).one_problem("shops/s.toml:1:8", told);
        let merchant = format!("name = \"{wrong}\"\n");
        Rules::small().with("merchants/m.toml", merchant).one_problem("merchants/m.toml:1:8", told);
    }
}

#[test]
fn amounts_cannot_be_read_as_others() {
    let told = "`decimal` and `group` must not be the same";
    Rules::small().with("pages/en.toml", "decimal = \",\"").one_problem("pages/en.toml:1:1", told);
    Rules::small().with("pages/it.toml", "decimal = \",\"").one_problem("pages/it.toml:1:1", told);
    Rules::small().with("pages/it.toml", "decimal = \",\"\ngroup = \"\"").load();
}

#[test]
fn changes_of_pages_are_told() {
    let old = Rules::small().with("pages/it.toml", "").with("pages/en.toml", "[busy]\ntitle = \"One\"\n");
    let new = Rules::small()
        .with("pages/page.html", changed("<main>", "<main id=\"m\">"))
        .with("pages/style.css", "a { }")
        .with("pages/pt-br.toml", "")
        .with("pages/en.toml", "decimal = \"·\"\n[busy]\ntitle = \"Two\"\n");
    let read = |rules: &Rules| ReadRules::read(&rules.path(), UnixMillis(0)).unwrap_or_else(|why| panic!("{why}"));
    let (old, new) = (read(&old), read(&new));
    let told: Vec<String> = diff(&old, &new)
        .iter()
        .flat_map(|group| &group.changes)
        .map(|change| format!("{:?} {} {:?} {}", change.effect, change.file, change.key, change.what))
        .collect();
    assert_eq!(
        told,
        [
            "TakesAway pages/it.toml \"\" language it is gone: customers who ask for it read en",
            "Allows pages/pt-BR.toml \"\" language pt-BR is new: customers who ask for it read it, and no longer en",
            "Neither pages/page.html \"\" the template is another one: all pages look as it says",
            "Neither pages/style.css \"\" the stylesheet is another one: all pages look as it says",
            "Neither pages/en.toml \"\" language en: busy.title and decimal are others now",
        ]
    );
    assert!(diff(&new, &new).is_empty());
    let built_in = read(&Rules::small());
    let written = Rules::small().with("pages/page.html", TEMPLATE).with("pages/style.css", STYLE);
    let written = written.with("pages/en.toml", fs::read(shipped().join("pages/en.toml")).unwrap());
    assert!(diff(&built_in, &read(&written)).is_empty(), "what is built in may be written down");
}
