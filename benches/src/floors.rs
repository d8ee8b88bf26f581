//! The lowest ratios that a run may have. A run below a floor fails, unless it is quick.

use crate::Outcome;
use crate::report::Report;

const FLOORS: &str = include_str!("../floors.txt");

/// Fails if a row of these tables is below its floor.
pub(crate) fn check(report: &Report) -> Outcome {
    let mut missed = Vec::new();
    for line in lines() {
        let (floor, head, row) = parse(line)?;
        let Some(table) = report.table(head) else {
            continue;
        };
        let ratio = table
            .ratio_of(row)
            .ok_or_else(|| format!("no row of {head:?} is {row:?}"))?;
        if ratio < floor {
            missed.push(format!("{head}, {row}: {ratio:.2} is below {floor}"));
        }
    }
    if missed.is_empty() {
        Ok(())
    } else {
        Err(missed.join("\n").into())
    }
}

fn lines() -> impl Iterator<Item = &'static str> {
    FLOORS
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Reads `0.5 | TABLE | ROW`.
fn parse(line: &str) -> Outcome<(f64, &str, &str)> {
    let parts: Vec<&str> = line.split('|').map(str::trim).collect();
    let [floor, head, row] = parts[..] else {
        return Err(format!("{line:?} is no floor: write `0.5 | TABLE | ROW`").into());
    };
    Ok((floor.parse()?, head, row))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Report, check, lines, parse};

    #[test]
    fn published_figures_reach_their_floors() {
        let figures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/figures");
        let mut heads = Vec::new();
        for suite in ["memory", "threads", "layer", "readme"] {
            let report = Report::read(&figures.join(suite).with_extension("json")).unwrap();
            check(&report).unwrap();
            heads.extend(lines().filter(|line| report.table(parse(line).unwrap().1).is_some()));
        }
        assert_eq!(heads.len(), lines().count(), "each floor is of a table");
    }
}
