use core::fmt;
use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;

use super::tree::{Kind, Tree};
use super::yaml;
use crate::check::{KnownNames, repeated_limit};
use crate::problem::{DocumentPlace, Problem, Problems, Step};

/// A document that is read from a tree, and the nodes that it lacks.
pub(crate) struct Reading<'t> {
    pub(super) tree: &'t Tree,
    pub(super) left_out: BTreeSet<u32>,
    pub(crate) problems: Problems,
}

pub(crate) fn tree(source: &str, max_bytes: usize) -> Result<Tree, Problems> {
    // Refuse longer texts, because nodes store positions in 32 bits.
    let most = max_bytes.min(u32::MAX as usize);
    let text = source.strip_prefix('\u{feff}').unwrap_or(source);
    let refused = |text: fmt::Arguments<'_>| Err(Problem::error(DocumentPlace::default(), text));
    let tree = if source.len() > most {
        refused(format_args!(
            "the document has {} bytes, and at most {most} are read: split it, or allow more in code",
            source.len()
        ))
    } else if is_toml(text) {
        refused(format_args!(
            "this is TOML, and rules are written in YAML: convert it by `yq -p toml -o yaml`"
        ))
    } else {
        yaml::read(text)
    };
    tree.map_err(|problem| {
        let mut problems = Problems::default();
        problems.push(problem);
        problems
    })
}

fn is_toml(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with('#'));
    first.is_some_and(|line| {
        let is_assignment = line
            .split_once('=')
            .is_some_and(|(name, _)| !name.contains([':', '{', '"', '\'']));
        is_assignment || (line.starts_with('[') && line.ends_with(']') && line.len() > 2)
    })
}

impl<'t> Reading<'t> {
    pub(crate) fn new(tree: &'t Tree) -> Self {
        Self {
            tree,
            left_out: BTreeSet::new(),
            problems: Problems::default(),
        }
    }

    /// Returns the names in the text, if a part of it is left out.
    pub(crate) fn known_names(&self) -> KnownNames {
        if self.left_out.is_empty() {
            return KnownNames::default();
        }
        let tree = self.tree;
        let tiers = tree.value(0, "tiers").into_iter();
        let tiers = tiers.flat_map(|tiers| tree.entries(tiers));
        KnownNames {
            limits: named_limits(tree)
                .map(|(_, name)| tree.text(name).to_owned())
                .collect(),
            tiers: tiers.map(|(key, _)| tree.text(key).to_owned()).collect(),
            is_partial: true,
        }
    }

    /// Reports repeated names of limits after unreadable parts, since the check does not see all
    /// limits.
    pub(crate) fn repeated_limits(&mut self) {
        if self.left_out.is_empty() {
            return;
        }
        let tree = self.tree;
        let mut first: HashMap<&str, u32> = HashMap::new();
        for (limit, name) in named_limits(tree).filter(|(_, name)| !self.left_out.contains(name)) {
            let text = tree.text(name);
            let first = *first.entry(text).or_insert(limit);
            if first == limit {
                continue;
            }
            // Only count the problem, because finding its place takes time that grows with the text.
            if self.problems.is_full() {
                self.problems.count(1);
                continue;
            }
            let problem = repeated_limit(tree.place(name), text, &tree.place(first));
            self.problems.push(problem.in_line(tree.position(name)));
        }
    }

    /// Sets the line, the column and the path of a problem.
    ///
    /// Returns false if the problem is in an element with unreadable parts, since they may be its
    /// cause.
    pub(crate) fn locate(&self, problem: &mut Problem) -> bool {
        let (tree, mut node) = (self.tree, 0);
        for step in problem.place.steps() {
            let kept = |node: &u32| !self.left_out.contains(node);
            let child = match step {
                Step::Index(index) => tree.elements(node).filter(kept).nth(*index),
                Step::Field(name) => tree.value(node, name),
            };
            // A single value may stand for a list.
            let Some(child) = child.or((*step == Step::Index(0)).then_some(node)) else {
                break;
            };
            let is_element = node != 0;
            node = child;
            if is_element && self.has_gaps(node) {
                return false;
            }
        }
        // Report a missing field at the place of its map.
        problem.path = tree.place(node).to_string();
        let (line, column) = tree.position(node);
        (problem.line, problem.column) = (Some(line), Some(column));
        true
    }

    fn has_gaps(&self, node: u32) -> bool {
        let inside = (Bound::Included(node), Bound::Excluded(self.tree.end(node)));
        matches!(self.tree.kind(node), Kind::List | Kind::Map)
            && self.left_out.range(inside).next().is_some()
    }
}

fn named_limits(tree: &Tree) -> impl Iterator<Item = (u32, u32)> {
    let routes = tree
        .value(0, "routes")
        .into_iter()
        .flat_map(|routes| tree.elements(routes));
    let lists = tree
        .value(0, "limits")
        .into_iter()
        .chain(routes.filter_map(|route| tree.value(route, "limits")));
    let limits = lists.flat_map(|list| tree.elements(list));
    limits.filter_map(|limit| Some((limit, tree.value(limit, "name")?)))
}
