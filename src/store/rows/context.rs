//! Contexts: the properties that many operations share, such as merchant, API key and shop. Each is stored once, as a
//! row of `contexts`.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use crate::domain::{
    CallbackSender, Direction, FingerprintInput, FingerprintKey, MerchantId, ProviderKind, SchemaFields, ShopCode,
};
use crate::store::NewOperation;
use crate::store::sql::{Sql, Transaction, params, sql};

/// The most contexts remembered; when there are more, all are forgotten. Rules and API keys give rise to a few for each
/// shop.
const MAX_CONTEXTS: usize = 16_384;

/// The values of [`NewContext::origin`]: created through v2; translated from v1, with the result sent by the engine;
/// translated from v1, with the result sent by the relay.
pub(in crate::store) const OF_V2: i64 = 0;
pub(in crate::store) const OF_V1: i64 = 1;
pub(in crate::store) const OF_V1_RELAYED: i64 = 2;

/// The columns of a new operation's context.
pub(in crate::store) struct NewContext<'a> {
    pub(in crate::store) direction: i64,
    pub(in crate::store) provider: i64,
    pub(in crate::store) origin: i64,
    pub(in crate::store) merchant: &'a str,
    pub(in crate::store) api_key: &'a str,
    pub(in crate::store) shop: &'a str,
    pub(in crate::store) currency: &'a str,
    pub(in crate::store) method: Option<&'a str>,
    pub(in crate::store) payment_method: Option<&'a str>,
    kept: Option<&'a [Box<str>]>,
}

const INSERT: Sql = sql!(
    "INSERT INTO contexts (id, direction, provider, origin, merchant, api_key, shop, currency, method, payment_method, kept) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) ON CONFLICT DO NOTHING"
);

impl<'a> NewContext<'a> {
    pub(in crate::store) fn of(draft: &'a NewOperation) -> Self {
        let operation = &draft.operation;
        Self {
            direction: direction_number(operation.direction()),
            provider: provider_number(operation.provider),
            origin: match draft.v1 {
                None => OF_V2,
                Some(CallbackSender::Directly) => OF_V1,
                Some(CallbackSender::Relayed(_)) => OF_V1_RELAYED,
            },
            merchant: operation.merchant.as_str(),
            api_key: &draft.api_key,
            shop: operation.shop.as_str(),
            currency: operation.currency.as_str(),
            method: operation.method.as_ref().map(ShopCode::as_str),
            payment_method: operation.payment_method.as_deref(),
            kept: match &draft.comparison.kept {
                SchemaFields::Everything => None,
                SchemaFields::Names(names) => Some(names),
            },
        }
    }

    /// Returns the names of the kept `fields` as a JSON array; `None`: there was no schema.
    fn kept(&self) -> Option<String> {
        let names = self.kept?.iter().map(AsRef::as_ref);
        Some(names.collect::<serde_json::Value>().to_string())
    }

    /// Inserts the context, unless it is there. A context without operations does no harm.
    pub(in crate::store) async fn insert<T: Transaction>(&self, tx: &T, id: &ContextId) -> Result<(), T::Error> {
        let kept = self.kept();
        let columns = params![
            id.number(),
            self.direction,
            self.provider,
            self.origin,
            self.merchant,
            self.api_key,
            self.shop,
            self.currency,
            self.method,
            self.payment_method,
            kept.as_deref(),
        ];
        tx.execute(INSERT, &columns).await.map(drop)
    }

    fn parts(&self) -> FingerprintInput {
        let mut parts = FingerprintInput::of("context");
        for number in [self.direction, self.provider, self.origin] {
            parts.part(&number.to_le_bytes());
        }
        for text in [self.merchant, self.api_key, self.shop, self.currency] {
            parts.part(text.as_bytes());
        }
        for text in [self.method, self.payment_method] {
            parts.optional(text.map(str::as_bytes));
        }
        parts.optional(self.kept.map(|_| [].as_slice()));
        for name in self.kept.unwrap_or_default() {
            parts.part(name.as_bytes());
        }
        parts
    }
}

/// Decodes the names that a context keeps; `None` when the JSON is not a list of names.
pub(super) fn decode_kept(json: Option<&str>) -> Option<SchemaFields> {
    match json {
        None => Some(SchemaFields::Everything),
        Some(json) => serde_json::from_str::<Vec<Box<str>>>(json).ok().map(|names| SchemaFields::Names(names.into())),
    }
}

/// The numbers of a context and of its merchant: the first eight bytes of keyed hashes, so that all nodes compute the
/// same ones.
#[derive(Debug, Clone, Copy)]
struct Numbers {
    context: i64,
    merchant: i64,
}

/// The context of a new operation.
#[derive(Debug, Clone)]
pub(in crate::store) struct ContextId {
    numbers: Numbers,
    /// The context's content, unless the context is known to be stored.
    unknown: Option<FingerprintInput>,
}

impl ContextId {
    pub(in crate::store) const fn number(&self) -> i64 {
        self.numbers.context
    }

    /// Reports whether the context is known to be stored.
    pub(in crate::store) const fn is_known(&self) -> bool {
        self.unknown.is_none()
    }

    /// Returns the number of the merchant.
    pub(in crate::store) const fn merchant(&self) -> i64 {
        self.numbers.merchant
    }
}

/// The cache of contexts that are known to be stored.
pub(in crate::store) struct Contexts {
    fingerprint_key: FingerprintKey,
    /// The count of lost servers when the cache was last checked.
    losses: AtomicU64,
    known: RwLock<HashMap<FingerprintInput, Numbers>>,
}

impl Contexts {
    pub(in crate::store) fn new(fingerprint_key: FingerprintKey) -> Self {
        Self { fingerprint_key, losses: AtomicU64::new(0), known: RwLock::default() }
    }

    /// Returns the id of a draft's context.
    pub(in crate::store) fn id(&self, draft: &NewOperation) -> ContextId {
        let parts = NewContext::of(draft).parts();
        if let Some(numbers) = self.known.read().unwrap_or_else(PoisonError::into_inner).get(&parts) {
            return ContextId { numbers: *numbers, unknown: None };
        }
        let merchant = merchant_number(&self.fingerprint_key, &draft.operation.merchant);
        let numbers = Numbers { context: self.fingerprint_key.fingerprint(&parts).number(), merchant };
        ContextId { numbers, unknown: Some(parts) }
    }

    /// Remembers a context that was committed with an operation.
    pub(in crate::store) fn stored(&self, id: &ContextId) {
        let Some(parts) = &id.unknown else { return };
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_CONTEXTS {
            known.clear();
        }
        known.insert(parts.clone(), id.numbers);
    }

    /// Forgets a context that turned out not to be stored.
    pub(in crate::store) fn forget(&self, id: &ContextId) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, numbers| numbers.context != id.numbers.context);
    }

    /// Clears the cache if a server was lost since the last call.
    pub(in crate::store) fn since(&self, losses: u64) -> &Self {
        if self.losses.swap(losses, Ordering::AcqRel) != losses {
            self.known.write().unwrap_or_else(PoisonError::into_inner).clear();
        }
        self
    }
}

/// Returns the number of a merchant, which is not negative, by which its lists are indexed.
pub(in crate::store) fn merchant_number(fingerprint_key: &FingerprintKey, merchant: &MerchantId) -> i64 {
    let mut parts = FingerprintInput::of("merchant");
    parts.part(merchant.as_str().as_bytes());
    fingerprint_key.fingerprint(&parts).number() & i64::MAX
}

pub(in crate::store) const fn direction_number(direction: Direction) -> i64 {
    match direction {
        Direction::Payin => 0,
        Direction::Payout => 1,
    }
}

pub(in crate::store) const fn direction_of(number: i64) -> Option<Direction> {
    match number {
        0 => Some(Direction::Payin),
        1 => Some(Direction::Payout),
        _ => None,
    }
}

pub(in crate::store) const fn provider_number(provider: ProviderKind) -> i64 {
    match provider {
        ProviderKind::Sandbox => 0,
        ProviderKind::Http => 1,
    }
}

pub(in crate::store) const fn provider_of(number: i64) -> Option<ProviderKind> {
    match number {
        0 => Some(ProviderKind::Sandbox),
        1 => Some(ProviderKind::Http),
        _ => None,
    }
}
