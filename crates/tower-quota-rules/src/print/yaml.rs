//! Values to YAML: maps and lists in blocks, and each text that needs them in quotes.

use serde_json::Value;

/// The longest map or list that is written in one line.
const SHORT: usize = 100;

pub(super) fn print(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(fields) if !fields.is_empty() => block(&mut out, value, 0),
        _ => {
            flow(&mut out, value);
            out.push('\n');
        }
    }
    out
}

/// Writes a map or a list, one entry a line.
fn block(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(fields) => {
            for (position, (name, value)) in fields.iter().enumerate() {
                if position > 0 || indent == 0 {
                    out.push_str(&" ".repeat(indent));
                }
                text(out, name);
                out.push(':');
                entry(out, value, indent);
            }
        }
        Value::Array(elements) => {
            for element in elements {
                out.push_str(&" ".repeat(indent));
                out.push('-');
                entry(out, element, indent);
            }
        }
        scalar => flow(out, scalar),
    }
}

/// Writes a value after its name or its dash.
fn entry(out: &mut String, value: &Value, indent: usize) {
    let mut short = String::new();
    flow(&mut short, value);
    let is_nested = matches!(value, Value::Object(_) | Value::Array(_));
    if !is_nested || (short.len() <= SHORT && indent > 0) || short.len() <= 2 {
        out.push(' ');
        out.push_str(&short);
        out.push('\n');
        return;
    }
    out.push('\n');
    let inner = indent + 2;
    if matches!(value, Value::Object(_)) {
        out.push_str(&" ".repeat(inner));
    }
    block(out, value, inner);
}

/// Writes a value in one line.
fn flow(out: &mut String, value: &Value) {
    match value {
        Value::Object(fields) if fields.is_empty() => out.push_str("{}"),
        Value::Object(fields) => {
            for (position, (name, value)) in fields.iter().enumerate() {
                out.push_str(if position == 0 { "{ " } else { ", " });
                text(out, name);
                out.push_str(": ");
                flow(out, value);
            }
            out.push_str(" }");
        }
        Value::Array(elements) => {
            out.push('[');
            for (position, element) in elements.iter().enumerate() {
                out.push_str(if position == 0 { "" } else { ", " });
                flow(out, element);
            }
            out.push(']');
        }
        Value::String(value) => text(out, value),
        other => out.push_str(&other.to_string()),
    }
}

/// Writes a text, in quotes unless every reader of YAML takes it for a text without.
fn text(out: &mut String, text: &str) {
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '_'))
        && text.bytes().all(|byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'/' | b'.' | b' ')
        })
        && !text.ends_with(' ')
        && !looks_typed(text);
    if is_plain {
        out.push_str(text);
        return;
    }
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            // What YAML does not print, what ends a line, and what would be a byte order mark.
            c if c.is_control()
                || matches!(
                    c,
                    '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
                ) =>
            {
                out.push_str(&format!("\\U{:08x}", c as u32));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Returns whether a reader may take a text for a number, a time or a word of its own.
fn looks_typed(text: &str) -> bool {
    const WORDS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let is_number = text.bytes().all(|byte| {
        byte.is_ascii_hexdigit() || matches!(byte, b'_' | b'-' | b'.' | b'o' | b'x' | b'e')
    });
    WORDS.contains(&text.to_ascii_lowercase().as_str())
        || (is_number && text.starts_with(|c: char| c.is_ascii_digit()))
}
