use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;

use super::elements::{Elements, too_long};
use super::tree::{Kind, Tree};
use super::{json, yaml};
use crate::check::{KnownNames, repeated_limit};
use crate::document::Document;
use crate::format::Format;
use crate::problem::{Place, Problem, Problems, Step};

#[derive(Debug, Default)]
pub(crate) struct Reading<'s> {
    tree: Option<Tree>,
    source: &'s str,
    left_out: BTreeSet<u32>,
    problems: Problems,
}

/// Reads a text. The document lacks unreadable parts.
pub(crate) fn read(source: &str, format: Format, max_bytes: usize) -> (Document, Reading<'_>) {
    let failed = |found: Problem| {
        let mut problems = Problems::default();
        problems.push(found);
        (
            Document::default(),
            Reading {
                problems,
                source,
                ..Reading::default()
            },
        )
    };
    // Nodes store positions in 32 bits.
    let most = max_bytes.min(u32::MAX as usize);
    if source.len() > most {
        return failed(too_long(source.len(), most));
    }
    let text = source.strip_prefix('\u{feff}').unwrap_or(source);
    let tree = match format {
        Format::Yaml if is_toml(text) => Err(Problem::error(
            Place::default(),
            "this is TOML, and rules are written in YAML or JSON: convert it by `yq -p toml -o yaml`",
        )),
        Format::Yaml => yaml::read(text),
        Format::Json => json::read(text),
    };
    let tree = match tree {
        Ok(tree) => tree,
        Err(problem) => return failed(problem),
    };
    let mut elements = Elements {
        tree: &tree,
        source: text,
        left_out: BTreeSet::new(),
        problems: Problems::default(),
    };
    let document = elements.document();
    let (left_out, problems) = (elements.left_out, elements.problems);
    (
        document,
        Reading {
            tree: Some(tree),
            source: text,
            left_out,
            problems,
        },
    )
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

impl Reading<'_> {
    pub(crate) const fn problems(&self) -> &Problems {
        &self.problems
    }

    pub(crate) const fn has_document(&self) -> bool {
        self.tree.is_some()
    }

    /// Returns the names of limits and tiers, even of unreadable parts.
    pub(crate) fn known_names(&self) -> KnownNames {
        let mut names = KnownNames::default();
        let Some(tree) = self.tree_with_gaps() else {
            return names;
        };
        names.is_partial = true;
        names
            .limits
            .extend(named_limits(tree).map(|(_, name)| tree.text(name).to_owned()));
        let tiers = tree
            .value(0, "tiers")
            .into_iter()
            .flat_map(|tiers| tree.entries(tiers));
        names
            .tiers
            .extend(tiers.map(|(key, _)| tree.text(key).to_owned()));
        names
    }

    /// Reports repeated names of limits after unreadable parts, since the check does not see all
    /// limits.
    pub(crate) fn repeated_limits(&self, problems: &mut Problems) {
        let Some(tree) = self.tree_with_gaps() else {
            return;
        };
        let mut first: HashMap<&str, u32> = HashMap::new();
        for (limit, name) in named_limits(tree).filter(|(_, name)| !self.left_out.contains(name)) {
            match first.entry(tree.text(name)) {
                Entry::Vacant(entry) => {
                    entry.insert(limit);
                }
                // Finding the place takes time that grows with the text.
                Entry::Occupied(_) if problems.is_full() => problems.count(1),
                Entry::Occupied(entry) => {
                    let mut problem =
                        repeated_limit(tree.place(name), entry.key(), &tree.place(*entry.get()));
                    self.set_position(tree, name, &mut problem);
                    problems.push(problem);
                }
            }
        }
    }

    fn tree_with_gaps(&self) -> Option<&Tree> {
        self.tree.as_ref().filter(|_| !self.left_out.is_empty())
    }

    /// Sets the line, the column and the path of a problem.
    ///
    /// Returns false if the problem is in an element with unreadable parts, since they may be its
    /// cause.
    pub(crate) fn locate(&self, problem: &mut Problem) -> bool {
        let Some(tree) = &self.tree else { return true };
        let mut node = 0;
        for step in problem.place.steps() {
            let kept = |node: &u32| !self.left_out.contains(node);
            let child = match step {
                Step::Index(index) => tree.elements(node).filter(kept).nth(*index),
                Step::Field(name) => tree.value(node, name),
            };
            // A single value may replace a list.
            let Some(child) = child.or((*step == Step::Index(0)).then_some(node)) else {
                break;
            };
            let is_element = node != 0;
            node = child;
            if is_element && self.has_gaps(tree, node) {
                return false;
            }
        }
        let place = tree.place(node);
        // A missing field has the place of its map.
        problem.path = place.to_string();
        self.set_position(tree, node, problem);
        true
    }

    fn set_position(&self, tree: &Tree, node: u32, problem: &mut Problem) {
        if let Some(found) = tree.node(node) {
            let (line, column) = found.at.line_and_column(self.source);
            (problem.line, problem.column) = (Some(line), Some(column));
        }
    }

    fn has_gaps(&self, tree: &Tree, node: u32) -> bool {
        let inside = (Bound::Included(node), Bound::Excluded(tree.end(node)));
        matches!(tree.kind(node), Kind::List | Kind::Map)
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
