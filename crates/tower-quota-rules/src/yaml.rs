//! Prints YAML, with maps and lists in blocks.

use serde_json::Value;

pub(crate) fn print(value: &Value) -> String {
    let mut out = String::new();
    write(&mut out, value, "");
    out
}

/// Writes a value. Its first line is indented already.
fn write(out: &mut String, value: &Value, indent: &str) {
    let deeper = format!("{indent}  ");
    let mut start = "";
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                *out += core::mem::replace(&mut start, indent);
                *out += &text(name);
                *out += &match value {
                    Value::Object(fields) if !fields.is_empty() => format!(":\n{deeper}"),
                    Value::Array(elements) if !elements.is_empty() => format!(":\n{deeper}"),
                    _ => ": ".into(),
                };
                write(out, value, &deeper);
            }
        }
        Value::Array(elements) if !elements.is_empty() => {
            for element in elements {
                *out += core::mem::replace(&mut start, indent);
                *out += "- ";
                write(out, element, &deeper);
            }
        }
        Value::String(value) => *out += &(text(value) + "\n"),
        other => *out += &format!("{other}\n"),
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
    // Escape these characters, which JSON leaves as they are and YAML does not allow.
    let is_hidden =
        |c: char| c.is_control() || "\u{2028}\u{2029}\u{feff}\u{fffe}\u{ffff}".contains(c);
    let quoted = Value::from(text).to_string();
    let escaped = quoted.chars().map(|c| match c {
        c if is_hidden(c) => format!("\\u{:04x}", u32::from(c)),
        c => c.into(),
    });
    escaped.collect()
}
