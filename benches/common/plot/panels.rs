//! Small pictures side by side: how something grows with a size, each with its goal.

use std::fmt::Write as _;

use super::{Logarithmic, WIDTH, escaped, plain, start};

/// One small picture.
#[derive(Debug, Clone)]
pub struct Panel {
    /// What it shows.
    pub title: String,
    /// What grows, below the axis.
    pub x_name: String,
    /// A size, its figure, and the range of that.
    pub points: Vec<(f64, f64, (f64, f64))>,
    /// The figure is to stay below.
    pub goal: Option<f64>,
}

const COLUMNS: usize = 2;
const LEFT: f64 = 24.0;
const TOP: f64 = 80.0;
const GAP: f64 = 24.0;
/// Of a panel, its axis and its words included.
const TALL: f64 = 210.0;
/// Inside a panel, around its field.
const INSET: (f64, f64, f64, f64) = (40.0, 26.0, 12.0, 44.0);
/// Between the ends of the field and the first and last size, for what is written there.
const MARGIN: f64 = 26.0;

/// Panels in two columns: sizes on a logarithmic axis, figures on one that begins at zero.
#[must_use]
pub fn panels(title: &str, subtitle: &str, panels: &[Panel]) -> String {
    let rows = panels.len().div_ceil(COLUMNS) as f64;
    let wide = (WIDTH - 2.0 * LEFT - GAP) / COLUMNS as f64;
    let mut svg = start(TOP + rows * (TALL + GAP), title, subtitle);
    for (number, panel) in panels.iter().enumerate() {
        let (column, row) = ((number % COLUMNS) as f64, (number / COLUMNS) as f64);
        draw(&mut svg, panel, LEFT + column * (wide + GAP), TOP + row * (TALL + GAP), wide);
    }
    svg.push_str("</svg>\n");
    svg
}

fn draw(svg: &mut String, panel: &Panel, left: f64, top: f64, wide: f64) {
    let (before, above, after, below) = INSET;
    let (from, to, upper, lower) = (left + before, left + wide - after, top + above, top + TALL - below);
    let axis = Logarithmic::over(panel.points.iter().map(|point| point.0));
    let most = panel.points.iter().map(|point| point.2.1).chain(panel.goal).fold(1.6, f64::max) * 1.15;
    let x = |size: f64| from + MARGIN + (to - from - 2.0 * MARGIN) * axis.share(size);
    let y = |figure: f64| lower - (lower - upper) * figure / most;
    let _ =
        writeln!(svg, r#"<text class="figure" x="{left:.1}" y="{:.1}">{}</text>"#, top + 12.0, escaped(&panel.title));
    let (middle, bottom, name) = (f64::midpoint(from, to), lower + 36.0, escaped(&panel.x_name));
    let _ = writeln!(svg, r#"<text class="quiet" x="{middle:.1}" y="{bottom:.1}" text-anchor="middle">{name}</text>"#);
    for tick in super::ticks(most) {
        let (at, text) = (y(tick), plain(tick));
        let _ = write!(svg, r#"<path class="grid" d="M{from:.1} {at:.1}H{to:.1}"/>"#);
        let _ = writeln!(
            svg,
            r#"<text class="quiet" x="{:.1}" y="{:.1}" text-anchor="end">{text}</text>"#,
            from - 6.0,
            at + 4.0
        );
    }
    if let Some(goal) = panel.goal {
        let (at, text) = (y(goal), plain(goal));
        let _ = write!(svg, r#"<path class="reference" d="M{from:.1} {at:.1}H{to:.1}"/>"#);
        let _ = writeln!(
            svg,
            r#"<text class="quiet" x="{to:.1}" y="{:.1}" text-anchor="end">goal: at most {text}</text>"#,
            at - 5.0
        );
    }
    draw_points(svg, panel, &x, &y, lower);
}

fn draw_points(svg: &mut String, panel: &Panel, x: &impl Fn(f64) -> f64, y: &impl Fn(f64) -> f64, lower: f64) {
    let mut path = String::new();
    for (number, (size, figure, _)) in panel.points.iter().enumerate() {
        let _ = write!(path, "{}{:.1} {:.1}", if number == 0 { 'M' } else { 'L' }, x(*size), y(*figure));
    }
    let _ = write!(svg, r#"<path class="stroke0" d="{path}"/>"#);
    for (size, figure, (least, most)) in &panel.points {
        let (at, size) = (x(*size), plain(*size));
        let _ = write!(svg, r#"<path class="range" d="M{at:.1} {:.1}V{:.1}"/>"#, y(*least), y(*most));
        let _ = write!(svg, r#"<circle class="fill0" cx="{at:.1}" cy="{:.1}" r="4"/>"#, y(*figure));
        let (above, below) = (y(*most) - 8.0, lower + 18.0);
        let _ =
            write!(svg, r#"<text class="quiet" x="{at:.1}" y="{above:.1}" text-anchor="middle">{figure:.2}</text>"#);
        let _ = writeln!(svg, r#"<text class="quiet" x="{at:.1}" y="{below:.1}" text-anchor="middle">{size}</text>"#);
    }
}
