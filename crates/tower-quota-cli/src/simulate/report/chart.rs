//! Charts, as SVG that takes the colours of its page.

use plotters::prelude::{
    ChartBuilder, Color, DrawingAreaErrorKind, IntoDrawingArea, IntoFont, LineSeries, RGBColor,
    SVGBackend,
};

use crate::log::time;

/// A line of a chart: its colour, and points of a time in seconds since 1970 and a count.
pub(super) struct Line<'a> {
    pub(super) name: &'a str,
    pub(super) colour: RGBColor,
    pub(super) points: Vec<(u64, u64)>,
}

const SIZE: (u32, u32) = (960, 260);
/// Stands for the colour of text, which is that of the page.
const TEXT: RGBColor = RGBColor(1, 2, 3);

/// Draws lines over time. Returns an empty text if that fails.
pub(super) fn over_time(lines: &[Line<'_>]) -> String {
    let mut svg = String::new();
    match draw(lines, &mut svg) {
        Ok(()) => svg.replace("#010203", "currentColor"),
        Err(_) => String::new(),
    }
}

fn draw(lines: &[Line<'_>], svg: &mut String) -> Result<(), DrawingAreaErrorKind<std::io::Error>> {
    let points = || lines.iter().flat_map(|line| line.points.iter().copied());
    let from = points().map(|(at, _)| at).min().unwrap_or(0);
    let to = points().map(|(at, _)| at).max().unwrap_or(0).max(from + 1);
    let most = points().map(|(_, count)| count).max().unwrap_or(0).max(1);
    let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    let mut chart = ChartBuilder::on(&area)
        .margin(8)
        .x_label_area_size(24)
        .y_label_area_size(64)
        .build_cartesian_2d(from..to, 0..most + most / 20 + 1)
        .map_err(|_| DrawingAreaErrorKind::LayoutError)?;
    let label = ("sans-serif", 12).into_font().color(&TEXT);
    let is_long = to - from > 2 * 86_400;
    chart
        .configure_mesh()
        .x_labels(8)
        .y_labels(5)
        .light_line_style(TEXT.mix(0.0))
        .bold_line_style(TEXT.mix(0.15))
        .axis_style(TEXT.mix(0.5))
        .label_style(label)
        .x_label_formatter(&|at| {
            let text = time::text(at * 1_000_000);
            if is_long {
                text.get(5..10)
            } else {
                text.get(11..)
            }
            .unwrap_or(&text)
            .to_owned()
        })
        .draw()
        .map_err(|_| DrawingAreaErrorKind::LayoutError)?;
    for line in lines {
        let series = LineSeries::new(line.points.iter().copied(), line.colour.stroke_width(2));
        chart
            .draw_series(series)
            .map_err(|_| DrawingAreaErrorKind::LayoutError)?;
    }
    drop(chart);
    area.present()
        .map_err(|_| DrawingAreaErrorKind::LayoutError)
}
