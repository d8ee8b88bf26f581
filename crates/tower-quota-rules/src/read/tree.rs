use std::collections::HashMap;

use crate::problem::{DocumentPlace, Problem, Step};

pub(super) const MAX_NESTING: usize = 32;

const MAX_NODES: usize = 32_000_000;

const MAX_DUPLICATES: usize = 1_001;

/// The nodes of a text in a list, parents before children. A map alternates keys and values.
#[derive(Default)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
    texts: String,
    open: Vec<u32>,
}

/// A node. Its number is its position in the tree.
#[derive(Clone, Copy, Debug)]
struct Node {
    kind: Kind,
    at: Place,
    end: u32,
    start: u32,
    length: u32,
}

/// A line and a column, both from 1.
pub(super) type Place = (u32, u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    Text,
    /// A scalar without quotes. Its type depends on the field.
    Plain,
    List,
    Map,
}

impl Kind {
    pub(super) fn of_plain(text: &str) -> Self {
        if matches!(text, "" | "~" | "null") {
            Self::Null
        } else {
            Self::Plain
        }
    }
}

impl Tree {
    // These methods build the tree.

    pub(super) fn scalar(&mut self, kind: Kind, at: Place, text: &str) -> Result<(), Problem> {
        let start = small(self.texts.len());
        self.texts.push_str(text);
        self.add(kind, at, start, small(text.len()))
    }

    pub(super) fn open(&mut self, kind: Kind, at: Place) -> Result<(), Problem> {
        if self.open.len() >= MAX_NESTING {
            let text = "the document is nested deeper than 32 levels: write it flatter";
            return Err(refused(at, text));
        }
        self.open.push(small(self.nodes.len()));
        self.add(kind, at, 0, 0)
    }

    pub(super) fn close(&mut self) {
        let end = small(self.nodes.len());
        if let Some(node) = self
            .open
            .pop()
            .and_then(|open| self.nodes.get_mut(open as usize))
        {
            node.end = end;
        }
    }

    fn add(&mut self, kind: Kind, at: Place, start: u32, length: u32) -> Result<(), Problem> {
        if self.nodes.len() >= MAX_NODES {
            let text = "the document has more than 32 million values: split it";
            return Err(refused(at, text));
        }
        let end = small(self.nodes.len() + 1);
        self.nodes.push(Node {
            kind,
            at,
            end,
            start,
            length,
        });
        Ok(())
    }

    // These methods read the tree.

    fn node(&self, number: u32) -> Option<&Node> {
        self.nodes.get(number as usize)
    }

    pub(super) fn kind(&self, number: u32) -> Kind {
        self.node(number).map_or(Kind::Null, |node| node.kind)
    }

    pub(super) fn text(&self, number: u32) -> &str {
        let text = self.node(number).and_then(|node| {
            let start = node.start as usize;
            self.texts.get(start..start + node.length as usize)
        });
        text.unwrap_or_default()
    }

    pub(super) fn end(&self, number: u32) -> u32 {
        self.node(number).map_or(number + 1, |node| node.end)
    }

    pub(super) fn elements(&self, list: u32) -> impl Iterator<Item = u32> {
        self.children(list, Kind::List)
    }

    pub(super) fn entries(&self, map: u32) -> impl Iterator<Item = (u32, u32)> {
        let mut children = self.children(map, Kind::Map);
        core::iter::from_fn(move || Some((children.next()?, children.next()?)))
    }

    /// Returns the children of a node of this kind. Another node has no children.
    fn children(&self, parent: u32, kind: Kind) -> impl Iterator<Item = u32> {
        let end = if self.kind(parent) == kind {
            self.end(parent)
        } else {
            parent
        };
        let first = (parent + 1 < end).then_some(parent + 1);
        core::iter::successors(first, move |child| {
            Some(self.end(*child)).filter(|next| *next < end)
        })
    }

    pub(super) fn value(&self, map: u32, key: &str) -> Option<u32> {
        self.entries(map)
            .find(|(found, _)| self.text(*found) == key)
            .map(|(_, value)| value)
    }

    /// Returns the values of a key in all maps.
    ///
    /// The iterator may have more values, since it follows any scalar with this text. Use it for a
    /// bound only.
    pub(super) fn texts_of<'t>(&'t self, key: &'t str) -> impl Iterator<Item = &'t str> {
        let nodes = 0..small(self.nodes.len());
        nodes
            .filter(move |node| self.text(*node) == key)
            .map(|node| self.text(node + 1))
    }

    /// Returns the repeated keys of maps, after the first key with the same text.
    pub(super) fn duplicates(&self) -> Vec<(u32, u32)> {
        let mut found = Vec::new();
        let nodes = (0..).zip(&self.nodes);
        for (map, _) in nodes.filter(|(_, node)| node.kind == Kind::Map) {
            let mut keys = self.entries(map).map(|(key, _)| key);
            let mut first: HashMap<&str, u32> = HashMap::new();
            // Most maps have a single field, and need no hash.
            let Some(key) = keys.next() else { continue };
            for other in keys {
                if first.is_empty() {
                    first.insert(self.text(key), key);
                }
                let first = *first.entry(self.text(other)).or_insert(other);
                if first != other {
                    found.push((first, other));
                }
            }
            if found.len() > MAX_DUPLICATES {
                found.truncate(MAX_DUPLICATES);
                return found;
            }
        }
        found
    }

    pub(super) fn place(&self, number: u32) -> DocumentPlace {
        let mut steps = Vec::new();
        let mut at = 0;
        while at != number {
            let within = |child: u32| (child..self.end(child)).contains(&number);
            let mut next = None;
            for (index, child) in self.elements(at).enumerate() {
                if within(child) {
                    next = Some((Step::Index(index), child));
                }
            }
            for (key, value) in self.entries(at) {
                if key == number || within(value) {
                    let child = if key == number { key } else { value };
                    next = Some((Step::Field(self.text(key).into()), child));
                }
            }
            let Some((step, child)) = next else { break };
            steps.push(step);
            at = child;
        }
        steps.into_iter().collect()
    }

    pub(super) fn position(&self, number: u32) -> (u32, u32) {
        let node = self.node(number);
        node.map_or((1, 1), |node| node.at)
    }
}

pub(super) fn refused(at: Place, text: impl core::fmt::Display) -> Problem {
    Problem::error(DocumentPlace::default(), text).in_line(at)
}

pub(super) fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
