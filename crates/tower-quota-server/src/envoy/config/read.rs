//! Reads a file into the tree of its domain.

use super::fields::Reader;
use super::metadata;
use super::problem::Place;
use super::rule::{OnStoreFailure, Rule};
use super::tree::{Descriptor, Domain, Level};
use super::yaml::{Kind, Node};

const ROOT: [&str; 4] = ["domain", "descriptors", "compatible", "name"];

const DESCRIPTOR: [&str; 10] = [
    "key",
    "value",
    "rate_limit",
    "descriptors",
    "shadow_mode",
    "quota_mode",
    "share_threshold",
    "detailed_metric",
    "value_to_metric",
    "metadata",
];

/// The head of a file.
pub(super) struct Head<'n> {
    pub(super) domain: &'n str,
    pub(super) place: Place,
    is_compatible: bool,
    descriptors: Option<&'n Node>,
}

impl Reader<'_> {
    pub(super) fn head<'n>(&mut self, root: &'n Node) -> Option<Head<'n>> {
        let fields = self.fields(root, &ROOT);
        let domain = fields.get("domain");
        let place = domain.unwrap_or(root).place;
        let head = Head {
            domain: self.text(domain),
            place,
            is_compatible: self.flag(fields.get("compatible")),
            descriptors: fields.get("descriptors"),
        };
        if head.domain.is_empty() {
            self.problem(
                place,
                "the file has no domain: add \"domain\" with the domain of your gateway",
            );
            return None;
        }
        Some(head)
    }

    /// Adds the descriptors of a file. Returns the number of limits.
    pub(super) fn add(&mut self, head: &Head<'_>, domain: &mut Domain) -> usize {
        domain.is_compatible |= head.is_compatible;
        if head.is_compatible {
            self.on_store_failure = OnStoreFailure::Error;
        }
        self.descriptors(head.descriptors, head.domain, &mut domain.root)
    }

    fn descriptors(&mut self, list: Option<&Node>, path: &str, level: &mut Level) -> usize {
        let mut limits = 0;
        for node in self.list(list) {
            limits += self.descriptor(node, path, level);
        }
        limits
    }

    fn descriptor(&mut self, node: &Node, path: &str, level: &mut Level) -> usize {
        let fields = self.fields(node, &DESCRIPTOR);
        let (key, value) = (self.text(fields.get("key")), self.text(fields.get("value")));
        if key.is_empty() {
            self.problem(
                node.place,
                "the descriptor has no key: add \"key\" with the key of an entry",
            );
        }
        let path = match value {
            "" => format!("{path}.{key}"),
            _ => format!("{path}.{key}_{value}"),
        };
        let shares = self.flag(fields.get("share_threshold"));
        if shares && !value.contains('*') {
            self.problem(
                node.place,
                format_args!("the values of {path:?} cannot share a limit: add a \"*\" to \"value\", or remove \"share_threshold\""),
            );
        }
        let is_shadow = self.flag(fields.get("shadow_mode"));
        let is_quota = self.flag(fields.get("quota_mode"));
        for flag in ["detailed_metric", "value_to_metric"] {
            self.flag(fields.get(flag));
        }
        let metadata = fields.get("metadata").inspect(|node| {
            if !matches!(node.kind, Kind::Map(_)) {
                self.problem(node.place, "metadata is a map: write names and values");
            }
        });
        let rule = fields
            .get("rate_limit")
            .and_then(|limit| self.rate_limit(limit))
            .map(|rule| Rule {
                is_shadow,
                is_quota,
                metadata: metadata.and_then(metadata::read),
                ..rule
            });
        let mut limits = rule.is_some().into();
        let mut next = Level::default();
        limits += self.descriptors(fields.get("descriptors"), &path, &mut next);
        if !key.is_empty() && !level.add(key, value, Descriptor { rule, shares, next }) {
            self.problem(
                node.place,
                format_args!("the descriptor {path:?} is given twice: remove one, or merge them"),
            );
        }
        limits
    }
}
