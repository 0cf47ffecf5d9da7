//! Compares the JSON Schemas of `fields`. Their properties are compared by name, not by what they accept.

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json};

use super::sentences::union;
use crate::names::quoted;
use crate::rules::schema::ALLOWED_LIST;
use crate::rules::setting::Effect::{self, Allows, Neither, Refuses};

/// The shop keys that name schemas, and what each schema checks.
pub(super) const SIDES: [(&str, &str); 2] = [("payin.schema", "deposits"), ("payout.schema", "withdrawals")];

/// Schema keywords that do not affect validation.
const ANNOTATIONS: [&str; 9] =
    ["$schema", "$id", "$comment", "title", "description", "examples", "deprecated", "readOnly", "writeOnly"];

/// Removes annotations and sorts `required`, in a schema and in those of its properties.
pub(super) fn plain_schema(mut schema: Json) -> Json {
    if let Json::Object(keywords) = &mut schema {
        keywords.retain(|name, _| !ANNOTATIONS.contains(&name.as_str()));
        if let Some(Json::Array(required)) = keywords.get_mut("required") {
            required.sort_by_key(ToString::to_string);
        }
        keywords.retain(|name, value| name != "required" || *value != Json::Array(Vec::new()));
        if let Some(Json::Object(properties)) = keywords.get_mut("properties") {
            for property in properties.values_mut() {
                *property = plain_schema(std::mem::take(property));
            }
        }
    }
    schema
}

/// Collects the lists of allowed values that a schema names.
pub(super) fn named_lists<'a>(schema: &'a Json, lists: &mut BTreeSet<&'a str>) {
    match schema {
        Json::Object(members) => {
            lists.extend(members.get(ALLOWED_LIST).and_then(Json::as_str));
            members.values().for_each(|value| named_lists(value, lists));
        }
        Json::Array(elements) => elements.iter().for_each(|element| named_lists(element, lists)),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
    }
}

/// Describes which properties of a schema were added, removed, made required or changed.
pub(super) fn schema_changes(old: Option<&Json>, new: Option<&Json>) -> Vec<(Effect, String)> {
    let (old, new) = match (old, new) {
        (None, None) => return Vec::new(),
        (None, Some(_)) => return vec![(Refuses, "a schema now checks `fields`; any object passed before".to_owned())],
        (Some(_), None) => return vec![(Allows, "no schema checks `fields` any more: any object passes".to_owned())],
        (Some(old), Some(new)) => (old, new),
    };
    let none = Map::new();
    let properties = |schema: &'_ Json| schema["properties"].as_object().unwrap_or(&none).clone();
    let required = |schema: &Json| {
        let names = schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str);
        names.map(str::to_owned).collect::<BTreeSet<_>>()
    };
    // The keywords that apply to all properties together, or to those that are not listed.
    let rest = |schema: &Json| {
        let keywords = schema.as_object().unwrap_or(&none).clone().into_iter();
        keywords.filter(|(name, _)| !["type", "properties", "required"].contains(&name.as_str())).collect::<Map<_, _>>()
    };
    let (before, after, rest) = (properties(old), properties(new), (rest(old), rest(new)));
    let alone = rest.1.keys().all(|name| name == "$defs");
    let mut effects = Vec::new();
    for name in union(before.keys(), after.keys()) {
        let shown = quoted(name);
        match (before.get(name), after.get(name)) {
            (Some(one), Some(other)) if one == other => {}
            (Some(_), Some(_)) => {
                effects.push((Refuses, format!("{shown} is changed: it may refuse what was accepted")));
            }
            (None, Some(added)) => {
                let anything = *added == Json::Bool(true) || added.as_object().is_some_and(Map::is_empty);
                let effect = if anything && alone { Allows } else { Refuses };
                effects.push((effect, format!("{shown} is added: it is passed on and checked now, it was dropped")));
            }
            _ => {
                let effect = if alone { Neither } else { Refuses };
                effects.push((effect, format!("{shown} is removed: it is dropped now, it was passed on")));
            }
        }
    }
    let (before, after) = (required(old), required(new));
    for name in after.difference(&before) {
        effects.push((Refuses, format!("{} is required now: requests without it are refused", quoted(name))));
    }
    for name in before.difference(&after) {
        effects.push((Allows, format!("{} is no longer required", quoted(name))));
    }
    for name in union(rest.0.keys(), rest.1.keys()).filter(|name| rest.0.get(*name) != rest.1.get(*name)) {
        effects.push((Refuses, format!("the keyword {} is changed: it may refuse what was accepted", quoted(name))));
    }
    if old["type"] != new["type"] || old.is_object() != new.is_object() {
        effects.push((Refuses, "the type is changed: it may refuse what was accepted".to_owned()));
    }
    effects
}
