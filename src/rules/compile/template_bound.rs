//! What a value in a template is at most.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::Value;

/// How long a text of a reply is taken to be at most, in bytes as JSON writes it. The longest `external_id` has 1,530, all
/// of it escaped; only a URL of nothing but `&` is longer.
const LONGEST_TEXT: u64 = 2 << 10;

/// How many bytes JSON may write for one.
pub(super) const ESCAPED: u64 = 6;

/// The longest spelling of a number: a double without an exponent.
pub(super) const LONGEST_NUMBER: u64 = 340;

/// What a step costs that handles no text, and what a list needs for an element.
pub(super) const STEP: u64 = 32;

/// What a value is at most.
#[derive(Debug, Clone)]
pub(super) struct Bound {
    /// Of it as JSON, whole.
    pub bytes: u64,
    /// Its elements, members or characters.
    pub items: u64,
    /// How deep values are in each other.
    pub depth: u32,
    /// Whether it is surely a number, or nothing that a number could multiply.
    pub number: bool,
    /// Each of its elements or members; `None`: they have none, and are no larger than itself.
    pub inside: Option<Rc<Self>>,
    /// Its members by name, where they are known.
    members: Option<Rc<BTreeMap<String, Self>>>,
}

impl Bound {
    /// Of an element of an empty list.
    pub const fn nothing() -> Self {
        Self { bytes: 0, items: 0, depth: 0, number: true, inside: None, members: None }
    }

    pub const fn text(bytes: u64) -> Self {
        Self { bytes, items: bytes, depth: 0, number: false, inside: None, members: None }
    }

    pub const fn number() -> Self {
        Self { bytes: LONGEST_NUMBER, items: 0, depth: 0, number: true, inside: None, members: None }
    }

    /// A list or an object of `items` values like `inside`, of `bytes` together.
    pub fn list(bytes: u64, items: u64, inside: Self) -> Self {
        let bytes = bytes.saturating_add(items.saturating_mul(STEP));
        let depth = inside.depth + 1;
        Self { bytes, items, depth, number: false, inside: Some(Rc::new(inside)), members: None }
    }

    /// What there is at most where a sample has `value`: samples have as many elements as there can be, but of replies short
    /// texts.
    pub fn of(value: &Value) -> Self {
        let all = |values: Vec<Self>| {
            let bytes = values.iter().fold(0_u64, |sum, value| sum.saturating_add(value.bytes));
            let items = values.len() as u64;
            Self::list(bytes, items, values.iter().fold(Self::nothing(), Self::or))
        };
        match value {
            Value::Null => Self::text(0),
            Value::Bool(_) | Value::Number(_) => Self::number(),
            Value::String(text) => Self::text(LONGEST_TEXT.max((text.len() as u64).saturating_mul(ESCAPED))),
            Value::Array(values) => all(values.iter().map(Self::of).collect()),
            Value::Object(members) => {
                let names = members.keys().map(|name| Self::text(name.len() as u64));
                let known = members.iter().map(|(name, value)| (name.clone(), Self::of(value))).collect();
                let all = all(names.chain(members.values().map(Self::of)).collect());
                Self { members: Some(Rc::new(known)), ..all }
            }
        }
    }

    pub fn inside(&self) -> Self {
        self.inside.as_deref().cloned().unwrap_or_else(|| Self::text(self.bytes))
    }

    /// A member; of what has others, nothing.
    pub fn member(&self, name: &str) -> Self {
        match &self.members {
            Some(members) => members.get(name).cloned().unwrap_or_else(|| Self::text(0)),
            None => self.inside(),
        }
    }

    /// One of both.
    pub fn or(self, other: &Self) -> Self {
        let inside = match (&self.inside, &other.inside) {
            (None, None) => None,
            _ => Some(Rc::new(self.inside().or(&other.inside()))),
        };
        let members = match (self.members, &other.members) {
            (Some(own), Some(others)) => Some(Rc::new(either(&own, others))),
            // What has nothing inside has no members either.
            (Some(known), None) if other.inside.is_none() => Some(known),
            (None, Some(known)) if self.inside.is_none() => Some(Rc::clone(known)),
            _ => None,
        };
        Self {
            bytes: self.bytes.max(other.bytes),
            items: self.items.max(other.items),
            depth: self.depth.max(other.depth),
            number: self.number && other.number,
            inside,
            members,
        }
    }

    /// As a text. A list shows its texts with escapes.
    pub fn as_text(&self) -> Self {
        let spelled = if self.inside.is_some() { ESCAPED } else { 1 };
        Self::text(self.bytes.saturating_mul(spelled))
    }

    pub fn times(&self, times: u64) -> Self {
        Self { bytes: self.bytes.saturating_mul(times), items: self.items.saturating_mul(times), ..self.clone() }
    }

    /// One after the other: texts, or lists.
    pub fn and(&self, other: &Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            items: self.items.saturating_add(other.items),
            ..self.clone().or(other).deeper()
        }
    }

    /// The same values in another order, or fewer of them, by way of an iterator.
    pub fn rearranged(&self) -> Self {
        Self { depth: self.depth + 1, ..Self::list(self.bytes, self.items, self.inside()) }
    }

    /// Each member with its name.
    pub fn pairs(&self) -> Self {
        let inside = self.inside();
        let pair = Self::list(self.bytes, 2, inside);
        Self { depth: self.depth + 2, ..Self::list(self.bytes, self.items, pair) }
    }

    pub fn deeper(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }
}

/// The members of one of two values.
fn either(one: &BTreeMap<String, Bound>, other: &BTreeMap<String, Bound>) -> BTreeMap<String, Bound> {
    let mut members = one.clone();
    for (name, bound) in other {
        let known = members.remove(name);
        members.insert(name.clone(), known.map_or_else(|| bound.clone(), |known| known.or(bound)));
    }
    members
}
