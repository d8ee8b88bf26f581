use serde::de::IgnoredAny;

use super::tree::{At, Kind, Tree, small};
use crate::problem::{DocumentPlace, Problem};

/// Reads JSON (RFC 8259).
///
/// `serde_json` checks the grammar without positions, so a scan of the valid text finds the values.
pub(super) fn read(text: &str) -> Result<Tree<'_>, Problem> {
    serde_json::from_str::<IgnoredAny>(text).map_err(|error| invalid(&error))?;
    let mut tree = Tree::new(text);
    let mut at = 0;
    while let Some(byte) = text.as_bytes().get(at) {
        let place = At::Offset(small(at));
        match byte {
            b'{' => tree.open(Kind::Map, place)?,
            b'[' => tree.open(Kind::List, place)?,
            b'}' | b']' => tree.close(),
            b'"' => {
                let length = string_length(&text[at..]);
                let quoted = &text[at..at + length];
                if quoted.contains('\\') {
                    let unescaped: String =
                        serde_json::from_str(quoted).map_err(|error| invalid(&error))?;
                    tree.scalar(Kind::Text, place, &unescaped)?;
                } else {
                    tree.scalar(Kind::Text, place, &quoted[1..length - 1])?;
                }
                at += length;
                continue;
            }
            b'a'..=b'z' | b'-' | b'0'..=b'9' => {
                let rest = &text[at..];
                let length = rest
                    .find(|c: char| matches!(c, ',' | ']' | '}') || c.is_ascii_whitespace())
                    .unwrap_or(rest.len());
                let kind = match byte {
                    b'n' => Kind::Null,
                    b't' | b'f' => Kind::Bool,
                    _ => Kind::Number,
                };
                tree.scalar(kind, place, &rest[..length])?;
                at += length;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    Ok(tree)
}

fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    for (position, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return position + 1,
            _ => {}
        }
    }
    text.len()
}

fn invalid(error: &serde_json::Error) -> Problem {
    let reason = error.to_string();
    let reason = reason.split(" at line ").next().unwrap_or_default();
    let problem = Problem::error(
        DocumentPlace::default(),
        format_args!(
            "this is not JSON, {reason}: look for quotes, brackets and commas here and above"
        ),
    );
    problem.in_line((small(error.line().max(1)), small(error.column().max(1))))
}
