//! Draws figures over time as SVG. The drawing has no text: labels and a table of figures stand beside it as HTML, so that
//! they are read at any width and by screen readers.

use std::fmt::{self, Write as _};
use std::time::Duration;

use serde::Serialize;

use super::format::count;
use crate::domain::UnixMillis;
use crate::wire::time::rfc3339;

/// The most lines of a plot; further ones are not drawn.
const MOST_SERIES: usize = 6;

/// The most points of a line; further ones are not drawn.
const MOST_POINTS: u32 = 360;

/// The size of the drawing in its own units, as the template has it. The page stretches it.
const WIDTH: u32 = 720;
const HEIGHT: f64 = 160.0;

/// A line of a plot.
#[derive(Debug, Clone)]
pub(crate) struct PlotSeries<'a> {
    pub name: &'a str,
    /// Its points, the last one at the plot's end. `None`: no figure is known.
    pub points: Vec<Option<f64>>,
}

/// The unit of figures: events a second, or seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlotUnit {
    PerSecond,
    Seconds,
}

/// A plot of figures over time, as the template draws it.
#[derive(Debug, Serialize)]
pub(crate) struct Plot<'a> {
    /// What the figures are, and what they mean in a few words.
    title: &'a str,
    subtitle: &'a str,
    /// Whether no figure was taken yet.
    is_new: bool,
    /// The top of the scale, and its middle.
    scale: [String; 2],
    /// The hours and minutes of the first point, the middle one and the last.
    clocks: [String; 3],
    /// Empty: no line has a figure.
    lines: Vec<DrawnLine<'a>>,
}

#[derive(Debug, Serialize)]
struct DrawnLine<'a> {
    name: &'a str,
    /// The `d` of its path.
    path: String,
    now: Option<String>,
    most: String,
}

impl PlotUnit {
    /// Writes a figure with its unit.
    fn label(self, value: f64) -> String {
        match self {
            Self::PerSecond => format!("{}/s", number(value)),
            Self::Seconds if value == 0.0 => "0".to_owned(),
            Self::Seconds if value < 0.001 => format!("{} µs", number(value * 1e6)),
            Self::Seconds if value < 1.0 => format!("{} ms", number(value * 1e3)),
            Self::Seconds => format!("{} s", number(value)),
        }
    }
}

/// Writes a figure with two or three digits that count.
fn number(value: f64) -> String {
    let text = match value {
        _ if value >= 1000.0 => return format!("{value:.0}").parse().map_or_else(|_| "many".to_owned(), count),
        _ if value >= 100.0 => format!("{value:.0}"),
        _ if value >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    };
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Returns the end of the scale: the least round figure that is not below any figure, and whose half is round, too.
fn scale(most: f64) -> f64 {
    if most <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(most.log10().floor());
    let steps = [1.0, 1.2, 1.6, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0].map(|step| step * power);
    steps.into_iter().find(|step| *step >= most).unwrap_or(most)
}

impl PlotSeries<'_> {
    /// Returns the points that are drawn, without the oldest where there are too many.
    fn drawn(&self) -> &[Option<f64>] {
        let most = usize::try_from(MOST_POINTS).unwrap_or(usize::MAX);
        self.points.get(self.points.len().saturating_sub(most)..).unwrap_or_default()
    }

    /// Returns the figures that are drawn. What is no finite number is a gap.
    fn figures(&self) -> impl DoubleEndedIterator<Item = f64> {
        self.drawn().iter().copied().flatten().filter(|value| value.is_finite())
    }

    fn most(&self) -> f64 {
        self.figures().fold(0.0, f64::max)
    }

    /// Returns the last figure, if the last point has one.
    fn now(&self) -> Option<f64> {
        self.drawn().last().copied().flatten().filter(|value| value.is_finite())
    }

    /// Writes the line as a path of relative steps. Gaps interrupt it, and level stretches are one step.
    fn path(&self, out: &mut String, step: u32, top: f64) -> fmt::Result {
        let mut x = step * MOST_POINTS.saturating_sub(u32::try_from(self.drawn().len()).unwrap_or(MOST_POINTS));
        let (mut last, mut level): (Option<f64>, u32) = (None, 0);
        for point in self.drawn() {
            let y =
                point.filter(|value| value.is_finite()).map(|value| (HEIGHT - value.max(0.0) / top * HEIGHT).round());
            match (last, y) {
                (Some(before), Some(y)) if (y - before).abs() < 0.5 => level += step,
                (Some(before), Some(y)) => {
                    end_level(out, &mut level)?;
                    write!(out, "l{step} {:.0}", y - before)?;
                }
                (None, Some(y)) => write!(out, "M{x} {y:.0}h0")?,
                (Some(_), None) => end_level(out, &mut level)?,
                (None, None) => {}
            }
            last = y;
            x += step;
        }
        end_level(out, &mut level)
    }
}

/// Writes a level stretch, if there is one.
fn end_level(out: &mut String, level: &mut u32) -> fmt::Result {
    match std::mem::take(level) {
        0 => Ok(()),
        length => write!(out, "h{length}"),
    }
}

impl<'a> Plot<'a> {
    /// Draws lines, the most important first, whose last point has the time `until` and whose points are `step` apart.
    pub(crate) fn of(
        (title, subtitle): (&'a str, &'a str),
        unit: PlotUnit,
        (until, step): (UnixMillis, Duration),
        series: &[PlotSeries<'a>],
    ) -> Self {
        let has_figures = series.iter().any(|series| series.figures().next().is_some());
        let drawn = series.iter().take(if has_figures { MOST_SERIES } else { 0 });
        let top = scale(drawn.clone().map(PlotSeries::most).fold(0.0, f64::max));
        let label = |value| unit.label(value);
        let lines = drawn.map(|series| {
            let mut path = String::new();
            // Writing to a string cannot fail.
            let _ = series.path(&mut path, WIDTH / MOST_POINTS, top);
            DrawnLine { name: series.name, path, now: series.now().map(label), most: label(series.most()) }
        });
        Self {
            title,
            subtitle,
            is_new: series.iter().all(|series| series.points.is_empty()),
            scale: [label(top), label(top / 2.0)],
            clocks: [MOST_POINTS - 1, (MOST_POINTS - 1) / 2, 0].map(|steps| clock(until, step * steps)),
            lines: lines.collect(),
        }
    }
}

/// Returns the hour and minute so long before a time.
fn clock(until: UnixMillis, before: Duration) -> String {
    let before = i64::try_from(before.as_millis()).unwrap_or(i64::MAX);
    rfc3339(UnixMillis(until.0.saturating_sub(before))).get(11..16).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(points: &[Option<f64>]) -> String {
        let mut out = String::new();
        PlotSeries { name: "v1 <create>", points: points.to_vec() }.path(&mut out, 2, 10.0).unwrap();
        out
    }

    #[test]
    fn gaps_interrupt_the_line_and_level_stretches_are_one_step() {
        let some = |values: &[f64]| values.iter().copied().map(Some).collect::<Vec<_>>();
        assert_eq!(path(&some(&[0.0, 10.0])), "M716 160h0l2 -160");
        assert_eq!(path(&some(&[5.0, 5.0, 5.0, 0.0])), "M712 80h0h4l2 80");
        assert_eq!(path(&[Some(5.0), None, Some(5.0), Some(5.0)]), "M712 80h0M716 80h0h2");
        assert_eq!(path(&[None, Some(f64::NAN), Some(1.0)]), "M718 144h0");
        assert_eq!(path(&[]), "");
    }

    #[test]
    fn a_line_has_at_most_as_many_points_as_fit() {
        let points: Vec<_> = (0..500_u16).map(|value| Some(f64::from(value))).collect();
        let path = path(&points);
        assert!(path.starts_with("M0 "), "{path}");
        assert_eq!(path.matches('l').count(), 359);
    }

    #[test]
    fn scales_end_at_round_figures() {
        for (most, end) in [(0.0, 1.0), (0.9, 1.0), (1.0, 1.0), (1.1, 1.2), (2.5, 3.0), (51.0, 60.0), (0.033, 0.04)] {
            assert!((scale(most) - end).abs() < end / 1e9, "{most}: {}", scale(most));
        }
    }

    #[test]
    fn figures_have_their_unit() {
        for (value, text) in [(0.0, "0/s"), (0.256, "0.26/s"), (12.0, "12/s"), (345.6, "346/s"), (12_345.0, "12,345/s")]
        {
            assert_eq!(PlotUnit::PerSecond.label(value), text);
        }
        for (value, text) in [(0.0, "0"), (0.000_25, "250 µs"), (0.0025, "2.5 ms"), (1.25, "1.25 s")] {
            assert_eq!(PlotUnit::Seconds.label(value), text);
        }
    }
}
