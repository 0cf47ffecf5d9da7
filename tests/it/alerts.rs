//! The alert rules in `examples/prometheus`: what they name exists, each has a test, and Prometheus accepts them.
//!
//! `promtool` is looked for in `target/prometheus` and in `PATH`; where it is missing its test reports that and passes, unless
//! `PAYBRIDGE_REQUIRE_TOOLS=1`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::documents::anchors;
use crate::support::bodies::with;
use crate::support::receiver::{Play, Receiver};
use crate::support::request::{ACME, BETA};
use crate::support::tools::{in_path, output, root};
use crate::support::{Gateway, Request, Rules, eventually, payin, withdrawal};

/// The tests of the rules take half a minute of CPU; beside all other tests, that is several minutes on a slow machine.
const PROMTOOL_TIMEOUT: Duration = Duration::from_mins(10);

/// Where nothing listens.
const NOWHERE: &str = "https://localhost:1";

/// The families of labelled metrics that the rules use: they are on the page once they have a sample.
const LABELLED: [&str; 11] = [
    "requests_total",
    "refusals_total",
    "translations_refused_total",
    "connections_refused_total",
    "provider_requests_total",
    "operations_attention",
    "engine_requests_total",
    "creates_by_home_total",
    "legacy_requests_total",
    "shadow_checks_total",
    "callback_circuit_open",
];

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

fn example(name: &str) -> String {
    read(&format!("examples/prometheus/{name}"))
}

/// One rule of the file.
struct Alert<'a> {
    name: &'a str,
    expr: &'a str,
    /// The whole rule.
    text: &'a str,
}

fn alerts(file: &str) -> Vec<Alert<'_>> {
    let rules = file.split("      - alert: ").skip(1).map(|text| {
        let name = text.lines().next().unwrap();
        let (_, rest) = text.split_once("        expr: ").unwrap_or_else(|| panic!("{name} has no expression"));
        let end = ["        for: ", "        labels:"].iter().filter_map(|next| rest.find(next)).min().unwrap();
        Alert { name, expr: &rest[..end], text }
    });
    rules.collect()
}

/// The names of Paybridge's metrics in a text.
fn metrics(text: &str) -> BTreeSet<&str> {
    let words = text.split(|char: char| !char.is_ascii_alphanumeric() && char != '_');
    words.filter(|word| word.starts_with("paybridge_")).collect()
}

/// The labels that an expression selects by, each with one value.
fn selected(expr: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    for (at, _) in expr.match_indices('=') {
        let rest = expr[at + 1..].trim_start_matches('~');
        let Some((values, _)) = rest.strip_prefix('"').and_then(|rest| rest.split_once('"')) else { continue };
        let label = expr[..at].rsplit(['{', ',']).next().unwrap();
        found.extend(values.split('|').map(|value| (label, value)));
    }
    found
}

/// The families of a page, each with its type.
fn families(gateway: &Gateway) -> BTreeMap<String, String> {
    let (status, page) = gateway.admin_get("/metrics").unwrap();
    assert_eq!(status, 200, "{page}");
    let types = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    types.map(|(name, kind)| (name.to_owned(), kind.to_owned())).collect()
}

/// A gateway before an old service, a provider and a receiver that are away, which has refused what it could.
async fn gateway_in_trouble() -> Gateway {
    let old = Receiver::start(|_, _| Play::Say(200));
    let (url, ca) = (old.url(""), old.ca());
    let ca = ca.display();
    let provider = format!(
        "currency = \"EUR\"\n[payout]\naccount = \"card\"\n[provider]\nkind = \"http\"\nurl = \"{NOWHERE}/\"\n\
         secret = \"provider-hush-5Tg\"\n"
    );
    let rules = Rules::default()
        .with("legacy", &format!("url = \"{url}\"\ntrust = [\"{ca}\"]"))
        .with("callbacks", "first_retry = \"20ms\"\nmax_retry = \"100ms\"")
        .file("shops/slow-eur.toml", provider)
        .edit("merchants/acme.toml", "name = \"Acme Ltd\"\n", "name = \"Acme Ltd\"\nv1 = { mode = \"shadow\" }\n");
    let gateway = Gateway::start(&rules);
    let client = gateway.client();
    client.send_unchecked(&Request::payin(&ACME, &payin("forwarded"))).await.expect(200);
    client.send(&Request::payin(&BETA, &"{}")).await.expect(400);
    let wrong = Request::payin(&ACME, &payin("wrong")).replace("X-Signature", Some(&"0".repeat(64)));
    client.send(&wrong).await.expect(401);
    let called_back = with(withdrawal("called-back"), "callback_url", Some(format!("{NOWHERE}/cb").into()));
    client.send(&Request::withdrawal(&ACME, &called_back)).await.expect(200);
    let delayed = with(withdrawal("provided"), "method", Some(Value::from("slow-eur")));
    client.send(&Request::withdrawal(&ACME, &delayed)).await.expect(200);
    TcpStream::connect(gateway.public).unwrap().write_all(&[0; 16]).unwrap();
    gateway
}

#[tokio::test]
async fn every_metric_of_the_rules_is_one_of_a_gateway() {
    let gateway = gateway_in_trouble().await;
    let before = Gateway::start(&Rules::default().with("engine", &format!("url = \"{NOWHERE}\"")));
    before.client().send(&Request::payin(&ACME, &payin("engine"))).await.expect(502);
    for name in LABELLED.map(|name| format!("paybridge_{name}")) {
        let is_known =
            async || [&gateway, &before].into_iter().any(|one| families(one).contains_key(&name)).then_some(());
        eventually(&format!("{name} has a sample"), is_known).await;
    }
    let mut known = families(&gateway);
    known.extend(families(&before));

    let samples = known.iter().flat_map(|(family, kind)| {
        let suffixes: &[&str] = if kind == "histogram" { &["_bucket", "_count", "_sum"] } else { &[""] };
        suffixes.iter().map(move |suffix| format!("{family}{suffix}"))
    });
    let samples: BTreeSet<_> = samples.collect();
    for file in ["alerts.yaml", "alerts.test.yaml"] {
        let text = example(file);
        let unknown: Vec<_> = metrics(&text).into_iter().filter(|name| !samples.contains(*name)).collect();
        assert!(unknown.is_empty(), "{file}: {unknown:?} are no samples of a gateway");
    }

    let table = read("docs/operations.md");
    let listed = |name: &str| table.contains(&format!("`{name}`")) || table.contains(&format!("`{name}{{"));
    let missing: Vec<_> = known.keys().filter(|name| !listed(name.strip_prefix("paybridge_").unwrap())).collect();
    assert!(missing.is_empty(), "docs/operations.md does not list {missing:?}");
}

#[test]
fn every_alert_is_tested_and_described() {
    let (file, tests, operations) = (example("alerts.yaml"), example("alerts.test.yaml"), read("docs/operations.md"));
    let alerts = alerts(&file);
    assert!(alerts.len() > 25 && file.matches("alert:").count() == alerts.len(), "{}", alerts.len());
    let names: BTreeSet<_> = alerts.iter().map(|alert| alert.name).collect();
    assert_eq!(names.len(), alerts.len(), "a name occurs twice");
    for Alert { name, expr, text } in &alerts {
        assert!(tests.contains(&format!("alertname=\"{name}\"")), "{name} has no test");
        let severities = ["critical", "warning", "info"].map(|severity| format!("          severity: {severity}\n"));
        assert!(severities.iter().any(|severity| text.contains(severity)), "{name} has no severity");
        for annotation in ["summary: \"", "description: >-\n", "docs: docs/"] {
            assert!(text.contains(&format!("          {annotation}")), "{name} has no {annotation}");
        }

        let link = text.split("docs: ").nth(1).unwrap().lines().next().unwrap();
        let (page, anchor) = link.split_once('#').unwrap_or_else(|| panic!("{name}: {link} has no heading"));
        assert!(anchors(&read(page)).0.contains(anchor), "{name}: no heading {link}");

        // A label that an expression does not keep is empty in an annotation.
        let kept = expr.split_once("by (").map_or("instance", |(_, rest)| rest.split(')').next().unwrap());
        for label in text.split("$labels.").skip(1).map(|rest| rest.split([' ', '}']).next().unwrap()) {
            assert!(kept.split(", ").any(|name| name == label), "{name}: no label {label}");
        }
        for (label, value) in selected(expr).into_iter().filter(|(label, _)| !["job", "status"].contains(label)) {
            assert!(operations.contains(&format!("`{value}`")), "{name}: no {label} {value} in docs/operations.md");
        }
    }
    for word in ["a healthy day", "one failure of each kind"] {
        assert!(tests.contains(word), "no test of {word}");
    }
}

fn promtool() -> Option<PathBuf> {
    let extracted = root().join("target/prometheus/promtool");
    if extracted.is_file() { Some(extracted) } else { in_path("promtool", ".ci/run promtool") }
}

#[test]
fn prometheus_accepts_the_rules_and_their_tests_pass() {
    let Some(promtool) = promtool() else { return };
    let run = |arguments: &[&str]| {
        let mut command = Command::new(&promtool);
        output(command.args(arguments).current_dir(root().join("examples/prometheus")), PROMTOOL_TIMEOUT)
    };
    let checked = run(&["check", "rules", "alerts.yaml"]);
    assert!(checked.contains(&format!("{} rules found", alerts(&example("alerts.yaml")).len())), "{checked}");
    run(&["check", "config", "prometheus.yaml"]);
    run(&["test", "rules", "alerts.test.yaml"]);
}
