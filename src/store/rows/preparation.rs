//! Preparations, which providers make for the customers of pending deposits: sealed, in a table of their own.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::domain::{BrowserUrl, Detail, Instructions, Preparation, TransactionId};
use crate::store::StoreError;
use crate::store::vault::{Column, Vault};

/// The stored form, as JSON.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StoredForm<'a> {
    #[serde(borrow)]
    Page(Cow<'a, str>),
    Instructions {
        text: Option<String>,
        details: Vec<(String, String)>,
    },
    Stopped,
}

/// Seals a preparation for its operation.
///
/// # Errors
/// It cannot be encoded as JSON, which does not happen.
pub(in crate::store) fn seal(
    vault: &Vault,
    id: TransactionId,
    preparation: &Preparation,
) -> Result<Vec<u8>, StoreError> {
    let form = match preparation {
        Preparation::Page(url) => StoredForm::Page(url.as_str().into()),
        Preparation::Instructions(instructions) => StoredForm::Instructions {
            text: instructions.text().map(str::to_owned),
            details: instructions
                .details()
                .iter()
                .map(|detail| (detail.label.to_string(), detail.value.to_string()))
                .collect(),
        },
        Preparation::Stopped => StoredForm::Stopped,
    };
    let json = serde_json::to_vec(&form).map_err(|error| StoreError::Corrupt(error.to_string()))?;
    Ok(vault.seal(Column::Preparation, id, &json))
}

/// Unseals a preparation that [`seal`] sealed.
///
/// # Errors
/// The value is invalid.
pub(in crate::store) fn open(vault: &Vault, id: TransactionId, sealed: &[u8]) -> Result<Preparation, StoreError> {
    let plain = vault.open(Column::Preparation, id, sealed).ok();
    plain
        .as_deref()
        .and_then(|plain| serde_json::from_slice(plain).ok())
        .and_then(decode)
        .ok_or_else(|| StoreError::Corrupt(format!("operation {id}: its preparation is invalid")))
}

fn decode(form: StoredForm<'_>) -> Option<Preparation> {
    match form {
        StoredForm::Page(url) => BrowserUrl::new(&url).ok().map(Preparation::Page),
        StoredForm::Instructions { text, details } => {
            let detail = |(label, value): (String, String)| Detail { label: label.into(), value: value.into() };
            let details = details.into_iter().map(detail).collect();
            Instructions::new(text.map(Into::into), details).ok().map(Preparation::Instructions)
        }
        StoredForm::Stopped => Some(Preparation::Stopped),
    }
}
