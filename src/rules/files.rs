//! Finds and reads the files of a rules directory, within bounds on their number and size.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::file_meta::FileMeta;
use super::problems::{Diagnostics, ShownKeys};
use crate::domain::{ShopCode, wide};

/// The largest rule file, in bytes.
pub(super) const LARGEST_FILE: u64 = 4 << 20;

/// The most rule files in a rules directory.
const MOST_FILES: usize = 100_000;

/// The most bytes of all rule files together, whose texts are kept in memory.
pub(super) const MOST_BYTES: u64 = 256 << 20;

/// The most attempts to read all files without a change in between.
const MOST_ATTEMPTS: usize = 4;

/// The most directory entries of any kind, for each file that may be read.
const NAMES_PER_FILE: usize = 4;

/// The most files that are not read and reported one by one.
const MOST_STRAYS: usize = 100;

/// The most entries, and levels of directories, that are searched for strays outside the directories of rule files.
const MOST_ELSEWHERE: usize = 10_000;
const DEPTH_ELSEWHERE: usize = 4;

/// The rule file in the rules directory itself.
pub(super) const GATEWAY: &str = "gateway.toml";

/// The directories of rule files, with the names of files that are read there.
const DIRECTORIES: [(&str, &str); 5] = [
    ("dialects", "`<name>.toml`"),
    ("merchants", "`<id>.toml`"),
    ("shops", "`<code>.toml`, or `<name>.json` for a schema"),
    ("lists", "`<name>.txt`"),
    ("pages", "`<language>.toml`"),
];

/// The role of a file, given by its directory and name (contract section 2).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum FileRole {
    /// `gateway.toml`.
    Gateway,
    /// `dialects/<name>.toml`.
    Dialect(String),
    /// `shops/<any>.json`, with its full name.
    Schema(String),
    /// `lists/<name>.txt` or `lists/<merchant>/<name>.txt`.
    List {
        /// The merchant that it belongs to; `None`: common to all.
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

/// The rule files that exist, each with its stamp.
type Listing = BTreeMap<FileRole, (Arc<Path>, FileMeta)>;

/// The SHA-256 of a file's content.
pub(super) type ContentHash = [u8; 32];

/// Returns the hash of a file's content.
pub(super) fn content_hash(content: &[u8]) -> ContentHash {
    Sha256::digest(content).into()
}

/// The path and content of a rule file.
#[derive(Debug)]
pub(super) struct RuleFile {
    /// The path, which begins with the rules directory as the caller named it.
    pub path: Arc<Path>,
    /// The text. Files that could not be read have no `RuleFile`.
    pub text: Arc<str>,
    /// The hash of the text.
    pub hash: ContentHash,
}

/// The rule files that could be read.
pub(super) type RuleFiles = BTreeMap<FileRole, RuleFile>;

/// The names and stamps of the rule files at one moment, and the problems found while listing them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FileListing {
    files: Listing,
    notes: Vec<Note>,
    /// Files that look like rule files and are not read.
    strays: BTreeSet<PathBuf>,
}

impl FileListing {
    /// Lists a rules directory.
    pub(super) fn of(directory: &Path) -> Self {
        let mut notes = Vec::new();
        let mut lister = Lister::new(&mut notes, MOST_FILES);
        lister.list(directory);
        let (files, strays) = (lister.listing, lister.strays);
        Self { files, notes, strays }
    }

    /// Warns of the files that are not read.
    fn warn_of_strays(&self, directory: &Path, diagnostics: &mut Diagnostics) {
        for path in self.strays.iter().take(MOST_STRAYS) {
            let file = diagnostics.file(path, "");
            diagnostics.warn(file, 0..0, "the file is not read", Some(expected_name(directory, path)));
        }
        if let Some(more) = self.strays.len().checked_sub(MOST_STRAYS).filter(|more| *more > 0) {
            let file = diagnostics.file(directory, "");
            diagnostics.warn(file, 0..0, format!("{more} more files are not read"), None);
        }
    }

    /// Reports whether a file of `before` is missing here.
    pub(super) fn lacks_any_of(&self, before: &Self) -> bool {
        before.files.keys().any(|role| !self.files.contains_key(role))
    }

    /// Returns the directories of the listed files, and those in which such files would be found.
    pub(super) fn directories(&self, directory: &Path) -> BTreeSet<PathBuf> {
        let known = DIRECTORIES.iter().map(|(name, _)| directory.join(name));
        let found = self.files.values().filter_map(|(path, _)| path.parent().map(Path::to_owned));
        known.chain(found).chain([directory.to_owned()]).collect()
    }

    /// Returns the stamp of a listed file.
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

/// Reads the rule files and returns them with their listing. Reads again when files appeared, vanished or changed
/// meanwhile, so that all returned files existed at one moment; after [`MOST_ATTEMPTS`] readings the last one is used
/// all the same.
pub(super) fn read(directory: &Path, diagnostics: &mut Diagnostics) -> (RuleFiles, FileListing) {
    let mut listed = FileListing::of(directory);
    let mut attempts = 1;
    loop {
        let (files, unreadable) = listed.read();
        let after = FileListing::of(directory);
        if after == listed || attempts == MOST_ATTEMPTS {
            listed.notes.iter().chain(&unreadable).for_each(|note| note.add_to(diagnostics));
            listed.warn_of_strays(directory, diagnostics);
            return (files, listed);
        }
        listed = after;
        attempts += 1;
    }
}

/// Returns the version of the rules: 16 hexadecimal digits of a hash over the names and contents of all files, and over
/// the given hashes of external files.
pub(super) fn version(directory: &Path, files: &RuleFiles, external: impl Iterator<Item = ContentHash>) -> Box<str> {
    let mut hash = Sha256::new();
    for file in files.values() {
        let name = file.path.strip_prefix(directory).unwrap_or(&file.path).as_os_str().as_encoded_bytes();
        hash.update(wide(name.len()).to_be_bytes());
        hash.update(name);
        hash.update(file.hash);
    }
    for content in external {
        hash.update(content);
    }
    let digest = hash.finalize();
    let number = digest.iter().take(8).fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
    format!("{number:016x}").into()
}

/// A problem of a file as a whole, found before it is parsed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Note {
    pub path: PathBuf,
    /// The text before the problem, which gives its position.
    pub before: String,
    pub message: String,
}

impl Note {
    fn new(path: &Path, message: impl Into<String>) -> Self {
        Self { path: path.into(), before: String::new(), message: message.into() }
    }

    pub(super) fn add_to(&self, diagnostics: &mut Diagnostics) {
        let Self { path, before, message } = self;
        let file = diagnostics.file(path, before.as_str());
        diagnostics.distrust(file, Some(ShownKeys::new()));
        diagnostics.add(file, before.len()..before.len(), message);
    }
}

/// Finds the rule files. An entry that has the name of one and cannot be one is noted: silently ignored, it would be a
/// merchant or a shop that is gone.
struct Lister<'a> {
    listing: Listing,
    notes: &'a mut Vec<Note>,
    strays: BTreeSet<PathBuf>,
    most: usize,
    bytes: u64,
    /// The number of directory entries seen.
    names: usize,
    /// The number of entries seen outside the directories of rule files.
    external: usize,
    /// The messages that are reported only once.
    noted_once: HashSet<String>,
}

impl<'a> Lister<'a> {
    fn new(notes: &'a mut Vec<Note>, most: usize) -> Self {
        let (listing, strays, noted_once) = (Listing::new(), BTreeSet::new(), HashSet::new());
        Self { listing, notes, strays, most, bytes: 0, names: 0, external: 0, noted_once }
    }

    fn list(&mut self, directory: &Path) {
        if !directory.is_dir() {
            self.note(directory, "the rules directory is missing, or is not a directory");
            return;
        }
        self.add(directory.join(GATEWAY), FileRole::Gateway);
        self.add_each(&directory.join("dialects"), |name| {
            stem(name, ".toml").map(|stem| FileRole::Dialect(stem.into()))
        });
        self.add_each(&directory.join("merchants"), |name| {
            stem(name, ".toml").map(|stem| FileRole::Merchant(stem.into()))
        });
        self.add_each(&directory.join("shops"), |name| match stem(name, ".toml") {
            Some(stem) => Some(FileRole::Shop(stem.into())),
            None => stem(name, ".json").map(|_| FileRole::Schema(name.into())),
        });
        self.lists(&directory.join("lists"));
        self.add_each(&directory.join("pages"), |name| {
            stem(name, ".toml").map(|stem| FileRole::PageTexts(stem.into()))
        });
        self.external(directory, DEPTH_ELSEWHERE);
    }

    fn add_each(&mut self, directory: &Path, role: impl Fn(&str) -> Option<FileRole>) {
        for name in self.names(directory) {
            match role(&name) {
                Some(role) => self.add(directory.join(&name), role),
                None => self.other(directory.join(&name)),
            }
        }
    }

    fn lists(&mut self, lists: &Path) {
        for name in self.names(lists) {
            let path = lists.join(&name);
            if let Some(stem) = stem(&name, ".txt") {
                self.add(path, FileRole::List { merchant: None, name: stem.into() });
            } else if ShopCode::new(&name).is_ok() && self.meta(&path).is_some_and(|meta| meta.is_dir()) {
                self.add_each(&path, |own| {
                    let stem = stem(own, ".txt")?;
                    Some(FileRole::List { merchant: Some(name.clone()), name: stem.into() })
                });
            } else {
                self.other(path);
            }
        }
    }

    /// Takes an entry of a directory of rule files that is no rule file.
    fn other(&mut self, path: PathBuf) {
        if !is_stray(&path) {
            return;
        }
        match fs::symlink_metadata(&path) {
            Ok(meta) if meta.is_dir() => self.external(&path, DEPTH_ELSEWHERE - 1),
            // A link to a directory is not followed: it may lead out of the rules.
            Ok(meta) if meta.is_symlink() && path.is_dir() => {}
            Ok(_) => drop(self.strays.insert(path)),
            Err(_) => {}
        }
    }

    /// Finds TOML files outside the directories of rule files. What cannot be read there is no problem of the rules.
    fn external(&mut self, directory: &Path, depth: usize) {
        let is_root = depth == DEPTH_ELSEWHERE;
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            self.external += 1;
            if self.external > MOST_ELSEWHERE {
                return;
            }
            let (path, name) = (entry.path(), entry.file_name());
            let is_known = is_root && (name == GATEWAY || is_rules_directory(&name));
            let Ok(kind) = entry.file_type() else { continue };
            if is_known || !is_stray(&path) {
                continue;
            }
            if kind.is_dir() && depth > 1 {
                self.external(&path, depth - 1);
            } else if !kind.is_dir() && path.extension().is_some_and(|ending| ending == "toml") {
                self.strays.insert(path);
            }
        }
    }

    fn add(&mut self, path: PathBuf, role: FileRole) {
        let Some(meta) = self.meta(&path) else { return };
        if !meta.is_file() {
            self.note(&path, "is not a regular file");
            return;
        }
        // Reading reports a file that is too large by itself, so that it counts here only up to the limit of one file.
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

    /// Returns the metadata of a path's target; `None` when nothing has the name (any more), or after noting a problem.
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

    /// Returns the names in a directory that are UTF-8; none when the directory is missing.
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
                Ok(_) if self.names > self.most * NAMES_PER_FILE => {
                    let most = self.most * NAMES_PER_FILE;
                    self.note_once(directory, format!("the rules directory has more than {most} entries"));
                    break;
                }
                Ok(_) if index >= self.most => {
                    self.note(directory, format!("has more than {} entries", self.most));
                    break;
                }
                Ok(entry) => match entry.file_name().into_string() {
                    Ok(name) => names.push(name),
                    Err(name) => self.other(directory.join(name)),
                },
                Err(error) => {
                    self.note(directory, format!("cannot be read: {error}"));
                    break;
                }
            }
        }
        names
    }

    fn note_once(&mut self, path: &Path, message: String) {
        if self.noted_once.insert(message.clone()) {
            self.note(path, message);
        }
    }

    fn note(&mut self, path: &Path, message: impl Into<String>) {
        self.notes.push(Note::new(path, message));
    }
}

/// Reports whether nothing has this name, not even a dangling symbolic link.
pub(super) fn is_absent(path: &Path) -> bool {
    fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Reports whether an entry of this name in the rules directory is a directory of rule files.
fn is_rules_directory(name: &OsStr) -> bool {
    DIRECTORIES.iter().any(|(known, _)| name == *known)
}

/// Reports whether a file of this name, in a directory of rule files, is read, or reported when it is not: README, dot-names
/// and editors' left-overs are neither.
fn is_stray(path: &Path) -> bool {
    const LEFT_OVERS: [&str; 9] = ["bak", "new", "old", "orig", "part", "rej", "save", "swp", "tmp"];
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let ending = path.extension().unwrap_or_default();
    let is_left_over = name.starts_with(['.', '#'])
        || name.ends_with(['~', '#'])
        || name.contains("___jb_")
        || name.chars().all(|c| c.is_ascii_digit())
        || LEFT_OVERS.iter().any(|left_over| ending == *left_over);
    !is_left_over && !name.starts_with("README")
}

/// Returns which names are read where a stray is.
fn expected_name(directory: &Path, stray: &Path) -> String {
    let below = stray.strip_prefix(directory).unwrap_or(stray);
    let parent = below.parent().unwrap_or(Path::new(""));
    let known =
        DIRECTORIES.iter().find(|(name, _)| parent == Path::new(name) || *name == "lists" && parent.starts_with(name));
    match known {
        Some((name, files)) => {
            format!("files of `{name}` are named {files}, with letters, digits, `.`, `_` and `-` alone")
        }
        None => "rule files are `gateway.toml`, and those in `dialects`, `merchants`, `shops`, `lists` and `pages`"
            .to_owned(),
    }
}

/// Returns the part of a file's name before `ending`, when both have the contract's form. Dot-names and editors'
/// leftovers (`x.toml~`, `#x.toml#`, `.x.toml.swp`) have not.
fn stem<'a>(name: &'a str, ending: &str) -> Option<&'a str> {
    name.strip_suffix(ending).filter(|stem| ShopCode::new(stem).is_ok())
}

/// Reads the text of a file.
pub(super) fn text(path: &Path) -> Result<String, Note> {
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
    // Checked before opening as well, because opening a FIFO waits for a writer.
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
            let mut notes = Vec::new();
            Lister::new(&mut notes, most).list(directory.path());
            notes.into_iter().map(|note| note.message).collect::<Vec<_>>()
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
            // A sparse file has this length and takes no disk space.
            let file = fs::File::create(directory.path().join(format!("lists/l{n}.txt"))).unwrap();
            file.set_len(LARGEST_FILE).unwrap();
        }
        let mut notes = Vec::new();
        let mut lister = Lister::new(&mut notes, MOST_FILES);
        lister.list(directory.path());
        let listing = lister.listing;
        let messages: Vec<_> = notes.into_iter().map(|note| note.message).collect();
        assert_eq!(messages, ["the rule files have more than 256 MiB together"]);
        assert_eq!(listing.len(), 1 + files - 3);
    }

    #[test]
    fn directory_entries_are_bounded_too() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["lists/a", "lists/b", "lists/c", "lists/d", "lists/e"] {
            for inside in ["1", "2"] {
                fs::create_dir_all(directory.path().join(name).join(inside)).unwrap();
            }
        }
        let mut notes = Vec::new();
        Lister::new(&mut notes, 2).list(directory.path());
        let messages: Vec<_> = notes.into_iter().map(|note| note.message).collect();
        assert_eq!(messages, ["has more than 2 entries"]);
        let mut notes = Vec::new();
        Lister::new(&mut notes, 5).list(directory.path());
        assert!(notes.is_empty());
        fs::create_dir_all(directory.path().join("lists/a/3")).unwrap();
        fs::create_dir_all(directory.path().join("lists/a/4")).unwrap();
        for name in ["merchants", "shops"] {
            for n in 0..5 {
                fs::create_dir_all(directory.path().join(format!("{name}/x{n}"))).unwrap();
            }
        }
        let mut notes = Vec::new();
        Lister::new(&mut notes, 5).list(directory.path());
        let messages: Vec<_> = notes.into_iter().map(|note| note.message).collect();
        assert_eq!(messages, ["the rules directory has more than 20 entries"]);
    }

    #[test]
    fn only_names_of_the_contracts_form_count() {
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
