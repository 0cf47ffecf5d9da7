//! Draws figures over time as SVG. The drawing has no text: labels and a table of figures stand beside it as HTML, so that
//! they are read at any width and by screen readers.

use std::fmt::{self, Write as _};

use super::format::{count, escaped};
use crate::domain::UnixMillis;
use crate::wire::time::rfc3339;

/// The most lines of a plot; further ones are not drawn.
const MOST_SERIES: usize = 6;

/// The most points of a line; further ones are not drawn.
const MOST_POINTS: usize = 360;

/// The size of the drawing in its own units. The page stretches it.
const WIDTH: u32 = 720;
const HEIGHT: f64 = 160.0;

/// Figures over time.
#[derive(Debug, Clone, Default)]
pub struct Plot {
    /// What the figures are.
    pub title: String,
    /// What they mean, in a few words.
    pub subtitle: String,
    /// Their unit.
    pub unit: PlotUnit,
    /// The time of the last point.
    pub until: UnixMillis,
    /// The time between two points, in seconds.
    pub step_seconds: u32,
    /// The lines, at most 6, the most important first.
    pub series: Vec<PlotSeries>,
}

/// A line of a plot.
#[derive(Debug, Clone, Default)]
pub struct PlotSeries {
    /// Its name.
    pub name: String,
    /// Its points, the last one at the plot's end; at most 360. `None`: no figure is known.
    pub points: Vec<Option<f64>>,
}

/// The unit of figures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PlotUnit {
    /// Events a second.
    #[default]
    PerSecond,
    /// Seconds.
    Seconds,
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

impl PlotSeries {
    /// Returns the points that are drawn, without the oldest where there are too many.
    fn drawn(&self) -> &[Option<f64>] {
        self.points.get(self.points.len().saturating_sub(MOST_POINTS)..).unwrap_or_default()
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
        let missing = MOST_POINTS.saturating_sub(self.drawn().len());
        let mut x = step * u32::try_from(missing).unwrap_or(0);
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

impl Plot {
    /// Draws the plot with its labels and its table. `number` distinguishes the plots of a page.
    pub(super) fn figure(&self, number: usize) -> String {
        let mut out = String::with_capacity(8 << 10);
        // Writing to a string cannot fail.
        let _ = self.write(&mut out, number);
        out
    }

    fn series(&self) -> impl Iterator<Item = (usize, &PlotSeries)> {
        self.series.iter().take(MOST_SERIES).enumerate()
    }

    fn write(&self, out: &mut String, number: usize) -> fmt::Result {
        let (title, subtitle) = (escaped(&self.title), escaped(&self.subtitle));
        write!(out, "<figure class=\"panel plot\"><figcaption><h3>{title}</h3><p>{subtitle}</p></figcaption>")?;
        if self.series.iter().all(|series| series.figures().next().is_none()) {
            let is_new = self.series.iter().all(|series| series.points.is_empty());
            let why = if is_new { "The first figures come within seconds." } else { "No figure in the last hour." };
            return write!(out, "<p class=\"empty\">{why}</p></figure>");
        }
        let top = scale(self.series().map(|(_, series)| series.most()).fold(0.0, f64::max));
        self.write_drawing(out, number, top)?;
        self.write_table(out)?;
        out.write_str("</figure>")
    }

    fn write_drawing(&self, out: &mut String, number: usize, top: f64) -> fmt::Result {
        let (title, description) = (escaped(&self.title), escaped(&self.description()));
        let points = u32::try_from(MOST_POINTS).unwrap_or(WIDTH);
        let step = WIDTH / points;
        write!(
            out,
            "<div class=\"drawing\"><svg viewBox=\"0 -4 {WIDTH} 168\" preserveAspectRatio=\"none\" role=\"img\" \
             aria-labelledby=\"t{number} d{number}\"><title id=\"t{number}\">{title}</title><desc id=\"d{number}\">{description}\
             </desc><path class=\"grid\" d=\"M0 0h{WIDTH}M0 80h{WIDTH}\"/><path class=\"zero\" d=\"M0 160h{WIDTH}\"/>"
        )?;
        for (place, series) in self.series() {
            write!(out, "<path class=\"s{place}\" d=\"")?;
            series.path(out, step, top)?;
            out.write_str("\"/>")?;
        }
        let label = |value| escaped(&self.unit.label(value));
        write!(
            out,
            "</svg><div class=\"y\" aria-hidden=\"true\"><span>{}</span><span>{}</span><span>0</span></div>",
            label(top),
            label(top / 2.0)
        )?;
        let [from, middle, until] = [points - 1, (points - 1) / 2, 0].map(|steps| self.clock(steps));
        write!(
            out,
            "<div class=\"x\" aria-hidden=\"true\"><span>{from}</span><span>{middle}</span><span>{until}</span></div></div>"
        )
    }

    /// Returns the hour and minute of the point so many steps before the last.
    fn clock(&self, steps: u32) -> String {
        let before = i64::from(self.step_seconds).saturating_mul(i64::from(steps)).saturating_mul(1000);
        rfc3339(UnixMillis(self.until.0.saturating_sub(before))).get(11..16).unwrap_or_default().to_owned()
    }

    /// States the figures in a sentence for each line.
    fn description(&self) -> String {
        let mut text = format!("Until {} UTC.", self.clock(0));
        for (_, series) in self.series() {
            let now = series.now().map_or_else(|| "unknown".to_owned(), |now| self.unit.label(now));
            let _ = write!(text, " {}: now {now}, at most {}.", series.name, self.unit.label(series.most()));
        }
        text
    }

    fn write_table(&self, out: &mut String) -> fmt::Result {
        let title = escaped(&self.title);
        write!(
            out,
            "<table class=\"legend\" aria-label=\"{title}, figures\"><thead><tr><th scope=\"col\">Line</th><th scope=\"col\">Now</th>\
             <th scope=\"col\">Highest</th></tr></thead><tbody>"
        )?;
        for (place, series) in self.series() {
            let (name, now) =
                (escaped(&series.name), series.now().map_or_else(|| "–".to_owned(), |now| self.unit.label(now)));
            write!(
                out,
                "<tr><th scope=\"row\"><svg viewBox=\"0 0 24 6\" aria-hidden=\"true\"><path class=\"s{place}\" d=\"M0 3h24\"/></svg>\
                 {name}</th><td>{now}</td><td>{}</td></tr>",
                self.unit.label(series.most())
            )?;
        }
        out.write_str("</tbody></table>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(points: &[Option<f64>]) -> Plot {
        Plot {
            title: "Requests <&\"".into(),
            unit: PlotUnit::PerSecond,
            until: UnixMillis(1_795_522_325_000),
            step_seconds: 10,
            series: vec![PlotSeries { name: "v1 <create>".into(), points: points.to_vec() }],
            ..Plot::default()
        }
    }

    fn path(points: &[Option<f64>]) -> String {
        let mut out = String::new();
        plot(points).series[0].path(&mut out, 2, 10.0).unwrap();
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

    #[test]
    fn a_figure_has_labels_a_description_and_a_zero_line() {
        let figure = plot(&[Some(3.0), Some(12.0), Some(7.0)]).figure(4);
        for part in [
            "<title id=\"t4\">Requests &lt;&amp;&quot;</title>",
            "Until 12:12 UTC. v1 &lt;create&gt;: now 7/s, at most 12/s.",
            "<path class=\"zero\" d=\"M0 160h720\"/>",
            "<span>12/s</span><span>6/s</span><span>0</span>",
            "<span>11:12</span><span>11:42</span><span>12:12</span>",
            "<td>7/s</td><td>12/s</td>",
        ] {
            assert!(figure.contains(part), "{part} in {figure}");
        }
        assert!(plot(&[None]).figure(0).contains("No figure in the last hour."));
        assert!(plot(&[]).figure(0).contains("The first figures come within seconds."));
    }
}
