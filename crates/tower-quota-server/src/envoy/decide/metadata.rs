//! The dynamic metadata of an answer, which other filters of the gateway can read.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use prost_types::value::Kind;
use prost_types::{Struct, Value};

use super::charges::Decided;
use super::plan::Plan;
use crate::messages::descriptors::RateLimitDescriptor;

type Fields = BTreeMap<String, Value>;

impl Plan<'_> {
    /// Returns the domain, the descriptors, the hits, and the metadata of all limits that are not exceeded.
    pub(super) fn metadata(&self, decided: &Decided) -> Struct {
        let descriptors = self.request.descriptors.iter().map(descriptor);
        let mut fields = Fields::from([
            ("domain".into(), self.request.domain.clone().into()),
            ("descriptors".into(), descriptors.collect::<Vec<_>>().into()),
        ]);
        let hits = self.request.hits_addend;
        if hits > 0 {
            fields.insert("hitsAddend".into(), f64::from(hits).into());
        }
        let mut merged = Fields::new();
        for asked in &self.asked {
            if let Some(rule) = asked.rule
                && let Some(metadata) = &rule.metadata
                && !asked.is_over(&decided.over)
                && !rule.is_unlimited
            {
                merge(&mut merged, metadata);
            }
        }
        if !merged.is_empty() {
            fields.insert("metadata".into(), merged.into());
        }
        Struct { fields }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "numbers of protobuf's Struct are f64"
)]
fn descriptor(descriptor: &RateLimitDescriptor) -> Value {
    let entries = descriptor.entries.iter();
    let entries = entries.map(|entry| format!("{}={}", entry.key, entry.value).into());
    let mut fields = Fields::from([("entries".into(), entries.collect::<Vec<Value>>().into())]);
    if let Some(limit) = &descriptor.limit {
        let (requests, unit) = (limit.requests_per_unit, limit.unit().as_str_name());
        let shown = format!("requests_per_unit:{requests} unit:{unit}");
        fields.insert("limit".into(), shown.into());
    }
    if let Some(hits) = descriptor.hits_addend {
        fields.insert("hitsAddend".into(), (hits as f64).into());
    }
    fields.into()
}

/// Adds fields that are not there yet. Merges maps.
fn merge(merged: &mut Fields, others: &Fields) {
    for (name, value) in others {
        match merged.entry(name.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(value.clone());
            }
            Entry::Occupied(mut entry) => {
                if let (Some(Kind::StructValue(known)), Some(Kind::StructValue(other))) =
                    (&mut entry.get_mut().kind, &value.kind)
                {
                    merge(&mut known.fields, &other.fields);
                }
            }
        }
    }
}
