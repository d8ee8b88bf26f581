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

/// Lines of columns, each as wide as its widest cell.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    rows: Vec<Vec<String>>,
}

impl Columns {
    /// Makes columns with these heads.
    pub(crate) fn new<const N: usize>(heads: [&str; N]) -> Self {
        Self {
            rows: vec![heads.iter().map(|head| (*head).to_owned()).collect()],
        }
    }

    /// Adds a line.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.to_vec());
    }

    /// Returns the lines. Numbers are on the right of their columns.
    pub(crate) fn text(&self) -> String {
        let columns = self.rows.first().map_or(0, Vec::len);
        let of = |column: usize| self.rows.iter().filter_map(move |row| row.get(column));
        let widths: Vec<usize> = (0..columns)
            .map(|column| {
                of(column)
                    .map(|cell| cell.chars().count())
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        let is_number = |cell: &String| {
            cell.starts_with(|c: char| c.is_ascii_digit()) || cell.is_empty() || cell == "-"
        };
        let numbers: Vec<bool> = (0..columns)
            .map(|column| of(column).skip(1).all(is_number))
            .collect();
        let mut out = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for ((cell, width), is_number) in row.iter().zip(&widths).zip(&numbers) {
                let space = " ".repeat(width - cell.chars().count());
                let (before, after) = if *is_number {
                    (space.as_str(), "")
                } else {
                    ("", space.as_str())
                };
                line.push_str(&format!("{before}{cell}{after}  "));
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
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
