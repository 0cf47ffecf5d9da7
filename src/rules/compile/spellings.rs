//! Values that can be spelled in several ways, for the comparison of rule files: keys name these functions in their
//! declarations.

use std::path::Path;

use super::folded;
use crate::rules::files::{LARGEST_FILE, content_hash, read_bounded};
use crate::rules::setting::{SettingEntry, plain};
use crate::store_settings::PostgresUrl;

/// Returns the text of a path, `x/..` folded.
pub(super) fn folded_text(path: &str) -> String {
    folded(Path::new(path)).display().to_string()
}

/// Reads the path of a file.
pub(super) fn path(text: &str, _: &Path) -> SettingEntry {
    SettingEntry::spelled(text, folded_text(text))
}

/// Reads the path of a file with trusted certificates, which are compared, too.
pub(super) fn certificates(text: &str, folder: &Path) -> SettingEntry {
    let content = read_bounded(&folder.join(text), LARGEST_FILE).ok();
    let hash = content.map(|bytes| content_hash(&bytes));
    SettingEntry::spelled(text, format!("{} {hash:?}", folded_text(text)))
}

/// Reads `store.url`. A database's is shown without user, password and parameters.
pub(super) fn store_url(text: &str, _: &Path) -> SettingEntry {
    if let Ok(url) = PostgresUrl::parse(text, |roots| folded(Path::new(roots))) {
        let config = url.config();
        let same = format!("{config:?} {:?} {:?} {:?}", config.get_password(), url.tls(), url.roots());
        return SettingEntry { same, shown: plain(&url.to_string()) };
    }
    let (scheme, path) = text.strip_prefix("sqlite:").map_or(("", text), |path| ("sqlite:", path));
    SettingEntry::spelled(text, format!("{scheme}{}", folded_text(path)))
}
