//! The files of a rules directory: which ones count, within bounds.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::problems::Diagnostics;
use super::stamp::FileMeta;
use crate::domain::{ShopCode, wide};

/// The largest rule file, in bytes.
pub(super) const LARGEST_FILE: u64 = 4 << 20;

/// How many files a rules directory may have.
const MOST_FILES: usize = 100_000;

/// How many bytes all rule files may have together: their texts are kept.
pub(super) const MOST_BYTES: u64 = 256 << 20;

/// How often reading starts again because files changed meanwhile.
const READINGS: usize = 4;

/// How many names all directories may have together, whatever they are, for each file that may be read.
const NAMES_A_FILE: usize = 4;

/// What a file is, by where it stands and what it is called (contract section 2).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum FileRole {
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
    /// `pages/<language tag>.toml`.
    PageTexts(String),
}

/// The files that are there, each with its stamp.
type Listing = BTreeMap<FileRole, (Arc<Path>, FileMeta)>;

/// What tells a file's content apart: its SHA-256.
pub(super) type ContentHash = [u8; 32];

/// Returns the hash of a content.
pub(super) fn content_hash(content: &[u8]) -> ContentHash {
    Sha256::digest(content).into()
}

/// A rule file's place and content.
#[derive(Debug)]
pub(super) struct RuleFile {
    /// Below the rules directory as the caller named it.
    pub path: Arc<Path>,
    /// The text; files that could not be read are not here.
    pub text: Arc<str>,
    /// Of the text.
    pub hash: ContentHash,
}

/// All rule files that could be read.
pub(super) type RuleFiles = BTreeMap<FileRole, RuleFile>;

/// The names and stamps of the rule files at one moment, and what is wrong with the names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ListedFile {
    files: Listing,
    noted: Vec<Note>,
}

impl ListedFile {
    /// Lists a rules directory.
    pub(super) fn of(directory: &Path) -> Self {
        let mut noted = Vec::new();
        let files = listing(directory, &mut noted);
        Self { files, noted }
    }

    /// Returns the stamp of a file that was listed.
    pub(super) fn stamp(&self, role: &FileRole) -> Option<FileMeta> {
        self.files.get(role).map(|(_, stamp)| *stamp)
    }

    fn read(&self) -> (RuleFiles, Vec<Note>) {
        let (mut files, mut unreadable) = (RuleFiles::new(), Vec::new());
        for (role, (path, _)) in &self.files {
            match text(path) {
                Ok(text) => {
                    let hash = content_hash(text.as_bytes());
                    files.insert(role.clone(), RuleFile { path: Arc::clone(path), text: text.into(), hash });
                }
                Err(note) => unreadable.push(note),
            }
        }
        (files, unreadable)
    }
}

/// Reads the rule files, and how they were listed just before. Files that come, go or change while they are being read make
/// it start again, so that what is returned was all there at one moment.
pub(super) fn read(directory: &Path, findings: &mut Diagnostics) -> (RuleFiles, ListedFile) {
    let mut listed = ListedFile::of(directory);
    let mut readings = 1;
    loop {
        let (files, unreadable) = listed.read();
        let after = ListedFile::of(directory);
        if after == listed || readings == READINGS {
            for Note { path, before, message } in listed.noted.iter().chain(&unreadable) {
                let file = findings.file(path, before.as_str());
                findings.distrust(file);
                findings.add(file, before.len()..before.len(), message);
            }
            return (files, listed);
        }
        listed = after;
        readings += 1;
    }
}

/// Returns a hash over all file names and contents, and over what is known of files elsewhere; 16 hexadecimal digits.
pub(super) fn version(directory: &Path, files: &RuleFiles, elsewhere: impl Iterator<Item = ContentHash>) -> Box<str> {
    let mut hash = Sha256::new();
    for file in files.values() {
        let name = file.path.strip_prefix(directory).unwrap_or(&file.path).as_os_str().as_encoded_bytes();
        hash.update(wide(name.len()).to_be_bytes());
        hash.update(name);
        hash.update(file.hash);
    }
    for content in elsewhere {
        hash.update(content);
    }
    let digest = hash.finalize();
    let number = digest.iter().take(8).fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
    format!("{number:016x}").into()
}

/// What is wrong with a file as such.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Note {
    pub path: PathBuf,
    /// The text before the place that is wrong.
    pub before: String,
    pub message: String,
}

impl Note {
    fn new(path: &Path, message: impl Into<String>) -> Self {
        Self { path: path.into(), before: String::new(), message: message.into() }
    }
}

/// The rule files that are there; what has the name of one and cannot be one is noted.
fn listing(directory: &Path, noted: &mut Vec<Note>) -> Listing {
    let mut lister = Lister::new(noted, MOST_FILES);
    lister.all(directory);
    lister.listing
}

/// Finds the rule files. What has the name of one and cannot be one is noted: left out in silence it would be a
/// merchant or a shop that is gone.
struct Lister<'a> {
    listing: Listing,
    noted: &'a mut Vec<Note>,
    most: usize,
    bytes: u64,
    /// Names that were seen in directories.
    names: usize,
    /// What there is too much of, each said once.
    too_much: HashSet<String>,
}

impl<'a> Lister<'a> {
    fn new(noted: &'a mut Vec<Note>, most: usize) -> Self {
        let (listing, too_much) = (Listing::new(), HashSet::new());
        Self { listing, noted, most, bytes: 0, names: 0, too_much }
    }

    fn all(&mut self, directory: &Path) {
        if !directory.is_dir() {
            self.note(directory, "the rules directory is missing, or is no directory");
            return;
        }
        self.take(directory.join("gateway.toml"), FileRole::Gateway);
        self.each(&directory.join("dialects"), |name| stem(name, ".toml").map(|stem| FileRole::Dialect(stem.into())));
        self.each(&directory.join("merchants"), |name| stem(name, ".toml").map(|stem| FileRole::Merchant(stem.into())));
        self.each(&directory.join("shops"), |name| match stem(name, ".toml") {
            Some(stem) => Some(FileRole::Shop(stem.into())),
            None => stem(name, ".json").map(|_| FileRole::Schema(name.into())),
        });
        self.lists(&directory.join("lists"));
        self.each(&directory.join("pages"), |name| stem(name, ".toml").map(|stem| FileRole::PageTexts(stem.into())));
    }

    fn each(&mut self, directory: &Path, role: impl Fn(&str) -> Option<FileRole>) {
        for name in self.names(directory) {
            if let Some(role) = role(&name) {
                self.take(directory.join(&name), role);
            }
        }
    }

    fn lists(&mut self, lists: &Path) {
        for name in self.names(lists) {
            let path = lists.join(&name);
            if let Some(stem) = stem(&name, ".txt") {
                self.take(path, FileRole::List { merchant: None, name: stem.into() });
            } else if ShopCode::new(&name).is_ok() && self.meta(&path).is_some_and(|meta| meta.is_dir()) {
                self.each(&path, |own| {
                    let stem = stem(own, ".txt")?;
                    Some(FileRole::List { merchant: Some(name.clone()), name: stem.into() })
                });
            }
        }
    }

    fn take(&mut self, path: PathBuf, role: FileRole) {
        let Some(meta) = self.meta(&path) else { return };
        if !meta.is_file() {
            self.note(&path, "is not a regular file");
            return;
        }
        // A file that is too large by itself is told apart from files that are too many, and not read either.
        let bytes = self.bytes.saturating_add(meta.len().min(LARGEST_FILE));
        if self.listing.len() >= self.most {
            self.note_once(&path, format!("there are more than {} rule files", self.most));
        } else if bytes > MOST_BYTES {
            self.note_once(&path, format!("the rule files have more than {} MiB together", MOST_BYTES >> 20));
        } else {
            self.bytes = bytes;
            self.listing.insert(role, (path.into(), FileMeta::of(&meta)));
        }
    }

    /// What a path leads to; `None` when nothing has the name (any more), or when that is noted.
    fn meta(&mut self, path: &Path) -> Option<fs::Metadata> {
        match fs::metadata(path) {
            Ok(meta) => Some(meta),
            Err(error) => {
                if !is_absent(path) {
                    self.note(path, format!("cannot be read: {error}"));
                }
                None
            }
        }
    }

    /// The names in a directory that are text; a missing directory has none.
    fn names(&mut self, directory: &Path) -> Vec<String> {
        let entries = match fs::read_dir(directory) {
            Ok(entries) => entries,
            Err(error) => {
                if !is_absent(directory) {
                    self.note(directory, format!("cannot be read: {error}"));
                }
                return Vec::new();
            }
        };
        let mut names = Vec::new();
        for (index, entry) in entries.enumerate() {
            self.names += 1;
            match entry {
                Ok(_) if self.names > self.most * NAMES_A_FILE => {
                    let most = self.most * NAMES_A_FILE;
                    self.note_once(directory, format!("the rules directory has more than {most} entries"));
                    break;
                }
                Ok(_) if index >= self.most => {
                    self.note(directory, format!("has more than {} entries", self.most));
                    break;
                }
                Ok(entry) => names.extend(entry.file_name().into_string()),
                Err(error) => {
                    self.note(directory, format!("cannot be read: {error}"));
                    break;
                }
            }
        }
        names
    }

    fn note_once(&mut self, path: &Path, message: String) {
        if self.too_much.insert(message.clone()) {
            self.note(path, message);
        }
    }

    fn note(&mut self, path: &Path, message: impl Into<String>) {
        self.noted.push(Note::new(path, message));
    }
}

/// Whether nothing has this name: not even a symbolic link that leads nowhere.
pub(super) fn is_absent(path: &Path) -> bool {
    fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Whether a file of this name is read, in a directory where such files belong.
pub(super) fn is_rule_name(name: &str) -> bool {
    [".toml", ".json", ".txt"].iter().any(|ending| stem(name, ending).is_some())
}

/// The part of a file's name before `ending`, when both are as the contract has them. Dot-names and editors'
/// left-overs (`x.toml~`, `#x.toml#`, `.x.toml.swp`) are not.
fn stem<'a>(name: &'a str, ending: &str) -> Option<&'a str> {
    name.strip_suffix(ending).filter(|stem| ShopCode::new(stem).is_ok())
}

/// The text of a file.
fn text(path: &Path) -> Result<String, Note> {
    let bytes =
        read_bounded(path, LARGEST_FILE).map_err(|error| Note::new(path, format!("cannot be read: {error}")))?;
    String::from_utf8(bytes).map_err(|error| {
        let (valid, _) = error.as_bytes().split_at(error.utf8_error().valid_up_to());
        let before = String::from_utf8_lossy(valid).into_owned();
        Note { path: path.into(), before, message: "is not UTF-8 from here".into() }
    })
}

/// Reads a file of at most `most` bytes.
pub(super) fn read_bounded(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    // Looked at before it is opened too: opening a FIFO waits for its writer.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let file = fs::File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if wide(bytes.len()) > most {
        return Err(io::Error::other(format!("it is larger than {most} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_files_are_a_problem() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["gateway.toml", "merchants/a.toml", "merchants/b.toml", "merchants/c.toml", "shops/s.toml"] {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let messages = |most| {
            let mut noted = Vec::new();
            Lister::new(&mut noted, most).all(directory.path());
            noted.into_iter().map(|note| note.message).collect::<Vec<_>>()
        };
        assert_eq!(messages(2), ["has more than 2 entries", "there are more than 2 rule files"]);
        assert_eq!(messages(4), ["there are more than 4 rule files"]);
        assert!(messages(5).is_empty());
    }

    #[test]
    fn too_many_bytes_are_a_problem() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("lists")).unwrap();
        fs::write(directory.path().join("gateway.toml"), "").unwrap();
        let files = usize::try_from(MOST_BYTES / LARGEST_FILE).unwrap() + 3;
        for n in 0..files {
            // A file with a hole is as long as it says, and takes no room.
            let file = fs::File::create(directory.path().join(format!("lists/l{n}.txt"))).unwrap();
            file.set_len(LARGEST_FILE).unwrap();
        }
        let mut noted = Vec::new();
        let listing = listing(directory.path(), &mut noted);
        let messages: Vec<_> = noted.into_iter().map(|note| note.message).collect();
        assert_eq!(messages, ["the rule files have more than 256 MiB together"]);
        assert_eq!(listing.len(), 1 + files - 3);
    }

    #[test]
    fn names_that_are_no_files_are_bounded_too() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["lists/a", "lists/b", "lists/c", "lists/d", "lists/e"] {
            for inside in ["1", "2"] {
                fs::create_dir_all(directory.path().join(name).join(inside)).unwrap();
            }
        }
        let mut noted = Vec::new();
        Lister::new(&mut noted, 2).all(directory.path());
        let messages: Vec<_> = noted.into_iter().map(|note| note.message).collect();
        assert_eq!(messages, ["has more than 2 entries"]);
        let mut noted = Vec::new();
        Lister::new(&mut noted, 5).all(directory.path());
        assert!(noted.is_empty());
        fs::create_dir_all(directory.path().join("lists/a/3")).unwrap();
        fs::create_dir_all(directory.path().join("lists/a/4")).unwrap();
        for name in ["merchants", "shops"] {
            for n in 0..5 {
                fs::create_dir_all(directory.path().join(format!("{name}/x{n}"))).unwrap();
            }
        }
        let mut noted = Vec::new();
        Lister::new(&mut noted, 5).all(directory.path());
        let messages: Vec<_> = noted.into_iter().map(|note| note.message).collect();
        assert_eq!(messages, ["the rules directory has more than 20 entries"]);
    }

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
