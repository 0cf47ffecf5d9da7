//! Customers' pages: texts, languages and brand, and their errors.

use super::*;
use crate::pages::HtmlPage;
use crate::rules::{Language, PageState, Pages, ReadRules, TextDirection, built_in_pages, diff};

fn built_in() -> Pages {
    built_in_pages()
}

fn html(pages: &Pages, accept: &str, state: PageState) -> String {
    HtmlPage::of(state).html(pages, accept, "r").text
}

/// Returns all that customers may see, as text.
fn pages_text(pages: &Pages) -> String {
    let language = |language: &Language| {
        let Language { tag, direction, decimal, group, texts } = language;
        format!("{tag} {direction:?} {decimal:?} {group:?} {texts}\n")
    };
    let languages: String = pages.languages().iter().map(language).collect();
    format!("{languages}{}", pages.style())
}

#[test]
fn five_languages_are_built_in() {
    let tags = |pages: &Pages| pages.languages().iter().map(|language| language.tag.to_string()).collect::<Vec<_>>();
    assert_eq!(tags(&built_in()), ["en", "ar", "de", "es", "fr"]);
    assert_eq!(pages_text(&Rules::small().load().pages), pages_text(&built_in()));
}

/// Returns the path of a built-in language's file.
fn texts(tag: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("src/rules/pages/{tag}.toml"))
}

/// Every built-in language has all texts of the pages, so that it never falls back to another one.
#[test]
fn every_built_in_language_has_every_text() {
    let english = fs::read_to_string(texts("en")).unwrap();
    let keys = |text: &str| {
        let tables: toml::Table = text.parse().unwrap();
        let keys = |(table, value): (&String, &toml::Value)| match value {
            toml::Value::Table(texts) => texts.keys().map(|key| format!("{table}.{key}")).collect(),
            _ => vec![table.clone()],
        };
        tables.iter().flat_map(keys).collect::<std::collections::BTreeSet<_>>()
    };
    for language in built_in().languages() {
        let text = fs::read_to_string(texts(&language.tag)).unwrap();
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
        assert!(english.contains(&format!("[{}]", state.as_str())), "{state:?}");
    }
}

#[test]
fn texts_of_a_file_replace_the_built_in_ones() {
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
fn wrong_texts_are_reported_with_their_place() {
    let texts = |text: &str, place: &str, message: &str| {
        Rules::small().with("pages/it.toml", text).one_problem(&format!("pages/it.toml:{place}"), message);
    };
    texts("directoin = \"ltr\"", "1:1", "did you mean `direction`?");
    texts("direction = \"up\"", "1:13", "must be `ltr` or `rtl`");
    texts("[prepraring]\n", "1:2", "did you mean `preparing`?");
    texts("[preparing]\ntitel = \"x\"", "2:1", "unknown key `titel` in `preparing` (did you mean `title`?)");
    texts("[labels]\nfoo = \"x\"", "2:1", "known keys: amount, merchant, ");
    texts("labels = 1", "1:10", "`labels` must be a table");
    texts("decimal = \"\"", "1:11", "must not be empty");
    texts("decimal = \"1\"", "1:11", "`decimal` must be at most 4 characters without letters");
    texts("group = \"\\u200B\"", "1:9", "`group` must be at most 4 characters");
    texts("group = \".....\"", "1:9", "`group` must be at most 4 characters");
    for text in ["", "  ", "a\\nb", "a\\tb", "a\\u202Eb", "\\u200Ba", "\\uFEFFa", "a\\u0085"] {
        texts(&format!("[busy]\ntitle = \"{text}\""), "2:9", "`busy.title` must be 1 to 500 readable characters");
    }
    texts("[busy]\ntext = \"a\\r\\nb\"", "2:8", "no control characters other than line breaks");
    texts(
        &format!("[busy]\nhint = \"{}\"", "é".repeat(501)),
        "2:8",
        "`busy.hint` must be 1 to 500 readable characters",
    );
    let long = format!("[busy]\nhint = \"{}\"\ntext = \"a\\nb \\u200C\"", "é".repeat(500));
    Rules::small().with("pages/fa.toml", long).load();
}

#[test]
fn language_files_have_unique_tags() {
    for name in ["english", "e", "en.us", "en_US", "en-"] {
        let rules = Rules::small().with(&format!("pages/{name}.toml"), "");
        rules.one_problem(&format!("pages/{name}.toml:1:1"), "is no language tag: two or three letters");
    }
    let rules = Rules::small().with("pages/pt-BR.toml", "").with("pages/PT-br.toml", "");
    rules.one_problem("pages/pt-BR.toml:1:1", "the language `pt-BR` has two files: ");
    let rules = Rules::small().with("gateway.toml", "[pages]\nlanguage = \"it\"\n");
    rules.one_problem("gateway.toml:2:12", "`pages.language`: there is no language `it` (");
    let rules = rules.with("pages/it.toml", b"\xff");
    rules.one_problem("pages/it.toml:1:1", "is not UTF-8");
    let rules = Rules::small().with("pages/README.md", "x").with("pages/other.html", "{{").with("pages/.en.toml", "x");
    assert_eq!(pages_text(&rules.load().pages), pages_text(&built_in()), "files with other names are ignored");
}

fn brand(pages: &str) -> Rules {
    Rules::small().with("gateway.toml", format!("[pages]\n{pages}\n"))
}

#[test]
fn the_header_shows_the_brand() {
    let page = |rules: &Rules| html(&rules.load().pages, "en", PageState::Busy);
    assert!(!page(&Rules::small()).contains("<header>"));
    let named = page(&brand("name = \"A & <B>\""));
    assert!(named.contains("<header><bdi>A &amp; &lt;B&gt;</bdi></header>"), "{named}");
    for (logo, kind) in [(&b"<?xml version='1.0'?><svg/>"[..], "svg+xml"), (b"\x89PNG\r\n\x1a\n...", "png")] {
        let rules = brand("logo = \"logo\"").with("logo", logo);
        let start = format!("<header><img src=\"data:image/{kind};base64,");
        assert!(page(&rules).contains(&start), "{kind}");
    }
    let both = brand("name = \"Ours\"\nlogo = \"l.svg\"").with("l.svg", "<svg/>");
    assert!(page(&both).contains("\" alt=\"\"><bdi>Ours</bdi></header>"));
    let logo = |bytes: Vec<u8>| brand("logo = \"logo.png\"").with("logo.png", bytes);
    let largest = [&b"<svg>"[..], &vec![b' '; (64 << 10) - 5]].concat();
    logo(largest.clone()).load();
    logo([&largest[..], b" "].concat()).one_problem("gateway.toml:2:8", "`pages.logo`: ");
    logo(b"GIF89a".to_vec()).one_problem("gateway.toml:2:8", "is neither SVG nor PNG");
    brand("logo = \"none.svg\"").one_problem("gateway.toml:2:8", "cannot be read");
    for name in ["", " ", "a\\nb", "a\\u202Eb"] {
        brand(&format!("name = \"{name}\""))
            .one_problem("gateway.toml:2:8", "`pages.name` must be 1 to 100 readable characters");
    }
}

#[test]
fn the_accent_colour_has_enough_contrast() {
    let pages = brand("color = \"#0B5fff\"").load().pages;
    assert!(pages.style().contains("--main: #0b5fff;"), "{}", pages.style());
    assert!(html(&pages, "en", PageState::Busy).contains(&format!("<style>{}</style>", pages.style())));
    assert_ne!(pages.style_source(), built_in().style_source());
    for wrong in ["", "blue", "#06f", "#0b5fff00", "0b5fff", "#0b5ffg"] {
        brand(&format!("color = \"{wrong}\"")).one_problem("gateway.toml:2:9", "`pages.color` must be `#` and six");
    }
    for light in ["#ffffff", "#ffcc00", "#777777"] {
        brand(&format!("color = \"{light}\"")).one_problem("gateway.toml:2:9", "needs 4.5 (WCAG AA)");
    }
    brand("color = \"#000000\"").load();
}

#[test]
fn merchants_and_shops_have_display_names() {
    let name = |name: &str| Rules::small().with("shops/s.toml", format!("name = \"{name}\"\n{SHOP}"));
    assert_eq!(&*Rules::small().load().shops["s"].name, "s");
    assert_eq!(&*name("Karten <EUR> \u{5d0}").load().shops["s"].name, "Karten <EUR> \u{5d0}");
    name(&"é".repeat(100)).load();
    for wrong in ["", " ", "a\\nb", "a\\u202Eb", &"é".repeat(101)] {
        let reported = "`name` must be 1 to 100 readable characters";
        name(wrong).one_problem("shops/s.toml:1:8", reported);
        let merchant = format!("name = \"{wrong}\"\n");
        Rules::small().with("merchants/m.toml", merchant).one_problem("merchants/m.toml:1:8", reported);
    }
}

#[test]
fn separators_of_amounts_must_differ() {
    let reported = "`decimal` and `group` must differ";
    Rules::small().with("pages/en.toml", "decimal = \",\"").one_problem("pages/en.toml:1:1", reported);
    Rules::small().with("pages/it.toml", "decimal = \",\"").one_problem("pages/it.toml:1:1", reported);
    Rules::small().with("pages/it.toml", "decimal = \",\"\ngroup = \"\"").load();
}

#[test]
fn changes_of_pages_are_reported() {
    let old = Rules::small().with("pages/it.toml", "").with("pages/en.toml", "[busy]\ntitle = \"One\"\n");
    let new =
        Rules::small().with("pages/pt-br.toml", "").with("pages/en.toml", "decimal = \"·\"\n[busy]\ntitle = \"Two\"\n");
    let read = |rules: &Rules| ReadRules::read(&rules.path(), UnixMillis(0)).unwrap_or_else(|why| panic!("{why}"));
    let (old, new) = (read(&old), read(&new));
    let reported: Vec<String> = diff(&old, &new)
        .iter()
        .flat_map(|group| &group.changes)
        .map(|change| format!("{:?} {} {:?} {}", change.effect, change.file, change.key, change.what))
        .collect();
    assert_eq!(
        reported,
        [
            "TakesAway pages/it.toml \"\" language it is removed: customers who prefer it get en",
            "Allows pages/pt-BR.toml \"\" language pt-BR is added: customers who prefer it no longer get en",
            "Neither pages/en.toml \"\" language en: busy.title and decimal changed",
        ]
    );
    assert!(diff(&new, &new).is_empty());
    let built_in = read(&Rules::small());
    let written = Rules::small().with("pages/en.toml", fs::read(texts("en")).unwrap());
    assert!(diff(&built_in, &read(&written)).is_empty(), "a file with the built-in values changes nothing");
}
