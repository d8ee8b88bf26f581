//! Parses YAML into a bounded tree of nodes.

use std::collections::HashMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, StrInput};

use super::node::{Kind, Node};
use super::problem::{Place, Refused};

const MOST_NODES: usize = 1_000_000;
const DEEPEST: usize = 64;

/// Reads a single document. Aliases are expanded, up to the maximum number of nodes.
pub(super) fn read(text: &str) -> Result<Node<'_>, Refused> {
    let mut reader = Reader {
        parser: Parser::new_from_str(text),
        anchors: HashMap::new(),
        nodes: 0,
    };
    let root = reader.next(0)?;
    for event in reader.parser {
        let (event, span) = event.map_err(not_yaml)?;
        if let Event::DocumentStart(_) = event {
            let message = "the file has a second document: move it to a file of its own";
            return Err(place(span.start).refuse(message));
        }
    }
    Ok(root.unwrap_or(Kind::Null.into()))
}

struct Reader<'t> {
    parser: Parser<'t, StrInput<'t>>,
    /// The values of anchors, with the numbers of their nodes.
    anchors: HashMap<usize, (Kind<'t>, usize)>,
    nodes: usize,
}

impl<'t> Reader<'t> {
    /// Returns the next node, or `None` at the end of a list, a map or the document.
    fn next(&mut self, depth: usize) -> Result<Option<Node<'t>>, Refused> {
        let before = self.nodes;
        let (event, place) = loop {
            let Some(event) = self.parser.next() else {
                return Ok(None);
            };
            let (event, span) = event.map_err(not_yaml)?;
            match event {
                Event::StreamStart | Event::DocumentStart(_) => {}
                Event::SequenceEnd | Event::MappingEnd | Event::DocumentEnd => return Ok(None),
                _ => break (event, place(span.start)),
            }
        };
        if depth > DEEPEST {
            return Err(place.refuse("the file is nested deeper than 64 levels: write it flatter"));
        }
        self.count(1, place)?;
        let (kind, anchor) = match event {
            Event::Scalar(value, style, anchor, _) => {
                let kind = match (style, &*value) {
                    (ScalarStyle::Plain, "" | "~" | "null" | "Null" | "NULL") => Kind::Null,
                    (ScalarStyle::Plain, _) => Kind::Plain(value),
                    _ => Kind::Text(value),
                };
                (kind, anchor)
            }
            Event::SequenceStart(anchor, _) => {
                let mut elements = Vec::new();
                while let Some(element) = self.next(depth + 1)? {
                    elements.push(element);
                }
                (Kind::List(elements), anchor)
            }
            Event::MappingStart(anchor, _) => {
                let mut entries = Vec::new();
                while let Some(key) = self.next(depth + 1)? {
                    entries.extend(self.next(depth + 1)?.map(|value| (key, value)));
                }
                (Kind::Map(entries), anchor)
            }
            Event::Alias(anchor) => {
                let Some(&(_, size)) = self.anchors.get(&anchor) else {
                    let message = "the alias is inside of its own anchor: write the value out";
                    return Err(place.refuse(message));
                };
                self.count(size, place)?;
                (self.anchors[&anchor].0.clone(), 0)
            }
            _ => return Ok(None),
        };
        if anchor != 0 {
            let size = self.nodes - before;
            // Nested anchors copy their values again and again.
            self.count(size, place)?;
            self.anchors.insert(anchor, (kind.clone(), size));
        }
        Ok(Some(Node { place, kind }))
    }

    fn count(&mut self, nodes: usize, place: Place) -> Result<(), Refused> {
        self.nodes += nodes;
        match self.nodes {
            ..=MOST_NODES => Ok(()),
            _ => Err(place.refuse("the file has more than a million values: split it")),
        }
    }
}

fn not_yaml(error: ScanError) -> Refused {
    let reason = error.info().trim_end_matches('.').replace(": ", ", ");
    let fix = "look for quotes, brackets and indentation here and above";
    place(*error.marker()).refuse(format!("this is not YAML, {reason}: {fix}"))
}

fn place(marker: Marker) -> Place {
    Place {
        line: marker.line().max(1),
        column: marker.col() + 1,
    }
}
