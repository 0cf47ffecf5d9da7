//! A file that loses all its text while the process runs is half a save far more often than a wish: editors and scripts
//! truncate a file and write it a moment later. A reload refuses it; at start an empty file says what it says. Where that
//! is nothing useful (a merchant without a key, a list without values), it is always refused, and not here.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use super::RuleSet;
use super::files::Role;
use super::problems::Findings;
use super::shelf::{RuleFile, RuleFiles};

const MESSAGE: &str = "the file is empty, and was not: a comment is enough to say that every default is meant";

/// The files that mean something when they are empty, and are not.
pub(super) fn filled(files: &RuleFiles) -> HashSet<Arc<Path>> {
    let filled = files.iter().filter(|(role, file)| may_be_empty(role) && !is_empty(file));
    filled.map(|(_, file)| Arc::clone(&file.path)).collect()
}

/// Notes every file that held text in the rules in force and is empty now.
pub(super) fn refuse(previous: Option<&RuleSet>, files: &RuleFiles, findings: &mut Findings) {
    let Some(previous) = previous else { return };
    for (role, file) in files {
        if may_be_empty(role) && is_empty(file) && previous.filled.contains(&file.path) {
            let id = findings.file(&file.path, Arc::clone(&file.text));
            findings.add(id, 0..0, MESSAGE);
        }
    }
}

/// Of these an empty one takes every default.
const fn may_be_empty(role: &Role) -> bool {
    matches!(role, Role::Gateway | Role::Dialect(_) | Role::PageTexts(_))
}

fn is_empty(file: &RuleFile) -> bool {
    file.text.trim_start_matches('\u{feff}').trim().is_empty()
}
