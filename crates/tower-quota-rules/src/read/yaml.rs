use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError};

use super::tree::{Kind, Place, Tree, refused, small};
use crate::problem::Problem;

/// Reads a single document of YAML 1.2, without anchors, aliases and tags.
///
/// Aliases would let a short text expand to a long document.
pub(super) fn read(text: &str) -> Result<Tree, Problem> {
    let mut reader = YamlReader {
        tree: Tree::default(),
        documents: 0,
    };
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| invalid(&error))?;
        reader.add(event, span.start)?;
    }
    Ok(reader.tree)
}

struct YamlReader {
    tree: Tree,
    documents: usize,
}

impl YamlReader {
    fn add(&mut self, event: Event<'_>, start: Marker) -> Result<(), Problem> {
        let at = place(start);
        let refused = |text: &str| Err(refused(at, text));
        let (anchor, has_tag) = match &event {
            Event::Scalar(_, _, anchor, tag)
            | Event::SequenceStart(anchor, tag)
            | Event::MappingStart(anchor, tag) => (*anchor, tag.is_some()),
            _ => (0, false),
        };
        if anchor != 0 {
            return refused("anchors are not read: write the value where it is used");
        }
        if has_tag {
            return refused("tags are not read: remove it");
        }
        match event {
            Event::Scalar(value, style, ..) => {
                let kind = if style == ScalarStyle::Plain {
                    Kind::of_plain(&value)
                } else {
                    Kind::Text
                };
                self.tree.scalar(kind, at, &value)?;
            }
            Event::SequenceStart(..) => self.tree.open(Kind::List, at)?,
            Event::MappingStart(..) => self.tree.open(Kind::Map, at)?,
            Event::SequenceEnd | Event::MappingEnd => self.tree.close(),
            Event::Alias(_) => return refused("aliases are not read: write the value out"),
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    return refused(
                        "the file holds a second document: remove it, or keep it in a file of its own",
                    );
                }
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
        }
        Ok(())
    }
}

fn invalid(error: &ScanError) -> Problem {
    let place = place(*error.marker());
    if error.info().contains("Unicode character escape") {
        // JSON writes some characters as two escapes.
        let text = r"an escape is no character: write the character itself, or all of its digits as in \U0001F600";
        return refused(place, text);
    }
    let reason = error.info().trim_end_matches('.').replace(": ", ", ");
    let text = format_args!(
        "this is not YAML, {reason}: look for quotes, brackets and indentation here and above, and quote values with {{ or }}"
    );
    refused(place, text)
}

fn place(marker: Marker) -> Place {
    (small(marker.line().max(1)), small(marker.col() + 1))
}
