//! What is watched: the directories of rule files and of the files beside them, with every link on the way.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
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
    /// Whether names of rule files count, and directories and links that may hold rule files.
    pub(super) rules: bool,
    /// The names of files that are watched individually, and of links and directories that lead to something watched.
    pub(super) named: HashSet<OsString>,
}

impl WatchedPlaces {
    /// Follows all links from `paths` and within rules directories. Reads directories.
    pub(super) fn of(paths: &[PathBuf]) -> Self {
        let mut follower = Follower::default();
        // Without a current directory a relative path has no target.
        for path in paths.iter().filter_map(|path| std::path::absolute(path).ok()) {
            let end = follower.end(&path);
            if end.is_dir() {
                follower.rules(&end, DEPTH);
            }
        }
        follower.places
    }

    pub(super) fn at(&self, path: &Path) -> Option<&Names> {
        self.0.get(path.parent()?)
    }

    /// Reports whether a path is in a directory of rule files.
    pub(super) fn in_rules(&self, path: &Path) -> bool {
        self.at(path).is_some_and(|names| names.rules)
    }

    /// Reports whether a path is watched individually, or leads to something watched.
    pub(super) fn names(&self, path: &Path) -> bool {
        self.at(path).zip(path.file_name()).is_some_and(|(names, name)| names.named.contains(name))
    }

    /// Reports whether the rules warn of a path when they do not read it, so that its appearance matters and its content does
    /// not.
    pub(super) fn notices(&self, path: &Path) -> bool {
        self.in_rules(path) && files::is_stray(path)
    }

    /// Reports whether the content of a path, or of its target, is read.
    pub(super) fn reads(&self, path: &Path) -> bool {
        let is_rule = || path.file_name().and_then(|name| name.to_str()).is_some_and(files::is_rule_name);
        self.names(path) || (self.in_rules(path) && is_rule())
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

    /// Watches a directory of rule files and its subdirectories. Dot-names are reached only by links.
    fn rules(&mut self, directory: &Path, depth: usize) {
        self.places.0.entry(directory.to_owned()).or_default().rules = true;
        for entry in fs::read_dir(directory).into_iter().flatten().take(MOST_ENTRIES).flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            let end = if kind.is_symlink() {
                self.end(&entry.path())
            } else if kind.is_dir() && !entry.file_name().as_encoded_bytes().starts_with(b".") {
                entry.path()
            } else {
                continue;
            };
            if depth > 1 && end.is_dir() {
                self.rules(&end, depth - 1);
            }
        }
    }
}

/// Returns the components of a path in reverse order.
fn parts(path: &Path) -> Vec<PathBuf> {
    let parts = path.components().filter(|part| *part != Component::CurDir);
    parts.rev().map(|part| PathBuf::from(part.as_os_str())).collect()
}

/// Reports whether a path is a regular file.
pub(super) fn is_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file())
}
