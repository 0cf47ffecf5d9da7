//! The `OpenAPI` document of the v2 interface against a running gateway: its examples, the statuses and headers it names, and
//! what schemathesis finds when it makes requests from it.
//!
//! schemathesis is a Python program (`tests/it/schemathesis/requirements.txt`). It is looked for in `target/schemathesis`, a
//! virtual environment, and in `PATH`; where it is missing its tests say so and pass, unless `PAYBRIDGE_REQUIRE_TOOLS=1`.
//! `PAYBRIDGE_SCHEMATHESIS_EXAMPLES` sets how many cases each operation gets.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::request::{ACME, ACME_LIMITED, ACME_NOWHERE};
use crate::support::stored::Create;
use crate::support::{self, Gateway, Key, Reply, Request, Rules, deposit, text, withdrawal};

/// Every run makes the same requests.
const SEED: &str = "20261121";

const DEPOSITS: &str = "/api/v2/deposits";
const WITHDRAWALS: &str = "/api/v2/withdrawals";
const TRANSACTION: &str = "/api/v2/transactions/{transaction_id}";

fn document() -> Value {
    serde_json::from_str(include_str!("../../docs/openapi.json")).unwrap()
}

/// Follows a reference inside the document.
fn resolved<'d>(document: &'d Value, value: &'d Value) -> &'d Value {
    match value["$ref"].as_str() {
        Some(reference) => document.pointer(reference.strip_prefix('#').unwrap()).expect("what is referred to"),
        None => value,
    }
}

/// Whether the document knows this reply of an operation: its status, body and headers.
#[track_caller]
fn assert_documented(document: &Value, path: &str, method: &str, reply: &Reply) {
    let response = &document["paths"][path][method]["responses"][reply.status.to_string()];
    assert!(!response.is_null(), "{method} {path} answers {}, which is not documented", reply.status);
    let response = resolved(document, response);
    let schema = &response["content"]["application/json"]["schema"];
    assert_valid(document, schema, &reply.json());
    let named = response["headers"].as_object().unwrap();
    for (name, header) in named {
        let header = resolved(document, header);
        let value = reply.header(name);
        let value =
            if header["schema"]["type"] == "integer" { json!(value.parse::<i64>().unwrap()) } else { json!(value) };
        assert_valid(document, &header["schema"], &value);
    }
    for name in ["Retry-After", "Allow"] {
        assert_eq!(reply.all(name).is_empty(), !named.contains_key(name), "{name} at {}", reply.status);
    }
}

#[track_caller]
fn assert_valid(document: &Value, schema: &Value, value: &Value) {
    let mut root = schema.clone();
    root["components"] = document["components"].clone();
    let validator = jsonschema::options().should_validate_formats(true).build(&root).expect("a schema");
    let errors: Vec<String> = validator.iter_errors(value).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{value}: {errors:?}");
}

#[tokio::test]
async fn every_binary_serves_the_document() {
    let gateway = Gateway::start(&Rules::default());
    let (status, body) = gateway.admin_get("/api/openapi.json").unwrap();
    assert_eq!((status, body.as_str()), (200, include_str!("../../docs/openapi.json")));
}

#[tokio::test]
async fn every_example_is_accepted_and_linked_to_its_status() {
    let document = document();
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    for path in [DEPOSITS, WITHDRAWALS] {
        let operation = &document["paths"][path]["post"];
        let content = &operation["requestBody"]["content"]["application/json"];
        let examples = content["examples"].as_object().unwrap();
        assert_eq!(examples.len(), 2, "{path}");
        for (name, example) in examples {
            let body = &example["value"];
            assert_valid(&document, &content["schema"], body);
            let reply = client.send(&Request::v2_post(&ACME, path, body.to_string())).await;
            assert_eq!(reply.status, 200, "{path} {name}: {}", reply.text());
            assert_documented(&document, path, "post", &reply);
            let created = reply.json();
            let link = &operation["responses"]["200"]["links"]["status"];
            assert_eq!(link["operationId"], document["paths"][TRANSACTION]["get"]["operationId"]);
            let place = text(&link["parameters"], "transaction_id").strip_prefix("$response.body#").unwrap();
            let id = created.pointer(place).and_then(Value::as_str).expect("the link's value");
            let status = client.send(&Request::status(&ACME, id)).await.expect(200);
            assert_documented(&document, TRANSACTION, "get", &status);
        }
    }
}

/// Examples of single members, put into a good body.
#[tokio::test]
async fn every_example_of_a_member_is_accepted() {
    let document = document();
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let mut tried = 0;
    for (path, schema, create) in
        [(DEPOSITS, "DepositRequest", deposit as fn(&str) -> Value), (WITHDRAWALS, "WithdrawalRequest", withdrawal)]
    {
        let members = document["components"]["schemas"][schema]["properties"].as_object().unwrap();
        for (name, member) in members {
            let examples =
                resolved(&document, member)["examples"].as_array().unwrap_or_else(|| panic!("no example of {name}"));
            for example in examples {
                tried += 1;
                let body = support::bodies::with(create(&format!("member-{tried}")), name, Some(example.clone()));
                let reply = client.send(&Request::v2_post(&ACME, path, body.to_string())).await;
                assert_eq!(reply.status, 200, "{path} {name} {example}: {}", reply.text());
            }
        }
    }
    assert!(tried > 15, "{tried}");
}

/// A member that the document does not have is refused by name; those that it has are never called unknown.
#[tokio::test]
async fn members_are_known_exactly_where_the_document_has_them() {
    const ELSEWHERE: [&str; 8] = [
        "return_user_url",
        "merchant_user_ip",
        "merchant_user_id",
        "recipient_account",
        "email",
        "external_id",
        "paymentData",
        "Amount",
    ];
    let document = document();
    let gateway = Gateway::start(&Rules::default());
    let client = gateway.client();
    let members = |schema: &str| -> BTreeSet<String> {
        document["components"]["schemas"][schema]["properties"].as_object().unwrap().keys().cloned().collect()
    };
    let (of_deposits, of_withdrawals) = (members("DepositRequest"), members("WithdrawalRequest"));
    let all = of_deposits.union(&of_withdrawals).map(String::as_str).chain(ELSEWHERE);
    for name in all {
        for (path, create, known) in
            [(DEPOSITS, Create::Deposit, &of_deposits), (WITHDRAWALS, Create::Withdrawal, &of_withdrawals)]
        {
            let good = if create == Create::Deposit { deposit("never") } else { withdrawal("never") };
            // An array is the value that no member takes, so that nothing is created.
            let body = support::bodies::with(good, name, Some(json!([])));
            let reply = client.send(&Request::v2_post(&ACME, path, body.to_string())).await.expect(400);
            let unknown = reply.message() == format!("{name}: is not a known field");
            assert_eq!(unknown, !known.contains(name), "{path} {name}: {}", reply.message());
        }
    }
}

/// How a status can be provoked from outside.
fn provoking(path: &str, post: bool) -> Vec<(u16, Request)> {
    let create = if path == DEPOSITS { deposit } else { withdrawal };
    let signed = |key: &Key| {
        if post { Request::v2_post(key, path, create("provoking").to_string()) } else { Request::status(key, "1") }
    };
    let good = || signed(&ACME);
    let method = if post { "GET" } else { "POST" };
    let mut all = vec![
        (401, good().replace("X-Signature", Some(&"0".repeat(64)))),
        (401, good().replace("X-Api-Key", None)),
        (403, signed(&ACME_NOWHERE)),
        (405, Request { method: method.to_owned(), ..good() }),
        (415, good().header("Content-Encoding", "identity")),
        (400, good().header("X-Api-Key", "again")),
        (431, good().header("X-Long", &"x".repeat(20_000))),
        (429, signed(&ACME_LIMITED)),
    ];
    if post {
        let changed = support::bodies::with(create("provoking"), "amount", Some(json!(3)));
        all.push((200, good()));
        all.push((409, Request::v2_post(&ACME, path, changed.to_string())));
        all.push((400, Request::v2_post(&ACME, path, "[]")));
        all.push((413, Request::v2_post(&ACME, path, " ".repeat(70_000))));
        all.push((415, good().replace("Content-Type", Some("text/plain"))));
    } else {
        all.push((404, good()));
    }
    all
}

#[tokio::test]
async fn what_can_be_provoked_is_documented() {
    let document = document();
    for (path, method) in [(DEPOSITS, "post"), (WITHDRAWALS, "post"), (TRANSACTION, "get")] {
        let gateway = Gateway::start(&Rules::default());
        let client = gateway.client();
        for (status, request) in provoking(path, method == "post") {
            let mut reply = client.send(&request).await;
            // The key of the limited merchant has a burst before it is held up.
            for _ in 0..20 {
                if reply.status == status || status != 429 {
                    break;
                }
                reply = client.send(&request).await;
            }
            assert_eq!(reply.status, status, "{method} {path}: {}", reply.text());
            assert_documented(&document, path, method, &reply);
        }
    }
}

/// Common generators of clients follow no reference where a callback or a webhook stands.
#[test]
fn callbacks_are_written_where_they_stand() {
    let document = document();
    let callback =
        |path: &str| &document["paths"][path]["post"]["callbacks"]["result"]["{$request.body#/callback_url}"];
    let all = [callback(DEPOSITS), callback(WITHDRAWALS), &document["webhooks"]["result"]];
    let ids: BTreeSet<&str> = all.iter().map(|item| text(&item["post"], "operationId")).collect();
    assert_eq!(ids.len(), all.len(), "an operationId is unique: {ids:?}");
    for item in all {
        let mut same = item["post"].clone();
        same["operationId"] = all[0]["post"]["operationId"].clone();
        assert_eq!(same, all[0]["post"]);
    }
    assert!(document["components"]["callbacks"].is_null() && document["components"]["pathItems"].is_null());
}

/// A program of the virtual environment, or of `PATH`. `None`, said aloud, where it is missing and may be.
fn tool(name: &str) -> Option<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/schemathesis/bin").join(name);
    let in_path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::iter::once(own)
        .chain(std::env::split_paths(&in_path).map(|dir| dir.join(name)))
        .find(|program| program.is_file());
    if found.is_none() {
        let required = std::env::var_os("PAYBRIDGE_REQUIRE_TOOLS").is_some_and(|value| value == "1");
        assert!(!required, "{name} is not installed");
        say(&format!(
            "!! {name} is not installed: the OpenAPI document was NOT tested with it (see tests/it/openapi.rs)"
        ));
    }
    found
}

/// Past the capture of the test's output.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Runs a program to its end; its output is shown when it fails.
#[track_caller]
fn succeeds(command: &mut Command) {
    let output = command.output().expect("the program starts");
    let shown = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{shown}", output.status);
    say(&shown.lines().rev().take(3).collect::<Vec<_>>().join(" | "));
}

#[test]
fn the_document_is_valid_by_the_meta_schema() {
    let Some(validator) = tool("openapi-spec-validator") else { return };
    succeeds(Command::new(validator).arg("docs/openapi.json").current_dir(env!("CARGO_MANIFEST_DIR")));
}

/// The gateway that schemathesis meets: the default shop takes any `fields`, so that what the document says is all there is.
fn plain_rules() -> Rules {
    Rules::default().edit("shops/card-eur.toml", "schema = \"card-eur.payin.json\"\n", "").edit(
        "shops/card-eur.toml",
        "schema = \"card-eur.payout.json\"\n",
        "",
    )
}

/// Runs schemathesis with the signing hook against a gateway, by one of the configurations beside it. `mode` is `positive`
/// for requests that keep the document, `all` for its violations too.
fn schemathesis(config: &str, mode: &str) {
    let Some(program) = tool("schemathesis") else { return };
    let gateway = Gateway::start(&plain_rules());
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/schemathesis");
    let examples = std::env::var("PAYBRIDGE_SCHEMATHESIS_EXAMPLES").unwrap_or_else(|_| "50".to_owned());
    say(&format!("schemathesis {config}: {examples} cases an operation, seed {SEED}"));
    let mut command = Command::new(program);
    command
        .arg("--config-file")
        .arg(here.join(config))
        .args(["--no-color", "run"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/openapi.json"))
        .args(["--url", &format!("https://localhost:{}", gateway.public.port()), "--seed", SEED])
        .args(["--mode", mode, "--max-examples", &examples, "--tls-verify"])
        .arg(gateway.root.path().join("certs/ca.pem"))
        .env("SCHEMATHESIS_HOOKS", here.join("hooks.py"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PAYBRIDGE_TEST_KEY", ACME.name)
        .env("PAYBRIDGE_TEST_SECRET", ACME.v2.unwrap())
        .env("PAYBRIDGE_TEST_ALL_VALID", if mode == "positive" { "1" } else { "0" })
        // Where it leaves its own files.
        .current_dir(gateway.root.path());
    succeeds(&mut command);
    assert!(gateway.admin_get("/readyz").is_some_and(|(status, _)| status == 200), "{}", gateway.log());
    assert!(!gateway.log().contains("a panic"), "{}", gateway.log());
}

/// Requests made from the document and from its violations: no 5xx, nothing undocumented, and whatever breaks the document is
/// refused. What keeps it need not be accepted here: not every rule of the interface can be said in JSON Schema.
#[test]
fn schemathesis_finds_nothing_that_the_document_does_not_say() {
    schemathesis("document.toml", "all");
}

/// Requests that keep the rules which a schema cannot say as well: all are accepted, and what they made can be read.
#[test]
fn schemathesis_is_accepted_where_it_keeps_every_rule() {
    schemathesis("valid.toml", "positive");
}
