//! What a schema refuses that it accepted before, and the other way round: a comparison by structure. What it cannot
//! decide it calls "may refuse".

use std::cmp::Ordering;
use std::collections::BTreeSet;

use serde_json::{Map, Number, Value};

use super::page::Page;
use super::schema_plain::{ONE, SEVERAL, plain};
use super::words::{self, arrow, is, listed};
use super::{Effect, schema_plain};
use crate::rules::FieldsSchema;
use crate::rules::problems::quoted;
use crate::rules::schema::{ALLOWED_LIST, defaults};

/// How many changes of one schema are told.
const MOST_TOLD: usize = 100;

/// A schema as its file has it, and what became of it.
#[derive(Clone, Copy)]
pub(super) struct Schema<'a> {
    /// The file's.
    pub written: &'a Value,
    /// The compiled one.
    pub compiled: &'a FieldsSchema,
}

/// Tells what changes for one direction of a shop.
pub(super) fn side(page: &mut Page, key: &str, said: &str, sides: (Option<Schema<'_>>, Option<Schema<'_>>)) {
    match sides {
        (None, None) => {}
        (None, Some(new)) => {
            let (names, count) = listed(kept(new), "member", true);
            let names = if count == 0 { "none".to_owned() } else { names };
            let what =
                format!("{said}: a schema checks `fields` now, any passed before; members that it knows: {names}");
            page.tell(Effect::Refuses, key, what);
        }
        (Some(_), None) => {
            page.tell(Effect::Allows, key, format!("{said}: no schema checks `fields` any more: any pass"));
        }
        (Some(old), Some(new)) => both(page, key, said, old, new),
    }
}

fn kept(schema: Schema<'_>) -> impl Iterator<Item = &str> {
    let kept = schema.compiled.kept().iter();
    kept.map(|name| &**name).filter(|name| *name != crate::domain::MERCHANT_USER_IP)
}

fn both(page: &mut Page, key: &str, said: &str, old: Schema<'_>, new: Schema<'_>) {
    if old.written == new.written {
        return;
    }
    let defaults = (defaults(old.written), defaults(new.written));
    let (before, after): (BTreeSet<&str>, BTreeSet<&str>) = (kept(old).collect(), kept(new).collect());
    let mut comparison = Comparison { told: Vec::new(), filled: defaults.1.keys().cloned().collect() };
    match (plain(old.written), plain(new.written)) {
        (Some(one), Some(other)) => {
            let (one, other) = (without_others(one), without_others(other));
            comparison.members(&one, &other, (&before, &after));
            comparison.defaults((&defaults.0, &defaults.1), asks_of_the_whole(&other));
            if comparison.told.is_empty() && one != other {
                comparison.may("the schema is another one");
            }
        }
        _ => comparison.may("the schema is another one, too large to be compared"),
    }
    let more = comparison.told.len().saturating_sub(MOST_TOLD);
    // Those that are cut are not the dangerous ones.
    comparison.told.sort_by_key(|(effect, _)| *effect);
    let worst = comparison.told.get(MOST_TOLD).map(|(effect, _)| *effect);
    for (effect, what) in comparison.told.into_iter().take(MOST_TOLD) {
        page.tell(effect, key, format!("{said}: {what}"));
    }
    if let Some(worst) = worst {
        page.tell(worst, key, format!("{said}: and {more} more changes of the schema"));
    }
}

struct Comparison {
    told: Vec<(Effect, String)>,
    /// The members that a default is filled in for now.
    filled: BTreeSet<String>,
}

/// Keywords that say how much there may be at most; the rest of these pairs say how much at least.
const AT_MOST: &[&str] = &["exclusiveMaximum", "maxItems", "maxLength", "maxProperties", "maximum"];
const AT_LEAST: &[&str] = &["exclusiveMinimum", "minItems", "minLength", "minProperties", "minimum"];

/// Keywords whose removal refuses nothing: they ask for more than the rest of a schema does.
const ONLY_ASK: &[&str] = &[
    "allOf",
    "anyOf",
    "contains",
    "dependentRequired",
    "dependentSchemas",
    "format",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "propertyNames",
    "then",
    "else",
    "uniqueItems",
];

impl Comparison {
    fn tell(&mut self, effect: Effect, path: &str, what: impl AsRef<str>) {
        let what = what.as_ref();
        let told = if path.is_empty() { what.to_owned() } else { format!("{}: {what}", quoted(path)) };
        self.told.push((effect, told));
    }

    fn may(&mut self, what: &str) {
        self.told.push((Effect::Refuses, format!("{what}{MAY}")));
    }

    /// The whole of `fields`: members that are not named are dropped before they are looked at.
    fn members(&mut self, old: &Value, new: &Value, (before, after): (&BTreeSet<&str>, &BTreeSet<&str>)) {
        let none = Map::new();
        let of = |schema| properties(schema).unwrap_or(&none).clone();
        let (one, other) = (of(old), of(new));
        // What the schema asks of the object as a whole, a member more or less may break.
        let of_whole = asks_of_the_whole(new);
        for name in before.union(after) {
            let (in_old, in_new) = (before.contains(name), after.contains(name));
            let (was, now) = (one.get(*name), other.get(*name));
            match (in_old, in_new) {
                (true, false) => {
                    let (effect, how) = if of_whole { (Effect::Refuses, MAY) } else { (Effect::Neither, "") };
                    self.told.push((effect, format!("{} is dropped now, it was passed on{how}", quoted(name))));
                }
                (false, true) => {
                    let checked = of_whole || now.is_some_and(|schema| !is_anything(schema));
                    let (effect, how) = if checked { (Effect::Refuses, " and checked") } else { (Effect::Allows, "") };
                    self.told.push((effect, format!("{} is passed on{how} now, it was dropped", quoted(name))));
                }
                _ => self.member(name, (was, old), (now, new)),
            }
        }
        self.schema(
            crate::domain::MERCHANT_USER_IP,
            one.get(crate::domain::MERCHANT_USER_IP).unwrap_or(&ANYTHING),
            other.get(crate::domain::MERCHANT_USER_IP).unwrap_or(&ANYTHING),
        );
        self.keywords("", old, new);
    }

    fn schema(&mut self, path: &str, old: &Value, new: &Value) {
        match (old, new) {
            _ if old == new || (is_anything(old) && is_anything(new)) => {}
            (_, Value::Bool(false)) => self.tell(Effect::Refuses, path, "nothing is accepted any more"),
            (Value::Bool(false), _) => self.tell(Effect::Allows, path, "something is accepted now, nothing was"),
            _ => {
                self.properties(path, old, new);
                self.keywords(path, old, new);
            }
        }
    }

    /// Members of an object further down: others than those named are as `additionalProperties` says.
    fn properties(&mut self, path: &str, old: &Value, new: &Value) {
        let none = Map::new();
        let (one, other) = (properties(old).unwrap_or(&none), properties(new).unwrap_or(&none));
        let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
        for name in names {
            self.member(&format!("{path}.{name}"), (one.get(name), old), (other.get(name), new));
        }
    }

    /// A member of an object, with the object's own schema: what `properties` does not name is as others are.
    fn member(&mut self, path: &str, (was, old): (Option<&Value>, &Value), (now, new): (Option<&Value>, &Value)) {
        let others = |schema: &Value| schema.get("additionalProperties").cloned().unwrap_or(Value::Bool(true));
        let by_name = |schema: &Value| {
            ["patternProperties", "unevaluatedProperties"].iter().any(|keyword| schema.get(keyword).is_some())
        };
        if was.is_some() != now.is_some() && (by_name(old) || by_name(new)) {
            let how = if now.is_some() { "is named in" } else { "is no longer named in" };
            self.tell(Effect::Refuses, path, format!("{how} `properties`{MAY}"));
            return;
        }
        let (was, now) = (was.cloned(), now.cloned());
        self.schema(path, &was.unwrap_or_else(|| others(old)), &now.unwrap_or_else(|| others(new)));
    }

    fn keywords(&mut self, path: &str, old: &Value, new: &Value) {
        let none = Map::new();
        let (one, other) = (old.as_object().unwrap_or(&none), new.as_object().unwrap_or(&none));
        let keywords: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
        // What they refuse depends on what the rest of the schema looked at.
        let unevaluated = keywords.iter().any(|keyword| keyword.starts_with("unevaluated"));
        for keyword in keywords {
            let (was, now) = (one.get(keyword), other.get(keyword));
            let looks = ONE.contains(&keyword.as_str()) || SEVERAL.contains(&keyword.as_str());
            if was == now {
                continue;
            }
            if unevaluated && (looks || keyword == "dependentSchemas") {
                self.tell(Effect::Refuses, path, format!("{keyword} is another one{MAY}"));
            } else {
                self.keyword(path, keyword, was, now);
            }
        }
    }

    fn keyword(&mut self, path: &str, keyword: &str, was: Option<&Value>, now: Option<&Value>) {
        match keyword {
            "properties" => {}
            "required" => self.required(path, was, now),
            "type" => self.types(path, was, now),
            "enum" | "const" => self.values(path, keyword, was, now),
            ALLOWED_LIST => self.list(path, was, now),
            "items" => self.schema(&format!("{path}[]"), was.unwrap_or(&ANYTHING), now.unwrap_or(&ANYTHING)),
            "additionalProperties" => {
                let others = format!("{path}.(others)");
                self.schema(others.trim_start_matches('.'), was.unwrap_or(&ANYTHING), now.unwrap_or(&ANYTHING));
            }
            _ if AT_MOST.contains(&keyword) || AT_LEAST.contains(&keyword) => self.bound(path, keyword, was, now),
            _ => self.other(path, keyword, was, now),
        }
    }

    fn required(&mut self, path: &str, was: Option<&Value>, now: Option<&Value>) {
        let (was, now) = (texts(was), texts(now));
        let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        for name in now.difference(&was) {
            let (effect, how) = if path.is_empty() && self.filled.contains(*name) {
                (Effect::Neither, "requests without it get its default")
            } else {
                (Effect::Refuses, "requests without it are refused")
            };
            self.told.push((effect, format!("{} is required now: {how}", quoted(&below(name)))));
        }
        for name in was.difference(&now) {
            self.told.push((Effect::Allows, format!("{} is no longer required", quoted(&below(name)))));
        }
    }

    fn types(&mut self, path: &str, was: Option<&Value>, now: Option<&Value>) {
        let all = ["array", "boolean", "integer", "null", "number", "object", "string"];
        let kinds = |value: Option<&Value>| -> BTreeSet<String> {
            let mut kinds: BTreeSet<String> = match value {
                None => all.iter().map(|kind| (*kind).to_owned()).collect(),
                Some(_) => texts(value).into_iter().map(str::to_owned).collect(),
            };
            // Every integer is a number.
            if kinds.contains("number") {
                kinds.insert("integer".into());
            }
            kinds
        };
        let (old, new) = (kinds(was), kinds(now));
        let shown = |value: Option<&Value>| match value {
            None => "anything".to_owned(),
            Some(_) => texts(value).into_iter().collect::<Vec<_>>().join(" or "),
        };
        let effect = if old.is_subset(&new) { Effect::Allows } else { Effect::Refuses };
        let what = match effect {
            Effect::Allows => "is accepted now",
            _ => "others are refused",
        };
        if old != new {
            self.tell(effect, path, format!("type: {}: {what}", arrow(&shown(was), &shown(now))));
        }
    }

    fn values(&mut self, path: &str, keyword: &str, was: Option<&Value>, now: Option<&Value>) {
        let list = |value: &Value| -> Vec<String> {
            match value {
                Value::Array(values) if keyword == "enum" => values.iter().map(said).collect(),
                value => vec![said(value)],
            }
        };
        let names = |values: &[String]| listed(values.iter().map(String::as_str), "value", true);
        match (was.map(list), now.map(list)) {
            (None, Some(new)) => {
                let what = format!("must be {} now, others are refused", names(&new).0);
                self.tell(Effect::Refuses, path, what);
            }
            (Some(_), None) => {
                self.tell(Effect::Allows, path, format!("is no longer bound to certain values ({keyword})"));
            }
            (Some(old), Some(new)) => {
                let missing = |one: &[String], other: &[String]| {
                    one.iter().filter(|value| !other.contains(value)).cloned().collect::<Vec<_>>()
                };
                let (gone, count) = names(&missing(&old, &new));
                if count > 0 {
                    self.tell(Effect::Refuses, path, format!("{gone} {} no longer allowed", is(count > 1)));
                }
                let (added, count) = names(&missing(&new, &old));
                if count > 0 {
                    self.tell(Effect::Allows, path, format!("{added} {} allowed now", is(count > 1)));
                }
            }
            (None, None) => {}
        }
    }

    fn list(&mut self, path: &str, was: Option<&Value>, now: Option<&Value>) {
        let name = |value: &Value| quoted(value.as_str().unwrap_or_default());
        let (effect, what) = match (was, now) {
            (Some(old), Some(new)) => {
                let what = format!("must be on the list {} now, not on {}", name(new), name(old));
                (Effect::Refuses, format!("{what}{MAY}"))
            }
            (None, Some(new)) => {
                (Effect::Refuses, format!("must be on the list {} now, others are refused", name(new)))
            }
            (Some(old), None) => (Effect::Allows, format!("need no longer be on the list {}", name(old))),
            (None, None) => return,
        };
        self.tell(effect, path, what);
    }

    fn bound(&mut self, path: &str, keyword: &str, was: Option<&Value>, now: Option<&Value>) {
        let shown = |value: Option<&Value>| value.map_or_else(|| "none".to_owned(), said);
        let order = match (was, now) {
            (Some(Value::Number(old)), Some(Value::Number(new))) => compared(old, new),
            (None, _) => Some(if AT_MOST.contains(&keyword) { Ordering::Greater } else { Ordering::Less }),
            (_, None) => Some(if AT_MOST.contains(&keyword) { Ordering::Less } else { Ordering::Greater }),
            _ => None,
        };
        let tighter = match order {
            Some(Ordering::Greater) => AT_MOST.contains(&keyword),
            Some(Ordering::Less) => AT_LEAST.contains(&keyword),
            _ => true,
        };
        let (effect, what) =
            if tighter { (Effect::Refuses, "tighter: what is outside is refused") } else { (Effect::Allows, "looser") };
        self.tell(effect, path, format!("{keyword}: {}: {what}", arrow(&shown(was), &shown(now))));
    }

    fn other(&mut self, path: &str, keyword: &str, was: Option<&Value>, now: Option<&Value>) {
        if now.is_none() && ONLY_ASK.contains(&keyword) {
            self.tell(Effect::Allows, path, format!("{keyword} is gone: more is accepted"));
            return;
        }
        let grown = |old: &Value, new: &Value| match (old, new) {
            (Value::Array(old), Value::Array(new)) => old.iter().all(|schema| new.contains(schema)),
            _ => false,
        };
        if let (Some(old), Some(new)) = (was, now)
            && ((keyword == "anyOf" && grown(old, new)) || (keyword == "allOf" && grown(new, old)))
        {
            self.tell(Effect::Allows, path, format!("{keyword}: more is accepted"));
            return;
        }
        let how = match (keyword, was, now) {
            ("format" | "pattern" | "multipleOf", old, Some(new)) => {
                let old = old.map_or_else(|| "none".to_owned(), said);
                arrow(&format!("{keyword}: {old}"), &said(new))
            }
            (_, None, _) => format!("{keyword} is new"),
            (_, _, None) => format!("{keyword} is gone"),
            _ => format!("{keyword} is another one"),
        };
        self.tell(Effect::Refuses, path, format!("{how}{MAY}"));
    }

    fn defaults(&mut self, (old, new): (&Map<String, Value>, &Map<String, Value>), of_whole: bool) {
        let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for name in names {
            let (effect, what) = match (old.get(name), new.get(name)) {
                (None, Some(default)) => {
                    let (effect, how) = if of_whole { (Effect::Refuses, MAY) } else { (Effect::Neither, "") };
                    (effect, format!("is filled in with {} where it is absent{how}", said(default)))
                }
                (Some(_), None) => (Effect::Refuses, "is no longer filled in where it is absent".to_owned()),
                (Some(old), Some(new)) if schema_plain::number(old) != schema_plain::number(new) => (
                    Effect::Refuses,
                    format!("default: {}: filled in where it is absent", arrow(&said(old), &said(new))),
                ),
                _ => continue,
            };
            self.tell(effect, name, what);
        }
    }
}

/// What is said where the comparison cannot decide.
const MAY: &str = ": it may refuse what was accepted";

/// Whether a schema asks more of an object than of its members one by one.
fn asks_of_the_whole(schema: &Value) -> bool {
    let of_members = |keyword: &String| keyword == "properties" || keyword == "required";
    schema.as_object().is_none_or(|schema| !schema.keys().all(of_members))
}

/// What any value fits.
static ANYTHING: Value = Value::Bool(true);

fn is_anything(schema: &Value) -> bool {
    schema.as_object().is_some_and(Map::is_empty) || schema == &ANYTHING
}

fn properties(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties").and_then(Value::as_object)
}

fn texts(value: Option<&Value>) -> BTreeSet<&str> {
    value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

/// A value of the schema's: texts as they are, all else as JSON.
fn said(value: &Value) -> String {
    match value {
        Value::String(text) => words::plain(text),
        value => words::plain(&value.to_string()),
    }
}

/// Exact where both are whole.
fn compared(one: &Number, other: &Number) -> Option<Ordering> {
    let whole = |number: &Number| number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    match (whole(one), whole(other)) {
        (Some(one), Some(other)) => Some(one.cmp(&other)),
        _ => one.as_f64()?.partial_cmp(&other.as_f64()?),
    }
}
/// Members of `fields` that are not named are dropped before the schema is applied: what it says of them means nothing,
/// unless other parts of it name members that its own `properties` do not.
fn without_others(mut schema: Value) -> Value {
    const PARTS: [&str; 9] =
        ["$ref", "$dynamicRef", "allOf", "anyOf", "dependentSchemas", "else", "if", "oneOf", "then"];
    let combined = PARTS.iter().any(|keyword| schema.get(keyword).is_some());
    if let Some(members) = schema.as_object_mut().filter(|_| !combined) {
        members.remove("additionalProperties");
    }
    schema
}
