//! Applies a compiled schema to the `fields` of a request. The validator reads them without copying: members from the
//! request body, defaults from the schema.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use jsonschema::json::{Array, Json, JsonNumber, Node, NodeIdentity, Object};
use jsonschema::{JsonType, Validator};
use serde_json::{Map, Number, Value};

use super::problem::{FieldProblem, FieldRule};
use super::words::field_problem;
use crate::domain::{KeptFields, MERCHANT_USER_IP, MerchantId};
use crate::json;

/// A compiled schema of `fields`.
#[derive(Debug)]
pub struct FieldsSchema {
    pub(super) kept: Arc<[Box<str>]>,
    /// The names of members that the schema has at any depth.
    pub(super) names: HashSet<Box<str>>,
    /// The names of the allowed-value lists that it uses, sorted.
    pub(super) lists: Box<[Box<str>]>,
    pub(super) defaults: Box<[SchemaDefault]>,
    /// Whether the schema's `required` names `merchant_user_ip`.
    pub(super) requires_ip: bool,
    /// Whether any other part of the schema names `merchant_user_ip`. If not, the member is left out of what is
    /// validated.
    pub(super) names_ip: bool,
    pub(super) common: Validator<FieldsJson>,
    /// For merchants with lists of their own.
    pub(super) own: HashMap<MerchantId, Validator<FieldsJson>>,
}

/// The default of a member.
#[derive(Debug)]
pub(super) struct SchemaDefault {
    name: String,
    value: Value,
    /// The member as JSON text.
    text: String,
}

impl SchemaDefault {
    pub(super) fn new(name: String, value: Value) -> Self {
        let mut text = String::new();
        json::write_string(&mut text, &name);
        text.push(':');
        text.push_str(&value.to_string());
        Self { name, value, text }
    }
}

impl FieldsSchema {
    /// Returns the names of the members that the schema keeps, sorted: its `properties`, and `merchant_user_ip`.
    #[must_use]
    pub fn kept(&self) -> &Arc<[Box<str>]> {
        &self.kept
    }

    /// Reports whether the schema has a member of this name, at any depth.
    #[must_use]
    pub fn has_name(&self, name: &str) -> bool {
        name == MERCHANT_USER_IP || self.names.contains(name)
    }

    /// Returns the names of the allowed-value lists that the schema uses, sorted.
    pub(in crate::rules) fn lists(&self) -> &[Box<str>] {
        &self.lists
    }

    /// Checks the `fields` of a request, reduced to what the schema keeps, for a merchant. Returns the members that the
    /// schema's defaults add, as the JSON text of an object.
    ///
    /// # Errors
    /// The first member that the schema refuses, or that holds a number which it cannot be compared with.
    pub fn check_fields(
        &self,
        merchant: &MerchantId,
        fields: &KeptFields<'_>,
    ) -> Result<Cow<'static, str>, FieldProblem> {
        if let Some(member) = fields.members().find(|member| !numbers_fit(&member.value)) {
            let path = member.name.clone().into_owned();
            let rule = FieldRule { member: path.clone(), keyword: format!("properties.{path}"), list: None };
            return Err(FieldProblem { path, reason: "holds a number that is out of range".into(), rule });
        }
        let members = fields.members().map(|member| (&*member.name, FieldValue::Read(&member.value)));
        self.check(merchant, members)
    }

    /// Validates members for a merchant, whose own allowed-value lists replace the common ones. The caller has already
    /// removed members that are not kept and a `null` `merchant_user_ip`. Returns the members that the schema's
    /// defaults add, as the JSON text of an object.
    ///
    /// # Errors
    /// The first member that the schema refuses.
    pub(crate) fn check<'a>(
        &'a self,
        merchant: &MerchantId,
        members: impl Iterator<Item = (&'a str, FieldValue<'a>)>,
    ) -> Result<Cow<'static, str>, FieldProblem> {
        // Room for all members and defaults, so that the vector does not grow.
        let mut whole = Whole(Vec::with_capacity(members.size_hint().0 + self.defaults.len()));
        whole.0.extend(members);
        if self.requires_ip && !whole.names(MERCHANT_USER_IP) {
            let rule = FieldRule { member: MERCHANT_USER_IP.into(), keyword: "required".into(), list: None };
            return Err(FieldProblem { path: MERCHANT_USER_IP.into(), reason: "is required".into(), rule });
        }
        let added: Vec<_> = self.defaults.iter().filter(|default| !whole.names(&default.name)).collect();
        if !self.names_ip {
            whole.0.retain(|(name, _)| *name != MERCHANT_USER_IP);
        }
        whole.0.extend(added.iter().map(|default| (default.name.as_str(), FieldValue::Given(&default.value))));
        let whole = FieldValue::Whole(&whole);
        let validator = self.own.get(merchant).unwrap_or(&self.common);
        if !validator.is_valid(whole) {
            // The error is taken from a sorted object, so that it does not depend on the order of the members as sent.
            let problem = |error| field_problem(&error, |name| self.has_name(name));
            validator.validate(FieldValue::Given(&whole.to_value())).map_err(problem)?;
        }
        if added.is_empty() {
            return Ok(Cow::Borrowed("{}"));
        }
        let members: Vec<_> = added.iter().map(|default| default.text.as_str()).collect();
        Ok(format!("{{{}}}", members.join(",")).into())
    }
}

/// The JSON representation that validators of `fields` use.
pub(super) struct FieldsJson;

/// A value that a schema is applied to.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FieldValue<'a> {
    /// A value of a request body.
    Read(&'a json::Value<'a>),
    /// A value of a rule file, or any other `serde_json` value.
    Given(&'a Value),
    /// The name of a member, as a string.
    Name(&'a str),
    /// The whole of `fields`.
    Whole(&'a Whole<'a>),
}

/// The `fields` object: its members, without duplicates.
#[derive(Debug, Default)]
pub(crate) struct Whole<'a>(pub(super) Vec<(&'a str, FieldValue<'a>)>);

impl Whole<'_> {
    pub(super) fn names(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| *known == name)
    }
}

/// Returns the members of a `serde_json` object as field values.
#[cfg(test)]
pub(crate) fn given(members: &Map<String, Value>) -> impl Iterator<Item = (&str, FieldValue<'_>)> {
    members.iter().map(|(name, value)| (name.as_str(), FieldValue::Given(value)))
}

impl Json for FieldsJson {
    type Node<'a> = FieldValue<'a>;
    type PreparedKey = Box<str>;
    type StringBuffer = ();

    fn prepare_key(key: &str) -> Box<str> {
        key.into()
    }

    fn with_string_node<T>((): &mut (), string: &str, f: impl FnOnce(FieldValue<'_>) -> T) -> T {
        f(FieldValue::Name(string))
    }
}

impl<'a> Node<'a, FieldsJson> for FieldValue<'a> {
    type Object = Members<'a>;
    type Array = Elements<'a>;
    type Number = FieldNumber<'a>;

    fn as_object(&self) -> Option<Members<'a>> {
        match *self {
            FieldValue::Whole(Whole(members)) => Some(Members::Whole(members)),
            FieldValue::Read(json::Value { node: json::Node::Object(json::Object(members)), .. }) => {
                Some(Members::Read(members))
            }
            FieldValue::Given(Value::Object(members)) => Some(Members::Given(members)),
            FieldValue::Read(_) | FieldValue::Given(_) | FieldValue::Name(_) => None,
        }
    }

    fn as_array(&self) -> Option<Elements<'a>> {
        match *self {
            FieldValue::Read(json::Value { node: json::Node::Array(elements), .. }) => Some(Elements::Read(elements)),
            FieldValue::Given(Value::Array(elements)) => Some(Elements::Given(elements)),
            FieldValue::Read(_) | FieldValue::Given(_) | FieldValue::Name(_) | FieldValue::Whole(_) => None,
        }
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        match *self {
            FieldValue::Read(json::Value { node: json::Node::String(text), .. }) => Some(Cow::Borrowed(text)),
            FieldValue::Given(Value::String(text)) => Some(Cow::Borrowed(text)),
            FieldValue::Name(text) => Some(Cow::Borrowed(text)),
            FieldValue::Read(_) | FieldValue::Given(_) | FieldValue::Whole(_) => None,
        }
    }

    fn as_number(&self) -> Option<FieldNumber<'a>> {
        match *self {
            FieldValue::Read(json::Value { node: json::Node::Number, raw }) => {
                number(raw).map(Cow::Owned).map(FieldNumber)
            }
            FieldValue::Given(Value::Number(number)) => Some(FieldNumber(Cow::Borrowed(number))),
            FieldValue::Read(_) | FieldValue::Given(_) | FieldValue::Name(_) | FieldValue::Whole(_) => None,
        }
    }

    fn as_boolean(&self) -> Option<bool> {
        match *self {
            FieldValue::Read(json::Value { node: json::Node::Bool(flag), .. })
            | FieldValue::Given(Value::Bool(flag)) => Some(*flag),
            FieldValue::Read(_) | FieldValue::Given(_) | FieldValue::Name(_) | FieldValue::Whole(_) => None,
        }
    }

    fn is_null(&self) -> bool {
        self.json_type() == JsonType::Null
    }

    fn is_number(&self) -> bool {
        self.json_type() == JsonType::Number
    }

    fn json_type(&self) -> JsonType {
        match self {
            FieldValue::Read(value) => match value.node {
                json::Node::Null => JsonType::Null,
                json::Node::Bool(_) => JsonType::Boolean,
                json::Node::Number => JsonType::Number,
                json::Node::String(_) => JsonType::String,
                json::Node::Array(_) => JsonType::Array,
                json::Node::Object(_) => JsonType::Object,
            },
            FieldValue::Given(value) => value.json_type(),
            FieldValue::Name(_) => JsonType::String,
            FieldValue::Whole(_) => JsonType::Object,
        }
    }

    fn equals_value(&self, expected: &Value) -> bool {
        match (self.as_string(), expected) {
            (Some(text), Value::String(expected)) => text == *expected,
            _ => jsonschema::json::cmp::equal(&self.to_value(), expected),
        }
    }

    fn to_value(&self) -> Cow<'a, Value> {
        match *self {
            FieldValue::Given(value) => Cow::Borrowed(value),
            FieldValue::Name(text) => Cow::Owned(text.into()),
            FieldValue::Read(value) => Cow::Owned(serde_json::from_str(value.raw).unwrap_or_default()),
            FieldValue::Whole(Whole(members)) => Cow::Owned(
                members.iter().map(|(name, value)| ((*name).to_owned(), value.to_value().into_owned())).collect(),
            ),
        }
    }

    fn identity(&self) -> Option<NodeIdentity> {
        let address = match *self {
            FieldValue::Read(value) => std::ptr::from_ref(value).addr(),
            FieldValue::Given(value) => std::ptr::from_ref(value).addr(),
            FieldValue::Name(text) => text.as_ptr().addr(),
            FieldValue::Whole(whole) => std::ptr::from_ref(whole).addr(),
        };
        Some(NodeIdentity::new(address))
    }
}

/// Parses a number as `serde_json` does; `None` if it is out of range.
fn number(raw: &str) -> Option<Number> {
    serde_json::from_str(raw).ok()
}

/// Reports whether a schema can be applied to every number of a value.
fn numbers_fit(value: &json::Value<'_>) -> bool {
    /// A number of this length without an exponent always fits.
    const PLAIN: usize = 200;
    match &value.node {
        json::Node::Number if value.raw.len() <= PLAIN && !value.raw.contains(['e', 'E']) => true,
        json::Node::Number => number(value.raw).is_some(),
        json::Node::Array(elements) => elements.iter().all(numbers_fit),
        json::Node::Object(object) => object.0.iter().all(|member| numbers_fit(&member.value)),
        json::Node::Null | json::Node::Bool(_) | json::Node::String(_) => true,
    }
}

/// The members of an object.
#[derive(Debug, Clone, Copy)]
pub(super) enum Members<'a> {
    Whole(&'a [(&'a str, FieldValue<'a>)]),
    Read(&'a [json::Member<'a>]),
    Given(&'a Map<String, Value>),
}

impl<'a> Object<'a, FieldsJson> for Members<'a> {
    type Node = FieldValue<'a>;
    type MemberName = &'a str;
    type MembersIter = MembersIter<'a>;

    fn len(&self) -> usize {
        match self {
            Self::Whole(members) => members.len(),
            Self::Read(members) => members.len(),
            Self::Given(members) => members.len(),
        }
    }

    fn get(&self, key: &Box<str>) -> Option<FieldValue<'a>> {
        match *self {
            Self::Whole(members) => members.iter().find(|(name, _)| *name == &**key).map(|(_, value)| *value),
            Self::Read(members) => {
                members.iter().find(|member| member.name == **key).map(|member| FieldValue::Read(&member.value))
            }
            Self::Given(members) => members.get(&**key).map(FieldValue::Given),
        }
    }

    fn members(&self) -> MembersIter<'a> {
        match *self {
            Self::Whole(members) => MembersIter::Whole(members.iter()),
            Self::Read(members) => MembersIter::Read(members.iter()),
            Self::Given(members) => MembersIter::Given(members.iter()),
        }
    }
}

/// An iterator over the members of an object.
pub(super) enum MembersIter<'a> {
    Whole(std::slice::Iter<'a, (&'a str, FieldValue<'a>)>),
    Read(std::slice::Iter<'a, json::Member<'a>>),
    Given(serde_json::map::Iter<'a>),
}

impl<'a> Iterator for MembersIter<'a> {
    type Item = (&'a str, FieldValue<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Whole(members) => members.next().copied(),
            Self::Read(members) => members.next().map(|member| (&*member.name, FieldValue::Read(&member.value))),
            Self::Given(members) => members.next().map(|(name, value)| (name.as_str(), FieldValue::Given(value))),
        }
    }
}

/// The elements of an array.
#[derive(Debug, Clone, Copy)]
pub(super) enum Elements<'a> {
    Read(&'a [json::Value<'a>]),
    Given(&'a [Value]),
}

impl<'a> Array<'a, FieldsJson> for Elements<'a> {
    type Node = FieldValue<'a>;
    type ElementsIter = ElementsIter<'a>;

    fn len(&self) -> usize {
        match self {
            Self::Read(elements) => elements.len(),
            Self::Given(elements) => elements.len(),
        }
    }

    fn elements(&self) -> ElementsIter<'a> {
        match *self {
            Self::Read(elements) => ElementsIter::Read(elements.iter()),
            Self::Given(elements) => ElementsIter::Given(elements.iter()),
        }
    }
}

/// An iterator over the elements of an array.
pub(super) enum ElementsIter<'a> {
    Read(std::slice::Iter<'a, json::Value<'a>>),
    Given(std::slice::Iter<'a, Value>),
}

impl<'a> Iterator for ElementsIter<'a> {
    type Item = FieldValue<'a>;

    fn next(&mut self) -> Option<FieldValue<'a>> {
        match self {
            Self::Read(elements) => elements.next().map(FieldValue::Read),
            Self::Given(elements) => elements.next().map(FieldValue::Given),
        }
    }
}

/// A number of a value.
#[derive(Debug, Clone)]
pub(super) struct FieldNumber<'a>(pub(super) Cow<'a, Number>);

impl JsonNumber for FieldNumber<'_> {
    fn as_u64(&self) -> Option<u64> {
        self.0.as_u64()
    }

    fn as_i64(&self) -> Option<i64> {
        self.0.as_i64()
    }

    fn as_f64(&self) -> Option<f64> {
        self.0.as_f64()
    }

    fn as_str(&self) -> Cow<'_, str> {
        Cow::Owned(self.0.to_string())
    }

    fn to_number(&self) -> Cow<'_, Number> {
        Cow::Borrowed(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use jsonschema::json::conformance;

    use super::*;

    #[test]
    fn field_values_conform_to_the_validator() {
        let document = conformance::document();
        conformance::assert_conformance::<FieldsJson>(&FieldValue::Given(&document));
        let text = document.to_string();
        let read = json::read(text.as_bytes()).unwrap();
        conformance::assert_conformance::<FieldsJson>(&FieldValue::Read(&read));
        let json::Node::Object(json::Object(members)) = &read.node else { panic!("no object") };
        let whole = Whole(members.iter().map(|member| (&*member.name, FieldValue::Read(&member.value))).collect());
        conformance::assert_conformance::<FieldsJson>(&FieldValue::Whole(&whole));
        assert_eq!(FieldValue::Whole(&whole).to_value().as_ref(), &document);
    }
}
