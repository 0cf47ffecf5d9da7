//! What is watched: the directories of rule files and of the files beside them, with every link on the way.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::files;

/// The most links that are followed for one path.
const MOST_LINKS: usize = 40;

/// The most entries of a directory that are checked for links.
const MOST_ENTRIES: usize = 100_000;

/// The depth of a rules directory: `lists/<merchant>/<name>.txt`.
const DEPTH: usize = 3;

/// The watched directories and the names in them that matter. Their paths contain no links, as those of events.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct WatchedPlaces(pub(super) HashMap<PathBuf, Names>);

/// The names in a directory that matter.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Names {
    /// The names of rule files that count.
    pub(super) rules: RuleNames,
    /// The names of files that are watched individually, and of links and directories that lead to something watched.
    pub(super) named: HashSet<OsString>,
}

/// Which names of rule files count in a directory. Where any do, so do directories and links that may hold rule files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RuleNames {
    /// None.
    #[default]
    None,
    /// `gateway.toml`; the rules warn of other TOML files there.
    Gateway,
    /// Those of merchants, shops and the like; the rules warn of all other files there.
    All,
}

impl WatchedPlaces {
    /// Follows all links from `paths` and within rules directories. Reads directories.
    pub(super) fn of(paths: &[PathBuf]) -> Self {
        let mut follower = Follower::default();
        // Without a current directory a relative path has no target.
        for path in paths.iter().filter_map(|path| std::path::absolute(path).ok()) {
            let end = follower.end(&path);
            if end.is_dir() {
                follower.rules(&end, DEPTH, RuleNames::Gateway);
            }
        }
        follower.places
    }

    fn at(&self, path: &Path) -> Option<&Names> {
        self.0.get(path.parent()?)
    }

    fn rules_at(&self, path: &Path) -> RuleNames {
        self.at(path).map_or(RuleNames::None, |names| names.rules)
    }

    /// Reports whether a path is watched individually, or leads to something watched.
    pub(super) fn names(&self, path: &Path) -> bool {
        self.at(path).zip(path.file_name()).is_some_and(|(names, name)| names.named.contains(name))
    }

    /// Reports whether the rules warn of a path when they do not read it, so that its appearance matters and its content does
    /// not.
    pub(super) fn notices(&self, path: &Path) -> bool {
        match self.rules_at(path) {
            RuleNames::None => false,
            RuleNames::Gateway => files::is_stray(path) && path.extension().is_some_and(|ending| ending == "toml"),
            RuleNames::All => files::is_stray(path),
        }
    }

    /// Reports whether the content of a path, or of its target, is read.
    pub(super) fn reads(&self, path: &Path) -> bool {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return self.names(path) };
        let is_rule = match self.rules_at(path) {
            RuleNames::None => false,
            RuleNames::Gateway => name == files::GATEWAY,
            RuleNames::All => files::is_rule_name(name),
        };
        is_rule || self.names(path)
    }

    /// Reports whether a path may lead to rule files: a watched directory, or now a directory or link among rule files. A link
    /// to a dot-name is watched as such.
    pub(super) fn may_lead(&self, path: &Path) -> bool {
        let leads = || fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir() || meta.is_symlink());
        self.0.contains_key(path)
            || (self.rules_at(path) > RuleNames::None && !path.file_name().is_some_and(is_dot_name) && leads())
    }
}

/// Follows links, those of each directory only once.
#[derive(Debug, Default)]
struct Follower {
    places: WatchedPlaces,
    /// The resolved paths of directories.
    ends: HashMap<PathBuf, PathBuf>,
}

impl Follower {
    /// Resolves an absolute path, existing or missing, and watches the result and every link on the way.
    fn end(&mut self, path: &Path) -> PathBuf {
        let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else { return path.to_owned() };
        let known = self.ends.get(directory).cloned();
        let at = known.unwrap_or_else(|| self.walk(PathBuf::new(), directory));
        self.ends.insert(directory.to_owned(), at.clone());
        let end = self.walk(at, Path::new(name));
        self.add(&end);
        end
    }

    /// Resolves `path` from `at`, which is known to be free of links.
    fn walk(&mut self, mut at: PathBuf, path: &Path) -> PathBuf {
        let mut ahead = parts(path);
        let mut links = 0;
        while let Some(part) = ahead.pop() {
            match part.components().next() {
                Some(Component::ParentDir) => drop(at.pop()),
                Some(Component::Normal(name)) => {
                    let next = at.join(name);
                    match fs::read_link(&next) {
                        Ok(target) if links < MOST_LINKS => {
                            links += 1;
                            self.add(&next);
                            ahead.extend(parts(&target));
                        }
                        _ => at = next,
                    }
                }
                Some(root) => at.push(root),
                None => {}
            }
        }
        at
    }

    /// Watches a path by its name in its directory. When the directory is missing, its nearest existing ancestor is
    /// used.
    fn add(&mut self, place: &Path) {
        for place in place.ancestors() {
            let (Some(directory), Some(name)) = (place.parent(), place.file_name()) else { return };
            if directory.is_dir() {
                self.places.0.entry(directory.to_owned()).or_default().named.insert(name.to_owned());
                return;
            }
        }
    }

    /// Watches a directory of rule files and its subdirectories. Dot-names are reached only by links of other names.
    fn rules(&mut self, directory: &Path, depth: usize, held: RuleNames) {
        let names = self.places.0.entry(directory.to_owned()).or_default();
        names.rules = names.rules.max(held);
        for entry in fs::read_dir(directory).into_iter().flatten().take(MOST_ENTRIES).flatten() {
            let (Ok(kind), name) = (entry.file_type(), entry.file_name()) else { continue };
            let end = match kind {
                _ if is_dot_name(&name) => continue,
                kind if kind.is_symlink() => self.end(&entry.path()),
                kind if kind.is_dir() => entry.path(),
                _ => continue,
            };
            if depth > 1 && end.is_dir() {
                let held = if depth == DEPTH && files::is_rules_directory(&name) { RuleNames::All } else { held };
                self.rules(&end, depth - 1, held);
            }
        }
    }
}

fn is_dot_name(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".")
}

/// Returns the components of a path in reverse order.
fn parts(path: &Path) -> Vec<PathBuf> {
    let parts = path.components().filter(|part| *part != Component::CurDir);
    parts.rev().map(|part| PathBuf::from(part.as_os_str())).collect()
}
