//! Output: JSON for programs, text for people.

use std::io::{self, Write};

use serde::Serialize;

use crate::failure::Failure;

/// Prints a value as JSON on one line, or in the form for people.
pub(crate) fn print<T: Serialize>(
    is_json: bool,
    value: &T,
    text: impl FnOnce(&T) -> String,
) -> Result<(), Failure> {
    let out = if is_json {
        serde_json::to_string(value).map_err(|error| Failure::Problem(error.to_string()))? + "\n"
    } else {
        text(value)
    };
    write(&out)
}

/// Writes text to standard output. A reader that has gone, such as `head`, is no failure.
pub(crate) fn write(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::Usage(error.to_string()))
        }
        _ => Ok(()),
    }
}

/// A table: its heads, and rows of as many cells.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) heads: Vec<&'static str>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Table {
    /// Makes a table without rows.
    pub(crate) fn new(heads: &[&'static str]) -> Self {
        Self {
            heads: heads.to_vec(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: impl Into<Vec<String>>) {
        self.rows.push(cells.into());
    }

    /// Returns the table as lines. Numbers are on the right of their columns.
    pub(crate) fn text(&self) -> String {
        let mut lines = vec![String::new(); self.rows.len() + 1];
        for (column, head) in self.heads.iter().enumerate() {
            let cells = || self.rows.iter().map(|row| row[column].as_str());
            let is_number = |cell: &str| {
                cell.starts_with(|c: char| c.is_ascii_digit()) || matches!(cell, "" | "-")
            };
            let all_numbers = cells().all(is_number);
            let lengths = cells().chain([*head]).map(|cell| cell.chars().count());
            let width = lengths.max().unwrap_or(0);
            for (line, cell) in lines.iter_mut().zip([*head].into_iter().chain(cells())) {
                *line += &if all_numbers {
                    format!("{cell:>width$}  ")
                } else {
                    format!("{cell:<width$}  ")
                };
            }
        }
        lines
            .iter()
            .map(|line| line.trim_end().to_owned() + "\n")
            .collect()
    }
}

/// Returns a number with its thousands apart: `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
