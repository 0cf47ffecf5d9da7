//! Files that contain a secret of 32 bytes and are created if missing: the store's key and the default `pages.secret`
//! (contract section 2).

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::OpenError;
use crate::clock::Random;
use crate::domain::Secret;
use crate::store_settings::StoreKeys;

/// Reads the 32 bytes that `path` contains in base64, ignoring surrounding whitespace. If the file is missing and
/// `may_create` is set, creates it with 32 random bytes and mode 0600. Creation is atomic, survives a crash, and never
/// replaces a file that another process created meanwhile.
///
/// # Errors
/// The file is missing and must not be created, cannot be read or written, or has other contents.
pub fn secret_file(path: &Path, may_create: bool, random: &dyn Random) -> Result<[u8; 32], OpenError> {
    match fs::read_to_string(path) {
        Ok(text) => decode(path, &text),
        Err(error) if error.kind() == io::ErrorKind::NotFound && may_create => create(path, random),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(OpenError::KeyMissing { path: path.into() }),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(OpenError::KeyFile { path: path.into() }),
        Err(error) => Err(OpenError::io(path, "read", error)),
    }
}

/// Creates a directory and its missing parents, accessible to their owner only.
pub(super) fn private_directory(path: &Path) -> Result<(), OpenError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|error| OpenError::io(path, "create the directory", error))
}

/// Returns the directory of a file.
pub(super) fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn decode(path: &Path, text: &str) -> Result<[u8; 32], OpenError> {
    let bytes = STANDARD.decode(text.trim_ascii()).ok().and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or_else(|| OpenError::KeyFile { path: path.into() })
}

fn create(path: &Path, random: &dyn Random) -> Result<[u8; 32], OpenError> {
    let failed = |error| OpenError::io(path, "create", error);
    let mut secret = [0; 32];
    random.fill(&mut secret);
    let directory = directory_of(path);
    private_directory(directory)?;
    let temporary = temporary_beside(path, random.number());
    let written = write_durably(&temporary, &secret).and_then(|()| publish(&temporary, path));
    // On success the file has its final name as well; a left-over temporary file is harmless.
    let _ = fs::remove_file(&temporary);
    match written {
        Ok(()) => {
            File::open(directory).and_then(|directory| directory.sync_all()).map_err(failed)?;
            Ok(secret)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let text = fs::read_to_string(path).map_err(|error| OpenError::io(path, "read", error))?;
            decode(path, &text)
        }
        Err(error) => Err(failed(error)),
    }
}

/// Returns a name in the same directory that no other process uses.
pub(super) fn temporary_beside(path: &Path, number: u64) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{number:016x}"));
    path.with_file_name(name)
}

fn write_durably(path: &Path, secret: &[u8; 32]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    writeln!(file, "{}", STANDARD.encode(secret))?;
    file.sync_all()
}

/// Gives the finished file its final name. A hard link fails if the file exists, where a rename would replace a key
/// that another process has just used; the rename is for file systems without hard links.
fn publish(temporary: &Path, path: &Path) -> io::Result<()> {
    match fs::hard_link(temporary, path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => fs::rename(temporary, path),
        linked => linked,
    }
}

/// Returns the keys of the rules, or the key of the configured key file, which is created for a new store (contract
/// section 2).
pub(in crate::store) fn wrapping_keys(
    path: &Path,
    keys: &StoreKeys,
    new: bool,
    random: &dyn Random,
) -> Result<Vec<Secret>, OpenError> {
    match &keys.create_at {
        _ if !keys.keys.is_empty() => Ok(keys.keys.clone()),
        Some(file) => Ok(vec![Secret::new(&secret_file(file, new, random)?)]),
        None => Err(OpenError::NoKey { path: path.into() }),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::clock::SystemRandomness;

    #[test]
    fn a_missing_secret_is_made_once_and_for_its_owner_only() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secrets/deep/store.key");
        let random = SystemRandomness::default();
        assert!(matches!(secret_file(&path, false, &random), Err(OpenError::KeyMissing { .. })));
        let made = secret_file(&path, true, &random).unwrap();
        assert_eq!(secret_file(&path, true, &random).unwrap(), made);
        assert_eq!(secret_file(&path, false, &random).unwrap(), made);
        let permissions = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(permissions(&path), 0o600);
        assert_eq!(permissions(path.parent().unwrap()), 0o700);
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{}\n", STANDARD.encode(made)));
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn concurrent_creators_agree_on_one_secret() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.key");
        let make = || secret_file(&path, true, &SystemRandomness::default()).unwrap();
        let secrets: Vec<_> = std::thread::scope(|scope| {
            let creators: Vec<_> = (0..8).map(|_| scope.spawn(make)).collect();
            creators.into_iter().map(|creator| creator.join().unwrap()).collect()
        });
        assert!(secrets.iter().all(|secret| *secret == secrets[0]));
    }

    #[test]
    fn other_contents_are_refused_without_being_shown() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.key");
        for text in ["", "c2hvcnQ=\n", "not base64 at all", "\n"] {
            fs::write(&path, text).unwrap();
            let error = secret_file(&path, true, &SystemRandomness::default()).unwrap_err().to_string();
            assert!(error.contains("store.key") && error.contains("base64"), "{error}");
            assert!(text.trim().is_empty() || !error.contains(text.trim()), "{error}");
        }
    }
}
