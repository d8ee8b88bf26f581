//! The figures of a suite: printed as a table and ratios, and kept as JSON.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::Path;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::conditions::Conditions;
use crate::wanted::wanted;

/// The figures of a suite.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Report {
    /// None before it is published.
    conditions: Option<Conditions>,
    rows: Vec<Row>,
    ratios: BTreeMap<String, f64>,
}

/// One contender's figures in one case.
#[derive(Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) case: String,
    pub(crate) contender: String,
    pub(crate) figures: IndexMap<String, f64>,
}

impl Report {
    /// Adds one contender's figures in one case.
    pub(crate) fn row(&mut self, case: &str, contender: &str, figures: Vec<(&'static str, f64)>) {
        let figures = figures
            .into_iter()
            .map(|(what, figure)| (what.to_owned(), figure))
            .collect();
        self.rows.push(Row {
            case: case.to_owned(),
            contender: contender.to_owned(),
            figures,
        });
    }

    /// Adds the median of each contender's nanoseconds over the rounds.
    pub(crate) fn times(&mut self, case: &str, contenders: &[&str], rounds: &[Vec<f64>]) {
        for (contender, figures) in contenders.iter().zip(rounds) {
            self.row(case, contender, vec![("ns", median(&mut figures.clone()))]);
        }
    }

    /// Adds the ratio of tower-quota and a peer in one case; above 1 is better.
    pub(crate) fn ratio(&mut self, case: impl Into<String>, value: f64) {
        self.ratios.insert(case.into(), value);
    }

    /// Prints the table, then a line per ratio; writes both as JSON to `json`, with the conditions.
    pub(crate) fn publish(
        mut self,
        quick: bool,
        json: Option<&Path>,
    ) -> Result<(), Box<dyn Error>> {
        self.print();
        if let Some(file) = json {
            self.conditions = Some(Conditions::present(quick));
            fs::create_dir_all(file.parent().unwrap_or(Path::new("")))?;
            fs::write(file, serde_json::to_string_pretty(&self)? + "\n")?;
        }
        Ok(())
    }

    fn print(&self) {
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
            let wanted = wanted(case)
                .map(|wanted| format!(" wanted {wanted}"))
                .unwrap_or_default();
            println!("ratio {case} {value:.2}{wanted}");
        }
    }

    /// Reads what `publish` has written.
    pub(crate) fn read(json: &str) -> Result<Self, Box<dyn Error>> {
        Ok(serde_json::from_str(json)?)
    }

    /// Returns the name of the suite: the first part of every case's name.
    pub(crate) fn suite(&self) -> &str {
        self.rows
            .first()
            .and_then(|row| row.case.split('/').next())
            .unwrap_or_default()
    }

    /// Returns the rows in the order in which they were measured.
    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Returns the ratios in the order of their names.
    pub(crate) fn ratios(&self) -> impl Iterator<Item = (&str, f64)> {
        self.ratios
            .iter()
            .map(|(case, value)| (case.as_str(), *value))
    }

    /// Returns the conditions in a line.
    pub(crate) fn conditions(&self) -> String {
        self.conditions
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default()
    }
}

/// Returns the middle value, the mean of the two middle ones of an even number, or 0 of none.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => values[odd / 2],
        even => f64::midpoint(values[even / 2 - 1], values[even / 2]),
    }
}

/// Returns the median over the rounds of `over / under`.
pub(crate) fn median_ratio(over: &[f64], under: &[f64]) -> f64 {
    median(
        &mut over
            .iter()
            .zip(under)
            .map(|(over, under)| over / under)
            .collect::<Vec<_>>(),
    )
}
