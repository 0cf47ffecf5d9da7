//! Samples of bodies: names, lengths and shapes, never values.

use serde_json::{Map, Value};

use super::verdict::selected_shop;
use crate::domain::Direction;
use crate::json::{self, Node, Object};
use crate::names::masked;
use crate::rules::{FieldsSchema, Merchant, RuleSet};
use crate::wire::members::present;
use crate::wire::v1::PAYMENT_DATA;

/// The longest sample, in bytes.
const MAX_SAMPLE_BYTES: usize = 2048;

/// The deepest object whose members are shown; the body is level 1.
const DEEPEST: usize = 4;

/// The name that stands for members that a sample has no room for.
const MORE: &str = "...";

/// Returns the sample of a body, the text of a JSON value: `{"amount":"string(5)","paymentData":{"list":"array(3)"}}`. Names
/// that no rule has are masked.
#[must_use]
pub fn sample(rules: &RuleSet, merchant: &Merchant, direction: Direction, body: &[u8]) -> Box<str> {
    let Ok(read) = json::read(body) else { return Value::String(format!("text({})", body.len())).to_string().into() };
    let shop_code = read.as_object().and_then(|body| present(body, "shop_code")?.as_str());
    let shop = selected_shop(rules, merchant, shop_code);
    let schema = shop.and_then(|shop| shop.rules_of(direction).schema.as_deref());
    let mut sampler = Sampler { schema, room: MAX_SAMPLE_BYTES };
    sampler.value(&read, 1, false).to_string().into()
}

struct Sampler<'s> {
    schema: Option<&'s FieldsSchema>,
    /// How many bytes may be added.
    room: usize,
}

impl Sampler<'_> {
    fn value(&mut self, value: &json::Value<'_>, depth: usize, in_fields: bool) -> Value {
        let shape = |kind: &str, length: usize| Value::String(format!("{kind}({length})"));
        match &value.node {
            Node::Null => "null".into(),
            Node::Bool(_) => "boolean".into(),
            Node::Number => shape("number", value.raw.bytes().filter(u8::is_ascii_digit).count()),
            Node::String(text) => shape("string", text.chars().count()),
            Node::Array(items) => shape("array", items.len()),
            Node::Object(members) if depth > DEEPEST => shape("object", members.0.len()),
            Node::Object(members) => self.object(members, depth, in_fields),
        }
    }

    fn object(&mut self, object: &Object<'_>, depth: usize, in_fields: bool) -> Value {
        /// The most bytes of a shape with its punctuation, and of `MORE` with its own.
        const SHAPE: usize = 32;
        let mut shown = Map::new();
        self.room = self.room.saturating_sub(SHAPE);
        for member in &object.0 {
            // Names that v1 and v2 have are short and without digits.
            let is_named = in_fields && self.schema.is_some_and(|schema| schema.has_name(&member.name));
            let name = if is_named { member.name.clone().into_owned() } else { masked(&member.name) };
            // A character may be escaped, at twice its length or less.
            let bytes = 2 * name.len() + SHAPE;
            if bytes > self.room {
                shown.insert(MORE.to_owned(), Value::String("more members".to_owned()));
                break;
            }
            self.room -= bytes;
            let below = in_fields || member.name == PAYMENT_DATA;
            shown.insert(name, self.value(&member.value, depth + 1, below));
        }
        Value::Object(shown)
    }
}
