//! The store's data keys, and the encryption of sealed values (contract section 11).
//!
//! A store has two kinds of data keys, drawn when the store is created. `seal` keys encrypt account numbers, payer
//! accounts, `fields`, preparations and the journal's bodies. The one `compare` key is the [`FingerprintKey`] and never
//! changes. The data keys are stored wrapped by the first key of `store.keys`. Any key of that list unwraps them, so
//! that `store.keys` is rotated without touching a row.
//!
//! Both formats begin with a format byte and use AES-256-GCM with a random 96-bit nonce:
//!
//! ```text
//! wrapped key   1 | nonce 12 | ciphertext 32 | tag 16      authenticated with: purpose, key id
//! sealed value  1 | key id 2 | nonce 12 | ciphertext | tag 16      with: format, key id, column, row
//! ```
//!
//! Random nonces allow 2^32 values under one key; the key id allows a store to add `seal` keys before that. The newest
//! one seals, and all of them open.

mod rewrap;

use std::sync::Arc;

pub use rewrap::{Rewrap, Rewrapped, rewrap};

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

use super::EntryId;
use crate::clock::Random;
use crate::domain::{Fingerprint, FingerprintKey, Secret, TransactionId};

const FORMAT: u8 = 1;
const NONCE_BYTES: usize = 12;
const TAG_BYTES: usize = 16;
const SEALED_HEADER_BYTES: usize = 3;

/// The purpose of a data key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Encrypts values.
    Seal,
    /// Keys the hashes that comparisons use.
    Compare,
}

impl Purpose {
    /// Returns the stored form.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Seal => "seal",
            Self::Compare => "compare",
        }
    }

    /// Parses the form returned by [`Purpose::as_str`].
    #[must_use]
    pub fn from_stored(text: &str) -> Option<Self> {
        [Self::Seal, Self::Compare].into_iter().find(|purpose| purpose.as_str() == text)
    }
}

/// A data key as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrappedKey {
    /// Its number, from 1; never reused.
    pub id: u16,
    /// Its purpose.
    pub purpose: Purpose,
    /// The key, encrypted.
    pub wrapped: Vec<u8>,
}

/// The column of a sealed value. It is authenticated with the value, so that a value moved to another column or row
/// does not open. The numbers are part of the stored format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// The details of an operation, which no query searches: `operations.sealed`.
    Details = 1,
    /// A deposit's payer: `operations.payer`.
    Payer = 2,
    /// `preparations.sealed`.
    Preparation = 3,
    /// `journal.body`.
    JournalBody = 4,
    /// `journal.account`.
    JournalAccount = 5,
}

impl Column {
    #[expect(clippy::as_conversions, reason = "the numbers are written at the variants")]
    const fn number(self) -> u8 {
        self as u8
    }
}

/// The row of a sealed value. Each column always identifies its rows in the same way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SealedPlace {
    /// By an operation's id.
    Operation(TransactionId),
    /// By a journal entry's number.
    Entry(EntryId),
    /// By an order key, for a value that is sealed before its row has a number.
    Order(Fingerprint),
}

impl From<TransactionId> for SealedPlace {
    fn from(id: TransactionId) -> Self {
        Self::Operation(id)
    }
}

/// Why a vault cannot be opened. Contains no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum VaultError {
    /// `store.keys` contains a value that is not a key.
    #[error("a key of store.keys does not have 32 bytes")]
    KeyLength,
    /// None of `store.keys` unwraps a data key.
    #[error("no key of store.keys opens this store")]
    WrongKey,
    /// A data key is missing or has an unknown form.
    #[error("the store's data keys are incomplete")]
    Incomplete,
}

/// Why a sealed value does not open: it was changed or moved, or its key is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecryptError;

/// The unwrapped data keys of an open store.
pub struct Vault {
    /// By id, ascending; the last one is used for sealing.
    seal: Vec<(u16, LessSafeKey)>,
    fingerprint_key: FingerprintKey,
    random: Arc<dyn Random>,
}

impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Vault(..)")
    }
}

impl Vault {
    /// Draws the data keys of a new store, wrapped by the first of `keys`.
    ///
    /// # Errors
    /// There is no key, or the first one does not have 32 bytes.
    pub fn draw(keys: &[Secret], random: &dyn Random) -> Result<Vec<WrappedKey>, VaultError> {
        let wrapping = aes(keys.first().ok_or(VaultError::WrongKey)?.expose())?;
        [(1, Purpose::Compare), (2, Purpose::Seal)]
            .into_iter()
            .map(|(id, purpose)| {
                let mut key = [0; 32];
                random.fill(&mut key);
                wrap(&wrapping, id, purpose, &key, random)
            })
            .collect()
    }

    /// Unwraps the data keys of a store.
    ///
    /// # Errors
    /// No key of `keys` unwraps them, or a data key is missing.
    pub fn unlock(keys: &[Secret], stored: &[WrappedKey], random: Arc<dyn Random>) -> Result<Self, VaultError> {
        let wrapping = keys.iter().map(|key| aes(key.expose())).collect::<Result<Vec<_>, _>>()?;
        let mut seal = Vec::new();
        let mut fingerprint_key = None;
        for key in stored {
            let (_, plain) = unwrap(&wrapping, key)?;
            match key.purpose {
                Purpose::Seal => seal.push((key.id, aes(&plain)?)),
                Purpose::Compare => fingerprint_key = Some(FingerprintKey::new(&plain)),
            }
        }
        seal.sort_unstable_by_key(|(id, _)| *id);
        match fingerprint_key {
            Some(fingerprint_key) if !seal.is_empty() => Ok(Self { seal, fingerprint_key, random }),
            _ => Err(VaultError::Incomplete),
        }
    }

    /// Returns the key of the hashes that comparisons use.
    #[must_use]
    pub const fn fingerprint_key(&self) -> &FingerprintKey {
        &self.fingerprint_key
    }

    /// Encrypts a value for its column and row.
    ///
    /// # Panics
    /// Never: a vault has a seal key, and AES-GCM takes values of any length that fits in memory.
    #[must_use]
    pub fn seal(&self, column: Column, place: impl Into<SealedPlace>, plain: &[u8]) -> Vec<u8> {
        let (key_id, key) = self.seal.last().expect("a vault has a seal key");
        let mut sealed = Vec::with_capacity(SEALED_HEADER_BYTES + NONCE_BYTES + plain.len() + TAG_BYTES);
        sealed.push(FORMAT);
        sealed.extend_from_slice(&key_id.to_le_bytes());
        encrypt(key, &*self.random, Context::new(*key_id, column, place.into()).as_bytes(), plain, &mut sealed)
            .expect("AES-GCM encrypts values of this length");
        sealed
    }

    /// Decrypts a value that [`Vault::seal`] encrypted for the same column and row.
    ///
    /// # Errors
    /// The value was changed or moved, or its key is not in this store.
    pub fn open(&self, column: Column, place: impl Into<SealedPlace>, sealed: &[u8]) -> Result<Vec<u8>, DecryptError> {
        let (header, body) = sealed.split_first_chunk::<SEALED_HEADER_BYTES>().ok_or(DecryptError)?;
        let key_id = u16::from_le_bytes([header[1], header[2]]);
        let (_, key) = self.seal.iter().find(|(id, _)| *id == key_id).ok_or(DecryptError)?;
        if header[0] != FORMAT {
            return Err(DecryptError);
        }
        decrypt(key, Context::new(key_id, column, place.into()).as_bytes(), body).ok_or(DecryptError)
    }
}

fn aes(key: &[u8]) -> Result<LessSafeKey, VaultError> {
    UnboundKey::new(&AES_256_GCM, key).map(LessSafeKey::new).map_err(|_| VaultError::KeyLength)
}

/// Draws a nonce and encrypts a data key.
fn wrap(
    wrapping: &LessSafeKey,
    id: u16,
    purpose: Purpose,
    plain: &[u8; 32],
    random: &dyn Random,
) -> Result<WrappedKey, VaultError> {
    let mut wrapped = vec![FORMAT];
    encrypt(wrapping, random, &wrapping_context(id, purpose), plain, &mut wrapped)?;
    Ok(WrappedKey { id, purpose, wrapped })
}

/// Unwraps a data key. Returns it with the position of its wrapping key in `wrapping`.
fn unwrap(wrapping: &[LessSafeKey], key: &WrappedKey) -> Result<(usize, [u8; 32]), VaultError> {
    let (&FORMAT, body) = key.wrapped.split_first().ok_or(VaultError::Incomplete)? else {
        return Err(VaultError::Incomplete);
    };
    let context = wrapping_context(key.id, key.purpose);
    let opened = |(position, wrapping)| Some((position, decrypt(wrapping, &context, body)?));
    let (position, plain) = wrapping.iter().enumerate().find_map(opened).ok_or(VaultError::WrongKey)?;
    Ok((position, plain.try_into().map_err(|_| VaultError::Incomplete)?))
}

fn wrapping_context(id: u16, purpose: Purpose) -> Vec<u8> {
    format!("paybridge data key {id} {}", purpose.as_str()).into_bytes()
}

/// The associated data of a sealed value: format, key id, column, row.
struct Context {
    bytes: [u8; 20],
    length: usize,
}

impl Context {
    fn new(key_id: u16, column: Column, place: SealedPlace) -> Self {
        let mut context = Self { bytes: [0; 20], length: 0 };
        context.push(&[FORMAT]);
        context.push(&key_id.to_le_bytes());
        context.push(&[column.number()]);
        match place {
            SealedPlace::Operation(id) => context.push(&id.to_stored().to_le_bytes()),
            SealedPlace::Entry(EntryId(number)) => context.push(&number.to_le_bytes()),
            SealedPlace::Order(Fingerprint(key)) => context.push(&key),
        }
        context
    }

    fn push(&mut self, bytes: &[u8]) {
        let (_, room) = self.bytes.split_at_mut(self.length);
        room.split_at_mut(bytes.len()).0.copy_from_slice(bytes);
        self.length += bytes.len();
    }

    fn as_bytes(&self) -> &[u8] {
        self.bytes.split_at(self.length).0
    }
}

/// Appends nonce, ciphertext and tag to `out`.
fn encrypt(
    key: &LessSafeKey,
    random: &dyn Random,
    context: &[u8],
    plain: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), VaultError> {
    let mut nonce = [0; NONCE_BYTES];
    random.fill(&mut nonce);
    out.extend_from_slice(&nonce);
    let start = out.len();
    out.extend_from_slice(plain);
    let nonce = Nonce::assume_unique_for_key(nonce);
    let tag = key
        .seal_in_place_separate_tag(nonce, Aad::from(context), out.split_at_mut(start).1)
        .map_err(|_| VaultError::KeyLength)?;
    out.extend_from_slice(tag.as_ref());
    Ok(())
}

/// Decrypts nonce, ciphertext and tag; `None` when they are not authentic.
fn decrypt(key: &LessSafeKey, context: &[u8], body: &[u8]) -> Option<Vec<u8>> {
    let (nonce, sealed) = body.split_first_chunk::<NONCE_BYTES>()?;
    let nonce = Nonce::assume_unique_for_key(*nonce);
    let mut plain = sealed.to_vec();
    let length = key.open_in_place(nonce, Aad::from(context), &mut plain).ok()?.len();
    plain.truncate(length);
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemRandomness;
    use crate::domain::FingerprintInput;

    fn key(byte: u8) -> Secret {
        Secret::new(&[byte; 32])
    }

    fn random() -> Arc<dyn Random> {
        Arc::new(SystemRandomness::default())
    }

    fn id(number: i64) -> TransactionId {
        TransactionId::from_stored(number).unwrap()
    }

    #[test]
    fn a_value_opens_only_where_it_was_sealed() {
        let stored = Vault::draw(&[key(1)], &*random()).unwrap();
        let vault = Vault::unlock(&[key(1)], &stored, random()).unwrap();
        let sealed = vault.seal(Column::Details, id(7), b"4111111111111111");
        assert_eq!(vault.open(Column::Details, id(7), &sealed).unwrap(), b"4111111111111111");
        assert_eq!(vault.open(Column::Payer, id(7), &sealed), Err(DecryptError));
        assert_eq!(vault.open(Column::Details, id(8), &sealed), Err(DecryptError));
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(vault.open(Column::Details, id(7), &changed), Err(DecryptError), "byte {at}");
        }
        for length in 0..sealed.len() {
            assert_eq!(vault.open(Column::Details, id(7), &sealed[..length]), Err(DecryptError));
        }
        assert_ne!(sealed, vault.seal(Column::Details, id(7), b"4111111111111111"), "every seal has its own nonce");
    }

    #[test]
    fn row_kinds_are_distinct() {
        let stored = Vault::draw(&[key(1)], &*random()).unwrap();
        let vault = Vault::unlock(&[key(1)], &stored, random()).unwrap();
        let order = |byte| SealedPlace::Order(Fingerprint([byte; 16]));
        let entry = |number| SealedPlace::Entry(EntryId(number));
        for (place, others) in [(order(7), [order(8), entry(7)]), (entry(7), [entry(8), order(7)])] {
            let sealed = vault.seal(Column::JournalBody, place, b"{}");
            assert_eq!(vault.open(Column::JournalBody, place, &sealed).unwrap(), b"{}");
            assert_eq!(vault.open(Column::JournalAccount, place, &sealed), Err(DecryptError));
            for other in others {
                assert_eq!(vault.open(Column::JournalBody, other, &sealed), Err(DecryptError));
            }
        }
    }

    /// Released versions have stored values with this context.
    #[test]
    fn the_context_format_is_stable() {
        let context = Context::new(0x0102, Column::Details, id(0x0304).into());
        assert_eq!(context.as_bytes(), [FORMAT, 2, 1, 1, 4, 3, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn any_key_of_the_list_unlocks() {
        let stored = Vault::draw(&[key(1)], &*random()).unwrap();
        let vault = Vault::unlock(&[key(1)], &stored, random()).unwrap();
        let rotated = Vault::unlock(&[key(2), key(1)], &stored, random()).unwrap();
        let sealed = vault.seal(Column::Details, id(7), b"{}");
        assert_eq!(rotated.open(Column::Details, id(7), &sealed).unwrap(), b"{}");
        assert_eq!(
            rotated.fingerprint_key().fingerprint(&FingerprintInput::of("x")),
            vault.fingerprint_key().fingerprint(&FingerprintInput::of("x"))
        );
    }

    #[test]
    fn unlock_errors() {
        let stored = Vault::draw(&[key(1)], &*random()).unwrap();
        let failure = |keys: &[Secret], stored: &[WrappedKey]| Vault::unlock(keys, stored, random()).unwrap_err();
        assert_eq!(failure(&[key(2)], &stored), VaultError::WrongKey);
        assert_eq!(failure(&[], &stored), VaultError::WrongKey);
        assert_eq!(failure(&[Secret::new(b"short")], &stored), VaultError::KeyLength);
        assert_eq!(failure(&[key(1)], &stored[..1]), VaultError::Incomplete);
        assert_eq!(failure(&[key(1)], &stored[1..]), VaultError::Incomplete);
        let mut swapped = stored.clone();
        swapped[0].purpose = Purpose::Seal;
        assert_eq!(failure(&[key(1)], &swapped), VaultError::WrongKey);
    }
}
