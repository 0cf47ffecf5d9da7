//! The list of nodes: none, since the lock of the file lets one gateway serve it.

use super::SqliteStore;
use crate::store::{Announcement, Answer, Nodes, Roll};

impl Nodes for SqliteStore {
    fn announce(&self, _: Announcement) -> Answer<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn leave<'a>(&'a self, _: &'a str) -> Answer<'a, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn nodes(&self) -> Answer<'_, Option<Roll>> {
        Box::pin(std::future::ready(Ok(None)))
    }
}
