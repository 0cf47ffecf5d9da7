//! Tests of the pages: escaping, roles, sizes, and links; and the pages as files, to be seen in a browser.

mod fixtures;

use std::path::Path;

use regex::Regex;

use self::fixtures::{Fixtures, NOW, ago};
use super::audit::AuditPage;
use super::callbacks::{CallbackPage, CallbacksPage, ResendPage, SamplePage};
use super::explain::ExplainPage;
use super::merchants::{MerchantDocument, MerchantPage, MerchantsPage};
use super::operations::OperationsPage;
use super::overview::OverviewPage;
use super::requests::{RequestFilter, RequestsPage};
use super::rules::RulesPage;
use crate::callback::listing::{CallbackDetail, Slice, sample_document, write_cursor};
use crate::console::{ASSET_PATHS, ConsolePage, Plot, PlotSeries, PlotUnit, SCRIPT, asset, render};
use crate::http::admin::access::SignInPage;
use crate::http::admin::chrome::Chrome;
use crate::http::admin::parameters::CallbackFilter;
use crate::http::admin::reply::{ConsoleError, ErrorPage};
use crate::http::admin::rules::RulesInfo;
use crate::operations::{OperationsDocument, OtherHome};
use crate::store::{CallbackRecord, CallbackState};
use crate::telemetry::POINT_INTERVAL;

const PLAIN: Fixtures = Fixtures { mark: "" };

const ERRORS: [ConsoleError; 8] = [
    ConsoleError::BadRequest,
    ConsoleError::MissingRole,
    ConsoleError::ReadOnly,
    ConsoleError::OtherOrigin,
    ConsoleError::NotFound,
    ConsoleError::NotDone,
    ConsoleError::TooManyAttempts,
    ConsoleError::Unavailable,
];

/// Renders a callback; one without an attempt cannot be composed.
fn callback_page(make: Fixtures, record: CallbackRecord, chrome: &Chrome<'_>) -> String {
    let (attempts, is_tried) = (record.tries, record.tries > 0);
    let tries = if is_tried { make.tries() } else { Vec::new() };
    let body = if is_tried { Ok(make.text("{\"order_id\":\"o\"}")) } else { Err(make.text("no such merchant")) };
    let detail = CallbackDetail { record, tries, body };
    render(ConsolePage::Callback, &CallbackPage { callback: detail.document(NOW), attempts }, chrome)
}

/// Renders all pages full of values, with their names.
fn full_pages(make: Fixtures, chrome: &Chrome<'_>) -> Vec<(&'static str, String)> {
    let sampled = make.sampled();
    let sample = SamplePage {
        merchant: make.text("acme"),
        kind: "v1".into(),
        url: make.text("https://acme.example/cb"),
        problem: Some(make.text("the merchant has no key with a v1 secret")),
        result: Some(sample_document(&sampled)),
    };
    vec![
        ("sign-in", render(ConsolePage::SignIn, &make.sign_in(), chrome)),
        ("overview", render(ConsolePage::Overview, &make.overview(), chrome)),
        ("rules", render(ConsolePage::Rules, &make.rules(), chrome)),
        ("merchants", render(ConsolePage::Merchants, &make.merchants(50), chrome)),
        ("merchant", render(ConsolePage::Merchant, &make.merchant(), chrome)),
        ("operations", render(ConsolePage::Operations, &make.operations(50), chrome)),
        ("operation", render(ConsolePage::Operation, &make.operation("PENDING"), chrome)),
        ("contradicted", render(ConsolePage::Operation, &make.operation("FAILED"), chrome)),
        ("callbacks", render(ConsolePage::Callbacks, &make.callbacks(50), chrome)),
        ("callback", callback_page(make, make.record(7, CallbackState::Failed), chrome)),
        ("resend", render(ConsolePage::ResendAll, &make.resend_all(), chrome)),
        ("resend-pending", render(ConsolePage::ResendAll, &make.resend_pending(), chrome)),
        ("sample", render(ConsolePage::Sample, &sample, chrome)),
        ("requests", render(ConsolePage::Requests, &make.requests(50), chrome)),
        ("explain", render(ConsolePage::Explain, &make.explain(), chrome)),
        ("audit", render(ConsolePage::Audit, &make.audit(50), chrome)),
        ("error", render(ConsolePage::Error, &make.error(ConsoleError::BadRequest), chrome)),
    ]
}

/// Renders the pages of a process that has nothing to show yet.
fn empty_pages() -> Vec<(&'static str, String)> {
    let chrome = &PLAIN.viewer();
    let signed_out = Chrome { user: None, ..PLAIN.chrome() };
    let pending =
        CallbackRecord { tries: 0, last: None, order_id: order("x"), ..PLAIN.record(0, CallbackState::Pending) };
    let problem = || Some("since: must be a time or an age".to_owned());
    let none = Slice::default();
    let callbacks = |filter, problem| CallbacksPage {
        filter,
        problem,
        note: None,
        list: none.document(NOW),
        is_continued: false,
        receivers: Vec::new(),
        open_circuits: (0, Vec::new()),
    };
    let plot = Plot::of(("Requests", ""), PlotUnit::PerSecond, (NOW, POINT_INTERVAL), &[]);
    let overview = OverviewPage { plots: vec![plot], ..OverviewPage::default() };
    let rules = RulesInfo { loaded_at: ago(5), ..RulesInfo::default() };
    let rules =
        RulesPage { rules, directory: String::new(), problems: Vec::new(), more_problems: 0, warnings: Vec::new() };
    let new = MerchantDocument { id: "new", ..MerchantDocument::default() };
    let other_home = OperationsPage {
        list: OperationsDocument {
            other_homes: ["legacy", "reserved", "engine", "lost"].map(OtherHome::example).into(),
            note: Some("the list lacks operations".to_owned()),
            ..OperationsDocument::default()
        },
        problem: problem(),
        ..PLAIN.operations(0)
    };
    let no_operations = OperationsPage { unknown: None, ..PLAIN.operations(0) };
    let filter = RequestFilter { reason: "shape".to_owned(), ..RequestFilter::default() };
    let no_reason = RequestsPage { filter, ..RequestsPage::default() };
    vec![
        ("empty-sign-in", render(ConsolePage::SignIn, &SignInPage::default(), &signed_out)),
        ("empty-overview", render(ConsolePage::Overview, &overview, chrome)),
        ("empty-rules", render(ConsolePage::Rules, &rules, chrome)),
        ("empty-merchants", render(ConsolePage::Merchants, &MerchantsPage::default(), chrome)),
        (
            "no-merchants",
            render(ConsolePage::Merchants, &MerchantsPage { total: 3, ..MerchantsPage::default() }, chrome),
        ),
        (
            "empty-merchant",
            render(ConsolePage::Merchant, &MerchantPage { merchant: new, ..MerchantPage::default() }, chrome),
        ),
        ("empty-operations", render(ConsolePage::Operations, &no_operations, chrome)),
        ("no-operations", render(ConsolePage::Operations, &PLAIN.operations(0), chrome)),
        ("elsewhere", render(ConsolePage::Operations, &other_home, chrome)),
        ("empty-callbacks", render(ConsolePage::Callbacks, &callbacks(&CallbackFilter::default(), None), chrome)),
        ("wrong-callbacks", render(ConsolePage::Callbacks, &callbacks(&PLAIN.callback_filter(), problem()), chrome)),
        ("no-callbacks", render(ConsolePage::Callbacks, &PLAIN.callbacks(0), chrome)),
        ("empty-callback", callback_page(PLAIN, pending, chrome)),
        ("empty-resend", render(ConsolePage::ResendAll, &ResendPage::default(), chrome)),
        (
            "empty-resend-pending",
            render(ConsolePage::ResendAll, &ResendPage { count: 0, ..PLAIN.resend_pending() }, chrome),
        ),
        (
            "wrong-resend",
            render(ConsolePage::ResendAll, &ResendPage { problem: problem(), ..ResendPage::default() }, chrome),
        ),
        ("empty-sample", render(ConsolePage::Sample, &SamplePage::<()>::default(), chrome)),
        ("empty-requests", render(ConsolePage::Requests, &RequestsPage::default(), chrome)),
        ("no-requests", render(ConsolePage::Requests, &PLAIN.requests(0), chrome)),
        ("no-reason", render(ConsolePage::Requests, &no_reason, chrome)),
        (
            "wrong-requests",
            render(ConsolePage::Requests, &RequestsPage { problem: problem(), ..PLAIN.requests(0) }, chrome),
        ),
        ("empty-explain", render(ConsolePage::Explain, &ExplainPage::default(), chrome)),
        ("empty-audit", render(ConsolePage::Audit, &AuditPage::default(), chrome)),
        ("wrong-audit", render(ConsolePage::Audit, &AuditPage { problem: problem(), ..PLAIN.audit(0) }, chrome)),
        ("no-audit", render(ConsolePage::Audit, &PLAIN.audit(0), chrome)),
    ]
}

fn order(text: &str) -> crate::domain::OrderId {
    crate::domain::OrderId::new(text).unwrap()
}

#[test]
fn every_page_is_rendered_whole_and_without_inline_code() {
    let forbidden = Regex::new(r"(?i)<style|style=|<script>|\son\w+=|javascript:|<base|<iframe|<img").unwrap();
    let errors = ERRORS.map(|error| ("error", render(ConsolePage::Error, &PLAIN.error(error), &PLAIN.chrome())));
    let pages = [full_pages(PLAIN, &PLAIN.chrome()), full_pages(PLAIN, &PLAIN.broken()), empty_pages(), errors.into()];
    for (name, html) in pages.concat() {
        assert!(html.starts_with("<!doctype html>") && html.trim_end().ends_with("</html>"), "{name}");
        assert!(!html.contains("cannot be shown. <a"), "{name} is rendered");
        assert_eq!(html.matches("</h1>").count(), 1, "{name}");
        assert!(!forbidden.is_match(&html), "{name}: {:?}", forbidden.find(&html));
    }
}

#[test]
fn values_are_never_markup() {
    for mark in ["<i>", "\"\u{e001}", "'\u{e001}"] {
        let make = Fixtures { mark: Box::leak(format!("{mark}x\u{e002}").into_boxed_str()) };
        for (name, html) in full_pages(make, &make.broken()).into_iter().chain(full_pages(make, &make.chrome())) {
            assert!(!html.contains(make.mark), "{name} has {mark:?} as it is");
            assert!(html.matches("x\u{e002}").count() > 5, "{name} shows the values");
        }
    }
}

/// Merchants choose ids: none may turn the text beside it, or look like another one.
#[test]
fn no_text_is_shown_as_another_one() {
    let make = Fixtures { mark: "\u{202e}evil\u{200f} \u{2066}x \u{5d0}\u{5d1}" };
    let kept = Regex::new(r#"(?s) value="[^"]*"|<textarea.*?</textarea>|<meta http-equiv[^>]*>"#).unwrap();
    let links = Regex::new(r#" href="(\?|/operations/|/callbacks/|/merchants/)[^"]*""#).unwrap();
    for (name, html) in full_pages(make, &make.broken()).into_iter().chain(full_pages(make, &make.chrome())) {
        let shown = kept.replace_all(&html, "");
        assert!(!shown.contains(['\u{202e}', '\u{200f}', '\u{2066}']), "{name}");
        assert!(shown.contains(r"\u{202e}evil\u{200f} \u{2066}x"), "{name}");
        assert!(shown.contains("\u{5d0}\u{5d1}"), "{name}: letters stay");
        for link in links.find_iter(&html) {
            assert!(!link.as_str().contains(r"\u{202e}"), "{name}: {}", link.as_str());
        }
    }
    let html = render(ConsolePage::Callbacks, &make.callbacks(2), &make.chrome());
    assert!(html.contains("value=\"order-2026-11-00017\u{202e}evil"), "forms keep the id: {html}");
    assert!(html.contains("order_id=order-2026-11-00017%E2%80%AEevil"), "links keep the id: {html}");
    let mut view = PLAIN.operation("SUCCESS");
    view.document.operation.order_id = "a\nb\u{1b}".into();
    assert!(render(ConsolePage::Operation, &view, &PLAIN.chrome()).contains(r">a\u{a}b\u{1b}<"));
}

#[test]
fn the_empty_trail_names_what_leaves_rows() {
    let html = render(ConsolePage::Audit, &AuditPage::default(), &PLAIN.chrome());
    for part in ["by page or API", "<code>export</code>", "<code>callbacks sample</code>, leave none"] {
        assert!(html.contains(part), "{part}: {html}");
    }
}

#[test]
fn every_text_of_a_view_is_shown() {
    // Each of these is a part of a single field of its view.
    for (page, parts) in [
        (
            "rules",
            vec!["/etc/paybridge/rules", "cal_back_url", "did you mean", "import-ids", "[server] listen", "14:9"],
        ),
        (
            "merchant",
            vec!["acme…ive", "2001:db8::", "bursts of 400", "customer.phone", "string(5)", "41,250", "not complete"],
        ),
        (
            "operation",
            vec!["411111••••••1111", "paid by statement", "10.0 s", "Of 1137 attempts, the last 20 are kept"],
        ),
        (
            "callback",
            vec![
                "https://shop.example/",
                "and a query of",
                "{\"order_id\":\"o\"}",
                "804120000017",
                "HTTP 503",
                "12 attempts",
            ],
        ),
        (
            "resend-pending",
            vec!["<b>1,137+</b> pending callbacks wait", "https://shop.example:443", "1,137 callbacks and more now"],
        ),
        ("sample", vec!["sample_5f3a", "no key with a v1 secret", "https://acme.example:443", "no answer"]),
        (
            "explain",
            vec![
                "would be refused",
                "paymentData.bank",
                "left out",
                "The rule is [payin] schema in shops/card-eur.toml",
                "dropped by the engine",
            ],
        ),
        ("audit", vec!["cli:root", "unfinished", "137 queued again", "192.0.2.17", "0190f4a1c2d3"]),
    ] {
        let pages = full_pages(PLAIN, &PLAIN.chrome());
        let (_, html) = pages.iter().find(|(name, _)| *name == page).unwrap();
        let shown = html.replace("&#x2f;", "/").replace("&quot;", "\"");
        for part in parts {
            assert!(shown.contains(part), "{page}: {part}");
        }
        assert!(
            !shown.contains("shop=7") && !shown.contains("token=7"),
            "{page}: a merchant's address may hold a token"
        );
    }
}

#[test]
fn only_those_who_may_act_have_forms_that_act() {
    let actions = |chrome: &Chrome<'_>| -> Vec<String> {
        let action = Regex::new(r#"method="post" action="([^"]+)""#).unwrap();
        let mut found = Vec::new();
        for (_, html) in full_pages(PLAIN, chrome) {
            let keyed = html.matches("<input type=\"hidden\" name=\"form\" value=\"zk3Jq0V8bXw1s9Tn\">").count();
            assert_eq!(html.matches("method=\"post\"").count(), keyed, "each form has its key");
            found.extend(action.captures_iter(&html).map(|action| action[1].replace("&#x2f;", "/")));
        }
        found.sort();
        found.dedup();
        found
    };
    let all = ["/explain", "/rules/reload", "/callbacks/resend", "/callbacks/sample", "/sign-in", "/sign-out"];
    let operator = actions(&PLAIN.chrome());
    for action in all {
        assert!(operator.iter().any(|known| known == action), "{action} of {operator:?}");
    }
    assert!(operator.iter().any(|action| action.starts_with("/callbacks/cb_") && action.ends_with("/resend")));
    for ending in ["/ask", "/resolve", "/confirm", "/acknowledge"] {
        assert!(operator.iter().any(|action| action.starts_with("/operations/") && action.ends_with(ending)));
    }
    assert_eq!(operator.len(), all.len() + 5);
    for chrome in [PLAIN.viewer(), Chrome { is_read_only: true, ..PLAIN.chrome() }] {
        assert_eq!(actions(&chrome), ["/explain", "/sign-in", "/sign-out"]);
    }
}

#[test]
fn every_page_shows_the_frame() {
    for (name, html) in full_pages(PLAIN, &PLAIN.broken()) {
        for part in [
            "New requests are not accepted here: this process drains.",
            "The files on disk are refused",
            "Failed: the files were refused; problems: 2 (ada, 2026-11-24 12:11:00 UTC).",
            "read-only",
            "2026-11-24 12:11:05",
            "Signed in as </span><b>ada</b>, operator",
            "gw-2",
        ] {
            assert!(html.contains(part), "{name}: {part}");
        }
    }
    let signed_out = Chrome { user: None, ..PLAIN.broken() };
    let html = render(ConsolePage::SignIn, &PLAIN.sign_in(), &signed_out);
    assert!(html.contains("The files on disk are refused") && !html.contains("<nav") && !html.contains("sign-out"));
    assert!(!html.contains("gw-2") && !html.contains("3f9c2a7d10be"), "no detail without a user");
}

#[test]
fn filters_stay_in_links_and_forms() {
    let html = render(ConsolePage::Callbacks, &PLAIN.callbacks(2), &PLAIN.chrome());
    let next = write_cursor(PLAIN.record(1, CallbackState::Pending).place());
    let filter = "state=failed&amp;merchant=acme&amp;order_id=order-2026-11-00017&amp;since=2h&amp;until=30m";
    for part in [
        format!("href=\"?{filter}\""),
        format!("href=\"?{filter}&amp;after={next}\""),
        format!("href=\"/callbacks/resend?{filter}\""),
        "<option value=\"failed\" selected>".into(),
    ] {
        assert!(html.contains(&part), "{part}");
    }
    let html = render(ConsolePage::ResendAll, &PLAIN.resend_all(), &PLAIN.chrome());
    for part in ["name=\"since\" value=\"2h\"", "name=\"merchant\" value=\"acme\"", "Resend 1,137 callbacks and more"] {
        assert!(html.contains(part), "{part}");
    }
}

#[test]
fn a_list_says_why_each_operation_needs_attention() {
    let rows = |attention: [Option<&'static str>; 2]| {
        let mut view = PLAIN.operations(2);
        for (operation, attention) in view.list.operations.iter_mut().zip(attention) {
            operation.attention = attention;
        }
        let html = render(ConsolePage::Operations, &view, &PLAIN.chrome());
        html.lines().filter(|line| line.starts_with("<tr><th scope=\"row\">")).map(str::to_owned).collect::<Vec<_>>()
    };
    let of_those = rows([Some("given_up"), Some("contradicted")]);
    assert!(of_those[0].contains("needs attention: given up<"), "{of_those:?}");
    assert!(of_those[1].contains("needs attention: contradicted<"), "{of_those:?}");
    assert!(rows([None; 2]).iter().all(|row| !row.contains("needs attention")), "of any other list");
}

#[test]
fn an_empty_list_has_its_note_and_what_it_means() {
    let view = OperationsPage {
        list: OperationsDocument { note: Some("only some were searched".to_owned()), ..OperationsDocument::default() },
        ..PLAIN.operations(0)
    };
    let html = render(ConsolePage::Operations, &view, &PLAIN.chrome());
    assert!(html.contains("Only some were searched.") && html.contains("No operation matches."), "{html}");
}

#[test]
fn the_sign_in_form_can_lead_on_by_itself() {
    let refresh = "<meta http-equiv=\"refresh\" content=\"0; url=&#x2f;callbacks\">";
    for is_repeated in [false, true] {
        let view = SignInPage { to: "/callbacks", is_repeated, problem: None };
        let html = render(ConsolePage::SignIn, &view, &Chrome::default());
        assert_eq!(html.contains(refresh), is_repeated);
    }
}

#[test]
fn a_plot_has_labels_a_description_and_a_zero_line() {
    let figure = |points: &[Option<f64>]| {
        let series = [PlotSeries { name: "v1 <create>", points: points.to_vec() }];
        let time = (crate::domain::UnixMillis(1_795_522_325_000), POINT_INTERVAL);
        let plot = Plot::of(("Requests <&\"", ""), PlotUnit::PerSecond, time, &series);
        let view = OverviewPage { plots: vec![plot], ..OverviewPage::default() };
        render(ConsolePage::Overview, &view, &PLAIN.chrome()).replace("&#x2f;", "/")
    };
    let overview = render(ConsolePage::Overview, &PLAIN.overview(), &PLAIN.chrome());
    for bar in ["M0 0h100v6H0z", "M0 0h25v6H0z", "M0 0h1v6H0z"] {
        assert!(overview.contains(bar), "{bar}: a refusal that was counted is seen");
    }
    let drawn = figure(&[Some(3.0), Some(12.0), Some(7.0)]);
    for part in [
        "<title id=\"t0\">Requests &lt;&amp;&quot;</title>",
        "Until 12:12 UTC. v1 &lt;create&gt;: now 7/s, at most 12/s.",
        "<path class=\"zero\" d=\"M0 160h720\"/>",
        "<span>12/s</span><span>6/s</span><span>0</span>",
        "<span>11:12</span><span>11:42</span><span>12:12</span>",
        "<td>7/s</td><td>12/s</td>",
    ] {
        assert!(drawn.contains(part), "{part} in {drawn}");
    }
    assert!(figure(&[None]).contains("No figure in the last hour."));
    assert!(figure(&[]).contains("The first figures come within seconds."));
}

#[test]
fn pages_are_small() {
    for (name, html) in full_pages(PLAIN, &PLAIN.chrome()) {
        assert!(html.len() < 40 << 10, "{name} has {} bytes", html.len());
    }
    assert!(SCRIPT.len() < 4 << 10);
}

#[test]
fn assets_are_found_by_the_paths_in_pages() {
    let html = render(ConsolePage::SignIn, &SignInPage::default(), &Chrome::default());
    let path = Regex::new(r#"(?:href|src)="([^"]+[.](?:css|js))""#).unwrap();
    let types: Vec<_> =
        path.captures_iter(&html).map(|path| asset(&path[1].replace("&#x2f;", "/")).unwrap().0).collect();
    assert_eq!(types, ["text/css; charset=utf-8", "text/javascript; charset=utf-8"]);
    assert!(asset("/console/console.css").is_none());
}

/// Writes every page below the directory that `PAYBRIDGE_CONSOLE_PAGES` names, with its assets.
#[test]
fn pages_as_files() {
    let Some(directory) = std::env::var_os("PAYBRIDGE_CONSOLE_PAGES") else { return };
    let directory = Path::new(&directory);
    std::fs::create_dir_all(directory.join("console")).unwrap();
    for path in &*ASSET_PATHS {
        std::fs::write(directory.join(&path[1..]), asset(path).unwrap().1).unwrap();
    }
    let write = |name: &str, html: String| std::fs::write(directory.join(format!("{name}.html")), html).unwrap();
    for (kind, chrome) in [("", PLAIN.acted()), ("viewer-", PLAIN.viewer()), ("broken-", PLAIN.broken())] {
        for (name, html) in full_pages(PLAIN, &chrome) {
            write(&format!("{kind}{name}"), html);
        }
    }
    for (name, html) in empty_pages() {
        write(name, html);
    }
    for error in ERRORS {
        let view = ErrorPage { detail: None, ..PLAIN.error(error) };
        write(&format!("error-{error:?}").to_lowercase(), render(ConsolePage::Error, &view, &PLAIN.chrome()));
    }
}
