//! Pages of a merchant's list, newest first, out of one index.
//!
//! ```text
//! index   merchant, direction, shop, currency, status | id
//!         '------------------ a lane ----------------'   ascending with time
//! ```
//!
//! A lane is a range of the index in which ids are in order, and every filter is a choice of lanes: no filter costs a
//! sort or a look at entries that it does not want. The lanes that exist are found by leaps, one seek each; a page is
//! merged from their ends. It reads the index alone; the rows of a page are its caller's.
//!
//! # What a page costs
//!
//! Two seeks for each lane that the filters leave (a seek is one to three microseconds), and the entries of the page. A
//! merchant has at most six lanes for each shop and currency that it ever used (two directions, three states), so the
//! shops that rules give it are the bound: with a hundred shops a page costs about a millisecond. The length of the list
//! does not matter. To leave out the first entries of a list costs [`walk`]'s pass over them.

mod walk;

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::ops::RangeInclusive;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Connection, OptionalExtension, Row, ToSql, params};

use super::row::{direction_number, status_number};
use crate::domain::{Currency, HistoryQuery, ShopCode};

/// The statements over one table's index of lanes. Made by [`lane_index!`]; no column of a lane may be NULL.
#[derive(Debug)]
pub(super) struct LaneIndex {
    /// The newest entry of the last lane that is not after a place. Parameters: merchant; direction, shop, currency,
    /// status of the place.
    pub(super) leap: &'static str,
    /// The newest entries of a lane within a range of ids. Parameters: merchant, direction, shop, currency, status; the
    /// id that all are below; the least id; how many.
    pub(super) slice: &'static str,
    /// One entry of such a range. Parameters as before, but the last is how many newer ones are left out.
    pub(super) nth: &'static str,
    /// The number of entries of such a range.
    pub(super) count: &'static str,
}

/// Makes a [`LaneIndex`] of a table's name, the name of its index, its id column and the condition of the (partial)
/// index, which compares a column with a constant: then SQLite answers from the index alone.
macro_rules! lane_index {
    ($table:literal, $index:literal, $id:literal, $condition:literal) => {
        lane_index!(
            @ $id, concat!(" FROM ", $table, " INDEXED BY ", $index, " WHERE ", $condition, " AND merchant = ?1 AND "),
            concat!("direction = ?2 AND shop = ?3 AND currency = ?4 AND status = ?5 AND ", $id, " < ?6 AND ", $id, " >= ?7")
        )
    };
    (@ $id:literal, $from:expr, $lane:expr) => {
        $crate::store::sqlite::lanes::LaneIndex {
            // Row values are compared inclusively: strictly below another, SQLite would pass the whole lane of that one.
            leap: concat!(
                "SELECT direction, shop, currency, status, ", $id, $from,
                "(direction, shop, currency, status) <= (?2, ?3, ?4, ?5) \
                 ORDER BY direction DESC, shop DESC, currency DESC, status DESC, ", $id, " DESC LIMIT 1"
            ),
            slice: concat!("SELECT ", $id, $from, $lane, " ORDER BY ", $id, " DESC LIMIT ?8"),
            nth: concat!("SELECT ", $id, $from, $lane, " ORDER BY ", $id, " DESC LIMIT 1 OFFSET ?8"),
            count: concat!("SELECT count(*)", $from, $lane),
        }
    };
}
pub(super) use lane_index;

/// The ids of a page.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Newest first.
    pub(super) ids: Vec<i64>,
    /// Whether the list goes on after them.
    pub(super) has_more: bool,
}

/// Reads in a transaction: all that is read is of one moment. After an error the connection is not to be used again.
pub(super) fn at_one_moment<T>(
    connection: &Connection,
    read: impl FnOnce() -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let execute = |sql| connection.prepare_cached(sql)?.execute([]).map(drop);
    execute("BEGIN")?;
    let found = read()?;
    execute("COMMIT")?;
    Ok(found)
}

/// Finds the page that `query` asks for among the entries whose ids are `within`; its times are the caller's to turn into
/// ids. Has to run [`at_one_moment`], or an entry that changes lanes could be seen in both or in none. Ends early, with nothing, when the page is
/// not `wanted` any more.
pub(super) fn page(
    connection: &Connection,
    index: &LaneIndex,
    query: &HistoryQuery,
    within: &RangeInclusive<i64>,
    wanted: &dyn Fn() -> bool,
) -> rusqlite::Result<Found> {
    let mut list = List::of(connection, index, query, within)?;
    if !list.skip(query.skip, wanted)? {
        return Ok(Found::default());
    }
    let limit = usize::from(query.limit);
    let mut ids = list.next(limit + 1)?;
    let has_more = ids.len() > limit;
    ids.truncate(limit);
    Ok(Found { ids, has_more })
}

/// A list that is being read from its newest entry on.
struct List<'a> {
    connection: &'a Connection,
    index: &'a LaneIndex,
    merchant: &'a str,
    /// The least id that is asked for.
    least: i64,
    lanes: Vec<Lane>,
}

/// A lane, and how far it was read.
#[derive(Debug)]
struct Lane {
    direction: i64,
    shop: Box<str>,
    currency: Box<str>,
    status: i64,
    /// Entries from here on were read.
    below: i64,
    /// Of these, the ones that were not used yet, oldest first.
    ready: Vec<i64>,
    /// How many were asked for the last time.
    asked: usize,
    /// Nothing is left to be read.
    ended: bool,
}

impl<'a> List<'a> {
    /// Finds the lanes that the filters leave.
    fn of(
        connection: &'a Connection,
        index: &'a LaneIndex,
        query: &'a HistoryQuery,
        within: &RangeInclusive<i64>,
    ) -> rusqlite::Result<Self> {
        let (least, below) = (*within.start(), within.end().saturating_add(1));
        let (merchant, choice) = (query.merchant.as_str(), Choice::of(query));
        let mut list = Self { connection, index, merchant, least, lanes: Vec::new() };
        let mut leap = connection.prepare_cached(index.leap)?;
        let mut place = Some(choice.start());
        while let Some(at) = place {
            let parameters = params![merchant, at.direction, at.shop, at.currency, at.status];
            let Some((mut lane, newest)) = leap.query_row(parameters, Lane::read).optional()? else { break };
            place = match choice.place_after(&lane) {
                Next::Elsewhere(place) => place,
                Next::Takes(place) => {
                    if newest < below {
                        (lane.below, lane.ready) = (newest, vec![newest]);
                    } else {
                        lane.below = below;
                    }
                    // An entry that is too old has no older ones that are not.
                    if newest >= least {
                        list.lanes.push(lane);
                    }
                    Some(place)
                }
            };
        }
        Ok(list)
    }

    /// The next entries in order; fewer when the list ends.
    fn next(&mut self, count: usize) -> rusqlite::Result<Vec<i64>> {
        let Self { connection, index, merchant, least, lanes } = self;
        let mut slice = connection.prepare_cached(index.slice)?;
        let mut newest_of = |lane: &mut Lane, most| -> rusqlite::Result<Option<i64>> {
            if lane.ready.is_empty() && !lane.ended {
                lane.read_more(&mut slice, merchant, *least, most)?;
            }
            Ok(lane.ready.last().copied())
        };
        let mut ids = Vec::new();
        if count == 0 {
            return Ok(ids);
        }
        let mut heads = BinaryHeap::with_capacity(lanes.len());
        for (number, lane) in lanes.iter_mut().enumerate() {
            heads.extend(newest_of(lane, count)?.map(|newest| (newest, number)));
        }
        while let Some((id, number)) = heads.pop() {
            ids.push(id);
            let lane = &mut lanes[number];
            lane.ready.pop();
            if ids.len() == count {
                break;
            }
            heads.extend(newest_of(lane, count - ids.len())?.map(|newest| (newest, number)));
        }
        Ok(ids)
    }
}

impl Lane {
    /// What a leap landed on.
    fn read(row: &Row<'_>) -> rusqlite::Result<(Self, i64)> {
        let lane = Self {
            direction: row.get(0)?,
            shop: row.get(1)?,
            currency: row.get(2)?,
            status: row.get(3)?,
            below: i64::MAX,
            ready: Vec::new(),
            asked: 0,
            ended: false,
        };
        Ok((lane, row.get(4)?))
    }

    /// Reads some of the next entries: few at first, since most lanes give a page little, then more and more; at most
    /// `most`.
    fn read_more(
        &mut self,
        slice: &mut CachedStatement<'_>,
        merchant: &str,
        least: i64,
        most: usize,
    ) -> rusqlite::Result<()> {
        let asked = (self.asked * 2).max(4).min(most);
        let limit = i64::try_from(asked).unwrap_or(i64::MAX);
        let Self { direction, shop, currency, status, below, .. } = &*self;
        let found = slice
            .query_map(params![merchant, direction, shop, currency, status, below, least, limit], |row| row.get(0))?;
        self.ready = found.collect::<Result<_, _>>()?;
        self.ready.reverse();
        self.below = self.ready.first().copied().unwrap_or(self.below);
        self.asked = asked;
        self.ended = self.ready.len() < asked;
        Ok(())
    }
}

/// The filters that choose lanes.
struct Choice<'q> {
    direction: Option<i64>,
    shop: Option<&'q str>,
    currency: Option<&'q str>,
    status: Option<i64>,
}

/// Where the search for lanes goes on.
enum Next {
    /// The lane is one of those that are asked for; after it, here.
    Takes(Place),
    /// It is not. Here, if there can be others.
    Elsewhere(Option<Place>),
}

impl<'q> Choice<'q> {
    fn of(query: &'q HistoryQuery) -> Self {
        Self {
            direction: query.direction.map(direction_number),
            shop: query.shop.as_ref().map(ShopCode::as_str),
            currency: query.currency.as_ref().map(Currency::as_str),
            status: query.status.map(status_number),
        }
    }

    /// The last place where a lane could be.
    fn start(&self) -> Place {
        self.end_of_direction(self.direction.unwrap_or(i64::MAX))
    }

    /// The next place where a lane could be: before `lane`, but not before any that is asked for.
    fn place_after(&self, lane: &Lane) -> Next {
        let &Lane { direction, status, .. } = lane;
        match self.direction {
            Some(wanted) if direction < wanted => return Next::Elsewhere(None),
            _ => {}
        }
        match self.shop.map(|wanted| lane.shop.as_ref().cmp(wanted)) {
            Some(Ordering::Less) => return Next::Elsewhere(Some(self.end_of_direction(direction - 1))),
            Some(Ordering::Greater) => return Next::Elsewhere(Some(self.end_of_direction(direction))),
            Some(Ordering::Equal) | None => {}
        }
        match self.currency.map(|wanted| lane.currency.as_ref().cmp(wanted)) {
            Some(Ordering::Less) => return Next::Elsewhere(Some(Place::before_shop(lane))),
            Some(Ordering::Greater) => return Next::Elsewhere(Some(self.end_of_shop(lane))),
            Some(Ordering::Equal) | None => {}
        }
        match self.status.map(|wanted| (status.cmp(&wanted), wanted)) {
            Some((Ordering::Less, _)) => Next::Elsewhere(Some(Place::of(lane, -1))),
            Some((Ordering::Greater, wanted)) => Next::Elsewhere(Some(Place::of(lane, wanted))),
            Some((Ordering::Equal, _)) | None => Next::Takes(Place::of(lane, status - 1)),
        }
    }

    fn end_of_direction(&self, direction: i64) -> Place {
        Place {
            direction,
            shop: Bound::at_or_greatest(self.shop),
            currency: Bound::at_or_greatest(self.currency),
            status: self.status.unwrap_or(i64::MAX),
        }
    }

    fn end_of_shop(&self, lane: &Lane) -> Place {
        Place {
            direction: lane.direction,
            shop: Bound::At(lane.shop.clone()),
            currency: Bound::at_or_greatest(self.currency),
            status: self.status.unwrap_or(i64::MAX),
        }
    }
}

/// A bound of the lanes' columns from above, which it includes.
struct Place {
    direction: i64,
    shop: Bound,
    currency: Bound,
    status: i64,
}

impl Place {
    /// In the shop and currency of a lane. No status is negative.
    fn of(lane: &Lane, status: i64) -> Self {
        let Lane { direction, shop, currency, .. } = lane;
        Self { direction: *direction, shop: Bound::At(shop.clone()), currency: Bound::At(currency.clone()), status }
    }

    /// Before all lanes of the shop of a lane: no currency is empty.
    fn before_shop(lane: &Lane) -> Self {
        let Lane { direction, shop, .. } = lane;
        Self { direction: *direction, shop: Bound::At(shop.clone()), currency: Bound::At(Box::default()), status: -1 }
    }
}

/// A bound of a text column.
enum Bound {
    At(Box<str>),
    /// Above all texts.
    Greatest,
}

impl Bound {
    fn at_or_greatest(text: Option<&str>) -> Self {
        text.map_or(Self::Greatest, |text| Self::At(text.into()))
    }
}

impl ToSql for Bound {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::At(text) => ValueRef::Text(text.as_bytes()),
            // Any blob is greater than any text.
            Self::Greatest => ValueRef::Blob(&[]),
        }))
    }
}

#[cfg(test)]
mod tests;
