//! A trie of the segments of paths, packed so that a look-up reads few cache lines.
//!
//! All nodes lie in one block of bytes, in the order of a walk through the trie: what only one route leads to is next to
//! each other.
//!
//! | bytes | |
//! |---|---|
//! | 1 | the number of literals, or [`LARGE`] |
//! | 4 | the position of the node after a parameter; 0 if there is none, since that is the root's |
//! | 4 | the number of patterns that end here |
//! | 4 | the number of patterns that take the rest of the path |
//! | 4 each | the numbers of these patterns |
//! | | the literals: 4 bytes for the position of the next node, 4 for the length of the text, and the text |
//!
//! A node with many literals finds them in one [`PackedMap`] of all such nodes.

use std::collections::BTreeMap;

use crate::compile::packed_map::{PackedMap, PackedMapBuilder};

/// The most literals of a node that are compared one after the other.
const MOST_COMPARED: usize = 8;

/// Says that a node finds its literals in the map.
const LARGE: u8 = u8::MAX;

/// Finds patterns by the segments of a path.
#[derive(Debug, Default)]
pub(super) struct Trie {
    /// The first node is the root, which is before the first slash.
    nodes: Box<[u8]>,
    /// The literals of large nodes: groups are nodes, and so are the numbers.
    of_large: PackedMap,
    patterns: usize,
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
    patterns: usize,
}

#[derive(Debug, Default)]
struct Branch {
    literals: BTreeMap<Box<str>, usize>,
    parameter: Option<usize>,
    ends: Vec<u32>,
    rests: Vec<u32>,
}

/// The place where the position of a packed node is noted.
enum Reference {
    Root,
    /// Its position in the block.
    Block(usize),
    /// The literal of a large node.
    Large(u32, Box<str>),
}

/// A place in the trie, after a slash and a segment, as it lies in the block.
struct PathNode<'t> {
    literals: u8,
    parameter: Option<u32>,
    /// The numbers of patterns that end here.
    ends: &'t [[u8; 4]],
    /// The numbers of patterns that take the rest of the path.
    rests: &'t [[u8; 4]],
    /// The literals, and all nodes behind them.
    after: &'t [u8],
}

impl TrieBuilder {
    pub(super) fn new() -> Self {
        Self {
            branches: vec![Branch::default()],
            patterns: 0,
        }
    }

    pub(super) fn insert(&mut self, segments: Vec<Segment>, number: u32) {
        self.patterns += 1;
        let mut at = 0;
        for segment in segments {
            let next = self.branches.len();
            let Some(branch) = self.branches.get_mut(at) else {
                return;
            };
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
    pub(super) fn build(mut self) -> Trie {
        let (mut nodes, mut of_large) = (Vec::new(), PackedMapBuilder::default());
        let mut open = vec![(0, Reference::Root)];
        while let Some((at, reference)) = open.pop() {
            let Some(branch) = self.branches.get_mut(at).map(core::mem::take) else {
                continue;
            };
            let node = small(nodes.len());
            match reference {
                Reference::Root => {}
                Reference::Block(at) => {
                    if let Some(place) = nodes.get_mut(at..at + 4) {
                        place.copy_from_slice(&node.to_le_bytes());
                    }
                }
                Reference::Large(of, text) => of_large.insert(of, text.as_bytes(), node),
            }
            let literals = u8::try_from(branch.literals.len())
                .ok()
                .filter(|count| usize::from(*count) <= MOST_COMPARED);
            nodes.push(literals.unwrap_or(LARGE));
            if let Some(parameter) = branch.parameter {
                open.push((parameter, Reference::Block(nodes.len())));
            }
            let lengths = [0, small(branch.ends.len()), small(branch.rests.len())];
            for number in lengths.iter().chain(&branch.ends).chain(&branch.rests) {
                nodes.extend_from_slice(&number.to_le_bytes());
            }
            for (text, child) in branch.literals {
                if literals.is_none() {
                    open.push((child, Reference::Large(node, text)));
                    continue;
                }
                open.push((child, Reference::Block(nodes.len())));
                nodes.extend_from_slice(&[0; 4]);
                nodes.extend_from_slice(&small(text.len()).to_le_bytes());
                nodes.extend_from_slice(text.as_bytes());
            }
        }
        Trie {
            nodes: nodes.into(),
            of_large: of_large.build(),
            patterns: self.patterns,
        }
    }
}

impl Trie {
    pub(super) const fn is_empty(&self) -> bool {
        self.patterns == 0
    }

    /// Visits the numbers of all patterns that match a path.
    pub(super) fn find(&self, path: &str, visit: &mut dyn FnMut(u32)) {
        if let Some(rest) = path.strip_prefix('/') {
            self.descend(0, rest, visit);
        }
    }

    /// Visits what matches the rest of a path, which begins after a slash.
    fn descend(&self, mut at: u32, mut path: &str, visit: &mut dyn FnMut(u32)) {
        while let Some(node) = self.node(at) {
            if !path.is_empty() {
                visit_all(node.rests, visit);
            }
            let (segment, rest) = match path.split_once('/') {
                Some((segment, rest)) => (segment, Some(rest)),
                None => (path, None),
            };
            let literal = match node.literals {
                LARGE => self.of_large.find(at, segment.as_bytes()),
                _ => node.literal(segment.as_bytes()),
            };
            // At the end of a pattern a parameter takes at least one character.
            let parameter = node
                .parameter
                .filter(|_| rest.is_some() || !segment.is_empty());
            let Some(rest) = rest else {
                for end in literal
                    .into_iter()
                    .chain(parameter)
                    .filter_map(|next| self.node(next))
                {
                    visit_all(end.ends, visit);
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

    #[inline]
    fn node(&self, at: u32) -> Option<PathNode<'_>> {
        let (literals, after) = self.nodes.get(at as usize..)?.split_first()?;
        let (parameter, after) = number(after)?;
        let (ends, after) = number(after)?;
        let (rests, after) = number(after)?;
        let (ends, after) = after.split_at_checked(ends as usize * 4)?;
        let (rests, after) = after.split_at_checked(rests as usize * 4)?;
        Some(PathNode {
            literals: *literals,
            parameter: (parameter > 0).then_some(parameter),
            ends: ends.as_chunks().0,
            rests: rests.as_chunks().0,
            after,
        })
    }
}

impl PathNode<'_> {
    /// Returns the position of the node after a literal.
    #[inline]
    fn literal(&self, segment: &[u8]) -> Option<u32> {
        let mut after = self.after;
        for _ in 0..self.literals {
            let (next, rest) = number(after)?;
            let (length, rest) = number(rest)?;
            let (text, rest) = rest.split_at_checked(length as usize)?;
            if text == segment {
                return Some(next);
            }
            after = rest;
        }
        None
    }
}

/// Reads the number at the beginning of some bytes. Returns it, and the bytes behind it.
#[inline]
fn number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, after) = bytes.split_first_chunk()?;
    Some((u32::from_le_bytes(*number), after))
}

fn visit_all(numbers: &[[u8; 4]], visit: &mut dyn FnMut(u32)) {
    numbers
        .iter()
        .for_each(|number| visit(u32::from_le_bytes(*number)));
}

/// Returns a position in the block. Each slash of a pattern takes at most 25 bytes, so documents of 170 MB fit.
fn small(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}
