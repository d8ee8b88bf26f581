//! Tables, ratios and their JSON.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

use serde_json::json;

/// What a suite measured.
#[derive(Default)]
pub(crate) struct Report {
    rows: Vec<Row>,
    ratios: BTreeMap<String, f64>,
}

struct Row {
    case: String,
    contender: String,
    figures: Vec<(&'static str, f64)>,
}

impl Report {
    /// One contender's figures in one case.
    pub(crate) fn row(&mut self, case: &str, contender: &str, figures: Vec<(&'static str, f64)>) {
        self.rows.push(Row { case: case.to_owned(), contender: contender.to_owned(), figures });
    }

    /// How Tollgate compares with a peer in one case; above 1 is better.
    pub(crate) fn ratio(&mut self, case: impl Into<String>, value: f64) {
        self.ratios.insert(case.into(), value);
    }

    /// Prints the table, then a line per ratio; writes both as JSON when a file is named.
    pub(crate) fn publish(&self, json: Option<&Path>) -> Result<(), Box<dyn Error>> {
        let mut case = "";
        for row in &self.rows {
            if row.case != case {
                case = &row.case;
                println!("\n{case}");
            }
            print!("  {:32}", row.contender);
            for (what, figure) in &row.figures {
                print!("  {what} {figure:>10.2}");
            }
            println!();
        }
        println!();
        for (case, value) in &self.ratios {
            println!("ratio {case} {value:.2}");
        }
        if let Some(file) = json {
            let rows: Vec<_> = self
                .rows
                .iter()
                .map(|row| json!({ "case": row.case, "contender": row.contender, "figures": row.figures.iter().copied().collect::<BTreeMap<_, _>>() }))
                .collect();
            let text = serde_json::to_string_pretty(&json!({ "rows": rows, "ratios": self.ratios }))?;
            std::fs::write(file, text + "\n")?;
        }
        Ok(())
    }
}

/// The middle value; the mean of the two middle ones of an even number. 0 of none.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => values[odd / 2],
        even => f64::midpoint(values[even / 2 - 1], values[even / 2]),
    }
}

/// The median over the rounds of `over / under`.
pub(crate) fn median_ratio(over: &[f64], under: &[f64]) -> f64 {
    median(&mut over.iter().zip(under).map(|(over, under)| over / under).collect::<Vec<_>>())
}
