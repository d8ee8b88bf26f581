//! Figures as Markdown.

use std::error::Error;

use super::{Reports, median_of};
use crate::report::{Figure, Report};
use crate::targets::target;

/// The tables of the pages, by suite.
const TABLES: &str = include_str!("../../tables.txt");

/// Writes three significant digits, with a suffix for thousands and millions.
pub(super) fn significant(figure: f64) -> String {
    let (scaled, suffix) = match figure.abs() {
        millions if millions >= 999_500.0 => (figure / 1e6, "M"),
        thousands if thousands >= 9_995.0 => (figure / 1e3, "k"),
        _ => (figure, ""),
    };
    let decimals = match scaled.abs() {
        0.0 => 0,
        small if small < 0.000_1 => 6,
        number => (2 - number.log10().floor() as i32).max(0) as usize,
    };
    let digits = format!("{scaled:.decimals$}");
    let digits = if digits.contains('.') {
        digits.trim_end_matches('0').trim_end_matches('.')
    } else {
        &digits
    };
    format!("{digits}{suffix}")
}

/// Writes three significant digits, with commas between thousands.
pub(super) fn written(figure: f64) -> String {
    if figure.abs() < 999.5 {
        return significant(figure);
    }
    let digits = format!("{figure:.0}");
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Writes a figure, with the lowest and the highest of its rounds.
fn cell(figure: Option<Figure>) -> String {
    match figure {
        None => String::new(),
        Some(Figure::Once(figure)) => written(figure),
        Some(Figure::Rounds { median, min, max }) => {
            let (median, min, max) = (written(median), written(min), written(max));
            if min == max {
                median
            } else {
                format!("{median} ({min}–{max})")
            }
        }
    }
}

/// Returns the tables of a suite, and the targets that it misses.
pub(super) fn of(report: &Report, suite: &str) -> Result<String, Box<dyn Error>> {
    let mut text = String::new();
    for block in TABLES.split("\n\n").skip(1) {
        let mut lines = block.trim().lines();
        let first = lines.next().unwrap_or_default();
        if first.split(' ').next() == Some(suite) {
            let head = lines.next().unwrap_or_default().split(" | ");
            let rows = lines.map(|line| line.split(" | ").collect()).collect();
            let figure = first.split_once(" compares ").map(|(_, figure)| figure);
            text += &table(report, figure, head.collect(), rows).ok_or_else(|| first.to_owned())?;
        }
    }
    if text.is_empty() {
        return Err(format!("there are no tables of the suite {suite}").into());
    }
    Ok(text + &targets(report))
}

/// Writes a table, without rows and columns that have no figure.
fn table(
    report: &Report,
    compared: Option<&str>,
    head: Vec<&str>,
    rows: Vec<Vec<&str>>,
) -> Option<String> {
    let (unit, columns) = head.split_first()?;
    // A column is a contender, or a figure with a name of its own.
    let columns = columns
        .iter()
        .map(|column| column.split_once(" = ").unwrap_or((column, column)));
    let columns: Vec<(&str, &str)> = columns.collect();
    let mut table = Vec::new();
    for row in &rows {
        let figure = |&(_, column): &(&str, &str)| match compared {
            Some(figure) => report.figure(row[1], column, figure),
            None => report.figure(row[1], row.get(2)?, column),
        };
        let figures: Vec<_> = columns.iter().map(figure).collect();
        if figures.iter().any(Option::is_some) {
            table.push((row[0], figures));
        } else {
            eprintln!("there are no figures of {}", row[1..].join(", "));
        }
    }
    let is_measured = |column: &usize| table.iter().any(|(_, figures)| figures[*column].is_some());
    let kept: Vec<usize> = (0..columns.len()).filter(is_measured).collect();
    if kept.is_empty() {
        return Some(String::new());
    }
    let heads: String = kept
        .iter()
        .map(|&column| format!(" {} |", columns[column].0))
        .collect();
    let mut text = format!("\n| {unit} |{heads}\n|---|{}\n", "---:|".repeat(kept.len()));
    for (name, figures) in table {
        let cells = kept
            .iter()
            .map(|&column| format!(" {} |", cell(figures[column])));
        text += &format!("| {name} |{}\n", cells.collect::<String>());
    }
    Some(text)
}

/// Writes the lowest and the highest ratio, and the targets that are missed.
fn targets(report: &Report) -> String {
    // The page has the name of the suite.
    let short = |case: &str| {
        case.split_once('/')
            .map_or(case, |(_, case)| case)
            .to_owned()
    };
    let name =
        |(case, value): (&String, &f64)| format!("`{}` {}", short(case), significant(*value));
    let ratios = || report.ratios.iter();
    let lowest = ratios().min_by(|one, other| one.1.total_cmp(other.1));
    let highest = ratios().max_by(|one, other| one.1.total_cmp(other.1));
    let (Some(lowest), Some(highest)) = (lowest, highest) else {
        return String::new();
    };
    let aimed: Vec<_> = ratios()
        .filter_map(|(case, value)| Some((case, *value, target(case)?)))
        .collect();
    let missed: Vec<String> = aimed
        .iter()
        .filter(|(_, value, target)| value < target)
        .map(|(case, value, target)| {
            format!("`{}` {} of {target}", short(case), significant(*value))
        })
        .collect();
    let mut text = String::from("\n");
    if report.ratios.len() > 1 {
        text += &format!(
            "The lowest ratio is {}, the highest is {}. ",
            name(lowest),
            name(highest)
        );
    }
    if !aimed.is_empty() {
        let met = aimed.len() - missed.len();
        let all = aimed.len();
        text += &format!("We reached {met} of {all} [targets](../README.md#measurements).");
    }
    if !missed.is_empty() {
        text += &format!(" **Missed: {}.**", missed.join(", "));
    }
    text + "\n"
}

/// Checks a second.
const RATE: f64 = 1_700_000.0;
/// The share of a core that a Redis should use on average, so that bursts and snapshots have room.
const BUSY: f64 = 0.6;

/// Returns a table of the cores and the bandwidth that 1.7 million checks a second need.
pub(super) fn example(reports: &Reports) -> Result<String, String> {
    let sizing = |case: &str, figure| median_of(&reports["sizing"], case, "tower-quota", figure);
    let mut text = String::from(
        "| 1.7 million checks/s, all of them | Redis cores | Redis servers | Gbit/s | service cores |\n\
         |---|---:|---:|---:|---:|\n",
    );
    let mut row = |name: &str, server_us: f64, bytes: f64, service_us: f64| {
        let cores = RATE * server_us / 1e6;
        text += &format!(
            "| {name} | {} | {} | {} | {} |\n",
            significant(cores),
            written((cores / BUSY).ceil()),
            significant(RATE * bytes * 8.0 / 1e9),
            significant(RATE * service_us / 1e6),
        );
    };
    for (name, case) in [
        (
            "one limit, a call for each decision",
            "sizing/wire/1-limit/1",
        ),
        ("one limit, 512 under way", "sizing/wire/1-limit/512"),
        ("three limits, 512 under way", "sizing/wire/3-limits/512"),
        (
            "client and everyone, 512 under way",
            "sizing/wire/3-limits-2-subjects/512",
        ),
    ] {
        let bytes = sizing(case, "bytes in")? + sizing(case, "bytes out")?;
        row(
            name,
            sizing(case, "server us")?,
            bytes,
            sizing(case, "client us")?,
        );
    }
    let leased = |figure| {
        let case = "distributed/8-instances/4x";
        median_of(&reports["distributed"], case, "tower-quota, leased", figure)
    };
    let bytes = sizing("sizing/wire/1-limit/1", "bytes in")?
        + sizing("sizing/wire/1-limit/1", "bytes out")?;
    let lease_us = sizing("sizing/lease", "ns")? / 1e3;
    row(
        "hot clients with leases",
        leased("redis us")?,
        bytes * leased("calls")?,
        lease_us,
    );
    let refusal_us = sizing("sizing/refusal", "ns")? / 1e3;
    row("refused from memory", 0.0, 0.0, refusal_us);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::{of, significant, written};
    use crate::report::{Figure, Report};

    #[test]
    fn figures_have_three_significant_digits() {
        let figures = [
            0.0,
            0.008_54,
            1.0,
            12.34,
            999.9,
            9_994.0,
            147_332.0,
            2_345_678.0,
        ];
        let labels = ["0", "0.00854", "1", "12.3", "1000", "9994", "147k", "2.35M"];
        assert_eq!(figures.map(significant), labels);
        assert_eq!(written(147_332.4), "147,332");
        assert_eq!(written(99.96), "100");
    }

    #[test]
    fn tables_show_spread_and_missed_targets() {
        let mut report = Report::default();
        let figures = [("ns", Figure::of(&[30.0, 33.0, 31.0]))];
        report.row("memory/1-limit/hot", "tower-quota", figures);
        report.row("memory/1-limit/hot", "governor", [("ns", 25.0)]);
        report.ratio("memory/1-limit/hot", 0.78);
        report.ratio("memory/1-limit/1m", 1.5);
        let text = of(&report, "memory").unwrap();
        let row = "| one limit, hot client | 31 (30–33) | 25 |\n";
        assert!(text.contains(row), "{text}");
        // Rows and columns without a figure are left out.
        assert!(
            !text.contains("quota |  |") && !text.contains("a million"),
            "{text}"
        );
        let targets = "We reached 1 of 2 [targets](../README.md#measurements). **Missed: `1-limit/hot` 0.78 of 1.1.**";
        assert!(text.contains(targets), "{text}");
    }
}
