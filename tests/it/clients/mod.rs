//! v1 by clients that nobody here wrote: curl, Python's requests and httpx, Node's fetch, http and http2 and axios, Java's
//! `HttpClient` and PHP's curl, over HTTP/1.1 and HTTP/2, trusting the gateway's own CA, and signing with the functions in
//! `examples/sign/`, which `docs/merchants-v1.md` shows.
//!
//! Each client is driven by a small program beside this file. It reads a plan ([`plan`]), a line a step:
//!
//! ```text
//! name  after|beside  method  target  whole|chunked|expect  secret  body's file, or -
//! ```
//!
//! sends the steps, those that are `beside` each other at the same time, and prints a line of JSON for each: what it was
//! answered (`status`, `http`, `text`), why it cannot do this (`skipped`), or what broke (`error`). What should have been
//! answered is known here alone.
//!
//! `.ci/run` installs the clients. Where one is missing its tests say so and pass, unless `PAYBRIDGE_REQUIRE_TOOLS=1`.

mod plan;
mod programs;
mod snippets;

use std::collections::BTreeSet;

use crate::support::request::ACME;
use crate::support::stored::Create;
use crate::support::{Gateway, Rules};
use plan::{Plan, Sending, Step};
use programs::{Program, Seen};

const HTTP1: &str = "1.1";
const HTTP2: &str = "2";

/// A step that a client cannot do, or may say that it cannot.
type Unable = fn(&Step) -> bool;

/// Drives a client through everything, by each of these protocols, each against a gateway of its own.
async fn drive(program: Option<Program>, protocols: &[&str], unable: Unable) {
    let Some(program) = program else { return };
    for http in protocols {
        let gateway = Gateway::start(&Rules::default());
        let plan = plan::kept();
        let opened = connections(&gateway);
        check(&plan, &program.run(&gateway, http, &plan), http, |_| false);
        // Node's fetch opens a second one when the first is not idle yet.
        let opened = connections(&gateway) - opened;
        assert!((1..=2).contains(&opened), "HTTP/{http}: {opened} connections for requests one after another");

        let plan = plan::scenario();
        let seen = program.run(&gateway, http, &plan);
        check(&plan, &seen, http, unable);
        plan::compare(&seen);
        nothing_refused_is_stored(&gateway, &plan).await;
    }
}

/// Every step was answered as it should be, by the protocol that was asked for, or cannot be done by this client.
#[track_caller]
fn check(plan: &Plan, seen: &[Seen], http: &str, unable: Unable) {
    let names = |all: Vec<&str>| all.into_iter().map(str::to_owned).collect::<BTreeSet<_>>();
    let planned = names(plan.steps.iter().map(|step| step.name.as_str()).collect());
    assert_eq!(names(seen.iter().map(|seen| seen.step.as_str()).collect()), planned);
    for (step, seen) in plan.steps.iter().filter_map(|step| Some((step, plan::of(seen, &step.name)?))) {
        assert!(seen.error.is_none(), "HTTP/{http}: {seen:?}");
        assert!(seen.skipped.is_none() || unable(step), "HTTP/{http}: {seen:?}");
        if seen.skipped.is_none() {
            assert_eq!((seen.status, seen.http.as_str()), (step.status, http), "HTTP/{http}: {seen:?}");
            step.check(&seen.text);
        }
    }
}

/// How many connections the gateway has taken so far.
#[track_caller]
fn connections(gateway: &Gateway) -> u64 {
    let (_, metrics) = gateway.admin_get("/metrics").unwrap();
    let line = metrics.lines().find_map(|line| line.strip_prefix("paybridge_connections_total "));
    line.expect("the metric").trim().parse().unwrap()
}

async fn nothing_refused_is_stored(gateway: &Gateway, plan: &Plan) {
    let client = gateway.client();
    let created: BTreeSet<_> = plan.created().collect();
    let refused = plan.steps.iter().filter_map(Step::refused).filter(|id| !created.contains(id));
    for id in refused.collect::<BTreeSet<_>>() {
        Create::Payin.assert_nothing_stored(&client, &ACME, id).await;
    }
}

#[tokio::test]
async fn curl() {
    drive(Program::curl(), &[HTTP1, HTTP2], |_| false).await;
}

#[tokio::test]
async fn python_requests() {
    drive(Program::python("requests"), &[HTTP1], |_| false).await;
}

#[tokio::test]
async fn python_httpx() {
    drive(Program::python("httpx"), &[HTTP1, HTTP2], |_| false).await;
}

#[tokio::test]
async fn node_fetch() {
    let protocols: &[&str] = if Program::has_undici() { &[HTTP1, HTTP2] } else { &[HTTP1] };
    drive(Program::node("fetch"), protocols, |step| step.sending == Sending::Expect).await;
}

#[tokio::test]
async fn node_axios() {
    drive(Program::node("axios"), &[HTTP1, HTTP2], |_| false).await;
}

#[tokio::test]
async fn node_http_and_http2() {
    drive(Program::node("core"), &[HTTP1, HTTP2], |_| false).await;
}

#[tokio::test]
async fn java_http_client() {
    // Java before 20 does not survive a refusal in place of the 100.
    let hangs = |step: &Step| step.sending == Sending::Expect && step.status == 413;
    drive(Program::java(), &[HTTP1, HTTP2], hangs).await;
}

#[tokio::test]
async fn php_curl() {
    drive(Program::php(), &[HTTP1, HTTP2], |_| false).await;
}
