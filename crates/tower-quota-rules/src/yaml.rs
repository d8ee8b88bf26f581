//! Prints YAML, with short maps and lists in a line.

use serde_json::Value;

/// The longest map or list in a line.
const SHORT: usize = 100;

pub(crate) fn print(value: &Value) -> String {
    let mut out = String::new();
    write(&mut out, value, 0);
    out
}

/// Writes a value. Its first line is indented to `column` already. Returns whether it is a block.
fn write(out: &mut String, value: &Value, column: usize) -> bool {
    let line = flow(value);
    let is_block = match value {
        Value::Object(fields) => !fields.is_empty() && (column == 0 || line.len() > SHORT),
        Value::Array(elements) => !elements.is_empty() && (column == 2 || line.len() > SHORT),
        _ => false,
    };
    if !is_block {
        out.push_str(&line);
        out.push('\n');
        return false;
    }
    let mut indent = "";
    let next = " ".repeat(column);
    for (name, value) in value.as_object().into_iter().flatten() {
        out.push_str(indent);
        indent = &next;
        out.push_str(&text(name));
        let mut inner = String::new();
        if write(&mut inner, value, column + 2) {
            out.push_str(":\n  ");
            out.push_str(&next);
        } else {
            out.push_str(": ");
        }
        out.push_str(&inner);
    }
    for element in value.as_array().into_iter().flatten() {
        out.push_str(indent);
        indent = &next;
        out.push_str("- ");
        write(out, element, column + 2);
    }
    true
}

/// Returns a value in a line.
fn flow(value: &Value) -> String {
    let joined = |parts: Vec<String>| parts.join(", ");
    match value {
        Value::Object(fields) if fields.is_empty() => "{}".into(),
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(name, value)| format!("{}: {}", text(name), flow(value)));
            format!("{{ {} }}", joined(fields.collect()))
        }
        Value::Array(elements) => format!("[{}]", joined(elements.iter().map(flow).collect())),
        Value::String(value) => text(value),
        other => other.to_string(),
    }
}

/// Returns a text, in quotes if a YAML reader may take it for another type.
fn text(text: &str) -> String {
    const WORDS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let first = text.bytes().next().unwrap_or(b' ');
    let is_word = first.is_ascii_alphabetic() || matches!(first, b'/' | b'_');
    let is_quota = first.is_ascii_digit() && text.contains('/');
    let is_plain = text
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"_-/. ".contains(&byte));
    let is_typed = WORDS.contains(&text.to_ascii_lowercase().as_str());
    if (is_word || is_quota) && is_plain && !is_typed && !text.ends_with(' ') {
        return text.into();
    }
    // JSON leaves these characters unescaped, YAML does not allow them.
    let is_hidden =
        |c: char| c.is_control() || "\u{2028}\u{2029}\u{feff}\u{fffe}\u{ffff}".contains(c);
    let quoted = Value::from(text).to_string();
    let escaped = quoted.chars().map(|c| match c {
        c if is_hidden(c) => format!("\\u{:04x}", u32::from(c)),
        c => c.into(),
    });
    escaped.collect()
}
