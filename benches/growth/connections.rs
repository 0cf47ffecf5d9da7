//! Growing numbers of open connections, all of them in use.

use super::common::pin::Cores;
use super::common::say;
use super::figures::{Axis, Turn};
use super::plan::Plan;
use super::support::request::ACME;
use super::traffic::{Caller, Orders, containing, created, payins, statuses};
use super::turns::{Sized, log_turn};
use super::worlds;

/// The orders whose status is read.
const ORDERS: usize = 64;

/// Open files other than clients' connections.
const OTHER_FILES: u64 = 256;

/// The files that a gateway reserves for its outgoing connections, if that is less than a quarter of all.
const OUTGOING_FILES: u64 = 2304;

/// The connections from which on the memory per connection is meaningful.
const MANY: u64 = 1000;

/// Measures the cost of a status read beside open connections.
pub fn measure(plan: &Plan, cores: Cores, files: u64) -> Axis {
    let rules = worlds::common();
    let directory = tempfile::tempdir_in(plan.work()).unwrap();
    let caller = Caller { key: ACME, shop: "card-eur".to_owned() };
    let mut gateways = Vec::new();
    let room = files.saturating_sub(OTHER_FILES + OUTGOING_FILES.min(files / 4));
    for size in plan.connections {
        if *size > room {
            say(&format!("{size} connections are left out: this process may open {files} files (ulimit -n)"));
            continue;
        }
        let place = directory.path().join(size.to_string());
        gateways.push((Sized::start(*size, &rules, &place, cores), Vec::<Turn>::new()));
    }
    super::client().block_on(async {
        let known = Orders::default().some(ORDERS);
        for (gateway, _) in &mut gateways {
            gateway.connect(usize::try_from(gateway.size).unwrap()).await;
            gateway.turn(payins(std::slice::from_ref(&caller), &known), &created()).await;
        }
        for round in 0..=plan.rounds {
            for (gateway, turns) in &mut gateways {
                let count = plan.requests.max(gateway.connections.len() * 2);
                let turn = gateway.turn(statuses(&caller, &known, count), &containing("\"status\":\"")).await;
                // In the first turn every connection is used for the first time.
                if round > 0 {
                    log_turn(round - 1, gateway.size, "status reads", &turn);
                    turns.push(turn);
                }
            }
            // Each round begins with another size.
            gateways.rotate_left(1);
        }
    });
    gateways.sort_by_key(|(gateway, _)| gateway.size);
    let mut points: Vec<_> = gateways.into_iter().map(|(gateway, turns)| gateway.point(turns, String::new())).collect();
    let least = points.first().map_or((0, 0), |point| (point.size, point.memory));
    for point in points.iter_mut().filter(|point| point.size >= MANY) {
        let each = (point.memory.saturating_sub(least.1)) / (point.size - least.0);
        point.note = format!("{:.1} KiB a connection", each as f64 / 1024.0);
    }
    let (title, request) = ("open TLS connections, all in use", "status read");
    Axis { name: "connections", title, request, cpu_goal: None, tail_goal: None, points }
}
