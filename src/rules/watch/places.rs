//! Where the watched paths lead, link by link, and which names there count.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::rules::files;

/// The most links that are followed from one path.
const MOST_LINKS: usize = 40;

/// The most links inside a watched directory whose targets are watched too.
const MOST_LINKED: usize = 10_000;

/// How many of a directory's entries are looked at for links.
const MOST_ENTRIES: usize = 100_000;

/// How deep links are looked for in a watched directory: `lists/<merchant>/<name>.txt`.
const LINK_DEPTH: usize = 3;

/// Where the watched paths lead. All paths are free of links but for their last part, as events name them. Questions
/// cost the same however many there are: an event asks several.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Places {
    /// Directories that are watched with all that is below them; none is below another.
    pub whole: HashSet<PathBuf>,
    /// Outside of those: files, links on the way to something watched, and what does not exist.
    pub single: HashSet<PathBuf>,
    /// All of these, the links inside the directories and where those lead, and everything above any of them.
    lead: HashSet<PathBuf>,
}

impl Places {
    /// Follows all links from `paths` and inside them. Reads directories.
    pub fn of(paths: &[PathBuf]) -> Self {
        let mut ways = Ways::default();
        let (mut whole, mut single) = (HashSet::new(), HashSet::new());
        for path in paths {
            // Without a current directory a relative path leads nowhere.
            let Ok(path) = std::path::absolute(path) else { continue };
            let mut way = ways.follow(&path);
            whole.extend(way.pop_if(|end| end.is_dir()));
            single.extend(way);
        }
        let mut places = Self { whole: outermost(&whole), single, lead: HashSet::new() };
        let mut links = Vec::new();
        for directory in &places.whole {
            find_links(directory, LINK_DEPTH, &mut links);
        }
        places.single.extend(links.iter().flat_map(|link| ways.follow(link)));
        for place in places.whole.iter().chain(&places.single) {
            lead_to(place, &mut places.lead);
        }
        let inside: Vec<PathBuf> = places.single.iter().filter(|place| places.inside(place)).cloned().collect();
        for place in inside {
            places.single.remove(&place);
        }
        places
    }

    /// Whether a path is inside a directory that is watched as a whole.
    pub fn inside(&self, path: &Path) -> bool {
        path.ancestors().skip(1).any(|above| self.whole.contains(above))
    }

    /// Whether a path is on the way to something watched, or the end of one.
    pub fn lead(&self, path: &Path) -> bool {
        self.lead.contains(path)
    }

    /// Whether a path's content is read: a rule file's, or that of a file that is watched for itself.
    pub fn read(&self, path: &Path) -> bool {
        let named = || path.file_name().and_then(|name| name.to_str()).is_some_and(files::is_rule_name);
        self.single.contains(path) || (named() && self.inside(path))
    }
}

/// The directories that are below no other one.
fn outermost(directories: &HashSet<PathBuf>) -> HashSet<PathBuf> {
    let below = |path: &Path| path.ancestors().skip(1).any(|above| directories.contains(above));
    directories.iter().filter(|path| !below(path)).cloned().collect()
}

/// A place and all above it; what is above something known is known.
fn lead_to(place: &Path, lead: &mut HashSet<PathBuf>) {
    for above in place.ancestors() {
        if !lead.insert(above.to_owned()) {
            return;
        }
    }
}

/// Follows links, and directories only once.
#[derive(Debug, Default)]
struct Ways(HashMap<PathBuf, Vec<PathBuf>>);

impl Ways {
    /// Every link on the way of an absolute path, and where it ends, whether that exists or not.
    fn follow(&mut self, path: &Path) -> Vec<PathBuf> {
        let root = PathBuf::new;
        let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
            return follow(root(), path, Vec::new());
        };
        let known = self.0.entry(directory.to_owned());
        let mut way = known.or_insert_with(|| follow(root(), directory, Vec::new())).clone();
        let end = way.pop().unwrap_or_default();
        follow(end, Path::new(name), way)
    }
}

/// Follows a path on from where it is known to be free of links.
fn follow(mut at: PathBuf, path: &Path, mut links: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut ahead: Vec<PathBuf> = parts(path);
    while let Some(part) = ahead.pop() {
        match part.components().next() {
            Some(Component::ParentDir) => drop(at.pop()),
            Some(Component::Normal(name)) => {
                let next = at.join(name);
                match fs::read_link(&next) {
                    Ok(target) if links.len() < MOST_LINKS => {
                        links.push(next);
                        ahead.extend(parts(&target));
                    }
                    _ => at = next,
                }
            }
            Some(root) => at.push(root),
            None => {}
        }
    }
    links.push(at);
    links
}

/// The parts of a path, the first one last.
fn parts(path: &Path) -> Vec<PathBuf> {
    let parts = path.components().filter(|part| *part != Component::CurDir);
    parts.rev().map(|part| PathBuf::from(part.as_os_str())).collect()
}

fn find_links(directory: &Path, depth: usize, links: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().take(MOST_ENTRIES).flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_symlink() && links.len() < MOST_LINKED {
            links.push(entry.path());
        } else if kind.is_dir() && depth > 1 {
            find_links(&entry.path(), depth - 1, links);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_lead_out_of_a_directory_and_on() {
        let directory = tempfile::tempdir().unwrap();
        let at = fs::canonicalize(directory.path()).unwrap();
        for made in ["rules/merchants", "shared/1", "certs"] {
            fs::create_dir_all(at.join(made)).unwrap();
        }
        symlink("1", at.join("shared/now")).unwrap();
        symlink(at.join("shared/now/m.toml"), at.join("rules/merchants/m.toml")).unwrap();
        symlink("../certs/./loop", at.join("certs/loop")).unwrap();
        symlink("rules", at.join("link")).unwrap();
        let paths = ["link", "certs/../certs/tls.crt", "certs/loop", "rules/merchants"].map(|name| at.join(name));
        let places = Places::of(&paths);
        let set = |names: &[&str]| names.iter().map(|name| at.join(name)).collect::<HashSet<_>>();
        assert_eq!(places.whole, set(&["rules"]), "one is below the other");
        let single = set(&["link", "certs/tls.crt", "certs/loop", "shared/now", "shared/1/m.toml"]);
        assert_eq!(places.single, single);
        for name in ["rules", "rules/merchants/m.toml", "shared", "", "link", "shared/1"] {
            assert!(places.lead(&at.join(name)), "{name}");
        }
        assert!(!places.lead(&at.join("rules/merchants/n.toml")) && !places.lead(&at.join("certs/other")));
        for (name, read) in [
            ("rules/gateway.toml", true),
            ("rules/..1/shops/a.json", true),
            ("rules/merchants/.m.toml.swp", false),
            ("rules/merchants/m.toml~", false),
            ("certs/tls.crt", true),
            ("certs/a.toml", false),
        ] {
            assert_eq!(places.read(&at.join(name)), read, "{name}");
        }
    }
}
