//! Growing numbers of rows: creates alone, with random order ids and with ascending ones, and creates beside all other work
//! of a store.

use std::path::Path;
use std::process::Command;

use super::common::cpu::{Usage, quiet};
use super::common::load::{Connection, load};
use super::common::pin::Cores;
use super::common::{disk, gateway, say};
use super::figures::{Axis, Turn};
use super::plan::Plan;
use super::support::Rules;
use super::support::request::ACME;
use super::traffic::{Caller, Orders, containing, created, histories, payins};
use super::turns::{Sized, log_turn};
use super::{fill, receiver, worlds};

const CONNECTIONS: usize = 64;

/// The connections for withdrawals, and for reads of the history.
const PAYOUT_CONNECTIONS: usize = 4;
const PAGE_CONNECTIONS: usize = 2;

/// The creates for each withdrawal, and for each page of the history.
const ONE_PAYOUT: usize = 8;
const ONE_PAGE: usize = 100;

/// A generous estimate of a row's size on disk with its entries and indexes, in bytes.
const A_ROW: u64 = 1000;

/// Measures the cost of a create in stores of several sizes: alone, alone with ascending ids, and beside all other work.
pub fn measure(plan: &Plan, cores: Cores) -> [Axis; 3] {
    assert!(!disk::is_memory(&plan.out), "{} is in memory: name a directory on a disk with --out", plan.out.display());
    let rules = worlds::common().edit(
        "merchants/acme.toml",
        "[shops.off-eur]",
        "[v1]\nallow_http_callbacks = true\n[shops.off-eur]",
    );
    let directory = tempfile::tempdir_in(plan.work()).unwrap();
    make_stores(plan, &rules, directory.path());
    let place = |size: &u64| directory.path().join(size.to_string());
    let mut stores: Vec<_> =
        plan.rows.iter().map(|size| Store::of(Sized::start(*size, &rules, &place(size), cores))).collect();
    super::client().block_on(async {
        let client = Client { orders: Orders::default(), receiver: receiver::start().await };
        for store in &mut stores {
            store.connect().await;
        }
        for round in 0..=plan.rounds {
            for store in &mut stores {
                let alone = client.creates(store, client.orders.some(plan.creates)).await;
                let ascending = client.creates(store, client.orders.ascending(plan.creates)).await;
                let busy = client.everything(store, plan.creates).await;
                // The first turns only fill caches.
                if round > 0 {
                    log_turn(round - 1, store.gateway.size, "creates alone", &alone);
                    log_turn(round - 1, store.gateway.size, "creates alone, ascending ids", &ascending);
                    log_turn(round - 1, store.gateway.size, "creates beside all else", &busy);
                    store.alone.push(alone);
                    store.ascending.push(ascending);
                    store.busy.push(busy);
                }
            }
            // Each round begins with another size.
            stores.rotate_left(1);
        }
    });
    stores.sort_by_key(|store| store.gateway.size);
    let added = (plan.rounds + 1) * (3 * plan.creates + plan.creates / ONE_PAYOUT);
    let axis = |name, title, turns: fn(&Store) -> &Vec<Turn>| {
        let point = |store: &Store| {
            let note = format!("{added} more at the end, file of {} MiB", file_mib(&store.gateway));
            store.gateway.point(turns(store).clone(), note)
        };
        let points = stores.iter().map(point).collect();
        Axis { name, title, request: "durable v1 create", cpu_goal: Some(1.4), tail_goal: Some(3.0), points }
    };
    [
        axis("rows", "rows in the store", |store| &store.alone),
        axis("rows_ascending", "rows in the store, creates with ascending order ids", |store| &store.ascending),
        axis("rows_busy", "rows in the store, with everything else beside", |store| &store.busy),
    ]
}

/// A gateway with a store of one size, and its turns.
struct Store {
    gateway: Sized,
    payouts: Vec<Connection>,
    pages: Vec<Connection>,
    alone: Vec<Turn>,
    ascending: Vec<Turn>,
    busy: Vec<Turn>,
}

impl Store {
    fn of(gateway: Sized) -> Self {
        let [alone, ascending, busy] = Default::default();
        Self { gateway, payouts: Vec::new(), pages: Vec::new(), alone, ascending, busy }
    }

    async fn connect(&mut self) {
        self.gateway.connect(CONNECTIONS).await;
        let target = self.gateway.gateway.target();
        self.payouts = target.connect(PAYOUT_CONNECTIONS).await;
        self.pages = target.connect(PAGE_CONNECTIONS).await;
    }
}

/// The client that sends requests.
struct Client {
    orders: Orders,
    /// The address of the callback receiver.
    receiver: String,
}

impl Client {
    async fn creates(&self, store: &mut Store, names: Vec<String>) -> Turn {
        store.gateway.turn(payins(&[caller()], &names), &created()).await
    }

    /// Runs creates, withdrawals with their results and callbacks, and reads of the history, all at once. The latencies are
    /// those of the creates.
    async fn everything(&self, store: &mut Store, count: usize) -> Turn {
        let process = [store.gateway.gateway.pid()];
        let creates = self.orders.payins(&[caller()], count);
        let withdrawals = self.orders.payouts(&caller(), &self.receiver, count / ONE_PAYOUT);
        let histories = histories(&caller(), count / ONE_PAGE);
        let (made, listed) = (created(), containing("\"transactions\":["));
        let before = Usage::of(&process);
        let (loaded, _, _) = tokio::join!(
            load(&mut store.gateway.connections, creates, &made),
            load(&mut store.payouts, withdrawals, &made),
            load(&mut store.pages, histories, &listed),
        );
        quiet(&process).await;
        Turn::of(&loaded, Usage::of(&process).since(&before), count + count / ONE_PAYOUT)
    }
}

fn caller() -> Caller {
    Caller { key: ACME, shop: "card-eur".to_owned() }
}

/// Creates a store of each size, each in the directory of a gateway that ran once.
fn make_stores(plan: &Plan, rules: &Rules, directory: &Path) {
    let most = plan.rows.last().copied().unwrap();
    check_room(directory, plan.rows.iter().sum::<u64>() * A_ROW);
    let growing = directory.join("growing");
    // Creates the keys and the certificate, which all later runs use.
    drop(gateway::Gateway::start(&gateway::binary(), rules, &growing));
    let mut filled = 0;
    for size in plan.rows {
        fill::fill(&growing, filled, *size);
        if filled == 0 {
            assert!(fill::is_clean(&growing), "the filled store fails the checks of `store check`");
        }
        filled = *size;
        let place = directory.join(size.to_string());
        if *size == most {
            std::fs::rename(&growing, &place).unwrap();
        } else {
            let copied = Command::new("cp").arg("-a").arg(&growing).arg(&place).status().unwrap();
            assert!(copied.success(), "cp failed: {copied}");
        }
        say(&format!("a store of {size} rows is ready"));
    }
}

/// # Panics
/// The disk has no room for `bytes`.
fn check_room(directory: &Path, bytes: u64) {
    let stated = Command::new("df").args(["--output=avail", "-B1"]).arg(directory).output().unwrap().stdout;
    let stated = String::from_utf8_lossy(&stated);
    let free = stated.lines().nth(1).and_then(|line| line.trim().parse::<u64>().ok());
    let enough = free.is_none_or(|free| free > bytes);
    assert!(
        enough,
        "{} has no room for {} GB: name another directory with --out",
        directory.display(),
        bytes / 1_000_000_000
    );
}

fn file_mib(gateway: &Sized) -> u64 {
    std::fs::metadata(gateway.gateway.root.join("data/paybridge.db")).map_or(0, |file| file.len() >> 20)
}
