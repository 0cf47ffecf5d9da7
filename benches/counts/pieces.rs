//! The pieces, in the order in which a v1 create meets them.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use paybridge::auth::signatures::{V1Input, sign_v2, verify_v1};
use paybridge::domain::{Bucket, Direction, Made, MerchantId, OrderId, RedirectUrl, TransactionId};
use paybridge::engine::{PageSecret, by_todays_rules};
use paybridge::http::correlation::RequestId;
use paybridge::http::listener::check_head;
use paybridge::http::reply::{Envelope, success};
use paybridge::rules::{AddressSet, Secret};
use paybridge::store::vault::{Column, Vault};
use paybridge::store::{Kept, Parts};
use paybridge::telemetry::{AccessLine, LogFormat, Logs, Metrics, Stage};
use paybridge::v1;
use paybridge::wire;

use super::fixture::{self, NOW, PAYIN_PATH, Repeating};
use super::stored;
use super::{Piece, Scope, repeat};
use crate::support::request::ACME;

const fn piece(name: &'static str, about: &'static str, run: fn(u32)) -> Piece {
    Piece { name, about, scope: Scope::Counted(run) }
}

/// All of them.
pub const PIECES: &[Piece] = &[
    piece("head_check", "the head of an HTTP/1.1 request is found and judged", head_check),
    piece("allow_list", "an address is looked for among 10,000 networks", allow_list),
    piece("rate_limit", "a request is counted against its key's rate", rate_limit),
    piece("v1_signature", "a v1 signature is verified", v1_signature),
    piece("v1_read", "a v1 payin body is read", v1_read),
    piece("v1_compare", "the v1 body is hashed for comparisons", v1_compare),
    piece("translate", "the v1 create becomes v2 bytes", translate),
    piece("v2_sign", "the v2 body is signed", v2_sign),
    piece("v2_read", "the v2 body is read", v2_read),
    piece("shop_rules", "the shop's rules, its schema among them, are applied", shop_rules),
    piece("fields_hash", "the `fields` are hashed for comparisons", fields_hash),
    piece("entry_link", "a deposit's entry link is signed", entry_link),
    piece("seal", "the `fields` are sealed", seal),
    piece("create_to_queue", "a v1 create from its verified body to the writer's queue", stored::create_to_queue),
    Piece {
        name: "batch_of_64",
        about: "64 drafts are sealed, queued and committed together, after a commit of nothing",
        scope: Scope::Process(stored::batches),
    },
    piece("v1_reply", "the reply to a v1 create is written", v1_reply),
    piece("metrics", "a v1 create is counted and its stages are timed", metrics),
    piece("access_line", "an access line is written and queued", access_line),
    piece("v1_status", "a v1 status is read from the store and written", stored::v1_status),
];

fn head_check(times: u32) {
    let head = fixture::head(&fixture::rules());
    repeat(times, || check_head(black_box(&head)).unwrap());
}

fn allow_list(times: u32) {
    let list = AddressSet::new(fixture::networks());
    let address = "10.17.42.99".parse().unwrap();
    repeat(times, || assert!(list.contains(black_box(address))));
}

fn rate_limit(times: u32) {
    let rules = fixture::rules();
    let rate = fixture::api_key(&rules).rate_limit.as_ref().unwrap();
    repeat(times, || assert!(black_box(&rate.limiter).check().is_ok()));
}

fn v1_signature(times: u32) {
    let rules = fixture::rules();
    let body = fixture::body(0);
    let (timestamp, signature) = fixture::signed(&rules, "POST", PAYIN_PATH, None, &body);
    let recipe = &fixture::merchant(&rules).v1.dialect.signature;
    let secrets = fixture::api_key(&rules).v1_secrets.as_ref().unwrap();
    let (timestamp, api_key) = (timestamp.as_str(), ACME.name);
    let input = V1Input { timestamp, method: "POST", path: PAYIN_PATH, query: None, api_key, body: &body };
    repeat(times, || assert!(verify_v1(recipe, secrets, black_box(&input), signature.as_bytes())));
}

fn v1_read(times: u32) {
    let body = fixture::body(0);
    repeat(times, || drop(black_box(wire::v1::read_create(Direction::Payin, black_box(&body)).unwrap())));
}

fn v1_compare(times: u32) {
    let (body, comparer) = (fixture::body(0), fixture::comparer());
    let create = wire::v1::read_create(Direction::Payin, &body).unwrap();
    repeat(times, || {
        let said = create.compared(&comparer);
        black_box((said.digest(), said.members(&comparer)));
    });
}

/// The v2 body of the fixture's v1 one.
fn v2_body() -> Bytes {
    let (rules, body, comparer) = (fixture::rules(), fixture::body(0), fixture::comparer());
    let create = wire::v1::read_create(Direction::Payin, &body).unwrap();
    let merchant = fixture::merchant(&rules);
    let order = comparer.order_key(&merchant.id, Direction::Payin, &create.external_id);
    v1::v2_body(merchant, &rules.gateway.server.public_url, order, &create).unwrap().0
}

fn translate(times: u32) {
    let (rules, body, comparer) = (fixture::rules(), fixture::body(0), fixture::comparer());
    let create = wire::v1::read_create(Direction::Payin, &body).unwrap();
    let (merchant, public_url) = (fixture::merchant(&rules), &rules.gateway.server.public_url);
    repeat(times, || {
        let order = comparer.order_key(&merchant.id, Direction::Payin, &create.external_id);
        drop(black_box(v1::v2_body(merchant, public_url, order, black_box(&create)).unwrap()));
    });
}

fn v2_sign(times: u32) {
    let (secret, body) = (Secret::new(b"acme-v2-hush-9Xz"), v2_body());
    repeat(times, || drop(black_box(sign_v2(&secret, black_box(&body)))));
}

fn v2_read(times: u32) {
    let body = v2_body();
    repeat(times, || drop(black_box(wire::v2::read_create(Direction::Payin, black_box(&body)).unwrap())));
}

fn shop_rules(times: u32) {
    let (rules, body) = (fixture::rules(), v2_body());
    let request = wire::v2::read_create(Direction::Payin, &body).unwrap();
    let (merchant, api_key) = (fixture::merchant(&rules), fixture::api_key(&rules));
    repeat(times, || drop(black_box(by_todays_rules(merchant, api_key, black_box(&request)).unwrap())));
}

fn fields_hash(times: u32) {
    let (body, comparer) = (v2_body(), fixture::comparer());
    let request = wire::v2::read_create(Direction::Payin, &body).unwrap();
    repeat(times, || {
        let mut parts = Parts::of("bench");
        request.fields.hash(&mut parts, &Kept::Everything);
        black_box(comparer.digest(&parts));
    });
}

fn transaction_id() -> TransactionId {
    TransactionId::compose(NOW, Bucket::of(&MerchantId::new("acme").unwrap()), 7)
}

fn entry_link(times: u32) {
    let (rules, secret, id) = (fixture::rules(), PageSecret::new(Secret::new(&[3; 32])), transaction_id());
    repeat(times, || drop(black_box(secret.entry_link(&rules.gateway, black_box(id), NOW))));
}

fn seal(times: u32) {
    let random = Arc::new(Repeating::default());
    let keys = [Secret::new(&[1; 32])];
    let vault = Vault::unlock(&keys, &Vault::draw(&keys, &*random).unwrap(), random).unwrap();
    let fields = br#"{"email":"ann@example.com","merchant_user_ip":"203.0.113.9"}"#;
    let id = transaction_id();
    repeat(times, || drop(black_box(vault.seal(Column::Fields, id, black_box(fields)))));
}

fn v1_reply(times: u32) {
    let rules = fixture::rules();
    let merchant = fixture::merchant(&rules);
    let link = PageSecret::new(Secret::new(&[3; 32])).entry_link(&rules.gateway, transaction_id(), NOW);
    let made = Made {
        transaction_id: transaction_id().to_string().into(),
        external_id: OrderId::new("order-000000000000").unwrap(),
        redirect_url: Some(RedirectUrl::new(link.expose().to_owned())),
    };
    let request_id = RequestId::Drawn(*b"5f0e2a5f0e2a5f0e2a5f0e2a5f0e2a5f");
    let envelope = Envelope { request_id: &request_id, v1_merchant: Some(merchant), close: false, hsts: false };
    repeat(times, || {
        let body = v1::reply::created(&merchant.v1.dialect, Direction::Payin, black_box(&made));
        drop(black_box(success(body, &envelope)));
    });
}

fn metrics(times: u32) {
    let (metrics, duration) = (Metrics::default(), Duration::from_micros(300));
    repeat(times, || {
        for stage in [Stage::Admission, Stage::Body, Stage::Signature, Stage::Translate, Stage::Engine] {
            metrics.stage(stage, black_box(duration));
        }
        metrics.request("payin", 200, black_box(duration));
    });
}

fn access_line(times: u32) {
    let logs = Logs::start(LogFormat::Text, None, &Metrics::default()).unwrap();
    let log = logs.access();
    let line = AccessLine {
        request_id: "5f0e2a5f0e2a5f0e2a5f0e2a5f0e2a5f",
        merchant: Some("acme"),
        route: "payin",
        method: "POST",
        status: 200,
        reason: None,
        duration: Duration::from_micros(12_034),
        rules_version: "00aa11bb22cc33dd",
        peer: fixture::CALLER,
        trace: None,
        time: NOW,
    };
    repeat(times, || log.line(black_box(&line)));
}
