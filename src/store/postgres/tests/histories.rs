//! Random histories over two nodes against a simple model: two steps at once have the answers and the effects of one after
//! the other, in either order, and each node reads what the other wrote. `PAYBRIDGE_SEED` repeats the steps of a run,
//! `PAYBRIDGE_LONG=1` makes many more.

use fastrand::Rng;

use super::*;
use crate::clock::testing::seed;
use crate::store::conformance::model::{Model, Step};

struct History {
    place: Place,
    nodes: [PostgresStore; 2],
    chance: Rng,
    model: Model,
}

impl History {
    fn new(place: Place, seed: u64) -> Self {
        let nodes = [place.open_node(), place.open_node()];
        Self { place, nodes, chance: Rng::with_seed(seed), model: Model::default() }
    }

    /// Makes two steps at once, one a node, often on the same operation. Now and then a node goes before, and another comes.
    async fn pair(&mut self) {
        if self.chance.u8(..40) == 0 {
            self.nodes[self.chance.usize(..2)] = self.place.open_node();
        }
        let [one, other] = [self.model.step(&mut self.chance), self.model.step(&mut self.chance)];
        let (first, second) = tokio::join!(one.run(&self.nodes[0]), other.run(&self.nodes[1]));
        let answers = [first.unwrap(), second.unwrap()];
        let (in_order, expected) = self.after(&one, &other);
        let is_in_order = answers == expected;
        let (reversed, [second, first]) = self.after(&other, &one);
        let is_reversed = answers == [&*first, &*second];
        let either = format!("{expected:?} or {:?}", [first, second]);
        assert!(is_in_order || is_reversed, "{one:?}\n{other:?}\n{answers:?}, not {either}");
        self.model = match (is_in_order, is_reversed) {
            (true, true) if in_order != reversed && !in_order.fits(&self.nodes[0]).await => reversed,
            (true, _) => in_order,
            (false, _) => reversed,
        };
    }

    /// Returns what follows from two steps, one after the other.
    fn after(&self, first: &Step, second: &Step) -> (Model, [String; 2]) {
        let mut model = self.model.clone();
        let answers = [model.run(first), model.run(second)];
        (model, answers)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_keep_the_books_of_random_histories() {
    let seed = seed();
    let histories = if std::env::var_os("PAYBRIDGE_LONG").is_some() { 60 } else { 2 };
    for number in 0..histories {
        let Some(place) = Place::new() else { return };
        let mut history = History::new(place, seed.wrapping_add(number));
        for pair in 1..=150 {
            history.pair().await;
            if pair % 30 == 0 {
                history.model.check(&history.nodes[history.chance.usize(..2)]).await;
            }
        }
    }
}
