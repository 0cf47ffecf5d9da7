//! Reads secrets from the environment, a file or the rule file itself.

use std::env::VarError;
use std::path::Path;

use toml::Spanned;

use super::{Context, FileContext};
use crate::clock::{Random, SystemRandomness};
use crate::domain::{Secret, Secrets};
use crate::names::quoted;
use crate::rules::external_files::ExternalContent;
use crate::rules::raw::{Field, FromToml, Key, OrVariable, RawSecrets, read_variable};
use crate::rules::secret::{LARGEST_SECRET, Missing, SecretRef, fetched, store_key};
use crate::store_settings::StoreKeys;

impl Context<'_> {
    /// Returns the secrets of a key; `None` when the file has none, or when one of them cannot be read.
    pub(super) fn secrets(&mut self, context: FileContext<'_>, field: &Field<RawSecrets>) -> Option<Secrets> {
        // Reads all before failing, so that one run reports every secret that cannot be read.
        let list: Vec<Option<Secret>> = field.get()?.0.iter().map(|raw| self.secret(context, raw)).collect();
        Secrets::new(list.into_iter().collect::<Option<_>>()?)
    }

    fn secret(&mut self, context: FileContext<'_>, raw: &Spanned<SecretRef>) -> Option<Secret> {
        if !self.check_secrets && !matches!(raw.get_ref(), SecretRef::Literal(_)) {
            return Some(placeholder());
        }
        match self.bytes(context, raw.get_ref()) {
            Ok(bytes) => Some(Secret::new(&bytes)),
            Err(missing) => {
                self.problem(context, raw.span(), missing.message());
                None
            }
        }
    }

    /// Returns the value of a key that may name an environment variable; `None` when that cannot be read, or is not
    /// (`check --no-secrets`).
    pub(super) fn value<T: FromToml + Clone>(
        &mut self,
        context: FileContext<'_>,
        name: &str,
        key: &Key<OrVariable<T>>,
    ) -> Option<T> {
        let variable = match &**key {
            OrVariable::Written(value) => return Some(value.clone()),
            OrVariable::Variable(_) if !self.check_secrets => return None,
            OrVariable::Variable(variable) => variable,
        };
        let wrong = |why| {
            let at = key.place().unwrap_or_default();
            self.problem(context, at, format!("`{name}`: the environment variable {why}"));
        };
        from_environment(variable).map_err(wrong).ok()
    }

    /// Returns the keys that wrap the store's data keys. Only a single key may be missing: it is generated when the
    /// store is created.
    pub(super) fn store_keys(&mut self, context: FileContext<'_>, list: &[Spanned<SecretRef>]) -> StoreKeys {
        let create_at = match list.first().map(Spanned::get_ref) {
            Some(SecretRef::File(path)) => Some(context.relative(path)),
            _ => None,
        };
        let mut keys = Vec::new();
        for raw in list {
            if !self.check_secrets && !matches!(raw.get_ref(), SecretRef::Literal(_)) {
                keys.push(placeholder());
                continue;
            }
            match self.bytes(context, raw.get_ref()) {
                Ok(text) if let Some(key) = store_key(&text) => keys.push(key),
                Ok(_) => {
                    let place = match raw.get_ref() {
                        SecretRef::File(path) => format!(" in {}", context.relative(path).display()),
                        SecretRef::Environment(_) | SecretRef::Literal(_) => String::new(),
                    };
                    self.problem(context, raw.span(), format!("the store's key{place} must be 32 bytes in base64"));
                }
                Err(Missing::NoFile(_)) if list.len() == 1 => {}
                Err(missing) => self.problem(context, raw.span(), missing.message()),
            }
        }
        StoreKeys { create_at, keys }
    }

    /// Returns the secret that a reference names, as text.
    ///
    /// # Errors
    /// The reason, which continues a sentence.
    pub(super) fn secret_text(&mut self, context: FileContext<'_>, secret: &SecretRef) -> Result<String, String> {
        let bytes = self.bytes(context, secret).map_err(|missing| missing.message())?;
        String::from_utf8(bytes).map_err(|_| "the secret is not UTF-8 text".to_owned())
    }

    fn bytes(&mut self, context: FileContext<'_>, secret: &SecretRef) -> Result<Vec<u8>, Missing> {
        let read = |path: &Path| self.external.read(path, ExternalContent::Secret, LARGEST_SECRET);
        fetched(secret, |named| context.relative(named), read)
    }
}

/// Returns the value that an environment variable holds.
///
/// # Errors
/// What is wrong, beginning with the variable's name in backquotes.
pub(super) fn from_environment<T: FromToml>(variable: &str) -> Result<T, String> {
    match std::env::var(variable) {
        Ok(text) => read_variable(variable, text),
        Err(VarError::NotPresent) => Err(format!("{} is not set", quoted(variable))),
        Err(VarError::NotUnicode(_)) => Err(format!("{} is not UTF-8 text", quoted(variable))),
    }
}

/// Returns a random secret in place of one that is not read. It is never known to anyone, so nothing can be signed or
/// verified with it.
fn placeholder() -> Secret {
    let mut bytes = [0; 32];
    SystemRandomness::default().fill(&mut bytes);
    Secret::new(&bytes)
}
