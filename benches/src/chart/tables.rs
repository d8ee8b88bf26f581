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

/// A flood has one contender and many figures: a line for each case, a column for each figure.
pub(super) fn of_rows(report: &Report) -> String {
    let mut table = String::new();
    for row in report.rows().iter().filter(|_| report.suite() == "flood") {
        if table.is_empty() {
            table = head(&[vec!["case".to_owned()], row.figures.keys().cloned().collect()].concat());
        }
        let figures = row.figures.values().map(|figure| written(*figure));
        table += &line(&[vec![format!("`{}`", row.case)], figures.collect()].concat());
    }
    table
}

/// Those of which something is wanted, with that; then, to be unfolded, the others.
pub(super) fn of_ratios(report: &Report) -> String {
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
