//! The rules in force, and those on disk.

use super::actions;
use super::context::{PageContext, PageResult, see_result};
use crate::console::{PageView, RuleProblemItem, RulesView};
use crate::http::admin::rules::ProblemInfo;

/// Answers `GET /rules`.
pub(super) async fn show(context: &PageContext<'_>) -> PageResult {
    Ok(context.page(PageView::Rules(&view(context))).await)
}

/// Answers `POST /rules/reload`: loads the rules.
pub(super) async fn reload(context: &PageContext<'_>) -> PageResult {
    let reloaded = actions::reload(context.source, context.request).await?;
    Ok(see_result("/rules", &[], reloaded.id))
}

fn view(context: &PageContext<'_>) -> RulesView {
    let (info, rules) = (context.source.rules(), context.source.rule_set());
    let certificate = info.certificate.error.map(|error| RuleProblemItem {
        file: rules.gateway.tls.certificate.display().to_string(),
        message: error,
        ..RuleProblemItem::default()
    });
    RulesView {
        version: info.version,
        since: info.loaded_at,
        directory: context.source.rules_directory(),
        is_refused: info.error.is_some(),
        problems: info.problems.into_iter().map(item).chain(certificate).collect(),
        more_problems: info.problem_count.saturating_sub(MAX_PROBLEMS_SHOWN),
        warnings: rules.warnings.iter().take(MAX_PROBLEMS_SHOWN).map(|warning| item(warning.into())).collect(),
        needs_restart: info.needs_restart.into_iter().map(str::to_owned).collect(),
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

/// How many problems and warnings are shown.
const MAX_PROBLEMS_SHOWN: usize = 20;

fn item(problem: ProblemInfo) -> RuleProblemItem {
    let ProblemInfo { file, line, column, message, suggestion, excerpt: rendered, .. } = problem;
    RuleProblemItem { file, line, column, message, suggestion, excerpt: excerpt(&rendered) }
}
