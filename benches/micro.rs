//! The cost of parts of a request, each with a baseline in its group from the same run: compare only within a group.
//!
//! ```text
//! cargo bench --bench micro [-- NAME]
//! ```
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot go on panics")]

#[path = "../tests/support/mod.rs"]
mod support;

use std::fmt::Write as _;
use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use paybridge::auth::signatures::{V1Input, sign_v1, sign_v2, verify_v1};
use paybridge::clock::{SystemClock, SystemRandomness};
use paybridge::domain::Secret;
use paybridge::domain::{Direction, MerchantId, OrderId, UnixMillis};
use paybridge::rules::{LoadOptions, RuleSet, load};
use paybridge::store::open_store;
use paybridge::wire;
use support::request::ACME;
use support::{Rules, deposit, payin};
use tokio::runtime::Builder;

const NOW: UnixMillis = UnixMillis(1_780_000_000_123);
/// The default of `limits.body`, in bytes.
const LONGEST_BODY: usize = 64 * 1024;

criterion_group!(benches, v1_create, orders, bodies, rules);
criterion_main!(benches);

/// The parts of a v1 create that parse and verify; the baseline is one signature of its body.
fn v1_create(criterion: &mut Criterion) {
    let directory = tempfile::tempdir().unwrap();
    Rules::default().write(directory.path(), 8443, 9090);
    let rules = loaded(&directory.path().join("rules"));
    let key = rules.api_key(ACME.name).unwrap();
    let (recipe, secrets) = (&key.merchant.v1.dialect.signature, key.api_key().v1_secrets.as_ref().unwrap());
    let (v1, v2) = (payin("order-000000000000").to_string(), deposit("order-000000000000").to_string());
    let (timestamp, path) = ("1780000000", "/api/v1/payin");
    let input = V1Input { timestamp, method: "POST", path, query: None, api_key: ACME.name, body: v1.as_bytes() };
    let signature = sign_v1(recipe, secrets.signing(), &input);
    let v2_secret = Secret::new(b"acme-v2-hush-9Xz");

    let mut group = criterion.benchmark_group("v1 create");
    group.bench_function("baseline: a v2 signature", |bencher| bencher.iter(|| sign_v2(&v2_secret, v1.as_bytes())));
    group.bench_function("a v1 signature is verified", |bencher| {
        bencher.iter(|| assert!(verify_v1(recipe, secrets, &input, signature.as_bytes())));
    });
    group.bench_function("a v1 body is read", |bencher| {
        bencher.iter(|| wire::v1::read_create(Direction::Payin, v1.as_bytes()).unwrap());
    });
    group.bench_function("a v2 body is read", |bencher| {
        bencher.iter(|| wire::v2::read_create(Direction::Payin, v2.as_bytes()).unwrap());
    });
    group.finish();
}

/// The cost of a lookup before each create of a new order, on SQLite among a million orders; the baseline is the same
/// without the store.
fn orders(criterion: &mut Criterion) {
    let directory = tempfile::tempdir().unwrap();
    Rules::default().write(directory.path(), 8443, 9090);
    let rules = loaded(&directory.path().join("rules"));
    let random = Arc::new(SystemRandomness::default());
    let store = open_store(&rules.gateway.store, Arc::new(SystemClock), random, Arc::default()).unwrap().store;
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let merchant = MerchantId::new("acme").unwrap();
    for batch in 0..1000 {
        let orders: Vec<_> = (0..1000).map(|order| OrderId::new(&format!("{batch}-{order}")).unwrap()).collect();
        runtime.block_on(store.reserve(&merchant, Direction::Payin, &orders, NOW)).unwrap();
    }
    let mut number = 0_u64;
    let mut new_order = || {
        number += 1;
        OrderId::new(&format!("new-{number}")).unwrap()
    };
    let mut group = criterion.benchmark_group("orders");
    group.bench_function("baseline: an order id is made", |bencher| {
        bencher.iter(|| runtime.block_on(async { black_box(new_order()) }));
    });
    group.bench_function("a new order is looked for", |bencher| {
        bencher.iter(|| runtime.block_on(store.by_order(&merchant, Direction::Payin, &new_order())).unwrap());
    });
    group.finish();
}

/// The most expensive bodies of the maximum length. A malformed one must not cost more than the baseline, the most expensive
/// well-formed one.
fn bodies(criterion: &mut Criterion) {
    let escaped = |number: usize| {
        format!("\"{}\":1", format!("{number:04}").replace(|_: char| true, "\\u0030") + &number.to_string())
    };
    let members = |room: usize| {
        let mut text = String::new();
        for number in 0.. {
            let next = escaped(number);
            if text.len() + next.len() >= room {
                return text.trim_end_matches(',').to_owned();
            }
            text = text + &next + ",";
        }
        text
    };
    let room = LONGEST_BODY - 400;
    let fields =
        |fields: &str| deposit("o").to_string().replacen("\"fields\":{", &format!("\"fields\":{{{fields},"), 1);
    let mut group = criterion.benchmark_group("bodies of 64 KiB");
    group.throughput(Throughput::Bytes(LONGEST_BODY as u64));
    for (name, body) in [
        ("baseline: many members, their names escapes", fields(&members(room))),
        ("well-formed: one long string", fields(&format!("\"text\":\"{}\"", "x".repeat(room)))),
        ("malformed: the last member twice", fields(&format!("{},\"a\":1,\"a\":1", members(room - 20)))),
        ("malformed: 60,000 brackets", "[".repeat(room)),
        ("malformed: an amount of 60,000 digits", deposit("o").to_string().replacen("10.5", &"7".repeat(room), 1)),
        ("malformed: unknown members", format!("{{{}}}", members(room))),
    ] {
        assert!((room - 100..=LONGEST_BODY).contains(&body.len()), "{name}: {} bytes", body.len());
        let well_formed = wire::v2::read_create(Direction::Payin, body.as_bytes()).is_ok();
        assert_eq!(well_formed, !name.starts_with("malformed"), "{name}");
        group.bench_function(name, |bencher| {
            bencher.iter(|| wire::v2::read_create(Direction::Payin, body.as_bytes()).is_ok());
        });
    }
    group.finish();
}

/// The cost of loading the rules of 1,000 shops; the baseline reads their files.
fn rules(criterion: &mut Criterion) {
    const SHOPS: usize = 1000;
    let directory = tempfile::tempdir().unwrap();
    write_rules(directory.path(), SHOPS);
    let mut group = criterion.benchmark_group("rules of 1,000 shops");
    group.sample_size(10);
    group.bench_function("baseline: their files are read", |bencher| bencher.iter(|| read_all(directory.path())));
    group.bench_function("they are loaded", |bencher| {
        bencher.iter_batched(|| (), |()| loaded(directory.path()), BatchSize::PerIteration);
    });
    group.finish();
}

fn loaded(directory: &Path) -> RuleSet {
    load(directory, NOW, None, LoadOptions::default()).unwrap()
}

/// Returns the total size of the files below a directory.
fn read_all(directory: &Path) -> usize {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { read_all(&path) } else { fs::read(path).unwrap().len() }).sum()
}

fn write_rules(rules: &Path, shops: usize) {
    for directory in ["shops", "merchants"] {
        fs::create_dir(rules.join(directory)).unwrap();
    }
    fs::write(rules.join("gateway.toml"), "").unwrap();
    let schema = r#"{ "type": "object", "required": ["full_name"], "properties": {
        "full_name": { "type": "string", "minLength": 1, "maxLength": 120 }, "email": { "type": "string", "format": "email" },
        "phone": { "type": "string", "pattern": "^\\+[0-9]{8,15}$" }, "channel": { "enum": ["web", "app"], "default": "web" } } }"#;
    for number in 0..shops {
        let shop = format!(
            "currency = \"EUR\"\npayment_method = \"card\"\n[payin]\nschema = \"s{number}.payin.json\"\n[provider]\nkind = \"sandbox\"\n"
        );
        fs::write(rules.join(format!("shops/s{number}.toml")), shop).unwrap();
        fs::write(rules.join(format!("shops/s{number}.payin.json")), schema).unwrap();
    }
    for number in 0..shops / 10 {
        let mut merchant = format!(
            "name = \"Merchant {number}\"\n[[api_keys]]\nkey = \"key-{number}\"\nv1_secret = \"v1-{number}\"\n\
             v2_secret = \"v2-{number}\"\nallowed_ips = [\"203.0.113.0/24\"]\n"
        );
        for shop in number * 10..number * 10 + 10 {
            let _ = writeln!(merchant, "[shops.s{shop}]\npayin = true");
        }
        fs::write(rules.join(format!("merchants/m{number}.toml")), merchant).unwrap();
    }
}
