//! Views with everything that a page can show. Every text contains `mark`, so that a test sees where it arrives.

use crate::console::*;
use crate::domain::UnixMillis;
use crate::shadow::{Finding, MerchantReadiness, ReadinessRow, ReadinessVerdict, RulePlace};

/// 2026-11-24 12:11:05 UTC.
pub(super) const NOW: UnixMillis = UnixMillis(1_795_522_265_000);

pub(super) fn ago(seconds: i64) -> UnixMillis {
    UnixMillis(NOW.0 - seconds * 1000)
}

/// Makes views whose texts end with a mark.
#[derive(Clone, Copy)]
pub(super) struct Fixtures {
    pub(super) mark: &'static str,
}

impl Fixtures {
    pub(super) fn text(self, text: &str) -> String {
        format!("{text}{}", self.mark)
    }

    fn link(self, href: &str, text: &str) -> PageLink {
        PageLink { href: self.text(href), text: self.text(text) }
    }

    fn message(self, tone: Tone, text: &str, link: Option<PageLink>) -> PageMessage {
        PageMessage { tone, text: self.text(text), link }
    }

    pub(super) fn chrome(self) -> Chrome {
        Chrome {
            user: Some(SignedInUser {
                name: self.text("ada"),
                role: self.text("operator"),
                may_act: true,
                has_session: true,
            }),
            made_at: NOW,
            node: self.text("gw-2"),
            rules_version: self.text("3f9c2a7d10be"),
            form_key: self.text("zk3Jq0V8bXw1s9Tn"),
            ..Chrome::default()
        }
    }

    pub(super) fn viewer(self) -> Chrome {
        let mut chrome = self.chrome();
        chrome.user =
            Some(SignedInUser { name: self.text("bob"), role: self.text("viewer"), may_act: false, has_session: true });
        chrome
    }

    pub(super) fn broken(self) -> Chrome {
        Chrome {
            banners: vec![
                self.message(
                    Tone::Bad,
                    "The rules on disk are refused since 12:04; those from 09:15 keep serving.",
                    Some(self.link("/rules", "See what is wrong")),
                ),
                self.message(Tone::Bad, "The store does not answer: creates are refused with 503.", None),
                self.message(Tone::Warn, "This process drains: new connections go elsewhere.", None),
            ],
            notice: Some(self.message(
                Tone::Bad,
                "The reload was refused: 2 problems.",
                Some(self.link("/rules", "Show them")),
            )),
            is_read_only: true,
            ..self.chrome()
        }
    }

    pub(super) fn acted(self) -> Chrome {
        let notice = Some(self.message(Tone::Good, "The rules were reloaded: version 3f9c2a7d10be is in force.", None));
        Chrome { notice, ..self.chrome() }
    }

    pub(super) fn sign_in(self) -> SignInView {
        SignInView {
            to: self.text("/callbacks"),
            is_repeated: false,
            problem: Some(self.text("This token is not known.")),
        }
    }

    pub(super) fn overview(self) -> OverviewView {
        let item = |tone, title: &str, detail: &str, since, href: &str, text: &str| AttentionItem {
            tone,
            title: self.text(title),
            detail: self.text(detail),
            since,
            link: self.link(href, text),
        };
        OverviewView {
            attention: vec![
                item(
                    Tone::Bad,
                    "Rules on disk are refused",
                    "merchants/acme.toml:14:9 and 1 more; the rules from 09:15 keep serving.",
                    Some(ago(420)),
                    "/rules",
                    "See the problems",
                ),
                item(
                    Tone::Bad,
                    "137 callbacks failed",
                    "Given up after 3 days without a 2xx, most of them of acme.",
                    Some(ago(7300)),
                    "/callbacks?state=failed",
                    "See them",
                ),
                item(
                    Tone::Warn,
                    "A circuit is open",
                    "https://shop.example:443 does not answer; 41 callbacks wait.",
                    Some(ago(2700)),
                    "/callbacks#receivers",
                    "See the receivers",
                ),
                item(
                    Tone::Warn,
                    "The certificate ends in 12 days",
                    "gateway.example, valid until 2026-12-06.",
                    None,
                    "/rules",
                    "See the rules",
                ),
            ],
            refusals: self.refusals(),
            plots: self.plots(),
        }
    }

    fn plots(self) -> Vec<Plot> {
        let wave = |scale: f64, shift: f64, jitter: u32| {
            let value = move |place: u32| {
                let noise = f64::from(place.wrapping_mul(2_654_435_761) % 1000) / 1000.0;
                let gap = jitter == 3 && (100..130).contains(&place);
                (!gap).then(|| scale * (1.0 + (f64::from(place) / 40.0 + shift).sin() * 0.5 + noise * 0.3))
            };
            (0..360).map(value).collect::<Vec<_>>()
        };
        let series = |name: &str, points| PlotSeries { name: self.text(name), points };
        let plot = |title: &str, subtitle: &str, unit, series| Plot {
            title: self.text(title),
            subtitle: self.text(subtitle),
            unit,
            until: NOW,
            step_seconds: 10,
            series,
        };
        let spikes = (0..360).map(|place| Some(if place % 90 == 17 { 3.2 } else { 0.0 })).collect();
        vec![
            plot(
                "Requests",
                "a second, by route",
                PlotUnit::PerSecond,
                vec![
                    series("v1 create", wave(120.0, 0.0, 1)),
                    series("v1 status", wave(60.0, 2.0, 1)),
                    series("v2 create", wave(25.0, 4.0, 3)),
                    series("pages", wave(12.0, 1.0, 1)),
                    series("relay", wave(5.0, 5.0, 1)),
                ],
            ),
            plot(
                "Refusals",
                "a second, by reason",
                PlotUnit::PerSecond,
                vec![
                    series("signature", wave(0.4, 0.0, 1)),
                    series("rate limit", spikes),
                    series("fields", wave(0.2, 3.0, 1)),
                ],
            ),
            plot(
                "Latency",
                "of creates",
                PlotUnit::Seconds,
                vec![series("p50", wave(0.0021, 0.0, 1)), series("p99", wave(0.011, 1.0, 3))],
            ),
            plot("Commits", "a second", PlotUnit::PerSecond, vec![series("commits", wave(38.0, 0.0, 3))]),
        ]
    }

    pub(super) fn rules(self) -> RulesView {
        let problem =
            |file: &str, line, column, message: &str, suggestion: Option<&str>, excerpt: &str| RuleProblemItem {
                file: self.text(file),
                line,
                column,
                message: self.text(message),
                suggestion: suggestion.map(|text| self.text(text)),
                excerpt: Some(self.text(excerpt)),
            };
        RulesView {
            version: self.text("3f9c2a7d10be"),
            since: ago(10_600),
            directory: self.text("/etc/paybridge/rules"),
            is_refused: true,
            more_problems: 3,
            problems: vec![
                problem(
                    "merchants/acme.toml",
                    14,
                    9,
                    "unknown key \"cal_back_url\"",
                    Some("did you mean `callback_url`?"),
                    "13 | [v1]\n14 | cal_back_url = \"https://acme.example/cb\"\n   | ^^^^^^^^^^^^",
                ),
                problem(
                    "shops/card-eur.toml",
                    3,
                    1,
                    "`currency` must be three capital letters",
                    None,
                    "3 | currency = \"euro\"\n  |            ^^^^^^",
                ),
            ],
            warnings: vec![problem(
                "merchants/beta.toml",
                2,
                1,
                "the ids of payin are not complete: a repeat of an old order would be made anew",
                Some("run `paybridge import-ids --complete`"),
                "2 | mode = \"translate\"",
            )],
            needs_restart: vec![self.text("[server] listen"), self.text("[store] url")],
        }
    }

    fn refusals(self) -> Vec<RefusalItem> {
        [("signature", 1204), ("unknown field", 311), ("rate limit", 7)]
            .map(|(reason, count)| RefusalItem { reason: self.text(reason), count })
            .into()
    }

    pub(super) fn merchants(self, count: u64) -> MerchantsView {
        let merchant = |number: u64| MerchantItem {
            id: self.text(&format!("merchant-{number}")),
            name: self.text(&format!("Merchant Number {number} Ltd")),
            mode: self.text(["translate", "legacy", "shadow", "staged"][usize::try_from(number % 4).unwrap()]),
            percent: (number % 4 == 3).then(|| self.text("payin 5 %, payout 0 %")),
            readiness: (number % 4 > 1)
                .then(|| self.text(["ready", "not ready"][usize::try_from(number % 2).unwrap()])),
            share: VersionShare { v1: number * 997 % 5000, v2: number * 313 % 1700 },
            last_v1_at: (!number.is_multiple_of(5)).then(|| ago(i64::try_from(number * number).unwrap())),
            top_refusal: self.refusals().into_iter().nth(usize::try_from(number % 4).unwrap()),
        };
        MerchantsView {
            filter: MerchantSearch { text: self.text("merchant"), mode: String::new() },
            total: 10_000,
            matching: 9_312,
            merchants: (0..count).map(merchant).collect(),
            next: Some(self.text("merchant-49")),
            is_continued: true,
        }
    }

    pub(super) fn merchant(self) -> MerchantView {
        let finding = |member: &str, reason: &str, count, rule: Option<(&str, &str)>| Finding {
            member: self.text(member).into(),
            reason: self.text(reason).into(),
            count,
            samples: vec![serde_json::json!({ self.text("amount"): "string(5)" })],
            rule: rule.map(|(file, key)| RulePlace { file: self.text(file).into(), key: self.text(key).into() }),
        };
        let readiness = |direction: &'static str, verdict, blockers| ReadinessRow {
            shop: self.text("card-eur").into(),
            direction,
            verdict,
            since: Some("2026-11-17T13:31:05.000Z".into()),
            creates: 41_250,
            would_create: 40_939,
            would_refuse: 311,
            not_checked: 2,
            not_compared: 19,
            ids_complete: direction == "payin",
            blockers,
            widenings: vec![finding("amount", "more than two decimals", 4, None)],
            losses: vec![finding("paymentData.note", "the shop's schema does not name it", 812, None)],
        };
        let blocker =
            finding("customer.phone", "is not a member of v1", 311, Some(("merchants/acme.toml", "unknown_fields")));
        let shop = |code: &str, is_default, is_active: bool| ShopItem {
            code: self.text(code),
            currency: self.text("EUR"),
            provider: self.text("http"),
            payin: true,
            payout: !is_active,
            v2_payin: is_active,
            v2_payout: true,
            is_active,
            is_default,
        };
        MerchantView {
            id: self.text("acme"),
            name: self.text("Acme Ltd"),
            mode: self.text("shadow"),
            percent: Some(self.text("payin 5 %, payout 0 %")),
            dialect: self.text("v1"),
            share: VersionShare { v1: 41_250, v2: 1_310 },
            last_v1_at: Some(ago(3)),
            refusals: self.refusals(),
            shops: vec![shop("card-eur", true, true), shop("bank-eur", false, false)],
            keys: vec![
                KeyItem {
                    masked: self.text("acme…ive"),
                    v1: true,
                    v2: true,
                    allowed_ips: vec![self.text("203.0.113.0/24"), self.text("2001:db8::/32")],
                    rate_limit: Some(self.text("200 a second, burst 400")),
                    shops: vec![self.text("card-eur")],
                },
                KeyItem { masked: self.text("acme…old"), v1: true, ..KeyItem::default() },
            ],
            readiness_note: Some(self.text("The remote engine applies rules of its own.")),
            readiness: Some(MerchantReadiness {
                merchant: self.text("acme").into(),
                verdict: ReadinessVerdict::NotReady,
                rows: vec![
                    readiness("payin", ReadinessVerdict::NotReady, vec![blocker]),
                    readiness("payout", ReadinessVerdict::NotEnough, Vec::new()),
                ],
            }),
        }
    }

    pub(super) fn operation_item(self, number: u64, status: &str) -> OperationItem {
        OperationItem {
            transaction_id: self.text(&format!("80412{number:07}")),
            merchant: self.text("acme"),
            order_id: self.text(&format!("order-2026-11-{number:05}")),
            direction: self.text("payin"),
            status: self.text(status),
            amount: self.text("1,249.90"),
            currency: self.text("EUR"),
            created_at: ago(4000),
        }
    }

    pub(super) fn operations(self, count: u64) -> OperationsView {
        let states = ["SUCCESS", "FAILED", "PENDING"];
        OperationsView {
            note: Some(self.text("There is no merchant of this id.")),
            search: OperationSearch {
                transaction_id: self.text("80412"),
                merchant: self.text("acme"),
                direction: "payout".into(),
                order_id: self.text("order-2026-11-00017"),
            },
            problem: None,
            is_searched: true,
            found: (0..count)
                .map(|number| self.operation_item(number, states[usize::try_from(number % 3).unwrap()]))
                .collect(),
            elsewhere: None,
        }
    }

    pub(super) fn operation(self) -> OperationPageView {
        let fact = |label: &str, value: &str| Fact { label: self.text(label), value: self.text(value) };
        let entry = |seconds, tone, title: &str, detail: Option<&str>, duration_ms, callback: bool| TimelineEntry {
            at: ago(seconds),
            tone,
            title: self.text(title),
            detail: detail.map(|text| self.text(text)),
            duration_ms,
            callback_id: callback.then(|| self.text("cb_000000000000000700000000000000ff")),
        };
        OperationPageView {
            operation: self.operation_item(17, "SUCCESS"),
            facts: vec![
                fact("Shop", "card-eur"),
                fact("Method", "card"),
                fact("Made through", "v1, key acme…ive"),
                fact("Provider", "http, reference p-81723"),
                fact("Account", "411111••••••1111"),
                fact("Finished", "2026-11-24 11:05:12"),
            ],
            timeline: vec![
                entry(
                    4000,
                    Tone::Plain,
                    "Created",
                    Some("v1 create of order-2026-11-00017, stored as PENDING"),
                    None,
                    false,
                ),
                entry(3999, Tone::Plain, "Sent to the provider", Some("accepted, reference p-81723"), Some(182), false),
                entry(3953, Tone::Good, "SUCCESS", Some("reported by the provider"), None, false),
                entry(3952, Tone::Bad, "Callback attempt 1", Some("no answer within 10 s"), Some(10_004), true),
                entry(3940, Tone::Warn, "Callback attempt 2", Some("HTTP 503"), Some(41), true),
                entry(3921, Tone::Good, "Callback attempt 3", Some("HTTP 200"), Some(38), true),
            ],
            note: Some(self.text("Attempts before the last 20 are not kept.")),
        }
    }

    pub(super) fn callback_item(self, number: u64, state: &str) -> CallbackItem {
        CallbackItem {
            id: self.text(&format!("cb_{number:032x}")),
            merchant: self.text("acme"),
            order_id: self.text(&format!("order-2026-11-{number:05}")),
            direction: self.text("payin"),
            state: self.text(state),
            attempts: 12,
            queued_at: ago(7300),
            next_attempt_at: (state == "pending" && !number.is_multiple_of(2)).then(|| ago(-95)),
            waits_for_receiver: state == "pending" && number.is_multiple_of(2),
            last_outcome: Some(self.text("connection refused")),
        }
    }

    pub(super) fn callback_filter(self) -> CallbackSearch {
        CallbackSearch {
            state: "failed".into(),
            merchant: self.text("acme"),
            order_id: self.text("order-2026-11-00017"),
            since: self.text("2h"),
            until: self.text("30m"),
        }
    }

    pub(super) fn callbacks(self, count: u64) -> CallbacksView {
        let states = ["failed", "pending", "delivered"];
        CallbacksView {
            note: Some(self.text("There is no merchant of this id.")),
            filter: self.callback_filter(),
            problem: None,
            callbacks: (0..count)
                .map(|number| self.callback_item(number, states[usize::try_from(number % 3).unwrap()]))
                .collect(),
            next: Some(self.text("1767323045678.7")),
            is_continued: true,
            open_circuits: vec![self.text("https://shop.example:443")],
            more_circuits: 212,
        }
    }

    fn attempt(self, seconds: i64, outcome: &str, tone: Tone) -> AttemptItem {
        AttemptItem { at: ago(seconds), duration_ms: 10_004, outcome: self.text(outcome), tone }
    }

    pub(super) fn callback(self) -> CallbackView {
        CallbackView {
            callback: self.callback_item(7, "failed"),
            transaction_id: Some(self.text("804120000017")),
            url: self.text("https://shop.example/cb?shop=7"),
            format: self.text("v2"),
            is_under_way: false,
            attempts: vec![
                self.attempt(100, "HTTP 200", Tone::Good),
                self.attempt(4000, "HTTP 503", Tone::Bad),
                self.attempt(7290, "timed out", Tone::Bad),
            ],
        }
    }

    pub(super) fn resend_all(self) -> ResendAllView {
        ResendAllView { filter: self.callback_filter(), problem: None, count: 1137, has_more: true }
    }

    pub(super) fn sample(self) -> SampleView {
        SampleView {
            merchant: self.text("acme"),
            kind: "v1".into(),
            url: self.text("https://acme.example/cb"),
            problem: Some(self.text("the merchant has no key with a v1 secret")),
            result: Some(SampleResult {
                id: self.text("sample_5f3a"),
                url: self.text("https://acme.example/cb"),
                body: self.text("{\"order_id\":\"sample-5f3a\"}"),
                attempt: self.attempt(1, "HTTP 200", Tone::Good),
            }),
        }
    }

    pub(super) fn explain(self) -> ExplainView {
        let member = |v1: Option<&str>, v2: Option<&str>, origin: &str, note: &str| ExplainedItem {
            v1: v1.map(|name| self.text(name)),
            v2: v2.map(|name| self.text(name)),
            instead: self.text(if v2.is_some() { "" } else { "left out" }),
            value: v1.map(|_| self.text("12.34")),
            origin: self.text(origin),
            note: self.text(note),
        };
        ExplainView {
            merchant: self.text("acme"),
            kind: "payout".into(),
            body: self.text("{\n  \"external_id\": \"order-17\",\n  \"amount\": 12.5,\n  \"paymentData\": { \"card\": \"411111••••••1111\" }\n}"),
            is_masked: true,
            problem: Some(self.text("The merchant is not known.")),
            wrong_field: "merchant".into(),
            explanation: Some(ExplanationView {
                tone: Tone::Bad,
                verdict: self.text("It would be refused with 400."),
                refused_member: Some(self.text("paymentData.bank")),
                reason: Some(self.text("is required by the schema of card-eur")),
                members: vec![
                    member(Some("external_id"), Some("order_id"), "the body", "as is"),
                    member(Some("amount"), Some("amount"), "the body", "written as \"12.50\""),
                    member(None, Some("callback_url"), "this gateway's relay address", "results are relayed in v1 shape"),
                    member(None, Some("return_url"), "merchants/acme.toml [v1] return_url", "filled in: the request names none"),
                    member(Some("paymentData.card"), Some("fields.card"), "the body", "as is"),
                    member(Some("note"), None, "the body", "the shop's schema does not name it"),
                ],
                notes: vec![self.text("The merchant has no API key that can call v1.")],
            }),
        }
    }

    pub(super) fn audit(self, count: u64) -> AuditView {
        let row = |number: u64| AuditItem {
            at: ago(i64::try_from(number * 700).unwrap()),
            user: self.text(["ada", "token", "cli:root"][usize::try_from(number % 3).unwrap()]),
            role: self.text("operator"),
            address: self.text("192.0.2.17"),
            request_id: self.text("0190f4a1c2d3"),
            action: self.text(["rules.reload", "callbacks.resend"][usize::try_from(number % 2).unwrap()]),
            target: self.text("cb_000000000000000700000000000000ff"),
            parameters: vec![
                Fact { label: self.text("state"), value: self.text("failed") },
                Fact {
                    label: self.text("order_id"),
                    value: self.text(&"9".repeat(if number == 0 { 255 } else { 17 })),
                },
            ],
            outcome: (number % 5 != 1).then(|| self.text("137 queued again")),
            is_failed: number % 7 == 3,
            rules_version: self.text("3f9c2a7d10be"),
        };
        AuditView {
            filter: AuditSearch {
                user: self.text("ada"),
                action: self.text("rules.reload"),
                since: self.text("3d"),
                until: self.text("1h"),
            },
            problem: None,
            rows: (0..count).map(row).collect(),
            next: Some(self.text("91")),
            is_continued: true,
        }
    }

    pub(super) fn error(self, error: ConsoleError) -> ErrorView {
        ErrorView {
            error,
            detail: Some(self.text("since: must be a time such as 2026-01-02T03:04:05Z, or an age such as 30m")),
            request_id: self.text("0190f4a1c2d3"),
        }
    }
}
