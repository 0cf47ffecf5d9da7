//! Values in canonical form: key order, escapes and the spelling of numbers make no difference (contract section 7,
//! "repeat").

use std::collections::{BTreeMap, BTreeSet};

use super::FingerprintInput;
use crate::json::{Member, Node, Object, Value};

/// The tags of values in a hash.
const NULL: u8 = 0;
const FALSE: u8 = 1;
const TRUE: u8 = 2;
const NUMBER: u8 = 3;
const STRING: u8 = 4;
const ARRAY: u8 = 5;
const OBJECT: u8 = 6;
const ABSENT: u8 = 7;

/// Adds the canonical form of a value to a hash.
pub fn hash_value(parts: &mut FingerprintInput, value: &Value<'_>) {
    match &value.node {
        Node::Null => parts.tag(NULL),
        Node::Bool(truth) => parts.tag(if *truth { TRUE } else { FALSE }),
        Node::Number => {
            parts.tag(NUMBER);
            parts.part(canonical_number(value.raw).as_bytes());
        }
        Node::String(text) => {
            parts.tag(STRING);
            parts.part(text.as_bytes());
        }
        Node::Array(items) => {
            parts.tag(ARRAY);
            parts.count(items.len());
            for item in items {
                hash_value(parts, item);
            }
        }
        Node::Object(object) => hash_members(parts, object, |_| true),
    }
}

/// Adds the canonical form of a value that may be absent to a hash.
pub fn hash_optional(parts: &mut FingerprintInput, value: Option<&Value<'_>>) {
    match value {
        Some(value) => hash_value(parts, value),
        None => parts.tag(ABSENT),
    }
}

/// Adds those members of an object that `keep` accepts to a hash, independent of their order.
pub fn hash_members(parts: &mut FingerprintInput, object: &Object<'_>, keep: impl Fn(&Member<'_>) -> bool) {
    let mut members = Vec::with_capacity(object.0.len());
    members.extend(object.0.iter().filter(|member| keep(member)));
    members.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    parts.tag(OBJECT);
    parts.count(members.len());
    for member in members {
        parts.part(member.name.as_bytes());
        hash_value(parts, &member.value);
    }
}

/// The members of an object, sorted by name.
fn by_name<'o, 'a>(object: &'o Object<'a>) -> Vec<&'o Member<'a>> {
    let mut members: Vec<_> = object.0.iter().collect();
    members.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    members
}

/// Returns the sorted names of the members in which two objects differ, those that only one has among them. Members that
/// `keep` refuses are passed over.
pub fn differing_names(left: &Object<'_>, right: &Object<'_>, keep: impl Fn(&Member<'_>) -> bool) -> Vec<String> {
    let kept = |object| -> BTreeMap<String, &Value<'_>> {
        let members = by_name(object).into_iter().filter(|member| keep(member));
        members.map(|member| (member.name.clone().into_owned(), &member.value)).collect()
    };
    let (left, right) = (kept(left), kept(right));
    let names: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
    let same_in_both = |name: &String| match (left.get(name), right.get(name)) {
        (Some(left), Some(right)) => same(left, right),
        _ => false,
    };
    names.into_iter().filter(|name| !same_in_both(name)).cloned().collect()
}

/// Reports whether two values are equal in canonical form.
#[must_use]
pub fn same(left: &Value<'_>, right: &Value<'_>) -> bool {
    match (&left.node, &right.node) {
        (Node::Null, Node::Null) => true,
        (Node::Bool(left), Node::Bool(right)) => left == right,
        (Node::Number, Node::Number) => canonical_number(left.raw) == canonical_number(right.raw),
        (Node::String(left), Node::String(right)) => left == right,
        (Node::Array(left), Node::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Node::Object(left), Node::Object(right)) => {
            let (left, right) = (by_name(left), by_name(right));
            let pairs = left.iter().zip(&right);
            left.len() == right.len() && pairs.into_iter().all(|(l, r)| l.name == r.name && same(&l.value, &r.value))
        }
        _ => false,
    }
}

/// One spelling for every JSON number of the same value: `-12.50e3` is `-125e2`, every zero is `0`. A number whose
/// exponent no computer could mean keeps its own spelling, so that the work is bounded by the text.
fn canonical_number(raw: &str) -> String {
    let (mantissa, exponent) = raw.split_once(['e', 'E']).unwrap_or((raw, "0"));
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut all = String::with_capacity(raw.len() + 24);
    all.push_str(sign);
    all.extend(whole.chars().chain(fraction.chars()).skip_while(|digit| *digit == '0'));
    let digits = all.len() - sign.len();
    all.truncate(all.trim_end_matches('0').len());
    let significant = all.len() - sign.len();
    if significant == 0 {
        return "0".to_owned();
    }
    let Ok(exponent) = exponent.parse::<i64>() else { return raw.to_owned() };
    let dropped = i64::try_from(digits - significant).unwrap_or(i64::MAX);
    let shifted = i64::try_from(fraction.len()).unwrap_or(i64::MAX);
    match exponent.checked_add(dropped).and_then(|sum| sum.checked_sub(shifted)) {
        Some(exponent) => {
            all.push('e');
            all.push_str(itoa::Buffer::new().format(exponent));
            all
        }
        None => raw.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::{Fingerprint, FingerprintKey};
    use crate::json::read;

    fn fingerprint(text: &str) -> Fingerprint {
        let mut parts = FingerprintInput::of("test");
        hash_value(&mut parts, &read(text.as_bytes()).unwrap());
        FingerprintKey::new(&[7; 32]).fingerprint(&parts)
    }

    #[test]
    fn equal_by_value_and_nothing_else() {
        for (left, right) in [
            ("1", "1.0"),
            ("1", "1e0"),
            ("100", "1E2"),
            ("0.1", "1e-1"),
            ("-0", "0"),
            ("0e99999999999999999999", "0"),
            (r#"{"a":1,"b":[2,"x"]}"#, r#"{ "b":[2.0,"\u0078"], "a":1.00 }"#),
            (r#""\/""#, r#""/""#),
        ] {
            assert_eq!(fingerprint(left), fingerprint(right), "{left} {right}");
            assert!(same(&read(left.as_bytes()).unwrap(), &read(right.as_bytes()).unwrap()), "{left} {right}");
        }
        for (left, right) in [
            ("1", "\"1\""),
            ("1", "-1"),
            ("1", "10"),
            ("null", "false"),
            ("[]", "{}"),
            ("[1,2]", "[2,1]"),
            ("[[1],2]", "[[1,2]]"),
            (r#"{"a":null}"#, "{}"),
            (r#"{"a":"b"}"#, r#"{"b":"a"}"#),
            ("\"a\"", "\"A\""),
            ("1e999999999999999999999", "1e9999999999999999999999"),
            ("9007199254740993", "9007199254740992"),
        ] {
            assert_ne!(fingerprint(left), fingerprint(right), "{left} {right}");
            assert!(!same(&read(left.as_bytes()).unwrap(), &read(right.as_bytes()).unwrap()), "{left} {right}");
        }
    }

    proptest! {
        #[test]
        fn moving_the_point_changes_nothing(digits in 1_u64..1_000_000_000, exponent in -30_i64..30, zeros in 0_usize..9) {
            let padded = format!("{digits}{}e{}", "0".repeat(zeros), exponent - i64::try_from(zeros).unwrap());
            prop_assert_eq!(canonical_number(&padded), canonical_number(&format!("{digits}e{exponent}")));
        }
    }
}
