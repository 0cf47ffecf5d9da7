//! The JSON Schemas of rule files, made from the types that read them: what editors complete, explain and underline by.

use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Value, json};

use super::raw::{RawDialect, RawGateway, RawMerchant, RawShop, RawTexts};

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
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::Gateway, Self::Merchant, Self::Shop, Self::Dialect, Self::PageTexts];

    /// The word for it.
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

/// The JSON Schema (draft 2020-12) of a kind of rule file, as TOML read into JSON (contract section 2). What it refuses,
/// the gateway refuses as well; the gateway knows more, above all what files say of each other.
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

fn of<T: JsonSchema>(title: &str) -> Value {
    let generator = SchemaGenerator::new(SchemaSettings::draft2020_12());
    let mut schema = generator.into_root_schema_for::<T>();
    schema.insert("title".to_owned(), json!(title));
    schema.to_value()
}
