//! Every error of rule files, with its place.

use super::*;

#[test]
fn everything_wrong_is_shown_in_one_run() {
    let rules = Rules::bare()
        .with("gateway.toml", "[server]\nlisten = 5\nshutdown_grace = \"30\"\n\n[limit]\nbody = 1\n")
        .with("shops/s.toml", "curency = \"EUR\"\n[provider]\nkind = \"sandbx\"\n")
        .with("merchants/m.toml", "default_shop = \"t\"\n[shops.q]\n[v1]\ndialect = \"v2\"\nmode = 1\n");
    insta::assert_snapshot!(rules.problems().join("\n"));
}

#[track_caller]
fn gateway(text: &str, place: &str, message: &str) {
    Rules::small().with("gateway.toml", text).one_problem(&format!("gateway.toml:{place}"), message);
}

#[test]
fn gateway_errors() {
    gateway("server = 1", "1:10", "`server` must be a table, not an integer");
    gateway("[server]\nlisten = \"localhost:1\"", "2:10", "`server.listen` must be an IP address and port");
    gateway("[server]\nlisten = \"127.0.0.1\"", "2:10", "`server.listen` must be an IP address and port");
    gateway("[server]\nshutdown_grace = 30", "2:18", "must be a span of time such as \"250ms\"");
    gateway("[server]\npublic_url = \"http://a.example\"", "2:14", "must be an https:// URL without a path");
    gateway("[server]\npublic_url = \"https://a.example/x\"", "2:14", "must be an https:// URL without a path");
    gateway("[server]\npublic_url = \"a.example\"", "2:14", "must be an absolute URL");
    gateway("[tls]\ngenerate = \"yes\"", "2:12", "`tls.generate` must be true or false, not a string");
    let beyond = "[admin]\nlisten = \"0.0.0.0:9\"";
    gateway(&format!("{beyond}\nplain = true"), "2:10", "`admin.token` or an `[[admin.users]]` is required");
    let token = "token = \"of-16-characters\"";
    gateway(&format!("{beyond}\n{token}"), "2:10", "tokens would cross the network unprotected");
    gateway("[admin]\nlisten = \"unix:\"", "2:10", "or \"unix:\" and the path of a socket");
    gateway("[admin]\ntoken = \"of-15-character\"", "2:9", "must have at least 16 characters");
    gateway("[admin]\ntoken = [\"of-16-characters\", \"short\"]", "2:30", "must have at least 16 characters");
    gateway("[admin]\ntoken = \"\"", "2:9", "must not be empty");
    gateway("[admin]\nhosts = [\"a.example\", \"b.example:1\"]", "2:23", "without a port");
    gateway("[admin]\ntoken = []", "2:9", "must name at least one secret");
    gateway("[store]\nurl = \"postgres://h/db\"", "2:7", "`store.url` names no user");
    gateway("[store]\nurl = \"postgresql://u@/db\"", "2:7", "`store.url` names no host");
    gateway("[store]\nurl = \"postgres://u@h/db?sslmode=allow\"", "2:7", "is none of disable, prefer, require");
    gateway("[store]\nurl = \"postgres://u:p@p@h/db\"", "2:7", "has more than one @");
    gateway("[store]\nurl = \"mysql://u@h/db\"", "2:7", "the path of a file, or a \"postgres://\" URL");
    gateway("[store]\nurl = \"sqlite://h/db\"", "2:7", "must be \"sqlite:\" and the path of a file");
    gateway("[store]\nurl = \"sqlite:\"", "2:7", "must be \"sqlite:\" and the path of a file");
    gateway("[store]\nurl = \"sqlite:../data/p.db?mode=rwc\"", "2:7", "write \"sqlite:../data/p.db\"");
    gateway("[store]\nurl = \"sqlite:../data/p.db#x\"", "2:7", "write \"sqlite:../data/p.db\"");
    gateway("[store]\nurl = \"sqlite:../my%20data/p.db\"", "2:7", "write \"sqlite:../my data/p.db\"");
    gateway("[store]\nurl = \"sqlite:file:p.db\"", "2:7", "write \"sqlite:p.db\"");
    gateway("[store]\nurl = \"env:\"", "2:7", "must be \"sqlite:\" and the path of a file");
    gateway("[store]\nurl = \"env:PAYBRIDGE_NO_SUCH\"", "2:7", "`store.url` cannot be read: the environment variable");
    gateway("[store]\nurl = \"file:nowhere\"", "2:7", "nowhere does not exist");
    gateway(
        "[store]\nurl = \"env:CARGO_PKG_NAME\"",
        "2:7",
        "the environment variable `CARGO_PKG_NAME` must be \"sqlite:\"",
    );
    gateway("[store]\nconnections = 0", "2:15", "must be a whole number from 1");
    gateway("[store]\nconnections = 201", "2:15", "`store.connections` must be 200 at most");
    gateway("[store]\nkeys = [\"c2hvcnQ=\"]", "2:9", "32 bytes in base64");
    gateway("[engine]\nurl = \"http://v2.example\"", "2:7", "`engine.url` must be an https:// URL, or \"embedded\"");
    gateway("[engine]\nurl = \"v2.example\"", "2:7", "must be an absolute URL (https://host/...), or \"embedded\"");
    gateway("[engine]\nurl = \"https://u:p@v2.example\"", "2:7", "`engine.url` must not contain credentials");
    gateway("[engine]\ntimeout = \"200ms\"", "2:11", r#"`engine.timeout` must be from "1s" to "3650d""#);
    gateway("[engine]\nurl = \"https://v2.example?x\"", "2:7", "`engine.url` must not have a query or a fragment");
    gateway("[engine]\nurl = \"https://v2.example/api/v2/\"", "2:7", "must not end in /api/v2, which is appended");
    gateway("[engine]\nurl = \"https://v2.example\"\ntrust = [\"nowhere.pem\"]", "3:10", "nowhere.pem cannot be read");
    gateway("[engine]\ntimeout = \"0s\"", "2:11", r#"`engine.timeout` must be from "1s" to "3650d""#);
    gateway("[engine]\ncallback_signature = { payload = \"{bdy}\" }", "2:35", "did you mean `{body}`?");
    gateway("[engine]\ncallback_signature = { header = \"X-Request-Id\" }", "2:33", "has a meaning of its own in HTTP");
    gateway("[engine]\ncallback_signature = { encoding = \"hx\" }", "2:35", "did you mean `hex`?");
    for own in ["https://LOCALHOST:8443", "https://localhost:8443/"] {
        gateway(&format!("[engine]\nurl = \"{own}\""), "2:7", "would send every request to itself");
    }
    for (public, own) in
        [("https://p.example", "https://p.example:443/"), ("https://p.example:443/", "https://P.example.")]
    {
        let text = format!("[server]\npublic_url = \"{public}\"\n[engine]\nurl = \"{own}\"");
        gateway(&text, "4:7", "`engine.url` is this gateway's own `server.public_url`");
    }
    gateway("[engine]\ntrust = \"x\"", "2:9", "`engine.trust` must be a list, not a string");
    gateway(
        "[pages]\nlink_lifetime = \"0s\"",
        "2:17",
        "`pages.link_lifetime` must be from \"1s\" to \"3650d\", in whole seconds",
    );
    gateway("[pages]\nreturn_lifetime = \"1500ms\"", "2:19", "in whole seconds");
    gateway("[callbacks]\nfirst_retry = \"2h\"", "2:15", "must not be shorter than");
    gateway("[limits]\nbody = \"64KB\"", "2:8", "must be a size such as \"64KiB\"");
    gateway("[limits]\nbody = 0", "2:8", "must be a size");
    gateway("[limits]\nbody = \"65MiB\"", "2:8", "must be a size");
    gateway("[limits]\nbody = 255", "2:8", "from 256 bytes to 64 MiB");
    gateway("[limits]\nhead = \"1023B\"", "2:8", "from 1024 bytes to 64 MiB");
    gateway("[limits]\nconnections = 0", "2:15", "must be a whole number from 1 to 1000000");
    gateway("[tls]\nclient_ca = \"nowhere.pem\"", "2:13", "nowhere.pem cannot be read: No such file");
    gateway("[tls]\nclient_ca = \"shops/s.toml\"", "2:13", "s.toml holds no PEM certificate");
    gateway("[tls]\ngenerate = true\nclient_ca = \"ca.pem\"", "3:13", "ca.pem cannot be read");
    gateway("[engine]\ntrust = [\"nowhere.pem\"]", "2:10", "`engine.trust`: ");
    gateway("[callbacks]\ntrust = [\"nowhere.pem\"]", "2:10", "`callbacks.trust`: ");
    gateway("[limits]\nconnections = -1", "2:15", "must be a whole number from 1 to 1000000");
    gateway("[limits]\nconnections = 1.5", "2:15", "must be a whole number from 1 to 1000000");
    gateway(
        "[limits]\nunauthenticated_per_ip = { burst = 5 }",
        "2:26",
        "`limits.unauthenticated_per_ip.per_second` is required",
    );
    gateway("[clients]\ntrusted_proxies = [\"10.0.0.1/8\"]", "2:20", "the network is `10.0.0.0/8`");
    gateway("[clients]\ntrusted_proxies = [\"::1\", \"x\"]", "2:27", "`clients.trusted_proxies[1]` must be an address");
    gateway("[sevrer]\nlisten = 1", "1:2", "did you mean `server`?");
    gateway("[server]\ncolour = 1", "2:1", "unknown key `colour` in `server` (known keys: listen, public_url");
    gateway("[server\nlisten = 1", "1:8", "not valid TOML");
    gateway("[server]\n[server]", "2:2", "not valid TOML: duplicate key");
}

#[test]
fn legacy_errors() {
    gateway("[legacy]\ntimeout = \"1s\"", "1:1", "`legacy.url` is required");
    for (url, message) in [
        ("http://v1.example", "`legacy.url` must be an https:// URL"),
        ("https://v1.example/api", "`legacy.url` must be an https:// URL without a path"),
        ("https://localhost:8443/", "`legacy.url` is this gateway's own `server.public_url`"),
    ] {
        gateway(&format!("[legacy]\nurl = \"{url}\""), "2:7", message);
    }
    let url = "[legacy]\nurl = \"https://v1.example\"\n";
    gateway(&format!("{url}reply_limit = 1023"), "3:15", "must be a size");
    gateway(&format!("{url}trust = [\"nowhere.pem\"]"), "3:10", "`legacy.trust`: ");
    for path in ["refunds", "/", "/a//b", "/a/../b", "/a/.", "/a%2fb", "/a?b", "/a;b", "/a b"] {
        gateway(&format!("{url}paths = [\"{path}\"]"), "3:10", "`legacy.paths` must hold paths such as");
    }
    let rules = |paths: &str| format!("{url}paths = [{paths}]");
    gateway(
        &rules("\"/api/v1/payin/status/old\", \"/api/v1/payout/status\""),
        "3:38",
        "is the beginning of /api/v1/payout/status",
    );
    for path in ["/api/v1/payin/", "/API/v1/payOUT", "/api"] {
        let problems = Rules::small().with("gateway.toml", rules(&format!("\"{path}\""))).problems();
        assert!(!problems.is_empty(), "{path}");
        assert!(problems.iter().all(|problem| problem.contains("is the beginning of /api/v1/")), "{problems:?}");
    }
    Rules::small().with("gateway.toml", rules("\"/api/v1/refunds\", \"/api/v1/pay\"")).load();
    for name in ["X-Real-IP", "True_Client_IP", "x-forwarded-for", "X-Caller"] {
        Rules::small().with("gateway.toml", format!("{url}client_address_headers = [\"{name}\"]")).load();
    }
    let headers = |name: &str| format!("{url}client_address_headers = [\"X-Real-IP\", \"{name}\"]");
    for name in ["", "X Real", "X-Real-IP:", "é"] {
        gateway(&headers(name), "3:40", "must be a header name");
    }
    for name in [
        "Host",
        "content_length",
        "Connection",
        "Transfer-Encoding",
        "Forwarded",
        "X-Forwarded-Proto",
        "Via",
        "Cookie",
        "X-Request-Id",
        "X-Original-URL",
        "Authorization",
    ] {
        gateway(&headers(name), "3:40", "`legacy.client_address_headers` cannot name");
    }
}

#[test]
fn payouts_are_not_split_while_the_balance_is_enforced() {
    let text = |percent: &str| format!("[v1]\nmode = \"staged\"\npercent = {percent}\n[balance]\nenforce = true");
    let rules = Rules::small().with("gateway.toml", "[legacy]\nurl = \"https://v1.example\"");
    for percent in ["5", "99.99", "{ payin = 100, payout = 0.01 }"] {
        rules.put("merchants/m.toml", text(percent));
        rules.one_problem("merchants/m.toml:3:11", "payouts cannot be split between here and the old service");
    }
    for percent in ["0", "100", "{ payin = 5 }", "{ payin = 5, payout = 100 }"] {
        rules.put("merchants/m.toml", text(percent));
        rules.load();
    }
}

#[track_caller]
fn shop(text: &str, place: &str, message: &str) {
    Rules::bare().with("shops/s.toml", text).one_problem(&format!("shops/s.toml:{place}"), message);
}

#[test]
fn shop_errors() {
    let statement = |columns: &str, rest: &str| {
        format!("{SHOP}[reconcile]\nkey = \"order_id\"\ncolumns = {{ key = \"a\", amount = \"b\"{columns} }}\n{rest}")
    };
    let status = ", status = \"c\"";
    shop(&statement(status, ""), "6:47", "needs `reconcile.statuses`");
    shop(&statement("", "statuses = { SUCCESS = [\"x\"] }"), "7:12", "needs `reconcile.columns.status`");
    let twice = "statuses = { SUCCESS = [\"x\"], FAILED = [\"x\"] }";
    shop(&statement(status, twice), "7:41", "`reconcile.statuses` has the word `x` twice");
    shop(&statement("", "delimiter = \"::\""), "7:13", "`reconcile.delimiter` must be one character");
    shop("[provider]\nkind = \"sandbox\"", "1:1", "`currency` is required");
    shop("currency = \"EURO\"\n[provider]\nkind = \"sandbox\"", "1:12", "`currency` must be exactly 3 letters");
    shop("currency = \"EUR\"", "1:1", "`provider` is required");
    shop("currency = \"EUR\"\n[provider]\ndelay = \"1s\"", "2:1", "`provider.kind` is required");
    shop(&format!("{SHOP}url = \"https://x\""), "4:7", "`provider.url` does not apply to the sandbox");
    shop(&format!("{SHOP}[payout]\naccount = \"iban\""), "5:11", "must be `card`, `mobile` or { pattern");
    shop(&format!("{SHOP}[payout]\naccount = {{}}"), "5:11", "`payout.account.pattern` is required");
    shop(
        &format!("{SHOP}[payout]\naccount = {{ pattern = \"(?=x)\" }}"),
        "5:23",
        "is no usable regular expression: look-around",
    );
    shop(&format!("{SHOP}[payout]\naccount = {{ pattern = \"(a{{999}}){{999}}\" }}"), "5:23", "regular expression");
    shop(&format!("payment_method = \"two words\"\n{SHOP}"), "1:18", "visible ASCII");
    shop(
        &format!("{SHOP}[payin]\nschema = \"x.json\""),
        "5:10",
        "must be the name of a .json file in the same directory",
    );
    shop(&format!("{SHOP}[payin]\nschema = \"../x.json\""), "5:10", "must be the name of a .json file");
    shop(&format!("{SHOP}[payout]\nbrowser_return = true"), "5:1", "unknown key `browser_return` in `payout`");
}

#[track_caller]
fn merchant(text: &str, place: &str, message: &str) {
    Rules::small().with("merchants/m.toml", text).one_problem(&format!("merchants/m.toml:{place}"), message);
}

#[test]
fn merchant_errors() {
    let key = "[[api_keys]]\nkey = \"k\"\nv2_secret = \"x\"\n";
    merchant("", "1:1", "the merchant's file is empty");
    merchant(&format!("{key}v2 = false"), "4:6", "a key without `v1_secret` that may not call v2 could call nothing");
    merchant(&format!("{key}v2 = {{ payin = true }}"), "4:6", "`api_keys[0].v2` must be true or false, not a table");
    merchant(
        &format!("{key}[shops.s]\nv2 = \"false\""),
        "5:6",
        "`shops.s.v2` must be true, false or { payin = true, payout = false }, not a string (write `false`",
    );
    merchant(&format!("{key}[shops.s]\nv2 = {{ payin = 1 }}"), "5:16", "`shops.s.v2.payin` must be true or false");
    merchant(&format!("{key}[shops.s]\nv2 = {{ payins = true }}"), "5:8", "unknown key `payins` in `shops.s.v2`");
    merchant("# cut short\n\n  # [[api_keys]]\n", "1:1", "the merchant's file is empty");
    merchant("default_shop = \"s\"", "1:16", "`s` is not one of the merchant's `[shops]`");
    merchant("[shops.x]", "1:8", "there is no shop `x`");
    merchant("[shops.s]\npayin = 1", "2:9", "`shops.s.payin` must be true or false");
    merchant("[[api_keys]]\nv2_secret = \"x\"", "1:1", "`api_keys[0].key` is required");
    merchant("[[api_keys]]\nkey = \"k\"", "1:1", "`api_keys[0].v2_secret` is required");
    merchant("[[api_keys]]\nkey = \"\"\nv2_secret = \"x\"", "2:7", "1 to 255 visible ASCII");
    merchant(&format!("{key}shops = [\"s\"]"), "4:10", "`api_keys.shops`: `s` is not one of");
    merchant(&format!("{key}allowed_ips = [\"1.2.3.4/24\"]"), "4:16", "`api_keys[0].allowed_ips[0]` has address bits");
    merchant(&format!("{key}allowed_ips = [\"fe80::1%1\"]"), "4:16", "must be an address or a network");
    merchant(&format!("{key}rate_limit = {{ per_second = 0 }}"), "4:29", "from 1 to 1000000");
    merchant(&format!("{key}{key}"), "5:7", "it is used at ");
    merchant("[v1]\ndialect = \"v2\"", "2:11", "there is no dialect `v2` (did you mean `v1`?)");
    for mode in ["legacy", "shadow", "staged"] {
        let message = format!("\"{mode}\" forwards requests to the old v1 service, and gateway.toml has no `[legacy]`");
        merchant(&format!("[v1]\nmode = \"{mode}\""), "2:8", &message);
    }
    merchant("[v1]\nmode = \"mirror\"", "2:8", "must be `translate` or `legacy` or `shadow` or `staged`");
    for share in ["101", "-1", "5.001", "1e1", "nan", "\"5\"", "[5]", "true"] {
        merchant(
            &format!("[v1]\npercent = {share}"),
            "2:11",
            "must be a number from 0 to 100 with at most two decimals, or { payin = 5, payout = 0 }",
        );
    }
    merchant(
        "[v1]\npercent = { payin = \"5\" }",
        "2:21",
        "`v1.percent.payin` must be a number from 0 to 100 with at most two decimals",
    );
    merchant("[v1]\npercent = { payin = 5, payuot = 0 }", "2:24", "did you mean `payout`?");
    merchant("[v1]\ncallbacks = \"v3\"", "2:13", "must be `v1` or `v2`");
    merchant("[v1]\ncallback_url = \"http://a.example\"", "2:16", "`v1.callback_url` must be an https:// URL");
    merchant(
        "[v1]\ncallbacks = \"v2\"\nallow_http_callbacks = true\ncallback_url = \"http://a.example\"",
        "4:16",
        "must be an https:// URL",
    );
    merchant("[v1]\nreturn_url = \"/done\"", "2:14", "must be an absolute URL");
    merchant("[v1]\nsunset = \"soon\"", "2:10", "must be a date such as");
    merchant("[v1]\nsunset = \"2027-02-30\"", "2:10", "must be a date such as");
    merchant("[v1]\nsunset = \"2026-01-01\"\ndeprecated_since = \"2026-01-02\"", "2:10", "must not be before");
    merchant("[balance]\nenforce = 1", "2:11", "`balance.enforce` must be true or false, not an integer");
    merchant("[balance]\nopening = { EUR = 10.0 }", "2:19", "must be an amount as a string");
    merchant("[balance]\nopening = { EUR = \"0\" }", "2:19", "must be greater than 0");
    merchant("[balance]\nopening = { EUROS = \"1\" }", "2:13", "must be exactly 3 letters");
    merchant("[balance]\nopening = { EUR = \"1\", eur = \"2\" }", "2:24", "names EUR twice");
}

#[test]
fn no_correction_is_suggested_of_names_and_of_long_values() {
    let key = "[[api_keys]]\nkey = \"k\"\nv2_secret = \"x\"\n";
    let name = |name: &str| ("merchants/m.toml", format!("name = \"{name}\"\n{key}"));
    let long = "MerchantOfARatherLongName".repeat(5);
    for (file, text) in [
        name(&long),
        name("My\\tShop"),
        ("shops/s.toml", format!("payment_method = \"{long}\"\n{SHOP}")),
        ("shops/s.toml", format!("payment_method = \"{}\"\n{SHOP}", "a b".repeat(27))),
    ] {
        let refused = Rules::small().with(file, text.as_str()).refused();
        let suggestions: Vec<_> = refused.iter().map(|problem| problem.suggestion.as_deref()).collect();
        assert_eq!(suggestions, [None], "{refused}");
    }
    let refused = Rules::small().with("shops/s.toml", format!("payment_method = \"two words\"\n{SHOP}")).refused();
    assert!(refused.to_string().contains("did you mean \"twowords\"?"), "{refused}");
}

#[test]
fn a_ca_to_be_generated_may_be_missing() {
    let text = "[tls]\ngenerate = true\nclient_ca = \"../certs/ca.pem\"\n[callbacks]\ntrust = [\"../certs/ca.pem\"]\n";
    Rules::small().with("gateway.toml", text).load();
    let rules = Rules::small().with("gateway.toml", "[tls]\nclient_ca = \"nowhere.pem\"");
    load(&rules.path(), UnixMillis(0), None, LoadOptions { check_secrets: false }).unwrap();
}

#[test]
fn api_keys_are_unique_across_merchants() {
    let rules = Rules::small().with("merchants/n.toml", MERCHANT);
    rules.one_problem("merchants/n.toml:2:7", "merchants/m.toml:2:7");
}

#[test]
fn a_wrong_shop_is_not_reported_as_missing() {
    let rules = Rules::small().with("shops/s.toml", "currency = 5\n[provider]\nkind = \"sandbox\"");
    rules.one_problem("shops/s.toml:1:12", "`currency` must be a string, not an integer");
}

#[test]
fn users_of_the_console_differ() {
    let user =
        |name: &str, token: &str| format!("[[admin.users]]\nname = \"{name}\"\nrole = \"viewer\"\ntoken = {token}\n");
    let (one, other) = ("\"one-of-16-or-more\"", "\"other-of-16-or-more\"");
    let ada = user("ada", one);
    gateway(&format!("{ada}{}", user("ada", other)), "6:8", "`ada` is taken by a user above");
    let taken = "the token is taken: it is also a token of the user";
    gateway(&format!("{ada}{}", user("bob", one)), "8:9", &format!("{taken} `ada`"));
    gateway(&format!("{ada}{}", user("bob", &format!("[{other}, {one}]"))), "8:33", taken);
    gateway(&format!("[admin]\ntoken = [{other}, {one}]\n{ada}"), "6:9", &format!("{taken} `token`"));
    gateway(&user("ada", "\"short\""), "4:9", "must have at least 16 characters");
    for name in ["token", "local"] {
        gateway(&user(name, one), "2:8", &format!("`admin.users.name` must not be `{name}`"));
    }
    gateway(&user("cli:root", one), "2:8", "must not begin with `cli:`");
    for name in ["", " ", "a\\nb", "a\\u202Eb", &"a".repeat(101)] {
        gateway(&user(name, one), "2:8", "must be 1 to 100 readable characters");
    }
    gateway(&ada.replace("viewer", "admin"), "3:8", "must be");
    gateway("[[admin.users]]\nname = \"ada\"\nrole = \"viewer\"\n", "1:1", "`admin.users[0].token` is required");
    let many: String =
        (0..257).map(|at| user(&format!("u{at}"), &format!("\"{at}-of-16-or-more-characters\""))).collect();
    let problems = Rules::bare().with("gateway.toml", many).problems();
    assert!(problems.len() == 1 && problems[0].contains("must have 256 users at most"), "{problems:?}");
}

#[test]
fn tokens_that_are_not_read_are_not_compared() {
    let user = |name: &str| {
        format!("[[admin.users]]\nname = \"{name}\"\nrole = \"viewer\"\ntoken = \"env:PAYBRIDGE_NO_SUCH\"\n")
    };
    let text = format!("[admin]\nlisten = \"0.0.0.0:9\"\ntls = true\n{}{}", user("ada"), user("bob"));
    let rules = Rules::bare().with("gateway.toml", text);
    assert_eq!(rules.problems().len(), 2);
    let loaded = load(&rules.path(), UnixMillis(0), None, LoadOptions { check_secrets: false }).unwrap();
    assert_eq!(loaded.gateway.admin.users.len(), 2);
}

#[test]
fn variables_are_named_when_their_values_are_wrong() {
    for (key, expected) in [
        ("[server]\nlisten", "must be an IP address and port such as"),
        ("[server]\npublic_url", "must be an"),
        ("[admin]\nlisten", "must be an IP address and port such as"),
    ] {
        let gateway = |text: &str, message: &str| {
            let place = if key.ends_with("url") { "gateway.toml:2:14" } else { "gateway.toml:2:10" };
            Rules::small().with("gateway.toml", text).one_problem(place, message);
        };
        let name = key.replace('[', "").replace("]\n", ".");
        let wrong = format!("`{name}`: the environment variable `CARGO_PKG_NAME` {expected}");
        gateway(&format!("{key} = \"env:CARGO_PKG_NAME\""), &wrong);
        let missing = format!("`{name}`: the environment variable `PAYBRIDGE_NO_SUCH` is not set");
        gateway(&format!("{key} = \"env:PAYBRIDGE_NO_SUCH\""), &missing);
        gateway(&format!("{key} = \"env:\""), "must name an environment variable after");
        let rules = Rules::small().with("gateway.toml", format!("{key} = \"env:PAYBRIDGE_NO_SUCH\""));
        let unread = load(&rules.path(), UnixMillis(0), None, LoadOptions { check_secrets: false }).unwrap();
        assert_eq!(unread.warnings, Vec::new(), "{key}");
    }
}

#[test]
fn the_number_of_reported_problems_is_limited() {
    let rules = Rules::small().with("merchants/n.toml", "x = 1\n");
    assert_eq!(rules.refused().len(), 1);
    let unknown = (0..250).map(|n| format!("key{n} = 1\n")).collect::<Vec<_>>().concat();
    let rules = Rules::small().with("merchants/n.toml", &unknown);
    let problems = rules.problems();
    assert_eq!(problems.len(), 101);
    assert_eq!(problems[100], "merchants/n.toml:251:1: 150 more problems are not shown");
    let rendered = rules.refused().rendered();
    assert!(rendered.len() < 100 << 10, "{} bytes", rendered.len());
    for n in 0..20 {
        rules.put(&format!("merchants/n{n:02}.toml"), &unknown);
    }
    let problems = rules.problems();
    assert_eq!(problems.len(), 1001);
    assert!(problems[1000].ends_with(": 4250 more problems are not shown"), "{}", problems[1000]);
}
