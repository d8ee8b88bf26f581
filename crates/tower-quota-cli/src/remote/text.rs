//! Values of the API as text.

use serde_json::Value;

/// Returns a field as text; nothing for null and missing ones.
pub(super) fn field(value: &Value, name: &str) -> String {
    match &value[name] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns a problem of a document on one line.
pub(super) fn problem(problem: &Value) -> String {
    let place = match (problem["line"].as_u64(), problem["column"].as_u64()) {
        (Some(line), Some(column)) => format!("line {line}, column {column}: "),
        _ => String::new(),
    };
    let path = Some(field(problem, "path"))
        .filter(|path| !path.is_empty())
        .map_or(String::new(), |path| path + ": ");
    let help = Some(field(problem, "help"))
        .filter(|help| !help.is_empty())
        .map_or(String::new(), |help| format!(": {help}"));
    format!(
        "{}: {place}{path}{}{help}",
        field(problem, "severity"),
        field(problem, "message")
    )
}

/// Returns milliseconds as text for people: `4.2 s`, `5 min`.
pub(crate) fn millis(millis: u64) -> String {
    match millis {
        0 => "-".into(),
        1..1_000 => format!("{millis} ms"),
        1_000..60_000 => format!("{}.{} s", millis / 1_000, millis % 1_000 / 100),
        60_000..3_600_000 => format!("{} min", millis.div_ceil(60_000)),
        _ => format!("{} h", millis.div_ceil(3_600_000)),
    }
}
