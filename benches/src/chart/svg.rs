//! Bars in groups, as SVG. The same figures give the same bytes.

use super::grid::{Grid, Series};
use super::numbers::short;
use super::scale::Scale;

pub(super) const WIDTH: f64 = 880.0;
/// Space at the edges.
pub(super) const MARGIN: f64 = 24.0;
/// The left end of the bars, to the right of the axis' figures.
const LEFT: f64 = 72.0;
/// Height of the highest bar.
const HEIGHT: f64 = 240.0;
/// Height of a line of text.
pub(super) const LINE: f64 = 20.0;

/// tower-quota is blue in every chart; the others take turns. Most colours are Okabe's and Ito's ("Color Universal
/// Design", 2008): colour-blind readers can distinguish them, on white and on black.
const OURS: [&str; 3] = ["#0072b2", "#56b4e9", "#8fa8d8"];
const THEIRS: [&str; 5] = ["#e69f00", "#009e73", "#cc79a7", "#d55e00", "#8c959f"];

/// The reader's light or dark mode chooses background and text together.
pub(super) const STYLE: &str = "<style>\
text{font:12px system-ui,sans-serif;fill:#59636e}.title{font-size:16px;font-weight:600;fill:#1f2328}\
.value{font-size:10px;text-anchor:middle}.tick{text-anchor:end}.group{text-anchor:middle;fill:#1f2328}\
.background{fill:#fff;stroke:#d1d9e0}.line{stroke:#d1d9e0}\
@media(prefers-color-scheme:dark){text{fill:#9198a1}.title,.group{fill:#f0f6fc}\
.background{fill:#0d1117;stroke:#3d444d}.line{stroke:#3d444d}}</style>\n";

/// Draws the chart of a grid, with the conditions at its foot.
pub(super) fn drawn(grid: &Grid, conditions: &str) -> String {
    let scale = Scale::of(grid.figures());
    let kind = if scale.is_logarithmic() {
        ", each line ten times the one below"
    } else {
        ""
    };
    let (legend, top) = legend(grid, MARGIN + 3.0 * LINE);
    let foot = top + HEIGHT + 2.0 * LINE;
    let height = foot + MARGIN;
    let title = escaped(grid.picture.title);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{title}\">\n"
    );
    svg += STYLE;
    svg += &format!(
        "<rect class=\"background\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"6\"/>\n",
        WIDTH - 1.0,
        height - 1.0
    );
    svg += &text("title", MARGIN, MARGIN + 10.0, &title);
    svg += &text(
        "unit",
        MARGIN,
        MARGIN + 10.0 + LINE,
        &format!("{}{kind}", escaped(grid.picture.unit)),
    );
    svg += &legend;
    svg += &axis(&scale, top);
    svg += &bars(grid, &scale, top);
    if let Some(bound) = grid.bound {
        let y = top + HEIGHT * (1.0 - scale.height(bound));
        let right = WIDTH - MARGIN;
        svg += &format!(
            "<line stroke=\"#cf222e\" stroke-width=\"2\" stroke-dasharray=\"6 4\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\n"
        );
    }
    svg += &text("conditions", MARGIN, foot + 6.0, &escaped(conditions));
    svg + "</svg>\n"
}

/// Draws names beside their colours. Returns the lower end too.
fn legend(grid: &Grid, top: f64) -> (String, f64) {
    let (mut x, mut y) = (MARGIN, top);
    let mut svg = String::new();
    for (series, colour) in grid.series.iter().zip(colours(grid)) {
        // Letters of this size are 7 wide at most, on average.
        let width = 18.0 + series.name.chars().count() as f64 * 7.0 + 12.0;
        if x + width > WIDTH - MARGIN {
            (x, y) = (MARGIN, y + LINE);
        }
        svg += &format!(
            "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"12\" height=\"12\" fill=\"{colour}\"/>\n",
            y - 10.0
        );
        svg += &text("name", x + 18.0, y, &escaped(&series.name));
        x += width;
    }
    (svg, y + 1.5 * LINE)
}

/// Returns a colour for each series.
fn colours(grid: &Grid) -> Vec<&'static str> {
    let (mut ours, mut theirs) = (OURS.iter().cycle(), THEIRS.iter().cycle());
    let colour = |series: &Series| {
        if series.name.starts_with("tower-quota") {
            ours.next()
        } else {
            theirs.next()
        }
    };
    grid.series.iter().filter_map(colour).copied().collect()
}

/// Draws a line and a figure for each tick.
fn axis(scale: &Scale, top: f64) -> String {
    let mut svg = String::new();
    for tick in scale.ticks() {
        let y = top + HEIGHT * (1.0 - scale.height(tick));
        let right = WIDTH - MARGIN;
        svg += &format!(
            "<line class=\"line\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\n"
        );
        svg += &text("tick", LEFT - 8.0, y + 4.0, &short(tick));
    }
    svg
}

/// Draws the bars. Every group has room for a bar of each colour and one more as a gap.
fn bars(grid: &Grid, scale: &Scale, top: f64) -> String {
    let bottom = top + HEIGHT;
    let group_width = (WIDTH - MARGIN - LEFT) / grid.groups.len() as f64;
    let width = (group_width / (grid.series.len() + 1) as f64).min(48.0);
    let mut svg = String::new();
    for (number, group) in grid.groups.iter().enumerate() {
        let middle = LEFT + group_width * (number as f64 + 0.5);
        let left = middle - width * grid.series.len() as f64 / 2.0;
        for (position, (series, colour)) in grid.series.iter().zip(colours(grid)).enumerate() {
            let Some(figure) = series.figures[number] else {
                continue;
            };
            let (x, height) = (
                left + width * position as f64,
                HEIGHT * scale.height(figure),
            );
            let y = bottom - height;
            svg += &format!(
                "<rect x=\"{:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{height:.1}\" fill=\"{colour}\"/>\n",
                x + 1.0,
                width - 2.0
            );
            svg += &text("value", x + width / 2.0, y - 4.0, &short(figure));
        }
        svg += &text("group", middle, bottom + 16.0, &escaped(group));
    }
    svg
}

pub(super) fn text(class: &str, x: f64, y: f64, words: &str) -> String {
    format!("<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{words}</text>\n")
}

fn escaped(words: &str) -> String {
    words
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('"', "&quot;")
}
