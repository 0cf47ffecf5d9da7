//! What was measured.

use std::time::Duration;

use super::common::load::Loaded;
use super::common::statistics::{Spread, micros, percentile, ratios};

/// How something grows.
#[derive(Debug, Clone)]
pub struct Axis {
    /// Its name in the report's files.
    pub name: &'static str,
    /// What grows, for people.
    pub title: &'static str,
    /// The CPU of what, for people.
    pub request: &'static str,
    /// At most this ratio of CPU to that of the smallest size.
    pub cpu_goal: Option<f64>,
    /// At most this ratio of the 99th hundredth of latencies to the middle one.
    pub tail_goal: Option<f64>,
    /// By size, ascending.
    pub points: Vec<Point>,
}

/// What one size came to.
#[derive(Debug, Clone)]
pub struct Point {
    /// How many there are.
    pub size: u64,
    /// One a turn.
    pub turns: Vec<Turn>,
    /// From the start of the process until it was ready.
    pub ready: Duration,
    /// What it held in memory at the end, in bytes.
    pub memory: u64,
    /// What else is worth telling.
    pub note: String,
}

/// What one turn came to.
#[derive(Debug, Clone, Copy)]
pub struct Turn {
    /// Server CPU a request, in microseconds.
    pub cpu: f64,
    /// The middle of the latencies, in microseconds.
    pub p50: f64,
    /// The 99th hundredth of them.
    pub p99: f64,
}

impl Turn {
    /// Of a load for which the server used `cpu`, for so many requests in all.
    pub fn of(loaded: &Loaded, cpu: Duration, requests: usize) -> Self {
        Self {
            cpu: micros(cpu) / requests as f64,
            p50: micros(percentile(&loaded.latencies, 50)),
            p99: micros(percentile(&loaded.latencies, 99)),
        }
    }
}

impl Axis {
    /// The CPU of a size's requests, to those of the smallest size in the same rounds.
    pub fn cpu_ratio(&self, point: &Point) -> Spread {
        let cpu = |point: &Point| point.turns.iter().map(|turn| turn.cpu).collect::<Vec<_>>();
        Spread::of(&ratios(&cpu(point), &cpu(&self.points[0]))).unwrap()
    }
}

impl Point {
    /// The microseconds of CPU of a request.
    pub fn cpu(&self) -> Spread {
        Spread::of(&self.turns.iter().map(|turn| turn.cpu).collect::<Vec<_>>()).unwrap()
    }

    /// How far the slow are from the middle.
    pub fn tail(&self) -> Spread {
        Spread::of(&self.turns.iter().map(|turn| turn.p99 / turn.p50).collect::<Vec<_>>()).unwrap()
    }

    /// A latency of all turns.
    pub fn latency(&self, of: impl Fn(&Turn) -> f64) -> Spread {
        Spread::of(&self.turns.iter().map(of).collect::<Vec<_>>()).unwrap()
    }
}
