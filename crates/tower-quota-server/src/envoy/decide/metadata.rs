//! The dynamic metadata of an answer, which other filters of the gateway can read.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Value};

use super::charges::Decided;
use super::plan::Plan;
use crate::messages::RateLimitUnit;
use crate::messages::descriptors::RateLimitDescriptor;
use crate::messages::ratelimit::RateLimitRequest;

type Fields = BTreeMap<String, Value>;

/// Returns the domain, the descriptors, the hits, and the metadata of all limits that are not exceeded.
pub(super) fn of_call(request: &RateLimitRequest, plan: &Plan<'_>, decided: &Decided) -> Struct {
    let mut fields = Fields::new();
    fields.insert("domain".into(), text(request.domain.clone()));
    let descriptors = request.descriptors.iter().map(descriptor);
    fields.insert("descriptors".into(), list(descriptors));
    if request.hits_addend > 0 {
        fields.insert("hitsAddend".into(), number(request.hits_addend.into()));
    }
    let mut merged = Fields::new();
    for asked in &plan.asked {
        let is_over = asked.is_over(&decided.over);
        if let Some(rule) = &asked.rule
            && let Some(metadata) = &rule.metadata
            && !is_over
            && !rule.is_unlimited()
        {
            merge(&mut merged, &metadata.fields);
        }
    }
    if !merged.is_empty() {
        fields.insert("metadata".into(), map(merged));
    }
    Struct { fields }
}

fn descriptor(descriptor: &RateLimitDescriptor) -> Value {
    let mut fields = Fields::new();
    let entries = descriptor.entries.iter();
    let entries = entries.map(|entry| text(format!("{}={}", entry.key, entry.value)));
    fields.insert("entries".into(), list(entries));
    if let Some(limit) = &descriptor.limit {
        let unit = RateLimitUnit::try_from(limit.unit).unwrap_or_default();
        let shown = format!(
            "requests_per_unit:{} unit:{}",
            limit.requests_per_unit,
            unit.as_str_name()
        );
        fields.insert("limit".into(), text(shown));
    }
    if let Some(hits) = descriptor.hits_addend {
        fields.insert("hitsAddend".into(), number(hits));
    }
    map(fields)
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

const fn value(kind: Kind) -> Value {
    Value { kind: Some(kind) }
}

const fn text(text: String) -> Value {
    value(Kind::StringValue(text))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "numbers of protobuf's Struct are f64"
)]
const fn number(number: u64) -> Value {
    value(Kind::NumberValue(number as f64))
}

fn list(values: impl Iterator<Item = Value>) -> Value {
    value(Kind::ListValue(ListValue {
        values: values.collect(),
    }))
}

const fn map(fields: Fields) -> Value {
    value(Kind::StructValue(Struct { fields }))
}
