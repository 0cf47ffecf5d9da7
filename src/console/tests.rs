//! Tests of the pages: escaping, roles, sizes, and links; and the pages as files, to be seen in a browser.

mod fixtures;

use std::path::Path;

use regex::Regex;

use self::fixtures::{Fixtures, ago};
use super::*;

const PLAIN: Fixtures = Fixtures { mark: "" };

/// Renders all pages full of values, with their names.
fn full_pages(make: Fixtures, chrome: &Chrome) -> Vec<(&'static str, String)> {
    let page = |name, page| (name, render(page, chrome));
    vec![
        page("sign-in", PageView::SignIn(&make.sign_in())),
        page("overview", PageView::Overview(&make.overview())),
        page("rules", PageView::Rules(&make.rules())),
        page("merchants", PageView::Merchants(&make.merchants(50))),
        page("merchant", PageView::Merchant(&make.merchant())),
        page("operations", PageView::Operations(&make.operations(50))),
        page("operation", PageView::Operation(&make.operation())),
        page("callbacks", PageView::Callbacks(&make.callbacks(50))),
        page("callback", PageView::Callback(&make.callback())),
        page("resend", PageView::ResendAll(&make.resend_all())),
        page("sample", PageView::Sample(&make.sample())),
        page("explain", PageView::Explain(&make.explain())),
        page("audit", PageView::Audit(&make.audit(50))),
        page("error", PageView::Error(&make.error(ConsoleError::BadRequest))),
    ]
}

/// Renders the pages of a process that has nothing to show yet.
fn empty_pages() -> Vec<(&'static str, String)> {
    let chrome = &PLAIN.viewer();
    let page = |name, page| (name, render(page, chrome));
    let signed_out = Chrome { user: None, ..PLAIN.chrome() };
    let pending = CallbackItem { state: "pending".into(), merchant: "acme".into(), ..CallbackItem::default() };
    let problem = || Some("since: must be a time or an age".to_owned());
    vec![
        ("empty-sign-in", render(PageView::SignIn(&SignInView::default()), &signed_out)),
        page(
            "empty-overview",
            PageView::Overview(&OverviewView {
                plots: vec![Plot { title: "Requests".into(), ..Plot::default() }],
                ..OverviewView::default()
            }),
        ),
        page("empty-rules", PageView::Rules(&RulesView { since: ago(5), ..RulesView::default() })),
        page("empty-merchants", PageView::Merchants(&MerchantsView::default())),
        page("no-merchants", PageView::Merchants(&MerchantsView { total: 3, ..MerchantsView::default() })),
        page("empty-merchant", PageView::Merchant(&MerchantView { id: "new".into(), ..MerchantView::default() })),
        page("empty-operations", PageView::Operations(&OperationsView::default())),
        page("no-operations", PageView::Operations(&OperationsView { found: Vec::new(), ..PLAIN.operations(0) })),
        page(
            "elsewhere",
            PageView::Operations(&OperationsView {
                elsewhere: Some("This order is at home with the old v1 service.".into()),
                problem: problem(),
                ..PLAIN.operations(0)
            }),
        ),
        page("empty-callbacks", PageView::Callbacks(&CallbacksView::default())),
        page("wrong-callbacks", PageView::Callbacks(&CallbacksView { problem: problem(), ..PLAIN.callbacks(0) })),
        page("no-callbacks", PageView::Callbacks(&PLAIN.callbacks(0))),
        page("empty-callback", PageView::Callback(&CallbackView { callback: pending, ..CallbackView::default() })),
        page("empty-resend", PageView::ResendAll(&ResendAllView::default())),
        page("wrong-resend", PageView::ResendAll(&ResendAllView { problem: problem(), ..ResendAllView::default() })),
        page("empty-sample", PageView::Sample(&SampleView::default())),
        page("empty-explain", PageView::Explain(&ExplainView::default())),
        page("empty-audit", PageView::Audit(&AuditView::default())),
        page("wrong-audit", PageView::Audit(&AuditView { problem: problem(), ..PLAIN.audit(0) })),
        page("no-audit", PageView::Audit(&PLAIN.audit(0))),
    ]
}

#[test]
fn every_page_is_rendered_whole_and_without_inline_code() {
    let forbidden = Regex::new(r"(?i)<style|style=|<script>|\son\w+=|javascript:|<base|<iframe|<img").unwrap();
    let errors =
        ConsoleError::ALL.map(|error| ("error", render(PageView::Error(&PLAIN.error(error)), &PLAIN.chrome())));
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
    let html = render(PageView::Callbacks(&make.callbacks(2)), &make.chrome());
    assert!(html.contains("value=\"order-2026-11-00017\u{202e}evil"), "forms keep the id: {html}");
    assert!(html.contains("order_id=order-2026-11-00017%E2%80%AEevil"), "links keep the id: {html}");
    let order = OperationItem { order_id: "a\nb\u{1b}".into(), ..OperationItem::default() };
    let view = OperationPageView { operation: order, ..OperationPageView::default() };
    assert!(render(PageView::Operation(&view), &PLAIN.chrome()).contains(r">a\u{a}b\u{1b}<"));
}

#[test]
fn the_empty_trail_names_what_leaves_rows() {
    let html = render(PageView::Audit(&AuditView::default()), &PLAIN.chrome());
    for part in
        ["<code>import-ids</code>", "<code>callbacks resend</code>", "<code>callbacks sample</code>, leave none"]
    {
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
            vec!["acme…ive", "2001:db8::", "burst 400", "customer.phone", "string(5)", "41,250", "not complete"],
        ),
        ("operation", vec!["411111••••••1111", "reference p-81723", "10.0 s", "Attempts before"]),
        ("callback", vec!["shop=7", "804120000017", "HTTP 503", "10.0 s"]),
        ("sample", vec!["sample_5f3a", "no key with a v1 secret"]),
        ("explain", vec!["would be refused", "paymentData.bank", "left out", "no API key"]),
        ("audit", vec!["cli:root", "unfinished", "137 queued again", "192.0.2.17", "0190f4a1c2d3"]),
    ] {
        let pages = full_pages(PLAIN, &PLAIN.chrome());
        let (_, html) = pages.iter().find(|(name, _)| *name == page).unwrap();
        let shown = html.replace("&#x2f;", "/").replace("&quot;", "\"");
        for part in parts {
            assert!(shown.contains(part), "{page}: {part}");
        }
    }
}

#[test]
fn only_those_who_may_act_have_forms_that_act() {
    let actions = |chrome: &Chrome| -> Vec<String> {
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
    assert_eq!(operator.len(), all.len() + 1);
    for chrome in [PLAIN.viewer(), Chrome { is_read_only: true, ..PLAIN.chrome() }] {
        assert_eq!(actions(&chrome), ["/explain", "/sign-in", "/sign-out"]);
    }
}

#[test]
fn every_page_shows_the_frame() {
    for (name, html) in full_pages(PLAIN, &PLAIN.broken()) {
        for part in [
            "The rules on disk are refused",
            "read-only",
            "2026-11-24 12:11:05",
            "Signed in as </span><b>ada</b>, operator",
            "gw-2",
        ] {
            assert!(html.contains(part), "{name}: {part}");
        }
    }
    let signed_out = Chrome { user: None, ..PLAIN.broken() };
    let html = render(PageView::SignIn(&PLAIN.sign_in()), &signed_out);
    assert!(html.contains("The rules on disk are refused") && !html.contains("<nav") && !html.contains("sign-out"));
    assert!(!html.contains("gw-2") && !html.contains("3f9c2a7d10be"), "no detail without a user");
}

#[test]
fn filters_stay_in_links_and_forms() {
    let html = render(PageView::Callbacks(&PLAIN.callbacks(2)), &PLAIN.chrome());
    let filter = "state=failed&amp;merchant=acme&amp;order_id=order-2026-11-00017&amp;since=2h&amp;until=30m";
    for part in [
        format!("href=\"?{filter}\""),
        format!("href=\"?{filter}&amp;after=1767323045678.7\""),
        format!("href=\"/callbacks/resend?{filter}\""),
        "<option value=\"failed\" selected>".into(),
    ] {
        assert!(html.contains(&part), "{part}");
    }
    let html = render(PageView::ResendAll(&PLAIN.resend_all()), &PLAIN.chrome());
    for part in ["name=\"since\" value=\"2h\"", "name=\"merchant\" value=\"acme\"", "Resend 1,137 callbacks and more"] {
        assert!(html.contains(part), "{part}");
    }
}

#[test]
fn the_sign_in_form_can_lead_on_by_itself() {
    let refresh = "<meta http-equiv=\"refresh\" content=\"0; url=&#x2f;callbacks\">";
    for is_repeated in [false, true] {
        let view = SignInView { to: "/callbacks".into(), is_repeated, problem: None };
        let html = render(PageView::SignIn(&view), &Chrome::default());
        assert_eq!(html.contains(refresh), is_repeated);
    }
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
    let html = render(PageView::SignIn(&SignInView::default()), &Chrome::default());
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
    for error in ConsoleError::ALL {
        let view = ErrorView { detail: None, ..PLAIN.error(error) };
        write(&format!("error-{error:?}").to_lowercase(), render(PageView::Error(&view), &PLAIN.chrome()));
    }
}
