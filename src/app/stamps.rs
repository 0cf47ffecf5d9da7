//! What files can be told apart by without reading them.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use crate::rules::Stamp;

/// The stamps of some files at one time.
#[derive(Debug, Default)]
pub struct Stamps(Mutex<HashMap<PathBuf, Option<Stamp>>>);

impl Stamps {
    /// Takes the stamps of these files, and forgets all others.
    pub fn take(&self, paths: Vec<PathBuf>) {
        // Held meanwhile, so that of two calls at a time the later stamps stay.
        let mut stamps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *stamps = paths
            .into_iter()
            .map(|path| {
                let stamp = Stamp::at(&path);
                (path, stamp)
            })
            .collect();
    }

    /// Whether any of these files has another stamp now, or never had one taken.
    pub fn differ(&self, paths: &[PathBuf]) -> bool {
        let stamps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        paths.iter().any(|path| stamps.get(path) != Some(&Stamp::at(path)))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn every_way_of_changing_a_file_differs() {
        let directory = tempfile::tempdir().unwrap();
        let [file, link, other] = ["file", "link", "other"].map(|name| directory.path().join(name));
        std::os::unix::fs::symlink("file", &link).unwrap();
        let stamps = Stamps::default();
        assert!(stamps.differ(std::slice::from_ref(&link)), "it has no stamp yet");
        let changes: [(&str, &dyn Fn()); 5] = [
            ("made", &|| fs::write(&file, "1").unwrap()),
            ("longer", &|| fs::write(&file, "12").unwrap()),
            ("another file of the same time and length", &|| {
                fs::write(&other, "34").unwrap();
                let written = fs::metadata(&file).unwrap().modified().unwrap();
                fs::File::options().write(true).open(&other).unwrap().set_modified(written).unwrap();
                fs::rename(&other, &file).unwrap();
            }),
            ("the same length, and its time put back", &|| {
                let written = fs::metadata(&file).unwrap().modified().unwrap();
                // The time of a change has the kernel's granularity, not the clock's.
                let before = Stamp::at(&file);
                while Stamp::at(&file) == before {
                    fs::write(&file, "56").unwrap();
                    fs::File::options().write(true).open(&file).unwrap().set_modified(written).unwrap();
                }
            }),
            ("gone", &|| fs::remove_file(&file).unwrap()),
        ];
        for (what, change) in changes {
            stamps.take(vec![link.clone()]);
            assert!(!stamps.differ(std::slice::from_ref(&link)), "before: {what}");
            change();
            assert!(stamps.differ(std::slice::from_ref(&link)), "{what}");
        }
    }
}
