//! The template of customers' pages is tried before it serves: with every state, in every language, and with the oddest
//! values that there can be.

use minijinja::ErrorKind;
use serde_json::Value;

use super::page_markup::{Expected, Fault, STRAY_ATTRIBUTE, faults, find_small};
use super::template::{TemplateProblem, template_problem, unknown_values};
use super::template_weight::{Purpose, weigh};
use crate::rules::pages::{
    AllValues, DetailValues, InstructionValues, Language, PageState, PageValues, Pages, PaymentValues, TextDirection,
    escaped,
};
use crate::rules::problems::did_you_mean;
use crate::rules::raw::TABLES;

/// How long texts are at most, in characters: of a language, a merchant's name and order, the sandbox's and the merchant's
/// addresses, and what instructions have (contract section 8).
const LONGEST_TEXT: usize = 500;
const LONGEST_NAME: usize = 500;
const LONGEST_ORDER: usize = 255;
const LONGEST_ADDRESS: usize = 2048;
const LONGEST_INSTRUCTIONS: usize = 2000;
const LONGEST_LABEL: usize = 80;
const LONGEST_VALUE: usize = 300;
const MOST_DETAILS: usize = 20;

/// Texts that nobody sends by accident.
struct Odd {
    language: Language,
    without_hints: Language,
    name: String,
    order: String,
    address: String,
    instructions: String,
    label: String,
    value: String,
}

impl Odd {
    fn new() -> Self {
        Self {
            language: odd_language(true),
            without_hints: odd_language(false),
            name: odd(LONGEST_NAME),
            order: odd(LONGEST_ORDER),
            address: address(),
            instructions: odd(LONGEST_INSTRUCTIONS),
            label: odd(LONGEST_LABEL),
            value: odd(LONGEST_VALUE),
        }
    }

    /// A page that has everything which a page of its state can have.
    fn full(&self, state: PageState) -> PageValues<'_> {
        let payment = PaymentValues {
            merchant: &self.name,
            shop: &self.name,
            order_id: &self.order,
            amount: "9,999,999,999,999.99".to_owned(),
            value: "9999999999999.99".to_owned(),
            currency: "EUR",
        };
        let details = (0..MOST_DETAILS).map(|_| DetailValues { label: &self.label, value: &self.value });
        let instructions = InstructionValues { text: Some(&self.instructions), details: details.collect() };
        let is_known = state != PageState::Refused;
        PageValues {
            state,
            payment: is_known.then_some(payment),
            instructions: (state == PageState::Instructions).then_some(instructions),
            return_url: is_known.then_some(&self.address),
            action: (state == PageState::Sandbox).then_some("/sandbox/1?expires=2&signature=3"),
            here: Some("/pay/1?expires=2&signature=3"),
            refresh: Some("2"),
            request_id: &self.label,
        }
    }
}

/// A page that has nothing which a page of its state can do without.
fn bare(state: PageState) -> PageValues<'static> {
    let details = vec![DetailValues { label: "a", value: "b" }];
    PageValues {
        state,
        payment: None,
        instructions: (state == PageState::Instructions).then_some(InstructionValues { text: None, details }),
        return_url: None,
        action: (state == PageState::Sandbox).then_some("/sandbox/1?expires=2&signature=3"),
        here: None,
        refresh: None,
        request_id: "r",
    }
}

/// So many characters that would be markup, attributes and addresses if they were not written as text.
fn odd(length: usize) -> String {
    let odd = format!(
        "javascript:x() {STRAY_ATTRIBUTE}=1 \" {STRAY_ATTRIBUTE}=\"2\" ' {STRAY_ATTRIBUTE}='3' ><script>x</script>\
         </style></title><!-- & &amp; {{{{ x }}}} \u{5e9}\u{5dc}\u{5d5}\u{5dd} \u{4ed8}\u{6b3e} \u{1f600} "
    );
    odd.chars().cycle().take(length).collect()
}

/// A merchant's address, at its longest.
fn address() -> String {
    let start = "https://localhost/return/1?expires=2&signature='";
    format!("{start}{}", "&".repeat(LONGEST_ADDRESS - start.len()))
}

fn odd_language(hints: bool) -> Language {
    let text = Value::from(odd(LONGEST_TEXT));
    let table = |keys: &[crate::rules::raw::TextKey]| {
        let value = |optional: bool| if optional && !hints { Value::Null } else { text.clone() };
        keys.iter().map(|key| (key.name.to_owned(), value(key.optional))).collect::<Value>()
    };
    Language {
        tag: "en-x-odd".into(),
        direction: TextDirection::Rtl,
        decimal: ".".into(),
        group: ",".into(),
        texts: TABLES.iter().map(|each| (each.name.to_owned(), table(each.keys))).collect(),
    }
}

/// Makes pages of a template after it was weighed and tried. Warnings are told beside.
///
/// # Errors
/// Everything that is wrong with the template, as far as it could be tried.
pub(super) fn tried(
    languages: Vec<Language>,
    source: &str,
    style: String,
) -> Result<(Pages, Vec<TemplateProblem>), Vec<TemplateProblem>> {
    let odd = Odd::new();
    let samples = all_samples(&odd, &style);
    weigh(source, &samples, Purpose::Page).map_err(|problem| vec![problem])?;
    let pages = Pages::new(languages, source.to_owned(), style).map_err(|error| vec![template_problem(&error)])?;
    for state in PageState::ALL {
        let mut pairs = vec![(&odd.language, odd.full(state)), (&odd.without_hints, bare(state))];
        pairs.extend(pages.languages().iter().map(|language| (language, odd.full(state))));
        for (language, values) in pairs {
            page(&pages, language, &values, &samples)?;
        }
    }
    let template = pages.template().map_err(|error| vec![template_problem(&error)])?;
    let warnings = unknown_values(&template, &pages.functions(), &samples);
    Ok((pages, warnings))
}

/// All that templates read, as JSON.
fn all_samples(odd: &Odd, style: &str) -> Vec<Value> {
    let sample = |language: &Language, values: &PageValues<'_>| {
        let mut sample = serde_json::to_value(AllValues::of(language, values)).unwrap_or_default();
        if let Value::Object(members) = &mut sample {
            members.insert("style".to_owned(), style.into());
        }
        sample
    };
    let both = |state| [sample(&odd.language, &odd.full(state)), sample(&odd.without_hints, &bare(state))];
    PageState::ALL.into_iter().flat_map(both).collect()
}

/// Renders a page, and looks at it.
fn page(
    pages: &Pages,
    language: &Language,
    values: &PageValues<'_>,
    samples: &[Value],
) -> Result<(), Vec<TemplateProblem>> {
    let template = pages.template().map_err(|error| vec![template_problem(&error)])?;
    let source = template.source();
    let html = pages.render(language, values).map_err(|error| vec![failed(&error, source, samples)])?;
    let addresses = [values.return_url, values.action, values.here].into_iter().flatten().map(escaped).collect();
    let expected = Expected {
        lang: &language.tag,
        return_url: values.return_url.map(escaped),
        form: values.action.filter(|_| values.state == PageState::Sandbox).map(escaped),
        refresh: values.refresh.map(escaped),
        addresses,
        style: pages.style(),
    };
    let mut problems: Vec<TemplateProblem> = Vec::new();
    for fault in faults(&html, &expected) {
        if !problems.iter().any(|known| known.reason == fault.reason) {
            problems.push(placed(fault, source));
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// What is wrong with a page, in its place in the template where that can be found.
fn placed(fault: Fault, source: &str) -> TemplateProblem {
    let found = fault.near.and_then(|near| {
        let start = find_small(source, &near.to_ascii_lowercase())?;
        Some(start..start + near.len())
    });
    TemplateProblem { reason: fault.reason, at: found, suggestion: None }
}

/// Why a template failed, and what may have been meant by what it read in vain.
fn failed(error: &minijinja::Error, source: &str, samples: &[Value]) -> TemplateProblem {
    let problem = template_problem(error);
    let read = problem.at.clone().and_then(|at| source.get(at)).unwrap_or_default();
    let part = |c: char| !c.is_ascii_alphanumeric() && c != '_';
    let name = read.rsplit(part).find(|name| !name.is_empty()).unwrap_or_default();
    let suggestion = (error.kind() == ErrorKind::UndefinedError)
        .then(|| {
            let mut names = Vec::new();
            for sample in samples {
                member_names(sample, &mut names);
            }
            match read.split(part).next() {
                Some(of) if names.contains(&name) => {
                    Some(format!("it is none on some pages: ask first, as in `{{% if {of} %}}`"))
                }
                _ => did_you_mean(name, names),
            }
        })
        .flatten();
    TemplateProblem { suggestion, ..problem }
}

fn member_names<'a>(value: &'a Value, names: &mut Vec<&'a str>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                names.push(name);
                member_names(value, names);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| member_names(value, names)),
        _ => {}
    }
}
