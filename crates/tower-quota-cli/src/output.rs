//! Output: JSON for programs, text for people.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;

use crate::failure::{Ended, Failure};

/// The output of a command.
#[derive(Debug, Default)]
pub(crate) struct Output {
    /// The output for programs. If it is null, they get the text too.
    json: Value,
    text: String,
    /// True if the command has found problems or differences.
    has_findings: bool,
}

impl Output {
    /// Makes the output of a value, and of a text that shows it to people.
    pub(crate) fn new(value: &impl Serialize, text: &str) -> Ended {
        Ok(Self {
            text: visible(text, true),
            ..Self::document(value, String::new())?
        })
    }

    /// Makes the output of a value and of a document, which is printed as it is.
    pub(crate) fn document(value: &impl Serialize, text: String) -> Ended {
        let json = serde_json::to_value(value);
        Ok(Self {
            json: json.map_err(|error| Failure::Problem(error.to_string()))?,
            text,
            has_findings: false,
        })
    }

    /// Makes the output of an answer of the API.
    pub(crate) fn answer(value: &Value) -> Ended {
        Self::new(value, &describe(value))
    }

    /// Sets whether the command has found problems or differences.
    pub(crate) fn found(mut self, has_findings: bool) -> Self {
        self.has_findings = has_findings;
        self
    }

    /// Prints the output, and returns whether the command has found something.
    ///
    /// A reader that has gone, such as `head`, is no failure.
    pub(crate) fn print(&self, is_json: bool) -> Result<bool, Failure> {
        let mut out = io::stdout().lock();
        let written = if is_json && !self.json.is_null() {
            writeln!(out, "{}", self.json)
        } else {
            out.write_all(self.text.as_bytes())
        };
        match written.and_then(|()| out.flush()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(Failure::Usage(error.to_string()))
            }
            _ => Ok(self.has_findings),
        }
    }
}

/// Returns a value of the API for people: a line for each field, and a table for each list.
pub(crate) fn describe(value: &Value) -> String {
    let mut out = String::new();
    for (name, value) in fields(value) {
        let name = if name.is_empty() { name } else { name + ": " };
        match value {
            Value::Array(rows) if rows.is_empty() => out += &format!("{name}none\n"),
            Value::Array(rows) => {
                if !name.is_empty() {
                    out += &format!("{}\n", name.trim_end());
                }
                out += &table(&rows).text();
            }
            value => out += &format!("{name}{}\n", shown(&value)),
        }
    }
    out
}

/// Returns the fields of an object that have a value. Objects in it put their names before those of their fields.
fn fields(value: &Value) -> Vec<(String, Value)> {
    let Value::Object(object) = value else {
        return vec![(String::new(), value.clone())];
    };
    let mut all = Vec::new();
    for (name, value) in object {
        let name = name.replace('_', " ");
        match (value, name.strip_suffix(" ms")) {
            (Value::Null, _) => {}
            (Value::String(text), _) if text.is_empty() => {}
            (Value::Number(number), Some(name)) => {
                let time = millis(number.as_u64().unwrap_or_default());
                all.push((name.to_owned(), time.into()));
            }
            (value, _) => {
                for (inner, value) in fields(value) {
                    all.push((format!("{name} {inner}").trim_end().to_owned(), value));
                }
            }
        }
    }
    all
}

/// Returns objects as a table with a column for each field that one of them has.
fn table(objects: &[Value]) -> Table {
    let objects: Vec<_> = objects.iter().map(fields).collect();
    let mut table = Table::new(&[]);
    for (head, _) in objects.iter().flatten() {
        if !table.heads.contains(head) {
            table.heads.push(head.clone());
        }
    }
    for object in &objects {
        let cell = |head: &String| {
            let field = object.iter().find(|(name, _)| name == head);
            field.map_or(String::new(), |(_, value)| shown(value))
        };
        let cells = table.heads.iter().map(cell).collect::<Vec<_>>();
        table.row(cells);
    }
    table
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => visible(text, false),
        value => visible(&value.to_string(), false),
    }
}

/// Returns a text whose characters cannot change a terminal or the order of what is around them.
pub(crate) fn visible(text: &str, keeps_lines: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' if keeps_lines => out.push('\n'),
            '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' => {
                out.extend(character.escape_unicode());
            }
            character if character.is_control() => out.extend(character.escape_default()),
            character => out.push(character),
        }
    }
    out
}

/// Returns milliseconds as text for people: `4.2 s`, `5 min`.
fn millis(millis: u64) -> String {
    match millis {
        0..1_000 => format!("{millis} ms"),
        1_000..60_000 => format!("{}.{} s", millis / 1_000, millis % 1_000 / 100),
        60_000..3_600_000 => format!("{} min", millis.div_ceil(60_000)),
        _ => format!("{} h", millis.div_ceil(3_600_000)),
    }
}

/// A table: its heads, and rows of as many cells.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) heads: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Table {
    /// Makes a table without rows.
    pub(crate) fn new(heads: &[&str]) -> Self {
        Self {
            heads: heads.iter().map(ToString::to_string).collect(),
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
            let lengths = cells()
                .chain([head.as_str()])
                .map(|cell| cell.chars().count());
            let width = lengths.max().unwrap_or(0);
            for (line, cell) in lines
                .iter_mut()
                .zip([head.as_str()].into_iter().chain(cells()))
            {
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
