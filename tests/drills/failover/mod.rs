//! The leader of three PostgreSQL servers under Patroni dies under load, or freezes: creates are answered 503 with
//! `Retry-After` until there is another one, then they go on without a restart, and everything that was acknowledged is
//! there, once. The console works meanwhile, and shows it.
//!
//! It needs etcd and Patroni, and a minute; `tests/drills/failover/run` installs them and runs it. `PAYBRIDGE_LONG=1` has five
//! rounds instead of one.

mod cluster;
mod load;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::support::request::ACME;
use crate::support::stored::Create;
use crate::support::tools::say;
use crate::support::{Gateway, Rules, text};
use cluster::{Cluster, TTL};
use load::{Attempt, Load, Order};
use tokio::time::Instant;

const GATEWAYS: usize = 2;

const CALLERS: usize = 16;

/// Longer than this no reply may take, whatever happens to the database.
const LONGEST: Duration = Duration::from_secs(10);

/// How long a new leader may take to be there: the old one's time, and what the others need to agree.
const ELECTION: u64 = TTL + 25;

/// What happens to a leader.
#[derive(Debug, Clone, Copy)]
enum Blow {
    /// Its machine dies: connections break.
    Death,
    /// Its machine freezes: connections stay, and nothing is answered on them. It comes back, and thinks that it leads.
    Freeze,
}

const LONG: &[Blow] = &[Blow::Death, Blow::Freeze, Blow::Death, Blow::Freeze, Blow::Death];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes: tests/drills/failover/run runs it"]
async fn a_leader_that_is_lost_costs_nothing_that_was_acknowledged() {
    let Some(mut cluster) = Cluster::start() else { return };
    within(90, "the members have a leader", || cluster.is_whole().then_some(()));
    cluster.sql("postgres", "CREATE DATABASE paybridge TEMPLATE template0");
    let gateways = gateways(&cluster);
    let pids: Vec<_> = gateways.iter().map(Gateway::pid).collect();
    let load = Arc::new(Load::new(gateways.iter().map(Gateway::client).collect()));
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let load = Arc::clone(&load);
            tokio::spawn(async move { load.call(caller).await })
        })
        .collect();
    let blows = if std::env::var_os("PAYBRIDGE_LONG").is_some() { LONG } else { &LONG[..1] };
    for blow in blows {
        round(&mut cluster, &gateways, &load, *blow);
    }
    load.stop.store(true, Ordering::Relaxed);
    for caller in callers {
        caller.await.unwrap();
    }
    assert_eq!(gateways.iter().map(Gateway::pid).collect::<Vec<_>>(), pids, "no gateway was restarted");
    assert_stored_once(&cluster, &load);
    assert_reported_alike(&load).await;
    let checked = gateways[0].store_check();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
    tell_totals(&load);
}

/// Withdrawals have to be covered, so that each has to be decided: they take another way than deposits.
fn gateways(cluster: &Cluster) -> Vec<Gateway> {
    let balance = "[balance]\nenforce = true\nopening = { EUR = \"90000000.00\" }\n[shops.slow-eur]";
    let rules = Rules::default().edit("merchants/acme.toml", "[shops.slow-eur]", balance);
    let mut gateways: Vec<_> =
        (0..GATEWAYS).map(|_| Gateway::prepare_at(&rules, Some(&cluster.url("paybridge")))).collect();
    gateways.iter_mut().for_each(Gateway::spawn);
    for gateway in &mut gateways {
        assert!(gateway.wait_ready(), "a gateway did not start:\n{}", gateway.log());
    }
    gateways
}

/// Takes the leader away under load, waits until all goes on at another one, and gives it back as a member.
fn round(cluster: &mut Cluster, gateways: &[Gateway], load: &Load, blow: Blow) {
    let mut polls = 0;
    within(120, "every member is there, and stays", || {
        polls = if cluster.is_whole() { polls + 1 } else { 0 };
        (polls > 20).then_some(())
    });
    let leader = cluster.leader().expect("a leader");
    let began = Instant::now();
    match blow {
        Blow::Death => cluster.kill(leader),
        Blow::Freeze => cluster.freeze(leader),
    }
    within(30, "no gateway is ready", || gateways.iter().all(|gateway| readiness(gateway) == 503).then_some(()));
    within(10, "the console shows it", || {
        gateways.iter().all(|gateway| has_banner(gateway) == Some(true)).then_some(())
    });
    let led =
        within(ELECTION, "another leader", || cluster.leader().filter(|new| *new != leader).map(|_| Instant::now()));
    for number in 0..GATEWAYS {
        let here = |reported: &&Attempt| reported.gateway == number && reported.acknowledged;
        within(30, "creates go on", || (load.since(led).iter().filter(here).count() > 50).then_some(()));
    }
    within(30, "every gateway is ready", || gateways.iter().all(|gateway| readiness(gateway) == 200).then_some(()));
    within(10, "the console is calm", || {
        gateways.iter().all(|gateway| has_banner(gateway) == Some(false)).then_some(())
    });
    match blow {
        Blow::Death => cluster.start_again(leader),
        Blow::Freeze => cluster.thaw(leader),
    }
    let returned = Instant::now();
    within(30, "creates go on beside it", || (load.since(returned).len() > 500).then_some(()));
    tell_round(blow, began, led, &load.since(began));
}

fn readiness(gateway: &Gateway) -> u16 {
    gateway.admin_get("/readyz").map_or(0, |(status, _)| status)
}

/// Whether a page of the console, which is there in any case, shows at its top that the gateway takes no requests.
fn has_banner(gateway: &Gateway) -> Option<bool> {
    let (status, page) = gateway.admin_get("/rules")?;
    assert_eq!(status, 200, "{page}");
    Some(page.contains("New requests are not accepted here"))
}

/// Polls until there is something to give; runs on the test's own thread, beside those of the callers.
fn within<T>(seconds: u64, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "not within {seconds} s: {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The database holds the acknowledged orders under the ids that were told, and nothing else: every caller asked for every
/// order until it was acknowledged.
fn assert_stored_once(cluster: &Cluster, load: &Load) {
    let rows = cluster
        .sql("paybridge", "SELECT order_id, direction, transaction_id FROM operations JOIN contexts ON id = context");
    let mut stored: HashMap<&str, &str> = HashMap::new();
    for row in rows.lines() {
        let (order, id) = row.rsplit_once('|').unwrap();
        assert!(stored.insert(order, id).is_none(), "{order} is there twice");
    }
    let orders = load.orders.lock().unwrap();
    let is_kept = |order: &&Order| {
        let direction = i32::from(matches!(order.kind, Create::Payout | Create::Withdrawal));
        stored.get(&*format!("{}|{direction}", order.id)) == Some(&text(&order.reply, "transaction_id"))
    };
    let lost: Vec<_> = orders.iter().filter(|order| !is_kept(order)).map(|order| (&order.id, &order.reply)).collect();
    assert!(lost.is_empty(), "{} acknowledged orders are not there: {lost:?}", lost.len());
    assert_eq!(stored.len(), orders.len(), "rows and orders");
}

/// Some of the orders are found by their ids, and get their first reply when they are repeated.
async fn assert_reported_alike(load: &Load) {
    let orders = std::mem::take(&mut *load.orders.lock().unwrap());
    for order in orders.iter().step_by(50) {
        let client = &load.clients[1];
        let record = client.send(&order.kind.status(&ACME, &order.id, &order.reply)).await.expect(200).json();
        assert_eq!(text(&record, order.kind.id_member()), order.id);
        assert_eq!(order.kind.create(client, &ACME, &order.body).await.json(), order.reply, "{}", order.id);
    }
}

fn tell_round(blow: Blow, began: Instant, led: Instant, reported: &[Attempt]) {
    let acknowledged: Vec<_> = std::iter::once(began)
        .chain(reported.iter().filter(|reported| reported.acknowledged).map(|reported| reported.at))
        .collect();
    let silence = acknowledged.windows(2).max_by_key(|pair| pair[1] - pair[0]).expect("creates went on");
    say(&format!(
        "{blow:?}: another leader after {:.1} s; no create was acknowledged for {:.1} s, until {:.1} s after it was there; \
         {} were, {} got 503; the longest wait was {:.1} s for a 200 and {:.1} s for a 503",
        (led - began).as_secs_f64(),
        (silence[1] - silence[0]).as_secs_f64(),
        silence[1].saturating_duration_since(led).as_secs_f64(),
        acknowledged.len() - 1,
        reported.iter().filter(|reported| !reported.acknowledged).count(),
        longest(reported, true).as_secs_f64(),
        longest(reported, false).as_secs_f64(),
    ));
    assert!(longest(reported, true).max(longest(reported, false)) < LONGEST, "a reply took longer than {LONGEST:?}");
}

fn longest(reported: &[Attempt], acknowledged: bool) -> Duration {
    reported
        .iter()
        .filter(|reported| reported.acknowledged == acknowledged)
        .map(|reported| reported.took)
        .max()
        .unwrap_or_default()
}

fn tell_totals(load: &Load) {
    let reported = load.reported.lock().unwrap();
    let acknowledged = reported.iter().filter(|reported| reported.acknowledged).count();
    let refused = reported.len() - acknowledged;
    say(&format!(
        "{acknowledged} creates were acknowledged and are there, once; {refused} replies were 503, none other"
    ));
}
