//! The cost of a create for PostgreSQL as its tables grow: the processor time of all processes of the server, for creates of 64
//! callers through the store, as gateways make them.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use paybridge::clock::{SystemClock, SystemRandomness};
use paybridge::domain::Secret;
use paybridge::domain::UnixMillis;
use paybridge::store::postgres::{PostgresStore, open};
use paybridge::store::{CreateOutcome, InsertOutcome, Store as _};
use paybridge::store_settings::{PostgresUrl, StoreKeys};

use super::common::cpu::Usage;
use super::common::load::Loaded;
use super::drafts::Drafts;
use super::figures::{Axis, Point, Turn};
use super::plan::Plan;
use super::support::postgres::{Database, Server};
use super::turns::log_turn;

const CALLERS: usize = 64;

/// The creates per turn: more than a hundred commits of a full batch.
const CREATES: u64 = 20_000;

/// A store of one size.
struct World {
    database: Database,
    store: Arc<PostgresStore>,
    size: u64,
    stored: u64,
    turns: Vec<Turn>,
}

/// Measures the cost of a create in tables of several sizes; `None`, with a message, if PostgreSQL is not installed.
pub fn measure(plan: &Plan) -> Option<Axis> {
    let server = Server::start(&["fsync=on", "shared_buffers=1GB", "max_wal_size=8GB"])?;
    let creates = if plan.name == "smoke" { 128 } else { CREATES };
    let runtime = super::client();
    let mut worlds: Vec<World> = plan.rows.iter().map(|size| World::new(&server, *size)).collect();
    runtime.block_on(async {
        for world in &mut worlds {
            world.create(world.size).await;
        }
        for round in 0..plan.rounds {
            for world in &mut worlds {
                let turn = world.turn(creates).await;
                log_turn(round, world.size, "postgres", &turn);
                world.turns.push(turn);
            }
            // Each round begins with another size.
            worlds.rotate_left(1);
        }
    });
    worlds.sort_by_key(|world| world.size);
    Some(Axis {
        name: "postgres",
        title: "rows in PostgreSQL, whose CPU it is",
        request: "create through the store, by 64 callers",
        cpu_goal: Some(1.35),
        tail_goal: None,
        points: worlds.into_iter().map(World::point).collect(),
    })
}

impl World {
    fn new(server: &Server, size: u64) -> Self {
        let database = server.database();
        let url = PostgresUrl::parse(&database.url(), |path| path.into()).unwrap();
        let keys = StoreKeys { create_at: None, keys: vec![Secret::new(&[1; 32])] };
        let (clock, random) = (Arc::new(SystemClock), Arc::new(SystemRandomness::default()));
        let store = Arc::new(open(&url, &keys, clock, random, Arc::default()).unwrap().store);
        Self { database, store, size, stored: 0, turns: Vec::new() }
    }

    async fn turn(&mut self, creates: u64) -> Turn {
        let postmaster = [self.postmaster()];
        let before = Usage::of(&postmaster);
        let latencies = self.create(creates).await;
        let cpu = Usage::of(&postmaster).since(&before);
        let requests = latencies.len();
        Turn::of(&Loaded { latencies, ..Loaded::default() }, cpu, requests)
    }

    fn postmaster(&self) -> u32 {
        let file = format!("{}/postmaster.pid", self.database.sql("SHOW data_directory"));
        std::fs::read_to_string(file).unwrap().lines().next().unwrap().parse().unwrap()
    }

    /// Creates `count` operations, with one merchant for each caller. Returns the durations, sorted.
    async fn create(&mut self, count: u64) -> Vec<Duration> {
        let (first, last) = (self.stored, self.stored + count);
        let share = |caller: usize| {
            let store = Arc::clone(&self.store);
            tokio::spawn(async move {
                let drafts = Drafts::new(&format!("merchant-{caller}"), "card-eur", store.fingerprint_key().clone());
                let mut latencies = Vec::new();
                for number in (first..last).skip(caller).step_by(CALLERS) {
                    let at = UnixMillis(1_790_000_000_000 + i64::try_from(number / 8).unwrap());
                    let begun = Instant::now();
                    let created = store.create(drafts.deposit(&format!("order-{number:012}"), at, number)).await;
                    assert!(matches!(created.unwrap(), InsertOutcome::Created(CreateOutcome::AsDrafted)));
                    latencies.push(begun.elapsed());
                }
                latencies
            })
        };
        let mut latencies = Vec::new();
        for caller in (0..CALLERS).map(share).collect::<Vec<_>>() {
            latencies.extend(caller.await.unwrap());
        }
        self.stored = last;
        latencies.sort_unstable();
        latencies
    }

    fn point(self) -> Point {
        let bytes = self.database.sql("SELECT pg_database_size(current_database())").parse::<u64>().unwrap();
        let note = format!("{} bytes a row on disk", bytes / self.stored);
        Point { size: self.size, turns: self.turns, ready: Duration::ZERO, memory: 0, note }
    }
}
