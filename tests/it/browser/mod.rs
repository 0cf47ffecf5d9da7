//! The customer's way, and the operator's, in a real browser: headless Chromium, driven by playwright-core, judged by
//! axe-core.
//!
//! The programs beside this file read a plan (links, and where they have to lead) from their environment and fail where
//! the browser shows anything else. With `PAYBRIDGE_LONG=1`, `looks.mjs` and `console.mjs` leave a picture of every page in
//! every look in `target/browser/screenshots`, for people. `.ci/run browser` installs everything; where something is missing
//! these tests say so and pass, unless `PAYBRIDGE_REQUIRE_TOOLS=1`.

mod console;
mod merchant;

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::support::bodies::with;
use crate::support::request::ACME;
use crate::support::rules::write_file;
use crate::support::{Gateway, Request, Rules, deposit, payin, text, tools};
use merchant::Merchant;
use serde_json::{Value, json};

/// How long the browser may take for a program.
const PATIENCE: Duration = Duration::from_mins(16);
/// What installs everything.
const INSTALLER: &str = ".ci/run browser";
/// A query whose every byte counts.
const QUERY: &str = "order=7%2F1&note=a%20b+c&x=%c3%BC&empty=&flag&&=";

/// A browser that is installed, with what drives it.
struct Browser {
    program: PathBuf,
    node: PathBuf,
}

impl Browser {
    fn installed() -> Option<Self> {
        let program = tools::in_path("chromium", INSTALLER)?;
        let node = tools::in_path("node", INSTALLER)?;
        for library in ["playwright-core", "axe-core"] {
            tools::installed(&format!("target/browser/node_modules/{library}/package.json"), library, INSTALLER)?;
        }
        Some(Self { program, node })
    }

    /// Runs a program with its plan against these gateways.
    #[track_caller]
    fn run(&self, program: &str, gateways: &[&Gateway], plan: &Value) {
        let scratch = tempfile::tempdir().unwrap();
        let file = |gateway: &Gateway, name| gateway.root.path().join("certs").join(name);
        let certificates: Vec<_> = gateways.iter().map(|gateway| file(gateway, "server.pem")).collect();
        let authorities = gateways.iter().map(|gateway| std::fs::read_to_string(file(gateway, "ca.pem")).unwrap());
        let trusted = scratch.path().join("trusted.pem");
        std::fs::write(&trusted, authorities.collect::<String>()).unwrap();
        let home = tools::root();
        let pictures = home.join("target/browser/screenshots").join(program.trim_end_matches(".mjs"));
        if std::env::var_os("PAYBRIDGE_LONG").is_some() {
            let _ = std::fs::remove_dir_all(&pictures);
        }
        let mut command = Command::new(&self.node);
        command
            .arg(home.join("tests/it/browser").join(program))
            .current_dir(scratch.path())
            .env("BROWSER_PROGRAM", &self.program)
            .env("BROWSER_MODULES", home.join("target/browser"))
            .env("BROWSER_PICTURES", pictures)
            .env("BROWSER_CERTIFICATES", json!(certificates).to_string())
            .env("BROWSER_PLAN", plan.to_string())
            // What keeps a page still asks in the browser's place.
            .env("NODE_EXTRA_CA_CERTS", trusted)
            .env("NODE_OPTIONS", "--dns-result-order=ipv4first");
        tools::output(tools::without_detours(&mut command), PATIENCE);
    }
}

/// The scheme, host and port that customers know a gateway by.
fn origin(gateway: &Gateway) -> String {
    format!("https://localhost:{}", gateway.public.port())
}

/// A deposit that was created, as a walk needs it.
struct Order {
    url: String,
    transaction_id: String,
    plan: Value,
}

/// Creates a deposit whose return URLs are a merchant's.
async fn order(gateway: &Gateway, merchant: &str, id: &str, amount: &str, shop: &str) -> Order {
    let amount: Value = serde_json::from_str(amount).unwrap();
    let mut body = with(with(deposit(id), "amount", Some(amount)), "method", Some(shop.into()));
    let mut plan = json!({});
    for status in ["success", "pending", "fail"] {
        let to = format!("{merchant}/{status}/{}?{QUERY}", segment(id));
        body = with(body, &format!("{status}_url"), Some(to.as_str().into()));
        plan[status] = to.into();
    }
    let reply = gateway.client().send(&Request::deposit(&ACME, &body)).await.expect(200).json();
    let url = text(&reply, "redirect_url").to_owned();
    plan["url"] = url.as_str().into();
    Order { url, transaction_id: text(&reply, "transaction_id").to_owned(), plan }
}

/// What of a name can stand in a path.
fn segment(id: &str) -> String {
    id.chars().filter(char::is_ascii_alphanumeric).collect()
}

/// The link with its last character changed.
fn altered(url: &str) -> String {
    let last = if url.ends_with('0') { "1" } else { "0" };
    format!("{}{last}", &url[..url.len() - 1])
}

#[tokio::test]
async fn every_state_looks_well_in_every_look() {
    let Some(browser) = Browser::installed() else { return };
    let named = Rules::default()
        .edit("merchants/acme.toml", "Acme Ltd", "Nordwind Books")
        .edit("shops/card-eur.toml", "currency", "name = \"Card\"\ncurrency")
        .edit("shops/slow-eur.toml", "currency", "name = \"Card\"\ncurrency");
    let gateway = Gateway::start(&named);
    let crowded = Gateway::start(&Rules::default().with("limits", "pages_per_ip = { per_second = 1, burst = 1 }"));
    let shop = "https://shop.example";
    let link = async |id: &str, amount: &str, at: &str| order(&gateway, shop, id, amount, at).await.url;
    let preparing = link("NW-2026-004711", "1234.50", "slow-eur").await;
    let hostile = "</dd><img src=x onerror=alert(1)><script>alert(2)</script>&amp;\"'";
    let plan = json!({
        "origins": [origin(&gateway), origin(&crowded)],
        "instructions": link("NW-2026-004712", "1234.03", "card-eur").await,
        "stopped": link("NW-2026-004713", "1234.02", "card-eur").await,
        "sandbox": link("NW-2026-004714", "1234.50", "card-eur").await,
        "paid": link("NW-2026-004715", "1234.50", "card-eur").await,
        "declined": link("NW-2026-004716", "1234.50", "card-eur").await,
        "refused": altered(&preparing),
        "busy": format!("{}/pay/none", origin(&crowded)),
        "hostile": { "order_id": hostile, "url": link(hostile, "1.50", "slow-eur").await },
        "preparing": preparing,
    });
    browser.run("looks.mjs", &[&gateway, &crowded], &plan);
}

/// A shop whose deposits are prepared for as long as its file says.
const PATIENT: &str = "shops/patient-eur.toml";
const PATIENT_SHOP: &str = "currency = \"EUR\"\n[provider]\nkind = \"sandbox\"\ndelay = \"6h\"\n";

/// Rules with that shop.
fn patient() -> Rules {
    let access = "[shops.patient-eur]\npayin = true\n[shops.half-eur]";
    Rules::default().edit("merchants/acme.toml", "[shops.half-eur]", access).file(PATIENT, PATIENT_SHOP)
}

/// The orders of a walk: all but the first were made by v2.
struct Orders {
    paid_by_v1: String,
    paid: [Order; 1],
    failed: [Order; 2],
    pending: [Order; 4],
    plan: Value,
}

/// The orders that a walk needs. `id` begins their names.
async fn orders(gateway: &Gateway, merchant: &str, id: &str) -> Orders {
    let of =
        async |name: &str, amount: &str| order(gateway, merchant, &format!("{id}{name}"), amount, "card-eur").await;
    let both = of("both", "10.50").await;
    let (decline, failed) = (of("decline", "10.50").await, of("failed", "10.01").await);
    let pending =
        [of("leave", "10.50").await, of("told", "10.03").await, of("stop", "10.02").await, of("slow", "10.04").await];
    // The last one prepares until the browser has watched it.
    let paid_by_v1 = format!("{id}v1");
    let success = format!("{merchant}/success/{}?{QUERY}", segment(&paid_by_v1));
    let body = with(payin(&paid_by_v1), "shop_code", Some("patient-eur".into()));
    let body = with(body, "paymentData.return_user_url", Some(success.as_str().into()));
    let reply = gateway.client().send(&Request::payin(&ACME, &body)).await.expect(200).json();
    let plan = json!({
        "pay": { "url": text(&reply, "redirect_url"), "success": success },
        "decline": decline.plan, "failed": failed.plan, "both": both.plan,
        "leave": pending[0].plan, "instructions": pending[1].plan, "stopped": pending[2].plan,
        "slow": pending[3].plan,
    });
    Orders { paid_by_v1, paid: [both], failed: [decline, failed], pending, plan }
}

impl Orders {
    /// What the browser did was posted, once, and nothing else was.
    async fn check(&self, gateway: &Gateway) {
        let client = gateway.client();
        let by_v1 = client.send(&Request::v1_status(&ACME, "payin", &self.paid_by_v1)).await.expect(200);
        assert!(by_v1.text().contains("SUCCESS"), "{by_v1:?}");
        let (paid, failed, pending) = (self.paid.iter(), self.failed.iter(), self.pending.iter());
        let all = paid.map(|order| (order, "SUCCESS")).chain(failed.map(|order| (order, "FAILED")));
        for (order, expected) in all.chain(pending.map(|order| (order, "PENDING"))) {
            let status = client.send(&Request::status(&ACME, &order.transaction_id)).await.expect(200).json();
            assert_eq!(text(&status, "status"), expected, "{}", order.url);
        }
    }
}

#[tokio::test]
async fn every_way_leads_to_the_merchant() {
    let Some(browser) = Browser::installed() else { return };
    let gateway = Gateway::start(&patient());
    let shop = Merchant::open(&gateway.root.path().join("certs"));
    let site = shop.origin();
    let hasty = Gateway::start(&Rules::default().with("pages", "link_lifetime = \"1s\""));
    let expiring = order(&hasty, &site, "expiring", "1.50", "slow-eur").await.url;
    let preparing = order(&gateway, &site, "preparing", "1.50", "slow-eur").await.url;
    let (entry, query) = preparing.split_once('?').unwrap();
    let (until, signature) = query.split_once('&').unwrap();
    let unscripted = orders(&gateway, &site, "plain-").await;
    let scripted = orders(&gateway, &site, "scripts-").await;
    let plan = json!({
        "origins": [origin(&gateway), origin(&hasty)],
        "merchant": site,
        "preparing": preparing,
        "expiring": expiring,
        "altered": [
            altered(&preparing), entry, format!("{preparing}&utm_source=mail"), format!("{entry}?{signature}&{until}"),
            format!("{entry}?{until}"),
        ],
        "walks": { "plain": unscripted.plan, "scripts": scripted.plan },
    });
    std::thread::scope(|scope| {
        let walks = scope.spawn(|| browser.run("walks.mjs", &[&gateway, &hasty], &plan));
        while !walks.is_finished() && shop.seen("/seen").len() < 2 {
            std::thread::sleep(Duration::from_millis(20));
        }
        // Both walks have watched long enough.
        write_file(&gateway.rules_dir().join(PATIENT), &PATIENT_SHOP.replace("6h", "50ms"));
        walks.join().unwrap();
    });
    for orders in [&unscripted, &scripted] {
        orders.check(&gateway).await;
    }
    arrived_as_named(&shop);
}

/// The merchant was asked for its URLs byte for byte, and was not told where its customer came from.
fn arrived_as_named(merchant: &Merchant) {
    for status in ["success", "pending", "fail"] {
        let seen = merchant.seen(&format!("/{status}/"));
        assert!(!seen.is_empty(), "{status}");
        for seen in seen {
            assert!(seen.target.ends_with(&format!("?{QUERY}")), "{seen:?}");
            assert!(!seen.names_its_origin(), "{seen:?}");
        }
    }
    let inside = merchant.seen("/inside");
    assert!(!inside.is_empty() && inside.iter().all(merchant::Seen::names_its_origin), "{inside:?}");
}
