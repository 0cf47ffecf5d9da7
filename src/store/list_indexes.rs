//! What the lists of operations know of their indexes: which operations each has, and how to read the newest ones of several.

use super::sql::{Sql, Transaction, sql};

/// The condition of the index `operations_by_merchant`.
macro_rules! in_operations_by_merchant {
    () => {
        "(status <> 0 OR (listed >= 0 AND has_job = 1))"
    };
}
pub(super) use in_operations_by_merchant;

/// The condition of the index `pending_v1`.
macro_rules! in_pending_v1 {
    () => {
        "status = 0 AND has_job = 0 AND listed >= 0"
    };
}
pub(super) use in_pending_v1;

/// The condition of the index `pending_v2`, between the ids ?1 and ?2.
macro_rules! in_pending_v2 {
    (sqlite) => {
        "status = 0 AND listed < 0 AND transaction_id BETWEEN ?1 AND ?2"
    };
    (postgres) => {
        "status < 1 AND listed < 0 AND (status, transaction_id) >= (0, ?1) AND (status, transaction_id) <= (0, ?2)"
    };
}
pub(super) use in_pending_v2;

macro_rules! numbers_with_pending {
    ($from:literal) => {
        concat!(
            "WITH RECURSIVE numbers (number) AS (SELECT min(listed) FROM ",
            $from,
            " WHERE ",
            in_pending_v1!(),
            " UNION ALL SELECT (SELECT min(listed) FROM ",
            $from,
            " WHERE listed > number AND ",
            in_pending_v1!(),
            ") FROM numbers WHERE number IS NOT NULL) SELECT number FROM numbers WHERE number IS NOT NULL"
        )
    };
}

/// The smallest number in `pending_v1`, the next one, and so on, each found by a leap. SQLite leaps to the first of two equal
/// bounds: the number's comes before that of the index.
pub(super) const NUMBERS_WITH_PENDING: Sql = sql!(
    sqlite: numbers_with_pending!("operations INDEXED BY pending_v1"),
    postgres: numbers_with_pending!("operations"),
);

/// Returns the numbers of the merchants that have operations in `pending_v1`.
pub(super) async fn numbers_with_pending<T: Transaction>(tx: &T) -> Result<Vec<i64>, T::Error> {
    tx.query(NUMBERS_WITH_PENDING, &[], |row| row.get(0)).await
}

/// The newest ids that several sources find, the newest first, each once.
pub(super) struct Newest {
    ids: Vec<i64>,
    limit: usize,
}

impl Newest {
    pub(super) const fn new(limit: usize) -> Self {
        Self { ids: Vec::new(), limit }
    }

    pub(super) fn add(&mut self, ids: impl IntoIterator<Item = i64>) {
        self.ids.extend(ids);
        self.ids.sort_unstable_by_key(|id| std::cmp::Reverse(*id));
        self.ids.dedup();
        self.ids.truncate(self.limit);
    }

    /// Returns the first id, from `first` on, that would be among the newest: later sources need not be read before it.
    pub(super) fn first(&self, first: i64) -> i64 {
        let oldest = self.ids.last().filter(|_| self.ids.len() == self.limit);
        oldest.map_or(first, |oldest| first.max(oldest + 1))
    }

    pub(super) fn ids(self) -> Vec<i64> {
        self.ids
    }
}
