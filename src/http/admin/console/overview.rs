//! The overview: what needs attention, and the figures of the last hour.

use std::time::Duration;

use super::context::{PageContext, PageResult};
use crate::console::{AttentionItem, OverviewView, PageLink, PageView, Plot, PlotSeries, PlotUnit, RefusalItem, Tone};
use crate::domain::UnixMillis;
use crate::store::{CallbackQuery, CallbackState, StoreError, Unanswered};
use crate::telemetry::{HistoryPoint, HistorySnapshot, POINT_INTERVAL};

/// How many failed callbacks, and entries of the journal, are counted at most.
const MOST_COUNTED: u16 = 1000;

/// How long a provider job or an open entry may wait before it needs attention.
const LONG_WAIT: Duration = Duration::from_mins(5);

/// How long before the certificate's end it needs attention.
const CERTIFICATE_NOTICE: Duration = Duration::from_hours(14 * 24);

/// How many reasons of refusals are listed.
const REASONS: usize = 10;

/// Answers `GET /`.
pub(super) async fn show(context: &PageContext<'_>) -> PageResult {
    let mut attention = of_rules(context);
    match of_store(context).await {
        Ok(found) => attention.extend(found),
        Err(error) => {
            attention.insert(0, item(Tone::Bad, "The store does not respond", &error.to_string(), "/", "Try again"));
        }
    }
    let history = context.source.history();
    let refusals = history.refusals.iter().take(REASONS);
    let refusals = refusals.map(|refusal| RefusalItem { reason: refusal.reason.to_owned(), count: refusal.count });
    let view = OverviewView { attention, refusals: refusals.collect(), plots: plots(&history, context.source.now()) };
    Ok(context.page(PageView::Overview(&view)).await)
}

fn item(tone: Tone, title: &str, detail: &str, href: &str, text: &str) -> AttentionItem {
    let link = PageLink { href: href.to_owned(), text: text.to_owned() };
    AttentionItem { tone, title: title.to_owned(), detail: detail.to_owned(), since: None, link }
}

/// What of the rules and the certificate needs attention.
fn of_rules(context: &PageContext<'_>) -> Vec<AttentionItem> {
    let (info, now) = (context.source.rules(), context.source.now());
    let to_rules = |tone, title: &str, detail: &str| item(tone, title, detail, "/rules", "See the rules");
    let mut found = Vec::new();
    if info.problem_count > 0 {
        let detail = format!("Problems: {}. The last good rules keep serving.", info.problem_count);
        found.push(to_rules(Tone::Bad, "Rules on disk are refused", &detail));
    }
    if let Some(error) = &info.certificate.error {
        found.push(to_rules(Tone::Bad, "The certificate on disk is refused", error));
    }
    if let Some(end) = info.certificate.not_after.filter(|end| *end < now.plus(CERTIFICATE_NOTICE)) {
        let (tone, title) = if end < now {
            (Tone::Bad, "The certificate in use has expired")
        } else {
            (Tone::Warn, "The certificate in use expires soon")
        };
        let detail = "Put a renewed pair in its place: it is loaded without a restart.";
        found.push(AttentionItem { since: Some(end), ..to_rules(tone, title, detail) });
    }
    if !info.needs_restart.is_empty() {
        found.push(to_rules(Tone::Warn, "Settings wait for a restart", &info.needs_restart.join(", ")));
    }
    found
}

/// What of the store's queues needs attention.
async fn of_store(context: &PageContext<'_>) -> Result<Vec<AttentionItem>, StoreError> {
    let (store, now) = (context.source.store(), context.source.now());
    let mut found = Vec::new();
    let most = usize::from(MOST_COUNTED);
    let failed = CallbackQuery {
        states: vec![CallbackState::Failed],
        merchant: None,
        order_id: None,
        since: None,
        until: None,
        after: None,
        limit: most,
    };
    let failed = u64::try_from(store.count_callbacks(failed).await?).unwrap_or(u64::MAX);
    if failed > 0 {
        let detail = "They were given up. When their receivers work again, resend them.";
        let title = counted("Failed callbacks", failed);
        found.push(item(Tone::Warn, &title, detail, "/callbacks?state=failed", "See them"));
    }
    let (open, receivers) = context.source.open_circuits();
    if open > 0 {
        let detail = format!("{}. Their callbacks wait.", receivers.join(", "));
        let title = format!("Receivers that do not answer: {open}");
        found.push(item(Tone::Warn, &title, &detail, "/callbacks?state=pending", "See their callbacks"));
    }
    let Unanswered { jobs, open, in_doubt } = store.unanswered(MOST_COUNTED).await?;
    let called = "Their providers are called again and again; the operations stay PENDING.";
    let sent = "They are sent again when the engine responds.";
    let repeated = "Each is settled when its merchant repeats it or queries it.";
    for (tone, backlog, longest, what, detail) in [
        (Tone::Warn, jobs, LONG_WAIT, "Provider jobs without a result", called),
        (Tone::Warn, open, LONG_WAIT, "Creates without an answer of the engine", sent),
        (Tone::Plain, in_doubt, Duration::ZERO, "Creates with an unknown outcome", repeated),
    ] {
        if let Some(oldest) = backlog.oldest.filter(|oldest| oldest.plus(longest) < now) {
            let waiting = item(tone, &counted(what, backlog.count), detail, "/operations", "Find an operation");
            found.push(AttentionItem { since: Some(oldest), ..waiting });
        }
    }
    Ok(found)
}

/// Writes how many there are, counted up to [`MOST_COUNTED`].
fn counted(what: &str, count: u64) -> String {
    format!("{what}: {count}{}", if count >= u64::from(MOST_COUNTED) { " or more" } else { "" })
}

/// Returns the plots of the last hour.
fn plots(history: &HistorySnapshot, now: UnixMillis) -> Vec<Plot> {
    let until = history.points.iter().rev().flatten().next().map_or(now, |point| point.at);
    let step_seconds = u32::try_from(POINT_INTERVAL.as_secs()).unwrap_or(u32::MAX);
    let line = |name: &str, value: &dyn Fn(&HistoryPoint) -> Option<f64>| PlotSeries {
        name: name.to_owned(),
        points: history.points.iter().map(|point| point.as_ref().and_then(value)).collect(),
    };
    let plot = |title: &str, subtitle: &str, unit, series| Plot {
        title: title.to_owned(),
        subtitle: subtitle.to_owned(),
        unit,
        until,
        step_seconds,
        series,
    };
    let rate = |count: fn(&HistoryPoint) -> u32| move |point: &HistoryPoint| Some(point.rate(count(point)));
    let requests = vec![
        line("accepted", &rate(|point| point.succeeded)),
        line("refused", &rate(|point| point.refused)),
        line("failed", &rate(|point| point.failed)),
    ];
    let latencies = vec![line("p50", &|point| point.p50), line("p99", &|point| point.p99)];
    let commits = vec![line("commits", &rate(|point| point.commits))];
    let callbacks = vec![
        line("delivered", &rate(|point| point.callbacks_delivered)),
        line("failed attempts", &rate(|point| point.callbacks_failed)),
    ];
    vec![
        plot("Requests", "by their status: below 400, below 500, the others", PlotUnit::PerSecond, requests),
        plot("Latency", "from a request's head to its reply", PlotUnit::Seconds, latencies),
        plot("Commits", "of the store, each of one or more operations", PlotUnit::PerSecond, commits),
        plot("Callbacks", "attempts by their outcome", PlotUnit::PerSecond, callbacks),
    ]
}
