use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;

use crate::failure::Failure;
use crate::visible::visible;

pub(crate) type Ended = Result<Output, Failure>;

#[derive(Debug)]
pub(crate) struct Output {
    /// The output for programs. With null, programs get the text too.
    json: Value,
    text: String,
    has_findings: bool,
}

impl Output {
    pub(crate) fn new(value: &impl Serialize, text: &str) -> Ended {
        Ok(Self {
            text: visible(text, true),
            ..Self::document(value, String::new())?
        })
    }

    /// Creates the output of a value, with a document that is printed unchanged.
    pub(crate) fn document(value: &impl Serialize, text: String) -> Ended {
        let json = serde_json::to_value(value);
        Ok(Self {
            json: json.map_err(|error| Failure::Problem(error.to_string()))?,
            text,
            has_findings: false,
        })
    }

    /// Creates the output of a value, with a generated text.
    pub(crate) fn answer(json: Value) -> Ended {
        Ok(Self {
            text: visible(&describe(&json), true),
            json,
            has_findings: false,
        })
    }

    pub(crate) fn found(mut self, has_findings: bool) -> Self {
        self.has_findings = has_findings;
        self
    }

    /// Prints the output. Returns whether the command has found problems or differences.
    ///
    /// Ignores a closed pipe, for example of `head`.
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

pub(crate) enum Part {
    Line(String),
    Table(Table),
}

/// Returns a value as text, with a line for a field and a table for a list.
pub(crate) fn describe(value: &Value) -> String {
    let mut out = String::new();
    for (name, part) in parts(value) {
        match part {
            Part::Line(text) if name.is_empty() => out += &format!("{text}\n"),
            Part::Line(text) => out += &format!("{name}: {text}\n"),
            Part::Table(table) if name.is_empty() => out += &table.text(),
            Part::Table(table) => {
                let end = out.trim_end().len();
                out.truncate(end);
                out += &format!("\n\n{name}:\n{}\n", table.text());
            }
        }
    }
    out.trim_start_matches('\n').trim_end().to_owned() + "\n"
}

/// Returns the parts of a value and their names. The name of a nested field includes the names of
/// its parents.
pub(crate) fn parts(value: &Value) -> Vec<(String, Part)> {
    let mut all = Vec::new();
    match value {
        Value::Null => {}
        Value::Object(object) => {
            for (name, value) in object {
                let name = name.replace('_', " ");
                if let (Some(name), Some(number)) = (name.strip_suffix(" ms"), value.as_u64()) {
                    all.push((name.to_owned(), Part::Line(millis(number))));
                    continue;
                }
                for (inner, part) in parts(value) {
                    all.push((format!("{name} {inner}").trim_end().to_owned(), part));
                }
            }
        }
        Value::Array(items) if items.is_empty() => {
            all.push((String::new(), Part::Line("none".into())));
        }
        Value::Array(items) if items[0].is_object() => {
            all.push((String::new(), Part::Table(table(items))));
        }
        Value::Array(items) => all.extend(items.iter().flat_map(parts)),
        Value::String(text) if text.is_empty() => {}
        Value::String(text) => all.push((String::new(), Part::Line(visible(text, false)))),
        value => {
            // Versions are below this bound, so you can copy them into commands.
            let large = value.as_u64().filter(|number| *number >= 10_000);
            let text = large.map_or(value.to_string(), grouped);
            all.push((String::new(), Part::Line(text)));
        }
    }
    all
}

fn table(objects: &[Value]) -> Table {
    let objects: Vec<_> = objects.iter().map(parts).collect();
    let mut heads = Vec::new();
    for (head, _) in objects.iter().flatten() {
        if !heads.contains(head) {
            heads.push(head.clone());
        }
    }
    let cell = |object: &[(String, Part)], head| match object.iter().find(|(name, _)| name == head)
    {
        Some((_, Part::Line(text))) => text.clone(),
        _ => String::new(),
    };
    let row = |object: &Vec<_>| heads.iter().map(|head| cell(object, head)).collect();
    Table {
        rows: objects.iter().map(row).collect(),
        heads,
    }
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

#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) heads: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Table {
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

/// Returns a number with thousands separators: `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        _ => format!("{},{:03}", grouped(number / 1_000), number % 1_000),
    }
}
