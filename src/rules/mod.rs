//! The rule set: all rule files, parsed and checked together, one immutable snapshot a request
//! (contract section 2).

mod dialect;
mod merchant;
mod ruleset;
mod schema;
mod secret;
mod shop;

pub use dialect::{Algorithm, Dialect, Encoding, Endpoint, Recipe, Replies, Segment, StatusWords, TimestampFormat};
pub use merchant::{
    AllowList, ApiKey, BalanceRules, CallbackStyle, IdPolicy, Merchant, RateLimit, ShopAccess, UnknownFields, V1Rules,
};
pub use ruleset::{
    CallbackRules, ClientRules, EngineRules, Gateway, KeyEntry, Limits, PageRules, Quota, RuleSet, ServerRules,
    StoreKeys, StoreRules, StoreUrl, TlsRules, V1Route,
};
pub use secret::{Secret, Secrets};
pub use shop::{AccountRule, FieldProblem, FieldsSchema, ProviderRules, Shop, ShopSide};
