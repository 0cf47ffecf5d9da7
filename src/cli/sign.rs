//! `paybridge sign`: prints the headers that authenticate a request.

use std::io::Write;

use http::{HeaderName, Method};

use super::args::{InterfaceArg, Sign};
use super::input;
use super::outcome::{CliError, ExitOutcome};
use crate::auth::signatures::{V1Target, sign_v1_headers, sign_v2};
use crate::domain::UnixMillis;
use crate::rules::{Endpoint, KeyEntry, RuleSet};

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
                "[[api_keys]]\nkey = \"odd\"\nv1_secret = \"x\"\nv2_secret = \"y\"\n[v1]\ndialect = \"odd\"",
            ),
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
