//! A trie of the segments of paths, packed so that a look-up reads few cache lines.
//!
//! Nodes, literals, their texts and the numbers that end there lie in four lists, each in the order of a walk through the
//! trie: what only one route leads to is next to each other. A node with many literals finds them in one [`PackedMap`]
//! of all such nodes.

use std::collections::BTreeMap;

use core::ops::Range;

use crate::compile::packed_map::{PackedMap, PackedMapBuilder};

/// The most literals of a node that are compared one after the other.
const MOST_COMPARED: usize = 8;

/// Finds patterns by the segments of a path.
#[derive(Debug, Default)]
pub(super) struct Trie {
    /// The first is the root, which is before the first slash.
    nodes: Vec<PathNode>,
    literals: Vec<Literal>,
    texts: Vec<u8>,
    numbers: Vec<u32>,
    /// The literals of large nodes: groups are nodes, and so are the numbers.
    of_large: PackedMap,
}

/// A place in the trie, after a slash and a segment.
#[derive(Clone, Debug, Default)]
struct PathNode {
    literals: Span,
    is_large: bool,
    parameter: Option<u32>,
    /// The numbers of patterns that end here.
    ends: Span,
    /// The numbers of patterns that take the rest of the path.
    rests: Span,
}

#[derive(Debug)]
struct Literal {
    text: Span,
    node: u32,
}

/// A part of one of the lists.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    start: u32,
    end: u32,
}

/// A segment of a pattern.
pub(super) enum Segment {
    Literal(String),
    Parameter,
    Rest,
}

/// The trie while patterns are added.
#[derive(Debug)]
pub(super) struct TrieBuilder {
    branches: Vec<Branch>,
}

#[derive(Debug, Default)]
struct Branch {
    literals: BTreeMap<Box<str>, usize>,
    parameter: Option<usize>,
    ends: Vec<u32>,
    rests: Vec<u32>,
}

/// The place where the number of a packed node is noted.
#[derive(Clone, Copy)]
enum Reference {
    Root,
    Literal(usize),
    Parameter(usize),
}

impl TrieBuilder {
    pub(super) fn new() -> Self {
        Self { branches: vec![Branch::default()] }
    }

    pub(super) fn insert(&mut self, segments: Vec<Segment>, number: u32) {
        let mut at = 0;
        for segment in segments {
            let next = self.branches.len();
            let Some(branch) = self.branches.get_mut(at) else { return };
            at = match segment {
                Segment::Literal(text) => *branch.literals.entry(text.into()).or_insert(next),
                Segment::Parameter => *branch.parameter.get_or_insert(next),
                Segment::Rest => return branch.rests.push(number),
            };
            if at == next {
                self.branches.push(Branch::default());
            }
        }
        if let Some(branch) = self.branches.get_mut(at) {
            branch.ends.push(number);
        }
    }

    /// Packs the nodes in the order of a walk. It keeps a list of its own: patterns may be long.
    pub(super) fn build(self) -> Trie {
        let mut trie = Trie::default();
        let mut of_large = PackedMapBuilder::default();
        let mut open = vec![(0, Reference::Root)];
        while let Some((at, reference)) = open.pop() {
            let Some(branch) = self.branches.get(at) else { continue };
            let node = trie.nodes.len();
            trie.refer(reference, small(node));
            if let Some(parameter) = branch.parameter {
                open.push((parameter, Reference::Parameter(node)));
            }
            let first = trie.literals.len();
            for (text, child) in branch.literals.iter().rev() {
                open.push((*child, Reference::Literal(trie.literals.len())));
                let text = append(&mut trie.texts, text.as_bytes());
                trie.literals.push(Literal { text, node: 0 });
            }
            let ends = append(&mut trie.numbers, &branch.ends);
            let rests = append(&mut trie.numbers, &branch.rests);
            let literals = Span::new(first..trie.literals.len());
            let is_large = branch.literals.len() > MOST_COMPARED;
            trie.nodes.push(PathNode { literals, is_large, parameter: None, ends, rests });
        }
        for (number, node) in (0..).zip(&trie.nodes).filter(|(_, node)| node.is_large) {
            for literal in trie.literals.get(node.literals.range()).unwrap_or_default() {
                of_large.insert(number, trie.texts.get(literal.text.range()).unwrap_or_default(), literal.node);
            }
        }
        trie.of_large = of_large.build();
        trie
    }
}

impl Trie {
    fn refer(&mut self, reference: Reference, node: u32) {
        match reference {
            Reference::Root => {}
            Reference::Literal(at) => {
                if let Some(literal) = self.literals.get_mut(at) {
                    literal.node = node;
                }
            }
            Reference::Parameter(at) => {
                if let Some(parent) = self.nodes.get_mut(at) {
                    parent.parameter = Some(node);
                }
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Visits the numbers of all patterns that match a path.
    pub(super) fn find(&self, path: &str, visit: &mut dyn FnMut(u32)) {
        if let Some(rest) = path.strip_prefix('/') {
            self.descend(0, rest, visit);
        }
    }

    /// Visits what matches the rest of a path, which begins after a slash.
    fn descend(&self, mut at: u32, mut path: &str, visit: &mut dyn FnMut(u32)) {
        while let Some(node) = self.nodes.get(at as usize) {
            if !path.is_empty() {
                self.visit_all(node.rests, visit);
            }
            let (segment, rest) = match path.split_once('/') {
                Some((segment, rest)) => (segment, Some(rest)),
                None => (path, None),
            };
            let literal = self.literal(at, node, segment.as_bytes());
            // At the end of a pattern a parameter takes at least one character.
            let parameter = node.parameter.filter(|_| rest.is_some() || !segment.is_empty());
            let Some(rest) = rest else {
                for end in literal.into_iter().chain(parameter).filter_map(|next| self.nodes.get(next as usize)) {
                    self.visit_all(end.ends, visit);
                }
                return;
            };
            at = match (literal, parameter) {
                (Some(literal), Some(parameter)) => {
                    self.descend(literal, rest, visit);
                    parameter
                }
                (Some(only), None) | (None, Some(only)) => only,
                (None, None) => return,
            };
            path = rest;
        }
    }

    fn literal(&self, at: u32, node: &PathNode, segment: &[u8]) -> Option<u32> {
        if node.is_large {
            return self.of_large.find(at, segment);
        }
        let literals = self.literals.get(node.literals.range())?;
        let is_it = |literal: &&Literal| self.texts.get(literal.text.range()) == Some(segment);
        literals.iter().find(is_it).map(|literal| literal.node)
    }

    fn visit_all(&self, numbers: Span, visit: &mut dyn FnMut(u32)) {
        self.numbers.get(numbers.range()).unwrap_or_default().iter().for_each(|number| visit(*number));
    }
}

impl Span {
    fn new(range: Range<usize>) -> Self {
        Self { start: small(range.start), end: small(range.end) }
    }

    const fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// Adds elements to a list, and returns where they are.
fn append<T: Copy>(list: &mut Vec<T>, added: &[T]) -> Span {
    let start = list.len();
    list.extend_from_slice(added);
    Span::new(start..list.len())
}

/// Returns a position in a list. Documents are shorter than 4 GB.
fn small(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}
