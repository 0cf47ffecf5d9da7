//! JSON Schemas of rule files, generated from the types that parse them: for completion and checks in editors.

use serde_json::{Value, json};

use super::compile::{RawDialect, RawGateway, RawMerchant, RawShop, RawTexts};
use super::raw::{FromToml, add};

/// A kind of TOML file in a rules directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// `gateway.toml`.
    Gateway,
    /// `merchants/<id>.toml`.
    Merchant,
    /// `shops/<code>.toml`.
    Shop,
    /// `dialects/<name>.toml`.
    Dialect,
    /// `pages/<language tag>.toml`.
    PageTexts,
}

impl FileKind {
    /// All kinds.
    pub const ALL: [Self; 5] = [Self::Gateway, Self::Merchant, Self::Shop, Self::Dialect, Self::PageTexts];

    /// Returns the name of this kind.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::Merchant => "merchant",
            Self::Shop => "shop",
            Self::Dialect => "dialect",
            Self::PageTexts => "page-texts",
        }
    }
}

/// Returns the JSON Schema (draft 2020-12) of a kind of rule file, for its TOML converted to JSON (contract section 2).
/// The gateway rejects every file that the schema rejects, and more, above all references that do not fit other files.
#[must_use]
pub fn file_schema(kind: FileKind) -> Value {
    match kind {
        FileKind::Gateway => of::<RawGateway>("Paybridge: gateway.toml"),
        FileKind::Merchant => of::<RawMerchant>("Paybridge: merchants/<id>.toml"),
        FileKind::Shop => of::<RawShop>("Paybridge: shops/<code>.toml"),
        FileKind::Dialect => of::<RawDialect>("Paybridge: dialects/<name>.toml"),
        FileKind::PageTexts => of::<RawTexts>("Paybridge: pages/<language tag>.toml"),
    }
}

fn of<T: FromToml>(title: &str) -> Value {
    let mut schema = T::schema();
    add(&mut schema, json!({ "$schema": "https://json-schema.org/draft/2020-12/schema", "title": title }));
    schema
}
