//! Dialects, alone and together.

use http::Method;

use super::*;
use crate::domain::{Algorithm, Encoding, Segment, TimestampFormat};
use crate::rules::Endpoint;

#[track_caller]
fn dialect(text: &str, place: &str, message: &str) {
    Rules::small().with("dialects/d.toml", text).one_problem(&format!("dialects/d.toml:{place}"), message);
}

#[test]
fn a_complete_dialect() {
    let text = "[signature]\napi_key = \"Key\"\nsignature = \"Sign\"\ntimestamp = \"Time\"\ntimestamp_format = \"unix-ms\"\n\
        window = \"30s\"\npayload = \"{body}\"\nalgorithm = \"hmac-sha512\"\nencoding = \"base64\"\n\
        [routes]\npayin = \"POST /shop/in\"\npayout = \"POST /shop/out\"\npayin_status = \"GET /shop/in\"\n\
        payout_status = \"GET /shop/out\"\nbalance = \"GET /shop/balance\"\ntransactions = \"GET /shop/list\"\n\
        [statuses]\nPENDING = \"new\"\nSUCCESS = \"done\"\nFAILED = \"failed\"\n\
        [replies]\npayin = '{\"id\": {{ transaction_id }}}'\n[requests]\nempty_list_is_object = true\n";
    let rules = Rules::small().with("dialects/d.toml", text).load();
    let dialect = &rules.dialects["d"];
    let recipe = &dialect.signature;
    assert_eq!((recipe.api_key.as_str(), recipe.timestamp.as_str()), ("key", "time"));
    assert_eq!((recipe.timestamp_format, recipe.algorithm), (TimestampFormat::UnixMillis, Algorithm::HmacSha512));
    assert_eq!((recipe.encoding, &*recipe.payload), (Encoding::Base64, &[Segment::Body][..]));
    assert_eq!(&*dialect.statuses.success, "done");
    assert!(dialect.empty_list_is_object);
    let values = serde_json::json!({ "transaction_id": "7" });
    assert_eq!(dialect.replies.render("payin", &values).unwrap().unwrap(), "{\"id\": \"7\"}");
    assert!(dialect.replies.render("payout", &values).is_none());
    let routes = &rules.v1_routes["/shop/in"];
    assert_eq!(routes.len(), 2);
    let get = routes.iter().find(|route| route.method == Method::GET).unwrap();
    assert_eq!(get.endpoints, [("d".into(), Endpoint::PayinStatus)]);
    assert_eq!(get.api_key.as_str(), "key");
    assert!(rules.v1_routes.contains_key("/api/v1/payin"), "the merchant uses v1");
}

#[test]
fn a_route_that_cannot_be_read_is_one_problem() {
    let text = "[signature]\nsignature = \"Sign\"\n[routes]\npayin = \"POST /d/payin\"\npayout = \"POST /d/payout\"\n\
        payin_status = \"GET /d/payin\"\npayout_status = \"GET /d/payout\"\ntransactions = \"GET /d/list\"\n\
        balance = \"GET balance\"\n";
    Rules::small().with("dialects/d.toml", text).one_problem("dialects/d.toml:9:11", "balance");
}

#[test]
fn dialects_that_share_routes_share_headers() {
    let rules = Rules::small().with("dialects/d.toml", "[statuses]\nPENDING = \"new\"").load();
    let endpoints = &rules.v1_routes["/api/v1/payin"][0].endpoints;
    assert_eq!(endpoints, &[("d".into(), Endpoint::Payin), ("v1".into(), Endpoint::Payin)]);
    Rules::small()
        .with("dialects/d.toml", "[signature]\nsignature = \"Sign\"")
        .one_problem("dialects/d.toml:2:13", "the dialects `d` and `v1` share the route POST /api/v1/payin");
    let external = "[signature]\ntimestamp = \"At\"\n[routes]\npayin = \"POST /a/in\"\npayout = \"POST /a/out\"\n\
        payin_status = \"GET /a/in\"\npayout_status = \"GET /a/out\"\nbalance = \"GET /a/b\"\ntransactions = \"GET /a/t\"";
    let used = |text: String| Rules::small().with("dialects/v1.toml", "").with("dialects/d.toml", text);
    used(external.to_owned()).load();
    // A path with two endpoints of the same method is shared too.
    used(external.replace("GET /a/b", "GET /api/v1/transactions"))
        .one_problem("dialects/d.toml:2:13", "so their `[signature]` must name the same headers");
    used(external.replace("GET /a/b", "GET /api/v1/transactions").replace("\"At\"", "\"x-TIMESTAMP\"")).load();
    // With different methods it is not shared.
    let rules = used(external.replace("GET /a/b", "GET /api/v1/payin")).load();
    let routes = &rules.v1_routes["/api/v1/payin"];
    let found: Vec<_> = routes.iter().map(|route| (route.method.as_str(), &*route.endpoints[0].0)).collect();
    assert_eq!(found, [("GET", "d"), ("POST", "v1")]);
    // A built-in v1 without a file and without a merchant takes no paths.
    let merchant = format!("{MERCHANT}[v1]\ndialect = \"d\"");
    let rules = Rules::small().with("dialects/d.toml", "[signature]\nsignature = \"Sign\"");
    assert_eq!(rules.with("merchants/m.toml", merchant).load().v1_routes.len(), 6);
}

#[test]
fn everything_wrong_in_a_signature_is_shown_in_one_run() {
    for (other, places) in [
        ("algorithm = \"md5\"", &["5:13"][..]),
        ("encoding = 5", &["5:12"]),
        ("window = \"soon\"", &["5:10"]),
        ("window = \"0s\"", &["5:10"]),
        ("timestamp_format = \"iso\"", &["5:20"]),
        ("payload = \"{timestamp}\"", &["5:11"]),
        ("payload = \"{nonce}{body}{digest}\"", &["5:12", "5:25"]),
        ("payload = 5", &["5:11"]),
        ("encodng = \"hex\"", &["5:1"]),
    ] {
        let text = format!("[signature]\napi_key = \"Host\"\nsignature = \"Sign\"\ntimestamp = \"sign\"\n{other}\n");
        let problems = Rules::small().with("dialects/d.toml", text).problems();
        let expected: Vec<_> = ["2:11", "4:13"].iter().chain(places).collect();
        assert_eq!(problems.len(), expected.len(), "{other}: {problems:#?}");
        for (problem, place) in problems.iter().zip(expected) {
            assert!(problem.starts_with(&format!("dialects/d.toml:{place}: ")), "{other}: {place}: {problem}");
        }
    }
    // Conflicts with other dialects are shown too.
    let text = "[signature]\nsignature = \"Sign\"\npayload = \"{timestamp}\"";
    let problems = Rules::small().with("dialects/d.toml", text).problems();
    assert!(problems.len() == 2 && problems[0].contains("share the route"), "{problems:#?}");
}

#[test]
fn a_header_that_cannot_be_read_is_one_problem() {
    dialect("[signature]\napi_key = \"X Key\"\nsignature = \"X-Api-Key\"", "2:11", "must be a header name");
    dialect("[signature]\nsignature = \"X-Timestamp\"", "2:13", "must be three different headers");
    dialect("[signature]\napi_key = \"A\"\nsignature = \"B\"\ntimestamp = \"b\"", "4:13", "must be three different");
}

#[test]
fn problems_of_single_dialects() {
    dialect("[signature]\napi_key = \"X Key\"", "2:11", "must be a header name");
    dialect("[signature]\ntimestamp = \"x-signature\"", "2:13", "must be three different headers");
    for name in [
        "Host",
        "content-length",
        "X-Request-Id",
        "Traceparent",
        "X-Forwarded-For",
        "TE",
        "Cookie",
        "ACCEPT",
        "user-agent",
    ] {
        dialect(&format!("[signature]\nsignature = \"{name}\""), "2:13", "has a meaning of its own in HTTP");
    }
    for name in ["", "X Key", "X-Schlüssel", "X-Key:", "X-Key\\n"] {
        dialect(&format!("[signature]\nsignature = \"{name}\""), "2:13", "must be a header name");
    }
    dialect("[signature]\npayload = \"{timestamp}\"", "2:11", "must contain `{body}`");
    dialect("[signature]\npayload = \"{body}{x}\"", "2:18", "unknown placeholder `{x}`; known are {timestamp}, ");
    dialect("[signature]\npayload = '''\n{Method}\n{body}'''", "3:1", "(did you mean `{method}`?)");
    dialect("[signature]\npayload = \"\\u007Bx}{body}\"", "2:11", "unknown placeholder `{x}`");
    dialect("[signature]\nwindow = \"0s\"", "2:10", "must be from \"1ms\" to");
    dialect("[signature]\nalgorithm = \"md5\"", "2:13", "must be `hmac-sha256` or `hmac-sha512`");
    dialect("[routes]\npayin = \"PUT /x\"", "2:9", "must be a method and a path");
    dialect("[routes]\npayin = \"GET /x\"", "2:9", "`routes.payin` must be a POST route");
    dialect("[routes]\nbalance = \"POST /x\"", "2:11", "`routes.balance` must be a GET route");
    for path in ["x", "/", "//x", "/x//y", "/x/../y", "/x%20", "/x y", "/x#y", "https://a.example/x"] {
        dialect(&format!("[routes]\nbalance = \"GET {path}\""), "2:11", "must be a method and a path");
    }
    dialect("[routes]\nbalance = \"GET /x?y\"", "2:11", "must be a method and a path");
    for own in ["/api/v2", "/api/v2/x", "/pay/1", "/return", "/relay/x", "/sandbox/1", "/providers/x"] {
        let text = format!("[routes]\nbalance = \"GET {own}\"");
        dialect(&text, "2:11", "belongs to the gateway itself");
    }
    dialect(
        "[routes]\npayin = \"POST /a\"\npayout = \"POST /a\"",
        "3:10",
        "`routes.payout` is the same as `routes.payin`",
    );
    dialect("[statuses]\nPENDNG = \"x\"", "2:1", "did you mean `PENDING`?");
    dialect("[statuses]\nPENDING = \"FAILED\"", "1:1", "must differ");
    dialect("[statuses]\nPENDING = \"\"", "2:11", "1 to 64 bytes");
    dialect("[replies]\npayin = \"{{ x }}\"", "2:13", "undefined");
    dialect("[replies]\npayin = '''\n{\n  \"a\": {{ x }}\n}'''", "4:11", "undefined");
    dialect("[replies]\npayin = \"{{\"", "2:10", "is not a usable template");
    dialect("[replies]\npayin = \"ok\"", "2:9", "does not render JSON");
    dialect("[replies]\nerror = '''\n{% if nothing %}1{% else %}2{% endif %}'''", "3:7", "undefined");
    let lost = "[statuses]\nFAILED = \"lost\"\n[replies]\nstatus = '{% if status == \"lost\" %}{{ x }}{% endif %}1'";
    dialect(lost, "4:39", "undefined");
    dialect("[replies]\nrefund = \"1\"", "2:1", "unknown key `refund` in `replies`");
    assert!(Rules::small().with("dialects/d.toml", "[routes]\nbalance = \"GET /api/v20\"").try_load().is_ok());
}
