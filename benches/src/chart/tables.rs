//! The same figures as Markdown.

use super::grid::Grid;
use super::numbers::written;
use crate::report::Report;
use crate::wanted::wanted;

/// The figures of a chart: a line for each colour, a column for each group.
pub(super) fn of_grid(grid: &Grid) -> String {
    let mut table = head(&[&[grid.picture.unit.to_owned()], &*grid.groups].concat());
    for series in &grid.series {
        let figures = series.figures.iter().map(|figure| figure.map(written).unwrap_or_default());
        table += &line(&[vec![series.name.clone()], figures.collect()].concat());
    }
    table
}

/// Every case with all of its figures.
pub(super) fn of_rows(report: &Report) -> String {
    let Some(first) = report.rows().first() else { return String::new() };
    let figures: Vec<_> = first.figures.keys().cloned().collect();
    let mut table = head(&[&["case".to_owned()], &*figures].concat());
    for row in report.rows() {
        let cells = figures.iter().map(|figure| row.figures.get(figure).copied().map(written).unwrap_or_default());
        table += &line(&[vec![format!("`{}`", row.case)], cells.collect()].concat());
    }
    table
}

/// Those of which something is wanted, with that; then, to be unfolded, the others.
pub(super) fn of_ratios(report: &Report) -> String {
    if report.ratios().next().is_none() {
        return String::new();
    }
    let (mut held, mut others) = (head(&["ratio", "value", "wanted"]), head(&["ratio", "value"]));
    for (case, value) in report.ratios() {
        let (case, value) = (format!("`{case}`"), format!("{value:.2}"));
        match wanted(case.trim_matches('`')) {
            Some(wanted) => held += &line(&[case, value, wanted.to_string()]),
            None => others += &line(&[case, value]),
        }
    }
    format!("{held}\n<details><summary>Further ratios</summary>\n{others}\n</details>\n")
}

fn head<S: AsRef<str>>(columns: &[S]) -> String {
    let rule: Vec<_> = (0..columns.len()).map(|column| if column == 0 { "---" } else { "---:" }).collect();
    format!("\n{}{}", line(columns), line(&rule))
}

fn line<S: AsRef<str>>(cells: &[S]) -> String {
    format!("| {} |\n", cells.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(" | "))
}
