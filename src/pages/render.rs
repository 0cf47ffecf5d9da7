//! Renders a page in the customer's language as HTML. Everything but the markup itself is escaped.

use std::fmt::{self, Write as _};

use super::page::{HtmlPage, Payment, Refresh};
use crate::domain::Instructions;
use crate::rules::{Language, PageState, Pages};

/// A page as it is sent.
#[derive(Debug)]
pub struct Html<'p> {
    /// The document.
    pub text: String,
    /// Its language's tag.
    pub language: &'p str,
    /// The source that `style-src` has to allow, without quotes.
    pub style_source: String,
}

impl HtmlPage {
    /// Renders the page in the language that `Accept-Language` prefers.
    #[must_use]
    pub fn html<'p>(&self, pages: &'p Pages, accept_language: &str, request_id: &str) -> Html<'p> {
        let language = pages.language(accept_language);
        let mut text = String::with_capacity(16 << 10);
        // Writing to a string cannot fail.
        let _ = Document { page: self, pages, language }.write(&mut text, request_id);
        Html { text, language: &language.tag, style_source: pages.style_source() }
    }
}

/// A page with what rendering needs.
struct Document<'a> {
    page: &'a HtmlPage,
    pages: &'a Pages,
    language: &'a Language,
}

impl<'a> Document<'a> {
    /// Returns a text about the page's state.
    fn state_text(&self, key: &str) -> Text<'a> {
        Text(self.language.text(self.page.state.as_str(), key))
    }

    fn label(&self, key: &str) -> Text<'a> {
        Text(self.language.text("labels", key))
    }

    fn action(&self, key: &str) -> Text<'a> {
        Text(self.language.text("actions", key))
    }

    /// Reports whether the customer only has to wait.
    fn is_waiting(&self) -> bool {
        matches!(self.page.state, PageState::Preparing | PageState::Busy)
    }

    fn write(&self, out: &mut String, request_id: &str) -> fmt::Result {
        self.head(out)?;
        self.header(out)?;
        let state = self.page.state;
        writeln!(out, "<main class=\"{}\">", state.as_str())?;
        match icon(state) {
            None => writeln!(out, "<div class=\"mark turning\" aria-hidden=\"true\"></div>")?,
            Some(icon) => writeln!(
                out,
                "<svg class=\"mark\" viewBox=\"0 0 24 24\" aria-hidden=\"true\"><circle cx=\"12\" cy=\"12\" r=\"11\"/>\
                 <path d=\"{icon}\"/></svg>"
            )?,
        }
        writeln!(out, "<h1>{}</h1>", self.state_text("title"))?;
        let role = if self.is_waiting() || state == PageState::Stopped { " role=\"status\"" } else { "" };
        writeln!(out, "<p class=\"lead\"{role}>{}</p>", self.state_text("text"))?;
        if let Some(payment) = &self.page.payment {
            self.amount(out, payment)?;
        }
        if let Some(instructions) = &self.page.instructions {
            write_instructions(out, instructions)?;
        }
        if let Some(payment) = &self.page.payment {
            self.payment(out, payment)?;
        }
        self.form(out)?;
        self.links(out)?;
        writeln!(out, "</main>")?;
        let reference = self.label("reference");
        writeln!(out, "<footer>\n<p>{reference} <bdi>{}</bdi></p>\n</footer>\n</body>\n</html>", Text(request_id))
    }

    fn head(&self, out: &mut String) -> fmt::Result {
        let (lang, dir) = (Text(&self.language.tag), self.language.direction.as_str());
        writeln!(out, "<!doctype html>\n<html lang=\"{lang}\" dir=\"{dir}\">\n<head>\n<meta charset=\"utf-8\">")?;
        write!(out, "<title>{}", self.state_text("title"))?;
        if let Some(payment) = &self.page.payment {
            write!(out, " – {}", Text(&payment.merchant))?;
        }
        out.write_str(
            "</title>\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <meta name=\"robots\" content=\"noindex\">\n\
             <meta name=\"referrer\" content=\"no-referrer\">\n\
             <meta name=\"format-detection\" content=\"telephone=no\">\n\
             <link rel=\"icon\" href=\"data:,\">\n",
        )?;
        if let Some(refresh) = self.page.refresh.as_ref().map(Refresh::value) {
            let refresh = Text(&refresh);
            writeln!(out, "<noscript><meta http-equiv=\"refresh\" content=\"{refresh}\"></noscript>")?;
        }
        writeln!(out, "<style>{}</style>\n</head>\n<body>", self.pages.style())
    }

    /// Writes the logo and the name of the operator. The logo has no alternative text, because the name beside it is
    /// the same.
    fn header(&self, out: &mut String) -> fmt::Result {
        let (logo, name) = (self.pages.logo(), self.pages.name());
        if logo.is_none() && name.is_none() {
            return Ok(());
        }
        write!(out, "<header>")?;
        if let Some(logo) = logo {
            write!(out, "<img src=\"{}\" alt=\"\">", Text(logo))?;
        }
        if let Some(name) = name {
            write!(out, "<bdi>{}</bdi>", Text(name))?;
        }
        writeln!(out, "</header>")
    }

    fn amount(&self, out: &mut String, payment: &Payment) -> fmt::Result {
        let amount = self.language.amount(payment.amount);
        let class = if amount.chars().count() > 12 { " class=\"many\"" } else { "" };
        let (label, value, currency) = (self.label("amount"), payment.amount, Text(payment.currency.as_str()));
        let amount = Text(&amount);
        writeln!(
            out,
            "<dl class=\"sum\">\n<div><dt>{label}</dt><dd{class}><bdi><data value=\"{value}\">{amount}</data> \
             <span>{currency}</span></bdi></dd></div>\n</dl>"
        )
    }

    fn payment(&self, out: &mut String, payment: &Payment) -> fmt::Result {
        let rows = [("merchant", &*payment.merchant), ("method", &*payment.shop), ("order", payment.order_id.as_str())];
        writeln!(out, "<dl class=\"rows\">")?;
        for (label, value) in rows {
            writeln!(out, "<div><dt>{}</dt><dd><bdi>{}</bdi></dd></div>", self.label(label), Text(value))?;
        }
        writeln!(out, "</dl>")
    }

    /// Writes the sandbox's form.
    fn form(&self, out: &mut String) -> fmt::Result {
        let Some(action) = &self.page.action else { return Ok(()) };
        let (pay, decline) = (self.action("pay"), self.action("decline"));
        writeln!(
            out,
            "<form method=\"post\" action=\"{}\">\n\
             <button class=\"button main\" name=\"decision\" value=\"pay\">{pay}</button>\n\
             <button class=\"button\" name=\"decision\" value=\"decline\">{decline}</button>\n\
             </form>",
            Text(action.expose())
        )
    }

    /// Writes the links: first the one back to the merchant, unless another action comes first.
    fn links(&self, out: &mut String) -> fmt::Result {
        let HtmlPage { return_url, here, action, .. } = self.page;
        let hint = self.state_text("hint");
        if return_url.is_some() && !hint.0.is_empty() {
            writeln!(out, "<p class=\"hint\">{hint}</p>")?;
        }
        if return_url.is_none() && here.is_none() {
            return Ok(());
        }
        let comes_last = action.is_some() || self.is_waiting();
        let back = |out: &mut String, class: &str| match return_url {
            Some(url) => {
                let (url, label) = (Text(url.expose()), self.action("return"));
                writeln!(out, "<a class=\"button {class}\" href=\"{url}\">{label}</a>")
            }
            None => Ok(()),
        };
        writeln!(out, "<div class=\"ways\">")?;
        if !comes_last {
            back(out, "main")?;
        }
        if let Some(here) = here {
            writeln!(out, "<a class=\"button\" href=\"{}\">{}</a>", Text(here.expose()), self.action("check"))?;
        }
        if comes_last {
            back(out, "quiet")?;
        }
        writeln!(out, "</div>")
    }
}

fn write_instructions(out: &mut String, instructions: &Instructions) -> fmt::Result {
    if let Some(text) = instructions.text() {
        writeln!(out, "<p class=\"note\" dir=\"auto\">{}</p>", Text(text))?;
    }
    if instructions.details().is_empty() {
        return Ok(());
    }
    writeln!(out, "<dl class=\"copy\">")?;
    for detail in instructions.details() {
        let (label, value) = (Text(&detail.label), Text(&detail.value));
        writeln!(out, "<div><dt><bdi>{label}</bdi></dt><dd><bdi>{value}</bdi></dd></div>")?;
    }
    writeln!(out, "</dl>")
}

/// Returns the path of a state's icon, drawn in a circle; `None`: the turning circle of waiting.
const fn icon(state: PageState) -> Option<&'static str> {
    match state {
        PageState::Preparing | PageState::Busy => None,
        PageState::Instructions => Some("M8 8h8M8 12h8M8 16h5"),
        PageState::Stopped => Some("M12 7v5l3 2"),
        PageState::Sandbox => Some("M9.5 6.5h5M10.5 6.5v4l-3 6h9l-3-6v-4"),
        PageState::Success => Some("m7.5 12.5 3 3 6-6.5"),
        PageState::Failed => Some("m8.5 8.5 7 7m0-7-7 7"),
        PageState::Refused | PageState::Error => Some("M12 7.5v5.5m0 3v.5"),
    }
}

/// A text, escaped for HTML text and for attribute values in quotes.
#[derive(Clone, Copy)]
struct Text<'a>(&'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let special = |c: char| matches!(c, '&' | '<' | '>' | '"' | '\'') || c.is_control() && !c.is_ascii_whitespace();
        for part in self.0.split_inclusive(special) {
            let last = part.chars().next_back().filter(|c| special(*c));
            f.write_str(&part[..part.len() - last.map_or(0, char::len_utf8)])?;
            f.write_str(match last {
                None => "",
                Some('&') => "&amp;",
                Some('<') => "&lt;",
                Some('>') => "&gt;",
                Some('"') => "&quot;",
                Some('\'') => "&#39;",
                // An HTML document has no control characters.
                Some(_) => "\u{fffd}",
            })?;
        }
        Ok(())
    }
}

impl Refresh {
    /// Returns the value for the `Refresh` header and `http-equiv`.
    #[must_use]
    pub fn value(&self) -> String {
        let seconds = self.after.as_secs();
        match &self.to {
            None => seconds.to_string(),
            Some(to) => format!("{seconds}; url={}", to.expose()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_never_markup() {
        for (text, html) in [
            ("", ""),
            ("plain é 付款", "plain é 付款"),
            ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
            ("a\"b'c&amp;", "a&quot;b&#39;c&amp;amp;"),
            ("\u{7}\u{85}x\ny", "\u{fffd}\u{fffd}x\ny"),
        ] {
            assert_eq!(Text(text).to_string(), html);
        }
    }
}
