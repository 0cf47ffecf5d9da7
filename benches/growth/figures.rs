//! The measured figures.

use std::time::Duration;

use super::common::load::Loaded;
use super::common::statistics::{Spread, micros, percentile, ratios};

/// The figures for the sizes of one thing that grows.
#[derive(Debug, Clone)]
pub struct Axis {
    /// Its name in the report's files.
    pub name: &'static str,
    /// What grows, for readers.
    pub title: &'static str,
    /// The request whose CPU is measured, for readers.
    pub request: &'static str,
    /// The goal: the highest ratio of CPU to that of the smallest size.
    pub cpu_goal: Option<f64>,
    /// The goal: the highest ratio of the 99th percentile of latencies to the median.
    pub tail_goal: Option<f64>,
    /// By size, ascending.
    pub points: Vec<Point>,
}

/// The figures of one size.
#[derive(Debug, Clone)]
pub struct Point {
    /// The size.
    pub size: u64,
    /// One for each turn.
    pub turns: Vec<Turn>,
    /// From the start of the process until it was ready.
    pub ready: Duration,
    /// Its memory at the end, in bytes.
    pub memory: u64,
    /// Other facts.
    pub note: String,
}

/// The figures of one turn.
#[derive(Debug, Clone, Copy)]
pub struct Turn {
    /// Server CPU per request, in microseconds.
    pub cpu: f64,
    /// The median of the latencies, in microseconds.
    pub p50: f64,
    /// Their 99th percentile, in microseconds.
    pub p99: f64,
}

impl Turn {
    /// Returns the figures of a load for which the server used `cpu`, for `requests` in all.
    pub fn of(loaded: &Loaded, cpu: Duration, requests: usize) -> Self {
        Self {
            cpu: micros(cpu) / requests as f64,
            p50: micros(percentile(&loaded.latencies, 50)),
            p99: micros(percentile(&loaded.latencies, 99)),
        }
    }
}

impl Axis {
    /// Returns the ratio of a size's CPU to that of the smallest size in the same rounds.
    pub fn cpu_ratio(&self, point: &Point) -> Spread {
        let cpu = |point: &Point| point.turns.iter().map(|turn| turn.cpu).collect::<Vec<_>>();
        Spread::of(&ratios(&cpu(point), &cpu(&self.points[0]))).unwrap()
    }
}

impl Point {
    /// Returns the CPU per request, in microseconds.
    pub fn cpu(&self) -> Spread {
        Spread::of(&self.turns.iter().map(|turn| turn.cpu).collect::<Vec<_>>()).unwrap()
    }

    /// Returns the ratio of the 99th percentile of latencies to the median.
    pub fn tail(&self) -> Spread {
        Spread::of(&self.turns.iter().map(|turn| turn.p99 / turn.p50).collect::<Vec<_>>()).unwrap()
    }

    /// Returns a figure of all turns.
    pub fn latency(&self, of: impl Fn(&Turn) -> f64) -> Spread {
        Spread::of(&self.turns.iter().map(of).collect::<Vec<_>>()).unwrap()
    }
}
