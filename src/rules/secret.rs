//! References to secrets in rule files and on the command line.

use std::env;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use super::files::read_bounded;
use crate::domain::Secret;
use crate::names::quoted;

/// The largest secret file, in bytes.
pub(super) const LARGEST_SECRET: u64 = 64 << 10;

/// The size of a store key, in bytes.
const STORE_KEY_BYTES: usize = 32;

/// A reference to a secret.
#[derive(Clone)]
pub(super) enum SecretRef {
    /// `env:NAME`.
    Environment(String),
    /// `file:PATH`, relative to the rule file.
    File(String),
    /// The secret, written in the rule file.
    Literal(Box<str>),
}

impl fmt::Debug for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretRef(..)")
    }
}

impl SecretRef {
    /// Parses a reference.
    ///
    /// # Errors
    /// What is wrong, as the end of a sentence that begins with the name of the setting. It contains no part of the
    /// text.
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        let (secret, name) = match (text.strip_prefix("env:"), text.strip_prefix("file:")) {
            (Some(name), _) => (Self::Environment(name.into()), name),
            (_, Some(path)) => (Self::File(path.into()), path),
            _ if nearly_a_reference(text) => {
                return Err("looks like a reference, which is written \"env:NAME\" or \"file:PATH\": in lowercase, \
                            without a space before the colon");
            }
            _ => (Self::Literal(text.into()), text),
        };
        if name.is_empty() || name.contains('\0') || matches!(&secret, Self::Environment(_) if name.contains('=')) {
            return Err("must not be empty: write \"env:NAME\", \"file:PATH\" or the secret itself");
        }
        Ok(secret)
    }
}

/// Reports whether a text that is not a reference was probably meant as one: taken as a literal secret it could be
/// guessed.
fn nearly_a_reference(text: &str) -> bool {
    let kind = text.split_once(':').map_or("", |(kind, _)| kind.trim());
    ["env", "file"].iter().any(|known| kind.eq_ignore_ascii_case(known))
}

/// The reason why a secret is not available.
pub(super) enum Missing {
    /// Its file does not exist.
    NoFile(PathBuf),
    /// Another reason, in words.
    Because(String),
}

/// Fetches a secret that the command line names as rule files do; paths are relative to the working directory.
///
/// # Errors
/// Why the secret is not available, as the end of a sentence that begins with the name of the option. It contains no
/// part of the secret.
pub fn secret_named(text: &str) -> Result<Vec<u8>, String> {
    let secret = SecretRef::parse(text)?;
    let read = |path: &Path| read_bounded(path, LARGEST_SECRET);
    fetched(&secret, |named| named.into(), read).map_err(|missing| format!("cannot be read: {}", missing.message()))
}

/// Returns the bytes of a secret; `resolve` returns the path of its file, and `read` reads it.
pub(super) fn fetched(
    secret: &SecretRef,
    resolve: impl FnOnce(&str) -> PathBuf,
    read: impl FnOnce(&Path) -> io::Result<Vec<u8>>,
) -> Result<Vec<u8>, Missing> {
    let (what, bytes) = match secret {
        SecretRef::Literal(text) => ("the secret".to_owned(), text.as_bytes().to_vec()),
        SecretRef::Environment(name) => {
            let what = format!("the environment variable {}", quoted(name));
            match env::var_os(name) {
                Some(value) => (what, value.into_encoded_bytes()),
                None => return Err(Missing::Because(format!("{what} is not set"))),
            }
        }
        SecretRef::File(named) => {
            let path = resolve(named);
            let what = format!("the secret's file {}", path.display());
            match read(&path) {
                Ok(bytes) => (what, without_newline(bytes)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(Missing::NoFile(path)),
                Err(error) => return Err(Missing::Because(format!("{what} cannot be read: {error}"))),
            }
        }
    };
    if bytes.is_empty() { Err(Missing::Because(format!("{what} is empty"))) } else { Ok(bytes) }
}

impl Missing {
    pub(super) fn message(&self) -> String {
        match self {
            Self::NoFile(path) => format!("the secret's file {} does not exist", path.display()),
            Self::Because(reason) => reason.clone(),
        }
    }
}

/// Removes one trailing newline, which editors and `echo` add.
fn without_newline(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
    }
    bytes
}

/// Decodes a store key: 32 bytes in base64.
pub(super) fn store_key(text: &[u8]) -> Option<Secret> {
    let key = BASE64_STANDARD.decode(text.trim_ascii()).ok()?;
    (key.len() == STORE_KEY_BYTES).then(|| Secret::new(&key))
}
