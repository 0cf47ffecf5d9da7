//! What the system watches for us.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use notify::{Config, RecommendedWatcher, RecursiveMode, Watcher};
use notify_debouncer_full::{DebounceEventHandler, Debouncer, RecommendedCache, new_debouncer};

use super::places::Places;

/// How old an event is when it is told. What belongs together is put together by then: the two names of a rename. Short,
/// because an event that comes again and again within it is put off again and again.
const AGE: Duration = Duration::from_millis(20);

/// How often events are looked for: no less often than that, or there is no debouncer. It wakes a thread each time.
const TICK: Duration = AGE;

/// The most exchanged names that are told apart.
const MOST_LOST: usize = 100;

/// Names that something else may stand under than what was watched there.
#[derive(Debug, Clone, Default)]
pub(super) enum Lost {
    #[default]
    Nothing,
    Below(Vec<PathBuf>),
    Everything,
}

impl Lost {
    /// Another name; too many are all of them.
    pub fn add(&mut self, path: &Path) {
        match self {
            Self::Nothing => *self = Self::Below(vec![path.to_owned()]),
            Self::Below(paths) if paths.iter().any(|known| path.starts_with(known)) => {}
            Self::Below(paths) if paths.len() < MOST_LOST => paths.push(path.to_owned()),
            Self::Below(_) | Self::Everything => *self = Self::Everything,
        }
    }

    fn has(&self, watched: &Path) -> bool {
        match self {
            Self::Nothing => false,
            Self::Below(paths) => paths.iter().any(|path| watched.starts_with(path)),
            Self::Everything => true,
        }
    }
}

/// The system's watches, as far as there are any.
pub(super) struct Watches {
    debouncer: Option<Debouncer<RecommendedWatcher, RecommendedCache>>,
    /// Directories, by whether all that is below them is watched.
    watched: HashMap<PathBuf, RecursiveMode>,
    /// Directories that cannot be watched, which was said.
    failed: HashSet<PathBuf>,
}

impl Watches {
    /// Watches nothing yet. Says so when the system has no watching service (left) for this process.
    pub fn new(handler: impl DebounceEventHandler) -> Self {
        // Asked beforehand, because a debouncer that cannot be had leaves a thread behind.
        let debouncer =
            RecommendedWatcher::new(|_| {}, Config::default()).and_then(|_| new_debouncer(AGE, Some(TICK), handler));
        let debouncer = debouncer.inspect_err(|error| {
            tracing::warn!(%error, "the system does not tell of changes: files are looked at from time to time instead");
        });
        Self { debouncer: debouncer.ok(), watched: HashMap::new(), failed: HashSet::new() }
    }

    /// Watches each place, and the directory it is in for the place itself being exchanged. What may be `lost` is watched
    /// anew. Whether anything is watched now that was not.
    pub fn follow(&mut self, places: &Places, lost: &Lost) -> bool {
        let Some(debouncer) = &mut self.debouncer else { return false };
        let wanted = wanted(places);
        // First, because ending the watch of a directory ends those below it.
        self.watched.retain(|path, mode| {
            let stays = wanted.get(path) == Some(mode) && !lost.has(path);
            if !stays {
                // It may be gone.
                let _ = debouncer.unwatch(path);
            }
            stays
        });
        let mut anew = false;
        for (path, mode) in wanted {
            if self.watched.contains_key(&path) {
                continue;
            }
            match debouncer.watch(&path, mode) {
                Ok(()) => {
                    anew = true;
                    self.failed.remove(&path);
                    self.watched.insert(path, mode);
                }
                Err(error) => {
                    if self.failed.insert(path.clone()) {
                        let path = path.display();
                        tracing::warn!(%path, %error, "cannot be watched: it is looked at from time to time instead");
                    }
                }
            }
        }
        self.failed.retain(|path| path.exists());
        anew
    }
}

/// The directories that have to be watched.
fn wanted(places: &Places) -> HashMap<PathBuf, RecursiveMode> {
    let mut above: HashMap<&Path, Option<&Path>> = HashMap::new();
    let mut wanted = HashMap::new();
    for place in places.whole.iter().chain(&places.single) {
        let Some(directory) = place.parent() else { continue };
        let nearest = above.entry(directory).or_insert_with(|| directory.ancestors().find(|above| above.is_dir()));
        if let Some(nearest) = nearest.filter(|path| !places.whole.contains(*path) && !places.inside(path)) {
            wanted.insert(nearest.to_owned(), RecursiveMode::NonRecursive);
        }
    }
    wanted.extend(places.whole.iter().map(|path| (path.clone(), RecursiveMode::Recursive)));
    wanted
}
