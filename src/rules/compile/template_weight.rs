//! How much a template can ask for. The engine's fuel bounds its steps, not what one step makes: `"x" * 100000000` is
//! one, and so is each line of `{% set a = a ~ a %}`. So a template is weighed before it is ever compiled: every value has
//! a bound that follows from its parts, every loop a bound of its rounds, and the bytes of all of them together, rounds
//! multiplied in, have a limit. What is below it can neither fill the memory nor take long, for samples and for money alike.

use std::collections::HashMap;

use minijinja::machinery::ast::{BinOp, BinOpKind, Call, CallArg, CallType, Expr, Filter, ForLoop, Spanned, Stmt};
use minijinja::machinery::{Span as Place, parse};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::ValueKind;
use serde_json::Value;

use super::template::{TemplateProblem, problem, template_problem};
use super::template_bound::{Bound, ESCAPED, LONGEST_NUMBER, STEP};
use super::template_depth::check_depth;
use crate::rules::problems::{did_you_mean, quoted};

/// The longest template, in bytes.
const LONGEST_TEMPLATE: usize = 64 << 10;

/// How deep lists may be in each other, and iterators in iterators.
const DEEPEST_VALUE: u32 = 32;

/// What a template makes, which decides what it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// JSON, where values are written as JSON.
    Reply,
    /// HTML, where values are always written as text.
    Page,
}

impl Purpose {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Reply => "reply",
            Self::Page => "page",
        }
    }

    /// What several are called.
    const fn plural(self) -> &'static str {
        match self {
            Self::Reply => "replies",
            Self::Page => "pages",
        }
    }

    /// How many bytes a template may handle for one of them. A page is tried in every language.
    const fn most_bytes(self) -> u64 {
        match self {
            Self::Reply => 64 << 20,
            Self::Page => 16 << 20,
        }
    }

    /// What this has of the engine's filters.
    fn filters(self) -> impl Iterator<Item = &'static str> {
        let out_of_place = move |name: &str| self == Self::Page && OF_REPLIES.contains(&name);
        FILTERS.iter().copied().filter(move |name| !out_of_place(name))
    }
}

/// Filters that say how a value is written, which is settled for pages.
const OF_REPLIES: &[&str] = &["e", "escape", "safe", "tojson"];

/// Why a page may not say how a value is written.
const ALWAYS_TEXT: &str =
    "in pages, values are always written as text, so that nothing that anybody sent becomes markup";

/// The most elements that the engine's `range` gives.
const LONGEST_RANGE: u64 = 100_000;

/// How many digits a width or a precision in a pattern of `format` may have, and what such a field writes beside its value:
/// filling, digits after the point, and those that a double may have before it.
const WIDEST_DIGITS: usize = 3;
const WIDEST_FIELD: u64 = 2 * 1000 + LONGEST_NUMBER;

/// What templates have of the engine's filters: those whose results have a bound.
const FILTERS: &[&str] = &[
    "abs",
    "attr",
    "bool",
    "capitalize",
    "count",
    "d",
    "default",
    "dictsort",
    "e",
    "escape",
    "first",
    "float",
    "format",
    "int",
    "items",
    "join",
    "last",
    "length",
    "lines",
    "list",
    "lower",
    "map",
    "max",
    "min",
    "reject",
    "rejectattr",
    "replace",
    "reverse",
    "round",
    "safe",
    "select",
    "selectattr",
    "sort",
    "split",
    "string",
    "sum",
    "title",
    "tojson",
    "trim",
    "unique",
    "upper",
];

/// Weighs a template whose values are like `samples`.
///
/// # Errors
/// It is no template, may ask for too much, or has something in it whose weight nothing bounds.
pub(super) fn weigh(source: &str, samples: &[Value], purpose: Purpose) -> Result<(), TemplateProblem> {
    if source.len() > LONGEST_TEMPLATE {
        return Err(problem(format!("is longer than {} KiB", LONGEST_TEMPLATE >> 10), Place::default()));
    }
    check_depth(source)?;
    let template = parse(source, "template", SyntaxConfig::default()).map_err(|error| template_problem(&error))?;
    let mut scale = Scale { purpose, scopes: vec![HashMap::new()], rounds: 1, bytes: 0 };
    for (name, value) in samples.iter().filter_map(Value::as_object).flatten() {
        scale.bind(name, Bound::of(value));
    }
    scale.statement(&template).map(drop)
}

/// Weighs statements and expressions in the order in which they run. What a loop's body sets is gone in its next round, so
/// that nothing grows from round to round.
struct Scale<'s> {
    purpose: Purpose,
    /// What names stand for, the innermost last.
    scopes: Vec<HashMap<&'s str, Bound>>,
    /// How often what is being weighed runs.
    rounds: u64,
    /// What was counted so far.
    bytes: u64,
}

type Weighed<T> = Result<T, TemplateProblem>;

impl<'s> Scale<'s> {
    fn bind(&mut self, name: &'s str, bound: Bound) {
        let Some(scope) = self.scopes.last_mut() else { return };
        // Whether a condition's branch runs is not known: the name may keep what it had.
        let bound = match scope.remove(name) {
            Some(before) => before.or(&bound),
            None => bound,
        };
        scope.insert(name, bound);
    }

    fn look_up(&self, name: &str) -> Bound {
        let found = self.scopes.iter().rev().find_map(|scope| scope.get(name));
        found.cloned().unwrap_or(Bound::text(0))
    }

    fn spend(&mut self, bytes: u64, place: Place) -> Weighed<()> {
        let bytes = bytes.saturating_add(STEP).saturating_mul(self.rounds);
        self.bytes = self.bytes.saturating_add(bytes);
        let most = self.purpose.most_bytes();
        if self.bytes <= most {
            return Ok(());
        }
        let (made, most) = (self.purpose.as_str(), most >> 20);
        Err(problem(format!("asks for too much: for the largest {made} this comes to more than {most} MiB"), place))
    }

    /// Runs `weigh` with names of its own, `rounds` times.
    fn within<T>(&mut self, rounds: u64, weigh: impl FnOnce(&mut Self) -> Weighed<T>) -> Weighed<T> {
        let before = self.rounds;
        self.rounds = before.saturating_mul(rounds);
        self.scopes.push(HashMap::new());
        let result = weigh(self);
        self.scopes.pop();
        self.rounds = before;
        result
    }

    /// Weighs statements that run one after the other, and returns how many bytes they write.
    fn statements(&mut self, statements: &[Stmt<'s>]) -> Weighed<u64> {
        let mut written: u64 = 0;
        for statement in statements {
            written = written.saturating_add(self.statement(statement)?);
        }
        Ok(written)
    }

    fn statement(&mut self, statement: &Stmt<'s>) -> Weighed<u64> {
        match statement {
            Stmt::Template(template) => self.statements(&template.children),
            Stmt::EmitRaw(raw) => {
                let bytes = raw.raw.len() as u64;
                self.spend(bytes, raw.span())?;
                Ok(bytes)
            }
            Stmt::EmitExpr(emitted) => {
                let bytes = self.value(&emitted.expr)?.bytes;
                self.spend(bytes, emitted.span())?;
                Ok(bytes)
            }
            Stmt::IfCond(condition) => {
                self.value(&condition.expr)?;
                let written = self.statements(&condition.true_body)?;
                Ok(written.max(self.statements(&condition.false_body)?))
            }
            Stmt::ForLoop(each) => self.each(each, each.span()),
            Stmt::WithBlock(with) => self.within(1, |scale| {
                for (target, expression) in &with.assignments {
                    let bound = scale.value(expression)?;
                    scale.assign(target, &bound)?;
                }
                scale.statements(&with.body)
            }),
            Stmt::Set(set) => {
                let bound = self.value(&set.expr)?;
                self.assign(&set.target, &bound)?;
                Ok(0)
            }
            Stmt::SetBlock(set) => {
                self.refuse_in_pages("a `{% set %}` block", set.span())?;
                let mut bound = Bound::text(self.statements(&set.body)?);
                self.spend(bound.bytes, set.span())?;
                if let Some(filter) = &set.filter {
                    bound = self.filtered(filter, bound)?;
                }
                self.assign(&set.target, &bound)?;
                Ok(0)
            }
            Stmt::FilterBlock(block) => {
                self.refuse_in_pages("a `{% filter %}` block", block.span())?;
                let written = Bound::text(self.statements(&block.body)?);
                self.spend(written.bytes, block.span())?;
                let bytes = self.filtered(&block.filter, written)?.bytes;
                self.spend(bytes, block.span())?;
                Ok(bytes)
            }
            Stmt::AutoEscape(escape) => {
                self.refuse_in_pages("an `{% autoescape %}`", escape.span())?;
                self.value(&escape.enabled)?;
                self.statements(&escape.body)
            }
            Stmt::Do(call) => Err(problem("has a `{% do %}`, which writes nothing".to_owned(), call.span())),
        }
    }

    /// Refuses what would have a say in how values are written, or would be written as text in a second turn.
    fn refuse_in_pages(&self, what: &str, place: Place) -> Weighed<()> {
        match self.purpose {
            Purpose::Reply => Ok(()),
            Purpose::Page => Err(problem(format!("has {what}: {ALWAYS_TEXT}"), place)),
        }
    }

    fn each(&mut self, each: &ForLoop<'s>, place: Place) -> Weighed<u64> {
        if each.recursive {
            return Err(problem("has a `recursive` loop, whose rounds nothing bounds".to_owned(), place));
        }
        let list = self.value(&each.iter)?;
        self.spend(list.bytes, place)?;
        let once = self.within(list.items, |scale| {
            scale.spend(0, place)?;
            scale.bind("loop", Bound::list(0, 1, Bound::number()));
            scale.assign(&each.target, &list.inside())?;
            if let Some(filter) = &each.filter_expr {
                scale.value(filter)?;
            }
            scale.statements(&each.body)
        })?;
        let otherwise = self.within(1, |scale| scale.statements(&each.else_body))?;
        Ok(once.saturating_mul(list.items).max(otherwise))
    }

    fn assign(&mut self, target: &Expr<'s>, bound: &Bound) -> Weighed<()> {
        match target {
            Expr::Var(name) => self.bind(name.id, bound.clone()),
            Expr::List(names) => {
                for name in &names.items {
                    self.assign(name, &bound.inside())?;
                }
            }
            other => return Err(problem("sets something else than a name".to_owned(), other.span())),
        }
        Ok(())
    }

    fn value(&mut self, expression: &Expr<'s>) -> Weighed<Bound> {
        let place = expression.span();
        self.spend(0, place)?;
        let made = match expression {
            // What is there already is not copied.
            Expr::Var(name) => return Ok(self.look_up(name.id)),
            Expr::GetAttr(of) => return Ok(self.value(&of.expr)?.member(of.name)),
            Expr::GetItem(of) => {
                let key = self.value(&of.subscript_expr)?;
                self.spend(key.bytes, place)?;
                return Ok(self.value(&of.expr)?.inside());
            }
            Expr::IfExpr(either) => {
                self.value(&either.test_expr)?;
                let bound = self.value(&either.true_expr)?;
                return match &either.false_expr {
                    Some(otherwise) => Ok(bound.or(&self.value(otherwise)?)),
                    None => Ok(bound),
                };
            }
            Expr::Const(constant) => match constant.value.kind() {
                ValueKind::Number | ValueKind::Bool | ValueKind::None => Bound::number(),
                _ => Bound::text((constant.value.to_string().len() as u64).saturating_mul(ESCAPED)),
            },
            Expr::Slice(slice) => {
                if let Some(step) = &slice.step {
                    return Err(problem("has a slice with a step".to_owned(), step.span()));
                }
                self.values(slice.start.iter().chain(&slice.stop))?;
                self.value(&slice.expr)?.deeper()
            }
            Expr::UnaryOp(operation) => {
                let operand = self.value(&operation.expr)?;
                self.spend(operand.bytes, place)?;
                Bound::number()
            }
            Expr::BinOp(operation) => self.operation(operation, place)?,
            Expr::Compare(compare) => {
                let first = self.value(&compare.expr)?;
                let rest = self.values(compare.ops.iter().map(|compared| &compared.expr))?;
                // Each one in the middle is read twice.
                self.spend(first.bytes.saturating_add(rest.bytes.saturating_mul(2)), place)?;
                Bound::number()
            }
            Expr::Filter(filter) => {
                let Some(of) = &filter.expr else {
                    return Err(problem("has a filter of nothing".to_owned(), place));
                };
                let bound = self.value(of)?;
                self.filter(filter, bound)?
            }
            Expr::Test(test) => {
                let tested = self.value(&test.expr)?;
                let arguments = self.arguments(&test.args)?;
                self.spend(tested.bytes.saturating_add(arguments.bytes), place)?;
                Bound::number()
            }
            Expr::Call(call) => self.call(call)?,
            Expr::List(list) => self.values(&list.items)?,
            Expr::Tuple(tuple) => self.values(&tuple.items)?,
            Expr::Map(map) => self.values(map.keys.iter().chain(&map.values))?,
        };
        if made.depth > DEEPEST_VALUE {
            return Err(problem(format!("has values deeper in each other than {DEEPEST_VALUE}"), place));
        }
        self.spend(made.bytes, place)?;
        Ok(made)
    }

    fn operation(&mut self, operation: &BinOp<'s>, place: Place) -> Weighed<Bound> {
        let (left, right) = (self.value(&operation.left)?, self.value(&operation.right)?);
        // Comparisons read both sides.
        self.spend(left.bytes.saturating_add(right.bytes), place)?;
        Ok(match operation.op {
            BinOpKind::ScAnd | BinOpKind::ScOr => left.or(&right),
            BinOpKind::Concat => Bound::text(left.as_text().bytes.saturating_add(right.as_text().bytes)),
            BinOpKind::Add if !(left.number && right.number) => left.and(&right),
            BinOpKind::Mul if !(left.number && right.number) => {
                match (written(&operation.left), written(&operation.right)) {
                    (_, Some(times)) => left.times(times).deeper(),
                    (Some(times), _) => right.times(times).deeper(),
                    (None, None) => {
                        let reason = "multiplies what may be a text: make it a number first, as in `amount|float`";
                        return Err(problem(reason.to_owned(), place));
                    }
                }
            }
            _ => Bound::number(),
        })
    }

    fn call(&mut self, call: &Spanned<Call<'s>>) -> Weighed<Bound> {
        let given = self.arguments(&call.args)?;
        match call.identify_call() {
            CallType::Function("range") if (1..=2).contains(&call.args.len()) => {
                let most = match call.args.as_slice() {
                    [CallArg::Pos(most)] => written(most),
                    [CallArg::Pos(from), CallArg::Pos(to)] => written(from).and(written(to)),
                    _ => None,
                };
                Ok(Bound::list(0, most.unwrap_or(LONGEST_RANGE).min(LONGEST_RANGE), Bound::number()))
            }
            CallType::Method(Expr::Var(of), "cycle") if of.id == "loop" => Ok(given.inside()),
            CallType::Method(Expr::Var(of), "changed") if of.id == "loop" => Ok(Bound::number()),
            _ => {
                let reason = "calls something else than `range(…)`, `loop.cycle(…)` and `loop.changed(…)`";
                Err(problem(reason.to_owned(), call.span()))
            }
        }
    }

    /// A list of all of them.
    fn values<'e>(&mut self, expressions: impl IntoIterator<Item = &'e Expr<'s>>) -> Weighed<Bound>
    where
        's: 'e,
    {
        let mut inside = Bound::nothing();
        let (mut bytes, mut items) = (0_u64, 0);
        for expression in expressions {
            let bound = self.value(expression)?;
            bytes = bytes.saturating_add(bound.bytes);
            items += 1;
            inside = inside.or(&bound);
        }
        Ok(Bound::list(bytes, items, inside))
    }

    fn arguments(&mut self, arguments: &[CallArg<'s>]) -> Weighed<Bound> {
        let mut values = Vec::new();
        for argument in arguments {
            match argument {
                CallArg::Pos(value) | CallArg::Kwarg(_, value) => values.push(value),
                CallArg::PosSplat(value) | CallArg::KwargSplat(value) => {
                    return Err(problem("has `*` before an argument".to_owned(), value.span()));
                }
            }
        }
        self.values(values)
    }

    /// The filter of a block: a chain whose innermost one gets the block's text.
    fn filtered(&mut self, filter: &Expr<'s>, text: Bound) -> Weighed<Bound> {
        let Expr::Filter(filter) = filter else {
            return Err(problem("has something else than a filter there".to_owned(), filter.span()));
        };
        let bound = match &filter.expr {
            Some(inner) => self.filtered(inner, text)?,
            None => text,
        };
        let bound = self.filter(filter, bound)?;
        self.spend(bound.bytes, filter.span())?;
        Ok(bound)
    }

    /// What a filter makes of a value.
    fn filter(&mut self, filter: &Spanned<Filter<'s>>, of: Bound) -> Weighed<Bound> {
        let (name, arguments, place) = (filter.name, &filter.args, filter.span());
        let given = self.arguments(arguments)?;
        self.spend(of.bytes.saturating_add(given.bytes), place)?;
        if OF_REPLIES.contains(&name) {
            self.refuse_in_pages(&format!("the filter {}", quoted(name)), place)?;
        }
        Ok(match name {
            "safe" | "string" | "trim" => of.as_text(),
            // A few letters have a longer other case.
            "upper" | "lower" | "title" | "capitalize" => of.as_text().times(3),
            // What is escaped may be escaped once more.
            "escape" | "e" => Bound::text(of.bytes.saturating_mul(ESCAPED)),
            "tojson" if arguments.is_empty() => Bound::text(of.bytes.saturating_mul(ESCAPED)),
            "tojson" => return Err(problem("has a `tojson` with an indent".to_owned(), place)),
            "length" | "count" | "abs" | "round" | "bool" => Bound::number(),
            // Their argument is what stands in for what is no number.
            "int" | "float" if arguments.is_empty() => Bound::number(),
            "int" | "float" => Bound::number().or(&given.inside()),
            "sum" => match arguments.as_slice() {
                [] | [CallArg::Kwarg("attribute", _)] => Bound::number(),
                _ => return Err(problem("has a `sum` that starts with something".to_owned(), place)),
            },
            "first" | "last" | "min" | "max" | "attr" => of.inside(),
            "default" | "d" => of.or(&given.inside()),
            "reverse" | "sort" | "unique" | "list" | "split" | "lines" | "select" | "reject" | "selectattr"
            | "rejectattr" => of.rearranged(),
            "items" | "dictsort" => of.pairs(),
            "map" => match arguments.as_slice() {
                [CallArg::Kwarg("attribute", _), ..] => {
                    let each = of.inside().inside().or(&given.inside());
                    Bound::list(each.times(of.items).bytes, of.items, each)
                }
                _ => return Err(problem("has a `map` without `attribute=`".to_owned(), place)),
            },
            "join" => {
                let texts = if of.inside().inside.is_some() { of.as_text().bytes } else { of.bytes };
                Bound::text(texts.saturating_add(given.times(of.items).bytes))
            }
            "replace" => {
                let with = given.inside().bytes;
                Bound::text(of.bytes.saturating_add((of.bytes + 1).saturating_mul(with)))
            }
            "format" => formatted(filter.expr.as_ref(), &given, place)?,
            _ => {
                let known = self.purpose.filters().collect::<Vec<_>>().join(", ");
                let reason = format!("has an unknown filter {}; {} have {known}", quoted(name), self.purpose.plural());
                let suggestion = did_you_mean(name, self.purpose.filters());
                return Err(TemplateProblem { suggestion, ..problem(reason, place) });
            }
        })
    }
}

/// A number that is written out.
fn written(expression: &Expr<'_>) -> Option<u64> {
    match expression {
        Expr::Const(constant) => u64::try_from(constant.value.clone()).ok(),
        _ => None,
    }
}

/// What a `format` writes by a pattern that is written out.
fn formatted(pattern: Option<&Expr<'_>>, given: &Bound, place: Place) -> Weighed<Bound> {
    let pattern = match pattern {
        Some(Expr::Const(constant)) => constant.value.as_str(),
        _ => None,
    };
    let is_wide = |pattern: &str| {
        pattern.contains('*') || pattern.split(|c: char| !c.is_ascii_digit()).any(|digits| digits.len() > WIDEST_DIGITS)
    };
    let Some(pattern) = pattern.filter(|pattern| !is_wide(pattern)) else {
        let reason = "has a `format` whose pattern is not written out, or has widths of four digits or `*`";
        return Err(problem(reason.to_owned(), place));
    };
    let fields = pattern.matches('%').count() as u64;
    let field = given.inside().as_text().bytes.saturating_add(WIDEST_FIELD);
    Ok(Bound::text((pattern.len() as u64 * ESCAPED).saturating_add(fields.saturating_mul(field))))
}
