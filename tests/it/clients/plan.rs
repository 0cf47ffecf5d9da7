//! What every client does, and what it should be answered.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::clients::programs::Seen;
use crate::support::bodies::with;
use crate::support::request::ACME;
use crate::support::{payin, payout, text};

/// `limits.body` of the tests' rules, in bytes.
const LIMIT: usize = 64 * 1024;
/// More than the sockets' buffers hold: the refusal comes while the client still sends.
const FAR_OVER: usize = 4 * 1024 * 1024;
/// Not the key's.
const WRONG_SECRET: &str = "nobody-ever-had-this-secret";

/// How a body travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sending {
    /// Its length is announced; or there is none.
    Whole,
    /// Its length is not known in advance.
    Chunked,
    /// `Expect: 100-continue`; a client that can waits for the 100.
    Expect,
}

impl Sending {
    const ALL: [Self; 3] = [Self::Whole, Self::Chunked, Self::Expect];

    const fn word(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Chunked => "chunked",
            Self::Expect => "expect",
        }
    }
}

/// One request, and its status.
#[derive(Debug)]
pub struct Step {
    pub name: String,
    pub sending: Sending,
    pub status: u16,
    beside: bool,
    target: String,
    secret: &'static str,
    body: Option<Value>,
    /// What the reply has to hold.
    says: Vec<&'static str>,
}

/// Steps, in their order.
#[derive(Debug, Default)]
pub struct Plan {
    pub steps: Vec<Step>,
}

impl Step {
    fn new(name: impl Into<String>, target: &str, body: Option<Value>, status: u16) -> Self {
        Self {
            name: name.into(),
            sending: Sending::Whole,
            status,
            beside: false,
            target: target.to_owned(),
            secret: ACME.v1.unwrap(),
            body,
            says: Vec::new(),
        }
    }

    /// Asserts what can be told from this reply alone.
    #[track_caller]
    pub fn check(&self, reply: &str) {
        let value: Value = serde_json::from_str(reply).unwrap_or_else(|error| panic!("{error} in {reply}"));
        if self.status >= 400 {
            assert_eq!(value["error"]["code"], self.status, "{}: {reply}", self.name);
        }
        for part in &self.says {
            assert!(reply.contains(part), "{}: no {part} in {reply}", self.name);
        }
    }

    /// The order of a create that is refused.
    pub fn refused(&self) -> Option<&str> {
        self.external_id().filter(|_| self.status != 200)
    }

    fn external_id(&self) -> Option<&str> {
        self.body.as_ref().map(|body| text(body, "external_id"))
    }

    fn line(&self, dir: &Path) -> String {
        let file = self.body.as_ref().map(|body| {
            let file = dir.join(&self.name);
            std::fs::write(&file, body.to_string()).unwrap();
            file
        });
        let method = if self.body.is_some() { "POST" } else { "GET" };
        let place = if self.beside { "beside" } else { "after" };
        let file = file.unwrap_or_else(|| PathBuf::from("-"));
        [&self.name, place, method, &self.target, self.sending.word(), self.secret, file.to_str().unwrap()].join("\t")
    }
}

impl Plan {
    /// The orders that are created.
    pub fn created(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().filter(|step| step.status == 200).filter_map(Step::external_id)
    }

    /// Writes the plan and its bodies, and gives the plan's file.
    pub fn write(&self, dir: &Path) -> PathBuf {
        let lines = self.steps.iter().fold(String::new(), |mut lines, step| {
            let _ = writeln!(lines, "{}", step.line(dir));
            lines
        });
        let file = dir.join("plan.tsv");
        std::fs::write(&file, lines).unwrap();
        file
    }

    fn add(&mut self, step: Step) -> &mut Step {
        self.steps.push(step);
        self.steps.last_mut().unwrap()
    }

    fn post(&mut self, name: &str, body: Value, status: u16) -> &mut Step {
        let payout = body.get("card_number").is_some();
        self.add(Step::new(name, if payout { "/api/v1/payout" } else { "/api/v1/payin" }, Some(body), status))
    }

    fn get(&mut self, name: &str, target: &str, status: u16) -> &mut Step {
        self.add(Step::new(name, target, None, status))
    }
}

/// What a client saw of a step.
pub fn of<'s>(seen: &'s [Seen], name: &str) -> Option<&'s Seen> {
    seen.iter().find(|seen| seen.step == name)
}

/// A good deposit whose body is exactly so long.
fn payin_of(external_id: &str, length: usize) -> Value {
    let padded =
        |padding: usize| with(payin(external_id), "paymentData.extra.padding", Some("x".repeat(padding).into()));
    padded(length - padded(0).to_string().len())
}

/// Many requests, one after another.
pub fn kept() -> Plan {
    let mut plan = Plan::default();
    for number in 0..10 {
        let id = format!("kept-{number}");
        plan.post(&id, payin(&id), 200);
        plan.get(&format!("{id}-status"), &format!("/api/v1/payin/status?external_id={id}"), 200);
    }
    plan
}

/// Everything that a merchant's client meets.
pub fn scenario() -> Plan {
    let mut plan = Plan::default();
    orders(&mut plan);
    refusals(&mut plan);
    for sending in Sending::ALL {
        bodies(&mut plan, sending);
    }
    at_the_same_time(&mut plan);
    plan
}

fn orders(plan: &mut Plan) {
    let slow = |body| with(body, "shop_code", Some("slow-eur".into()));
    plan.post("payin", payin("order-1"), 200).says = vec!["\"external_id\":\"order-1\"", "\"redirect_url\":\"https://"];
    plan.post("payin-again", payin("order-1"), 200);
    plan.get("payin-status", "/api/v1/payin/status?external_id=order-1&shop_code=card-eur", 200).says =
        vec!["\"status\":\"PENDING\"", "\"amount\":\"10.50\""];
    plan.post("payout", slow(payout("order-1")), 200);
    plan.post("payout-again", slow(payout("order-1")), 200);
    plan.get("payout-status", "/api/v1/payout/status?external_id=order-1", 200).says =
        vec!["\"amount\":\"7.25\"", "\"account_number\":\"400012******1234\""];
    // Not ASCII: UTF-8 in the body, percent-encoded in the query.
    let named = with(payin("заказ 1/é"), "paymentData.first_name", Some("Zoë Ω \"q\" \\ 🦀".into()));
    plan.post("unicode", named, 200);
    plan.get("unicode-status", "/api/v1/payin/status?external_id=%D0%B7%D0%B0%D0%BA%D0%B0%D0%B7%201%2F%C3%A9", 200);
}

fn refusals(plan: &mut Plan) {
    let amount = |id, amount: Value| with(payin(id), "amount", Some(amount));
    plan.post("conflict", amount("order-1", "10.51".into()), 409).says = vec!["amount"];
    plan.post("wrong-signature", payin("unsigned"), 401).secret = WRONG_SECRET;
    plan.get("wrong-signature-status", "/api/v1/payin/status?external_id=unsigned", 404);
    plan.post("bad-amount", amount("bad-amount", json!(10.5)), 400).says = vec!["amount"];
    let bank = with(payin("bad-bank"), "paymentData.bank_code", Some("NO-SUCH".into()));
    plan.post("bad-bank", bank, 400).says = vec!["paymentData.bank_code"];
    plan.get("bad-bank-status", "/api/v1/payin/status?external_id=bad-bank", 404);
    plan.get("no-path", "/api/v1/nothing", 404);
    plan.get("wrong-method", "/api/v1/payin", 405);
}

/// Small, at the limit, over it, and far over it; then something good, by whatever connection is left.
fn bodies(plan: &mut Plan, sending: Sending) {
    let word = sending.word();
    for (size, length, status) in
        [("small", 500, 200), ("full", LIMIT, 200), ("over", LIMIT + 1, 413), ("far-over", FAR_OVER, 413)]
    {
        let name = format!("{word}-{size}");
        plan.post(&name, payin_of(&name, length), status).sending = sending;
        let again = format!("{name}-again");
        plan.post(&again, payin_of(&name, length.min(LIMIT)), 200);
    }
    plan.post(&format!("{word}-unsigned"), payin_of("unsigned", LIMIT), 401).secret = WRONG_SECRET;
}

fn at_the_same_time(plan: &mut Plan) {
    for number in 0..8 {
        let own = format!("beside-{number}");
        plan.post(&own, payin(&own), 200).beside = true;
        plan.post(&format!("beside-same-{number}"), payin("beside-same"), 200).beside = true;
    }
}

/// Asserts what only several replies tell.
#[track_caller]
pub fn compare(seen: &[Seen]) {
    let reply = |name: &str| of(seen, name).unwrap_or_else(|| panic!("no step {name}"));
    let same = |one: &str, other: &str| {
        let (one, other) = (reply(one), reply(other));
        assert!(one.skipped.is_some() || one.text == other.text, "{one:?}\n{other:?}");
    };
    same("payin", "payin-again");
    same("payout", "payout-again");
    for sending in Sending::ALL {
        for size in ["small", "full"] {
            let name = format!("{}-{size}", sending.word());
            same(&name, &format!("{name}-again"));
        }
    }
    for number in 1..8 {
        same("beside-same-0", &format!("beside-same-{number}"));
    }
    let id = |name: &str| {
        let value: Value = serde_json::from_str(&reply(name).text).unwrap();
        text(&value, "transaction_id").to_owned()
    };
    for kind in ["payin", "payout", "unicode"] {
        assert_eq!(id(kind), id(&format!("{kind}-status")));
    }
    let all: std::collections::BTreeSet<_> = (0..8).map(|number| id(&format!("beside-{number}"))).collect();
    assert_eq!(all.len(), 8, "each order is one operation");
}
