//! Bounds the regular expressions of a document before they are compiled.

use regex_syntax::hir::{Class, Hir, HirKind};

use super::tree::Tree;

const MAX_EXPRESSIONS: usize = 10_000;

/// The maximum number of parts of all expressions. A part takes some hundred bytes, so the total is
/// below 100 MB.
const MAX_PARTS: u64 = 200_000;

/// The maximum number of counted parts of an expression. The compiler refuses a larger expression.
const MOST_OF_ONE: u64 = 20_000;

pub(super) fn excess(tree: &Tree) -> Option<(String, &'static str)> {
    let (mut count, mut parts) = (0, 0_u64);
    for text in tree.texts_of("regex") {
        count += 1;
        // Count 1 for an invalid expression, which is never compiled.
        parts = parts.saturating_add(
            regex_syntax::parse(text).map_or(1, |expression| size(&expression).min(MOST_OF_ONE)),
        );
    }
    if count > MAX_EXPRESSIONS {
        let message = format!(
            "the document has {count} expressions, and at most {MAX_EXPRESSIONS} are compiled"
        );
        return Some((message, "use path patterns"));
    }
    let message = || "the expressions of the document are too large together".into();
    (parts > MAX_PARTS).then(|| {
        (
            message(),
            "repeat less, write [0-9a-z] for \\w, or use path patterns",
        )
    })
}

/// Returns the number of characters and ranges of an expression, with expanded repetitions.
fn size(expression: &Hir) -> u64 {
    match expression.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len() as u64,
        HirKind::Class(Class::Unicode(class)) => class.ranges().len() as u64,
        HirKind::Class(Class::Bytes(class)) => class.ranges().len() as u64,
        HirKind::Repetition(repeated) => {
            let times = repeated
                .max
                .unwrap_or(repeated.min.saturating_add(1))
                .max(1);
            size(&repeated.sub).saturating_mul(times.into())
        }
        HirKind::Capture(group) => size(&group.sub),
        HirKind::Concat(all) | HirKind::Alternation(all) => all
            .iter()
            .fold(0, |sum, part| size(part).saturating_add(sum)),
    }
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn repetitions_are_written_out() {
        for (text, parts) in [
            ("abc", 3),
            ("(?:a|bc){10}", 30),
            ("[a-z]+", 2),
            ("(?:[a-c]{4}){5}", 20),
            ("", 1),
        ] {
            assert_eq!(
                regex_syntax::parse(text).map(|expression| size(&expression)),
                Ok(parts),
                "{text}"
            );
        }
    }
}
