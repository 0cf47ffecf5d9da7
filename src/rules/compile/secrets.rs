//! Secrets: from the environment, a file or the rule file itself.

use std::env;
use std::io;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use toml::Spanned;

use super::{Context, Here};
use crate::clock::{Random, SystemRandomness};
use crate::rules::elsewhere::Content;
use crate::rules::files::read_bounded;
use crate::rules::problems::quoted;
use crate::rules::raw::{Field, RawSecret, RawSecrets};
use crate::rules::{Secret, Secrets, StoreKeys};

/// The largest secret file, in bytes.
const LARGEST_SECRET: u64 = 64 << 10;

/// The size of a store key, in bytes.
const STORE_KEY_BYTES: usize = 32;

/// Why a secret could not be had.
enum Missing {
    /// Its file does not exist.
    NoFile(PathBuf),
    /// Half a sentence.
    Because(String),
}

impl Context<'_> {
    /// The secrets of a key; `None` when the file names none, or when one of them cannot be had.
    pub(super) fn secrets(&mut self, here: Here<'_>, field: &Field<RawSecrets>) -> Option<Secrets> {
        // All are asked for before any is missed: one run names every one that cannot be had.
        let list: Vec<Option<Secret>> = field.get()?.0.iter().map(|raw| self.secret(here, raw)).collect();
        Secrets::new(list.into_iter().collect::<Option<_>>()?)
    }

    fn secret(&mut self, here: Here<'_>, raw: &Spanned<RawSecret>) -> Option<Secret> {
        if !self.check_secrets && !matches!(raw.get_ref(), RawSecret::Literal(_)) {
            return Some(placeholder());
        }
        match self.bytes(here, raw.get_ref()) {
            Ok(bytes) => Some(Secret::new(&bytes)),
            Err(missing) => {
                self.problem(here, raw.span(), missing.message());
                None
            }
        }
    }

    /// The keys that wrap the store's data keys. Only the first may be missing, alone: it is made when the store is.
    pub(super) fn store_keys(&mut self, here: Here<'_>, list: &[Spanned<RawSecret>]) -> StoreKeys {
        let create_at = match list.first().map(Spanned::get_ref) {
            Some(RawSecret::File(path)) => Some(here.relative(path)),
            _ => None,
        };
        let mut keys = Vec::new();
        for raw in list {
            if !self.check_secrets && !matches!(raw.get_ref(), RawSecret::Literal(_)) {
                keys.push(placeholder());
                continue;
            }
            match self.bytes(here, raw.get_ref()) {
                Ok(text) => match store_key(&text) {
                    Some(key) => keys.push(key),
                    None => self.problem(here, raw.span(), "the store's key must be 32 bytes in base64"),
                },
                Err(Missing::NoFile(_)) if list.len() == 1 => {}
                Err(missing) => self.problem(here, raw.span(), missing.message()),
            }
        }
        StoreKeys { create_at, keys }
    }

    /// What a reference leads to, as text.
    ///
    /// # Errors
    /// Half a sentence.
    pub(super) fn secret_text(&mut self, here: Here<'_>, secret: &RawSecret) -> Result<String, String> {
        let bytes = self.bytes(here, secret).map_err(|missing| missing.message())?;
        String::from_utf8(bytes).map_err(|_| "the secret is no UTF-8 text".to_owned())
    }

    fn bytes(&mut self, here: Here<'_>, secret: &RawSecret) -> Result<Vec<u8>, Missing> {
        let read = |path: &Path| self.elsewhere.read(path, Content::Secret, LARGEST_SECRET);
        fetched(secret, |named| here.relative(named), read)
    }
}

/// A secret that the command line names as rule files do; paths are seen from here.
///
/// # Errors
/// Why it cannot be had, as the end of a sentence that begins with what was read. It holds nothing of the secret.
pub fn secret_named(text: &str) -> Result<Vec<u8>, String> {
    let secret = RawSecret::parse(text)?;
    let read = |path: &Path| read_bounded(path, LARGEST_SECRET);
    fetched(&secret, |named| named.into(), read).map_err(|missing| format!("cannot be had: {}", missing.message()))
}

/// The bytes of a secret; `resolve` finds its file, and `read` reads it.
fn fetched(
    secret: &RawSecret,
    resolve: impl FnOnce(&str) -> PathBuf,
    read: impl FnOnce(&Path) -> io::Result<Vec<u8>>,
) -> Result<Vec<u8>, Missing> {
    let bytes = match secret {
        RawSecret::Literal(text) => text.as_bytes().to_vec(),
        RawSecret::Environment(name) => env::var_os(name)
            .ok_or_else(|| Missing::Because(format!("the environment variable {} is not set", quoted(name))))?
            .into_encoded_bytes(),
        RawSecret::File(named) => {
            let path = resolve(named);
            without_newline(read(&path).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => Missing::NoFile(path.clone()),
                _ => Missing::Because(format!("the secret's file {} cannot be read: {error}", path.display())),
            })?)
        }
    };
    if bytes.is_empty() { Err(Missing::Because("the secret is empty".into())) } else { Ok(bytes) }
}

impl Missing {
    fn message(&self) -> String {
        match self {
            Self::NoFile(path) => format!("the secret's file {} does not exist", path.display()),
            Self::Because(reason) => reason.clone(),
        }
    }
}

/// Drops one trailing newline, which editors and `echo` add.
fn without_newline(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
    }
    bytes
}

/// 32 bytes in base64.
pub(in crate::rules) fn store_key(text: &[u8]) -> Option<Secret> {
    let key = BASE64_STANDARD.decode(text.trim_ascii()).ok()?;
    (key.len() == STORE_KEY_BYTES).then(|| Secret::new(&key))
}

/// Stands for a secret that was not asked for. Nobody knows it, so nothing is ever signed or verified with it.
fn placeholder() -> Secret {
    let mut bytes = [0; 32];
    SystemRandomness::default().fill(&mut bytes);
    Secret::new(&bytes)
}
