//! The parts of customers' pages: a stylesheet, texts in several languages, and the operator's brand.

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

/// The background of a hovered link (`--field` in the stylesheet), light and dark: where text in the accent colour has
/// the least contrast.
pub(super) const LIGHT_FIELD: Color = Color::new(0xf4, 0xf6, 0xf9);
const DARK_FIELD: Color = Color::new(0x22, 0x2b, 0x36);

/// The parts of customers' pages (`rules/pages/`, and the brand of `[pages]`).
pub struct Pages {
    /// The first one is the fallback, for customers who accept none of the others.
    languages: Vec<Language>,
    style: String,
    style_hash: Box<str>,
    name: Option<Box<str>>,
    logo: Option<Box<str>>,
}

/// The operator's name, colour and logo on the pages.
#[derive(Debug, Default, Clone)]
pub(crate) struct Brand {
    /// The name in the header.
    pub(super) name: Option<Box<str>>,
    /// The accent colour, which was checked to have enough contrast with [`LIGHT_FIELD`].
    pub(super) color: Option<Color>,
    /// The logo, as a `data:` URI.
    pub(super) logo: Option<Box<str>>,
}

/// What a page is about. The texts of a language have a table of the same name for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PageState {
    /// Preparation is in progress; the page reloads itself.
    Preparing,
    /// Payment instructions are shown.
    Instructions,
    /// Preparation stopped and the result is unknown.
    Stopped,
    /// The sandbox's hosted page, with Pay and Decline.
    Sandbox,
    /// The deposit succeeded; the page continues to the merchant by itself where there is an address.
    Success,
    /// The deposit failed; likewise.
    Failed,
    /// The link was refused.
    Refused,
    /// The page cannot be shown now; it reloads itself.
    Busy,
    /// Something else went wrong.
    Error,
}

impl PageState {
    /// All states.
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

    /// Returns its name in metrics, as the page's CSS class, and as its table of texts.
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
    /// Creates pages in these languages, the first of which is the fallback.
    pub(super) fn new(languages: Vec<Language>, brand: &Brand) -> Self {
        let style = format!("{STYLE}{}", brand.color.map(accent).unwrap_or_default());
        let style_hash = STANDARD.encode(Sha256::digest(style.as_bytes())).into();
        Self { languages, style, style_hash, name: brand.name.clone(), logo: brand.logo.clone() }
    }

    /// Returns the language for a browser's `Accept-Language` header.
    #[must_use]
    #[expect(clippy::indexing_slicing, reason = "the list is never empty, and the index is one of its own")]
    pub fn language(&self, accept_language: &str) -> &Language {
        let tags: Vec<&str> = self.languages.iter().map(|language| &*language.tag).collect();
        &self.languages[tag::chosen(accept_language, &tags)]
    }

    /// Returns all languages, the fallback first.
    pub(super) fn languages(&self) -> &[Language] {
        &self.languages
    }

    /// Returns the stylesheet.
    #[must_use]
    pub fn style(&self) -> &str {
        &self.style
    }

    /// Returns the source for `style-src` of a Content-Security-Policy: `sha256-…`, without quotes.
    #[must_use]
    pub fn style_source(&self) -> String {
        format!("sha256-{}", self.style_hash)
    }

    /// Returns the operator's name for the header.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns the logo for the header, as a `data:` URI.
    #[must_use]
    pub fn logo(&self) -> Option<&str> {
        self.logo.as_deref()
    }
}

/// Returns the pages without any rule file.
#[cfg(test)]
pub(crate) fn built_in_pages() -> Pages {
    Pages::new(languages::languages(&[], languages::FIRST), &Brand::default())
}

/// Returns an SVG or PNG image as a `data:` URI; `None` for anything else.
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

/// Returns the CSS that replaces the stylesheet's accent colour. In dark mode the colour is lightened until it is
/// readable.
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
