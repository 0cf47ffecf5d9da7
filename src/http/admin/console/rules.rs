//! The rules in force, and those on disk.

use serde::Serialize;

use crate::console::ConsolePage;
use crate::http::admin::actions;
use crate::http::admin::context::{AdminContext, HandlerResult, see_result};
use crate::http::admin::rules::{ProblemInfo, RulesInfo};

/// How many problems and warnings are shown.
const MAX_PROBLEMS_SHOWN: usize = 20;

/// `/rules`. Its form has no field but `form`.
#[derive(Debug, Serialize)]
pub(super) struct RulesPage {
    pub rules: RulesInfo,
    pub directory: String,
    /// Why the files or the certificate on disk are refused.
    pub problems: Vec<ShownProblem>,
    /// How many further ones are not shown.
    pub more_problems: usize,
    /// The warnings of the rules in force.
    pub warnings: Vec<ShownProblem>,
}

/// A problem with the lines of its file, which the API does not reply with.
#[derive(Debug, Serialize)]
pub(super) struct ShownProblem {
    #[serde(flatten)]
    pub problem: ProblemInfo,
    pub excerpt: Option<String>,
}

impl From<ProblemInfo> for ShownProblem {
    fn from(problem: ProblemInfo) -> Self {
        Self { excerpt: excerpt(&problem.excerpt), problem }
    }
}

/// Returns the lines of the file that a rendered problem shows, without the place, the message and the suggestion, which
/// the page has beside them.
fn excerpt(rendered: &str) -> Option<String> {
    let is_frame = |before: &str| before.bytes().all(|byte| byte == b' ' || byte.is_ascii_digit());
    let lines = rendered.lines().filter(|line| line.split_once('|').is_some_and(|(before, _)| is_frame(before)));
    let lines: Vec<_> = lines.filter(|line| line.trim() != "|").collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Answers `GET /rules`.
pub(in crate::http::admin) async fn show(context: &AdminContext<'_>) -> HandlerResult {
    let (info, rules) = (context.source.rules(), context.source.rule_set());
    let certificate = info.certificate.error.clone().map(|message| ProblemInfo {
        file: rules.gateway.tls.certificate.display().to_string(),
        message,
        ..ProblemInfo::default()
    });
    let warnings = rules.warnings.iter().take(MAX_PROBLEMS_SHOWN);
    let view = RulesPage {
        directory: context.source.rules_directory(),
        problems: info.problems.iter().cloned().chain(certificate).map(ShownProblem::from).collect(),
        more_problems: info.problem_count.saturating_sub(info.problems.len()),
        warnings: warnings.map(|warning| ProblemInfo::from(warning).into()).collect(),
        rules: info,
    };
    context.page(ConsolePage::Rules, &view).await
}

/// Answers `POST /rules/reload`: loads the rules.
pub(in crate::http::admin) async fn reload(context: &AdminContext<'_>) -> HandlerResult {
    let reloaded = actions::reload(context).await?;
    Ok(see_result("/rules", &[], reloaded.id))
}
