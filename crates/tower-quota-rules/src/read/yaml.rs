//! YAML to a tree.

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError};

use super::entry_lines::EntryLines;
use super::tree::{At, Exceeded, Kind, Tree, small};
use crate::problem::{Place, Problem};

/// The fewest lines of one entry each that are worth a copy of the rest of the text.
const FEWEST_LINES: usize = 1_000;

/// Reads YAML 1.2: one document, without anchors, aliases and tags.
///
/// They would let a short text stand for a long document. Rules need none of them.
pub(super) fn read(text: &str) -> Result<Tree, Problem> {
    if let Some(lines) = EntryLines::find(text, FEWEST_LINES)
        && let Some(tree) = read_around(text, &lines)?
    {
        return Ok(tree);
    }
    read_all(text)
}

fn read_all(text: &str) -> Result<Tree, Problem> {
    let mut reader = YamlReader {
        text,
        lines: None,
        tree: Tree::default(),
        documents: 0,
    };
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| reader.invalid(&error))?;
        reader.add(event, span.start)?;
    }
    Ok(reader.tree)
}

/// Reads a text with a run of lines that are one entry each. Returns `None` if they are not.
fn read_around(text: &str, lines: &EntryLines<'_>) -> Result<Option<Tree>, Problem> {
    let mut reader = YamlReader {
        text,
        lines: Some(lines),
        tree: Tree::default(),
        documents: 0,
    };
    // The nodes and the depth of the tree before the first of the lines.
    let mut before = None;
    let mut is_added = false;
    for event in Parser::new_from_str(&lines.rest()) {
        // It may follow from what is left out: the parser finds it again.
        let Ok((event, span)) = event else {
            return Ok(None);
        };
        if reader.place(span.start) == lines.start() && matches!(event, Event::Scalar(..)) {
            before = Some((reader.tree.len(), reader.tree.depth()));
        }
        if !is_added && lines.is_behind(span.start.line()) {
            let Some((start, depth)) = before else {
                return Ok(None);
            };
            is_added = reader.tree.depth() == depth
                && lines.are_read_as(&reader.tree, start)
                && lines
                    .add_others(&mut reader.tree)
                    .map_err(|bound| bound.problem(text))?;
            if !is_added {
                return Ok(None);
            }
        }
        reader.add(event, span.start)?;
    }
    Ok(is_added.then_some(reader.tree))
}

/// The tree that events are added to.
struct YamlReader<'s> {
    text: &'s str,
    /// The lines that the parser does not read.
    lines: Option<&'s EntryLines<'s>>,
    tree: Tree,
    documents: usize,
}

impl YamlReader<'_> {
    fn add(&mut self, event: Event<'_>, start: Marker) -> Result<(), Problem> {
        let at = self.place(start);
        let bounded = |bound: Exceeded| bound.problem(self.text);
        let anchored = |anchor: usize, has_tag: bool| match (anchor, has_tag) {
            (0, false) => Ok(()),
            (0, true) => Err(refused(at, format_args!("tags are not read: remove it"))),
            _ => Err(refused(
                at,
                format_args!("anchors are not read: write the value where it is used"),
            )),
        };
        match event {
            Event::Scalar(value, style, anchor, tag) => {
                anchored(anchor, tag.is_some())?;
                let kind = if style == ScalarStyle::Plain {
                    Kind::of_plain(&value)
                } else {
                    Kind::Text
                };
                self.tree.scalar(kind, at, &value).map_err(bounded)?;
            }
            Event::SequenceStart(anchor, tag) => {
                anchored(anchor, tag.is_some())?;
                self.tree.open(Kind::List, at).map_err(bounded)?;
            }
            Event::MappingStart(anchor, tag) => {
                anchored(anchor, tag.is_some())?;
                self.tree.open(Kind::Map, at).map_err(bounded)?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.tree.close(),
            Event::Alias(_) => {
                return Err(refused(
                    at,
                    format_args!("aliases are not read: write the value out"),
                ));
            }
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    let text = format_args!(
                        "the file holds a second document: remove it, or keep it in a file of its own"
                    );
                    return Err(refused(at, text));
                }
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
        }
        Ok(())
    }

    fn invalid(&self, error: &ScanError) -> Problem {
        let reason = reason(error.info());
        let text = format_args!(
            "this is not YAML, {reason}: look for quotes, brackets and indentation here and above"
        );
        refused(self.place(*error.marker()), text)
    }

    fn place(&self, marker: Marker) -> At {
        let line = self
            .lines
            .map_or(marker.line(), |lines| lines.line(marker.line()));
        At::Line(small(line), small(marker.col() + 1))
    }
}

/// Returns the parser's reason as a part of a sentence.
fn reason(info: &str) -> String {
    info.trim_end_matches('.').replace(": ", ", ")
}

fn refused(at: At, text: core::fmt::Arguments<'_>) -> Problem {
    let (line, column) = at.line_and_column("");
    Problem::error(Place::default(), text).in_line((line.max(1), column))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use proptest::collection::vec;
    use proptest::prelude::{prop_assert_eq, proptest};
    use proptest::sample::select;

    use super::super::entry_lines::EntryLines;
    use super::{read_all, read_around};

    /// Texts before a run of lines: in some of them the lines are no entries of a map.
    const BEFORE: [&str; 12] = [
        "",
        "overrides:\n",
        "a: { b: c }\noverrides: # all\n\n",
        "- a: b\n",
        "a: {\n",
        "a: [\n",
        "a: |\n",
        "a: >-\n  b: { c: d }\n",
        "a: \"\n",
        "a:\n  b\n",
        "a: &b\n",
        "? a\n: b\n",
    ];
    const BEHIND: [&str; 8] = [
        "",
        "z: 1\n",
        "  z: [1, 2]\n",
        "}\n",
        "]\n",
        "  - z\n",
        "\"\n",
        "---\na: b\n",
    ];

    #[test]
    fn overrides_in_lines_are_read_around() {
        let mut text = String::from("limits: [a]\noverrides:\n");
        for key in 0..9 {
            writeln!(
                text,
                "  sk_{key}: {{ tier: pro, limits: {{ \"a: b\": 5/minute burst 7 }} }}"
            )
            .expect("a string");
        }
        text.push_str("routes: []\n");
        let lines = EntryLines::find(&text, 3).expect("a run");
        let around = read_around(&text, &lines).expect("valid").expect("entries");
        assert_eq!(
            format!("{around:?}"),
            format!("{:?}", read_all(&text).expect("valid"))
        );
    }

    proptest! {
        #[test]
        fn run_of_lines_reads_as_parser_reads_it(
            before in select(&BEFORE[..]),
            lines in vec("[ab1~\"-]{1,2}( [a#:])?: \\{ ?([ab\"]{1,3}: ([-b1{}: ]{0,3}|\\{ a: null \\}|\"a b\")(, )?){0,2} ?\\}", 3..6),
            indent in "( |  |   )?",
            behind in select(&BEHIND[..]),
        ) {
            let mut text = String::from(before);
            for line in &lines {
                writeln!(text, "{indent}{line}").expect("a string");
            }
            text.push_str(behind);
            if let Some(lines) = EntryLines::find(&text, 3) {
                let around = read_around(&text, &lines);
                if let Ok(None) = around {
                    return Ok(());
                }
                let (around, all) = (around.map(Option::unwrap_or_default), read_all(&text));
                prop_assert_eq!(format!("{around:?}"), format!("{all:?}"), "{}", text);
            }
        }
    }
}
