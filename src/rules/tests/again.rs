//! Loading again: only what changed is made anew, and the outcome is that of loading everything.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::clock::{Clock, SystemClock};
use crate::rules::{Shop, given};

/// A moment at which every file was left alone for long enough, so that its stamp is trusted.
const LATER: UnixMillis = UnixMillis(4_000_000_000_000);

const SCHEMA: &str = "{\"properties\": {\"bank\": {\"x-allowed-list\": \"banks\"}, \"note\": {\"type\": \"string\"}}}";

fn shop(rest: &str) -> String {
    format!("{SHOP}{rest}")
}

fn merchant(key: &str, shops: &[&str]) -> String {
    let shops: Vec<String> = shops.iter().map(|shop| format!("[shops.{shop}]\n")).collect();
    format!(
        "[[api_keys]]\nkey = \"{key}\"\nv2_secret = \"two\"\nallowed_ips = [\"203.0.113.7\"]\nrate_limit = {{ per_second = 5 }}\n{}",
        shops.concat()
    )
}

fn several() -> Rules {
    Rules::bare()
        .with("lists/banks.txt", "alpha\nbeta\n")
        .with("lists/n/banks.txt", "gamma\n")
        .with("shops/fields.json", SCHEMA)
        .with("shops/plain.json", "{\"properties\": {}}")
        .with("shops/a.toml", shop("[payin]\nschema = \"fields.json\"\n"))
        .with("shops/b.toml", shop("[payin]\nschema = \"./fields.json\"\n[payout]\nschema = \"plain.json\"\n"))
        .with("shops/c.toml", SHOP)
        .with("dialects/d.toml", "[requests]\nempty_list_is_object = true\n")
        .with("merchants/m.toml", merchant("k", &["a", "c"]))
        .with("merchants/n.toml", merchant("l", &["b"]) + "[v1]\ndialect = \"d\"\n")
}

fn loaded(rules: &Rules) -> (Loader, RuleSet) {
    let mut loader = Loader::new(&rules.path(), LoadOptions::default());
    let first = loader.load(LATER, None).unwrap_or_else(|problems| panic!("{problems}"));
    (loader, first)
}

/// The names of what is another object in the second set.
fn made_anew(first: &RuleSet, second: &RuleSet) -> Vec<String> {
    let shop = |shop: &&Arc<Shop>| !first.shops.get(&shop.code).is_some_and(|before| Arc::ptr_eq(before, shop));
    let shops = second.shops.values().filter(shop).map(|shop| shop.code.to_string());
    let merchants = second
        .merchants
        .values()
        .filter(|merchant| !first.merchants.get(&merchant.id).is_some_and(|before| Arc::ptr_eq(before, merchant)));
    let dialects = second
        .dialects
        .values()
        .filter(|dialect| !first.dialects.get(&dialect.name).is_some_and(|before| Arc::ptr_eq(before, dialect)));
    let mut anew: Vec<String> = shops
        .chain(merchants.map(|merchant| merchant.id.to_string()))
        .chain(dialects.map(|dialect| dialect.name.to_string()))
        .collect();
    anew.sort();
    anew
}

#[test]
fn only_what_changed_is_made_anew() {
    let plain = "{\"properties\": {\"x\": {}}}";
    for (name, text, expected) in [
        ("gateway.toml", "[limits]\nbody = 700\n".to_owned(), &[][..]),
        ("merchants/m.toml", merchant("k2", &["a", "c"]), &["m"]),
        ("merchants/o.toml", merchant("o", &["c"]), &["o"]),
        (
            "shops/c.toml",
            shop("active = true\n").replace("[provider]\n", "").replace("kind", "provider.kind"),
            &["c", "m"],
        ),
        ("shops/plain.json", plain.to_owned(), &["b", "n"]),
        ("shops/fields.json", SCHEMA.replace("note", "text"), &["a", "b", "m", "n"]),
        ("shops/unused.json", "{".to_owned(), &[]),
        ("lists/banks.txt", "alpha\n".to_owned(), &["a", "b", "m", "n"]),
        ("lists/n/banks.txt", "delta\n".to_owned(), &["a", "b", "m", "n"]),
        ("lists/other.txt", "alpha\n".to_owned(), &[]),
        ("dialects/d.toml", "[requests]\nempty_list_is_object = false\n".to_owned(), &["d", "n"]),
        ("dialects/v1.toml", "[requests]\nempty_list_is_object = true\n".to_owned(), &["m", "v1"]),
    ] {
        let rules = several();
        let (mut loader, first) = loaded(&rules);
        rules.put(name, text);
        let second = loader.load(LATER, Some(&first)).unwrap_or_else(|problems| panic!("{name}: {problems}"));
        assert_eq!(made_anew(&first, &second), expected, "{name}");
        assert_ne!(first.version, second.version, "{name}");
        let third = loader.load(LATER, Some(&second)).unwrap();
        assert!(made_anew(&second, &third).is_empty(), "{name}");
        assert_eq!(second.version, third.version, "{name}");
    }
}

#[test]
fn shops_share_a_schema_of_the_same_text() {
    let rules =
        several().with("shops/copy.json", SCHEMA).with("shops/c.toml", shop("[payin]\nschema = \"copy.json\"\n"));
    let (_, first) = loaded(&rules);
    let schema = |code: &str| first.shops[code].payin.schema.as_ref().unwrap();
    assert!(Arc::ptr_eq(schema("a"), schema("b")) && Arc::ptr_eq(schema("a"), schema("c")));
}

#[test]
fn what_was_good_in_a_refused_set_is_not_made_anew_and_what_was_wrong_is_told_again() {
    let rules = several();
    let (mut loader, first) = loaded(&rules);
    rules.put("merchants/m.toml", "nmae = 1");
    for _ in 0..2 {
        assert_eq!(loader.load(LATER, Some(&first)).unwrap_err().count(), 1);
    }
    rules.put("merchants/m.toml", merchant("k", &["a", "c"]) + "# good\n");
    let second = loader.load(LATER, Some(&first)).unwrap();
    assert_eq!(made_anew(&first, &second), ["m"]);
    rules.put("merchants/o.toml", merchant("l", &["c"]));
    let problems = loader.load(LATER, Some(&second)).unwrap_err();
    assert!(problems.to_string().contains("the API key is taken"), "{problems}");
}

#[test]
fn a_thing_that_lacked_another_is_made_anew() {
    let rules = several();
    let (mut loader, first) = loaded(&rules);
    for (name, wrong) in
        [("shops/c.toml", "x"), ("shops/fields.json", "{"), ("lists/banks.txt", ""), ("dialects/d.toml", "x")]
    {
        let good = fs::read_to_string(rules.path().join(name)).unwrap();
        rules.put(name, wrong);
        assert!(loader.load(LATER, Some(&first)).is_err(), "{name}");
        fs::remove_file(rules.path().join(name)).unwrap();
        fs::create_dir(rules.path().join(name)).unwrap();
        assert!(loader.load(LATER, Some(&first)).is_err(), "{name}");
        fs::remove_dir(rules.path().join(name)).unwrap();
        rules.put(name, good);
        let second = loader.load(LATER, Some(&first)).unwrap();
        assert_eq!(meaning(&second), meaning(&first), "{name}");
    }
}

#[test]
fn what_is_kept_elsewhere_is_read_again() {
    let rules = Rules::small().with("merchants/m.toml", MERCHANT.replace("\"two\"", "\"file:../../two.key\""));
    fs::write(rules.0.path().join("two.key"), "old").unwrap();
    let (mut loader, first) = loaded(&rules);
    let secret = |rules: &RuleSet| rules.api_key("k").unwrap().api_key().v2_secrets.clone().unwrap();
    assert_eq!(secret(&first).signing().expose(), b"old");
    assert!(!loader.is_stale(LATER));
    let before = loader.hash_elsewhere();
    fs::write(rules.0.path().join("two.key"), "another").unwrap();
    assert!(loader.is_stale(LATER));
    let second = loader.load(LATER, Some(&first)).unwrap();
    assert_eq!(secret(&second).signing().expose(), b"another");
    assert_eq!(first.version, second.version, "the version tells nothing of secrets");
    assert_ne!(loader.hash_elsewhere(), before);
    fs::remove_file(rules.0.path().join("two.key")).unwrap();
    assert!(loader.is_stale(LATER));
    assert!(loader.load(LATER, Some(&second)).unwrap_err().to_string().contains("does not exist"));
    assert!(loader.files_elsewhere().contains(&rules.0.path().join("two.key")), "it is waited for");
}

/// A set in words that two sets of the same meaning have in common.
fn meaning(rules: &RuleSet) -> BTreeMap<String, String> {
    let mut meaning = BTreeMap::from([(String::new(), format!("{} {:?}", rules.version, rules.gateway))]);
    let texts = rules.pages.languages().iter().map(|language| language.texts.to_string()).collect::<String>();
    meaning.insert("pages".to_owned(), format!("{} {texts}", rules.pages.style_source()));
    for (code, shop) in &rules.shops {
        let fields = serde_json::Map::from_iter([("bank".to_owned(), serde_json::json!("alpha"))]);
        let tried = |side: &crate::rules::ShopSide| {
            let schema = side.schema.as_ref();
            schema.map(|schema| (schema.kept().to_vec(), schema.check(&merchant_id("m"), given(&fields))))
        };
        let (payin, payout) = (tried(&shop.payin), tried(&shop.payout));
        meaning.insert(format!("shop {code}"), format!("{} {:?} {payin:?} {payout:?}", shop.active, shop.provider));
    }
    for (id, merchant) in &rules.merchants {
        let keys: Vec<_> = merchant.api_keys.iter().map(|key| &key.key).collect();
        let shops: BTreeMap<_, _> = merchant.shops.iter().map(|(code, access)| (code, access.shop.active)).collect();
        let dialect = merchant.v1.dialect.empty_list_is_object;
        meaning.insert(format!("merchant {id}"), format!("{} {keys:?} {shops:?} {dialect}", merchant.name));
    }
    meaning.extend(rules.api_keys.iter().map(|(key, entry)| (format!("key {key}"), entry.merchant.id.to_string())));
    meaning
}

/// What may become of each file: some texts are wrong, and some are wrong beside others. No text: it is removed.
fn edits() -> Vec<(&'static str, Vec<Option<String>>)> {
    let text = |text: &str| Some(text.to_owned());
    vec![
        ("gateway.toml", vec![text(""), text("[limits]\nbody = 700\n"), text("[limits]\nbody = 1\n")]),
        (
            "pages/en.toml",
            vec![text("[busy]\ntitle = \"a\""), text("[busy]\ntitel = 1"), text("# x\n"), text(""), None],
        ),
        ("lists/banks.txt", vec![text("alpha\n"), text("betas\n"), text(""), None]),
        ("lists/m/banks.txt", vec![text("alpha\n"), text("gamma\n"), None]),
        ("shops/fields.json", vec![text(SCHEMA), text(&SCHEMA.replace("note", "text")), text("{"), None]),
        (
            "shops/a.toml",
            vec![Some(shop("[payin]\nschema = \"fields.json\"\n")), text(SHOP), text("x"), Some(shop("# a\n")), None],
        ),
        ("shops/b.toml", vec![Some(shop("[payout]\nschema = \"fields.json\"\n")), text(SHOP), None]),
        ("dialects/d.toml", vec![text("[requests]\nempty_list_is_object = true\n"), text(""), text("y = 1"), None]),
        ("dialects/v1.toml", vec![text("[requests]\nempty_list_is_object = true\n"), None]),
        (
            "merchants/m.toml",
            vec![
                Some(merchant("k", &["a", "b"])),
                Some(merchant("k", &["b"])),
                Some(merchant("l", &["a"]) + "[v1]\ndialect = \"d\"\n"),
                None,
            ],
        ),
        ("merchants/n.toml", vec![Some(merchant("l", &["b"])), Some(merchant("k", &[])), text("z"), None]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn loading_again_means_what_loading_means(steps in prop::collection::vec((0_usize..12, 0_usize..5), 1..12)) {
        let rules = Rules::bare();
        let mut loader = Loader::new(&rules.path(), LoadOptions::default());
        let mut current = None;
        for (file, text) in steps {
            let edits = edits();
            let (name, texts) = &edits[file];
            match &texts[text % texts.len()] {
                Some(text) => rules.put(name, text),
                None => drop(fs::remove_file(rules.path().join(name))),
            }
            let again = loader.load(SystemClock.now(), current.as_ref());
            // Beside the same set in force: what lost its text since is refused either way.
            let whole = load(&rules.path(), SystemClock.now(), current.as_ref(), LoadOptions::default());
            match (again, whole) {
                (Ok(again), Ok(whole)) => {
                    prop_assert_eq!(meaning(&again), meaning(&whole));
                    current = Some(again);
                }
                (again, whole) => {
                    let told = |outcome: Result<RuleSet, Problems>| outcome.map(|_| ()).map_err(|why| why.rendered());
                    prop_assert_eq!(told(again), told(whole));
                }
            }
            prop_assert!(!loader.is_stale(SystemClock.now()));
        }
    }
}
