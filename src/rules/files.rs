//! The files of a rules directory: which ones count, read as of one moment, within bounds.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest, Sha256};

use super::problems::Findings;
use crate::domain::ShopCode;

/// The largest rule file, in bytes.
pub(super) const LARGEST_FILE: u64 = 4 << 20;

/// How many files a rules directory may have.
const MOST_FILES: usize = 100_000;

/// How often reading starts again because files changed meanwhile.
const READINGS: usize = 4;

/// What a file is, by where it stands and what it is called (contract section 2).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    /// `gateway.toml`.
    Gateway,
    /// `dialects/<name>.toml`.
    Dialect(String),
    /// `shops/<any>.json`, with its whole name.
    Schema(String),
    /// `lists/<name>.txt` or `lists/<merchant>/<name>.txt`.
    List {
        /// Whose it is; `None`: everybody's.
        merchant: Option<String>,
        /// Its name.
        name: String,
    },
    /// `shops/<code>.toml`.
    Shop(String),
    /// `merchants/<id>.toml`.
    Merchant(String),
}

/// A rule file's place and content.
#[derive(Debug, Clone)]
pub(super) struct RuleFile {
    /// Below the rules directory as the caller named it.
    pub path: PathBuf,
    /// The text; files that could not be read are not here.
    pub text: String,
}

/// All rule files that could be read.
pub(super) type RuleFiles = BTreeMap<Role, RuleFile>;

/// Reads a rules directory. Files that change while it is being read make it start again, so that what is returned was
/// all there at one moment.
pub(super) fn read(directory: &Path, findings: &mut Findings) -> RuleFiles {
    for reading in 1.. {
        let mut noted = Vec::new();
        let before = listing(directory, &mut noted);
        let files = contents(&before, &mut noted);
        if reading < READINGS && listing(directory, &mut Vec::new()) != before {
            continue;
        }
        for Note { path, before, message } in noted {
            let file = findings.file(&path, &before);
            findings.distrust(file);
            findings.add(file, before.len()..before.len(), message);
        }
        return files;
    }
    RuleFiles::new()
}

/// A hash over all file names and contents, 16 hexadecimal digits.
pub(super) fn version(directory: &Path, files: &RuleFiles) -> Box<str> {
    let mut hash = Sha256::new();
    for file in files.values() {
        let name = file.path.strip_prefix(directory).unwrap_or(&file.path);
        for part in [name.as_os_str().as_encoded_bytes(), file.text.as_bytes()] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
    }
    let digest = hash.finalize();
    let number = digest.iter().take(8).fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
    format!("{number:016x}").into()
}

/// What a file's content is told apart by without reading it.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    /// Where symbolic links lead.
    target: Option<PathBuf>,
    length: u64,
    modified: Option<SystemTime>,
}

type Listing = BTreeMap<Role, (PathBuf, Stamp)>;

/// What is wrong with a file as such.
struct Note {
    path: PathBuf,
    /// The text before the place that is wrong.
    before: String,
    message: String,
}

impl Note {
    fn new(path: &Path, message: impl Into<String>) -> Self {
        Self { path: path.into(), before: String::new(), message: message.into() }
    }
}

fn listing(directory: &Path, noted: &mut Vec<Note>) -> Listing {
    let mut listing = Listing::new();
    let mut take = |path: PathBuf, role: Role| {
        if let Ok(meta) = fs::metadata(&path)
            && meta.is_file()
            && listing.len() < MOST_FILES
        {
            let target = fs::canonicalize(&path).ok();
            listing.insert(role, (path, Stamp { target, length: meta.len(), modified: meta.modified().ok() }));
        }
    };
    if !directory.is_dir() {
        noted.push(Note::new(directory, "the rules directory is missing, or is no directory"));
        return listing;
    }
    take(directory.join("gateway.toml"), Role::Gateway);
    for name in names(&directory.join("dialects"), noted) {
        let path = directory.join("dialects").join(&name);
        if let Some(stem) = stem(&name, ".toml") {
            take(path, Role::Dialect(stem.into()));
        }
    }
    for name in names(&directory.join("merchants"), noted) {
        let path = directory.join("merchants").join(&name);
        if let Some(stem) = stem(&name, ".toml") {
            take(path, Role::Merchant(stem.into()));
        }
    }
    for name in names(&directory.join("shops"), noted) {
        let path = directory.join("shops").join(&name);
        if let Some(stem) = stem(&name, ".toml") {
            take(path, Role::Shop(stem.into()));
        } else if stem(&name, ".json").is_some() {
            take(path, Role::Schema(name));
        }
    }
    take_lists(&directory.join("lists"), noted, &mut take);
    listing
}

fn take_lists(lists: &Path, noted: &mut Vec<Note>, take: &mut impl FnMut(PathBuf, Role)) {
    for name in names(lists, noted) {
        let path = lists.join(&name);
        if let Some(stem) = stem(&name, ".txt") {
            take(path, Role::List { merchant: None, name: stem.into() });
        } else if ShopCode::new(&name).is_ok() && path.is_dir() {
            for own in names(&path, noted) {
                if let Some(stem) = stem(&own, ".txt") {
                    take(path.join(&own), Role::List { merchant: Some(name.clone()), name: stem.into() });
                }
            }
        }
    }
}

/// The part of a file's name before `ending`, when both are as the contract has them. Dot-names and editors'
/// left-overs (`x.toml~`, `#x.toml#`, `.x.toml.swp`) are not.
fn stem<'a>(name: &'a str, ending: &str) -> Option<&'a str> {
    name.strip_suffix(ending).filter(|stem| ShopCode::new(stem).is_ok())
}

/// The names in a directory that are text; a missing directory has none.
fn names(directory: &Path, noted: &mut Vec<Note>) -> Vec<String> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) => {
            if !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) {
                noted.push(Note::new(directory, format!("cannot be read: {error}")));
            }
            return Vec::new();
        }
    };
    let entries = entries.take(MOST_FILES).filter_map(Result::ok);
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

fn contents(listing: &Listing, noted: &mut Vec<Note>) -> RuleFiles {
    let mut files = RuleFiles::new();
    for (role, (path, _)) in listing {
        match text(path) {
            Ok(text) => {
                files.insert(role.clone(), RuleFile { path: path.clone(), text });
            }
            Err(note) => noted.push(note),
        }
    }
    files
}

fn text(path: &Path) -> Result<String, Note> {
    let bytes =
        read_bounded(path, LARGEST_FILE).map_err(|error| Note::new(path, format!("cannot be read: {error}")))?;
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let before = String::from_utf8_lossy(valid).into_owned();
        Note { path: path.into(), before, message: "is not UTF-8 from here".into() }
    })
}

/// Reads a file of at most `most` bytes.
pub(super) fn read_bounded(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = fs::File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("it is larger than {most} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_contracts_forms_count() {
        for (name, expected) in [("acme.toml", Some("acme")), ("a.b.toml", Some("a.b")), ("A-1_x.toml", Some("A-1_x"))]
        {
            assert_eq!(stem(name, ".toml"), expected, "{name}");
        }
        for name in [
            "",
            ".toml",
            ".acme.toml",
            ".acme.toml.swp",
            "acme.toml~",
            "#acme.toml#",
            ".#acme.toml",
            "acme.toml.bak",
            "acme.TOML",
            "acme toml",
            "my acme.toml",
            "4913",
            "é.toml",
            "..data",
            "acme.toml.tmp",
        ] {
            assert_eq!(stem(name, ".toml"), None, "{name}");
        }
    }
}
