//! What the lists of operations know of their indexes: which operations each has, and how to read the newest ones of several.

use super::sql::{Sql, sql};

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

/// The filters by an operation's context. Parameters: 4 to 7 merchant, shop, direction and whether created through v1, each NULL for
/// all.
macro_rules! in_context {
    () => {
        "(merchant = ?4 OR ?4 IS NULL) AND (shop = ?5 OR ?5 IS NULL) AND (direction = ?6 OR ?6 IS NULL) \
         AND ((origin <> 0) = (?7 = 1) OR ?7 IS NULL)"
    };
}
pub(super) use in_context;

/// The newest operations in `pending_v1` of the merchant of a `number`.
macro_rules! newest_of_number {
    (sqlite, from $first:literal, limit $limit:literal) => {
        concat!(
            "SELECT transaction_id FROM operations INDEXED BY pending_v1 CROSS JOIN contexts WHERE ",
            in_pending_v1!(),
            " AND listed = number AND transaction_id BETWEEN ",
            $first,
            " AND ?2 AND (0 = ?3 OR ?3 IS NULL) AND id = context AND ",
            in_context!(),
            " ORDER BY transaction_id DESC LIMIT ",
            $limit
        )
    };
    (postgres, from $first:literal, limit $limit:literal) => {
        concat!(
            "SELECT transaction_id, shop, direction FROM operations, \
             LATERAL (SELECT * FROM contexts WHERE id = context OFFSET 0) AS its WHERE ",
            in_pending_v1!(),
            " AND (listed, transaction_id) >= (number, ",
            $first,
            ") AND (listed, transaction_id) <= (number, ?2) AND (0 = ?3 OR ?3 IS NULL) AND ",
            in_context!(),
            " ORDER BY listed DESC, transaction_id DESC LIMIT ",
            $limit
        )
    };
}

/// Three steps: the numbers, each found by a leap from the one before; the oldest id that a page can have, by a few of each; a page.
macro_rules! newest_pending_v1 {
    ($from:literal, few: $few:expr, page: $page:expr) => {
        concat!(
            "WITH RECURSIVE leaps (number) AS (SELECT coalesce(?9, (SELECT min(listed) FROM ",
            $from,
            " WHERE ",
            in_pending_v1!(),
            ")) UNION ALL SELECT (SELECT min(listed) FROM ",
            $from,
            " WHERE listed > number AND ",
            in_pending_v1!(),
            ") FROM leaps WHERE number IS NOT NULL AND ?9 IS NULL), \
             numbers (number) AS (SELECT number FROM leaps WHERE number IS NOT NULL), \
             share (of_each) AS (SELECT 8 + ?8 / (count(*) + 1) * 2 FROM numbers), \
             few (few_id) AS (",
            $few,
            " ORDER BY transaction_id DESC LIMIT ?8), \
             oldest (oldest_id) AS (SELECT CASE WHEN count(*) < ?8 THEN ?1 ELSE min(few_id) END FROM few) ",
            $page,
            " ORDER BY transaction_id DESC LIMIT ?8"
        )
    };
}

/// The newest operations of v1 that are PENDING and were made without a job. Parameters: see [`in_context!`]; 1 and 2 the first and the
/// last id, 3 the status, 8 the limit, 9 a merchant's number, or NULL for all. A few of each merchant are read first, eight and
/// twice its share of a page, so that not as many as a page has are read of each. SQLite leaps to the first of two equal bounds: the
/// number's comes before that of the index.
pub(super) const PENDING_V1: Sql = sql!(
    sqlite: newest_pending_v1!(
        "operations INDEXED BY pending_v1",
        few: concat!(
            "SELECT transaction_id FROM numbers CROSS JOIN operations AS found WHERE found.transaction_id IN (",
            newest_of_number!(sqlite, from "?1", limit "(SELECT of_each FROM share)"),
            ")"
        ),
        page: concat!(
            "SELECT transaction_id, shop, direction FROM oldest CROSS JOIN numbers CROSS JOIN operations AS found \
             CROSS JOIN contexts AS its WHERE found.transaction_id IN (",
            newest_of_number!(sqlite, from "oldest_id", limit "?8"),
            ") AND its.id = found.context"
        )
    ),
    postgres: newest_pending_v1!(
        "operations",
        few: concat!(
            "SELECT transaction_id FROM numbers, LATERAL (",
            newest_of_number!(postgres, from "?1", limit "(SELECT of_each FROM share)"),
            ") AS found"
        ),
        page: concat!(
            "SELECT transaction_id, shop, direction FROM oldest, numbers, LATERAL (",
            newest_of_number!(postgres, from "oldest_id", limit "?8"),
            ") AS found"
        )
    ),
);

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
