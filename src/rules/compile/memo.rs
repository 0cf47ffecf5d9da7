//! What the last compilation made of each file, so that only what changed is compiled again.
//!
//! A thing is taken over when everything that it was made from is as it was: its own text, what its text names (by
//! identity: the same shop, the same schema, the same list), and the files elsewhere that were read for it. What had a
//! problem is never kept, so that nothing is taken over in silence.

use std::collections::HashMap;
use std::sync::Arc;

use super::advice::Setting;
use super::dialect::DialectPlaces;
use crate::domain::{Direction, MerchantId, ShopCode};
use crate::rules::elsewhere::Used;
use crate::rules::files::Role;
use crate::rules::problems::Span;
use crate::rules::schema::{AllowedValues, Lists};
use crate::rules::shelf::ContentHash;
use crate::rules::{Dialect, FieldsSchema, Merchant, Shop};

/// What a compilation made, by what it was made from.
#[derive(Default)]
pub(in crate::rules) struct Memo {
    pub(super) lists: HashMap<Role, KeptList>,
    pub(super) schemas: HashMap<(ContentHash, Direction), KeptSchema>,
    pub(super) dialects: HashMap<Box<str>, KeptDialect>,
    pub(super) built_in: Option<Arc<Dialect>>,
    pub(super) shops: HashMap<ShopCode, KeptShop>,
    pub(super) merchants: HashMap<MerchantId, KeptMerchant>,
    /// What the merchants were looked at by.
    pub(super) setting: Option<Setting>,
}

/// A list.
pub(super) struct KeptList {
    pub hash: ContentHash,
    pub values: AllowedValues,
}

/// A schema: one for all shops that name the same text.
pub(super) struct KeptSchema {
    pub lists: UsedLists,
    pub schema: Arc<FieldsSchema>,
}

/// The lists that a schema names, as they were: a common one, and each merchant's own.
#[derive(Default)]
pub(super) struct UsedLists(Vec<UsedList>);

struct UsedList {
    name: String,
    common: AllowedValues,
    /// By merchant.
    own: Vec<(String, AllowedValues)>,
}

impl UsedLists {
    /// The lists of these names.
    pub fn of<'n>(names: impl IntoIterator<Item = &'n str>, lists: &Lists) -> Self {
        let used = names.into_iter().filter_map(|name| {
            let common = lists.common.get(name)?;
            let own = lists.own_of(name).map(|(merchant, values)| (merchant.clone(), Arc::clone(values)));
            Some(UsedList { name: name.to_owned(), common: Arc::clone(common), own: own.collect() })
        });
        Self(used.collect())
    }

    /// Whether they are still the same lists.
    pub fn still_hold(&self, lists: &Lists) -> bool {
        self.0.iter().all(|used| {
            let own = used.own.iter().map(|(merchant, values)| (merchant, Arc::as_ptr(values)));
            lists.common.get(&used.name).is_some_and(|common| Arc::ptr_eq(common, &used.common))
                && own.eq(lists.own_of(&used.name).map(|(merchant, values)| (merchant, Arc::as_ptr(values))))
        })
    }
}

/// A dialect.
pub(super) struct KeptDialect {
    pub hash: ContentHash,
    pub places: DialectPlaces,
    pub dialect: Arc<Dialect>,
}

/// A shop.
pub(super) struct KeptShop {
    pub hash: ContentHash,
    /// The schemas that its file names, and what they were.
    pub schemas: Vec<(Direction, String, Arc<FieldsSchema>)>,
    pub elsewhere: Vec<Used>,
    pub shop: Arc<Shop>,
}

/// A merchant; its shops and its dialect are known from itself.
pub(super) struct KeptMerchant {
    pub hash: ContentHash,
    /// Where its API keys are, in their order.
    pub keys: Vec<Span>,
    pub elsewhere: Vec<Used>,
    pub merchant: Arc<Merchant>,
}
