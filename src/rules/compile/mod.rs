//! What rule files mean: raw tables become the types that requests are served by. Nothing here stops at a problem; a
//! thing that cannot be made is left out, and the problem is noted.

mod certificates;
mod checks;
mod dialect;
mod gateway;
mod lists;
mod merchant;
mod provider;
mod routes;
pub(crate) mod samples;
mod secrets;
mod shop;
mod template;

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use self::certificates::Trusted;
use super::files::{RuleFile, RuleFiles};
use super::problems::{FileId, Findings, Span};
use super::raw::{self, FromToml};
use super::{Dialect, KeyEntry, RuleSet, Shop};
use crate::domain::{MerchantId, ShopCode, UnixMillis};

/// The name of the dialect that is always there.
const BUILT_IN_DIALECT: &str = "v1";

/// What is known while files are compiled.
struct Context<'a> {
    findings: &'a mut Findings,
    files: &'a RuleFiles,
    check_secrets: bool,
    previous: Option<&'a RuleSet>,
    trusted: Trusted,
}

/// A file that is being compiled.
#[derive(Clone, Copy)]
struct Here<'a> {
    file: FileId,
    path: &'a Path,
}

impl Here<'_> {
    /// A path that the file names: relative to it, `x/..` folded.
    fn relative(&self, named: &str) -> PathBuf {
        folded(&self.path.parent().unwrap_or(Path::new("")).join(named))
    }
}

impl Context<'_> {
    fn problem(&mut self, here: Here<'_>, span: Span, message: impl Into<String>) {
        self.findings.add(here.file, span, message);
    }

    /// Reads a TOML file, and compiles it when it could be read.
    fn read<'f, T: FromToml>(&mut self, file: &'f RuleFile) -> Option<(Here<'f>, T)> {
        let id = self.findings.file(&file.path, &file.text);
        let raw = raw::read(&file.text, id, self.findings)?;
        Some((Here { file: id, path: &file.path }, raw))
    }
}

/// What is compiled before merchants, by name; `None` where the file is there and wrong.
struct Parts {
    shops: HashMap<ShopCode, Option<Arc<Shop>>>,
    dialects: HashMap<Box<str>, Option<Arc<Dialect>>>,
}

/// Compiles all files of a rules directory. The result is of use only when nothing was found.
pub(super) fn compile(
    files: &RuleFiles,
    directory: &Path,
    now: UnixMillis,
    previous: Option<&RuleSet>,
    check_secrets: bool,
    findings: &mut Findings,
) -> Option<RuleSet> {
    let mut context = Context { findings, files, check_secrets, previous, trusted: Trusted::default() };
    let gateway = context.gateway(directory);
    let dialects = context.dialects();
    let shops = context.shops();
    let parts = Parts { shops, dialects: dialects.compiled };
    let merchants = context.merchants(&parts);
    let v1_routes = context.routes(&parts, &dialects.places, &merchants);
    let api_keys = api_keys(&merchants);
    let trusted = context.trusted;
    if findings.refuse() {
        return None;
    }
    Some(RuleSet {
        version: super::files::version(directory, files, trusted.digests()),
        loaded_at: now,
        gateway: gateway?,
        merchants,
        shops: parts.shops.into_iter().filter_map(|(code, shop)| Some((code, shop?))).collect(),
        dialects: parts.dialects.into_iter().filter_map(|(name, dialect)| Some((name, dialect?))).collect(),
        api_keys,
        v1_routes,
        trust_files: trusted.into_paths(),
        warnings: Vec::new(),
    })
}

fn api_keys(merchants: &HashMap<MerchantId, Arc<super::Merchant>>) -> HashMap<Box<str>, KeyEntry> {
    let entries = |merchant: &Arc<super::Merchant>| {
        let keys = merchant.api_keys.iter().enumerate();
        keys.map(|(index, key)| (key.key.clone(), KeyEntry { merchant: Arc::clone(merchant), index }))
            .collect::<Vec<_>>()
    };
    merchants.values().flat_map(entries).collect()
}

/// A path with every `x/..` taken out, so that messages and command lines show `certs/ca.pem`, not `rules/../certs`.
fn folded(path: &Path) -> PathBuf {
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
