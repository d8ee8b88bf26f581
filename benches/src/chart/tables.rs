//! The same figures as Markdown.

use super::grid::Grid;
use super::numbers::written;
use crate::report::{Report, Row};
use crate::wanted::wanted;

/// Writes the figures of a chart: a line for each colour, a column for each group.
pub(super) fn of_grid(grid: &Grid) -> String {
    let mut table = head(&[&[grid.picture.unit.to_owned()], &*grid.groups].concat());
    for series in &grid.series {
        let figures = series
            .figures
            .iter()
            .map(|figure| figure.map(written).unwrap_or_default());
        table += &line(&[vec![series.name.clone()], figures.collect()].concat());
    }
    table
}

/// Writes every case with all of its figures.
pub(super) fn of_rows(report: &Report) -> String {
    of_cases(report.rows())
}

/// Writes these cases with all of their figures. Cases with other kinds of figures go into another table.
pub(super) fn of_cases<'a>(rows: impl IntoIterator<Item = &'a Row>) -> String {
    let (mut tables, mut columns) = (String::new(), Vec::new());
    for row in rows {
        let is_new = !row.figures.keys().all(|figure| columns.contains(figure));
        if is_new {
            columns = row.figures.keys().cloned().collect();
            tables += &head(&[&["case".to_owned(), "contender".to_owned()], &*columns].concat());
        }
        let cells = columns.iter().map(|figure| {
            row.figures
                .get(figure)
                .copied()
                .map(written)
                .unwrap_or_default()
        });
        tables += &line(
            &[
                vec![format!("`{}`", row.case), row.contender.clone()],
                cells.collect(),
            ]
            .concat(),
        );
    }
    tables
}

/// Writes every ratio with its target.
pub(super) fn of_ratios(report: &Report) -> String {
    let mut table = head(&["ratio", "value", "wanted"]);
    for (case, value) in report.ratios() {
        let wanted = wanted(case)
            .map(|wanted| wanted.to_string())
            .unwrap_or_default();
        table += &line(&[format!("`{case}`"), format!("{value:.2}"), wanted]);
    }
    if report.ratios().next().is_some() {
        table
    } else {
        String::new()
    }
}

pub(super) fn head<S: AsRef<str>>(columns: &[S]) -> String {
    let is_text = |column: usize| column == 0 || columns[column].as_ref() == "contender";
    let rule: Vec<_> = (0..columns.len())
        .map(|column| if is_text(column) { "---" } else { "---:" })
        .collect();
    format!("\n{}{}", line(columns), line(&rule))
}

pub(super) fn line<S: AsRef<str>>(cells: &[S]) -> String {
    format!(
        "| {} |\n",
        cells
            .iter()
            .map(AsRef::as_ref)
            .collect::<Vec<_>>()
            .join(" | ")
    )
}
