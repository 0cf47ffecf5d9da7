//! Patterns of accounts. `\d`, `\w` and `\s` mean ASCII, as in the JSON Schemas of `fields`: Unicode has 760 digits, and
//! an account in digits of another script would be shown unmasked.

use regex::{Regex, RegexBuilder};
use regex_syntax::ast::{Ast, ClassPerl, ClassPerlKind, ClassSetItem, Visitor, parse::Parser, visit};
use serde_json::{Value, json};
use toml::Spanned;
use toml::de::DeValue;

use crate::rules::raw::{FromToml, RawReader};
use crate::rules::schema::parser_message;

/// The largest compiled pattern, in bytes.
const LARGEST_PATTERN: usize = 1 << 20;

impl FromToml for Regex {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut RawReader<'_>) -> Option<Self> {
        let text = reader.text(value, "a regular expression without look-around or back-references")?;
        compiled(text)
            .map_err(|why| reader.wrong(value.span(), format_args!("is no usable regular expression: {why}")))
            .ok()
    }

    fn schema() -> Value {
        json!({ "type": "string" })
    }
}

/// Compiles a pattern.
///
/// # Errors
/// Why it cannot be used, in the parser's words.
fn compiled(text: &str) -> Result<Regex, String> {
    regex_syntax::parse(text).map_err(|error| parser_message(&error))?;
    let spelled = with_ascii_classes(text).ok_or("it cannot be read")?;
    RegexBuilder::new(&spelled)
        .size_limit(LARGEST_PATTERN)
        .build()
        .map_err(|_| format!("it takes more than {} KiB of memory", LARGEST_PATTERN >> 10))
}

/// Spells `\d`, `\w`, `\s` and their negations out in ASCII. The flag that makes them ASCII is not allowed for negations
/// and within brackets. `None`: the pattern is invalid.
fn with_ascii_classes(text: &str) -> Option<String> {
    let classes = visit(&Parser::new().parse(text).ok()?, Classes::default()).ok()?;
    let (mut spelled, mut end) = (String::with_capacity(text.len()), 0);
    for Class { perl, in_brackets } in classes {
        let negation = if perl.negated { "^" } else { "" };
        let members = match perl.kind {
            ClassPerlKind::Digit => "0-9",
            ClassPerlKind::Space => r"\t\n\x0B\x0C\r\x20",
            ClassPerlKind::Word => "0-9A-Z_a-z",
        };
        spelled.push_str(text.get(end..perl.span.start.offset)?);
        // Without regard to case, `k` would mean the Kelvin sign too.
        let (begin, end_of_class) = if in_brackets { ("[", "]") } else { ("(?-i:[", "])") };
        spelled.extend([begin, negation, members, end_of_class]);
        end = perl.span.end.offset;
    }
    spelled.push_str(text.get(end..)?);
    Some(spelled)
}

/// A class as written, such as `\d`.
struct Class {
    perl: ClassPerl,
    in_brackets: bool,
}

/// Collects the classes of a pattern, from left to right.
#[derive(Default)]
struct Classes(Vec<Class>);

impl Visitor for Classes {
    type Output = Vec<Class>;
    type Err = ();

    fn finish(self) -> Result<Vec<Class>, ()> {
        Ok(self.0)
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<(), ()> {
        if let Ast::ClassPerl(perl) = ast {
            self.0.push(Class { perl: (**perl).clone(), in_brackets: false });
        }
        Ok(())
    }

    fn visit_class_set_item_pre(&mut self, item: &ClassSetItem) -> Result<(), ()> {
        if let ClassSetItem::Perl(perl) = item {
            self.0.push(Class { perl: perl.clone(), in_brackets: true });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_mean_ascii() {
        for (pattern, ours, others) in [
            (r"^\d{4}$", "1234", "١٢٣٤"),
            (r"^[\d-]{4}$", "12-4", "١٢-٤"),
            (r"^[^\D]{4}$", "1234", "١٢٣٤"),
            (r"^\w+$", "aZ_9", "straße"),
            (r"(?i)^\w+$", "aZ_9", "\u{212a}"),
            (r"(?x) ^ [\w.]+ $ # \d", "a.Z", "é"),
            (r"^a\sb$", "a b", "a\u{a0}b"),
            (r"^[[:digit:]]{4}$", "1234", "١٢٣٤"),
            (r"^(?:\d|[a-z&&\w]){4}$", "1a2b", "1à2b"),
        ] {
            let regex = compiled(pattern).unwrap();
            assert!(regex.is_match(ours) && !regex.is_match(others), "{pattern}: {regex}");
        }
        for (pattern, ours) in
            [(r"^\D$", "٤"), (r"^\W$", "é"), (r"^[^\w]$", "é"), (r"^\S+$", "\u{a0}"), (r"^\\d$", r"\d")]
        {
            assert!(compiled(pattern).unwrap().is_match(ours), "{pattern}");
        }
    }

    #[test]
    fn all_else_is_as_it_was() {
        for pattern in [r"^[A-Z]{2}[0-9]{10,32}$", r"^\p{Nd}{4}$", r"\bä[a-z&&[^x]]", "", "(?s-u:.)|é|(?P<a>[]a-])"] {
            let is_valid = Regex::new(pattern).is_ok();
            assert_eq!(compiled(pattern).ok().map(|regex| regex.to_string()), is_valid.then(|| pattern.to_owned()));
        }
        for (invalid, why) in [
            ("(", "unclosed group"),
            ("[", "unclosed character class"),
            ("^[A-Z{2}$", "unclosed character class"),
            (r"(?=\d)", "look-around, including look-ahead and look-behind, is not supported"),
            (r"(\d)\1", "backreferences are not supported"),
            (r"\p{Nothing}", "Unicode property not found"),
            (r"\d{1000}{1000}{1000}", "it takes more than 1024 KiB of memory"),
        ] {
            assert_eq!(compiled(invalid).unwrap_err(), why, "{invalid}");
        }
    }
}
