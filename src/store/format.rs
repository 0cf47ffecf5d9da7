//! Recognizes stores of unreleased builds (contract section 15). Until 0.1.0 the schema and the recipe of fingerprints may
//! change without a migration: a store of another build would be misread, and repeats would be made anew.

use std::path::Path;

use super::OpenError;
use crate::domain::{FingerprintInput, fingerprint_recipe};

/// Returns the hash that a store of this build keeps: of its migrations, and of the recipe of fingerprints.
pub(super) fn hash(migrations: &[&str]) -> [u8; 16] {
    let mut input = FingerprintInput::of("format of a store");
    for migration in migrations {
        input.part(migration.as_bytes());
    }
    input.part(&fingerprint_recipe().0);
    input.unkeyed().0
}

/// Compares the hash that a store keeps, if any, with this build's.
///
/// # Errors
/// They differ: another build made the store.
pub(super) fn require(found: Option<&[u8]>, migrations: &[&str], store: &Path) -> Result<(), OpenError> {
    if found == Some(&hash(migrations)) { Ok(()) } else { Err(OpenError::OtherBuild { path: store.into() }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_schema_has_another_hash() {
        let store = Path::new("here");
        let made = hash(&["CREATE TABLE one", "CREATE TABLE two"]);
        assert!(require(Some(&made), &["CREATE TABLE one", "CREATE TABLE two"], store).is_ok());
        for other in [&["CREATE TABLE one"][..], &["CREATE TABLE one", "CREATE TABLE too"], &[]] {
            let refused = require(Some(&made), other, store).unwrap_err();
            assert!(matches!(refused, OpenError::OtherBuild { .. }), "{refused}");
        }
        for found in [None, Some(&made[..8]), Some(&[])] {
            assert!(require(found, &["CREATE TABLE one", "CREATE TABLE two"], store).is_err());
        }
    }
}
