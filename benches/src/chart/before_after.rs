//! Tables of real traffic: the figures of an earlier tree beside those of today, measured by the same program.

use std::error::Error;
use std::fs;
use std::path::Path;

use super::numbers::written;
use super::tables::{head, line};
use crate::report::Report;

/// One table: a line per case and contender, and two columns per figure.
struct Table {
    title: &'static str,
    figures: &'static [&'static str],
    lines: &'static [(&'static str, &'static str, &'static str)],
}

const OURS: &str = "tower-quota";
const GOVERNOR: &str = "governor";
const PEER: &str = "redis-rs, a script per limit";

const TABLES: &[Table] = &[
    Table {
        title: "Instructions of a decision in memory",
        figures: &["instructions"],
        lines: &[
            (
                "1 limit, a partly used bucket",
                "instructions/memory/1-limit",
                OURS,
            ),
            (
                "1 limit, full again on return",
                "instructions/memory/1-limit/refilled",
                OURS,
            ),
            (
                "1 limit, first request of a client",
                "instructions/memory/1-limit/new",
                OURS,
            ),
            (
                "1 limit, refused",
                "instructions/memory/1-limit/refused",
                OURS,
            ),
            (
                "governor, a partly used bucket",
                "instructions/governor/1-limit",
                GOVERNOR,
            ),
            (
                "governor, full again on return",
                "instructions/governor/1-limit/refilled",
                GOVERNOR,
            ),
            (
                "governor, first request of a client",
                "instructions/governor/1-limit/new",
                GOVERNOR,
            ),
            (
                "governor, refused",
                "instructions/governor/1-limit/refused",
                GOVERNOR,
            ),
            (
                "3 limits on one key, partly used buckets",
                "instructions/memory/3-limits",
                OURS,
            ),
            (
                "3 limits on one key, full again on return",
                "instructions/memory/3-limits/refilled",
                OURS,
            ),
            (
                "3 limits on one key, first request of a client",
                "instructions/memory/3-limits/new",
                OURS,
            ),
            (
                "3 limits on one key, refused",
                "instructions/memory/3-limits/refused",
                OURS,
            ),
            (
                "3 limits, one request in ten asks a fourth",
                "instructions/memory/mixed",
                OURS,
            ),
            (
                "3 limits, old and new quotas in turn",
                "instructions/memory/quotas-in-turn",
                OURS,
            ),
            (
                "three governors, partly used buckets",
                "instructions/governor/3-limits",
                GOVERNOR,
            ),
            (
                "three governors, full again on return",
                "instructions/governor/3-limits/refilled",
                GOVERNOR,
            ),
        ],
    },
    Table {
        title: "Nanoseconds of a check in memory",
        figures: &["ns"],
        lines: &[
            (
                "1 limit, 10,000 keys, full again on return",
                "memory/1-limit/u64/10k/refilled",
                OURS,
            ),
            (
                "the same, governor",
                "memory/1-limit/u64/10k/refilled",
                GOVERNOR,
            ),
            (
                "the same, quota",
                "memory/1-limit/u64/10k/refilled",
                "quota",
            ),
            (
                "1 limit, a million keys, full again on return",
                "memory/1-limit/u64/1m/refilled",
                OURS,
            ),
            (
                "the same, governor",
                "memory/1-limit/u64/1m/refilled",
                GOVERNOR,
            ),
            ("the same, quota", "memory/1-limit/u64/1m/refilled", "quota"),
            (
                "3 limits, 10,000 keys, always the same three",
                "memory/3-limits/u64/10k",
                OURS,
            ),
            (
                "3 limits, 10,000 keys, one request in ten asks a fourth",
                "memory/mixed/u64/10k",
                OURS,
            ),
            (
                "3 limits, 10,000 keys, old and new quotas in turn",
                "memory/quotas-in-turn/u64/10k",
                OURS,
            ),
        ],
    },
    Table {
        title: "Three limits in Redis, 512 tasks",
        figures: &["script us", "call ms", "decisions/s"],
        lines: &[
            ("always the same three", "redis/3-limits-lasting", OURS),
            ("one request in ten asks a fourth", "redis/mixed", OURS),
            (
                "half the requests with another quota of one limit",
                "redis/one-quota-in-turn",
                OURS,
            ),
            (
                "half the requests with other quotas of all limits",
                "redis/quotas-in-turn",
                OURS,
            ),
            (
                "always the same three: redis-rs",
                "redis/3-limits-lasting",
                PEER,
            ),
            (
                "one request in ten asks a fourth: redis-rs",
                "redis/mixed",
                PEER,
            ),
        ],
    },
    Table {
        title: "More requests than Redis can decide, deadline 50 ms",
        figures: &["answers/s", "share of capacity"],
        lines: &[
            ("what the server can do", "redis/overload/capacity", OURS),
            ("offered once as much", "redis/overload/1x", OURS),
            ("offered twice as much", "redis/overload/2x", OURS),
            ("offered 4 times as much", "redis/overload/4x", OURS),
            ("offered 8 times as much", "redis/overload/8x", OURS),
        ],
    },
];

/// The suites whose figures the tables show.
const SUITES: [&str; 3] = ["instructions", "memory", "redis"];

/// Prints the tables.
pub(crate) fn print(figures: &Path) -> Result<(), Box<dyn Error>> {
    println!("{}", tables(figures)?);
    Ok(())
}

/// Returns the tables of a folder of figures, and of the folder `before` in it.
pub(super) fn tables(figures: &Path) -> Result<String, Box<dyn Error>> {
    let (before, after) = (read(&figures.join("before"))?, read(figures)?);
    let mut text = String::new();
    for (when, reports) in [("Before", &before), ("After", &after)] {
        for report in reports {
            text += &format!("{when}, {}: {}.\n", report.suite(), report.conditions());
        }
    }
    for Table {
        title,
        figures,
        lines,
    } in TABLES
    {
        text += &format!("\n### {title}\n");
        let columns = figures
            .iter()
            .flat_map(|figure| [format!("{figure} before"), format!("{figure} after")]);
        text += &head(
            &[String::new()]
                .into_iter()
                .chain(columns)
                .collect::<Vec<_>>(),
        );
        for (label, case, contender) in *lines {
            let cells = figures.iter().flat_map(|figure| {
                [&before, &after].map(|reports| {
                    find(reports, case, contender, figure)
                        .map(written)
                        .unwrap_or_default()
                })
            });
            text += &line(
                &[(*label).to_owned()]
                    .into_iter()
                    .chain(cells)
                    .collect::<Vec<_>>(),
            );
        }
    }
    Ok(text)
}

/// Reads the reports that exist.
fn read(folder: &Path) -> Result<Vec<Report>, Box<dyn Error>> {
    let texts = SUITES
        .iter()
        .filter_map(|suite| fs::read_to_string(folder.join(format!("{suite}.json"))).ok());
    texts.map(|text| Report::read(&text)).collect()
}

fn find(reports: &[Report], case: &str, contender: &str, figure: &str) -> Option<f64> {
    let mut rows = reports.iter().flat_map(Report::rows);
    rows.find(|row| row.case == case && row.contender == contender)?
        .figures
        .get(figure)
        .copied()
}
