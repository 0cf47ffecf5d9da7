//! What customers' pages are made of.

use std::sync::Arc;

use crate::rules::pages::{Language, Pages, TextDirection};

/// The pages that are there without any file.
pub(crate) fn built_in() -> Arc<Pages> {
    let mut texts: toml::Table = toml::from_str(include_str!("../../../rules/pages/en.toml")).unwrap_or_default();
    let mut word = |key| texts.remove(key).and_then(|value| Some(value.as_str()?.into())).unwrap_or_default();
    let (decimal, group) = (word("decimal"), word("group"));
    let texts = serde_json::to_value(&texts).unwrap_or_default();
    let english = Language { tag: "en".into(), direction: TextDirection::Ltr, decimal, group, texts };
    let template = include_str!("../../../rules/pages/page.html").to_owned();
    let style = include_str!("../../../rules/pages/style.css").to_owned();
    Arc::new(Pages::new(vec![english], template, style).unwrap_or_else(|error| panic!("{error}")))
}
