//! `pages/<language tag>.toml` as it is written: what customers read in a language.

use serde_json::{Value, json};
use toml::Spanned;
use toml::de::DeValue;

use crate::domain::deceives;
use crate::rules::raw::{Absent, Field, FromToml, Reader, Table, from_words};
use crate::rules::{PageState, TextDirection};

/// How long a text may be, in characters.
const LONGEST_TEXT: usize = 500;

/// How long what stands between the digits of an amount may be, in characters.
const LONGEST_SEPARATOR: usize = 4;

/// A table of texts.
pub(in crate::rules) struct TextTable {
    /// Its name.
    pub name: &'static str,
    about: &'static str,
    /// What may stand in it.
    pub keys: &'static [TextKey],
}

/// A text of a table.
pub(in crate::rules) struct TextKey {
    /// Its name.
    pub name: &'static str,
    several_lines: bool,
    about: &'static str,
}

/// A text of one line.
const fn line(name: &'static str, about: &'static str) -> TextKey {
    TextKey { name, several_lines: false, about }
}

/// What stands on a page of a state.
const STATE: &[TextKey] = &[
    line("title", "The heading, and the name of the browser's tab."),
    TextKey { name: "text", several_lines: true, about: "What is going on. Line breaks count." },
    TextKey { name: "hint", several_lines: true, about: "What helps beside that. Line breaks count." },
];

/// The texts of a page of this state.
const fn of_state(state: PageState, about: &'static str) -> TextTable {
    TextTable { name: state.as_str(), about, keys: STATE }
}

/// All texts: a text that is added is one line here, and one in each language that is built in.
pub(in crate::rules) const TABLES: &[TextTable] = &[
    TextTable {
        name: "labels",
        about: "What stands before values.",
        keys: &[
            line("merchant", "Before the merchant's name."),
            line("amount", "Before the amount and its currency."),
            line("method", "Before the shop's name."),
            line("order", "Before the merchant's name for the order."),
            line("reference", "Before what whoever is asked for help wants to know."),
        ],
    },
    TextTable {
        name: "actions",
        about: "What links and buttons say.",
        keys: &[
            line("return", "The link to the merchant."),
            line("check", "The link that asks once more."),
            line("pay", "The sandbox's button to pay."),
            line("decline", "The sandbox's button to decline."),
        ],
    },
    of_state(PageState::Preparing, "While the payment is prepared."),
    of_state(PageState::Instructions, "Above payment instructions."),
    of_state(PageState::Stopped, "When preparation stopped and the result is unknown."),
    of_state(PageState::Sandbox, "On the sandbox's page."),
    of_state(PageState::Success, "When the payment was received."),
    of_state(PageState::Failed, "When the payment failed."),
    of_state(PageState::Refused, "When a link is not, or no longer, good."),
    of_state(PageState::Busy, "When the page cannot be shown now."),
    of_state(PageState::Error, "When something else went wrong."),
];

/// `pages/<language tag>.toml`.
#[derive(Debug, Default)]
pub(in crate::rules) struct RawTexts {
    /// In which direction the language is written.
    pub direction: Field<TextDirection>,
    /// Between whole units and hundredths.
    pub decimal: Field<Separator>,
    /// Between thousands.
    pub group: Field<Separator>,
    /// The texts that the file has, with their tables and keys.
    texts: Vec<(&'static str, &'static str, String)>,
}

impl RawTexts {
    /// What the file has for a key of a table.
    pub fn text(&self, table: &str, key: &str) -> Option<&str> {
        let found = self.texts.iter().find(|(in_table, name, _)| (*in_table, *name) == (table, key));
        found.map(|(.., text)| text.as_str())
    }
}

/// What stands between the digits of an amount.
#[derive(Debug, Clone)]
pub(in crate::rules) struct Separator(pub String);

impl FromToml for Separator {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        let text = reader.text(value, "a string")?;
        let wrong = |c: char| c.is_control() || deceives(c) || c.is_alphanumeric();
        if text.chars().count() > LONGEST_SEPARATOR || text.contains(wrong) {
            let reason = "must be at most 4 characters without letters, digits, control characters and invisible ones";
            reader.wrong(value.span(), reason);
            return None;
        }
        Some(Self(text.to_owned()))
    }

    fn schema() -> Value {
        json!({ "type": "string", "maxLength": LONGEST_SEPARATOR })
    }
}

impl FromToml for RawTexts {
    fn from_toml(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        let mut raw = Self::default();
        for (key, value) in reader.table(value)? {
            let name = key.get_ref().as_ref();
            match name {
                "direction" => raw.direction.read(name, value, reader),
                // Without anything between them, nobody could tell hundredths from units.
                "decimal" if value.get_ref().as_str().is_some_and(str::is_empty) => {
                    raw.decimal = Field::Wrong;
                    reader.under(name, |reader| reader.wrong(value.span(), "must not be empty"));
                }
                "decimal" => raw.decimal.read(name, value, reader),
                "group" => raw.group.read(name, value, reader),
                _ => {
                    let Some(table) = TABLES.iter().find(|table| table.name == name) else {
                        let tables = TABLES.iter().map(|table| table.name);
                        let known: Vec<&str> = ["direction", "decimal", "group"].into_iter().chain(tables).collect();
                        reader.unknown_key(key, value, &known);
                        continue;
                    };
                    reader.under(name, |reader| raw.read_table(table, value, reader));
                }
            }
        }
        Some(raw)
    }

    fn schema() -> Value {
        let mut all = Table::new(&[
            "`pages/<language tag>.toml`: what customers read in a language. Every key may be left out: a language that is",
            "built in then has its built-in text, any other the English one.",
        ]);
        let about = "In which direction the language is written: `ltr` (from left to right) or `rtl`.";
        all.key("direction", &[about], TextDirection::schema(), Absent::Unsaid);
        let about = "Between whole units and hundredths of an amount: 1 to 4 characters.";
        all.key("decimal", &[about], Separator::schema(), Absent::Unsaid);
        all.key_says("decimal", json!({ "minLength": 1 }));
        let about = "Between thousands of an amount: at most 4 characters.";
        all.key("group", &[about], Separator::schema(), Absent::Unsaid);
        for table in TABLES {
            let mut texts = Table::new(&[table.about]);
            for key in table.keys {
                let about = format!("{} 1 to {LONGEST_TEXT} characters.", key.about);
                let schema = json!({ "type": "string", "minLength": 1, "maxLength": LONGEST_TEXT });
                texts.key(key.name, &[&about], schema, Absent::Unsaid);
            }
            all.key(table.name, &[table.about], texts.into_schema(), Absent::Unsaid);
        }
        all.into_schema()
    }
}

impl RawTexts {
    fn read_table(&mut self, table: &TextTable, value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) {
        let Some(entries) = reader.table(value) else { return };
        for (key, value) in entries {
            let name = key.get_ref().as_ref();
            let Some(known) = table.keys.iter().find(|known| known.name == name) else {
                let names: Vec<&str> = table.keys.iter().map(|known| known.name).collect();
                reader.unknown_key(key, value, &names);
                continue;
            };
            if let Some(text) = reader.under(name, |reader| text(known, value, reader)) {
                self.texts.push((table.name, known.name, text));
            }
        }
    }
}

from_words! {
    TextDirection {
        "ltr" => TextDirection::Ltr,
        "rtl" => TextDirection::Rtl,
    }
}

/// Characters that join or part letters, which some languages cannot be written without (Persian, Hindi), are no deceit
/// in what an operator writes.
const JOINERS: [char; 2] = ['\u{200c}', '\u{200d}'];

fn text(key: &TextKey, value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<String> {
    let text = reader.text(value, "a string")?;
    let breaks = |c: char| key.several_lines && c == '\n';
    let wrong = |c: char| (c.is_control() && !breaks(c)) || (deceives(c) && !JOINERS.contains(&c));
    if text.trim().is_empty() || text.chars().count() > LONGEST_TEXT || text.contains(wrong) {
        let but = if key.several_lines { " other than line breaks" } else { "" };
        let reason = format_args!(
            "must be 1 to {LONGEST_TEXT} characters that can be read: no control characters{but}, and none that are \
             invisible or change the order of others"
        );
        reader.wrong(value.span(), reason);
        return None;
    }
    Some(text.to_owned())
}
