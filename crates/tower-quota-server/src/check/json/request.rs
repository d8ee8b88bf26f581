//! The JSON of requests, by the JSON mapping of protobuf.

use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize};

use crate::messages::RateLimitUnit;
use crate::messages::descriptors::RateLimitDescriptor;
use crate::messages::descriptors::rate_limit_descriptor::{self, RateLimitOverride};
use crate::messages::ratelimit::RateLimitRequest;

/// Names are in camel case, or as in the proto. Unknown names are errors, and `null` is the default.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct JsonRequest {
    domain: Option<String>,
    descriptors: Option<Vec<Descriptor>>,
    #[serde(alias = "hits_addend")]
    hits_addend: Option<Number<u32>>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct Descriptor {
    entries: Option<Vec<Entry>>,
    limit: Option<Limit>,
    #[serde(alias = "hits_addend")]
    hits_addend: Option<Number<u64>>,
    #[serde(alias = "is_negative_hits")]
    is_negative_hits: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Entry {
    key: Option<String>,
    value: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct Limit {
    #[serde(alias = "requests_per_unit")]
    requests_per_unit: Option<Number<u32>>,
    unit: Option<Unit>,
}

/// A number, or its digits in a string.
struct Number<T>(T);

/// The name or the number of a unit.
struct Unit(i32);

#[derive(Deserialize, Serialize)]
#[serde(untagged)]
enum NumberOrText {
    Number(u64),
    Text(String),
}

impl<'de, T: TryFrom<u64>> Deserialize<'de> for Number<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = match NumberOrText::deserialize(deserializer)? {
            NumberOrText::Number(number) => Some(number),
            NumberOrText::Text(text) => text.parse().ok(),
        };
        let number = number.and_then(|number| T::try_from(number).ok());
        number
            .map(Self)
            .ok_or_else(|| D::Error::custom("the number is too large"))
    }
}

impl<'de> Deserialize<'de> for Unit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let unit = match NumberOrText::deserialize(deserializer)? {
            NumberOrText::Number(number) => i32::try_from(number).ok(),
            NumberOrText::Text(text) => RateLimitUnit::from_str_name(&text).map(i32::from),
        };
        unit.map(Self)
            .ok_or_else(|| D::Error::custom("the unit is unknown"))
    }
}

impl From<JsonRequest> for RateLimitRequest {
    fn from(request: JsonRequest) -> Self {
        let descriptors = request.descriptors.unwrap_or_default().into_iter();
        Self {
            domain: request.domain.unwrap_or_default(),
            descriptors: descriptors.map(RateLimitDescriptor::from).collect(),
            hits_addend: request.hits_addend.map_or(0, |Number(hits)| hits),
        }
    }
}

impl From<Descriptor> for RateLimitDescriptor {
    fn from(descriptor: Descriptor) -> Self {
        let entries = descriptor.entries.unwrap_or_default().into_iter();
        let entries = entries.map(|entry| rate_limit_descriptor::Entry {
            key: entry.key.unwrap_or_default(),
            value: entry.value.unwrap_or_default(),
        });
        Self {
            entries: entries.collect(),
            limit: descriptor.limit.map(|limit| RateLimitOverride {
                requests_per_unit: limit
                    .requests_per_unit
                    .map_or(0, |Number(requests)| requests),
                unit: limit.unit.map_or(0, |Unit(unit)| unit),
            }),
            hits_addend: descriptor.hits_addend.map(|Number(hits)| hits),
            is_negative_hits: descriptor.is_negative_hits.unwrap_or_default(),
        }
    }
}
