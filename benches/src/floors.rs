//! The bounds of figures. A run beyond a bound fails, unless it is quick.

use crate::Outcome;
use crate::report::Report;

const BOUNDS: &str = include_str!("../floors.txt");

/// Fails if a figure of these tables is beyond its bound.
pub(crate) fn check(report: &Report) -> Outcome {
    let mut missed = Vec::new();
    for line in lines() {
        let bound = Bound::parse(line)?;
        if let Some(beyond) = bound.beyond(report)? {
            missed.push(beyond);
        }
    }
    if missed.is_empty() {
        Ok(())
    } else {
        Err(missed.join("\n").into())
    }
}

fn lines() -> impl Iterator<Item = &'static str> {
    BOUNDS
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// The lowest or the highest value of a ratio or a figure.
struct Bound<'a> {
    is_most: bool,
    number: f64,
    head: &'a str,
    row: &'a str,
    /// The column of a figure. A ratio has no column.
    column: Option<&'a str>,
}

impl<'a> Bound<'a> {
    /// Reads `0.5 | TABLE | ROW` or `most 9 | TABLE | ROW | COLUMN`.
    fn parse(line: &'a str) -> Outcome<Self> {
        let parts: Vec<&str> = line.split('|').map(str::trim).collect();
        let (number, head, row, column) = match parts[..] {
            [number, head, row] => (number, head, row, None),
            [number, head, row, column] => (number, head, row, Some(column)),
            _ => return Err(format!("{line:?} is no bound: write `0.5 | TABLE | ROW`").into()),
        };
        let most = number.strip_prefix("most ");
        Ok(Self {
            is_most: most.is_some(),
            number: most.unwrap_or(number).parse()?,
            head,
            row,
            column,
        })
    }

    /// Returns what is wrong if the report has the table, and its figure is beyond the bound.
    fn beyond(&self, report: &Report) -> Outcome<Option<String>> {
        let (head, row, number) = (self.head, self.row, self.number);
        let Some(table) = report.table(head) else {
            return Ok(None);
        };
        let measured = match self.column {
            Some(column) => table.figure(row, column),
            None => table.ratio_of(row),
        };
        let measured = measured
            .ok_or_else(|| format!("no row of {head:?} is {row:?}, or it has no such figure"))?;
        let is_beyond = if self.is_most {
            measured > number
        } else {
            measured < number
        };
        let side = if self.is_most { "above" } else { "below" };
        let place = [Some(head), Some(row), self.column];
        let place: Vec<&str> = place.into_iter().flatten().collect();
        Ok(is_beyond.then(|| format!("{}: {measured:.2} is {side} {number}", place.join(", "))))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::{Bound, Report, check, lines};
    use crate::report::Table;

    #[test]
    fn published_figures_keep_their_bounds() {
        let figures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/figures");
        let mut bounded = Vec::new();
        for suite in fs::read_dir(figures).unwrap() {
            let report = Report::read(&suite.unwrap().path()).unwrap();
            check(&report).unwrap();
            bounded.extend(lines().filter(|line| {
                let bound = Bound::parse(line).unwrap();
                report.table(bound.head).is_some()
            }));
        }
        bounded.sort_unstable();
        let mut all: Vec<&str> = lines().collect();
        all.sort_unstable();
        assert_eq!(bounded, all, "each bound is of one table");
    }

    #[test]
    fn figure_beyond_its_bound_is_named() {
        let mut table = Table::new("a document", &["load ms", "bytes"], 1);
        table.row("ten", [Some(2.0.into()), Some(9.0.into())]);
        table.row("twenty", [Some(5.0.into()), None]);
        let report = Report::of([table]);
        let beyond = |line: &str| Bound::parse(line).unwrap().beyond(&report);
        for (line, said) in [
            ("most 2 | a document | ten | load ms", None),
            (
                "most 1.5 | a document | ten | load ms",
                Some("a document, ten, load ms: 2.00 is above 1.5"),
            ),
            ("9 | a document | ten | bytes", None),
            (
                "10 | a document | ten | bytes",
                Some("a document, ten, bytes: 9.00 is below 10"),
            ),
            ("most 2.5 | a document | twenty / ten", None),
            (
                "most 2 | a document | twenty / ten",
                Some("a document, twenty / ten: 2.50 is above 2"),
            ),
            ("most 1 | another table | ten | load ms", None),
        ] {
            assert_eq!(beyond(line).unwrap().as_deref(), said, "{line}");
        }
        assert!(beyond("1 | a document | twenty | bytes").is_err());
        assert!(beyond("1 | a document | thirty | bytes").is_err());
        assert!(Bound::parse("1 | a document").is_err());
        assert!(Bound::parse("many | a document | ten").is_err());
    }
}
