//! Pictures of figures, as SVG: bars with their ranges, and small panels of lines.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "places in a picture are small numbers"
)]

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

const WIDTH: u32 = 860;
const FONT: &str = "sans-serif";
/// The colours of the kinds of bars.
const COLOURS: [RGBColor; 3] = [RGBColor(11, 114, 133), RGBColor(134, 142, 150), RGBColor(95, 61, 196)];
const QUIET: RGBColor = RGBColor(73, 80, 87);

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// One bar of [`bars`].
#[derive(Debug, Clone)]
pub struct Bar {
    /// The text before it.
    pub label: String,
    /// The text after it: the figures.
    pub note: String,
    /// Its length.
    pub value: f64,
    /// The start and the end of its range.
    pub range: (f64, f64),
    /// The index of its colour, up to 2.
    pub kind: usize,
}

/// Draws horizontal bars. A bar longer than `limit` is cut there; its note has the figure.
#[must_use]
pub fn bars(title: &str, subtitle: &str, bars: &[Bar], reference: Option<(f64, &str)>, limit: f64) -> String {
    const LEFT: i32 = 310;
    const TOP: i32 = 92;
    const STEP: i32 = 32;
    let longest = bars.iter().flat_map(|bar| [bar.value, bar.range.1]).fold(f64::MIN_POSITIVE, f64::max).min(limit);
    let x = |value: f64| LEFT + (350.0 * (value / longest).min(1.0)) as i32;
    let bottom = TOP + STEP * bars.len() as i32;
    draw(bottom as u32 + 20, title, subtitle, |area| {
        for (number, bar) in bars.iter().enumerate() {
            let (middle, end) = (TOP + STEP * number as i32 + STEP / 2, x(bar.value));
            let (from, to) = (x(bar.range.0), x(bar.range.1));
            write(area, &bar.label, (LEFT - 12, middle), 14, HPos::Right, BLACK);
            let corners = [(LEFT, middle - 9), (end, middle + 9)];
            area.draw(&Rectangle::new(corners, COLOURS[bar.kind].filled())).unwrap();
            area.draw(&PathElement::new([(from, middle), (to, middle)], BLACK)).unwrap();
            write(area, &bar.note, (end.max(to) + 10, middle), 13, HPos::Left, BLACK);
        }
        if let Some((value, name)) = reference {
            area.draw(&PathElement::new([(x(value), TOP - 6), (x(value), bottom)], QUIET)).unwrap();
            write(area, name, (x(value), TOP - 14), 12, HPos::Center, QUIET);
        }
    })
}

/// One small picture of [`panels`]: how something grows with a size.
#[derive(Debug, Clone)]
pub struct Panel {
    /// The title.
    pub title: String,
    /// The label of the size axis.
    pub x_name: String,
    /// The sizes, each with its figure and range.
    pub points: Vec<(f64, f64, (f64, f64))>,
    /// The goal: the figure should stay below it.
    pub goal: Option<f64>,
}

/// Draws panels in two columns: sizes on a logarithmic axis, figures on one that begins at zero.
#[must_use]
pub fn panels(title: &str, subtitle: &str, panels: &[Panel]) -> String {
    let rows = panels.len().div_ceil(2);
    draw(80 + 240 * rows as u32, title, subtitle, |area| {
        let fields = area.margin(70, 10, 10, 10).split_evenly((rows, 2));
        for (field, panel) in fields.iter().zip(panels) {
            draw_panel(field, panel);
        }
    })
}

fn draw_panel(field: &Area<'_>, panel: &Panel) {
    let sizes = panel.points.iter().map(|point| point.0);
    let (least, most) = (sizes.clone().fold(f64::INFINITY, f64::min), sizes.fold(1.0, f64::max));
    let highest = panel.points.iter().map(|point| point.2.1).chain(panel.goal).fold(1.6, f64::max) * 1.15;
    let mut chart = ChartBuilder::on(field)
        .caption(&panel.title, (FONT, 14))
        .margin(10)
        .x_label_area_size(40)
        .y_label_area_size(40)
        .build_cartesian_2d((least.min(most / 2.0)..most).log_scale(), 0.0..highest)
        .unwrap();
    chart
        .configure_mesh()
        .x_desc(&panel.x_name)
        .x_labels(5)
        .y_labels(5)
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .draw()
        .unwrap();
    if let Some(goal) = panel.goal {
        chart.draw_series(DashedLineSeries::new([(least, goal), (most, goal)], 5, 4, QUIET.into())).unwrap();
    }
    let points = panel.points.iter();
    chart.draw_series(LineSeries::new(points.clone().map(|(size, figure, _)| (*size, *figure)), COLOURS[0])).unwrap();
    let range = |(size, figure, (least, most)): &_| {
        ErrorBar::new_vertical(*size, *least, *figure, *most, COLOURS[0].filled(), 6)
    };
    chart.draw_series(points.map(range)).unwrap();
}

/// Draws a page with its titles and the drawing of `content`.
fn draw(height: u32, title: &str, subtitle: &str, content: impl FnOnce(&Area<'_>)) -> String {
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
    area.fill(&WHITE).unwrap();
    write(&area, title, (24, 28), 18, HPos::Left, BLACK);
    write(&area, subtitle, (24, 52), 12, HPos::Left, QUIET);
    content(&area);
    area.present().unwrap();
    drop(area);
    svg
}

fn write(area: &Area<'_>, text: &str, at: (i32, i32), size: u32, anchor: HPos, colour: RGBColor) {
    let style = (FONT, size).into_font().color(&colour).pos(Pos::new(anchor, VPos::Center));
    area.draw(&Text::new(text.to_owned(), at, style)).unwrap();
}
