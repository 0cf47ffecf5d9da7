//! The goals of Paybridge and the measured figures. They are reported, never asserted.

use crate::common::statistics::{Spread, ratios};
use crate::rounds::Measured;
use crate::servers::REFERENCE;
use crate::workload::Workload;

/// A limit for a figure.
pub struct Goal {
    /// The figure.
    pub what: String,
    /// The limit.
    pub wanted: f64,
    /// The measured value.
    pub measured: Spread,
}

impl Goal {
    /// Reports whether the median is within the limit.
    pub fn is_met(&self) -> bool {
        self.measured.median <= self.wanted
    }
}

/// Returns all goals whose figures were measured.
pub fn all(measured: &Measured) -> Vec<Goal> {
    let cpu = |server: &str, workload: Workload| measured.cpu(server, workload);
    let reference = cpu(REFERENCE, Workload::Create);
    let ours = |workload| cpu("paybridge", workload);
    let create = ours(Workload::Create);
    let mut goals = Vec::new();
    let mut add = |what: &str, wanted, figures: Vec<f64>| {
        goals.extend(Spread::of(&figures).map(|measured| Goal { what: what.to_owned(), wanted, measured }));
    };
    for workload in [Workload::RefusedQuestion, Workload::RefusedCreate, Workload::RefusedBody, Workload::Status] {
        add(&format!("{}, to nginx", workload.describe()), 1.0, ratios(&ours(workload), &reference));
    }
    add("durable v1 create, to nginx", 1.5, ratios(&create, &reference));
    add("durable v1 create, to nginx + Lua", 0.65, ratios(&create, &cpu("nginx-lua", Workload::Create)));
    add("durable native v2 create, to nginx", 1.1, ratios(&ours(Workload::NativeCreate), &reference));
    add("repeated create, to nginx", 1.3, ratios(&ours(Workload::Repeat), &reference));
    let forwarding = cpu("paybridge-remote", Workload::NativeCreate);
    add("forwarding to a remote engine (native v2 create), to nginx", 1.5, ratios(&forwarding, &reference));
    let syncs: Vec<_> = measured.rounds.iter().map(|round| round.fdatasync[0]).collect();
    let medians = measured.latency("paybridge", |latency| latency.p50_us);
    add("p50 of a durable v1 create at 8 connections, to one fdatasync", 2.4, ratios(&medians, &syncs));
    let handshake = |server: &str| measured.handshake(server);
    add("full TLS handshake, to nginx", 0.5, ratios(&handshake("paybridge"), &handshake(REFERENCE)));
    let idle = |server: &str, which: usize| {
        let memory = measured.memory.get(server).and_then(|memory| memory.per_connection);
        memory.map(|both| vec![both[which]]).unwrap_or_default()
    };
    add("memory of an idle TLS connection, to nginx", 0.7, ratios(&idle("paybridge", 0), &idle(REFERENCE, 0)));
    add("the same after a request", 0.7, ratios(&idle("paybridge", 1), &idle(REFERENCE, 1)));
    goals
}
