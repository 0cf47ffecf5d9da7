//! The overview: what needs attention, and the figures of the last hour.

use std::time::Duration;

use serde::Serialize;

use crate::console::{ConsolePage, Plot, PlotSeries, PlotUnit};
use crate::domain::UnixMillis;
use crate::http::admin::context::{AdminContext, HandlerResult};
use crate::http::admin::rules::RulesInfo;
use crate::store::{AttentionCounts, Backlog, CallbackQuery, CallbackState, StoreError, Unanswered};
use crate::telemetry::{HistoryPoint, HistorySnapshot, POINT_INTERVAL, RefusalCount};

/// How many failed callbacks, and entries of the journal, are counted at most.
const MOST_COUNTED: u16 = 1000;

/// How long a provider job or an open entry may wait before it needs attention.
const LONG_WAIT: Duration = Duration::from_mins(5);

/// How long before the certificate's end it needs attention.
const CERTIFICATE_NOTICE: Duration = Duration::from_hours(14 * 24);

/// How many reasons of refusals are listed.
const REASONS: usize = 10;

/// `/`: what may need attention, and the figures of the last hour.
#[derive(Debug, Default, Serialize)]
pub(super) struct OverviewPage<'a> {
    pub rules: RulesInfo,
    /// The end of the certificate in use, if it is near or past.
    pub certificate_end: Option<UnixMillis>,
    /// Why the queues of the store are not known, if so.
    pub store_error: Option<String>,
    /// Why it is not known how many operations need attention, if only that is so.
    pub attention_error: Option<String>,
    pub failed_callbacks: usize,
    pub unanswered: Unanswered,
    /// How many operations need attention, by the reason; up to [`AttentionCounts::MAX_COUNTED`] of each.
    pub needing_attention: Vec<(&'static str, u64)>,
    /// At how many receivers a circuit is open, and the first of them.
    pub open_circuits: (usize, Vec<String>),
    /// Up to which number failed callbacks and what is unanswered are counted.
    pub counted_at_most: u16,
    /// How often requests were refused, by reason, the most frequent first.
    pub refusals: &'a [RefusalCount],
    pub plots: Vec<Plot<'a>>,
}

/// Answers `GET /`.
pub(in crate::http::admin) async fn show(context: &AdminContext<'_>) -> HandlerResult {
    let (rules, now, history) = (context.source.rules(), context.source.now(), context.source.history());
    let (failed_callbacks, unanswered, store_error) = match queues(context).await {
        Ok((failed, unanswered)) => (failed, unanswered, None),
        Err(error) => (0, Unanswered::default(), Some(error)),
    };
    // Counting may take too long where the rest does not.
    let attention =
        if store_error.is_none() { context.source.attention().await } else { Ok(AttentionCounts::default()) };
    let (AttentionCounts { counts }, attention_error) = match attention {
        Ok(counted) => (counted, None),
        Err(error) => (AttentionCounts::default(), Some(error)),
    };
    let needing = counts.into_iter().filter(|(_, count)| *count > 0).map(|(reason, count)| (reason.as_str(), count));
    let view = OverviewPage {
        certificate_end: rules.certificate.not_after.filter(|end| *end < now.plus(CERTIFICATE_NOTICE)),
        rules,
        open_circuits: if store_error.is_none() { context.source.open_circuits() } else { (0, Vec::new()) },
        store_error,
        attention_error,
        failed_callbacks,
        unanswered,
        needing_attention: needing.collect(),
        counted_at_most: MOST_COUNTED,
        refusals: history.refusals.get(..REASONS).unwrap_or(&history.refusals),
        plots: plots(&history, now),
    };
    context.page(ConsolePage::Overview, &view).await
}

/// Counts the failed callbacks, and what waits for long in the queues of the store.
async fn queues(context: &AdminContext<'_>) -> Result<(usize, Unanswered), String> {
    let worded = |error: StoreError| error.to_string();
    let (store, now) = (context.source.store(), context.source.now());
    let failed = CallbackQuery::of([CallbackState::Failed], MOST_COUNTED.into());
    let failed_callbacks = store.count_callbacks(failed).await.map_err(worded)?;
    let Unanswered { jobs, open, in_doubt } = store.unanswered(MOST_COUNTED).await.map_err(worded)?;
    let waiting = |backlog: Backlog, longest| Backlog {
        oldest: backlog.oldest.filter(|oldest| oldest.plus(longest) < now),
        ..backlog
    };
    let unanswered = Unanswered {
        jobs: waiting(jobs, LONG_WAIT),
        open: waiting(open, LONG_WAIT),
        in_doubt: waiting(in_doubt, Duration::ZERO),
    };
    Ok((failed_callbacks, unanswered))
}

/// Returns the plots of the last hour.
fn plots(history: &HistorySnapshot, now: UnixMillis) -> Vec<Plot<'static>> {
    let until = history.points.iter().rev().flatten().next().map_or(now, |point| point.at);
    let line = |name, value: &dyn Fn(&HistoryPoint) -> Option<f64>| PlotSeries {
        name,
        points: history.points.iter().map(|point| point.as_ref().and_then(value)).collect(),
    };
    let plot = |heading, unit, series: &[_]| Plot::of(heading, unit, (until, POINT_INTERVAL), series);
    let rate = |count: fn(&HistoryPoint) -> u32| move |point: &HistoryPoint| Some(point.rate(count(point)));
    let requests = [
        line("accepted", &rate(|point| point.succeeded)),
        line("refused", &rate(|point| point.refused)),
        line("failed", &rate(|point| point.failed)),
    ];
    let latencies = [line("p50", &|point| point.p50), line("p99", &|point| point.p99)];
    let commits = [line("commits", &rate(|point| point.commits))];
    let callbacks = [
        line("delivered", &rate(|point| point.callbacks_delivered)),
        line("failed attempts", &rate(|point| point.callbacks_failed)),
    ];
    vec![
        plot(("Requests", "by their status: below 400, below 500, the others"), PlotUnit::PerSecond, &requests),
        plot(("Latency", "from a request's head to its reply"), PlotUnit::Seconds, &latencies),
        plot(("Commits", "of the store, each of one or more operations"), PlotUnit::PerSecond, &commits),
        plot(("Callbacks", "attempts by their outcome"), PlotUnit::PerSecond, &callbacks),
    ]
}
