//! The hash of what a merchant's v1 creates are checked by: what changes it and what does not.

use super::*;

const TWO: &str = "\
default_shop = \"s\"
[[api_keys]]
key = \"k\"
v1_secret = \"one\"
v2_secret = \"two\"
allowed_ips = [\"203.0.113.0/24\"]
[[api_keys]]
key = \"limited\"
v2_secret = \"two\"
shops = [\"s\", \"t\"]
[shops.s]
[shops.t]
payin = false
[v1]
dialect = \"d\"
unknown_fields = \"reject\"
";

fn world() -> Rules {
    let shop = format!("{SHOP}[payin]\nschema = \"s.json\"\n");
    Rules::bare()
        .with("gateway.toml", "[legacy]\nurl = \"https://v1.example\"\n")
        .with("shops/s.toml", shop)
        .with("shops/s.json", r#"{ "properties": { "bank": { "x-allowed-list": "banks" } } }"#)
        .with("shops/t.toml", SHOP)
        .with("shops/other.toml", SHOP)
        .with("lists/banks.txt", "a\n")
        .with("lists/unused.txt", "a\n")
        .with("dialects/d.toml", "")
        .with("merchants/m.toml", TWO)
        .with("merchants/n.toml", MERCHANT.replace("\"k\"", "\"n\""))
}

#[test]
fn rules_of_creates_and_nothing_else_change_the_fingerprint() {
    let of = |rules: &Rules| rules.load().merchants[&merchant_id("m")].rules_fingerprint;
    let first = of(&world());
    let replace = |file: &str, from: &str, to: &str| {
        let rules = world();
        let text = fs::read_to_string(rules.path().join(file)).unwrap();
        assert!(text.contains(from), "{file} has no {from}");
        rules.put(file, text.replacen(from, to, 1));
        of(&rules)
    };
    for (file, from, to) in [
        ("merchants/m.toml", "\"one\"", "\"another\""),
        ("merchants/m.toml", "203.0.113.0/24", "203.0.113.7"),
        ("merchants/m.toml", "[shops.s]\n[shops.t]\npayin = false", "[shops]\ns = {} # c\nt = { payin = false }"),
        ("merchants/m.toml", "[\"s\", \"t\"]", "[\"t\", \"s\"]"),
        ("merchants/m.toml", "[v1]", "[balance]\nenforce = true\n[v1]\nmode = \"legacy\""),
        ("merchants/m.toml", "[v1]", "[v1]\nmode = \"staged\"\npercent = { payin = 5 }"),
        ("merchants/m.toml", "[[api_keys]]", "[[api_keys]]\nkey = \"new\"\nv2_secret = \"x\"\n[[api_keys]]"),
        ("merchants/m.toml", "v1_secret = \"one\"", "v1_secret = \"one\"\nv2 = false"),
        ("merchants/m.toml", "[shops.s]", "[shops.s]\nv2 = false"),
        ("merchants/m.toml", "payin = false", "payin = false\nv2 = { payout = false }"),
        ("merchants/n.toml", "[shops.s]", "[shops.s]\n[v1]\nunknown_fields = \"ignore\""),
        ("shops/s.toml", "[provider]", "[provider]\ndelay = \"2s\""),
        ("shops/other.toml", "EUR", "KES"),
        ("lists/unused.txt", "a", "b"),
        ("gateway.toml", "[legacy]", "[limits]\nbody = \"32KiB\"\n[legacy]"),
    ] {
        assert_eq!(replace(file, from, to), first, "{file}: {to}");
    }
    for (file, from, to) in [
        ("merchants/m.toml", "default_shop = \"s\"", "default_shop = \"t\""),
        ("merchants/m.toml", "\"reject\"", "\"ignore\""),
        ("merchants/m.toml", "[v1]", "[v1]\nsunset = 2027-06-30"),
        ("merchants/m.toml", "dialect = \"d\"", ""),
        ("merchants/m.toml", "payin = false", ""),
        ("merchants/m.toml", "[\"s\", \"t\"]", "[\"s\"]"),
        ("merchants/m.toml", "[shops.t]", "[shops.other]\n[shops.t]"),
        ("dialects/d.toml", "", "requests.empty_list_is_object = true"),
        ("shops/t.toml", "EUR", "KES"),
        ("shops/s.json", "\"bank\"", "\"till\""),
        ("lists/banks.txt", "a", "b"),
    ] {
        assert_ne!(replace(file, from, to), first, "{file}: {to}");
    }
    let own = world().with("lists/m/banks.txt", "b\n");
    assert_ne!(of(&own), first);
    assert_eq!(of(&world().with("lists/n/banks.txt", "b\n")), first);
    let remote =
        world().with("gateway.toml", "[engine]\nurl = \"https://v2.example\"\n[legacy]\nurl = \"https://v1.example\"");
    assert_ne!(of(&remote), first);
}
