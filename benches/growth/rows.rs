//! Rows that grow: creates alone, and creates beside everything else that a store has to do.

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
use super::traffic::{Caller, Orders, created, histories, says};
use super::turns::{Sized, tell};
use super::{fill, receiver, worlds};

const CONNECTIONS: usize = 64;

/// Connections of those who withdraw, and of those who read pages.
const BESIDE: [usize; 2] = [4, 2];

/// For so many creates there is a withdrawal beside, and a page of the history.
const ONE_PAYOUT: usize = 8;
const ONE_PAGE: usize = 100;

/// What a row takes on disk, with its entries and indexes, and room to spare; in bytes.
const A_ROW: u64 = 1000;

/// What a create costs in stores of several sizes: alone, and in the thick of it.
pub fn measure(plan: &Plan, cores: Cores) -> [Axis; 2] {
    assert!(!disk::is_memory(&plan.out), "{} is in memory: name a directory on a disk with --out", plan.out.display());
    let rules = worlds::common().edit(
        "merchants/acme.toml",
        "[shops.off-eur]",
        "[v1]\nallow_http_callbacks = true\n[shops.off-eur]",
    );
    let directory = tempfile::tempdir_in(&plan.out).unwrap();
    make_stores(plan, &rules, directory.path());
    let place = |size: &u64| directory.path().join(size.to_string());
    let mut gateways: Vec<_> = plan.rows.iter().map(|size| Sized::start(*size, &rules, &place(size), cores)).collect();
    let orders = Orders::default();
    let caller = Caller { key: ACME, shop: "card-eur".to_owned() };
    let mut turns = vec![[Vec::new(), Vec::new()]; gateways.len()];
    super::client().block_on(async {
        let receiver = receiver::start().await;
        let mut beside = Vec::new();
        for gateway in &mut gateways {
            gateway.connect(CONNECTIONS).await;
            beside.push([
                gateway.gateway.target().connect(BESIDE[0]).await,
                gateway.gateway.target().connect(BESIDE[1]).await,
            ]);
        }
        for round in 0..=plan.rounds {
            for ((gateway, turns), beside) in gateways.iter_mut().zip(&mut turns).zip(&mut beside) {
                let alone = gateway.turn(orders.payins(std::slice::from_ref(&caller), plan.creates), &created()).await;
                let busy = busy_turn(gateway, beside, &orders, &caller, &receiver, plan.creates).await;
                // The first turns fill caches.
                if round > 0 {
                    tell(round - 1, gateway.size, "creates alone", &alone);
                    tell(round - 1, gateway.size, "creates beside all else", &busy);
                    turns[0].push(alone);
                    turns[1].push(busy);
                }
            }
        }
    });
    let added = (plan.rounds + 1) * (2 * plan.creates + plan.creates / ONE_PAYOUT);
    let axis = |which: usize, name, title, request, tail_goal| {
        let point = |(gateway, turns): (&Sized, &[Vec<Turn>; 2])| {
            let note = format!("{added} more at the end, file of {} MiB", file_mib(gateway));
            gateway.point(turns[which].clone(), note)
        };
        let points = gateways.iter().zip(&turns).map(point).collect();
        Axis { name, title, request, cpu_goal: Some(1.4), tail_goal, points }
    };
    let beside = "rows in the store, with everything else beside";
    [
        axis(0, "rows", "rows in the store", "durable v1 create", Some(3.0)),
        axis(1, "rows_busy", beside, "durable v1 create", Some(3.0)),
    ]
}

/// Creates, withdrawals that come to their results and are told of, and pages of the history, all at once. The latencies
/// are those of the creates.
async fn busy_turn(
    gateway: &mut Sized,
    [payouts, pages]: &mut [Vec<Connection>; 2],
    orders: &Orders,
    caller: &Caller,
    receiver: &str,
    requests: usize,
) -> Turn {
    let process = [gateway.gateway.pid()];
    let creates = orders.payins(std::slice::from_ref(caller), requests);
    let withdrawals = orders.payouts(caller, receiver, requests / ONE_PAYOUT);
    let in_all = requests + requests / ONE_PAYOUT;
    let histories = histories(caller, requests / ONE_PAGE);
    let (made, listed) = (created(), says("\"transactions\":["));
    let before = Usage::of(&process);
    let (loaded, _, _) = tokio::join!(
        load(&mut gateway.connections, creates, &made),
        load(payouts, withdrawals, &made),
        load(pages, histories, &listed),
    );
    quiet(&process).await;
    Turn::of(&loaded, Usage::of(&process).since(&before), in_all)
}

/// A store of each size, each in the directory of a gateway that ran once.
fn make_stores(plan: &Plan, rules: &Rules, directory: &Path) {
    let most = plan.rows.last().copied().unwrap();
    check_room(directory, plan.rows.iter().sum::<u64>() * A_ROW);
    let growing = directory.join("growing");
    // Makes the keys and the certificate; what comes later finds them.
    drop(gateway::Gateway::start(&gateway::binary(), rules, &growing));
    let mut filled = 0;
    for size in plan.rows {
        fill::fill(&growing, filled, *size);
        if filled == 0 {
            assert!(fill::is_clean(&growing), "the filled store is not as a store must be");
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
/// The disk has no room for so many bytes.
fn check_room(directory: &Path, bytes: u64) {
    let said = Command::new("df").args(["--output=avail", "-B1"]).arg(directory).output().unwrap().stdout;
    let said = String::from_utf8_lossy(&said);
    let free = said.lines().nth(1).and_then(|line| line.trim().parse::<u64>().ok());
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
