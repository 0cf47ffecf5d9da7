//! Loads, checks, compares and reloads the rule files. All of them together become one immutable [`RuleSet`], and each
//! request uses one snapshot of it (contract section 2).

mod admin;
mod color;
mod compile;
mod describe;
mod dialect;
mod diff;
mod external_files;
mod file_meta;
mod files;
mod inspect;
mod json_places;
mod limits;
mod load;
mod merchant;
mod pages;
mod problems;
mod raw;
mod reconcile;
mod reload;
mod restart;
mod ruleset;
mod schema;
mod secret;
mod setting;
mod shop;
#[cfg(test)]
mod tests;
mod validity;
mod watch;

pub use admin::{AdminListen, AdminRules, AdminUser, Role};
pub use compile::{AdminProbe, admin_probe};
pub use describe::{FileKind, file_schema};
#[cfg(test)]
pub(crate) use dialect::samples::samples as reply_samples;

pub use dialect::{Dialect, Endpoint, Replies, StatusWords};
pub use diff::{Audience, Change, Group, ReadRules, diff};
pub use inspect::{Inspection, inspect};

pub use limits::AddressSet;
pub use load::{FilesSeen, LoadOptions, Loader, load};
pub use merchant::{
    ApiKey, BalanceRules, CallbackStyle, IdPolicy, Merchant, Mode, NativeV2, RateLimit, Share, Shares, ShopAccess,
    UnknownFields, V1Rules,
};
#[cfg(test)]
pub(crate) use pages::built_in_pages;
pub use pages::{Language, PageState, Pages, TextDirection};
pub use problems::{Place, Problem, Problems, Severity};
pub(crate) use raw::duration as read_span;
pub use reconcile::{SkippedLines, StatementColumns, StatementEncoding, StatementKey, StatementRules};
pub use reload::{CurrentRules, LiveRules, ReloadOutcome};

pub use ruleset::{
    CallbackRules, ClientRules, EngineRules, GatewayRules, KeyEntry, LegacyRules, Limits, PageRules, RemoteEngine,
    RuleSet, ServerRules, TlsRules, V1Route,
};

pub use secret::secret_named;
pub use setting::Effect;
pub use shop::{
    AccountRule, DailyLimits, DirectionRules, ExpectedWithin, FieldProblem, FieldRule, FieldsSchema, HttpProvider,
    PaymentChecks, ProviderRules, Shop,
};
pub use watch::FileWatch;
