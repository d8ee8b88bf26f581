//! YAML to a tree.

use saphyr_parser::{Event, Marker, Parser, ScalarStyle};

use super::tree::{At, Exceeded, Kind, Tree, small};
use crate::problem::{Place, Problem};

/// Reads YAML 1.2: one document, without anchors, aliases and tags.
///
/// They would let a short text stand for a long document. Rules need none of them.
pub(super) fn read(text: &str) -> Result<Tree, Problem> {
    let bounded = |bound: Exceeded| bound.problem(text);
    let mut tree = Tree::default();
    let mut documents = 0;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            refused(
                *error.marker(),
                format_args!(
                    "this is not YAML, {}: look for quotes, brackets and indentation here and above",
                    reason(error.info())
                ),
            )
        })?;
        let at = At::Line(small(span.start.line()), small(span.start.col() + 1));
        let anchored = |anchor: usize, has_tag: bool| match (anchor, has_tag) {
            (0, false) => Ok(()),
            (0, true) => Err(refused(span.start, format_args!("tags are not read: remove it"))),
            _ => Err(refused(span.start, format_args!("anchors are not read: write the value where it is used"))),
        };
        match event {
            Event::Scalar(value, style, anchor, tag) => {
                anchored(anchor, tag.is_some())?;
                let kind = match style {
                    ScalarStyle::Plain if matches!(&*value, "" | "~" | "null") => Kind::Null,
                    ScalarStyle::Plain => Kind::Plain,
                    _ => Kind::Text,
                };
                tree.scalar(kind, at, &value).map_err(bounded)?;
            }
            Event::SequenceStart(anchor, tag) => {
                anchored(anchor, tag.is_some())?;
                tree.open(Kind::List, at).map_err(bounded)?;
            }
            Event::MappingStart(anchor, tag) => {
                anchored(anchor, tag.is_some())?;
                tree.open(Kind::Map, at).map_err(bounded)?;
            }
            Event::SequenceEnd | Event::MappingEnd => tree.close(),
            Event::Alias(_) => {
                return Err(refused(span.start, format_args!("aliases are not read: write the value out")));
            }
            Event::DocumentStart(_) => {
                documents += 1;
                if documents > 1 {
                    let text =
                        format_args!("the file holds a second document: remove it, or keep it in a file of its own");
                    return Err(refused(span.start, text));
                }
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
        }
    }
    Ok(tree)
}

/// Returns the parser's reason as a part of a sentence.
fn reason(info: &str) -> String {
    info.trim_end_matches('.').replace(": ", ", ")
}

fn refused(at: Marker, text: core::fmt::Arguments<'_>) -> Problem {
    Problem::error(Place::default(), text).in_line((small(at.line().max(1)), small(at.col() + 1)))
}
