//! Random histories against a simple model: after any failure and any reopening, balances equal the model's and an audit
//! is clean. `PAYBRIDGE_SEED` repeats a run, `PAYBRIDGE_LONG=1` makes many more.

use fastrand::Rng;

use super::*;
use crate::clock::testing::seed;
use crate::store::conformance::model::Model;

struct History {
    place: Place,
    /// `None` only while it is reopened.
    open: Option<SqliteStore>,
    faults: Arc<Faults>,
    chance: Rng,
    model: Model,
}

impl History {
    fn new(seed: u64) -> Self {
        let place = Place::new();
        let (store, faults) = place.open_faulty();
        Self { place, open: Some(store), faults, chance: Rng::with_seed(seed), model: Model::default() }
    }

    async fn step(&mut self) {
        if self.chance.u8(..28) == 0 {
            return self.reopen();
        }
        let step = self.model.step(&mut self.chance);
        let fails = self.chance.u8(..12) == 0;
        self.faults.failing_commits(fails);
        match step.run(self.store()).await {
            Ok(answer) => assert_eq!(answer, self.model.run(&step), "{step:?}"),
            // A failed commit does not reach the model.
            Err(error) => assert!(fails, "{step:?}: {error}"),
        }
        if fails {
            self.faults.failing_commits(false);
            while self.store().probe().await.is_err() {
                tokio::task::yield_now().await;
            }
        }
    }

    fn store(&self) -> &SqliteStore {
        self.open.as_ref().unwrap()
    }

    fn reopen(&mut self) {
        self.open = None;
        let (store, faults) = self.place.open_faulty();
        (self.open, self.faults) = (Some(store), faults);
    }
}

// keeps D055
#[tokio::test]
async fn random_histories_keep_the_books() {
    let seed = seed();
    let histories = if std::env::var_os("PAYBRIDGE_LONG").is_some() { 200 } else { 6 };
    for number in 0..histories {
        let mut history = History::new(seed.wrapping_add(number));
        for step in 0..300 {
            history.step().await;
            if step % 50 == 0 {
                history.model.check(history.store()).await;
            }
        }
        history.model.check(history.store()).await;
    }
}
