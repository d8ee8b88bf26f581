//! Prints YAML, with maps and lists in blocks.

use serde_json::Value;

pub(crate) fn print(value: &Value) -> String {
    lines(value).join("\n") + "\n"
}

fn lines(value: &Value) -> Vec<String> {
    match value {
        Value::Object(fields) if !fields.is_empty() => fields.iter().flat_map(field).collect(),
        Value::Array(elements) if !elements.is_empty() => {
            let element = |element| {
                let starts = core::iter::once("- ").chain(core::iter::repeat("  "));
                starts
                    .zip(lines(element))
                    .map(|(start, line)| format!("{start}{line}"))
            };
            elements.iter().flat_map(element).collect()
        }
        Value::String(value) => vec![text(value)],
        other => vec![other.to_string()],
    }
}

fn field((name, value): (&String, &Value)) -> Vec<String> {
    let (name, inner) = (text(name), lines(value));
    match value {
        Value::Object(_) | Value::Array(_) if !matches!(inner[0].as_str(), "{}" | "[]") => {
            let nested = inner.iter().map(|line| format!("  {line}"));
            core::iter::once(format!("{name}:")).chain(nested).collect()
        }
        _ => vec![format!("{name}: {}", inner[0])],
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
