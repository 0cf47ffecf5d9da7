//! Pictures as SVG, written by hand: bars with their ranges, and lines on logarithmic axes. They carry their own
//! background, light or dark as their reader wishes, so that they can be read on any page.

pub mod panels;

use std::fmt::Write as _;

const WIDTH: f64 = 860.0;
const FONT: &str = "ui-sans-serif,system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif";

/// Colours of up to six kinds: as light and dark readers see them.
const COLOURS: [(&str, &str); 6] = [
    ("#0b7285", "#3bc9db"),
    ("#868e96", "#909296"),
    ("#5f3dc4", "#9775fa"),
    ("#e8590c", "#ff922b"),
    ("#2b8a3e", "#69db7c"),
    ("#c2255c", "#f783ac"),
];

/// One bar of [`bars`].
#[derive(Debug, Clone)]
pub struct Bar {
    /// Stands before it.
    pub label: String,
    /// Stands after it: the figures in words.
    pub note: String,
    /// Its length.
    pub value: f64,
    /// Where its range begins and ends.
    pub range: (f64, f64),
    /// Which colour it has, up to 5.
    pub kind: usize,
}

/// Horizontal bars. A bar longer than `limit` is cut there, and shows that it is.
#[must_use]
pub fn bars(title: &str, subtitle: &str, bars: &[Bar], reference: Option<(f64, &str)>, limit: f64) -> String {
    const LEFT: f64 = 310.0;
    const RIGHT: f64 = 200.0;
    const TOP: f64 = 92.0;
    const STEP: f64 = 32.0;
    let most =
        bars.iter().flat_map(|bar| [bar.value, bar.range.1]).fold(0.0, f64::max).min(limit).max(f64::MIN_POSITIVE);
    let wide = WIDTH - LEFT - RIGHT;
    let x = |value: f64| LEFT + wide * (value / most).min(1.0);
    let bottom = TOP + STEP * bars.len() as f64;
    let mut svg = start(bottom + 46.0, title, subtitle);
    for tick in ticks(most) {
        let (at, text) = (x(tick), plain(tick));
        let _ = write!(svg, r#"<path class="grid" d="M{at:.1} {TOP}V{bottom:.1}"/>"#);
        let _ = writeln!(
            svg,
            r#"<text class="quiet" x="{at:.1}" y="{:.1}" text-anchor="middle">{text}</text>"#,
            bottom + 20.0
        );
    }
    if let Some((value, name)) = reference {
        let at = x(value);
        let _ = write!(svg, r#"<path class="reference" d="M{at:.1} {:.1}V{bottom:.1}"/>"#, TOP - 6.0);
        let _ = writeln!(
            svg,
            r#"<text class="quiet" x="{at:.1}" y="{:.1}" text-anchor="middle">{}</text>"#,
            TOP - 12.0,
            escaped(name)
        );
    }
    for (number, bar) in bars.iter().enumerate() {
        let middle = TOP + STEP * (number as f64 + 0.5);
        draw_bar(&mut svg, bar, &x, middle, LEFT);
        if bar.value > most {
            let _ =
                write!(svg, r#"<path class="cut" d="M{:.1} {:.1}l8 -22h6l-8 22z"/>"#, x(most) - 26.0, middle + 11.0);
        }
    }
    svg.push_str("</svg>\n");
    svg
}

fn draw_bar(svg: &mut String, bar: &Bar, x: &impl Fn(f64) -> f64, middle: f64, left: f64) {
    let (end, kind) = (x(bar.value), bar.kind % COLOURS.len());
    let _ = write!(
        svg,
        r#"<text x="{:.1}" y="{:.1}" text-anchor="end">{}</text>"#,
        left - 12.0,
        middle + 5.0,
        escaped(&bar.label)
    );
    let _ = write!(
        svg,
        r#"<rect class="fill{kind}" x="{left}" y="{:.1}" width="{:.1}" height="18" rx="3"/>"#,
        middle - 9.0,
        (end - left).max(1.0)
    );
    let (from, to) = (x(bar.range.0), x(bar.range.1));
    if to - from > 0.5 {
        let (upper, lower) = (middle - 5.0, middle + 5.0);
        let _ = write!(
            svg,
            r#"<path class="range" d="M{from:.1} {middle:.1}H{to:.1}M{from:.1} {upper:.1}V{lower:.1}M{to:.1} {upper:.1}V{lower:.1}"/>"#
        );
    }
    let after = end.max(to) + 10.0;
    let _ =
        writeln!(svg, r#"<text class="figure" x="{after:.1}" y="{:.1}">{}</text>"#, middle + 5.0, escaped(&bar.note));
}

/// One line of [`lines`].
#[derive(Debug, Clone)]
pub struct Line {
    /// Its name, in the legend.
    pub label: String,
    /// Points from left to right, above zero.
    pub points: Vec<(f64, f64)>,
}

/// Lines over logarithmic axes, each named.
#[must_use]
pub fn lines(title: &str, subtitle: &str, x_name: &str, y_name: &str, lines: &[Line]) -> String {
    const LEFT: f64 = 84.0;
    const RIGHT: f64 = 24.0;
    const TOP: f64 = 84.0;
    const TALL: f64 = 330.0;
    let (wide, bottom) = (WIDTH - LEFT - RIGHT, TOP + TALL);
    let points = || lines.iter().flat_map(|line| &line.points).filter(|(x, y)| *x > 0.0 && *y > 0.0);
    let (x_axis, y_axis) =
        (Logarithmic::over(points().map(|point| point.0)), Logarithmic::over(points().map(|point| point.1)));
    let x = |value: f64| LEFT + wide * x_axis.share(value);
    let y = |value: f64| bottom - TALL * y_axis.share(value);
    let legend = 22.0 * lines.len().div_ceil(2) as f64;
    let mut svg = start(bottom + 66.0 + legend, title, subtitle);
    for value in x_axis.ticks() {
        let (at, text) = (x(value), plain(value));
        let _ = write!(svg, r#"<path class="grid" d="M{at:.1} {TOP}V{bottom}"/>"#);
        let _ = writeln!(
            svg,
            r#"<text class="quiet" x="{at:.1}" y="{:.1}" text-anchor="middle">{text}</text>"#,
            bottom + 20.0
        );
    }
    for value in y_axis.ticks() {
        let (at, text) = (y(value), plain(value));
        let _ = write!(svg, r#"<path class="grid" d="M{LEFT} {at:.1}H{:.1}"/>"#, LEFT + wide);
        let _ = writeln!(
            svg,
            r#"<text class="quiet" x="{:.1}" y="{:.1}" text-anchor="end">{text}</text>"#,
            LEFT - 10.0,
            at + 4.0
        );
    }
    let _ = write!(
        svg,
        r#"<text class="quiet" x="{:.1}" y="{:.1}" text-anchor="middle">{}</text>"#,
        LEFT + wide / 2.0,
        bottom + 42.0,
        escaped(x_name)
    );
    let _ = writeln!(svg, r#"<text class="quiet" x="{LEFT}" y="{:.1}">{}</text>"#, TOP - 12.0, escaped(y_name));
    for (number, line) in lines.iter().enumerate() {
        draw_line(&mut svg, line, number % COLOURS.len(), &x, &y);
        let (column, row) = ((number % 2) as f64, (number / 2) as f64);
        let (at, down) = (LEFT + column * wide / 2.0, bottom + 68.0 + 22.0 * row);
        let _ = write!(svg, r#"<path class="stroke{}" d="M{at:.1} {down:.1}h24"/>"#, number % COLOURS.len());
        let _ = writeln!(svg, r#"<text x="{:.1}" y="{:.1}">{}</text>"#, at + 32.0, down + 5.0, escaped(&line.label));
    }
    svg.push_str("</svg>\n");
    svg
}

fn draw_line(svg: &mut String, line: &Line, kind: usize, x: &impl Fn(f64) -> f64, y: &impl Fn(f64) -> f64) {
    let points = || line.points.iter().filter(|(x, y)| *x > 0.0 && *y > 0.0);
    let mut path = String::new();
    for (number, point) in points().enumerate() {
        let _ = write!(path, "{}{:.1} {:.1}", if number == 0 { 'M' } else { 'L' }, x(point.0), y(point.1));
    }
    let _ = write!(svg, r#"<path class="stroke{kind}" d="{path}"/>"#);
    for point in points() {
        let _ = write!(svg, r#"<circle class="fill{kind}" cx="{:.1}" cy="{:.1}" r="4"/>"#, x(point.0), y(point.1));
    }
    svg.push('\n');
}

/// An axis from one power of ten, or its half or fifth, to another.
struct Logarithmic {
    from: f64,
    to: f64,
}

/// The steps inside a power of ten.
const STEPS: [f64; 3] = [1.0, 2.0, 5.0];

impl Logarithmic {
    fn over(values: impl Iterator<Item = f64> + Clone) -> Self {
        let least = values.clone().fold(f64::INFINITY, f64::min);
        let most = values.fold(0.0, f64::max);
        if !least.is_finite() {
            return Self { from: 1.0, to: 10.0 };
        }
        let below = steps(least.log10().floor()).rev().find(|step| *step <= least * 1.000_001);
        let above =
            steps(most.log10().floor()).chain(steps(most.log10().floor() + 1.0)).find(|step| *step >= most * 0.999_999);
        let (from, to) = (below.unwrap_or(least), above.unwrap_or(most));
        // A flat line needs room above and below it.
        if from < to { Self { from, to } } else { Self { from: from / 2.0, to: to * 2.0 } }
    }

    fn share(&self, value: f64) -> f64 {
        (value / self.from).ln() / (self.to / self.from).ln()
    }

    /// Every power of ten where there are many, the steps inside them where there are few.
    fn ticks(&self) -> Vec<f64> {
        let few = (self.to / self.from).log10() <= 2.5;
        let mut exponent = self.from.log10().floor();
        let mut ticks = Vec::new();
        while 10_f64.powf(exponent) <= self.to * 1.000_001 {
            let all = steps(exponent).take(if few { STEPS.len() } else { 1 });
            ticks.extend(all.filter(|tick| *tick >= self.from * 0.999_999 && *tick <= self.to * 1.000_001));
            exponent += 1.0;
        }
        ticks
    }
}

fn steps(exponent: f64) -> impl DoubleEndedIterator<Item = f64> + ExactSizeIterator {
    STEPS.into_iter().map(move |step| step * 10_f64.powf(exponent))
}

/// Round figures from 0 up to `most`.
fn ticks(most: f64) -> Vec<f64> {
    let rough = most / 5.0;
    let step = steps(rough.log10().floor()).find(|step| *step >= rough).unwrap_or(10_f64.powf(rough.log10().ceil()));
    let mut ticks = Vec::new();
    while (ticks.len() as f64) * step <= most * 1.000_001 {
        ticks.push(ticks.len() as f64 * step);
    }
    ticks
}

/// A figure on an axis: `0.5`, `20`, `10k`, `5M`.
fn plain(value: f64) -> String {
    let (scaled, unit) = match value {
        v if v >= 1e6 => (v / 1e6, "M"),
        v if v >= 1e4 => (v / 1e3, "k"),
        v => (v, ""),
    };
    let text = format!("{scaled:.3}");
    format!("{}{unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

fn start(height: f64, title: &str, subtitle: &str) -> String {
    let (title, subtitle) = (escaped(title), escaped(subtitle));
    let mut light = String::new();
    let mut dark = String::new();
    for (number, (by_day, by_night)) in COLOURS.iter().enumerate() {
        let _ = write!(light, ".fill{number}{{fill:{by_day}}}.stroke{number}{{stroke:{by_day}}}");
        let _ = write!(dark, ".fill{number}{{fill:{by_night}}}.stroke{number}{{stroke:{by_night}}}");
    }
    format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" font-family="{FONT}" font-size="14">
<title>{title}</title>
<style>
text{{fill:#212529}}.quiet{{fill:#495057;font-size:12px}}.title{{font-size:18px;font-weight:600}}.figure{{font-size:13px;paint-order:stroke;stroke:#fff;stroke-width:4px}}
.page{{fill:#fff;stroke:#dee2e6}}.grid{{stroke:#e9ecef;fill:none}}.range{{stroke:#212529;stroke-width:1.5;fill:none}}.cut{{fill:#fff}}
.reference{{stroke:#495057;stroke-width:1.5;stroke-dasharray:5 4;fill:none}}path[class^=stroke]{{fill:none;stroke-width:2.5}}{light}
@media(prefers-color-scheme:dark){{text{{fill:#e9ecef}}.quiet{{fill:#adb5bd}}.page{{fill:#16181c;stroke:#343a40}}.grid{{stroke:#2b2f36}}
.range{{stroke:#f8f9fa}}.cut{{fill:#16181c}}.figure{{stroke:#16181c}}.reference{{stroke:#adb5bd}}{dark}}}
</style>
<rect class="page" x="0.5" y="0.5" width="{}" height="{}" rx="8"/>
<text class="title" x="24" y="34">{title}</text><text class="quiet" x="24" y="56">{subtitle}</text>
"#,
        WIDTH - 1.0,
        height - 1.0
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
