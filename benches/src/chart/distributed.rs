//! Tables of the cells with several processes: the worst first.

use super::numbers::written;
use super::tables::{head, line, of_cases};
use crate::report::{Report, Row};

const EXACT: &str = "tower-quota, exact";
const LEASED: &str = "tower-quota, leased";

/// A figure whose worst cell is named.
struct Worst {
    column: &'static str,
    figure: fn(&Row) -> Option<f64>,
    /// True if less is worse.
    is_less_worse: bool,
}

const WORST: [Worst; 4] = [
    Worst {
        column: "most over the quota, %",
        figure: |row| Some(part(row, "over")? * 100.0 / part(row, "allowed")?),
        is_less_worse: false,
    },
    Worst {
        column: "least admitted, % of allowed",
        figure: |row| part(row, "admitted %"),
        is_less_worse: true,
    },
    Worst {
        column: "slowest p99, us",
        figure: |row| part(row, "p99 us"),
        is_less_worse: false,
    },
    Worst {
        column: "most Redis CPU, us per decision",
        figure: |row| part(row, "redis us"),
        is_less_worse: false,
    },
];

/// Writes each contender's worst cells, of a suite that has cells.
pub(super) fn worst(report: &Report) -> String {
    let cells: Vec<_> = report
        .rows()
        .iter()
        .filter(|row| cell(row).is_some())
        .collect();
    if cells.is_empty() {
        return String::new();
    }
    let mut contenders: Vec<&str> = Vec::new();
    for row in &cells {
        if !contenders.contains(&&*row.contender) {
            contenders.push(&row.contender);
        }
    }
    let mut table = head(
        &[
            &["the worst cells"],
            &*WORST.map(|worst| worst.column).to_vec(),
        ]
        .concat(),
    );
    for contender in contenders {
        let of_contender = || cells.iter().filter(|row| row.contender == contender);
        let texts = WORST.iter().map(
            |Worst {
                 figure,
                 is_less_worse,
                 ..
             }| {
                let figures = of_contender().filter_map(|row| Some((figure(row)?, cell(row)?)));
                let badness = |figure: f64| if *is_less_worse { -figure } else { figure };
                let worst = figures.max_by(|(a, _), (b, _)| badness(*a).total_cmp(&badness(*b)));
                worst.map_or_else(String::new, |(figure, cell)| match figure {
                    0.0 => "0".to_owned(),
                    _ => format!("{} in `{cell}`", written(figure)),
                })
            },
        );
        table += &line(&[vec![contender.to_owned()], texts.collect()].concat());
    }
    table
}

/// Writes the cost of leases beside exact round trips, then the faults and the cases with targets.
pub(super) fn tables(report: &Report) -> String {
    let mut text = String::new();
    if report.suite() != "distributed" {
        return text;
    }
    for (title, figure) in [
        (
            "Redis CPU of leases over that of exact round trips; above 1, leases cost more",
            "redis us",
        ),
        (
            "Script calls of leases over those of exact round trips",
            "calls",
        ),
        ("p99 of leases over that of exact round trips", "p99 us"),
    ] {
        text += &format!("\n{title}, by traffic and load, and by processes:\n");
        text += &ratios(report, figure);
    }
    let begins = |prefix: &'static str| move |row: &&Row| row.case.starts_with(prefix);
    text += "\nFaults in the middle of five seconds at twice the quota, four processes, one hot client:\n";
    text += &of_cases(report.rows().iter().filter(begins("distributed/fault/")));
    text += "\nOne process, and the latencies of all cells together:\n";
    let others = |row: &&Row| cell(row).is_none() && !row.case.starts_with("distributed/fault/");
    text += &of_cases(report.rows().iter().filter(others));
    text
}

/// Writes a line for each traffic and load, with a column for each number of processes.
fn ratios(report: &Report, figure: &str) -> String {
    let of = |contender: &str, case: &str| {
        let row = report
            .rows()
            .iter()
            .find(|row| row.case == case && row.contender == contender)?;
        part(row, figure)
    };
    let (mut groups, mut nodes) = (Vec::new(), Vec::new());
    for (group, node) in report
        .rows()
        .iter()
        .filter_map(cell)
        .filter_map(|cell| cell.rsplit_once('/'))
    {
        if !groups.contains(&group) {
            groups.push(group);
        }
        if !nodes.contains(&node) {
            nodes.push(node);
        }
    }
    let mut table = head(&[&["traffic and load"], &*nodes].concat());
    for group in groups {
        let figures = nodes.iter().map(|node| {
            let case = format!("distributed/{group}/{node}");
            let ratio = of(LEASED, &case)
                .zip(of(EXACT, &case))
                .map(|(leased, exact)| leased / exact);
            ratio.map(written).unwrap_or_default()
        });
        table += &line(&[vec![format!("`{group}`")], figures.collect()].concat());
    }
    table
}

/// Returns the name of a cell, such as `zipf/2x/8`, and none of another case.
fn cell(row: &Row) -> Option<&str> {
    let cell = row.case.strip_prefix("distributed/")?;
    (row.figures.contains_key("late p99 us")).then_some(cell)
}

fn part(row: &Row, figure: &str) -> Option<f64> {
    row.figures.get(figure).copied()
}

#[cfg(test)]
mod tests {
    use super::{tables, worst};
    use crate::report::Report;

    fn report() -> Report {
        let mut report = Report::default();
        for (case, contender, over, calls) in [
            ("distributed/hot/2x/1", "tower-quota, exact", 0.0, 1.0),
            ("distributed/hot/2x/1", "tower-quota, leased", 0.0, 0.25),
            ("distributed/hot/2x/8", "tower-quota, exact", 0.0, 1.0),
            ("distributed/hot/2x/8", "tower-quota, leased", 5.0, 0.5),
        ] {
            let figures = vec![
                ("allowed", 100.0),
                ("over", over),
                ("admitted %", 90.0 + over),
                ("p99 us", 20.0),
                ("late p99 us", 1.0),
                ("calls", calls),
                ("redis us", 2.0),
            ];
            report.row(case, contender, figures);
        }
        report
    }

    #[test]
    fn worst_cells_are_named() {
        let text = worst(&report());
        let expected = "| tower-quota, leased | 5.00 in `hot/2x/8` | 90.0 in `hot/2x/1` |";
        assert!(text.contains(expected), "{text}");
        assert!(text.contains("| tower-quota, exact | 0 |"), "{text}");
    }

    #[test]
    fn ratios_show_leases_over_exact() {
        let text = tables(&report());
        assert!(text.contains("| traffic and load | 1 | 8 |"), "{text}");
        assert!(text.contains("| `hot/2x` | 0.25 | 0.50 |"), "{text}");
    }
}
