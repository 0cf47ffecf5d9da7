//! What checking a value against a schema can cost, told before the schema is ever used.
//!
//! Schemas combine: `allOf` of two references to an `allOf` of two references is four checks of one value, and thirty
//! such steps, which take a few lines, are a thousand million. So the weight of a schema is counted when it is loaded:
//! how many checks it can ask of one value, and how many steps of one byte of text, everything that applies to the same
//! value added up, references followed. The cost of a request is then at most the weight times its size, which is
//! bounded before the schema is applied.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::pattern_cost::pattern_cost;
use super::schema::SchemaProblem;

/// How deep schemas may stand in each other, references followed.
const DEEPEST: usize = 64;

/// How many checks and steps a schema may ask of one value and one byte.
const HEAVIEST: Weight = Weight { checks: 10_000, steps: 10_000 };

/// How large all patterns of a schema may be together, in places that a class counts as often as it has ranges: a bit
/// more than ten times `^[\p{L} .'-]{2,100}$`.
const LARGEST_PATTERNS: u64 = 1_000_000;

/// What evaluating `unevaluatedProperties` and `unevaluatedItems` multiplies: what stands beside them is applied again
/// to learn what it evaluated.
const AGAIN: u64 = 3;

/// Steps that a format takes for a byte; the slowest ones are the international ones.
const FORMAT_STEPS: u64 = 8;

/// Checks that `multipleOf` counts for when it is no integer: it divides exact fractions.
const FRACTION_CHECKS: u64 = 256;

/// What a schema can ask for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Weight {
    /// Of one value.
    pub checks: u64,
    /// Of one byte of text.
    pub steps: u64,
}

impl Weight {
    const ONE: Self = Self { checks: 1, steps: 0 };

    const fn plus(self, other: Self) -> Self {
        Self { checks: self.checks.saturating_add(other.checks), steps: self.steps.saturating_add(other.steps) }
    }

    fn max(self, other: Self) -> Self {
        Self { checks: self.checks.max(other.checks), steps: self.steps.max(other.steps) }
    }

    const fn times(self, factor: u64) -> Self {
        Self { checks: self.checks.saturating_mul(factor), steps: self.steps.saturating_mul(factor) }
    }

    const fn checks(checks: u64) -> Self {
        Self { checks, steps: 0 }
    }

    const fn steps(steps: u64) -> Self {
        Self { checks: 1, steps }
    }
}

/// Why a schema has no weight that could be borne: half a sentence.
type TooHeavy = &'static str;

const TOO_DEEP: TooHeavy = "nests deeper than 64 schemas, references followed";

/// Weighs a schema whose references lead somewhere.
///
/// # Errors
/// It refers to itself, or asks for more than any request could be given.
pub(super) fn weigh(schema: &Value) -> Result<Weight, SchemaProblem> {
    let mut scale = Scale { root: schema, known: HashMap::new(), open: Vec::new(), patterns: 0, at: Vec::new() };
    let weighed = scale.schema(schema, 0).and_then(|Weighed { weight, .. }| {
        if weight.checks > HEAVIEST.checks || weight.steps > HEAVIEST.steps {
            return Err("asks for too many checks of one value: what `allOf`, `anyOf`, `$ref` and the like apply to \
                        the same value adds up");
        }
        Ok(weight)
    });
    weighed.map_err(|reason| SchemaProblem { at: scale.at, message: reason.into(), suggestion: None })
}

/// A weight, and how deep the schemas below it go.
#[derive(Clone, Copy)]
struct Weighed {
    weight: Weight,
    height: usize,
}

struct Scale<'s> {
    root: &'s Value,
    /// Of the targets of references.
    known: HashMap<&'s str, Weighed>,
    /// The targets that are being weighed.
    open: Vec<&'s str>,
    /// The size of all patterns so far.
    patterns: u64,
    /// The keys and indices that lead to what is being weighed. Left as it is where that fails.
    at: Vec<String>,
}

/// What the keywords of one schema add up to.
#[derive(Default)]
struct Sums {
    /// Of the keywords themselves.
    own: Weight,
    /// Schemas for the same value.
    same: Weight,
    /// Schemas for members or elements, of which only one applies to each.
    one_of_each: Weight,
    /// Schemas for members or elements that apply beside others.
    each: Weight,
    /// Whether what is evaluated has to be known.
    again: bool,
    height: usize,
}

impl<'s> Scale<'s> {
    fn schema(&mut self, schema: &'s Value, depth: usize) -> Result<Weighed, TooHeavy> {
        if depth > DEEPEST {
            return Err(TOO_DEEP);
        }
        let Value::Object(members) = schema else { return Ok(Weighed { weight: Weight::ONE, height: 0 }) };
        let mut sums = Sums { own: Weight::ONE, ..Sums::default() };
        for (keyword, value) in members {
            self.at.push(keyword.clone());
            self.keyword(keyword, value, &mut sums, depth)?;
            self.at.pop();
        }
        let same = if sums.again { sums.same.times(AGAIN) } else { sums.same };
        let weight = sums.own.plus(same).plus(sums.one_of_each).plus(sums.each);
        Ok(Weighed { weight, height: sums.height + 1 })
    }

    fn keyword(&mut self, keyword: &str, value: &'s Value, sums: &mut Sums, depth: usize) -> Result<(), TooHeavy> {
        match (keyword, value) {
            ("$ref", Value::String(target)) => {
                let weighed = self.reference(target, depth)?;
                sums.height = sums.height.max(weighed.height);
                sums.same = sums.same.plus(weighed.weight);
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(all)) => {
                for (index, schema) in all.iter().enumerate() {
                    let weight = self.below_at(index.to_string(), schema, sums, depth)?;
                    sums.same = sums.same.plus(weight);
                }
            }
            ("not" | "if" | "then" | "else", schema) => {
                let weight = self.below(schema, sums, depth)?;
                sums.same = sums.same.plus(weight);
            }
            ("dependentSchemas", Value::Object(all)) => {
                for (name, schema) in all {
                    let weight = self.below_at(name.clone(), schema, sums, depth)?;
                    sums.same = sums.same.plus(weight);
                }
            }
            ("properties", Value::Object(all)) => {
                sums.own = sums.own.plus(Weight::checks(all.len() as u64));
                for (name, schema) in all {
                    let weight = self.below_at(name.clone(), schema, sums, depth)?;
                    sums.one_of_each = sums.one_of_each.max(weight);
                }
            }
            ("prefixItems", Value::Array(all)) => {
                for (index, schema) in all.iter().enumerate() {
                    let weight = self.below_at(index.to_string(), schema, sums, depth)?;
                    sums.one_of_each = sums.one_of_each.max(weight);
                }
            }
            ("items" | "additionalProperties", schema) => {
                let weight = self.below(schema, sums, depth)?;
                sums.one_of_each = sums.one_of_each.max(weight);
            }
            ("patternProperties", Value::Object(all)) => self.pattern_properties(all, sums, depth)?,
            ("propertyNames" | "contains" | "unevaluatedItems" | "unevaluatedProperties", schema) => {
                sums.again |= keyword.starts_with("unevaluated");
                let weight = self.below(schema, sums, depth)?;
                sums.each = sums.each.plus(weight);
            }
            ("pattern", Value::String(pattern)) => {
                let weight = self.pattern(pattern)?;
                sums.own = sums.own.plus(weight);
            }
            _ => sums.own = sums.own.plus(plain(keyword, value)),
        }
        Ok(())
    }

    /// Weighs a schema that stands inside another.
    fn below(&mut self, schema: &'s Value, sums: &mut Sums, depth: usize) -> Result<Weight, TooHeavy> {
        let weighed = self.schema(schema, depth + 1)?;
        sums.height = sums.height.max(weighed.height);
        Ok(weighed.weight)
    }

    fn below_at(&mut self, step: String, schema: &'s Value, sums: &mut Sums, depth: usize) -> Result<Weight, TooHeavy> {
        self.at.push(step);
        let weight = self.below(schema, sums, depth)?;
        self.at.pop();
        Ok(weight)
    }

    fn pattern_properties(
        &mut self,
        all: &'s Map<String, Value>,
        sums: &mut Sums,
        depth: usize,
    ) -> Result<(), TooHeavy> {
        for (pattern, schema) in all {
            let weight = self.pattern(pattern)?;
            sums.own = sums.own.plus(weight);
            let weight = self.below_at(pattern.clone(), schema, sums, depth)?;
            sums.each = sums.each.plus(weight).plus(Weight::ONE);
        }
        Ok(())
    }

    fn pattern(&mut self, pattern: &str) -> Result<Weight, TooHeavy> {
        let cost = pattern_cost(pattern);
        self.patterns = self.patterns.saturating_add(cost.size);
        if self.patterns > LARGEST_PATTERNS {
            return Err("has patterns that are too large together: repeat less, or smaller classes");
        }
        Ok(Weight::steps(cost.places))
    }

    fn reference(&mut self, target: &'s str, depth: usize) -> Result<Weighed, TooHeavy> {
        if self.open.contains(&target) {
            return Err("leads back to itself: recursive schemas are not supported");
        }
        if let Some(known) = self.known.get(target) {
            return if depth + known.height > DEEPEST { Err(TOO_DEEP) } else { Ok(*known) };
        }
        let Some(schema) = target.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer)) else {
            return Ok(Weighed { weight: Weight::ONE, height: 0 });
        };
        let from = std::mem::replace(&mut self.at, steps(target));
        self.open.push(target);
        let weighed = self.schema(schema, depth + 1)?;
        self.open.pop();
        self.at = from;
        self.known.insert(target, weighed);
        Ok(weighed)
    }
}

/// The keys and indices of a reference into the same file.
pub(super) fn steps(target: &str) -> Vec<String> {
    target.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~")).collect()
}

/// A keyword that holds no schema.
fn plain(keyword: &str, value: &Value) -> Weight {
    match (keyword, value) {
        // Texts alone are looked up, other values are compared one by one.
        ("enum", Value::Array(all)) if !all.iter().all(Value::is_string) => Weight::checks(nodes(value)),
        ("const", _) => Weight::checks(nodes(value)),
        ("required", Value::Array(all)) => Weight::checks(all.len() as u64),
        ("dependentRequired", Value::Object(all)) => Weight::checks(all.values().map(nodes).sum()),
        ("multipleOf", Value::Number(of)) if of.is_f64() => Weight::checks(FRACTION_CHECKS),
        ("uniqueItems", Value::Bool(true)) => Weight { checks: 16, steps: 8 },
        ("format", _) => Weight::steps(FORMAT_STEPS),
        ("minLength" | "maxLength" | "enum" | "x-allowed-list", _) => Weight::steps(1),
        _ => Weight::ONE,
    }
}

/// How many values a value holds, itself included.
fn nodes(value: &Value) -> u64 {
    match value {
        Value::Array(elements) => elements.iter().map(nodes).sum::<u64>() + 1,
        Value::Object(members) => members.values().map(nodes).sum::<u64>() + 1,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn weight(schema: &Value) -> (u64, u64) {
        let Weight { checks, steps } = weigh(schema).unwrap();
        (checks, steps)
    }

    #[test]
    fn what_applies_to_the_same_value_adds_up() {
        assert_eq!(weight(&json!({})), (1, 0));
        assert_eq!(weight(&json!(true)), (1, 0));
        // Of two members only one is any value's.
        assert_eq!(weight(&json!({"properties": {"a": {"type": "string"}, "b": {"type": "string"}}})), (5, 0));
        assert_eq!(weight(&json!({"allOf": [{"type": "string"}, {"type": "string"}]})), (5, 0));
        assert_eq!(weight(&json!({"items": {"pattern": "^[a-z]{10}$"}})), (3, 12));
        assert_eq!(weight(&json!({"enum": ["a", "b", "c"]})), (2, 1));
        assert_eq!(weight(&json!({"enum": [1, 2, [3]]})), (6, 0));
        assert_eq!(weight(&json!({"required": ["a", "b"]})), (3, 0));
        let twice = json!({"properties": {"a": {"allOf": [{"$ref": "#/$defs/x"}, {"$ref": "#/$defs/x"}]}},
            "$defs": {"x": {"type": "string"}}});
        assert_eq!(weight(&twice), (10, 0));
    }

    #[test]
    fn references_that_multiply_are_too_heavy() {
        let doubling = |steps: usize| {
            let mut definitions = Map::new();
            for step in 0..steps {
                let next = json!({"$ref": format!("#/$defs/d{}", step + 1)});
                definitions.insert(format!("d{step}"), json!({"anyOf": [next, next]}));
            }
            definitions.insert(format!("d{steps}"), json!({"type": "string"}));
            json!({"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": definitions})
        };
        assert!(weigh(&doubling(10)).is_ok());
        assert!(weigh(&doubling(14)).unwrap_err().message.contains("too many checks"));
        assert!(weigh(&doubling(60)).is_err());
        assert!(weigh(&doubling(20_000)).unwrap_err().message.contains("nests deeper"));
    }

    #[test]
    fn what_is_applied_again_multiplies() {
        let nested = |levels: usize| {
            (0..levels).fold(json!({}), |inner, _| json!({"anyOf": [inner], "unevaluatedProperties": false}))
        };
        assert!(weigh(&nested(5)).is_ok());
        assert!(weigh(&nested(10)).is_err());
    }

    #[test]
    fn patterns_are_bounded_together() {
        let names: Map<String, Value> =
            (0..20).map(|n| (format!("n{n}"), json!({"pattern": "^[\\p{L} .'-]{2,100}$"}))).collect();
        let few: Map<String, Value> =
            names.iter().take(8).map(|(name, schema)| (name.clone(), schema.clone())).collect();
        assert!(weigh(&json!({ "properties": few })).is_ok());
        assert!(weigh(&json!({ "properties": names })).unwrap_err().message.contains("patterns"));
        assert!(weigh(&json!({"pattern": "([ab]{1000}){100}"})).is_err());
    }
}
