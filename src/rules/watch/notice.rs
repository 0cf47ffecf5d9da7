//! What an event means for the files that are watched.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode, CreateKind, EventKind, ModifyKind, RemoveKind, RenameMode};
use notify_debouncer_full::DebouncedEvent;

use super::places::Places;
use super::settle::Settle;
use super::watches::Lost;

/// Whether this system tells when a file that was written is closed.
const CLOSES_ARE_TOLD: bool = cfg!(any(target_os = "linux", target_os = "android"));

/// How long after a file was made it is opened, by the one who made it.
const AT_ONCE: Duration = Duration::from_millis(50);

/// The most files that were just made.
const MOST_MADE: usize = 10_000;

/// What events came to.
#[derive(Debug, Default)]
pub(super) struct Noticed {
    /// When to read.
    pub settle: Settle,
    /// Whether links may lead elsewhere now.
    pub relinked: bool,
    /// What has to be watched anew.
    pub lost: Lost,
    /// Files that were just made, and are open if they were made by opening them: not if they are hard links.
    made: HashMap<PathBuf, Instant>,
}

impl Noticed {
    /// Takes note of events, the oldest first.
    pub fn take(&mut self, events: &[DebouncedEvent], places: &Places) {
        for event in events {
            self.event(event, places);
        }
        if let Some(latest) = events.iter().map(|event| event.time).max() {
            self.made.retain(|_, made| latest.saturating_duration_since(*made) <= AT_ONCE);
        }
    }

    /// Events were lost: everything may have changed.
    pub fn everything(&mut self, at: Instant) {
        self.settle.lost_track(at);
        (self.lost, self.relinked) = (Lost::Everything, true);
    }

    fn event(&mut self, event: &DebouncedEvent, places: &Places) {
        let at = event.time;
        if event.need_rescan() {
            return self.everything(at);
        }
        let [path, rest @ ..] = event.paths.as_slice() else { return };
        match event.kind {
            // Reading is no change: every reload reads.
            EventKind::Access(AccessKind::Open(_)) => self.opened(path, at),
            EventKind::Access(AccessKind::Close(AccessMode::Write)) => self.closed(path, at, places),
            EventKind::Access(_) => {}
            EventKind::Create(kind) => self.created(path, at, kind, places),
            EventKind::Modify(ModifyKind::Data(_)) => self.written(path, at, places),
            EventKind::Modify(ModifyKind::Name(RenameMode::Both)) => {
                self.vanished(path, at, event.kind, places);
                for path in rest {
                    self.appeared(path, at, places);
                }
            }
            EventKind::Modify(ModifyKind::Name(RenameMode::To)) => self.appeared(path, at, places),
            EventKind::Modify(ModifyKind::Name(RenameMode::From)) | EventKind::Remove(_) => {
                self.vanished(path, at, event.kind, places);
            }
            _ if event.paths.iter().any(|path| concerns(path, places)) => self.settle.changed(at),
            _ => {}
        }
    }

    /// Somebody opened a file, whatever for; who made it just now did so to write it.
    fn opened(&mut self, path: &Path, at: Instant) {
        if let Some(made) = self.made.remove(path)
            && at.saturating_duration_since(made) <= AT_ONCE
        {
            self.settle.opened(path, at);
        }
    }

    fn written(&mut self, path: &Path, at: Instant, places: &Places) {
        if !places.read(path) {
            return;
        }
        if CLOSES_ARE_TOLD {
            self.settle.opened(path, at);
        } else {
            self.settle.changed(at);
        }
    }

    fn closed(&mut self, path: &Path, at: Instant, places: &Places) {
        self.made.remove(path);
        if places.read(path) {
            self.settle.closed(path, at);
        }
    }

    fn created(&mut self, path: &Path, at: Instant, kind: CreateKind, places: &Places) {
        self.appeared(path, at, places);
        if CLOSES_ARE_TOLD && kind != CreateKind::Folder && places.read(path) && self.made.len() < MOST_MADE {
            self.made.insert(path.to_owned(), at);
        }
    }

    fn appeared(&mut self, path: &Path, at: Instant, places: &Places) {
        if !concerns(path, places) {
            return;
        }
        self.settle.appeared(path, at);
        if places.lead(path) {
            self.exchanged(path);
        } else if !is_file(path) {
            self.relinked = true;
        }
    }

    fn vanished(&mut self, path: &Path, at: Instant, kind: EventKind, places: &Places) {
        self.made.remove(path);
        if places.read(path) || places.lead(path) {
            self.settle.vanished(path, at);
        } else if places.inside(path) && kind != EventKind::Remove(RemoveKind::File) {
            // It may have been a directory of rule files.
            self.settle.changed(at);
        }
        if places.lead(path) {
            self.exchanged(path);
        }
    }

    /// Something else may stand under a name that leads to something watched.
    fn exchanged(&mut self, path: &Path) {
        self.lost.add(path);
        self.relinked = true;
    }
}

/// Whether a change of what stands under a name is one of the rules. Other files of a rules directory are not read, but a
/// directory or a link may hold what is.
fn concerns(path: &Path, places: &Places) -> bool {
    places.read(path) || places.lead(path) || (places.inside(path) && !is_file(path))
}

/// Whether a regular file stands under a name.
fn is_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file())
}

#[cfg(test)]
mod tests {
    use notify::event::{DataChange, Event, Flag, MetadataKind};
    use tempfile::TempDir;

    use super::*;

    const OPENED: EventKind = EventKind::Access(AccessKind::Open(AccessMode::Any));
    const CLOSED: EventKind = EventKind::Access(AccessKind::Close(AccessMode::Write));
    const WRITTEN: EventKind = EventKind::Modify(ModifyKind::Data(DataChange::Any));
    const CREATED: EventKind = EventKind::Create(CreateKind::File);
    const REMOVED: EventKind = EventKind::Remove(RemoveKind::File);
    const CHANGED: EventKind = EventKind::Modify(ModifyKind::Metadata(MetadataKind::Any));

    /// A rules directory with one file, a link beside it, and a watched file outside.
    struct Scene {
        directory: TempDir,
        places: Places,
        start: Instant,
        noticed: Noticed,
    }

    impl Scene {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let at = directory.path();
            fs::create_dir_all(at.join("rules/merchants")).unwrap();
            fs::write(at.join("rules/merchants/m.toml"), "").unwrap();
            fs::write(at.join("rules/merchants/m.toml~"), "").unwrap();
            std::os::unix::fs::symlink("merchants", at.join("rules/dialects")).unwrap();
            let places = Places::of(&[at.join("rules"), at.join("tls.crt")]);
            Self { places, directory, start: Instant::now(), noticed: Noticed::default() }
        }

        /// Events of files below the directory, with their milliseconds; gives when to reload, in milliseconds.
        fn after(mut self, events: &[(u64, EventKind, &str)]) -> (Option<u128>, Self) {
            for (ms, kind, name) in events {
                let event = Event::new(*kind).add_path(self.directory.path().join(name));
                let event = DebouncedEvent::new(event, self.start + Duration::from_millis(*ms));
                self.noticed.take(&[event], &self.places);
            }
            let at = self.noticed.settle.reload_at().map(|at| at.duration_since(self.start).as_millis());
            (at, self)
        }
    }

    #[track_caller]
    fn reload_after(events: &[(u64, EventKind, &str)], expected: Option<u128>) {
        assert_eq!(Scene::new().after(events).0, expected, "{events:?}");
    }

    const FILE: &str = "rules/merchants/m.toml";

    #[test]
    fn writers_are_followed_from_the_first_write_to_the_close() {
        reload_after(&[(0, WRITTEN, FILE)], Some(10_000));
        reload_after(&[(0, WRITTEN, FILE), (5, CLOSED, FILE)], Some(125));
        reload_after(&[(0, WRITTEN, FILE), (5, REMOVED, FILE)], Some(405));
        reload_after(&[(0, WRITTEN, "tls.crt")], Some(10_000));
        reload_after(&[(0, CREATED, FILE), (1, OPENED, FILE)], Some(10_000));
        reload_after(&[(0, CREATED, FILE), (1, OPENED, FILE), (2, CLOSED, FILE)], Some(122));
        let lost = EventKind::Modify(ModifyKind::Name(RenameMode::From));
        reload_after(&[(0, WRITTEN, FILE), (5, lost, "rules/merchants")], Some(405));
    }

    #[test]
    fn links_are_made_without_a_writer() {
        reload_after(&[(0, CREATED, FILE)], Some(120));
        // Whoever opens it later reads it.
        reload_after(&[(0, CREATED, FILE), (60, OPENED, FILE)], Some(120));
        reload_after(&[(0, OPENED, FILE)], None);
    }

    #[test]
    fn what_is_not_read_does_not_count() {
        for name in ["rules/merchants/m.toml~", "rules/.m.toml.swp", "other", "tls.crt.new"] {
            for kind in [WRITTEN, CLOSED, REMOVED] {
                reload_after(&[(0, kind, name)], None);
            }
        }
        for kind in [CREATED, CHANGED] {
            reload_after(&[(0, kind, "rules/merchants/m.toml~")], None);
        }
        for (kind, name) in [(CHANGED, FILE), (CHANGED, "rules/merchants"), (CREATED, "rules/dialects")] {
            reload_after(&[(0, kind, name)], Some(120));
        }
    }

    #[test]
    fn links_are_followed_again_when_they_may_lead_elsewhere() {
        for (kind, name, expected) in [
            (WRITTEN, FILE, false),
            (CREATED, FILE, false),
            (REMOVED, FILE, false),
            (REMOVED, "rules/dialects", true),
            (CREATED, "rules/merchants", true),
            (CREATED, "tls.crt", true),
        ] {
            let (_, scene) = Scene::new().after(&[(0, kind, name)]);
            assert_eq!(scene.noticed.relinked, expected, "{kind:?} {name}");
        }
        let (_, scene) = Scene::new().after(&[(0, EventKind::Remove(RemoveKind::Folder), "rules")]);
        assert!(matches!(scene.noticed.lost, Lost::Below(paths) if paths == [scene.directory.path().join("rules")]));
    }

    #[test]
    fn events_that_were_lost_may_have_been_any() {
        let (_, mut scene) = Scene::new().after(&[(0, WRITTEN, FILE)]);
        let event = DebouncedEvent::new(Event::new(EventKind::Other).set_flag(Flag::Rescan), scene.start);
        scene.noticed.take(&[event], &scene.places);
        assert!(matches!(scene.noticed.lost, Lost::Everything) && scene.noticed.relinked);
        assert_eq!(scene.noticed.settle.reload_at(), Some(scene.start + Duration::from_millis(120)));
    }
}
