//! Compiles raw tables into the types that serve requests. Compilation never stops at a problem: what is wrong is left
//! out, and the problem is noted.

mod admin;
mod admin_probe;
mod certificates;
mod dialect;
mod directions;
mod engine;
mod fingerprint;
mod gateway;
mod legacy;
pub(super) mod lists;
mod merchant;
mod page_texts;
mod pages;
mod pattern;
mod provider;
mod reconcile;
mod routes;
pub(super) mod secrets;
mod shop;
mod spellings;
mod warnings;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::num::NonZeroU32;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use toml::Spanned;
use toml::de::DeValue;

pub use self::admin_probe::{AdminProbe, admin_probe};
pub(super) use self::dialect::RawDialect;
pub(super) use self::gateway::{RawGateway, RawTls};
pub(super) use self::merchant::RawMerchant;
pub(super) use self::page_texts::RawTexts;
pub(super) use self::shop::RawShop;
#[cfg(test)]
pub(super) use self::{dialect::RawStatuses, merchant::ModeWord, provider::ProviderKindKey};
use super::external_files::ExternalFiles;
use super::files::{RuleFile, RuleFiles, version};
use super::pages::Brand;
use super::pages::languages::FIRST;
use super::problems::{Diagnostics, FileId, Span};
use super::raw::{self, BoundedDuration, FromToml, Key, RawReader, raw_table};
use super::setting::{OnChange, SettingPlace, Settings};
use super::{Dialect, EngineRules, KeyEntry, RuleSet, Shop};
use crate::domain::{Fingerprint, MerchantId, Quota, ShopCode, UnixMillis};
use crate::names::did_you_mean;

/// The name of the built-in dialect.
pub(super) const BUILT_IN_DIALECT: &str = "v1";

raw_table! {
    /// A rate.
    struct RawQuota {
        /// How many tokens are added each second: 1 to 1000000.
        per_second: u32 = required,
        /// The most tokens that can accumulate: 1 to 1000000. Without it, the same as `per_second`.
        burst: u32 => OnChange::more().or_else(|settings, at| Some(settings.first(&at.beside("per_second"))?.to_owned())),
    }
}

impl FromToml for Quota {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut RawReader<'_>) -> Option<Self> {
        let raw = RawQuota::from_toml(value, reader)?;
        let per_second = NonZeroU32::new(*raw.per_second.get()?)?;
        Some(Self { per_second, burst: raw.burst.get().copied().and_then(NonZeroU32::new).unwrap_or(per_second) })
    }

    fn schema() -> Value {
        RawQuota::schema()
    }

    fn settings(value: Option<&DeValue<'_>>, at: &SettingPlace<'_>, settings: &mut Settings) {
        RawQuota::settings(value, at, settings);
    }
}

/// The state of a compilation.
struct Context<'a> {
    diagnostics: &'a mut Diagnostics,
    files: &'a RuleFiles,
    check_secrets: bool,
    previous: Option<&'a RuleSet>,
    external: &'a mut ExternalFiles,
    /// The settings of the files, where they are wanted.
    settings: Option<&'a mut FileSettings>,
    hashes: FileHashes,
    /// Whether the embedded engine decides on operations, not a remote one.
    is_embedded: bool,
    /// Whether `gateway.toml` has a `[legacy]`.
    has_legacy: bool,
    /// Its `paths`, with their places.
    legacy_paths: Vec<(FileId, Spanned<String>)>,
}

/// A file that is being compiled.
#[derive(Clone, Copy)]
pub(super) struct FileContext<'a> {
    pub file: FileId,
    pub path: &'a Path,
}

/// A TOML file that was read.
struct ReadFile<'f, T> {
    context: FileContext<'f>,
    raw: T,
    document: DeValue<'f>,
}

impl FileContext<'_> {
    /// Resolves a path that the file names, relative to the file, `x/..` folded.
    pub(super) fn relative(&self, named: &str) -> PathBuf {
        folded(&self.path.parent().unwrap_or(Path::new("")).join(named))
    }
}

impl Context<'_> {
    fn problem(&mut self, context: FileContext<'_>, span: Span, message: impl Into<String>) {
        self.diagnostics.add(context.file, span, message);
    }

    /// Notes a name that is not `known`, unless its file exists and could not be read.
    fn unknown_name<'k>(
        &mut self,
        context: FileContext<'_>,
        named: &Spanned<String>,
        file: (&str, &str),
        message: String,
        known: impl IntoIterator<Item = &'k str>,
    ) {
        if !self.diagnostics.unread(file.0, &format!("{}{}", named.get_ref(), file.1)) {
            self.diagnostics.add_with(context.file, named.span(), message, did_you_mean(named.get_ref(), known));
        }
    }

    /// Notes a problem when one span of time of a table is shorter than another.
    pub(super) fn check_not_shorter<const LEAST: u64>(
        &mut self,
        context: FileContext<'_>,
        table: &str,
        (long, longer): (&str, &Key<BoundedDuration<LEAST>>),
        (short, shorter): (&str, &Key<BoundedDuration>),
    ) {
        if longer.0 < shorter.0
            && let Some(at) = longer.place().or(shorter.place())
        {
            self.problem(context, at, format!("`{table}.{long}` must not be shorter than `{table}.{short}`"));
        }
    }

    /// Reads a TOML file as a raw table; `None` when it is not valid TOML.
    fn read<'f, T: FromToml>(&mut self, file: &'f RuleFile) -> Option<ReadFile<'f, T>> {
        let id = self.diagnostics.file(&file.path, Arc::clone(&file.text));
        let document = raw::parse::<T>(&file.text, id, self.diagnostics)?;
        let raw = raw::read(&document, id, self.diagnostics)?;
        if let Some(settings) = &mut self.settings {
            settings.insert(Arc::clone(&file.path), raw::settings::<T>(Some(document.get_ref()), &file.path));
        }
        Some(ReadFile { context: FileContext { file: id, path: &file.path }, raw, document: document.into_inner() })
    }
}

/// Shops and dialects, which are compiled before merchants, by name; `None` where the file exists and is wrong.
struct ShopsAndDialects {
    shops: HashMap<ShopCode, Option<Arc<Shop>>>,
    dialects: HashMap<Box<str>, Option<Arc<Dialect>>>,
}

/// Hashes of shops' files with their schemas and of dialects' files, computed once for all merchants.
#[derive(Debug, Default)]
struct FileHashes {
    shops: HashMap<ShopCode, Fingerprint>,
    dialects: HashMap<Box<str>, Fingerprint>,
}

/// The input of a compilation.
pub(super) struct Task<'a> {
    pub directory: &'a Path,
    pub files: &'a RuleFiles,
    pub now: UnixMillis,
    /// The current rule set.
    pub previous: Option<&'a RuleSet>,
    pub check_secrets: bool,
}

/// The settings of each file in TOML, by its path.
pub(super) type FileSettings = BTreeMap<Arc<Path>, Settings>;

/// Compiles the files of a rules directory; `None` when `diagnostics` has an error. Adds the settings of each file to
/// `settings`.
pub(super) fn compile(
    task: &Task<'_>,
    external: &mut ExternalFiles,
    settings: Option<&mut FileSettings>,
    diagnostics: &mut Diagnostics,
) -> Option<RuleSet> {
    let Task { directory, files, previous, check_secrets, .. } = *task;
    let mut context = Context {
        diagnostics,
        files,
        check_secrets,
        previous,
        external,
        settings,
        hashes: FileHashes::default(),
        is_embedded: false,
        has_legacy: false,
        legacy_paths: Vec::new(),
    };
    let gateway = context.gateway(directory);
    context.is_embedded = gateway.as_ref().is_some_and(|gateway| gateway.engine == EngineRules::Embedded);
    let pages = match &gateway {
        Some(gateway) => context.customer_pages(&gateway.pages.language, &gateway.pages.brand),
        None => context.customer_pages(FIRST, &Brand::default()),
    };
    let dialects = context.dialects();
    let (shops, schemas) = context.shops();
    let parts = ShopsAndDialects { shops, dialects: dialects.compiled };
    let merchants = context.merchants(&parts);
    let routes = context.routes(&parts, &dialects.headers, &merchants);
    let Context { external, diagnostics, .. } = context;
    gateway.filter(|_| !diagnostics.refuse()).map(|gateway| RuleSet {
        version: version(directory, files, external.public()),
        loaded_at: task.now,
        gateway,
        api_keys: api_keys(&merchants),
        merchants,
        legacy_dialect: routes.legacy_dialect,
        shops: parts.shops.into_iter().filter_map(|(code, shop)| Some((code, shop?))).collect(),
        dialects: parts.dialects.into_iter().filter_map(|(name, dialect)| Some((name, dialect?))).collect(),
        v1_routes: routes.by_path,
        schemas,
        pages: Arc::new(pages),
        warnings: Vec::new(),
        filled: HashSet::new(),
    })
}

fn api_keys(merchants: &HashMap<MerchantId, Arc<super::Merchant>>) -> HashMap<Arc<str>, KeyEntry> {
    let entries = |merchant: &Arc<super::Merchant>| {
        let keys = merchant.api_keys.iter().enumerate();
        keys.map(|(index, key)| (key.key.clone(), KeyEntry { merchant: Arc::clone(merchant), index }))
            .collect::<Vec<_>>()
    };
    merchants.values().flat_map(entries).collect()
}

/// Removes every `x/..` from a path, so that messages and command lines show `certs/ca.pem`, not
/// `rules/../certs/ca.pem`.
pub(super) fn folded(path: &Path) -> PathBuf {
    let mut folded = PathBuf::new();
    for component in path.components() {
        match (component, folded.components().next_back()) {
            (Component::CurDir, _) | (Component::ParentDir, Some(Component::RootDir)) => {}
            (Component::ParentDir, Some(Component::Normal(_))) => {
                folded.pop();
            }
            (component, _) => folded.push(component),
        }
    }
    folded
}

/// Returns the host and port of an `https` URL without a path, normalised.
fn origin_of(url: &str) -> Option<(String, u16)> {
    let uri: http::Uri = url.parse().ok()?;
    let host = uri.host()?.to_ascii_lowercase();
    let port = uri.port_u16().unwrap_or(443);
    uri.path().trim_matches('/').is_empty().then(|| (host.trim_end_matches('.').to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_folded() {
        for (path, expected) in [
            ("rules/../certs/ca.pem", "certs/ca.pem"),
            ("../rules/../certs/ca.pem", "../certs/ca.pem"),
            ("./../certs/x", "../certs/x"),
            ("/etc/rules/../../../x", "/x"),
            ("a/./b", "a/b"),
        ] {
            assert_eq!(folded(Path::new(path)), Path::new(expected), "{path}");
        }
    }
}
