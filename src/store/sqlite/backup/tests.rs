use std::cell::Cell;
use std::io::{Seek as _, SeekFrom, Write as _};

use super::*;
use crate::clock::SystemRandomness;
use crate::domain::Secret;
use crate::store::conformance::{NOW, created, deposit};
use crate::store::{BackupMark as _, Store as _, StoreAccess};

struct Place(tempfile::TempDir);

impl Place {
    /// A store with some operations, and a directory for copies that holds nothing.
    async fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        fs::create_dir(place.0.path().join("copies")).unwrap();
        let random = Arc::new(SystemRandomness::default());
        let store = super::super::open(&place.store(), &keys(), random, Arc::default()).unwrap().store;
        for number in 0..20 {
            created(&store, deposit("acme", &format!("order-{number}"))).await;
        }
        store.close().await.unwrap();
        place
    }

    fn store(&self) -> PathBuf {
        self.0.path().join("data/paybridge.db")
    }

    fn to(&self) -> PathBuf {
        self.0.path().join("copies/copy.db")
    }

    fn begun(&self) -> Begun {
        begin(&self.store(), &keys(), &self.to(), NOW, Arc::new(SystemRandomness::default())).unwrap()
    }

    fn copies(&self) -> Vec<PathBuf> {
        fs::read_dir(self.0.path().join("copies")).unwrap().map(|entry| entry.unwrap().path()).collect()
    }
}

fn keys() -> StoreKeys {
    StoreKeys { create_at: None, keys: vec![Secret::new(&[1; 32])] }
}

fn probes(path: &Path) -> i64 {
    Connection::open(path).unwrap().query_row("SELECT count FROM probe", [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn the_copy_has_the_state_of_one_moment_and_delays_nothing() {
    let place = Place::new().await;
    let before = probes(&place.store());
    let commits = Cell::new(0);
    let commit = |done: u64, total: u64| {
        assert!(done > 0 && done <= total);
        let other = Connection::open(place.store()).unwrap();
        other.busy_timeout(std::time::Duration::ZERO).unwrap();
        other.execute("UPDATE probe SET count = count + 1", []).unwrap();
        commits.set(commits.get() + 1);
    };
    // What is committed between its beginning and its first step is in it.
    let copied = place.begun().copy(&commit, &|| true).unwrap();
    let audit = copied.check(&|_| (), &|| true).unwrap().publish().unwrap();
    assert!(audit.is_clean() && audit.operations == 20, "{audit:?}");
    assert_eq!(place.copies(), [place.to()]);
    assert_eq!(probes(&place.to()), before);
    assert_eq!(probes(&place.store()), before + commits.get());
    assert!(commits.get() > 0);
}

#[tokio::test]
async fn a_copy_is_marked_and_a_copy_of_it_with_the_same_mark() {
    let place = Place::new().await;
    let random = || Arc::new(SystemRandomness::default());
    let make = |from: &Path, to: &Path, now| {
        let begun = begin(from, &keys(), to, now, random()).unwrap();
        let copied = begun.copy(&|_, _| (), &|| true).unwrap();
        assert!(copied.check(&|_| (), &|| true).unwrap().publish().unwrap().is_clean());
    };
    let again = place.0.path().join("copies/again.db");
    make(&place.store(), &place.to(), NOW);
    make(&place.to(), &again, UnixMillis(NOW.0 + 1));
    for copy in [&place.to(), &again] {
        let open = || super::super::open(copy, &keys(), random(), Arc::default());
        let beside = |access| super::super::open_beside(copy, &keys(), access, random(), Arc::default());
        let is_backup = |refused: &OpenError| matches!(refused, OpenError::Backup { known_until, .. } if known_until == "2026-09-21T14:13:20.000Z");
        assert!(is_backup(&open().unwrap_err()) && is_backup(&beside(StoreAccess::Change).unwrap_err()));
        let reading = beside(StoreAccess::Read).unwrap();
        assert_eq!(reading.known_until().await.unwrap(), Some(NOW));
        let adopting = beside(StoreAccess::Adopt).unwrap();
        assert!(matches!(beside(StoreAccess::Adopt), Err(OpenError::Served { .. })));
        adopting.adopt().await.unwrap();
        assert_eq!(reading.known_until().await.unwrap(), None);
        adopting.close().await.unwrap();
        assert_eq!(beside(StoreAccess::Change).unwrap().known_until().await.unwrap(), None);
        assert!(matches!(open().map(|opened| opened.holds.operations), Ok(true)));
    }
}

#[tokio::test]
async fn a_cancelled_backup_leaves_nothing() {
    let place = Place::new().await;
    let copied = place.begun().copy(&|_, _| (), &|| false);
    assert!(matches!(copied, Err(BackupError::Interrupted)), "{copied:?}");
    assert!(place.copies().is_empty());
    let copied = place.begun().copy(&|_, _| (), &|| true).unwrap();
    assert_eq!(place.copies().len(), 1);
    assert!(matches!(copied.check(&|_| (), &|| false), Err(BackupError::Interrupted)));
    assert!(place.copies().is_empty());
}

#[tokio::test]
async fn a_damaged_copy_gets_no_name() {
    let place = Place::new().await;
    let mut copied = place.begun().copy(&|_, _| (), &|| true).unwrap();
    let page = vec![0xff; 8 * 1024];
    let bytes = page.len() as u64;
    let middle = copied.copy.file.metadata().unwrap().len() / bytes / 2 * bytes;
    copied.copy.file.seek(SeekFrom::Start(middle)).unwrap();
    copied.copy.file.write_all(&page.repeat(3)).unwrap();
    let checked = copied.check(&|_| (), &|| true);
    assert!(matches!(checked, Err(BackupError::Damaged { .. } | BackupError::Read { .. })), "{checked:?}");
    assert!(place.copies().is_empty());
}

#[tokio::test]
async fn a_name_that_was_taken_meanwhile_stays_whose_it_is() {
    let place = Place::new().await;
    let checked = place.begun().copy(&|_, _| (), &|| true).unwrap().check(&|_| (), &|| true).unwrap();
    fs::write(place.to(), "another's").unwrap();
    let published = checked.publish();
    assert!(matches!(published, Err(BackupError::Exists { .. })), "{published:?}");
    assert_eq!(fs::read(place.to()).unwrap(), b"another's");
    assert_eq!(place.copies(), [place.to()]);
}

#[test]
fn every_path_has_a_uri() {
    assert_eq!(unchanging(Path::new("/a/b-1.db")), "file:/a/b-1.db?immutable=1");
    assert_eq!(unchanging(Path::new("/ü ?#%")), "file:/%c3%bc%20%3f%23%25?immutable=1");
}

#[test]
fn parts_of_a_store_are_no_names() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    fs::write(path("store.db"), "").unwrap();
    let refused = |name: &str| refuse_taken(&path("store.db"), &path(name)).map_err(|error| error.to_string());
    assert_eq!(refused("copy.db"), Ok(()));
    assert!(refused("store.db").unwrap_err().contains("exists already"));
    for part in ["store.db-wal", "store.db-shm", "store.db-journal"] {
        assert!(refused(part).unwrap_err().ends_with("store.db: name another file"), "{part}");
    }
    fs::write(path("copy.db-wal"), "").unwrap();
    let stated = refused("copy.db").unwrap_err();
    assert!(stated.contains("copy.db-wal: ") && stated.ends_with("remove it, or name another file"), "{stated}");
}
