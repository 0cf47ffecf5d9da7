//! Parts of the shown lines that are hidden: a table for each reason, and what none of them hides.

use std::collections::BTreeSet;

use super::*;
use crate::rules::problems::{NO_SECRETS, names_a_secret};
use crate::rules::{FileKind, Place};

/// Returns the lines that the problems of these files show, without repeats.
fn lines(files: &[(&str, &str)]) -> Vec<String> {
    let mut rules = Rules::small();
    for (name, text) in files {
        rules = rules.with(name, text);
    }
    let refused = rules.refused();
    let mut lines: Vec<String> =
        refused.iter().filter_map(|problem| problem.place.line_text().map(str::to_owned)).collect();
    lines.dedup();
    lines
}

/// Asserts that the problems of each file show exactly these lines.
#[track_caller]
fn assert_shown(cases: &[(&str, &str, &[&str])]) {
    for (name, text, expected) in cases {
        assert_eq!(lines(&[(name, text)]), *expected, "{text}");
    }
}

#[test]
fn values_of_other_keys_are_shown() {
    assert_shown(&[
        ("shops/s.toml", "curency = \"EUR\"\n[provider]\nkind = \"sandbox\"\n", &["curency = \"EUR\""]),
        ("gateway.toml", "[server]\nlisen = \"127.0.0.1:1\"\n", &["lisen = \"127.0.0.1:1\""]),
        ("gateway.toml", "limts = { body = \"1\" }\n", &["limts = { body = *** }"]),
        ("gateway.toml", "[limits]\nbody = 0 # was 1\n", &["body = 0 # was 1"]),
        (
            "merchants/m.toml",
            "[[api_keys]]\nkey = \"k\"\nv2_secret = \"hush\"\nallowed_ips = [\n  \"x\",\n]\n",
            &["  \"x\","],
        ),
        ("merchants/m.toml", "[balance]\nopening = { KES = \"0\" }\n", &["opening = { KES = \"0\" }"]),
        ("gateway.toml", "[engine]\nurl = \"http://v2.example/?page=1\"\n", &["url = \"http://v2.example/?page=1\""]),
        ("gateway.toml", "[store]\nurl = \"sqlite://h/db\"\n", &["url = \"sqlite://h/db\""]),
        ("gateway.toml", "[store]\nconnections = 0\n", &["connections = 0"]),
        ("gateway.toml", "[store]\nurl = \"sqlite:x.db?key=hush\"\n", &["url = ***"]),
        ("gateway.toml", "[store]\nurl = \"env:PAYBRIDGE_NO_SUCH\"\n", &["url = \"env:PAYBRIDGE_NO_SUCH\""]),
    ]);
}

#[test]
fn keys_that_are_named_like_secrets_and_hold_none_are_shown() {
    let line = |text: &str| lines(&[("gateway.toml", text)]);
    assert_eq!(line("[tls]\nkey = 5 # a path\n"), ["key = 5 # a path"]);
    // In a file that is no TOML the table of a line is not known.
    assert_eq!(line("[tls]\nkey = certs/x.pem # a path\n"), ["key = ***"]);
    assert_eq!(line("tls = { certificate = 5, key = \"x.pem\" }\n"), ["tls = { certificate = 5, key = \"x.pem\" }"]);
    assert_shown(&[
        ("merchants/m.toml", "[[api_keys]]\nkey = acme-live\nv2_secret = \"x\"\n", &["key = ***"]),
        (
            "dialects/d.toml",
            "[signature]\napi_key = \"two words\" # a header\n",
            &["api_key = \"two words\" # a header"],
        ),
        // Under any other table they may be misspelt.
        ("gateway.toml", "[store]\nkey = \"hush\"\n", &["key = ***"]),
        ("gateway.toml", "[store]\nkey = hush\n", &["key = ***"]),
        ("gateway.toml", "[tls]\n[store\nkey = hush\n", &["[store"]),
        ("gateway.toml", "[tls.x]\nkey = hush\n", &["key = ***"]),
        ("gateway.toml", "[tls]\nkey = \"x.pem\"\nsecret = hush\n", &["secret = ***"]),
        ("gateway.toml", "[x]\ntls = { key = hush }\n", &["tls = { key = ***"]),
        ("gateway.toml", "secret = { x = \"hush\" }\nsecret = { x = \"hush\" }\n", &["secret = ***"]),
    ]);
    let mut declared = BTreeSet::new();
    for kind in FileKind::ALL {
        let keys = described::keys(kind);
        for (path, schema) in keys.iter().filter(|(_, schema)| schema["type"] == "string") {
            let is_secret = schema["pattern"].as_str().is_some_and(|pattern| pattern.starts_with("^(env:"));
            let (table, name) = path.rsplit_once('.').unwrap_or(("", path));
            if names_a_secret(name) && !is_secret {
                declared.insert((table.trim_end_matches(".*").to_owned(), name.to_owned()));
            }
        }
    }
    let mut expected = BTreeSet::from(NO_SECRETS.map(|(table, name)| (table.to_owned(), name.to_owned())));
    // Pages show it masked.
    expected.insert(("api_keys".to_owned(), "key".to_owned()));
    assert_eq!(declared, expected);
}

#[test]
fn a_comment_after_a_secret_is_left_out() {
    assert_shown(&[
        ("gateway.toml", "[admin]\ntoken = 5 # was hush\n", &["token = ***"]),
        ("gateway.toml", "x = { token = \"hush\", y = 1 } # was hush\n", &["x = { token = ***, y = *** }"]),
        ("gateway.toml", "[server]\nlisen = 5 # token = 5\n", &["lisen = 5 # token = 5"]),
    ]);
}

#[test]
fn values_whose_type_is_a_secret_are_hidden() {
    assert_shown(&[
        ("gateway.toml", "[admin]\ntoken = [5, \"hush-of-16-or-more\"]\n", &["token = [***, ***]"]),
        ("gateway.toml", "[pages]\nsecret = { x = \"hush\" }\n", &["secret = { x = *** }"]),
        ("gateway.toml", "[pages]\nsecret = [\n  \"\", # hush\n]\n", &["  ***,"]),
        ("merchants/m.toml", "[[api_keys]]\nkey = \"k\"\nv2_secret.x.y = \"hush\"\n", &["v2_secret.x.y = ***"]),
    ]);
}

#[test]
fn values_of_keys_named_for_secrets_are_hidden() {
    assert_shown(&[
        ("gateway.toml", "secret = \"hush\"\n", &["secret = ***"]),
        ("gateway.toml", "Auth_TOKEN = \"hush\"\n", &["Auth_TOKEN = ***"]),
        ("gateway.toml", "[store]\npasswords = [\"hush\"]\n", &["passwords = [***]"]),
        ("gateway.toml", "[server]\nx = { dbpassword = \"hush\", y = 1 }\n", &["x = { dbpassword = ***, y = *** }"]),
        ("merchants/m.toml", "[[api_keys]]\nkey = \"\"\nv2_secret = \"x\"\n", &["key = ***"]),
        ("merchants/m.toml", "api_keys = \"hush\"\n", &["api_keys = ***"]),
        (
            "merchants/m.toml",
            "api_keys = { key = \"k\", v2_secret = \"hush\" }\n",
            &["api_keys = { key = ***, v2_secret = *** }"],
        ),
        // Values of several lines, each line shown alone.
        ("merchants/m.toml", "api_keys = [\n  \"hush\", 5,\n]\n", &["  ***, ***,"]),
        ("gateway.toml", "x = \"\"\"\n\"\"\"\n[store]\nkeys = [\n  \"\",\n]\n", &["x = \"\"\"", "  ***,"]),
        (
            "merchants/m.toml",
            "api_keys = [{\n  key = \"k\", v2_secret = \"hush\", x = 1,\n}]\n",
            &["  key = ***, v2_secret = ***, x = ***,"],
        ),
        (
            "merchants/m.toml",
            "[[api_keys]]\nkey = \"k\"\nv2_secret = \"\"\"\nhush\"\"\"\nv1_secret = 5\n",
            &["v1_secret = ***"],
        ),
    ]);
}

#[test]
fn values_of_misspelt_secret_keys_are_hidden() {
    let key = |line: &str| format!("[[api_keys]]\nkey = \"k\"\nv2_secret = \"x\"\n{line}\n");
    for (line, expected) in [
        ("v2_secet = \"hush\"", "v2_secet = ***"),
        ("v1secert = \"hush\"", "v1secert = ***"),
        ("V1_SERCET = \"hush\"", "V1_SERCET = ***"),
        ("v1_secet = { x = \"hush\" }", "v1_secet = { x = *** }"),
        ("v1_secet.x = [\"hush\"]", "v1_secet.x = [***]"),
        ("tokn = \"hush\"", "tokn = ***"),
        ("passwd = \"hush\"", "passwd = ***"),
        ("pass = \"hush\"", "pass = ***"),
        ("v2_sec = \"hush\"", "v2_sec = ***"),
        ("v2_scr = \"hush\"", "v2_scr = ***"),
        ("shps = [\"shown\"]", "shps = [\"shown\"]"),
        // It resembles no key.
        ("x = \"hush\"", "x = ***"),
        ("vsret = [\"hush\", \"hush\"]", "vsret = [***, ***]"),
        ("kye = \"hush\"", "kye = ***"),
    ] {
        assert_eq!(lines(&[("merchants/m.toml", &key(line))]), [expected]);
    }
    assert_shown(&[("gateway.toml", "[store]\nkesy = [\n\"hush\"]\nkeys = [\n\"\"]\n", &["kesy = [", "***]"])]);
}

#[test]
fn known_keys_are_not_hidden_as_misspelt() {
    let is_named = |key: &str| ["secret", "token", "key", "password"].iter().any(|word| key.contains(word));
    for kind in FileKind::ALL {
        for path in described::keys(kind).into_keys() {
            let name = path.rsplit('.').next().unwrap();
            assert_eq!(names_a_secret(name), is_named(name), "{path}");
        }
    }
}

#[test]
fn the_urls_of_databases_are_hidden() {
    assert_shown(&[
        ("gateway.toml", "[store]\nurl = \"host=h user=u password=hush\"\n", &["url = ***"]),
        ("gateway.toml", "[store]\nurl = { a = \"u:hush@h\" }\n", &["url = { a = *** }"]),
        ("gateway.toml", "[store]\nulr = \"postgres:/u:hush@h/db\"\n", &["ulr = ***"]),
        ("gateway.toml", "stor.url = \"postgres:/u:hush@h/db\"\n", &["stor.url = ***"]),
        ("gateway.toml", "[store]\nurl = \"postgres://u:hush@h/db?sslmode=on\"\n", &["url = ***"]),
        ("gateway.toml", "[store]\nurl = \"Postgresql://u:hush@h/db\"\n", &["url = ***"]),
        ("gateway.toml", "[store]\nurl = \"mysql://u:hush@h/db\"\n", &["url = ***"]),
        (
            "gateway.toml",
            "store = { url = [\n\"postgres://u:'hush@h/db\"], x = 1 }\n",
            &["store = { url = [", "***], x = *** }"],
        ),
        ("gateway.toml", "x = \"postgres://u:hush@h/db\"\n", &["x = ***"]),
    ]);
}

#[test]
fn only_the_credentials_of_other_urls_are_hidden() {
    assert_shown(&[
        ("gateway.toml", "[engine]\nurl = \"https://u:hush@h\"\n", &["url = \"https://***@h\""]),
        ("gateway.toml", "[engine]\nurl = 'https://hush@h/x@y'\n", &["url = 'https://***@y'"]),
        ("gateway.toml", "[engine]\nurl = \"https:/u:hush@h\"\n", &["url = \"https:/***@h\""]),
        (
            "gateway.toml",
            "[engine]\nurl = \"https://h/?a=1&my_token=hush&b=2\"\n",
            &["url = \"https://h/?a=1&my_token=***&b=2\""],
        ),
    ]);
}

#[test]
fn keys_that_hold_no_secret_are_shown_of_lines_that_are_no_toml() {
    assert_shown(&[
        ("gateway.toml", "[server]\nlisten = 127.0.0.1:8443\n", &["listen = 127.0.0.1:8443"]),
        ("gateway.toml", "[admin]\nlisten =\n", &["listen ="]),
        ("gateway.toml", "[clients] # [old]\nproxy_protocol = flase # as [0]\n", &["proxy_protocol = flase***"]),
        ("gateway.toml", "[callbacks]\ntrust = [\n  \"a\"\n\n  # x\n  \"b\"\n]\n", &["  \"b\""]),
        ("shops/s.toml", "currency = EUR\n", &["currency = EUR"]),
        ("shops/s.toml", "currency \"EUR\"\n", &["currency \"EUR\""]),
        ("merchants/m.toml", "name = \"M\n", &["name = \"M"]),
        ("merchants/m.toml", "[[api_keys]\nkey = \"k\"\n", &["[[api_keys]"]),
        ("merchants/m.toml", "[[api_keys]]\nallowed_ips = [\"::1\" \"::2\"]\n", &["allowed_ips = [\"::1\" \"::2\"]"]),
        (
            "merchants/m.toml",
            "[[api_keys]]\nrate_limit = { per_second = 2, burst 4 }\n",
            &["rate_limit = { per_second = 2, burst 4 }"],
        ),
        ("gateway.toml", "[server]\n[server]\n", &["[server]"]),
        ("gateway.toml", "[server\n", &["[server"]),
        ("gateway.toml", "limits.body = \"1\"\nlimits.body = \"2\"\n", &["limits.body = \"2\""]),
        ("gateway.toml", "[limits] # [old]\n[limits] # hush\n", &["[limits]***"]),
        ("gateway.toml", "[server]\n}\n", &["}"]),
        ("merchants/m.toml", "name = Keystone Ltd\n", &["name = Keystone Ltd"]),
        ("merchants/m.toml", "[balance]\nopening = { EUR = 1 USD = 5 }\n", &["opening = { EUR = 1 USD = 5 }"]),
        // Files without secrets.
        ("dialects/d.toml", "[replies]\npayin = '''\n{ \"id\": 1 }\n''' x\n", &["''' x"]),
    ]);
}

#[test]
fn nothing_else_is_shown_of_lines_that_are_no_toml() {
    let gateway = [
        ("[admin]\ntoken = hush\n", "token = ***"),
        ("[admin]\nlisten = 1 2, token = hush\n", "listen = 1 2***"),
        ("[admin]\nlisten = x # token: hush\n", "listen = x***"),
        ("[admin]\n[hush]]\n", "***"),
        ("[engine]\ntimeout = //u:hush@h # hush\n", "timeout = //***@h***"),
        ("admin.users = [ {\n  name = \"ada\", \"hush\" } ]\n", "  name = \"ada\"***"),
        ("[admin]\nten = \"hush\n", "***"),
        ("[admin]\ntoken \"hush\"\n", "token ***"),
        ("admin = { listen = \"x\", token \"hush\" }\n", "admin = ***"),
        ("admin . token \"hush\"\n", "admin ***"),
        ("\"admin\".token \"hush\"\n", "***"),
        ("admin.token \"hush\"\n", "admin.token ***"),
        ("{ \"admin\": { \"token\": \"hush\" } }\n", "***"),
        ("[pages]\nsecret = 'hush' hush\n", "secret = ***"),
        ("[pages]\n\"my secret\" = hush\n", "***"),
        ("[pages]\nserect = hush\n", "***"),
        ("[pages] hush\n", "***"),
        ("[store]\nurl = postgres://u:hush@h/db\n", "url = ***"),
        ("token = \"hush\"\ntoken = \"hush\" # hush\n", "token = ***"),
        // What continues the value of a secret, which may end like a key.
        ("token = \"\"\"\nhush = \"\"\"\" x\n", "***"),
        ("[store]\nkeys = [\n\"a\",\nhush=\", # x\n]\n", "***"),
        ("keys = [\n[\"hush\"]\n[\"hush\"]\n]\n", "***"),
        ("x = \"\"\"a\" \"\"\"\"\"\"\"\"\"\rten = hush\r", "***"),
    ];
    for (text, shown) in gateway {
        assert_shown(&[("gateway.toml", text, &[shown])]);
    }
    assert_shown(&[
        ("gateway.toml", "token =\nhush\n", &["token =", "***"]),
        ("gateway.toml", "pages = { secre\nt = \"hush\", language = \"en\" }\n", &["***"]),
        ("gateway.toml", "[store]\nurl = \"postgres://u\nser:hush@h/db?sslmode=require\"\n", &["url = ***", "***"]),
        ("merchants/m.toml", "[[api_keys]]\nkye = hush\n", &["***"]),
        ("merchants/m.toml", "[[api_keys]]\nv2_secret = [\n\"hush\"\n\"hush\"\n]\n", &["***"]),
        ("merchants/m.toml", "[[api_keys]]\nv2_secret = [\naHVzaA==\n]\n", &["***"]),
        ("merchants/m.toml", "[[api_keys]]\n=v2_secret \n= [\"hush\", \"hush\"]\n", &["***"]),
        ("merchants/m.toml", "api_keys = [\n{ v2_secret = \"hush\" }\n{ v2_secret = \"hush\" }\n]\n", &["***"]),
        ("merchants/m.toml", "[[api_keys]]\nv2 = \"hush\n", &["v2 = ***"]),
        (
            "merchants/m.toml",
            "[[api_keys]]\nallowed_ips = [\"::1\",\n  \"::2\"]v2_secret = [\n  \"hush\",\n  \"hush\",\n]\n",
            &["  \"::2\"***", "***", "]"],
        ),
        ("merchants/m.toml", "[[api_keys]]\nallowed_ips = [\"::1\",\n  \"::2\"]\n\"hush\",\n", &["***"]),
        ("dialects/d.toml", "[signature]\nsecret = \"hush\n", &["secret = ***"]),
        ("shops/s.toml", "provider]\nsecret \"hush\"\n", &["provider***", "secret ***"]),
        ("shops/s.toml", "currency = \"EUR\"secret \"hush\"\n", &["currency = \"EUR\"***"]),
    ]);
}

#[test]
fn what_may_stand_for_a_table_or_a_secret_is_hidden() {
    assert_shown(&[
        ("gateway.toml", "admn.tkn = \"hush\"\n", &["admn.tkn = ***"]),
        ("gateway.toml", "admin = \"hush\"\n", &["admin = ***"]),
        ("gateway.toml", "[admin]\nusers = { ada = \"hush\" }\n", &["users = { ada = *** }"]),
        ("gateway.toml", "[admin]\nusers = [[\"ada\", \"hush\"]]\n", &["users = [[***, ***]]"]),
        ("merchants/m.toml", "api_keys.demo = \"hush\"\n", &["api_keys.demo = ***"]),
        ("merchants/m.toml", "[[api_keys]]\nkey = \"k\"\nv2_secret = \"x\"\nv2 = \"hushed\"\n", &["v2 = ***"]),
        ("merchants/m.toml", "[[api_keys]]\nkey = \"k\"\nv2_secret = \"x\"\nv2 = [\"hush\"]\n", &["v2 = [***]"]),
        ("merchants/m.toml", "[[api_keys]]\nkey = \"k\"\nv2_secret = \"x\"\nv2 = \"yes\"\n", &["v2 = \"yes\""]),
        ("merchants/m.toml", "[[api_keys]]\nkey = \"k\"\nv2_secret = \"x\"\nv1 = \"hush\"\n", &["v1 = ***"]),
        ("gateway.toml", "[server]\nadmin = { tkn = \"hush\" }\n", &["admin = { tkn = *** }"]),
        (
            "gateway.toml",
            "[admin]\nuser = [{ name = \"a\", tkn = \"hush\" }]\n",
            &["user = [{ name = ***, tkn = *** }]"],
        ),
    ]);
}

#[test]
fn nothing_is_hidden_in_other_files() {
    let shop = format!("{SHOP}[payin]\nschema = \"s.json\"\n");
    let schema = r#"{ "requierd": ["token"] }"#;
    assert_eq!(lines(&[("shops/s.toml", &shop), ("shops/s.json", schema)]), [schema]);
}

#[test]
fn marks_have_the_right_place_beside_hidden_values() {
    let rules = Rules::small().with("gateway.toml", "store = { keys = [\"hush\"], x = 1 }\n");
    let refused = rules.refused();
    let Some(Place { start, end, .. }) = refused.iter().map(|problem| problem.place.clone()).next_back() else {
        panic!("the rules load")
    };
    assert_eq!((start, end), ((1, 28), (1, 29)));
    assert!(refused.rendered().contains("1 | store = { keys = [***], x = *** }\n  |                         ^\n"));
}
