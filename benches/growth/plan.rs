//! How much is done.

use std::path::PathBuf;

/// The sizes and the counts of a run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What is said of it.
    pub name: &'static str,
    /// Turns that every size takes.
    pub rounds: usize,
    /// Requests a turn.
    pub requests: usize,
    /// Creates a turn where rows are counted: a turn adds to them, and a small store must stay small.
    pub creates: usize,
    /// Rows in the store.
    pub rows: &'static [u64],
    /// Merchants in the rules.
    pub merchants: &'static [u64],
    /// Shops in the rules.
    pub shops: &'static [u64],
    /// Networks on a key's allow-list.
    pub networks: &'static [u64],
    /// Open connections.
    pub connections: &'static [u64],
    /// Where everything is written.
    pub out: PathBuf,
    only: Vec<String>,
}

/// Rules are of 100,000 files at most, and some are no merchant's.
const MOST_MERCHANTS: u64 = 99_000;

impl Plan {
    fn full() -> Self {
        Self {
            name: "full",
            rounds: 5,
            requests: 6400,
            creates: 2400,
            rows: &[10_000, 100_000, 1_000_000, 10_000_000],
            merchants: &[1, 1000, MOST_MERCHANTS],
            shops: &[1, 100, 10_000],
            networks: &[1, 1000, 100_000],
            connections: &[8, 64, 1000, 10_000],
            out: std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("target/growth"),
            only: Vec::new(),
        }
    }

    fn medium() -> Self {
        Self { name: "medium", rounds: 3, rows: &[10_000, 100_000, 1_000_000], ..Self::full() }
    }

    fn smoke() -> Self {
        Self {
            name: "smoke",
            rounds: 1,
            requests: 128,
            creates: 128,
            rows: &[200, 1000],
            merchants: &[1, 20],
            shops: &[1, 20],
            networks: &[1, 100],
            connections: &[8, 32],
            ..Self::full()
        }
    }

    /// What the arguments ask for. Without cargo's `--bench`, as tests are run, it is only shown that everything runs.
    ///
    /// # Panics
    /// An argument is unknown.
    pub fn of(arguments: impl Iterator<Item = String>) -> Self {
        let arguments: Vec<String> = arguments.collect();
        let given = |name: &str| arguments.iter().any(|argument| argument == name);
        let mut plan = match (given("--bench") && !given("--smoke"), given("--medium")) {
            (false, _) => Self::smoke(),
            (true, true) => Self::medium(),
            (true, false) => Self::full(),
        };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match argument.as_str() {
                "--bench" | "--medium" | "--smoke" => {}
                "--only" => {
                    plan.only = rest.next().expect("names after --only").split(',').map(str::to_owned).collect();
                    let unknown = plan.only.iter().find(|name| !super::AXES.contains(&name.as_str()));
                    assert!(unknown.is_none(), "--only takes {}", super::AXES.join(", "));
                }
                "--out" => plan.out = rest.next().expect("a directory after --out").into(),
                other => panic!("unknown argument {other}: --medium, --smoke, --only NAMES, --out DIRECTORY"),
            }
        }
        // A smoke run must not overwrite figures.
        if plan.name == "smoke" {
            plan.out.push("smoke");
        }
        plan
    }

    /// Where gateways and stores stand while they are measured.
    pub fn work(&self) -> PathBuf {
        self.out.join("work")
    }

    /// Whether an axis is asked for.
    pub fn wants(&self, axis: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name == axis)
    }
}
