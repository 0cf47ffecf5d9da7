//! Growing rules: merchants, shops, networks of a key.

use std::fmt::Write as _;

use super::common::gateway;
use super::common::pin::Cores;
use super::figures::{Axis, Turn};
use super::plan::Plan;
use super::support::{Key, Rules};
use super::traffic::{Caller, Orders, created};
use super::turns::{Sized, log_turn};

/// The most merchants or shops that send requests; they are spread over the rules.
const MOST_CALLERS: u64 = 1000;

const CONNECTIONS: usize = 64;

/// The schema of deposits, without the comment that makes every shop's schema different.
const SCHEMA: &str = r#""type":"object","properties":{"email":{"type":"string","format":"email"},
    "first_name":{"type":"string","maxLength":40},"level":{"type":"integer","minimum":1,"maximum":5},
    "channel":{"type":"string","enum":["web","app"],"default":"web"},"phone":{"type":"string"}}}"#;

/// Rules of one size, and their callers.
pub struct World {
    /// The files.
    pub rules: Rules,
    /// Merchants' keys with their shops.
    pub callers: Vec<Caller>,
}

/// Measures the cost of a create with rules of several sizes.
pub fn measure(name: &str, plan: &Plan, cores: Cores) -> Axis {
    let (name, title, sizes, world): (_, _, _, fn(u64) -> World) = match name {
        "merchants" => ("merchants", "merchants in the rules", plan.merchants, merchants),
        "shops" => ("shops", "shops in the rules, with a schema each", plan.shops, shops),
        _ => ("networks", "networks on a key's allow-list", plan.networks, networks),
    };
    let directory = tempfile::tempdir_in(plan.work()).unwrap();
    let start = |size: &u64| {
        let World { rules, callers } = world(*size);
        let gateway = Sized::start(*size, &rules, &directory.path().join(size.to_string()), cores);
        (gateway, callers, Vec::<Turn>::new())
    };
    let mut gateways: Vec<_> = sizes.iter().map(start).collect();
    let orders = Orders::default();
    super::client().block_on(async {
        for (gateway, callers, _) in &mut gateways {
            gateway.connect(CONNECTIONS).await;
            // After this every calling merchant is known to its store, in every size.
            let requests = orders.payins(callers, plan.requests.max(callers.len()));
            gateway.turn(requests, &created()).await;
        }
        for round in 0..plan.rounds {
            for (gateway, callers, turns) in &mut gateways {
                let turn = gateway.turn(orders.payins(callers, plan.requests), &created()).await;
                log_turn(round, gateway.size, name, &turn);
                turns.push(turn);
            }
            // Each round begins with another size.
            gateways.rotate_left(1);
        }
    });
    gateways.sort_by_key(|(gateway, ..)| gateway.size);
    let points = gateways.into_iter().map(|(gateway, _, turns)| gateway.point(turns, String::new())).collect();
    Axis { name, title, request: "durable v1 create", cpu_goal: None, tail_goal: None, points }
}

/// Returns the common rules, with long timeouts: a connection waits for its turn longer than in production.
pub fn common() -> Rules {
    gateway::rules().with("limits", "head_timeout = \"10m\"\nidle_timeout = \"30m\"")
}

/// Returns the common rules without their merchants.
fn without_merchants() -> Rules {
    common().without("merchants/acme.toml").without("merchants/beta.toml").without("merchants/gamma.toml")
}

/// Returns a key. Its texts are leaked, because the client's keys are `&'static str`.
fn key(number: u64) -> Key {
    let text = |kind: &str| -> &'static str { format!("merchant-{number}-{kind}-4Qs7Wq9X").leak() };
    Key { name: text("key"), v1: Some(text("v1")), v2: Some(text("v2")) }
}

/// Returns the file of a merchant with one key. `networks` are lines of an array, before the client's own network.
fn merchant(key: &Key, shops: impl Iterator<Item = String>, networks: &str) -> String {
    let (v1, v2) = (key.v1.unwrap(), key.v2.unwrap());
    let mut text = format!(
        "name = \"Merchant\"\n\n[[api_keys]]\nkey = \"{}\"\nv1_secret = \"{v1}\"\nv2_secret = \"{v2}\"\n\
         allowed_ips = [\n{networks}  \"127.0.0.0/8\",\n]\nrate_limit = {{ per_second = 1000000, burst = 1000000 }}\n",
        key.name
    );
    for shop in shops {
        let _ = write!(text, "\n[shops.{shop}]\npayin = true\npayout = true\n");
    }
    text
}

/// Returns the numbers below `size` that send requests.
fn sample(size: u64) -> impl Iterator<Item = u64> {
    let count = size.min(MOST_CALLERS);
    (0..count).map(move |number| number * size / count)
}

fn merchants(size: u64) -> World {
    let shop = || "card-eur".to_owned();
    let mut rules = without_merchants();
    for number in 0..size {
        let text = merchant(&key(number), [shop()].into_iter(), "");
        rules.put(&format!("merchants/merchant-{number}.toml"), text);
    }
    let callers = sample(size).map(|number| Caller { key: key(number), shop: shop() }).collect();
    World { rules, callers }
}

fn shops(size: u64) -> World {
    let shop = |number: u64| format!("shop-{number}");
    let key = key(0);
    let mut rules = without_merchants().file("merchants/merchant.toml", merchant(&key, (0..size).map(shop), ""));
    for number in 0..size {
        let text = format!(
            "currency = \"EUR\"\npayment_method = \"card\"\n[payin]\nschema = \"shop-{number}.json\"\n\
             [payout]\naccount = \"card\"\n[provider]\nkind = \"sandbox\"\n"
        );
        rules.put(&format!("shops/shop-{number}.toml"), text);
        rules.put(&format!("shops/shop-{number}.json"), format!("{{\"$comment\":\"of shop {number}\",{SCHEMA}"));
    }
    let callers = sample(size).map(|number| Caller { key, shop: shop(number) }).collect();
    World { rules, callers }
}

/// Returns rules with this many networks, none adjacent to another: adjacent ones could be joined to a few.
fn networks(size: u64) -> World {
    let key = key(0);
    let networks = (0..size.saturating_sub(1)).fold(String::new(), |mut text, number| {
        let address = number * 2;
        let _ = writeln!(text, "  \"10.{}.{}.{}\",", address >> 16 & 255, address >> 8 & 255, address & 255);
        text
    });
    let shop = || "card-eur".to_owned();
    let rules = without_merchants().file("merchants/merchant.toml", merchant(&key, [shop()].into_iter(), &networks));
    World { rules, callers: vec![Caller { key, shop: shop() }] }
}
