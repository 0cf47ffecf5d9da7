//! The sizes and counts of a run.

use std::path::PathBuf;

/// The sizes and the counts of a run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Its name in the report.
    pub name: &'static str,
    /// The turns of every size.
    pub rounds: usize,
    /// The requests per turn.
    pub requests: usize,
    /// The creates per turn for the axes of rows: a turn adds rows, and a small store must stay small.
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
    /// The directory of all results.
    pub out: PathBuf,
    only: Vec<String>,
}

/// Rules have at most 100,000 files, and some are not merchants.
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

    /// Parses the arguments. Without cargo's `--bench`, as in tests, the run only checks that everything works.
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
                    plan.only = rest.next().expect("--only needs names").split(',').map(str::to_owned).collect();
                    let unknown = plan.only.iter().find(|name| !super::AXES.contains(&name.as_str()));
                    assert!(unknown.is_none(), "--only accepts {}", super::AXES.join(", "));
                }
                "--out" => plan.out = rest.next().expect("--out needs a directory").into(),
                other => panic!("unknown argument {other}: --medium, --smoke, --only NAMES, --out DIRECTORY"),
            }
        }
        // A smoke run must not overwrite figures.
        if plan.name == "smoke" {
            plan.out.push("smoke");
        }
        plan
    }

    /// Returns the directory of the measured gateways and stores.
    pub fn work(&self) -> PathBuf {
        self.out.join("work")
    }

    /// Reports whether an axis is selected.
    pub fn wants(&self, axis: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name == axis)
    }
}
