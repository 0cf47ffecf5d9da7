//! What customers' pages are made of: one template, one stylesheet, and texts in several languages.

pub(super) mod tag;

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use minijinja::value::Object;
use minijinja::{Environment, Output, UndefinedBehavior, Value};
use serde::{Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use crate::domain::Amount;

/// The name of the one template.
const TEMPLATE: &str = "page.html";

/// How many steps a page may take: one with all that payment instructions can hold takes some hundreds.
const FUEL: u64 = 200_000;

/// What customers' pages are made of (`rules/pages/`).
pub struct Pages {
    /// The one for customers who ask for none of the others stands first.
    languages: Vec<Language>,
    environment: Environment<'static>,
    style: Arc<str>,
    style_hash: Box<str>,
}

/// A language that pages are written in.
#[derive(Debug)]
pub struct Language {
    /// Its BCP 47 tag, such as `en` or `pt-BR`.
    pub tag: Box<str>,
    /// In which direction it is written.
    pub direction: TextDirection,
    /// Between whole units and hundredths.
    pub decimal: Box<str>,
    /// Between thousands.
    pub group: Box<str>,
    /// All texts, by table and key, as templates read them.
    pub texts: serde_json::Value,
}

/// In which direction a language is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TextDirection {
    /// Left to right.
    Ltr,
    /// Right to left.
    Rtl,
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

    /// Its name: in templates, in metrics, and of its table of texts.
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

impl Serialize for PageState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// What a template reads of a page, besides `lang`, `dir`, `text` and `style`. Everything is defined, and `none` where it
/// is not there.
#[derive(Debug, Serialize)]
pub struct PageValues<'a> {
    /// What the page is about.
    pub state: PageState,
    /// The deposit; none of a link that was refused.
    pub payment: Option<PaymentValues<'a>>,
    /// What the customer has to do.
    pub instructions: Option<InstructionValues<'a>>,
    /// The signed return link, where pages offer it.
    pub return_url: Option<&'a str>,
    /// Where the sandbox's form goes.
    pub action: Option<&'a str>,
    /// The address of this page, to ask once more.
    pub here: Option<&'a str>,
    /// What `http-equiv="refresh"` would say; the reply's `Refresh` header says it.
    pub refresh: Option<&'a str>,
    /// For whoever is asked for help.
    pub request_id: &'a str,
}

/// The deposit that a page is about.
#[derive(Debug, Serialize)]
pub struct PaymentValues<'a> {
    /// The merchant's display name.
    pub merchant: &'a str,
    /// The shop's display name.
    pub shop: &'a str,
    /// The merchant's name for the deposit.
    pub order_id: &'a str,
    /// As the language writes it.
    pub amount: String,
    /// With a point and two decimals, for programs.
    pub value: String,
    /// The code of the currency.
    pub currency: &'a str,
}

/// Payment instructions.
#[derive(Serialize)]
pub struct InstructionValues<'a> {
    /// A text, whose line breaks count.
    pub text: Option<&'a str>,
    /// What has to be copied.
    pub details: Vec<DetailValues<'a>>,
}

/// A line of payment instructions.
#[derive(Serialize)]
pub struct DetailValues<'a> {
    /// What it is.
    pub label: &'a str,
    /// What to copy.
    pub value: &'a str,
}

impl fmt::Debug for InstructionValues<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InstructionValues({} details)", self.details.len())
    }
}

impl Language {
    /// An amount as this language writes it, without its currency.
    #[must_use]
    pub fn amount(&self, amount: Amount) -> String {
        let text = amount.to_string();
        let Some((whole, hundredths)) = text.split_once('.') else { return text };
        let mut grouped = String::new();
        for (index, digit) in whole.chars().enumerate() {
            if index > 0 && (whole.len() - index).is_multiple_of(3) {
                grouped.push_str(&self.group);
            }
            grouped.push(digit);
        }
        grouped + &self.decimal + hundredths
    }
}

impl Pages {
    /// Pages made of a template and a stylesheet that were checked; the first language is the one for customers who ask
    /// for none of the others.
    ///
    /// # Errors
    /// The template does not compile.
    pub(super) fn new(languages: Vec<Language>, template: String, style: String) -> Result<Self, minijinja::Error> {
        let style_hash = STANDARD.encode(Sha256::digest(style.as_bytes())).into();
        let style: Arc<str> = style.into();
        let mut environment = environment(&style);
        environment.add_template_owned(TEMPLATE, template)?;
        Ok(Self { languages, environment, style, style_hash })
    }

    /// The language for a customer whose browser sends this `Accept-Language`.
    #[must_use]
    pub fn language(&self, accept_language: &str) -> &Language {
        let tags: Vec<&str> = self.languages.iter().map(|language| &*language.tag).collect();
        &self.languages[tag::chosen(accept_language, &tags)]
    }

    /// All languages, the one for customers who ask for none of the others first.
    pub(super) fn languages(&self) -> &[Language] {
        &self.languages
    }

    /// The stylesheet.
    pub(super) fn style(&self) -> &str {
        &self.style
    }

    /// What every template has beside its values: `style`, and the engine's functions.
    pub(super) fn functions(&self) -> Vec<&str> {
        self.environment.globals().map(|(name, _)| name).collect()
    }

    /// The template, as the engine has it.
    ///
    /// # Errors
    /// None that can be met: it was added.
    pub(super) fn template(&self) -> Result<minijinja::Template<'_, '_>, minijinja::Error> {
        self.environment.get_template(TEMPLATE)
    }

    /// What the `style-src` of a Content-Security-Policy allows: `sha256-…`, without quotes.
    #[must_use]
    pub fn style_source(&self) -> String {
        format!("sha256-{}", self.style_hash)
    }

    /// A page as HTML.
    ///
    /// # Errors
    /// The template failed for these values.
    pub fn render(&self, language: &Language, values: &PageValues<'_>) -> Result<String, minijinja::Error> {
        self.template()?.render(minijinja::value::Serde(&AllValues::of(language, values)))
    }
}

/// All that a template reads of a page, but for `style`, which every page has.
#[derive(Serialize)]
pub(super) struct AllValues<'a> {
    #[serde(flatten)]
    values: &'a PageValues<'a>,
    lang: &'a str,
    dir: TextDirection,
    text: &'a serde_json::Value,
}

impl<'a> AllValues<'a> {
    pub fn of(language: &'a Language, values: &'a PageValues<'a>) -> Self {
        let Language { tag, direction, texts, .. } = language;
        Self { values, lang: tag, dir: *direction, text: texts }
    }
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.languages.iter().map(|language| &language.tag)).finish()
    }
}

/// An environment for pages: an undefined value is an error wherever it is used, and whatever a template does, all values
/// are written as text, so that nothing that anybody sent becomes markup. The stylesheet alone is written as it is.
fn environment(style: &Arc<str>) -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(FUEL));
    environment.set_recursion_limit(50);
    environment.set_debug(true);
    environment.add_global("style", Value::from_object(Style(Arc::clone(style))));
    environment.set_formatter(|out, _, value| match (value.downcast_object_ref::<Style>(), value.as_str()) {
        // Nothing in it ends the element that it stands in: that was checked.
        (Some(Style(style)), _) => Ok(out.write_str(style)?),
        (None, Some(text)) => write_escaped(out, text),
        (None, None) if value.is_none() => Ok(()),
        (None, None) => write_escaped(out, &value.to_string()),
    });
    environment
}

/// The stylesheet. It is a type of its own, so that no text that anybody sent is ever taken for it.
#[derive(Debug)]
struct Style(Arc<str>);

impl Object for Style {
    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text where HTML has text, or an attribute's value in quotes.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    escape(text, |part| {
        escaped.push_str(part);
        Ok::<_, Infallible>(())
    })
    .unwrap_or_else(|never| match never {});
    escaped
}

/// Writes text where HTML has text, or an attribute's value in quotes.
fn write_escaped(out: &mut Output<'_>, text: &str) -> Result<(), minijinja::Error> {
    Ok(escape(text, |part| out.write_str(part))?)
}

fn escape<E>(text: &str, mut write: impl FnMut(&str) -> Result<(), E>) -> Result<(), E> {
    let mut rest = text;
    let special = |c: char| matches!(c, '&' | '<' | '>' | '"' | '\'') || c.is_control() && !c.is_ascii_whitespace();
    while let Some((at, found)) = rest.char_indices().find(|(_, c)| special(*c)) {
        write(&rest[..at])?;
        write(match found {
            '&' => "&amp;",
            '<' => "&lt;",
            '>' => "&gt;",
            '"' => "&quot;",
            '\'' => "&#39;",
            // An HTML document has no control characters.
            _ => "\u{fffd}",
        })?;
        rest = &rest[at + found.len_utf8()..];
    }
    write(rest)
}

#[cfg(test)]
mod tests {
    use super::super::built_in_pages;
    use super::*;

    #[test]
    fn what_values_hold_is_text() {
        let pages = built_in_pages().unwrap();
        let language = pages.language("en");
        let odd = "<script>alert(1)</script>\"'&\u{7}\u{85}";
        let amount = Amount::from_hundredths(123_456_789).unwrap();
        let payment = PaymentValues {
            merchant: odd,
            shop: odd,
            order_id: odd,
            amount: language.amount(amount),
            value: amount.to_string(),
            currency: "EUR",
        };
        let values = PageValues {
            state: PageState::Preparing,
            payment: Some(payment),
            instructions: None,
            return_url: Some("https://localhost/return/1?expires=2&signature=3"),
            action: None,
            here: None,
            refresh: Some("2"),
            request_id: "r",
        };
        let html = pages.render(language, &values).unwrap();
        assert!(
            !html.contains("<script") && html.contains("1,234,567.89") && html.contains("\"1234567.89\""),
            "{html}"
        );
        assert!(html.contains("/return/1?expires=2&amp;signature=3"), "{html}");
    }
}
