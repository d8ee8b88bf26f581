//! YAML as a bounded tree of nodes with their places.

use std::collections::HashMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle};

use super::problem::Place;

const MOST_NODES: usize = 1_000_000;
const DEEPEST: usize = 64;

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) place: Place,
    pub(super) kind: Kind,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Null,
    /// A scalar in quotes, or a block.
    Text(String),
    /// A scalar without quotes. The type depends on the field.
    Plain(String),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
}

/// Reads a single document. Aliases are expanded, up to the maximum number of nodes.
pub(super) fn read(text: &str) -> Result<Node, (Place, String)> {
    let mut reader = Reader::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            let reason = error.info().trim_end_matches('.').replace(": ", ", ");
            let fix = "look for quotes, brackets and indentation here and above";
            (
                place(*error.marker()),
                format!("this is not YAML, {reason}: {fix}"),
            )
        })?;
        let at = place(span.start);
        reader
            .add(event, at)
            .map_err(|message| (at, message.to_owned()))?;
    }
    Ok(reader.root.unwrap_or(Node {
        place: Place::default(),
        kind: Kind::Null,
    }))
}

#[derive(Default)]
struct Reader {
    root: Option<Node>,
    open: Vec<Open>,
    anchors: HashMap<usize, (Node, usize)>,
    nodes: usize,
}

/// A list or map whose end is not read yet.
struct Open {
    node: Node,
    key: Option<Node>,
    anchor: usize,
    nodes_before: usize,
}

impl Reader {
    fn add(&mut self, event: Event<'_>, place: Place) -> Result<(), &'static str> {
        match event {
            Event::Scalar(value, style, anchor, _) => {
                let kind = match (style, value.as_ref()) {
                    (ScalarStyle::Plain, "" | "~" | "null" | "Null" | "NULL") => Kind::Null,
                    (ScalarStyle::Plain, _) => Kind::Plain(value.into_owned()),
                    _ => Kind::Text(value.into_owned()),
                };
                self.count(1)?;
                self.finish(Node { place, kind }, anchor, 1)
            }
            Event::SequenceStart(anchor, _) => self.begin(place, Kind::List(Vec::new()), anchor),
            Event::MappingStart(anchor, _) => self.begin(place, Kind::Map(Vec::new()), anchor),
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(open) => {
                    let size = self.nodes - open.nodes_before;
                    self.finish(open.node, open.anchor, size)
                }
                None => Ok(()),
            },
            Event::Alias(anchor) => {
                let Some((node, size)) = self.anchors.get(&anchor).cloned() else {
                    return Err("the alias is inside of its own anchor: write the value out");
                };
                self.count(size)?;
                self.finish(node, 0, size)
            }
            Event::DocumentStart(_) if self.root.is_some() => {
                Err("the file has a second document: move it to a file of its own")
            }
            _ => Ok(()),
        }
    }

    fn begin(&mut self, place: Place, kind: Kind, anchor: usize) -> Result<(), &'static str> {
        if self.open.len() >= DEEPEST {
            return Err("the file is nested deeper than 64 levels: write it flatter");
        }
        self.open.push(Open {
            node: Node { place, kind },
            key: None,
            anchor,
            nodes_before: self.nodes,
        });
        self.count(1)
    }

    fn count(&mut self, nodes: usize) -> Result<(), &'static str> {
        self.nodes += nodes;
        if self.nodes > MOST_NODES {
            return Err("the file has more than a million values: split it");
        }
        Ok(())
    }

    /// Adds a complete node to its parent.
    fn finish(&mut self, node: Node, anchor: usize, size: usize) -> Result<(), &'static str> {
        if anchor != 0 {
            // Nested anchors copy their values again and again.
            self.count(size)?;
            self.anchors.insert(anchor, (node.clone(), size));
        }
        let Some(parent) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match &mut parent.node.kind {
            Kind::Map(entries) => match parent.key.take() {
                Some(key) => entries.push((key, node)),
                None => parent.key = Some(node),
            },
            Kind::List(elements) => elements.push(node),
            _ => {}
        }
        Ok(())
    }
}

fn place(marker: Marker) -> Place {
    Place {
        line: marker.line().max(1),
        column: marker.col() + 1,
    }
}
