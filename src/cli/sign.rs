//! `paybridge sign`: prints the headers that authenticate a request.

use std::io::{self, Write};

use http::{HeaderName, Method};

use super::args::{InterfaceArg, Sign};
use super::input;
use super::outcome::{CliError, ExitOutcome};
use crate::auth::signatures::{V1Target, sign_v1_headers, sign_v2};
use crate::domain::{ShopCode, UnixMillis};
use crate::json::Node;
use crate::rules::{Endpoint, EngineRules, KeyEntry, RuleSet};
use crate::wire::members::read_object;

/// Prints the authentication headers of a request, one per line. The body is read only if the method has one.
///
/// # Errors
/// The key is unknown or has no secret for the interface, a GET has a body or no target, or a file cannot be read.
pub fn run(rules: &RuleSet, args: &Sign, now: UnixMillis, out: &mut dyn Write, err: &mut dyn Write) -> ExitOutcome {
    let key = args.key.as_str();
    let entry = rules.api_key(key).ok_or_else(|| CliError::failed(format!("no merchant has the API key {key:?}")))?;
    let secrets = match args.interface {
        InterfaceArg::V1 => &entry.api_key().v1_secrets,
        InterfaceArg::V2 => &entry.api_key().v2_secrets,
    };
    let Some(secrets) = secrets else {
        let (name, merchant) = (name(args.interface), &entry.merchant.id);
        return Err(CliError::failed(format!("the API key {key:?} of {merchant} has no {name}_secret")));
    };
    let bodiless = matches!(args.method, Method::GET | Method::HEAD);
    let target = match args.interface {
        InterfaceArg::V1 => Some(v1_target(args, entry)?),
        InterfaceArg::V2 => None,
    };
    // Without a body, standard input is not read. A file is read, to report an error if it is not empty.
    let body = if bodiless && args.file.is_none() {
        Vec::new()
    } else {
        input::read(args.file.as_deref(), rules.gateway.limits.body, err)?
    };
    if bodiless && !body.is_empty() {
        return Err(CliError::Usage(format!("a {} has no body: omit FILE", args.method)));
    }
    let Some(target) = target else {
        warn_if_not_enabled(rules, args, entry, &body, err)?;
        writeln!(out, "X-Api-Key: {key}")?;
        writeln!(out, "X-Signature: {}", sign_v2(secrets.signing(), &body))?;
        return Ok(());
    };
    let headers = v1_headers(entry, secrets.signing(), now, &args.method, &target, &body);
    for (name, value) in headers {
        writeln!(out, "{name}: {value}")?;
    }
    Ok(())
}

/// Warns of a v2 request that the key, or the shop that its body names, is not enabled for.
fn warn_if_not_enabled(
    rules: &RuleSet,
    args: &Sign,
    entry: &KeyEntry,
    body: &[u8],
    err: &mut dyn Write,
) -> io::Result<()> {
    let merchant = &entry.merchant;
    if !entry.api_key().v2 {
        let (key, id) = (&args.key, &merchant.id);
        writeln!(err, "warning: the API key {key:?} of {id} has `v2 = false`: the request will get 401")?;
    }
    if args.method != Method::POST || rules.gateway.engine != EngineRules::Embedded {
        return Ok(());
    }
    // A body that is no JSON object is signed like any other one.
    let Ok(body) = read_object(body) else { return Ok(()) };
    let named = match body.get("method").map(|value| &value.node) {
        Some(Node::String(code)) => Some(code.as_ref()),
        Some(_) => return Ok(()),
        None => merchant.default_shop.as_ref().map(ShopCode::as_str),
    };
    let Some((code, access)) = named.and_then(|code| merchant.shops.get_key_value(code)) else { return Ok(()) };
    let is_for = |path: &str| args.target.as_ref().is_none_or(|target| target.path() == path);
    let paths = [("/api/v2/deposits", access.v2.payin), ("/api/v2/withdrawals", access.v2.payout)];
    for (path, _) in paths.into_iter().filter(|(path, enabled)| !enabled && is_for(path)) {
        let id = &merchant.id;
        writeln!(err, "warning: shop {code} of {id} is not enabled for POST {path}: a new order will get 400")?;
    }
    Ok(())
}

const fn name(interface: InterfaceArg) -> &'static str {
    match interface {
        InterfaceArg::V1 => "v1",
        InterfaceArg::V2 => "v2",
    }
}

/// Returns the requested target, else the path for payins in the merchant's dialect.
fn v1_target(args: &Sign, entry: &KeyEntry) -> Result<String, CliError> {
    if let Some(target) = &args.target {
        return Ok(target.as_str().to_owned());
    }
    payin_path(entry).filter(|(method, _)| **method == args.method).map(|(_, path)| path.to_owned()).ok_or_else(|| {
        let example = "--target '/api/v1/payin/status?external_id=o-1'";
        CliError::Usage(format!("a v1 signature covers the target: set it, for example {example}"))
    })
}

/// Returns method and path of a deposit in the dialect of the key's merchant.
pub(super) fn payin_path(entry: &KeyEntry) -> Option<(&Method, &str)> {
    let routes = &entry.merchant.v1.dialect.routes;
    routes.iter().find(|(endpoint, ..)| *endpoint == Endpoint::Payin).map(|(_, method, path)| (method, path.as_ref()))
}

/// Returns the v1 authentication headers of a request, by the recipe of the key's merchant.
pub(super) fn v1_headers(
    entry: &KeyEntry,
    secret: &crate::domain::Secret,
    now: UnixMillis,
    method: &Method,
    target: &str,
    body: &[u8],
) -> [(String, String); 3] {
    let recipe = &entry.merchant.v1.dialect.signature;
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    let target = V1Target { method: method.as_str(), path, query };
    sign_v1_headers(recipe, &entry.api_key().key, secret, now, &target, body).map(|(name, value)| (shown(&name), value))
}

/// Returns a header name in its usual spelling, such as `X-Api-Key`.
pub(super) fn shown(name: &HeaderName) -> String {
    let capital = |word: &str| {
        let mut letters = word.chars();
        letters.next().map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + letters.as_str())
    };
    name.as_str().split('-').map(capital).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;
    use crate::rules::{LoadOptions, load};

    const NOW: UnixMillis = UnixMillis(1_772_409_600_007);

    struct Fixture {
        directory: tempfile::TempDir,
        rules: RuleSet,
    }

    fn fixture() -> Fixture {
        let directory = tempfile::tempdir().unwrap();
        let files = [
            ("gateway.toml", ""),
            (
                "dialects/odd.toml",
                "[signature]\ntimestamp = \"X-Time\"\ntimestamp_format = \"rfc3339\"\napi_key = \"X-Key\"\n\
                 [routes]\npayin = \"POST /odd/in\"\npayout = \"POST /odd/out\"\npayin_status = \"GET /odd/in\"\n\
                 payout_status = \"GET /odd/out\"\nbalance = \"GET /odd/b\"\ntransactions = \"GET /odd/t\"",
            ),
            (
                "merchants/acme.toml",
                "[[api_keys]]\nkey = \"both\"\nv1_secret = \"v1-secret\"\nv2_secret = [\"v2-secret\", \"old\"]\n\
                 [[api_keys]]\nkey = \"only-v2\"\nv2_secret = \"v2-secret\"",
            ),
            (
                "merchants/odd.toml",
                "[[api_keys]]\nkey = \"odd\"\nv1_secret = \"x\"\nv2_secret = \"y\"\n[[api_keys]]\nkey = \"v1-alone\"\n\
                 v1_secret = \"x\"\nv2_secret = \"y\"\nv2 = false\n[v1]\ndialect = \"odd\"",
            ),
            (
                "merchants/part.toml",
                "default_shop = \"half\"\n[[api_keys]]\nkey = \"part\"\nv2_secret = \"y\"\n\
                 [shops.half]\nv2 = { payin = false }\n[shops.none]\nv2 = false",
            ),
            ("shops/half.toml", "currency = \"EUR\"\n[provider]\nkind = \"sandbox\""),
            ("shops/none.toml", "currency = \"EUR\"\n[provider]\nkind = \"sandbox\""),
            ("../body.json", r#"{"a":1}"#),
        ];
        let root = directory.path().join("rules");
        for (name, text) in files {
            let path = root.join(name);
            fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let rules = load(&root, NOW, None, LoadOptions::default()).unwrap();
        Fixture { directory, rules }
    }

    impl Fixture {
        fn args(&self, interface: InterfaceArg, key: &str) -> Sign {
            let file = Some(self.directory.path().join("body.json"));
            let rules = super::super::args::Rules { rules: PathBuf::new() };
            Sign { interface, rules, key: key.to_owned(), method: Method::POST, target: None, file }
        }

        fn sign(&self, args: &Sign) -> Result<String, CliError> {
            let mut out = Vec::new();
            run(&self.rules, args, NOW, &mut out, &mut Vec::new()).map(|()| String::from_utf8(out).unwrap())
        }
    }

    #[test]
    fn v1_headers_follow_the_recipe() {
        let fixture = fixture();
        // Computed with Python's hmac over `1772409600.POST./api/v1/payin.{"a":1}`.
        assert_eq!(
            fixture.sign(&fixture.args(InterfaceArg::V1, "both")).unwrap(),
            "X-Api-Key: both\nX-Timestamp: 1772409600\n\
             X-Signature: 49309dce672932d9dd244e357c41b7bddbabacb520f3b44918fba5389b7ef690\n"
        );
        let target = "/api/v1/payin/status?external_id=1".parse().ok();
        let get = Sign { method: Method::GET, target, file: None, ..fixture.args(InterfaceArg::V1, "both") };
        // Over `1772409600.GET./api/v1/payin/status.`.
        assert!(
            fixture
                .sign(&get)
                .unwrap()
                .ends_with("X-Signature: 6eca1c3bc958160c0a9f94f85334c4ba17b71cc9d15b563baa0394977b708053\n")
        );
        let odd = fixture.sign(&fixture.args(InterfaceArg::V1, "odd")).unwrap();
        assert!(odd.starts_with("X-Key: odd\nX-Time: 2026-03-02T00:00:00.007Z\nX-Signature: "), "{odd}");
    }

    #[test]
    fn v2_headers_cover_only_the_body() {
        let fixture = fixture();
        let expected =
            "X-Api-Key: both\nX-Signature: d6b5c48d5ac1b6ef050ff39e93ddce247c4c8155cc901178ff466612b0882ce1\n";
        assert_eq!(fixture.sign(&fixture.args(InterfaceArg::V2, "both")).unwrap(), expected);
        let get = Sign { method: Method::GET, file: None, ..fixture.args(InterfaceArg::V2, "both") };
        let without_body =
            "X-Api-Key: both\nX-Signature: c8de7a2e2bb6aa0ea5dfdf4577fb2e9b8b2de9fc86bfb5b706bf6c4425521ce6\n";
        assert_eq!(fixture.sign(&get).unwrap(), without_body);
        let empty =
            Sign { method: Method::GET, file: Some("/dev/null".into()), ..fixture.args(InterfaceArg::V2, "both") };
        assert_eq!(fixture.sign(&empty).unwrap(), without_body);
    }

    #[test]
    fn a_request_that_v2_is_not_enabled_for_is_signed_with_a_warning() {
        let fixture = fixture();
        let warnings = |key: &str, target: Option<&str>, body: &str| {
            let file = fixture.directory.path().join("other.json");
            fs::write(&file, body).unwrap();
            let target = target.map(|target| target.parse().unwrap());
            let args = Sign { target, file: Some(file), ..fixture.args(InterfaceArg::V2, key) };
            let (mut out, mut err) = (Vec::new(), Vec::new());
            run(&fixture.rules, &args, NOW, &mut out, &mut err).unwrap();
            assert!(String::from_utf8(out).unwrap().contains("X-Signature: "));
            String::from_utf8(err).unwrap()
        };
        let deposits =
            "warning: shop half of part is not enabled for POST /api/v2/deposits: a new order will get 400\n";
        let withdrawals = deposits.replace("deposits", "withdrawals").replace("half", "none");
        let none = deposits.replace("half", "none") + &withdrawals;
        for (key, target, body, expected) in [
            ("part", None, "{}", deposits),
            ("part", None, r#"{"method":"half"}"#, deposits),
            ("part", Some("/api/v2/withdrawals"), r#"{"method":"half"}"#, ""),
            ("part", Some("/api/v2/withdrawals"), r#"{"method":"none"}"#, &withdrawals),
            ("part", None, r#"{"method":"none"}"#, &none),
            ("part", None, r#"{"method":7}"#, ""),
            ("part", None, r#"{"method":"unknown"}"#, ""),
            ("part", None, "no JSON", ""),
            ("both", None, "{}", ""),
            (
                "v1-alone",
                None,
                "{}",
                "warning: the API key \"v1-alone\" of odd has `v2 = false`: the request will get 401\n",
            ),
        ] {
            assert_eq!(warnings(key, target, body), expected, "{key} {target:?} {body}");
        }
    }

    #[test]
    fn signing_errors_do_not_show_secrets() {
        let fixture = fixture();
        let post = |interface, key| fixture.args(interface, key);
        let cases = [
            (post(InterfaceArg::V1, "none"), false, "no merchant has the API key \"none\""),
            (post(InterfaceArg::V1, "only-v2"), false, "the API key \"only-v2\" of acme has no v1_secret"),
            (Sign { method: Method::GET, ..post(InterfaceArg::V2, "both") }, true, "a GET has no body: omit FILE"),
            (Sign { method: Method::GET, file: None, ..post(InterfaceArg::V1, "both") }, true, "set it"),
        ];
        for (args, usage, expected) in cases {
            let stop = fixture.sign(&args).unwrap_err();
            assert_eq!(matches!(stop, CliError::Usage(_)), usage, "{stop:?}");
            assert!(
                matches!(&stop, CliError::Usage(text) | CliError::Failed(text) if text.contains(expected)),
                "{stop:?}"
            );
            assert!(!format!("{stop:?}").contains("-secret"), "{stop:?}");
        }
    }
}
