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
    /// A closed pipe, for example of `head`, is not an error.
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

/// Returns a value as text, with a line for a field and a table for a list.
pub(crate) fn describe(value: &Value) -> String {
    let mut out = String::new();
    for (name, value) in leaves("", value) {
        if let Value::Array(rows) = value
            && !rows.is_empty()
        {
            let title = if name.is_empty() { name } else { name + ":\n" };
            out.truncate(out.trim_end().len());
            out += &format!("\n\n{title}{}\n", table(rows));
            continue;
        }
        let (name, text) = shown((name, value));
        let title = if name.is_empty() { name } else { name + ": " };
        out += &format!("{title}{text}\n");
    }
    out.trim_start_matches('\n').trim_end().to_owned() + "\n"
}

/// Returns the fields in a value. The name of a nested field includes the names of its parents.
fn leaves<'v>(name: &str, value: &'v Value) -> Vec<(String, &'v Value)> {
    match value {
        Value::Object(fields) => {
            let nested = fields.iter().flat_map(|(field, value)| {
                let name = format!("{name} {field}").replace('_', " ");
                leaves(name.trim_start(), value)
            });
            nested.collect()
        }
        Value::Array(items) if items.first().is_some_and(|item| !item.is_object()) => {
            items.iter().flat_map(|item| leaves(name, item)).collect()
        }
        Value::Null => Vec::new(),
        Value::String(text) if text.is_empty() => Vec::new(),
        leaf => vec![(name.to_owned(), leaf)],
    }
}

fn shown((name, value): (String, &Value)) -> (String, String) {
    let text = match value {
        Value::String(text) => visible(text, false),
        Value::Array(_) => "none".to_owned(),
        value => match (name.strip_suffix(" ms"), value.as_u64()) {
            (Some(name), Some(number)) => return (name.to_owned(), millis(number)),
            // Group large numbers only. Versions are smaller, so that you can copy them into
            // commands.
            (None, Some(number @ 10_000..)) => grouped(number),
            _ => value.to_string(),
        },
    };
    (name, text)
}

/// Returns objects as a table with a column for every field, with numbers aligned right.
fn table(objects: &[Value]) -> String {
    let row = |object| leaves("", object).into_iter().map(shown).collect();
    let rows: Vec<Vec<(String, String)>> = objects.iter().map(row).collect();
    let mut heads: Vec<&str> = Vec::new();
    for (head, _) in rows.iter().flatten() {
        if !heads.contains(&head.as_str()) {
            heads.push(head);
        }
    }
    let mut lines = vec![String::new(); rows.len() + 1];
    for head in heads {
        let cell = |row: &Vec<(String, String)>| {
            let found = row.iter().filter(|(name, _)| name == head);
            let texts: Vec<&str> = found.map(|(_, text)| text.as_str()).collect();
            texts.join(", ")
        };
        let mut cells: Vec<String> = rows.iter().map(cell).collect();
        let is_number = |cell: &String| {
            cell.starts_with(|c: char| c.is_ascii_digit()) || matches!(cell.as_str(), "" | "-")
        };
        let is_right = cells.iter().all(is_number);
        cells.insert(0, head.to_owned());
        let width = cells.iter().map(|cell| cell.chars().count()).max();
        let width = width.unwrap_or(0);
        for (line, cell) in lines.iter_mut().zip(cells) {
            *line += &if is_right {
                format!("{cell:>width$}  ")
            } else {
                format!("{cell:<width$}  ")
            };
        }
    }
    let lines = lines.iter().map(|line| line.trim_end().to_owned() + "\n");
    lines.collect()
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

/// Returns a number with thousands separators: `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        _ => format!("{},{:03}", grouped(number / 1_000), number % 1_000),
    }
}
