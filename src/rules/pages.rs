//! What customers' pages are made of: one stylesheet, texts in several languages, and an operator's brand.

mod language;
pub(super) mod languages;
pub(super) mod tag;

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

pub use self::language::{Language, TextDirection};

use super::color::Color;

/// The stylesheet of every page.
const STYLE: &str = include_str!("pages/style.css");

/// Where the stylesheet sets text in the accent colour that has the least contrast with it: a link that is pointed at
/// (`--field`), by light and by dark.
pub(super) const LIGHT_FIELD: Color = Color::new(0xf4, 0xf6, 0xf9);
const DARK_FIELD: Color = Color::new(0x22, 0x2b, 0x36);

/// What customers' pages are made of (`rules/pages/`, and the brand of `[pages]`).
pub struct Pages {
    /// The one for customers who ask for none of the others stands first.
    languages: Vec<Language>,
    style: String,
    style_hash: Box<str>,
    name: Option<Box<str>>,
    logo: Option<Box<str>>,
}

/// How an operator's pages differ from others'.
#[derive(Debug, Default, Clone)]
pub(crate) struct Brand {
    /// What the header says.
    pub(super) name: Option<Box<str>>,
    /// The accent colour. It was seen to have contrast enough with [`LIGHT_FIELD`].
    pub(super) color: Option<Color>,
    /// The logo, as a `data:` URI.
    pub(super) logo: Option<Box<str>>,
}

/// What a page is about. The texts of a language have a table of the same name for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PageState {
    /// Preparation is in progress; it comes again by itself.
    Preparing,
    /// Payment instructions are shown.
    Instructions,
    /// Preparation stopped while the result is unknown.
    Stopped,
    /// The sandbox's hosted page, with Pay and Decline.
    Sandbox,
    /// The deposit succeeded; it goes on to the merchant by itself where there is a way.
    Success,
    /// The deposit failed; likewise.
    Failed,
    /// The link was refused.
    Refused,
    /// The page cannot be shown now; it comes again by itself.
    Busy,
    /// Something else went wrong.
    Error,
}

impl PageState {
    /// Every state.
    pub const ALL: [Self; 9] = [
        Self::Preparing,
        Self::Instructions,
        Self::Stopped,
        Self::Sandbox,
        Self::Success,
        Self::Failed,
        Self::Refused,
        Self::Busy,
        Self::Error,
    ];

    /// Its name: in metrics, as the page's class, and of its table of texts.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Preparing => "preparing",
            Self::Instructions => "instructions",
            Self::Stopped => "stopped",
            Self::Sandbox => "sandbox",
            Self::Success => "success",
            Self::Failed => "failed",
            Self::Refused => "refused",
            Self::Busy => "busy",
            Self::Error => "error",
        }
    }
}

impl Pages {
    /// Makes pages in these languages, the first of which is for customers who ask for none of the others.
    pub(super) fn new(languages: Vec<Language>, brand: &Brand) -> Self {
        let style = format!("{STYLE}{}", brand.color.map(accent).unwrap_or_default());
        let style_hash = STANDARD.encode(Sha256::digest(style.as_bytes())).into();
        Self { languages, style, style_hash, name: brand.name.clone(), logo: brand.logo.clone() }
    }

    /// The language for a customer whose browser sends this `Accept-Language`.
    #[must_use]
    #[expect(clippy::indexing_slicing, reason = "the list is never empty, and the index is one of its own")]
    pub fn language(&self, accept_language: &str) -> &Language {
        let tags: Vec<&str> = self.languages.iter().map(|language| &*language.tag).collect();
        &self.languages[tag::chosen(accept_language, &tags)]
    }

    /// All languages, the one for customers who ask for none of the others first.
    pub(super) fn languages(&self) -> &[Language] {
        &self.languages
    }

    /// The stylesheet.
    #[must_use]
    pub fn style(&self) -> &str {
        &self.style
    }

    /// What the `style-src` of a Content-Security-Policy allows: `sha256-…`, without quotes.
    #[must_use]
    pub fn style_source(&self) -> String {
        format!("sha256-{}", self.style_hash)
    }

    /// Whose pages they are, for their header.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The logo for the header, as a `data:` URI.
    #[must_use]
    pub fn logo(&self) -> Option<&str> {
        self.logo.as_deref()
    }
}

/// The pages that are there without any file.
#[cfg(test)]
pub(crate) fn built_in_pages() -> Pages {
    Pages::new(languages::languages(&[], languages::FIRST), &Brand::default())
}

/// Returns an SVG or PNG image as a `data:` URI; `None`: it is neither.
pub(super) fn image_uri(bytes: &[u8]) -> Option<Box<str>> {
    let is_svg = || std::str::from_utf8(bytes).is_ok_and(|text| text.contains("<svg"));
    let kind = if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        "png"
    } else if is_svg() {
        "svg+xml"
    } else {
        return None;
    };
    Some(format!("data:image/{kind};base64,{}", STANDARD.encode(bytes)).into())
}

/// The rules that put an accent colour in place of the stylesheet's. By dark it is as much lighter as can be read there.
fn accent(color: Color) -> String {
    let (over, light) = (color.mixed(Color::BLACK, 20), color.readable_before(DARK_FIELD, Color::WHITE));
    let light_over = light.mixed(Color::WHITE, 30);
    format!(
        "@media screen {{ :root {{ --main: {color}; --over: {over}; }} }}\n\
         @media screen and (prefers-color-scheme: dark) {{ :root {{ --main: {light}; --over: {light_over}; }} }}\n"
    )
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.languages.iter().map(|language| &language.tag)).finish()
    }
}
