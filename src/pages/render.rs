//! A page in the customer's language.

use super::{Page, Payment, Refresh};
use crate::domain::{Instructions, RedirectUrl};
use crate::rules::{DetailValues, InstructionValues, Language, PageValues, Pages, PaymentValues, built_in_pages};

/// A page as it is sent.
#[derive(Debug)]
pub struct Html {
    /// The document.
    pub text: String,
    /// Its language's tag.
    pub language: Box<str>,
    /// What `style-src` has to allow, without quotes.
    pub style_source: Option<String>,
}

impl Page {
    /// Writes the page in the language that an `Accept-Language` asks for. A template of the operator's that fails for what
    /// no sample foretold is told to the operator, and the built-in one takes its place.
    #[must_use]
    pub fn html(&self, pages: &Pages, accept_language: &str, request_id: &str) -> Html {
        self.written(pages, accept_language, request_id).unwrap_or_else(|error| {
            tracing::error!(kind = ?error.kind(), state = ?self.state, "a page template failed: the built-in one serves");
            let built_in = built_in_pages();
            let written = built_in.and_then(|pages| self.written(&pages, accept_language, request_id).ok());
            written.unwrap_or_else(|| Html { text: BARE.to_owned(), language: "en".into(), style_source: None })
        })
    }

    fn written(&self, pages: &Pages, accept_language: &str, request_id: &str) -> Result<Html, minijinja::Error> {
        let language = pages.language(accept_language);
        let refresh = self.refresh.as_ref().map(Refresh::value);
        let values = PageValues {
            state: self.state,
            payment: self.payment.as_ref().map(|payment| payment.values(language)),
            instructions: self.instructions.as_ref().map(instruction_values),
            return_url: self.return_url.as_ref().map(RedirectUrl::expose),
            action: self.action.as_ref().map(RedirectUrl::expose),
            here: self.here.as_ref().map(RedirectUrl::expose),
            refresh: refresh.as_deref(),
            request_id,
        };
        let text = pages.render(language, &values)?;
        Ok(Html { text, language: language.tag.clone(), style_source: Some(pages.style_source()) })
    }
}

/// What is left to say when nothing can be rendered.
const BARE: &str = "<!doctype html><html lang=\"en\"><title>Payment</title><p>Go back to the shop, please.</p></html>";

impl Payment {
    fn values<'a>(&'a self, language: &Language) -> PaymentValues<'a> {
        PaymentValues {
            merchant: &self.merchant,
            shop: &self.shop,
            order_id: self.order_id.as_str(),
            amount: language.amount(self.amount),
            value: self.amount.to_string(),
            currency: self.currency.as_str(),
        }
    }
}

fn instruction_values(instructions: &Instructions) -> InstructionValues<'_> {
    let details = instructions.details().iter();
    InstructionValues {
        text: instructions.text(),
        details: details.map(|detail| DetailValues { label: &detail.label, value: &detail.value }).collect(),
    }
}

impl Refresh {
    /// As the `Refresh` header and its `http-equiv` have it.
    #[must_use]
    pub fn value(&self) -> String {
        let seconds = self.after.as_secs();
        match &self.to {
            None => seconds.to_string(),
            Some(to) => format!("{seconds}; url={}", to.expose()),
        }
    }
}
