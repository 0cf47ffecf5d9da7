//! Documents with everything that a page can show. Every text that others choose contains `mark`, so that a test sees where
//! it arrives.

use std::sync::Arc;
use std::time::Duration;

use crate::callback::Sampled;
use crate::callback::listing::Slice;
use crate::console::{Plot, PlotSeries, PlotUnit};
use crate::domain::{CallbackUrl, Direction, MerchantId, OrderId, TransactionId, UnixMillis};
use crate::http::admin::access::SignInPage;
use crate::http::admin::chrome::{ActionNotice, Chrome};
use crate::http::admin::console::audit::{AuditFilter, AuditPage};
use crate::http::admin::console::callbacks::{CallbacksPage, ResendPage};
use crate::http::admin::console::explain::ExplainPage;
use crate::http::admin::console::merchants::{
    KeyDocument, MerchantDocument, MerchantFilter, MerchantPage, MerchantsPage, ShopDocument,
};
use crate::http::admin::console::operations::{OperationPage, OperationsPage};
use crate::http::admin::console::overview::OverviewPage;
use crate::http::admin::console::requests::{RequestFilter, RequestsPage};
use crate::http::admin::console::rules::{RulesPage, ShownProblem};
use crate::http::admin::parameters::CallbackFilter;
use crate::http::admin::reply::{ConsoleError, ErrorPage};
use crate::http::admin::rules::{CertificateInfo, ProblemInfo, RulesInfo};
use crate::http::admin::sessions::SignedIn;
use crate::operations::{
    OperationDocument, OperationFilter, OperationTimeline, OperationsDocument, TimelineEvent, WaitingResolution,
};
use crate::rules::Role;
use crate::shadow::{
    ExplainedMember, ExplainedVerdict, Explanation, Finding, MemberFate, MerchantReadiness, ReadinessRow,
    ReadinessVerdict, Refusal, RulePlace,
};
use crate::store::{
    ActionEnd, ActionId, ActionRecord, Backlog, CallbackId, CallbackRecord, CallbackState, CallbackSubject,
    CallbackTarget, CallbackTry, TryOutcome, Unanswered,
};
use crate::telemetry::{POINT_INTERVAL, RefusalCount, RefusedRequest};
use crate::traffic::TrafficView;
use crate::wire::time::rfc3339;

/// 2026-11-24 12:11:05 UTC.
pub(super) const NOW: UnixMillis = UnixMillis(1_795_522_265_000);

pub(super) fn ago(seconds: i64) -> UnixMillis {
    UnixMillis(NOW.0 - seconds * 1000)
}

/// Makes documents whose texts end with a mark.
#[derive(Clone, Copy)]
pub(super) struct Fixtures {
    pub(super) mark: &'static str,
}

impl Fixtures {
    pub(super) fn text(self, text: &str) -> String {
        format!("{text}{}", self.mark)
    }

    fn boxed(self, text: &str) -> Box<str> {
        self.text(text).into()
    }

    fn leaked(self, text: &str) -> &'static str {
        Box::leak(self.boxed(text))
    }

    fn user(self, name: &str, role: Role) -> &'static SignedIn {
        Box::leak(Box::new(SignedIn { name: self.boxed(name), role, has_session: true }))
    }

    pub(super) fn chrome(self) -> Chrome<'static> {
        Chrome {
            user: Some(self.user("ada", Role::Operator)),
            made_at: NOW,
            node: self.text("gw-2"),
            rules_version: self.text("3f9c2a7d10be"),
            idempotency_key: self.text("zk3Jq0V8bXw1s9Tn"),
            merchants: vec![(self.text("acme"), self.text("Acme Ltd"))],
            ..Chrome::default()
        }
    }

    pub(super) fn viewer(self) -> Chrome<'static> {
        Chrome { user: Some(self.user("bob", Role::Viewer)), ..self.chrome() }
    }

    pub(super) fn broken(self) -> Chrome<'static> {
        let end = ActionEnd { at: ago(5), outcome: self.boxed("failed: the files were refused; problems: 2") };
        Chrome {
            not_ready: Some(self.text("this process drains")),
            are_rules_refused: true,
            notice: Some(ActionNotice { action: Some(ActionRecord { end: Some(end), ..self.action(0) }) }),
            is_read_only: true,
            ..self.chrome()
        }
    }

    pub(super) fn acted(self) -> Chrome<'static> {
        let end = ActionEnd { at: ago(1), outcome: self.boxed("rules 3f9c2a7d10be were loaded") };
        let notice = Some(ActionNotice { action: Some(ActionRecord { end: Some(end), ..self.action(0) }) });
        Chrome { notice, ..self.chrome() }
    }

    pub(super) fn sign_in(self) -> SignInPage<'static> {
        SignInPage {
            to: self.leaked("/callbacks"),
            is_repeated: false,
            problem: Some(self.leaked("This token is not known.")),
        }
    }

    pub(super) fn overview(self) -> OverviewPage<'static> {
        let backlog = |count, seconds| Backlog { count, oldest: Some(ago(seconds)) };
        OverviewPage {
            rules: self.rules_info(),
            certificate_end: Some(ago(-86_400 * 12)),
            store_error: Some(self.text("the store does not respond")),
            attention_error: Some(self.text("the search takes over two seconds")),
            failed_callbacks: 1000,
            needing_attention: vec![("given_up", 3), ("late", 1200), ("contradicted", 1)],
            unanswered: Unanswered { jobs: backlog(3, 420), open: backlog(1000, 7300), in_doubt: backlog(7, 2700) },
            open_circuits: (213, vec![self.text("https://shop.example:443")]),
            counted_at_most: 1000,
            refusals: Box::leak(self.refusals().map(|(reason, count)| RefusalCount { reason, count }).into()),
            plots: self.plots(),
        }
    }

    fn plots(self) -> Vec<Plot<'static>> {
        let wave = |scale: f64, shift: f64, jitter: u32| {
            let value = move |place: u32| {
                let noise = f64::from(place.wrapping_mul(2_654_435_761) % 1000) / 1000.0;
                let gap = jitter == 3 && (100..130).contains(&place);
                (!gap).then(|| scale * (1.0 + (f64::from(place) / 40.0 + shift).sin() * 0.5 + noise * 0.3))
            };
            (0..360).map(value).collect::<Vec<_>>()
        };
        let series = |name: &str, points| PlotSeries { name: self.leaked(name), points };
        let plot = |title: &str, subtitle: &str, unit, series: Vec<_>| {
            Plot::of((self.leaked(title), self.leaked(subtitle)), unit, (NOW, POINT_INTERVAL), &series)
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

    fn rules_info(self) -> RulesInfo {
        RulesInfo {
            version: self.text("3f9c2a7d10be"),
            loaded_at: ago(10_600),
            error: Some(self.text("merchants/acme.toml:14:9: unknown key")),
            needs_restart: vec![self.leaked("[server] listen"), self.leaked("[store] url")],
            problem_count: 5,
            certificate: CertificateInfo { not_after: None, error: Some(self.text("the key is another one's")) },
            ..RulesInfo::default()
        }
    }

    pub(super) fn rules(self) -> RulesPage {
        let problem = |file: &str, line, column, message: &str, suggestion: Option<&str>, excerpt: &str| ShownProblem {
            problem: ProblemInfo {
                file: self.text(file),
                line,
                column,
                message: self.text(message),
                suggestion: suggestion.map(|text| self.text(text)),
                ..ProblemInfo::default()
            },
            excerpt: Some(self.text(excerpt)),
        };
        RulesPage {
            rules: self.rules_info(),
            directory: self.text("/etc/paybridge/rules"),
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
        }
    }

    fn refusals(self) -> [(&'static str, u64); 3] {
        [("signature", 1204), ("unknown field", 311), ("rate limit", 7)]
            .map(|(reason, count)| (self.leaked(reason), count))
    }

    pub(super) fn merchants(self, count: u64) -> MerchantsPage<'static> {
        let merchant = |number: u64| MerchantDocument {
            id: self.leaked(&format!("merchant-{number}")),
            name: self.leaked(&format!("Merchant Number {number} Ltd")),
            mode: self.leaked(["translate", "legacy", "shadow", "staged"][usize::try_from(number % 4).unwrap()]),
            percent: (number % 4 == 3).then(|| self.text("payin 5 %, payout 0 %")),
            readiness: (number % 4 > 1)
                .then_some([ReadinessVerdict::Ready, ReadinessVerdict::NotReady][usize::try_from(number % 2).unwrap()]),
            traffic: TrafficView {
                v1: number * 997 % 5000,
                v2: number * 313 % 1700,
                last_v1: (!number.is_multiple_of(5)).then(|| ago(i64::try_from(number * number).unwrap())),
                refusals: self.refusals().into_iter().skip(usize::try_from(number % 4).unwrap()).collect(),
            },
            dialect: "",
        };
        MerchantsPage {
            filter: MerchantFilter { text: self.text("merchant"), mode: String::new() },
            total: 10_000,
            matching: 9_312,
            merchants: (0..count).map(merchant).collect(),
            next: Some(self.leaked("merchant-49")),
            is_continued: true,
        }
    }

    pub(super) fn merchant(self) -> MerchantPage<'static> {
        let finding = |member: &str, reason: &str, count, rule: Option<(&str, &str)>| Finding {
            member: self.boxed(member),
            reason: self.boxed(reason),
            count,
            samples: vec![serde_json::json!({ self.text("amount"): "string(5)" })],
            rule: rule.map(|(file, key)| RulePlace { file: self.boxed(file), key: self.boxed(key) }),
        };
        let readiness = |direction: &'static str, verdict, blockers| ReadinessRow {
            shop: self.boxed("card-eur"),
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
        let shop = |code: &str, is_default, is_active: bool| ShopDocument {
            code: self.leaked(code),
            currency: self.leaked("EUR"),
            provider: self.leaked("http"),
            payin: true,
            payout: !is_active,
            v2_payin: is_active,
            v2_payout: true,
            is_active,
            is_default,
        };
        MerchantPage {
            merchant: MerchantDocument {
                id: self.leaked("acme"),
                name: self.leaked("Acme Ltd"),
                mode: self.leaked("shadow"),
                percent: Some(self.text("payin 5 %, payout 0 %")),
                dialect: self.leaked("v1"),
                traffic: TrafficView { v1: 41_250, v2: 1_310, last_v1: Some(ago(3)), refusals: self.refusals().into() },
                readiness: None,
            },
            shops: vec![shop("card-eur", true, true), shop("bank-eur", false, false)],
            keys: vec![
                KeyDocument {
                    masked: self.text("acme…ive"),
                    v1: true,
                    v2: true,
                    allowed_ips: vec![self.text("203.0.113.0/24"), self.text("2001:db8::/32")],
                    rate_limit: Some((200, 400)),
                    shops: vec![self.leaked("card-eur")],
                },
                KeyDocument { masked: self.text("acme…old"), v1: true, ..KeyDocument::default() },
            ],
            readiness_note: Some(self.leaked("The remote engine applies rules of its own.")),
            readiness: Some(MerchantReadiness {
                merchant: self.boxed("acme"),
                verdict: ReadinessVerdict::NotReady,
                rows: vec![
                    readiness("payin", ReadinessVerdict::NotReady, vec![blocker]),
                    readiness("payout", ReadinessVerdict::NotEnough, Vec::new()),
                ],
            }),
        }
    }

    pub(super) fn operation_document(self, number: u64, status: &'static str) -> OperationDocument {
        OperationDocument {
            transaction_id: Some(self.text(&format!("80412{number:07}"))),
            merchant: self.text("acme"),
            order_id: self.text(&format!("order-2026-11-{number:05}")),
            direction: "payin",
            through: "v1",
            shop: Some(self.text("card-eur")),
            status,
            amount: self.text("1,249.90"),
            currency: self.text("EUR"),
            created_at: rfc3339(ago(4000)),
            finished_at: None,
            account_number: Some(self.text("411111••••••1111")),
            cause: (status == "FAILED").then_some("provider"),
            cause_code: (status == "FAILED").then(|| self.boxed("51")),
            cause_text: (status == "FAILED").then(|| self.boxed("insufficient funds")),
            waits_for: (status == "PENDING").then_some("provider_answer"),
            attention: None,
        }
    }

    pub(super) fn operations(self, count: u64) -> OperationsPage {
        let states = ["SUCCESS", "FAILED", "PENDING"];
        let state = |number: u64| states[usize::try_from(number % 3).unwrap()];
        OperationsPage {
            filter: OperationFilter {
                transaction_id: self.text("80412"),
                merchant: self.text("acme"),
                direction: "payout".into(),
                order_id: self.text("order-2026-11-00017"),
                ..OperationFilter::default()
            },
            problem: None,
            unknown: Some(self.text("There is no merchant of this id.")),
            list: OperationsDocument {
                operations: (0..count).map(|number| self.operation_document(number, state(number))).collect(),
                next: (count > 0).then(|| self.text("80412")),
                ..OperationsDocument::default()
            },
            is_continued: false,
        }
    }

    /// An operation that waits for another operator, or is contradicted.
    pub(super) fn operation(self, status: &'static str) -> OperationPage {
        let event = |seconds, tone, title: &str, detail: Option<&str>, duration_ms, callback: bool| TimelineEvent {
            at: rfc3339(ago(seconds)),
            tone,
            title: self.leaked(title),
            detail: detail.map(|text| self.text(text)),
            duration_ms,
            callback_id: callback.then(|| self.text("cb_000000000000000700000000000000ff")),
        };
        let is_pending = status == "PENDING";
        let waiting = WaitingResolution {
            resolution: self.text("80412"),
            status: "SUCCESS",
            reason: self.boxed("paid by statement"),
            made_by: self.boxed("bob"),
        };
        let document = OperationTimeline {
            operation: self.operation_document(17, status),
            method: Some(self.text("card")),
            provider: Some("http"),
            prepared: is_pending.then_some("a payment page"),
            can_be_resolved: is_pending,
            can_be_queried: is_pending,
            waiting: is_pending.then_some(waiting),
            is_contradicted: !is_pending,
            timeline: vec![
                event(4000, "plain", "Created", Some("v1 create of order-2026-11-00017"), None, false),
                event(3953, "good", "SUCCESS", Some("reported by the provider"), None, false),
                event(3952, "bad", "Callback attempt 1", Some("no answer within 10 s"), Some(10_004), true),
                event(3940, "warn", "Callback attempt 2", Some("HTTP 503"), Some(41), true),
                event(3921, "good", "Callback attempt 3", Some("HTTP 200"), Some(38), true),
            ],
            kept_attempts: Some((1137, 20)),
        };
        OperationPage {
            document,
            needs_second: true,
            cannot_resolve: None,
            reason: self.text("as the statement has it"),
            problem: None,
        }
    }

    /// A callback; one that is pending waits for its receiver if its number is even.
    pub(super) fn record(self, number: u64, state: CallbackState) -> CallbackRecord {
        let operation = TransactionId::from_stored(i64::try_from(number + 1).unwrap()).unwrap();
        let url = CallbackUrl::new("https://shop.example/cb?shop=7").unwrap();
        CallbackRecord {
            id: CallbackId::new(CallbackSubject::Operation(operation), 255),
            merchant: acme(),
            direction: Direction::Payin,
            order_id: OrderId::new(&self.text(&format!("order-2026-11-{number:05}"))).unwrap(),
            transaction_id: Some(self.boxed("804120000017")),
            target: CallbackTarget::new(&acme(), &url.origin()),
            url,
            is_v1: false,
            state,
            is_claimed: false,
            queued_at: ago(7300),
            due: if number.is_multiple_of(2) { ago(5) } else { ago(-95) },
            tries: 12,
            last: Some(TryOutcome::Error(self.boxed("connection refused"))),
        }
    }

    /// Three attempts of a callback, the latest last.
    pub(super) fn tries(self) -> Vec<CallbackTry> {
        let duration = Duration::from_millis(10_004);
        let tried = |seconds, outcome| CallbackTry { at: ago(seconds), duration, outcome };
        vec![
            tried(7290, TryOutcome::Error(self.boxed("timed out"))),
            tried(4000, TryOutcome::Status(503)),
            tried(100, TryOutcome::Status(200)),
        ]
    }

    pub(super) fn callback_filter(self) -> CallbackFilter {
        CallbackFilter {
            state: "failed".into(),
            merchant: self.text("acme"),
            order_id: self.text("order-2026-11-00017"),
            since: self.text("2h"),
            until: self.text("30m"),
        }
    }

    pub(super) fn callbacks(self, count: u64) -> CallbacksPage<'static> {
        let states = [CallbackState::Failed, CallbackState::Pending, CallbackState::Delivered];
        let record = |number: u64| self.record(number, states[usize::try_from(number % 3).unwrap()]);
        let found = Box::leak(Box::new(Slice::of((0..=count).map(record).collect(), usize::try_from(count).unwrap())));
        CallbacksPage {
            filter: Box::leak(Box::new(self.callback_filter())),
            problem: None,
            note: Some(self.text("There is no merchant of this id.")),
            list: found.document(NOW),
            is_continued: true,
            receivers: vec![self.text("https://shop.example:443")],
            open_circuits: (213, vec![self.text("https://shop.example:443")]),
        }
    }

    pub(super) fn resend_all(self) -> ResendPage {
        ResendPage { filter: self.callback_filter(), count: 1137, has_more: true, ..ResendPage::default() }
    }

    pub(super) fn resend_pending(self) -> ResendPage {
        ResendPage { receiver: self.text("https://shop.example:443"), ..self.resend_all() }
    }

    pub(super) fn sampled(self) -> Sampled {
        Sampled {
            id: self.text("sample_5f3a"),
            through: crate::auth::Interface::V1,
            url: CallbackUrl::new("https://acme.example/cb?token=7").unwrap(),
            body: self.text("{\"order_id\":\"sample-5f3a\"}"),
            tried: CallbackTry {
                at: ago(1),
                duration: Duration::from_millis(10_004),
                outcome: TryOutcome::Error(self.boxed("no answer")),
            },
        }
    }

    pub(super) fn explain(self) -> ExplainPage {
        let member = |fate, v1: Option<&str>, v2: Option<&str>, from: Option<&str>, rule: &str| ExplainedMember {
            fate,
            v1_name: v1.map(|name| self.text(name)),
            v2_name: v2.map(|name| self.text(name)),
            filled_from: from.map(|from| self.text(from)),
            value: v1.map(|_| self.text("12.34")),
            rule: self.text(rule),
        };
        let refusal = Refusal {
            member: self.boxed("paymentData.bank"),
            reason: self.boxed("is required by the schema of card-eur"),
            file: self.boxed("shops/card-eur.toml"),
            key: self.boxed("[payin] schema"),
            is_named: true,
        };
        ExplainPage {
            merchant: self.text("acme"),
            kind: "payout".into(),
            body: self.text("{\n  \"external_id\": \"order-17\",\n  \"amount\": 12.5,\n  \"paymentData\": { \"card\": \"411111••••••1111\" }\n}"),
            is_masked: true,
            problem: Some(self.text("The merchant is not known.")),
            wrong_field: "merchant",
            explanation: Some(Explanation {
                body: String::new(),
                verdict: ExplainedVerdict::Refused(refusal),
                members: vec![
                    member(MemberFate::Forwarded, Some("external_id"), Some("order_id"), None, "as is"),
                    member(MemberFate::Forwarded, Some("amount"), Some("amount"), None, "written as \"12.50\""),
                    member(MemberFate::Relayed, None, None, None, "results are relayed in v1 shape"),
                    member(MemberFate::Forwarded, None, Some("return_url"), Some("merchants/acme.toml [v1] return_url"), "filled in"),
                    member(MemberFate::Relayed, Some("callback"), None, None, "as is"),
                    member(MemberFate::Added, None, Some("fields.card"), None, "the default of the schema"),
                    member(MemberFate::LeftOut, Some("note"), None, None, "the shop's schema does not name it"),
                    member(MemberFate::Dropped, None, Some("fields.x"), None, "the shop's schema does not name it"),
                ],
            }),
        }
    }

    pub(super) fn action(self, number: i64) -> ActionRecord {
        let order_id = self.text(&"9".repeat(if number == 0 { 255 } else { 17 }));
        let outcome = if number % 7 == 3 { "failed: 137 queued again" } else { "137 queued again" };
        ActionRecord {
            id: ActionId(number),
            at: ago(number * 700),
            user: self.boxed(["ada", "token", "cli:root"][usize::try_from(number % 3).unwrap()]),
            role: self.boxed("operator"),
            address: self.boxed("192.0.2.17"),
            request_id: self.boxed("0190f4a1c2d3"),
            action: self.boxed(["rules.reload", "callbacks.resend"][usize::try_from(number % 2).unwrap()]),
            target: self.boxed("cb_000000000000000700000000000000ff"),
            parameters: serde_json::json!({ "state": self.text("failed"), "order_id": order_id }).to_string().into(),
            rules_version: self.boxed("3f9c2a7d10be"),
            idempotency_key: None,
            end: (number % 5 != 1).then(|| ActionEnd { at: ago(0), outcome: self.boxed(outcome) }),
        }
    }

    pub(super) fn audit(self, count: i64) -> AuditPage {
        AuditPage {
            filter: AuditFilter {
                user: self.text("ada"),
                action: self.text("rules.reload"),
                since: self.text("3d"),
                until: self.text("1h"),
            },
            problem: None,
            rows: (0..count).map(|number| self.action(number)).collect(),
            next: Some(self.text("91")),
            is_continued: true,
        }
    }

    pub(super) fn requests(self, count: u16) -> RequestsPage {
        let request = |number: u16| RefusedRequest {
            at: ago(i64::from(number)),
            request_id: self.boxed("0190f4a1c2d3"),
            merchant: (!number.is_multiple_of(3)).then(|| self.boxed("acme")),
            authenticated: !number.is_multiple_of(2),
            method: self.boxed("POST"),
            route: "payin",
            status: 400 + number % 30,
            reason: "shape",
            member: (!number.is_multiple_of(2)).then(|| self.boxed("amount")),
            order_id: (!number.is_multiple_of(2)).then(|| self.boxed("NW-2026-004712")),
            transaction_id: (number % 5 > 3).then(|| self.boxed("4111111111111111")),
            peer: "203.0.113.9".parse().unwrap(),
        };
        RequestsPage {
            filter: RequestFilter {
                request_id: self.text("0190f4a1c2d3"),
                merchant: self.text("acme"),
                reason: self.text("shape"),
            },
            problem: None,
            requests: (0..count).map(|number| Arc::new(request(number))).collect(),
            has_more: count > 0,
        }
    }

    pub(super) fn error(self, error: ConsoleError) -> ErrorPage<'static> {
        ErrorPage {
            error,
            detail: Some(self.text("since: must be a time such as 2026-01-02T03:04:05Z, or an age such as 30m")),
            request_id: self.leaked("0190f4a1c2d3"),
        }
    }
}

pub(super) fn acme() -> MerchantId {
    MerchantId::new("acme").unwrap()
}
