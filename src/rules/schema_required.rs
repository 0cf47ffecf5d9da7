//! Which members of `fields` a schema requires, wherever it says so.

use std::collections::HashSet;

use serde_json::Value;

use super::schema_shape::steps;

/// A name that is required of the `fields` object, and where the schema says so.
pub(super) struct Required<'s> {
    pub name: &'s str,
    pub at: Vec<String>,
}

/// The names that the schema requires of the `fields` object itself: always, or when something else holds, such as a
/// branch of its `anyOf`. What stands below `if` and `not` requires nothing.
pub(super) fn required_names(schema: &Value) -> Vec<Required<'_>> {
    let mut collector = Collector { root: schema, at: Vec::new(), seen: HashSet::new(), found: Vec::new() };
    collector.schema(schema);
    collector.found
}

struct Collector<'s> {
    root: &'s Value,
    at: Vec<String>,
    /// References that were followed.
    seen: HashSet<&'s str>,
    found: Vec<Required<'s>>,
}

impl<'s> Collector<'s> {
    fn schema(&mut self, schema: &'s Value) {
        for (keyword, value) in schema.as_object().into_iter().flatten() {
            self.below(keyword, |this| this.keyword(keyword, value));
        }
    }

    fn keyword(&mut self, keyword: &str, value: &'s Value) {
        match (keyword, value) {
            ("required", Value::Array(names)) => self.names(names),
            ("dependentRequired", Value::Object(dependents)) => {
                for (member, names) in dependents {
                    if let Some(names) = names.as_array() {
                        self.below(member, |this| this.names(names));
                    }
                }
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => {
                for (index, schema) in schemas.iter().enumerate() {
                    self.below(&index.to_string(), |this| this.schema(schema));
                }
            }
            ("dependentSchemas", Value::Object(schemas)) => {
                for (member, schema) in schemas {
                    self.below(member, |this| this.schema(schema));
                }
            }
            ("then" | "else", schema) => self.schema(schema),
            ("$ref", Value::String(target)) if self.seen.insert(target) => {
                if let Some(schema) = target.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer)) {
                    let before = std::mem::replace(&mut self.at, steps(target));
                    self.schema(schema);
                    self.at = before;
                }
            }
            _ => {}
        }
    }

    fn names(&mut self, names: &'s [Value]) {
        for (index, name) in names.iter().enumerate() {
            if let Some(name) = name.as_str() {
                let at = self.at.iter().cloned().chain([index.to_string()]).collect();
                self.found.push(Required { name, at });
            }
        }
    }

    fn below(&mut self, step: &str, look: impl FnOnce(&mut Self)) {
        self.at.push(step.to_owned());
        look(self);
        self.at.pop();
    }
}
