//! Replaces the key that wraps the data keys (contract section 12, `store rekey`).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Vault, VaultError, WrappedKey, aes, unwrap, wrap};
use crate::clock::Random;
use crate::domain::Secret;

/// The result of rewrapping a store's data keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewrapped {
    /// The count of data keys in the store.
    pub all: usize,
    /// How many data keys another key than the first of `store.keys` wrapped before, by that key's position in the
    /// list, from 1.
    pub before: BTreeMap<usize, usize>,
}

/// Data keys to store in place of those with the same ids.
#[derive(Debug)]
pub struct Rewrap {
    /// The keys that change.
    pub changed: Vec<WrappedKey>,
    /// The summary for the operator.
    pub reported: Rewrapped,
}

/// Wraps with the first of `keys` all data keys that another key wraps. The data keys themselves do not change.
///
/// # Errors
/// As [`Vault::unlock`].
pub fn rewrap(keys: &[Secret], stored: &[WrappedKey], random: &Arc<dyn Random>) -> Result<Rewrap, VaultError> {
    // A store that does not open must not be changed.
    Vault::unlock(keys, stored, Arc::clone(random))?;
    let wrapping = keys.iter().map(|key| aes(key.expose())).collect::<Result<Vec<_>, _>>()?;
    let first = wrapping.first().ok_or(VaultError::WrongKey)?;
    let (mut changed, mut before) = (Vec::new(), BTreeMap::new());
    for key in stored {
        let (position, plain) = unwrap(&wrapping, key)?;
        if position > 0 {
            *before.entry(position + 1).or_default() += 1;
            changed.push(wrap(first, key.id, key.purpose, &plain, &**random)?);
        }
    }
    Ok(Rewrap { changed, reported: Rewrapped { all: stored.len(), before } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemRandomness;
    use crate::domain::FingerprintInput;
    use crate::domain::TransactionId;
    use crate::store::vault::Column;

    fn key(byte: u8) -> Secret {
        Secret::new(&[byte; 32])
    }

    #[test]
    fn the_first_key_alone_opens_what_was_sealed_before() {
        let random: Arc<dyn Random> = Arc::new(SystemRandomness::default());
        let mut stored = Vault::draw(&[key(1)], &*random).unwrap();
        let old = Vault::unlock(&[key(1)], &stored, Arc::clone(&random)).unwrap();
        let id = TransactionId::from_stored(7).unwrap();
        let sealed = old.seal(Column::Details, id, b"account");
        // Only one of the two data keys, as after an interrupted change of a store with several seal keys.
        let second = rewrap(&[key(2), key(1)], &stored[1..], &random);
        assert_eq!(second.unwrap_err(), VaultError::Incomplete);
        stored[1] = rewrap(&[key(2), key(1)], &stored, &random).unwrap().changed.remove(1);
        let done = rewrap(&[key(3), key(1), key(2)], &stored, &random).unwrap();
        assert_eq!(done.reported, Rewrapped { all: 2, before: BTreeMap::from([(2, 1), (3, 1)]) });
        let new = Vault::unlock(&[key(3)], &done.changed, Arc::clone(&random)).unwrap();
        assert_eq!(new.open(Column::Details, id, &sealed).unwrap(), b"account");
        assert_eq!(
            new.fingerprint_key().fingerprint(&FingerprintInput::of("x")),
            old.fingerprint_key().fingerprint(&FingerprintInput::of("x"))
        );
        let again = rewrap(&[key(3), key(1)], &done.changed, &random).unwrap();
        assert!(again.changed.is_empty() && again.reported == Rewrapped { all: 2, before: BTreeMap::new() });
    }

    #[test]
    fn a_store_that_does_not_unlock_is_not_rewrapped() {
        let random: Arc<dyn Random> = Arc::new(SystemRandomness::default());
        let stored = Vault::draw(&[key(1)], &*random).unwrap();
        for (keys, error) in [
            (vec![], VaultError::WrongKey),
            (vec![key(2)], VaultError::WrongKey),
            (vec![Secret::new(b"short"), key(1)], VaultError::KeyLength),
        ] {
            assert_eq!(rewrap(&keys, &stored, &random).unwrap_err(), error);
        }
    }
}
