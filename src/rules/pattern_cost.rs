//! What matching a regular expression can cost. The engine matches in linear time: at worst every byte of the text is
//! looked at by every place of the pattern that can be active at once, and counted repetitions multiply those places.

use regex_syntax::hir::{Class, Hir, HirKind};

/// What is assumed of a pattern that only the engine's own dialect can read.
const UNREAD: PatternCost = PatternCost { places: 1000, size: 10_000 };

/// What a pattern costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PatternCost {
    /// How many places of it can be active at once: the steps that one byte of text can take.
    pub places: u64,
    /// How large it becomes when it is compiled: its places, a class counting as often as it has ranges.
    pub size: u64,
}

/// Estimates a pattern, never too low by more than a small factor.
pub(super) fn pattern_cost(pattern: &str) -> PatternCost {
    match regex_syntax::ParserBuilder::new().nest_limit(200).build().parse(pattern) {
        Ok(hir) => of(&hir),
        Err(_) => UNREAD,
    }
}

fn of(hir: &Hir) -> PatternCost {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => PatternCost { places: 1, size: 1 },
        HirKind::Literal(literal) => {
            let bytes = literal.0.len() as u64;
            PatternCost { places: bytes, size: bytes }
        }
        HirKind::Class(class) => PatternCost { places: 1, size: ranges(class).max(1) },
        HirKind::Repetition(repetition) => {
            let inner = of(&repetition.sub);
            let times = u64::from(repetition.max.unwrap_or(repetition.min.saturating_add(1)).max(1));
            PatternCost { places: inner.places.saturating_mul(times), size: inner.size.saturating_mul(times) }
        }
        HirKind::Capture(capture) => of(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().map(of).fold(PatternCost { places: 0, size: 0 }, |sum, part| PatternCost {
                places: sum.places.saturating_add(part.places),
                size: sum.size.saturating_add(part.size),
            })
        }
    }
}

fn ranges(class: &Class) -> u64 {
    match class {
        Class::Unicode(class) => class.ranges().len() as u64,
        Class::Bytes(class) => class.ranges().len() as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_multiply() {
        for (pattern, places) in [
            ("", 1),
            ("abc", 3),
            ("^[A-Z]{2}[0-9]{10,32}$", 36),
            ("(a|bc)*", 3),
            ("(a|bc){2,}", 9),
            ("([ab]{1000}){100}", 100_000),
            ("(((x{1000}){1000}){1000}){1000}", 1_000_000_000_000),
            ("((((((((x{1000}){1000}){1000}){1000}){1000}){1000}){1000}){1000}){1000}", u64::MAX),
        ] {
            assert_eq!(pattern_cost(pattern).places, places, "{pattern}");
        }
        assert!(pattern_cost("\\p{L}{100}").size > 50_000);
        assert_eq!(pattern_cost("(?=x)"), UNREAD);
    }
}
