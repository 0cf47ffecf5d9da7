//! Statements with seeded differences: all of them are found, and no other.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::Value;

use super::*;
use crate::cli::args::{Period, ReportFormat, Rules};
use crate::cli::outcome::exit_code;
use crate::domain::{
    AccountNumber, Amount, BrowserUrl, Bucket, CallbackUrl, Currency, Deposit, FailureCause, Fields, Fingerprint, Kind,
    OrderId, Outcome, ProviderKind, RedirectUrl, SchemaFields, ShopCode, UnixMillis, Withdrawal, wide,
};
use crate::engine::tests::{START, World};
use crate::rules::RuleSet;
use crate::store::{NewOperation, RequestFingerprint, ResultSource};

const SHOP: &str = r#"
currency = "EUR"
[provider]
kind = "sandbox"
[reconcile]
key = "order_id"
columns = { key = "reference", amount = "amount", currency = "currency", status = "state" }
statuses = { SUCCESS = ["paid"], FAILED = ["declined"] }
"#;

fn merchant(name: &str) -> MerchantId {
    MerchantId::new(name).unwrap()
}

/// An operation that is created at a number of milliseconds after the start: a withdrawal if the number is odd.
fn draft(name: &str, number: u64, order_id: &str) -> NewOperation {
    let created_at = UnixMillis(START.0 + i64::try_from(number).unwrap());
    let id = TransactionId::compose(created_at, Bucket::of(&merchant(name)), number);
    let url = BrowserUrl::new("https://a.example/done").unwrap();
    let kind = if number.is_multiple_of(2) {
        let redirect_url = RedirectUrl::new("https://a.example/pay".to_owned());
        Kind::Deposit(Deposit { success_url: url.clone(), pending_url: url.clone(), fail_url: url, redirect_url })
    } else {
        let account_number = AccountNumber::new("4929420573595709").unwrap();
        Kind::Withdrawal(Withdrawal { account_number, account_channel: None })
    };
    NewOperation {
        operation: Operation {
            id,
            merchant: merchant(name),
            order_id: OrderId::new(order_id).unwrap(),
            amount: Amount::from_hundredths(1000 + number).unwrap(),
            currency: Currency::new("EUR").unwrap(),
            method: None,
            shop: ShopCode::new("card").unwrap(),
            payment_method: None,
            customer_account_id: None,
            callback_url: CallbackUrl::new("https://a.example/cb").unwrap(),
            kind,
            provider: ProviderKind::Sandbox,
            state: State::Pending,
            created_at,
        },
        order_key: None,
        api_key: "k".into(),
        failure: None,
        fields: Fields::default(),
        comparison: RequestFingerprint { fingerprint: Fingerprint([7; 16]), kept: SchemaFields::Everything },
        v1: None,
        provider_job: None,
        opening: None,
        enforce_balance: false,
        daily_limit: None,
    }
}

const FINISHED: UnixMillis = UnixMillis(START.0 + 60_000);

/// Stores an operation; `None`: it stays PENDING.
async fn stored(world: &World, draft: NewOperation, outcome: Option<Outcome>) {
    let (store, id) = (&world.deps.store, draft.operation.id);
    store.create(draft).await.unwrap();
    if let Some(outcome) = outcome {
        store.complete(id, outcome, ResultSource::PROVIDER, FINISHED).await.unwrap();
    }
}

const PAID: Option<Outcome> = Some(Outcome::Success { payer: None });

/// Runs the command with its file beside the rules: the exit code, the output and the messages.
fn reconciled(rules: PathBuf, text: &str, format: ReportFormat) -> (u8, String, String) {
    let file = rules.with_file_name("statement.csv");
    std::fs::write(&file, text).unwrap();
    let period = Period { from: START, to: UnixMillis(START.0 + 2_000) };
    let shop = ShopCode::new("card").unwrap();
    let args = ReconcileArgs { rules: Rules { rules }, shop, period, file, format };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let outcome = run(&args, &mut out, &mut err);
    (exit_code(outcome, &mut err), String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
}

async fn run_on(world: &World, text: &str, format: ReportFormat) -> (u8, String, String) {
    let (rules, text) = (world.rules_directory(), text.to_owned());
    tokio::task::spawn_blocking(move || reconciled(rules, &text, format)).await.unwrap()
}

/// Each difference as `kind line key theirs ours`.
fn differences(json: &str) -> Vec<String> {
    let document: Value = serde_json::from_str(json).unwrap();
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let shown = |one: &Value| ["difference", "line", "key", "theirs", "ours"].map(|name| text(&one[name])).join(" ");
    let found: Vec<_> = document["differences"].as_array().unwrap().iter().map(shown).collect();
    let mut counts = BTreeMap::<&str, u64>::new();
    for one in &found {
        *counts.entry(one.split(' ').next().unwrap()).or_default() += 1;
    }
    for (kind, count) in document["counts"].as_object().unwrap() {
        assert_eq!(counts.get(&**kind).copied().unwrap_or_default(), count.as_u64().unwrap(), "{json}");
    }
    found
}

const HEADER: &str = "reference,amount,currency,state\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_of_difference_is_found() {
    let world = World::with(&[("shops/card.toml", SHOP)]);
    let failed = || Some(Outcome::Failed);
    for (number, outcome) in [PAID, PAID, failed(), None, PAID, PAID, PAID].into_iter().enumerate() {
        let number = u64::try_from(number).unwrap();
        stored(&world, draft("acme", number, &format!("o{number}")), outcome).await;
    }
    // Refused before the provider received it; in another shop; after the period.
    let mut refused = draft("acme", 100, "refused");
    refused.operation.state = State::Finished { outcome: Outcome::Failed, at: refused.operation.created_at };
    refused.failure = Some(FailureCause::DailyLimit);
    stored(&world, refused, None).await;
    let mut spare_one = draft("acme", 101, "spare_one");
    spare_one.operation.shop = ShopCode::new("spare").unwrap();
    stored(&world, spare_one, PAID).await;
    stored(&world, draft("acme", 5_000, "late"), PAID).await;
    // Two merchants have the same order_id.
    stored(&world, draft("acme", 200, "twice"), PAID).await;
    stored(&world, draft("other", 202, "twice"), PAID).await;

    let good = "o0,10.00,EUR,paid\no1,-10.01,EUR,paid\no2,10.02,EUR,declined\no4,10.04,EUR,paid\n\
                o5,10.05,EUR,paid\no6,10.06,EUR,paid\nlate,60.00,EUR,paid\n";
    let (code, json, err) = run_on(&world, &format!("{HEADER}{good}twice,12.00,EUR,paid\n"), ReportFormat::Json).await;
    let ids = [200, 202].map(|number| draft(if number == 200 { "acme" } else { "other" }, number, "x").operation.id);
    assert_eq!(code, 4, "{err}");
    assert_eq!(differences(&json), [format!("ambiguous 9 twice 12.00 {} {}", ids[0], ids[1])]);

    let bad = "o0,10.01,EUR,paid\no1,10.01,USD,declined\no3,10.03,EUR,paid\no4,-10.04,EUR,charged back\n\
               spare_one,11.01,EUR,paid\no0,10.00,EUR,paid\nnone,1.00,EUR,paid\nnone,1.00,EUR,paid\ntwice,1,EUR,paid\n";
    let (code, json, _) = run_on(&world, &format!("{HEADER}{bad}"), ReportFormat::Json).await;
    let found = differences(&json);
    assert_eq!(code, 4);
    let expected = [
        "amount 2 o0 10.01 10.00",
        "currency 3 o1 USD EUR",
        "status 3 o1 declined SUCCESS",
        "status 4 o3 paid PENDING",
        "amount 5 o4 -10.04 10.04",
        "status 5 o4 charged back SUCCESS",
        "missing_here 6 spare_one 11.01 null",
        "duplicate 7 o0 10.00 null",
        "missing_here 8 none 1.00 null",
        "duplicate 9 none 1.00 null",
        "ambiguous 10 twice 1.00",
        "missing_there null o2 null 10.02",
        "missing_there null o5 null 10.05",
        "missing_there null o6 null 10.06",
    ];
    assert!(found.iter().zip(expected).all(|(found, expected)| found.starts_with(expected)), "{found:#?}");
    assert_eq!(found.len(), expected.len(), "{found:#?}");

    let (_, csv, err) = run_on(&world, &format!("{HEADER}{bad}"), ReportFormat::Csv).await;
    assert!(csv.starts_with("difference,line,key,transaction_id,order_id,theirs,ours\r\namount,2,o0,"), "{csv}");
    assert!(csv.contains(",charged back,SUCCESS\r\n") && csv.contains(",-10.04,10.04\r\n"), "{csv}");
    assert!(err.contains("9 lines compared: 2 missing_here, 3 missing_there, "), "{err}");
    let (_, table, _) = run_on(&world, &format!("{HEADER}{bad}"), ReportFormat::Table).await;
    assert!(table.starts_with("DIFFERENCE     LINE     KEY ") && table.lines().count() == 15, "{table}");

    // Nothing is written before the whole statement was read.
    let (code, out, err) = run_on(&world, &format!("{HEADER}{bad}Total,1\n"), ReportFormat::Csv).await;
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.contains("statement.csv: line 11: has 2 fields instead of 4"), "{err}");
}

/// A statement with few lines has its orders looked up, one with many has them found by a walk over all operations.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orders_are_found_by_either_way() {
    let world = World::with(&[("shops/card.toml", SHOP)]);
    let names = ["acme", "other", "third"];
    // Order `o0` is of each merchant, each other one of one.
    let created = (0..450_u64).map(|number| {
        let name = names[usize::try_from(number % 3).unwrap()];
        stored(&world, draft(name, 2 * number, &format!("o{}", if number < 3 { 0 } else { number })), PAID)
    });
    futures_util::future::join_all(created).await;
    let line = |number: u64| {
        let amount = Amount::from_hundredths(1000 + 2 * number).unwrap();
        format!("o{number} ,{amount},EUR,paid\n")
    };
    let ids = [0, 1, 2].map(|number| draft(names[number], 2 * wide(number), "x").operation.id.to_string()).join(" ");
    let few = format!("{HEADER}{}{}o9999,1,EUR,paid\n", line(0), line(449));
    let (_, json, err) = run_on(&world, &few, ReportFormat::Json).await;
    let found = differences(&json);
    assert_eq!(
        found[..2],
        [format!("ambiguous 2 o0 10.00 {ids}"), "missing_here 4 o9999 1.00 null".to_owned()],
        "{err}"
    );
    assert_eq!(found.len(), 2 + 446, "all but the two of its lines are missing there");

    let many = (3..450).map(line).collect::<String>();
    let (_, json, _) =
        run_on(&world, &format!("{HEADER}{}{many}o9999,1,EUR,paid\n", line(0)), ReportFormat::Json).await;
    let expected = [format!("ambiguous 2 o0 10.00 {ids}"), "missing_here 450 o9999 1.00 null".to_owned()];
    assert_eq!(differences(&json), expected);

    let (mut way, mut progress) = ([false; 2], Vec::new());
    for (way, statement) in way.iter_mut().zip([few, format!("{HEADER}{many}")]) {
        let rules: RuleSet = load(&world.rules_directory(), &mut progress).unwrap();
        let shop = &rules.shops["card"];
        let reading = shop.reconcile.as_ref().unwrap();
        let file = world.rules_directory().with_file_name("statement.csv");
        std::fs::write(&file, statement).unwrap();
        let mut orders = Orders::default();
        let mut statement = Statement::open(&file, reading).unwrap();
        while let Some(line) = statement.read().unwrap() {
            orders.add(&line);
        }
        *way = orders.find(&*world.deps.store, &shop.code, 3, &mut progress).await.unwrap().is_some();
    }
    assert_eq!(way, [false, true]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_are_narrowed_by_merchant_and_direction() {
    let shop = SHOP.replace("status = \"state\" }", "status = \"state\", merchant = \"who\", direction = \"way\" }");
    let world = World::with(&[("shops/card.toml", &shop)]);
    for (name, number) in [("acme", 0), ("acme", 1), ("other", 2)] {
        stored(&world, draft(name, number, "same"), PAID).await;
    }
    let lines = "reference,amount,currency,state,who,way\nsame,10.00,EUR,paid,acme,payin\n\
                 same,10.01,EUR,paid,acme,payout\nsame,10.02,EUR,paid,other,\n";
    let (code, out, err) = run_on(&world, lines, ReportFormat::Csv).await;
    assert_eq!((code, out.lines().count()), (0, 1), "{out}{err}");
    let by_id = SHOP.replace("\"order_id\"", "\"transaction_id\"").replace("FAILED = [\"declined\"]", "FAILED = []");
    world.edit("shops/card.toml", &by_id);
    stored(&world, draft("acme", 3, "lost"), Some(Outcome::Failed)).await;
    let ids = [("acme", 0), ("acme", 1), ("other", 2)].map(|(name, number)| draft(name, number, "x").operation.id);
    let lines = format!("{HEADER}{},10.00,EUR,paid\n{},10.01,EUR,paid\n{},10.02,EUR,paid\n", ids[0], ids[1], ids[2]);
    let (code, out, err) = run_on(&world, &lines, ReportFormat::Table).await;
    assert_eq!((code, out.as_str()), (0, ""), "without a word for FAILED, none is expected: {err}");
    assert!(err.ends_with("3 lines compared: no differences\n"), "{err}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orders_of_a_merchant_without_rules_are_compared() {
    let world = World::with(&[("shops/card.toml", SHOP)]);
    for (name, number, order_id) in
        [("removed", 0, "same"), ("removed", 1, "differs"), ("acme", 2, "both"), ("removed", 4, "both")]
    {
        stored(&world, draft(name, number, order_id), PAID).await;
    }
    let lines = format!("{HEADER}same,10.00,EUR,paid\ndiffers,10.01,EUR,declined\nboth,10.02,EUR,paid\n");
    let (code, json, err) = run_on(&world, &lines, ReportFormat::Json).await;
    let ids = [("acme", 2), ("removed", 4)].map(|(name, number)| draft(name, number, "x").operation.id);
    let expected =
        ["status 3 differs declined SUCCESS".to_owned(), format!("ambiguous 4 both 10.02 {} {}", ids[0], ids[1])];
    assert_eq!((code, differences(&json)), (4, expected.into()), "{err}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn white_space_around_an_order_id_is_dropped_where_nothing_is_found_with_it() {
    let world = World::with(&[("shops/card.toml", SHOP)]);
    for (number, order_id) in [(0, "o"), (2, "o "), (4, "\u{a0}p\t"), (6, "q")] {
        stored(&world, draft("acme", number, order_id), PAID).await;
    }
    // Another shop has the id with white space.
    let mut spare = draft("acme", 8, "q ");
    spare.operation.shop = ShopCode::new("spare").unwrap();
    stored(&world, spare, PAID).await;
    let lines =
        format!("{HEADER}\"o \",10.02,EUR,paid\no,10.00,EUR,paid\n\"\u{a0}p\t\",10.04,EUR,paid\nq ,10.06,EUR,paid\n");
    let (code, json, err) = run_on(&world, &lines, ReportFormat::Json).await;
    assert_eq!((code, differences(&json)), (0, vec![]), "{err}");
    let more = format!("{lines} q,10.06,EUR,paid\n none ,1.00,EUR,paid\nnone,1.00,EUR,paid\np,1.00,EUR,paid\n");
    let (_, json, _) = run_on(&world, &more, ReportFormat::Json).await;
    let expected = [
        "duplicate 6 q 10.06 null",
        "missing_here 7 none 1.00 null",
        "duplicate 8 none 1.00 null",
        "missing_here 9 p 1.00 null",
    ];
    assert_eq!(differences(&json), expected, "an id of the store is never trimmed");
}

#[tokio::test]
async fn what_cannot_be_compared_is_refused() {
    let world = World::with(&[("shops/card.toml", SHOP)]);
    world.edit("shops/card.toml", "currency = \"EUR\"\n[provider]\nkind = \"sandbox\"\n");
    let (code, _, err) = run_on(&world, HEADER, ReportFormat::Table).await;
    assert!(code == 1 && err.contains("has no [reconcile]"), "{err}");
    world.edit("shops/card.toml", SHOP);
    world.edit("gateway.toml", "[engine]\nurl = \"https://v2.example\"\n[store]\nurl = \"sqlite:../store.db\"\n");
    let (code, _, err) = run_on(&world, HEADER, ReportFormat::Table).await;
    assert!(code == 2 && err.contains("the engine is remote"), "{err}");
}

/// What a statement has in place of the right line.
#[derive(Debug, Clone, Copy)]
enum Seed {
    Nothing,
    Twice,
    OtherKey,
    OtherAmount,
    OtherCurrency,
    OtherStatus,
}

/// How many operations there are.
const COUNT: u64 = 1000;

/// The state of the operation with a number, as the statement's word; `None`: it is not on the statement.
fn word_of(number: u64) -> Option<&'static str> {
    match number % 9 {
        3 => None,
        5 => Some("declined"),
        _ => Some("paid"),
    }
}

/// A statement of all operations with the seeds at their lines, and the differences that these are.
fn seeded(seeds: &BTreeMap<u64, Seed>) -> (String, Vec<String>) {
    let (mut text, mut expected) = (HEADER.to_owned(), Vec::new());
    for number in 0..COUNT {
        let Some(word) = word_of(number) else { continue };
        let (key, amount) = (format!("o{number}"), Amount::from_hundredths(1000 + number).unwrap().to_string());
        let mut line = |key: &str, amount: &str, currency: &str, word: &str| {
            writeln!(text, "{key},{amount},{currency},{word}").unwrap();
        };
        match seeds.get(&number) {
            None => line(&key, &amount, "EUR", word),
            Some(Seed::Nothing) => expected.push(format!("missing_there {key}")),
            Some(Seed::Twice) => {
                line(&key, &amount, "EUR", word);
                line(&key, &amount, "EUR", word);
                expected.push(format!("duplicate {key}"));
            }
            Some(Seed::OtherKey) => {
                line(&format!("x{number}"), &amount, "EUR", word);
                expected.extend([format!("missing_here x{number}"), format!("missing_there {key}")]);
            }
            Some(Seed::OtherAmount) => {
                line(&key, &format!("1{amount}"), "EUR", word);
                expected.push(format!("amount {key}"));
            }
            Some(Seed::OtherCurrency) => {
                line(&key, &amount, "USD", word);
                expected.push(format!("currency {key}"));
            }
            Some(Seed::OtherStatus) => {
                line(&key, &amount, "EUR", if word == "paid" { "declined" } else { "paid" });
                expected.push(format!("status {key}"));
            }
        }
    }
    expected.sort();
    (text, expected)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn seeded_differences_are_found_and_none_invented() {
    let world = World::with(&[("shops/card.toml", SHOP)]);
    let created = (0..COUNT).map(|number| {
        let outcome = match word_of(number) {
            None => None,
            Some("paid") => PAID,
            Some(_) => Some(Outcome::Failed),
        };
        stored(
            &world,
            draft(["acme", "other"][usize::try_from(number % 2).unwrap()], number, &format!("o{number}")),
            outcome,
        )
    });
    futures_util::future::join_all(created).await;
    let rules = world.rules_directory();
    let compared = tokio::task::spawn_blocking(move || {
        let kinds = prop_oneof![
            Just(Seed::Nothing),
            Just(Seed::Twice),
            Just(Seed::OtherKey),
            Just(Seed::OtherAmount),
            Just(Seed::OtherCurrency),
            Just(Seed::OtherStatus),
        ];
        let seeds = proptest::collection::btree_map(0..COUNT, kinds, 0..60);
        let mut runner = TestRunner::new(Config { cases: 12, ..Config::default() });
        runner.run(&seeds, |seeds| {
            let (text, expected) = seeded(&seeds);
            let (code, json, err) = reconciled(rules.clone(), &text, ReportFormat::Json);
            let found = differences(&json).into_iter().map(|one| {
                let words: Vec<_> = one.split(' ').collect();
                format!("{} {}", words[0], words[2])
            });
            let mut found: Vec<_> = found.collect();
            found.sort();
            prop_assert_eq!(code, if expected.is_empty() { 0 } else { 4 }, "{}", err);
            prop_assert_eq!(found, expected);
            Ok(())
        })
    });
    compared.await.unwrap().unwrap();
}
