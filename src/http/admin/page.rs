//! The frame of every page of the console.

use crate::pages::Text;

/// Returns a page. `title` is text, `head` and `main` are markup.
pub(super) fn document(title: &str, head: &str, main: &str) -> String {
    let title = Text(title);
    // The header's policy is `no-referrer`, under which forms would name no origin either: `Origin: null`, which the
    // guard refuses.
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{title} – Paybridge</title>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"same-origin\">\n<link rel=\"icon\" href=\"data:,\">\n{head}</head>\n\
         <body>\n<main>\n<h1>{title}</h1>\n{main}</main>\n</body>\n</html>\n"
    )
}
