//! Reads a file into the tree of its domain.

use super::fields::Reader;
use super::metadata;
use super::node::Node;
use super::rule::{OnStoreFailure, Rule};
use super::tree::{Descriptor, Level};
use super::{Domain, EnvoyConfig};

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

impl Reader<'_> {
    /// Adds the domain of a file. `merge` allows a domain in several files.
    pub(super) fn root(&mut self, root: &Node<'_>, merge: bool, config: &mut EnvoyConfig) {
        let fields = self.fields(root, &ROOT);
        let domain = fields.get("domain");
        let node = domain.unwrap_or(root);
        let name = self.text(domain);
        let is_compatible = self.flag(fields.get("compatible"));
        if name.is_empty() {
            let message = "the file has no domain: add \"domain\" with the domain of your gateway";
            return self.problem(node, message);
        }
        if is_compatible {
            self.on_store_failure = OnStoreFailure::Error;
        }
        let known = config.domains.get(name).filter(|_| !merge);
        if let Some(Domain { file, .. }) = known {
            let fix = "give each file a domain of its own, or set MERGE_DOMAIN_CONFIG";
            let message = format_args!("the domain {name:?} is also in {file}: {fix}");
            self.problem(node, message);
        }
        let domain = config.domains.entry(name.to_owned());
        let domain = domain.or_insert_with(|| Domain {
            file: self.file.to_owned(),
            is_compatible,
            root: Level::default(),
        });
        domain.is_compatible |= is_compatible;
        self.path.push(name.to_owned());
        let descriptors = self.list(fields.get("descriptors"));
        config.limits += self.descriptors(descriptors, false, &mut domain.root);
    }

    /// Adds descriptors. Returns the number of limits.
    fn descriptors(&mut self, list: &[Node<'_>], names_value: bool, level: &mut Level) -> usize {
        let mut limits = 0;
        for node in list {
            self.path.push(String::new());
            limits += self.descriptor(node, names_value, level);
            self.path.pop();
        }
        limits
    }

    fn descriptor(&mut self, node: &Node<'_>, names_value: bool, level: &mut Level) -> usize {
        let fields = self.fields(node, &DESCRIPTOR);
        let (key, value) = (self.text(fields.get("key")), self.text(fields.get("value")));
        if key.is_empty() {
            self.problem(
                node,
                "the descriptor has no key: add \"key\" with the key of an entry",
            );
        }
        if let Some(last) = self.path.last_mut() {
            *last = name(key, value);
        }
        let shares = self.flag(fields.get("share_threshold"));
        if shares && !value.contains('*') {
            let path = self.path.join(".");
            self.problem(node, format_args!(
                "the values of {path:?} cannot share a limit: add a \"*\" to \"value\", or remove \"share_threshold\""
            ));
        }
        let is_shadow = self.flag(fields.get("shadow_mode"));
        let is_quota = self.flag(fields.get("quota_mode"));
        let is_detailed = self.flag(fields.get("detailed_metric"));
        let names_own_value = self.flag(fields.get("value_to_metric"));
        // The value of an exact match is the value of the request anyway.
        let has_values = value.is_empty() || value.contains('*') && !shares;
        let names_value = names_value || names_own_value && has_values;
        let metadata = fields.get("metadata");
        let read = metadata.and_then(metadata::read);
        if let (Some(node), None) = (metadata, &read) {
            self.problem(node, "metadata is a map: write names and values");
        }
        let limit = fields.get("rate_limit");
        let rule = limit.and_then(|limit| self.rate_limit(limit));
        let rule = rule.map(|rule| Rule {
            is_shadow,
            is_quota,
            metadata: read,
            is_detailed,
            names_values: is_detailed || names_value,
            ..rule
        });
        let mut limits = rule.is_some().into();
        let mut next = Level::default();
        let below = self.list(fields.get("descriptors"));
        limits += self.descriptors(below, names_value, &mut next);
        let descriptor = Descriptor {
            value: value.into(),
            rule,
            shares,
            names_value: names_own_value,
            next,
        };
        if !key.is_empty() && !level.add(key, descriptor) {
            let path = self.path.join(".");
            self.problem(
                node,
                format_args!("the descriptor {path:?} is given twice: remove one, or merge them"),
            );
        }
        limits
    }
}

/// Returns the name of a descriptor, as envoyproxy/ratelimit writes it.
pub(crate) fn name(key: &str, value: &str) -> String {
    match value {
        "" => key.to_owned(),
        _ => format!("{key}_{value}"),
    }
}
