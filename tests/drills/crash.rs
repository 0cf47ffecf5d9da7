//! kill -9 under load: nothing that was acknowledged is lost, nothing is doubled, what was pending comes to its result,
//! and the books are right. `PAYBRIDGE_LONG=1` runs many more rounds, `PAYBRIDGE_SEED` repeats a run.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use fastrand::Rng;
use paybridge::clock::SystemRandomness;
use paybridge::domain::{Balance, Currency, MerchantId, UnixMillis};
use paybridge::rules::{self, LoadOptions};
use paybridge::store::{StoreAccess, open_beside};
use serde_json::{Value, json};

use crate::support::bodies::with;
use crate::support::gateway::admin_reply;
use crate::support::request::ACME;
use crate::support::stored::{CREATES, Create};
use crate::support::tools::seed;
use crate::support::{Client, Gateway, Rules, eventually, text};

/// What one caller knows of one create.
#[derive(Debug, Clone)]
struct Order {
    kind: Create,
    body: Value,
    /// The reply, when one came.
    acknowledged: Option<Value>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_to_kill_9() {
    let seed = seed();
    let mut chance = Rng::with_seed(seed);
    let rounds = if std::env::var_os("PAYBRIDGE_LONG").is_some() { 60 } else { 3 };
    // Slow enough that the kill finds withdrawals pending.
    let rules = Rules::default().edit("shops/card-eur.toml", "50ms", "400ms");
    let mut gateway = Gateway::start(&rules);
    let mut before: Vec<Order> = Vec::new();
    let mut transactions: HashMap<String, (bool, String)> = HashMap::new();
    for round in 0..rounds {
        let (orders, _) = load_and_kill(&mut gateway, MIXED, round, 1 + chance.u64(..800)).await;
        let acknowledged = orders.iter().filter(|order| order.acknowledged.is_some()).count();
        assert!(acknowledged > 0, "seed {seed}, round {round}: the load never got going");
        gateway.restart();
        let client = gateway.client();
        for order in &orders {
            let reply = found(&client, order).await;
            let id = text(&reply, "transaction_id").to_owned();
            let name = text(&order.body, order.kind.id_member()).to_owned();
            let other = transactions.insert(id, (matches!(order.kind, Create::Payin | Create::Deposit), name));
            assert!(
                other.is_none(),
                "seed {seed}, round {round}: one transaction_id for two orders: {order:?} {other:?}"
            );
        }
        let pending: Vec<_> = orders.iter().filter(|order| is_withdrawal(order.kind)).collect();
        for order in pending.iter().rev().take(5) {
            succeeds(&client, order).await;
        }
        // Some of what earlier rounds left is still as it was.
        for order in before.iter().rev().step_by(7).take(40) {
            found(&client, order).await;
        }
        before.extend(orders);
    }
    let client = gateway.client();
    for order in before.iter().filter(|order| is_withdrawal(order.kind)).step_by(5) {
        succeeds(&client, order).await;
    }
}

const fn is_withdrawal(kind: Create) -> bool {
    matches!(kind, Create::Payout | Create::Withdrawal)
}

/// What callers create.
#[derive(Clone, Copy)]
struct Load {
    /// Caller by caller.
    kinds: &'static [Create],
    /// The amount of a caller's nth create, in hundredths.
    amount: fn(u64) -> u64,
    /// How many operators resolve withdrawals meanwhile.
    operators: u64,
}

const MIXED: Load = Load { kinds: &CREATES, amount: |number| 1000 + number * 5 % 90_000, operators: 0 };

/// What an operator knows of one resolution.
#[derive(Debug)]
struct Resolution {
    transaction_id: String,
    wanted: &'static str,
    /// The status of the reply, when one came.
    answered: Option<u16>,
}

/// Resolves withdrawals that were acknowledged, one way or the other, until the gateway is gone.
fn resolve_until_killed(admin: SocketAddr, orders: &Mutex<Vec<Order>>, mut chance: Rng) -> Vec<Resolution> {
    let mut resolutions = Vec::new();
    loop {
        let transaction_id = {
            let orders = orders.lock().unwrap();
            let order = chance.choice(&*orders).filter(|order| is_withdrawal(order.kind));
            order.and_then(|order| Some(text(order.acknowledged.as_ref()?, "transaction_id").to_owned()))
        };
        let Some(transaction_id) = transaction_id else {
            if admin_reply(admin, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").is_none() {
                return resolutions;
            }
            continue;
        };
        let wanted = if chance.bool() { "SUCCESS" } else { "FAILED" };
        let body = json!({ "status": wanted, "reason": "by the statement" }).to_string();
        let request = format!(
            "POST /api/operations/{transaction_id}/resolve HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let answered = admin_reply(admin, &request).map(|(status, ..)| status);
        assert!(matches!(answered, None | Some(200 | 409)), "{answered:?}");
        resolutions.push(Resolution { transaction_id, wanted, answered });
        if answered.is_none() {
            return resolutions;
        }
    }
}

/// Lets 16 callers create without pause, and operators resolve, and kills the gateway after so many replies to creates.
async fn load_and_kill(gateway: &mut Gateway, load: Load, round: u64, replies: u64) -> (Vec<Order>, Vec<Resolution>) {
    let orders = Arc::new(Mutex::new(Vec::new()));
    let answered = Arc::new(AtomicU64::new(0));
    let operators: Vec<_> = (0..load.operators)
        .map(|operator| {
            let (admin, orders, chance) = (gateway.admin, Arc::clone(&orders), Rng::with_seed(round << 8 | operator));
            std::thread::spawn(move || resolve_until_killed(admin, &orders, chance))
        })
        .collect();
    let callers: Vec<_> = (0..16)
        .map(|caller| {
            let (client, orders, answered) = (gateway.client(), orders.clone(), answered.clone());
            tokio::spawn(async move {
                let kind = load.kinds[caller % load.kinds.len()];
                // A caller that comes late finds the gateway killed.
                let Some(mut connection) = client.try_connect().await else { return };
                for number in 0.. {
                    let body = body(kind, &format!("{round}-{caller}-{number}"), (load.amount)(number));
                    let acknowledged = connection.try_send(&kind.request(&ACME, body.to_string())).await;
                    let done = acknowledged.is_none();
                    let acknowledged = acknowledged.map(|reply| reply.expect(200).json());
                    answered.fetch_add(u64::from(!done), Ordering::Relaxed);
                    orders.lock().unwrap().push(Order { kind, body, acknowledged });
                    if done {
                        break;
                    }
                }
            })
        })
        .collect();
    eventually("replies", async || (answered.load(Ordering::Relaxed) >= replies).then_some(())).await;
    gateway.kill();
    for caller in callers {
        caller.await.unwrap();
    }
    let resolutions = operators.into_iter().flat_map(|operator| operator.join().unwrap()).collect();
    (Arc::into_inner(orders).unwrap().into_inner().unwrap(), resolutions)
}

fn body(kind: Create, id: &str, cents: u64) -> Value {
    let amount = format!("{}.{:02}", cents / 100, cents % 100);
    let amount = if kind.is_v1() { json!(amount) } else { serde_json::from_str(&amount).unwrap() };
    with(kind.body(&format!("{kind:?}-{id}")), "amount", Some(amount))
}

/// Asserts that an order is there with its data when it was acknowledged, and that a repeat, acknowledged or not, is
/// answered as one operation.
async fn found(client: &Client, order: &Order) -> Value {
    let id = text(&order.body, order.kind.id_member());
    if let Some(reply) = &order.acknowledged {
        let record = client.send(&order.kind.status(&ACME, id, reply)).await.expect(200).json();
        assert_eq!(text(&record, order.kind.id_member()), id);
        assert_eq!(record["transaction_id"], reply["transaction_id"]);
        assert_eq!(text(&record, "currency"), "EUR");
        assert_eq!(text(&record, if order.kind.is_v1() { "shop_code" } else { "method" }), "card-eur");
        assert_eq!(cents(&record["amount"]), cents(&order.body["amount"]), "{record}");
        assert_eq!(record["account_number"].is_string(), is_withdrawal(order.kind), "{record}");
    }
    let again = order.kind.create(client, &ACME, &order.body).await.json();
    if let Some(reply) = &order.acknowledged {
        assert_eq!(&again, reply, "a repeat of {order:?}");
    }
    assert_eq!(order.kind.create(client, &ACME, &order.body).await.json(), again);
    again
}

/// An amount in hundredths, from either spelling.
fn cents(amount: &Value) -> u64 {
    let spelt = amount.as_str().map_or_else(|| amount.to_string(), str::to_owned);
    let (units, rest) = spelt.split_once('.').unwrap_or((&spelt, ""));
    units.parse::<u64>().unwrap() * 100 + format!("{rest:0<2}").parse::<u64>().unwrap()
}

async fn succeeds(client: &Client, order: &Order) {
    let reply = order.kind.create(client, &ACME, &order.body).await.json();
    let id = text(&order.body, order.kind.id_member());
    eventually("a pending withdrawal succeeds", async || {
        let record = client.send(&order.kind.status(&ACME, id, &reply)).await.expect(200).json();
        assert_ne!(record["status"], "FAILED");
        (record["status"] == "SUCCESS").then_some(())
    })
    .await;
}

/// The opening balance of the drill, in hundredths.
const OPENING: u64 = 2_000_000;

/// Mostly withdrawals, of every outcome that the sandbox has.
const MONEY: Load = Load {
    kinds: &[Create::Withdrawal, Create::Payout, Create::Withdrawal, Create::Deposit],
    amount: |number| (1 + number * 7 % 90) * 100 + number % 6,
    operators: 2,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_books_are_right_after_kill_9() {
    let seed = seed();
    let mut chance = Rng::with_seed(seed);
    let rounds = if std::env::var_os("PAYBRIDGE_LONG").is_some() { 40 } else { 3 };
    let balance = "[balance]\nenforce = true\nopening = { EUR = \"20000.00\" }\n[shops.slow-eur]";
    let rules = Rules::default().edit("shops/card-eur.toml", "50ms", "200ms").edit(
        "merchants/acme.toml",
        "[shops.slow-eur]",
        balance,
    );
    let mut gateway = Gateway::start(&rules);
    let (mut orders, mut resolutions) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let (created, resolved) = load_and_kill(&mut gateway, MONEY, round, 1 + chance.u64(..400)).await;
        orders.extend(created);
        resolutions.extend(resolved);
        gateway.restart();
    }
    let ended = |resolution: &&Resolution| resolution.answered == Some(200);
    assert!(resolutions.iter().any(|resolution| ended(&resolution)), "seed {seed}: {resolutions:?}");
    let client = gateway.client();
    let uncovered = Create::Withdrawal;
    orders.push(Order { kind: uncovered, body: body(uncovered, "uncovered", OPENING + 5), acknowledged: None });
    let (mut paid, mut held) = (0, 0);
    for order in &orders {
        let reply = found(&client, order).await;
        let status = settled(&client, order, &reply).await;
        let amount = cents(&order.body["amount"]);
        let id = text(&reply, "transaction_id");
        let of_operators: Vec<_> = resolutions.iter().filter(|resolution| resolution.transaction_id == id).collect();
        let resolved: Vec<_> = of_operators.iter().copied().filter(ended).collect();
        assert!(resolved.len() <= 1, "seed {seed}: it ended twice: {resolved:?}");
        // What was not answered may have taken effect.
        let unknown = |wanted| of_operators.iter().any(|one| one.answered.is_none() && one.wanted == wanted);
        match (status.as_str(), amount % 100) {
            (status, _) if resolved.iter().any(|resolution| resolution.wanted == status) || unknown(status) => {
                paid += if status == "SUCCESS" { amount } else { 0 };
            }
            _ if !resolved.is_empty() => panic!("seed {seed}: {status} after {resolved:?}"),
            ("SUCCESS", 0 | 3 | 5) if is_withdrawal(order.kind) => paid += amount,
            ("PENDING", 2) if is_withdrawal(order.kind) => held += amount,
            ("PENDING", _) => assert_eq!((order.kind, amount % 100 == 1), (Create::Deposit, false), "seed {seed}"),
            ("FAILED", _) => assert!(is_withdrawal(order.kind) || amount % 100 == 1, "seed {seed}: {order:?}"),
            (status, _) => panic!("seed {seed}: {status} {order:?}"),
        }
    }
    assert!(paid > 0 && paid + held <= OPENING, "seed {seed}: {paid} paid, {held} held");
    gateway.kill();
    let trail = gateway.actions();
    for resolution in resolutions.iter().filter(ended) {
        let id = &resolution.transaction_id;
        assert!(trail.iter().any(|row| row.contains("operations.resolve") && row.contains(id)), "seed {seed}: {id}");
    }
    assert_books(&gateway, i64::try_from(OPENING - paid - held).unwrap(), i64::try_from(held).unwrap()).await;
}

/// The status of an operation, once the sandbox has nothing more to do with it.
async fn settled(client: &Client, order: &Order, reply: &Value) -> String {
    let id = text(&order.body, order.kind.id_member());
    eventually("a result", async || {
        let record = client.send(&order.kind.status(&ACME, id, reply)).await.expect(200).json();
        let waits = record["status"] == "PENDING" && record["account_number"].is_string();
        (!waits || cents(&record["amount"]) % 100 == 2).then(|| text(&record, "status").to_owned())
    })
    .await
}

/// Asserts that what the process left is in order, and the balance of the merchant.
async fn assert_books(gateway: &Gateway, available: i64, held: i64) {
    let rules = rules::load(&gateway.rules_dir(), UnixMillis(0), None, LoadOptions::default()).unwrap();
    let store =
        open_beside(&rules.gateway.store, StoreAccess::Read, Arc::new(SystemRandomness::default()), Arc::default())
            .unwrap();
    let audit = store.audit(Arc::new(|_| {})).await.unwrap();
    assert!(audit.is_clean(), "{audit:?}");
    let balances = store.balances(&MerchantId::new("acme").unwrap()).await.unwrap();
    assert_eq!(balances, [(Currency::new("EUR").unwrap(), Balance { available, held })]);
}
