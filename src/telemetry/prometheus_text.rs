//! Converts metrics from `OpenMetrics` 1.0 to the Prometheus text format 0.0.4, for scrapers that do not accept the
//! newer one.
//!
//! Samples are the same in both formats. In the older one, a family's name has the suffix of its samples (`_total`,
//! `_info`), and there is no `info` type, no unit and no end marker.

/// The media type of the result of [`from_open_metrics`].
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Converts a page from `OpenMetrics`.
#[must_use]
pub fn from_open_metrics(page: &str) -> String {
    let mut out = String::with_capacity(page.len());
    // The name of a family in the older format depends on its type, which follows the help line.
    let mut help = None;
    for line in page.lines() {
        match line.strip_prefix("# ").map(|comment| comment.splitn(3, ' ').collect::<Vec<_>>()).as_deref() {
            Some(["HELP", name, text]) => help = Some((*name, *text)),
            Some(["TYPE", name, kind]) => {
                let (suffix, kind) = match *kind {
                    "counter" => ("_total", "counter"),
                    "info" => ("_info", "gauge"),
                    "unknown" => ("", "untyped"),
                    same => ("", same),
                };
                if let Some((_, text)) = help.take().filter(|(described, _)| described == name) {
                    push(&mut out, &["# HELP ", name, suffix, " ", text]);
                }
                push(&mut out, &["# TYPE ", name, suffix, " ", kind]);
            }
            Some(_) => {}
            None => push(&mut out, &[line]),
        }
    }
    out
}

fn push(out: &mut String, parts: &[&str]) {
    out.extend(parts.iter().copied());
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::time::Duration;

    use super::*;
    use crate::domain::UnixMillis;
    use crate::telemetry::{Metrics, Stage};

    #[test]
    fn families_get_the_names_of_their_samples() {
        let page = "# HELP a_requests Requests.\n# TYPE a_requests counter\na_requests_total{r=\"x y\"} 1\n\
                    # HELP a_build What runs.\n# TYPE a_build info\na_build_info{v=\"1\"} 1\n\
                    # HELP a_time_seconds How long.\n# TYPE a_time_seconds gauge\n# UNIT a_time_seconds seconds\n\
                    a_time_seconds 7\n# EOF\n";
        assert_eq!(
            from_open_metrics(page),
            "# HELP a_requests_total Requests.\n# TYPE a_requests_total counter\na_requests_total{r=\"x y\"} 1\n\
             # HELP a_build_info What runs.\n# TYPE a_build_info gauge\na_build_info{v=\"1\"} 1\n\
             # HELP a_time_seconds How long.\n# TYPE a_time_seconds gauge\na_time_seconds 7\n"
        );
    }

    /// Every sample belongs to a family whose type was declared before, once, and is known to the format.
    #[test]
    fn every_sample_has_a_known_type() {
        let metrics = Metrics::default();
        metrics.started(UnixMillis(1_800_000_000_123));
        metrics.request("payin", 200, Duration::from_millis(3));
        metrics.stage(Stage::Engine, Duration::from_micros(700));
        metrics.refused("signature");
        metrics.connection_opened();
        metrics.store().commit(3, Duration::from_millis(1));
        metrics.reload(true, "00aa");
        let page = from_open_metrics(&metrics.render());
        let mut types = BTreeMap::new();
        let mut described_families = BTreeSet::new();
        let mut samples = 0;
        for line in page.lines() {
            match line.split(' ').collect::<Vec<_>>().as_slice() {
                ["#", "HELP", name, ..] => assert!(described_families.insert(*name), "{line}"),
                ["#", "TYPE", name, kind] => {
                    assert!(["counter", "gauge", "histogram"].contains(kind), "{line}");
                    assert!(types.insert(*name, *kind).is_none() && described_families.contains(name), "{line}");
                }
                ["#", ..] => panic!("{line}"),
                _ => {
                    let (series, value) = line.rsplit_once(' ').unwrap();
                    assert!(value.parse::<f64>().is_ok(), "{line}");
                    let name = series.split('{').next().unwrap();
                    let parts = ["_bucket", "_sum", "_count"].map(|part| name.strip_suffix(part));
                    let histogram = parts.into_iter().flatten().any(|name| types.get(name) == Some(&"histogram"));
                    let kind = types.get(name).copied();
                    assert!(histogram || matches!(kind, Some("counter" | "gauge")), "{line}");
                    assert_eq!(kind == Some("counter"), name.ends_with("_total"), "{line}");
                    samples += 1;
                }
            }
        }
        assert!(samples > 50 && !page.contains("EOF"), "{page}");
    }
}
