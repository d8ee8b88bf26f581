use std::collections::HashSet;
use std::sync::Arc;

use indexmap::IndexMap;

use crate::check::all_limits;
use crate::document::{Document, Grants, Match, TierRule};
use crate::problem::{DocumentPlace, Problems};
use crate::text::{NameText, TierText};

/// A document that is merged with the document that it includes, whose limits it cannot loosen.
pub(super) struct Merge<'d> {
    /// The path of the included document, as it is written.
    name: &'d str,
    /// The names of the included limits.
    limits: HashSet<NameText>,
    problems: Problems,
}

impl Merge<'_> {
    /// Returns the included document with the parts of another document after its own.
    pub(super) fn merged(
        name: &str,
        mut merged: Document,
        mut own: Document,
    ) -> Result<Document, Problems> {
        let limits = merged.all_limits().map(|rule| rule.name.clone());
        let mut merge = Merge {
            name,
            limits: limits.collect(),
            problems: Problems::default(),
        };
        merge.lists(&own);
        merge.limits(&own);
        merge.tiers(&mut merged, core::mem::take(&mut own.tiers));
        merge.clients(&merged, &own);
        merge.defaults(&mut merged, &mut own);
        merge.one_of("version", &mut merged.version, own.version);
        merge.one_of("client_ip", &mut merged.client_ip, own.client_ip);
        merge.one_of("instances", &mut merged.instances, own.instances);
        merge.one_of("close_after", &mut merged.close_after, own.close_after);
        merge.one_of("regions", &mut merged.regions, own.regions);
        merge.one_of(
            "former_regions",
            &mut merged.former_regions,
            own.former_regions,
        );
        merged.limits.append(&mut own.limits);
        merged.routes.append(&mut own.routes);
        merged.assign.append(&mut own.assign);
        merged.block.append(&mut own.block);
        merged.trusted_headers.append(&mut own.trusted_headers);
        merged.overrides.extend(own.overrides);
        merged.allow_empty |= own.allow_empty;
        // The tests of the included document list its limits only.
        merged.tests = own.tests;
        merged.end = own.end;
        if merge.problems.is_empty() {
            Ok(merged)
        } else {
            Err(merge.problems)
        }
    }

    fn lists(&mut self, own: &Document) {
        for (field, list) in own.lists() {
            if field != "block" && !list.is_empty() {
                let text = "these requests would pass the included limits too: write them into the included document, or \"unless\" into your limits";
                self.problems.error(DocumentPlace::of(field), text);
            }
        }
    }

    fn limits(&mut self, own: &Document) {
        for limit in all_limits(own) {
            let name = limit.rule.name.as_str();
            if self.limits.contains(name) {
                let text = format_args!(
                    "the included document has a limit {name:?}: give yours another name"
                );
                self.problems.error(limit.place().field("name"), text);
            }
        }
    }

    fn tiers(&mut self, merged: &mut Document, own: IndexMap<NameText, TierRule>) {
        for (name, tier) in own {
            let place = DocumentPlace::of("tiers").field(name.as_str());
            self.grants(&place, &tier.limits);
            if tier.extends.is_some() && merged.tiers.contains_key(&name) {
                let text = format_args!(
                    "the included document has the tier {:?}: remove \"extends\", or give your tier another name",
                    name.as_str()
                );
                self.problems.error(place.field("extends"), text);
            }
            let known = merged.tiers.entry(name).or_default();
            known.extends = known.extends.take().or(tier.extends);
            let grants = Arc::make_mut(&mut known.limits);
            grants.extend(
                tier.limits
                    .iter()
                    .map(|(name, grant)| (name.clone(), *grant)),
            );
        }
    }

    fn clients(&mut self, merged: &Document, own: &Document) {
        for (key, rule) in &own.overrides {
            let place = DocumentPlace::of("overrides").field(key);
            self.grants(&place, &rule.limits);
            if merged.overrides.contains_key(key) {
                let text = "the included document has an override of this key: keep one of the two";
                self.problems.error(place.clone(), text);
            }
            if let Some(tier) = &rule.tier {
                self.given(place.field("tier"), tier, merged);
                self.replaced(place.field("tier"), merged);
            }
        }
        for (position, rule) in own.assign.iter().enumerate() {
            if let TierText::Named(tier) = &rule.tier {
                let place = DocumentPlace::of("assign").index(position).field("tier");
                self.given(place, tier, merged);
            }
        }
    }

    fn grants(&mut self, place: &DocumentPlace, grants: &Grants) {
        for name in grants.keys() {
            if self.limits.contains(name) {
                let name = name.as_str();
                let text = format_args!(
                    "only the included document gives other quotas of {name:?}: remove it"
                );
                self.problems.error(place.field("limits").field(name), text);
            }
        }
    }

    /// Refuses a client with a tier that has other quotas of included limits.
    fn given(&mut self, place: DocumentPlace, tier: &NameText, merged: &Document) {
        let tier = tier.as_str();
        let mut limits = merged.extended(tier).flat_map(|rule| rule.limits.keys());
        if let Some(limit) = limits.find(|limit| self.limits.contains(*limit)) {
            let text = format_args!(
                "the tier {tier:?} has another quota of {:?}, which the included document gives to its own clients: assign another tier",
                limit.as_str()
            );
            self.problems.error(place, text);
        }
    }

    /// Refuses a tier of an override if the client may lose a tier with other quotas of included limits.
    fn replaced(&mut self, place: DocumentPlace, merged: &Document) {
        let mut limits = merged.tiers.values().flat_map(|tier| tier.limits.keys());
        if let Some(limit) = limits.find(|limit| self.limits.contains(*limit)) {
            let text = format_args!(
                "this tier would replace a tier of the included document, which has another quota of {:?}: write \"limits\" instead, or assign the tier",
                limit.as_str()
            );
            self.problems.error(place, text);
        }
    }

    /// Takes a field from the document that has it.
    fn one_of<T: Default + PartialEq>(&mut self, field: &str, merged: &mut T, own: T) {
        let absent = T::default();
        if *merged == absent {
            *merged = own;
        } else if own != absent && own != *merged {
            let text = format_args!("{:?} has another value: remove one", self.name);
            self.problems.error(DocumentPlace::of(field), text);
        }
    }

    /// Writes the defaults of each document into its limits, where the other document would choose others.
    fn defaults(&mut self, merged: &mut Document, own: &mut Document) {
        if own.defaults.key.is_some() && own.defaults.key() != merged.defaults.key() {
            let is_fixed = merged.defaults.key.is_some() || compares_keys(merged);
            if is_fixed && compares_keys(own) {
                let text = format_args!(
                    "tiers, overrides and patterns mean the key of {:?}, which is another one: remove this key",
                    self.name
                );
                let place = DocumentPlace::of("defaults").field("key");
                self.problems.error(place, text);
            }
            let written = if is_fixed { &mut *own } else { &mut *merged };
            let key = written.defaults.key().clone();
            for rule in written.all_limits_mut() {
                rule.key.get_or_insert_with(|| key.clone());
            }
            if !is_fixed {
                merged.defaults.key = own.defaults.key.take();
            }
        }
        let (missing, failure) = (own.defaults.missing, own.defaults.on_store_failure);
        for rule in own.all_limits_mut() {
            rule.missing = rule.missing.or(missing);
            if rule.when_degraded.is_none() {
                rule.on_store_failure = rule.on_store_failure.or(failure);
            }
        }
    }
}

/// Returns whether a part of a document means the key of its `defaults`.
fn compares_keys(document: &Document) -> bool {
    let has_key = |matching: &Match| matching.key.is_some();
    document.assigns_by_key()
        || !document.overrides.is_empty()
        || document.all_matches().into_iter().any(has_key)
}
