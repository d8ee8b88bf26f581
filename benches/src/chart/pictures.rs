//! The drawing of charts, by plotters. They are read at 400 pixels of width too, so letters are large.

use std::error::Error;

use plotters::coord::Shift;
use plotters::element::{Circle, PathElement, Rectangle, Text};
use plotters::prelude::{ChartBuilder, DrawingArea, IntoDrawingArea, IntoLogRange, SVGBackend};
use plotters::series::LineSeries;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontStyle, IntoFont, RGBColor, ShapeStyle, TextStyle};

use super::tables::significant;

pub(super) type Drawn = Result<String, Box<dyn Error>>;
pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

pub(super) const WIDTH: u32 = 720;
const HEIGHT: u32 = 440;
const INK: RGBColor = RGBColor(31, 35, 40);
const PALE: RGBColor = RGBColor(208, 215, 222);
/// A light background, so that the chart is readable on a dark page.
const PAPER: RGBColor = RGBColor(255, 255, 255);
pub(super) const BLUE: RGBColor = RGBColor(0, 114, 178);
pub(super) const RED: RGBColor = RGBColor(213, 94, 0);
pub(super) const GREY: RGBColor = RGBColor(110, 119, 129);

/// The colour of each contender, the same in all charts.
const COLOURS: [(&str, RGBColor); 9] = [
    ("tower-quota", BLUE),
    ("tower-quota, exact", BLUE),
    ("tower-quota, leased", RGBColor(86, 180, 233)),
    ("governor", RED),
    ("tower_governor", RGBColor(230, 159, 0)),
    ("quota", RGBColor(0, 158, 115)),
    ("limitador", RGBColor(204, 121, 167)),
    ("trypema", RGBColor(140, 86, 75)),
    ("redis-rs", GREY),
];

/// Returns the colour of a contender, by its name or the part of the name before a comma.
pub(super) fn colour(contender: &str) -> Result<RGBColor, String> {
    let first = contender.split(',').next();
    let mut colours = COLOURS.iter();
    let exact = colours.clone().find(|(name, _)| *name == contender);
    let found = exact.or_else(|| colours.find(|(name, _)| Some(*name) == first));
    let found = found.map(|(_, colour)| *colour);
    found.ok_or_else(|| format!("there is no colour for {contender}"))
}

/// The figures of one contender, with gaps where it was not measured.
pub(super) struct Series {
    pub(super) name: String,
    pub(super) figures: Vec<Option<f64>>,
}

/// A chart of figures in groups.
pub(super) struct Picture {
    /// What the chart shows, with figures.
    pub(super) title: String,
    /// What the axis counts, and what else a reader must know.
    pub(super) unit: &'static str,
    pub(super) groups: &'static [&'static str],
    pub(super) series: Vec<Series>,
}

pub(super) fn text(size: u32) -> TextStyle<'static> {
    TextStyle::from(("sans-serif", size).into_font()).color(&INK)
}

/// Draws on a light background, under a title and a line below the title.
pub(super) fn drawn(
    height: u32,
    title: &str,
    unit: &str,
    draw: impl FnOnce(&Area<'_>) -> Result<(), Box<dyn Error>>,
) -> Drawn {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        root.fill(&PAPER)?;
        let bold = ("sans-serif", 23, FontStyle::Bold).into_font();
        root.draw(&Text::new(
            title,
            (14, 12),
            TextStyle::from(bold).color(&INK),
        ))?;
        root.draw(&Text::new(unit, (14, 44), text(19)))?;
        draw(&root)?;
        root.present()?;
    }
    Ok(svg)
}

/// Writes names next to their colours, in lines below the unit. Returns the margin above the chart.
pub(super) fn legend<'a>(
    root: &Area<'_>,
    names: impl IntoIterator<Item = (&'a str, RGBColor)>,
) -> Result<i32, Box<dyn Error>> {
    let (mut left, mut top) = (14, 76);
    for (name, colour) in names {
        // Letters of this size are 9 pixels wide at most, on average.
        let width = 42 + name.chars().count() as i32 * 9;
        if left + width > WIDTH as i32 {
            (left, top) = (14, top + 26);
        }
        root.draw(&Circle::new((left + 7, top + 10), 7, colour.filled()))?;
        root.draw(&Text::new(name, (left + 20, top), text(19)))?;
        left += width;
    }
    Ok(top + 42)
}

impl Picture {
    fn max(&self) -> f64 {
        let figures = self.series.iter().flat_map(|series| &series.figures);
        figures.copied().flatten().fold(0.0, f64::max)
    }

    fn is_lowest(&self, series: usize, group: usize) -> bool {
        let figure = |series: &Series| series.figures[group];
        let others = self.series.iter().filter_map(figure);
        figure(&self.series[series]) == others.min_by(f64::total_cmp)
    }

    fn colours(&self) -> Result<Vec<(&str, RGBColor)>, String> {
        let series = self.series.iter();
        series
            .map(|series| Ok((series.name.as_str(), colour(&series.name)?)))
            .collect()
    }

    /// Draws bars from zero, with a line at a bound.
    pub(super) fn bars(&self, bound: Option<f64>) -> Drawn {
        drawn(HEIGHT, &self.title, self.unit, |root| {
            let top = legend(root, self.colours()?)?;
            let groups = 0.0..self.groups.len() as f64;
            let mut chart = ChartBuilder::on(root)
                .margin_top(top)
                .margin_right(14)
                .margin_bottom(4)
                .x_label_area_size(40)
                .y_label_area_size(86)
                .build_cartesian_2d(groups, 0.0..self.max() * 1.1)?;
            chart
                .configure_mesh()
                .disable_x_mesh()
                .disable_x_axis()
                .light_line_style(PAPER)
                .bold_line_style(PALE)
                .axis_style(PALE)
                .y_labels(5)
                .y_label_formatter(&|figure| significant(*figure))
                .y_label_style(text(19))
                .draw()?;
            let width = 1.0 / (self.series.len() as f64 + 0.6);
            for (group, name) in self.groups.iter().enumerate() {
                let middle = group as f64 + 0.5;
                let (x, y) = chart.backend_coord(&(middle, 0.0));
                root.draw(&Text::new(*name, (x, y + 8), centred(19, VPos::Top)))?;
                let measured = self
                    .series
                    .iter()
                    .filter(|series| series.figures[group].is_some());
                let mut left = middle - width * measured.count() as f64 / 2.0;
                for (series, (_, colour)) in self.series.iter().zip(self.colours()?) {
                    let Some(figure) = series.figures[group] else {
                        continue;
                    };
                    let corners = [(left + width * 0.06, 0.0), (left + width * 0.94, figure)];
                    chart.draw_series([Rectangle::new(corners, colour.filled())])?;
                    let (x, y) = chart.backend_coord(&(left + width / 2.0, figure));
                    let label = significant(figure);
                    root.draw(&Text::new(label, (x, y - 3), centred(17, VPos::Bottom)))?;
                    left += width;
                }
            }
            if let Some(bound) = bound {
                let line = [(0.0, bound), (self.groups.len() as f64, bound)];
                chart.draw_series([PathElement::new(line, stroke(RED, 3))])?;
            }
            Ok(())
        })
    }

    /// Draws dots over a logarithmic axis, in a line for each contender where the groups are steps.
    pub(super) fn dots(&self, are_steps: bool) -> Drawn {
        let figures = self.series.iter().flat_map(|series| &series.figures);
        let min = figures.copied().flatten().fold(f64::INFINITY, f64::min);
        drawn(HEIGHT, &self.title, self.unit, |root| {
            let top = legend(root, self.colours()?)?;
            let groups = 0.0..self.groups.len() as f64;
            let range = (min / 1.5..self.max() * 1.5).log_scale();
            let mut chart = ChartBuilder::on(root)
                .margin_top(top)
                .margin_right(14)
                .margin_bottom(4)
                .x_label_area_size(40)
                .y_label_area_size(86)
                .build_cartesian_2d(groups, range)?;
            chart
                .configure_mesh()
                .disable_x_mesh()
                .disable_x_axis()
                .light_line_style(PAPER)
                .bold_line_style(PALE)
                .axis_style(PALE)
                .y_labels(4)
                .y_label_formatter(&|figure| significant(*figure))
                .y_label_style(text(19))
                .draw()?;
            for (group, name) in self.groups.iter().enumerate() {
                let (x, y) = chart.backend_coord(&(group as f64 + 0.5, min / 1.5));
                root.draw(&Text::new(*name, (x, y + 8), centred(19, VPos::Top)))?;
            }
            // Where lines do not join the dots, the contenders of a group stand next to each other.
            let apart = if are_steps { 0.0 } else { 0.27 };
            let middle = (self.series.len() as f64 - 1.0) / 2.0;
            for (number, (_, colour)) in self.colours()?.into_iter().enumerate() {
                let beside = 0.5 + apart * (number as f64 - middle);
                let figures = self.series[number].figures.iter().enumerate();
                let points: Vec<_> = figures
                    .filter_map(|(group, figure)| Some((group, (*figure)?)))
                    .collect();
                let places = points
                    .iter()
                    .map(|(group, figure)| (*group as f64 + beside, *figure));
                if are_steps {
                    chart.draw_series(LineSeries::new(places.clone(), stroke(colour, 3)))?;
                }
                chart.draw_series(
                    places
                        .clone()
                        .map(|place| Circle::new(place, 7, colour.filled())),
                )?;
                for ((group, figure), place) in points.iter().zip(places) {
                    let (x, y) = chart.backend_coord(&place);
                    let label = significant(*figure);
                    // The lowest dot of a line chart has its label below, so that labels do not meet.
                    let (y, anchor) = if are_steps && self.is_lowest(number, *group) {
                        (y + 10, VPos::Top)
                    } else {
                        (y - 10, VPos::Bottom)
                    };
                    root.draw(&Text::new(label, (x, y), centred(17, anchor)))?;
                }
            }
            Ok(())
        })
    }
}

pub(super) fn stroke(colour: RGBColor, width: u32) -> ShapeStyle {
    colour.stroke_width(width)
}

/// Text above or below a point.
pub(super) fn centred(size: u32, vertically: VPos) -> TextStyle<'static> {
    text(size).pos(Pos::new(HPos::Center, vertically))
}

/// Text to the right of a point.
pub(super) fn beside(size: u32) -> TextStyle<'static> {
    text(size).pos(Pos::new(HPos::Left, VPos::Center))
}

#[cfg(test)]
mod tests {
    use super::{Picture, Series, colour};

    #[test]
    fn contender_has_one_colour_or_error() {
        let script = colour("redis-rs, a script per limit");
        assert_eq!(script, colour("redis-rs, INCR and EXPIRE"));
        assert_ne!(colour("tower-quota, leased"), colour("tower-quota, exact"));
        assert!(colour("another limiter").is_err());
    }

    #[test]
    fn chart_shows_figures_and_gaps() {
        let series = |name: &str, figures: [Option<f64>; 2]| Series {
            name: name.to_owned(),
            figures: figures.into(),
        };
        let picture = Picture {
            title: "A check takes 30 ns".to_owned(),
            unit: "nanoseconds",
            groups: &["hot", "new"],
            series: vec![
                series("tower-quota", [Some(30.0), Some(1_234.0)]),
                series("governor", [Some(25.0), None]),
            ],
        };
        for drawn in [picture.bars(None), picture.dots(false), picture.dots(true)] {
            let drawn = drawn.unwrap();
            for text in ["A check takes 30 ns", "governor", "hot", "1234", "25"] {
                assert!(drawn.contains(&format!("\n{text}\n")), "{text}: {drawn}");
            }
        }
    }
}
