//! Lists of kept names: stored once, named by a number, cached both ways.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use crate::store::{Comparer, Kept, Parts};

/// The most lists remembered; the caches start anew after that. There is one list a schema and version of it.
const MAX_LISTS: usize = 1024;

/// A sorted list of names.
pub(in crate::store) type Names = Arc<[Box<str>]>;

/// A list on its way into the store.
#[derive(Debug, Clone)]
pub(in crate::store) struct KeptList {
    /// The first eight bytes of the list's keyed hash: every node gives a list the same number.
    pub(in crate::store) id: i64,
    /// Its JSON; `None` when the list is known to be stored.
    pub(in crate::store) unstored: Option<Box<str>>,
    names: Names,
}

/// The lists known to be stored.
pub(in crate::store) struct KeptLists {
    comparer: Comparer,
    by_names: RwLock<HashMap<Names, i64>>,
    by_id: RwLock<HashMap<i64, Names>>,
}

impl KeptLists {
    pub(in crate::store) fn new(comparer: Comparer) -> Self {
        Self { comparer, by_names: RwLock::default(), by_id: RwLock::default() }
    }

    /// The list of what was kept, with its JSON when it may have to be stored; `None`: everything was.
    pub(in crate::store) fn prepare(&self, kept: &Kept) -> Option<KeptList> {
        match kept {
            Kept::Everything => None,
            Kept::Names(names) => Some(self.list(names)),
        }
    }

    fn list(&self, names: &Names) -> KeptList {
        if let Some(id) = self.by_names.read().unwrap_or_else(PoisonError::into_inner).get(names) {
            return KeptList { id: *id, unstored: None, names: Arc::clone(names) };
        }
        let mut parts = Parts::of("kept names");
        for name in names.iter() {
            parts.part(name.as_bytes());
        }
        let json = names.iter().map(AsRef::as_ref).collect::<serde_json::Value>().to_string();
        let id = self.comparer.digest(&parts).number();
        KeptList { id, unstored: Some(json.into()), names: Arc::clone(names) }
    }

    /// Remembers a list that was committed with an operation, unless it was known.
    pub(in crate::store) fn stored(&self, list: &KeptList) {
        if list.unstored.is_some() {
            self.remember(list.id, &list.names);
        }
    }

    /// Remembers a list that was committed.
    pub(in crate::store) fn remember(&self, id: i64, names: &Names) {
        let mut by_names = self.by_names.write().unwrap_or_else(PoisonError::into_inner);
        if by_names.len() >= MAX_LISTS {
            by_names.clear();
        }
        by_names.insert(Arc::clone(names), id);
        drop(by_names);
        let mut by_id = self.by_id.write().unwrap_or_else(PoisonError::into_inner);
        if by_id.len() >= MAX_LISTS {
            by_id.clear();
        }
        by_id.insert(id, Arc::clone(names));
    }

    /// Forgets which lists are stored; what a number means stays.
    pub(in crate::store) fn forget(&self) {
        self.by_names.write().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The list of a number, when it is remembered.
    pub(in crate::store) fn recall(&self, id: i64) -> Option<Names> {
        self.by_id.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }
}

/// The names that a stored list holds; `None` when it is not a list of names.
pub(in crate::store) fn names_of(json: &str) -> Option<Names> {
    serde_json::from_str::<Vec<Box<str>>>(json).ok().map(Into::into)
}
