//! Rendered problems of each kind. The snapshots document how they look.

use super::*;

/// Returns the rendered problems of rules with these files in place of the usual ones.
fn shown(files: &[(&str, &[u8])]) -> String {
    let mut rules = Rules::small();
    for (name, text) in files {
        rules = rules.with(name, text);
    }
    let refused = rules.refused();
    refused.rendered().replace(&rules.0.path().display().to_string(), "")
}

fn merchant(text: &str) -> String {
    shown(&[("merchants/m.toml", text.as_bytes())])
}

#[test]
fn of_names() {
    let misspelt =
        format!("default_shp = \"s\"\n{MERCHANT}payn = true\n").replace("v1_secret = \"one\"", "v1_secrt = \"hush\"");
    let below = format!("{MERCHANT}default_shop = \"s\"\n");
    let dangling = format!("default_shop = \"t\"\n{MERCHANT}[shops.card-eu]\n[v1]\ndialect = \"V1\"\n");
    let list = r#"{"type": "object", "requierd": ["a"]}"#;
    let named = format!("{SHOP}[payin]\nschema = \"a.jsn\"\n[payout]\nschema = \"a.json\"\n");
    let all = [
        merchant(&misspelt),
        merchant(&below),
        shown(&[("merchants/m.toml", dangling.as_bytes()), ("shops/card-eur.toml", SHOP.as_bytes())]),
        shown(&[("shops/s.toml", named.as_bytes()), ("shops/a.json", list.as_bytes())]),
        shown(&[("merchants/n.toml", MERCHANT.as_bytes())]),
    ];
    insta::assert_snapshot!(all.join("\n\n-----\n\n"));
}

#[test]
fn of_values() {
    let gateway =
        "[limits]\nhead_timeout = \"10 S\"\nbody = \"64KB\"\n[server]\nlisten = \"8443\"\n[tls]\ngenerate = \"yes\"\n";
    let several = MERCHANT.replace("\"203.0.113.0/24\"", "\"203.0.113.1/24\", \"x\", \"10.0.0.1/8\"");
    let all = [
        shown(&[("gateway.toml", gateway.as_bytes())]),
        merchant(&several),
        merchant(&MERCHANT.replace("[\"203.0.113.0/24\"]", "\"::1\"")),
        merchant(&MERCHANT.replace("[[api_keys]]", "[api_keys]")),
        shown(&[("shops/s.toml", b"[provider]\ndelay = \"1s\"\n")]),
        merchant(&MERCHANT.replace("v2_secret = \"two\"\n", "")),
        merchant(&MERCHANT.replace("\"one\"", "\"env:PAYBRIDGE_NOT_SET_ANYWHERE\"")),
    ];
    insta::assert_snapshot!(all.join("\n\n-----\n\n"));
}

#[test]
fn of_syntax() {
    let all = [
        merchant("name = \"M\n"),
        merchant("name = Acme Ltd\n"),
        merchant("name = “Acme”\n"),
        merchant(&MERCHANT.replace("24\"]", "24\"")),
        merchant(&format!("{MERCHANT}[shops.s]\n")),
        merchant(&format!("{MERCHANT}<<<<<<< HEAD\npayin = true\n=======\npayin = false\n>>>>>>> other\n")),
        shown(&[("shops/s.toml", b"currency = \"\xff\"\n")]),
        shown(&[("lists/empty.txt", b"# nothing\n")]),
        shown(&[(
            "dialects/d.toml",
            b"[replies]\nstatus = '{\"id\": {{ external_id }'\npayin = '{\"id\": \"{{ external_id }}\"}'\n",
        )]),
        shown(&[(
            "dialects/d.toml",
            b"[signature]\npayload = \"{timestamp}.{bdy}\"\n[routes]\npayin = \"POST /pay/x\"\n",
        )]),
    ];
    insta::assert_snapshot!(all.join("\n\n-----\n\n"));
}

#[test]
fn of_odd_lines() {
    let many = |from: usize| {
        (from..from + 300).map(|n| format!("\"10.0.{}.{}\"", n / 250, n % 250)).collect::<Vec<_>>().join(", ")
    };
    let long = MERCHANT.replace("\"203.0.113.0/24\"", &format!("{}, \"10.1.2.3/8\", {}", many(0), many(300)));
    let all = [
        merchant(&format!("{MERCHANT}\tpayin\t=\t\"yes\"\n")),
        merchant(&format!("name = \"株式会社\"\ndefault_shop = \"株式\" # 会社\n{MERCHANT}")),
        merchant(&format!("\u{feff}nmae = \"x\"\n{MERCHANT}").replace('\n', "\r\n")),
        merchant(&format!("{MERCHANT}payin = 1")),
        merchant(&long),
    ];
    insta::assert_snapshot!(all.join("\n\n-----\n\n"));
}

#[test]
fn colours_are_for_terminals() {
    let rules = Rules::small().with("gateway.toml", "[server]\npublic_url = \"https://pay.example\"\n[limits]\nbody = 0\n[callbacks]\nallow_private_addresses = true\n");
    let refused = rules.refused();
    let problems: Vec<&Problem> = refused.iter().collect();
    let [error, warning] = problems.as_slice() else { panic!("{refused}") };
    let escapes = regex::Regex::new("\u{1b}\\[[0-9;]*m").unwrap();
    for (problem, colour, word) in [(error, "91m", "error"), (warning, "93m", "warning")] {
        let plain = problem.rendered();
        assert!(!plain.contains('\u{1b}') && plain.contains(&format!(": {word}: `")), "{plain}");
        let styled = problem.styled();
        assert!(styled.contains(colour), "{styled:?}");
        let bare = escapes.replace_all(&styled, "").into_owned();
        assert_eq!(bare, plain, "colours are the only difference");
    }
}

#[test]
fn no_control_character_reaches_a_terminal() {
    let text = "\"\\u001b[31m\" = 1\nname = \"\\u001b]0;x\\u0007\"\n[v1]\ndialect = \"\\u001b[2J\"\n";
    let text = format!("{text}mode = '\u{9b}31m\t'\n");
    let shown = merchant(&text);
    assert!(!shown.chars().any(|shown| shown.is_control() && shown != '\n'), "{shown:?}");
}

#[test]
fn places_have_ends() {
    let rules = Rules::small().with("merchants/n.toml", MERCHANT);
    let refused = rules.refused();
    let problem = refused.iter().next().unwrap();
    assert_eq!((problem.place.start, problem.place.end), ((2, 7), (2, 10)));
    assert_eq!(problem.place.line_text(), Some("key = ***"));
    assert!(
        problem.message.contains("it is used at ") && problem.message.ends_with("merchants/m.toml:2:7"),
        "{problem}"
    );
}

#[test]
fn text_beside_a_secret_is_hidden_and_headers_are_shown() {
    let merchant = MERCHANT.replace("\"two\"", "\"\" # was hush");
    for (name, text, hidden, shown) in [
        ("merchants/m.toml", merchant.as_str(), "hush", "v2_secret = ***\n"),
        (
            "shops/s.toml",
            "currency = \"EUR\"\n[provider]\nkind = \"sandbox\"\nurl = \"https://a.example/pay?a=1&k_token=hush\"\n",
            "hush",
            "url = \"https://a.example/pay?a=1&k_token=***\"",
        ),
        ("gateway.toml", "[limts]\nbody = \"hush\"\n", "hush", "[limts]"),
        ("gateway.toml", "tokn = { body = \"hush\" }\n", "hush", "tokn = { body = *** }"),
        ("gateway.toml", "tokn.body = \"hush\"\n", "hush", "unknown key `tokn`"),
    ] {
        let reported = Rules::small().with(name, text).refused().rendered();
        assert!(reported.contains(shown) && !reported.contains(hidden), "{reported}");
    }
}
