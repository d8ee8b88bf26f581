//! The JSON of requests, by the JSON mapping of protobuf.

use core::num::ParseIntError;
use core::str::FromStr;

use serde::Deserialize;
use serde::de::{Deserializer, Error};

use crate::http::Object;
use crate::messages::RateLimitUnit;
use crate::messages::descriptors::RateLimitDescriptor;
use crate::messages::descriptors::rate_limit_descriptor::{self, RateLimitOverride};
use crate::messages::ratelimit::RateLimitRequest;

/// Names are in camel case, or as in the proto. Unknown names are errors, and `null` is the default.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct JsonRequest {
    domain: Option<String>,
    descriptors: Option<Vec<Object<Descriptor>>>,
    #[serde(alias = "hits_addend")]
    hits_addend: Option<Number<u32>>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct Descriptor {
    entries: Option<Vec<Object<Entry>>>,
    limit: Option<Object<Limit>>,
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
    unit: Option<Number<Unit>>,
}

/// A number, or its digits in a string.
struct Number<T>(T);

/// The name or the number of a unit.
struct Unit(i32);

#[derive(Deserialize)]
#[serde(untagged)]
enum Form {
    Number(u64),
    /// A whole number may have a fraction of zero.
    Float(f64),
    Text(String),
}

impl Form {
    /// Returns the text, or the digits of a whole number.
    fn text(self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Float(number) => number.to_string(),
            Self::Text(text) => text,
        }
    }
}

impl<'de, T: FromStr> Deserialize<'de> for Number<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = Form::deserialize(deserializer)?.text().parse();
        number.map(Self).map_err(|_| D::Error::custom("no number"))
    }
}

impl FromStr for Unit {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        match RateLimitUnit::from_str_name(text) {
            Some(unit) => Ok(Self(unit.into())),
            None => text.parse().map(Self),
        }
    }
}

impl From<JsonRequest> for RateLimitRequest {
    fn from(request: JsonRequest) -> Self {
        let descriptors = request.descriptors.unwrap_or_default().into_iter();
        Self {
            domain: request.domain.unwrap_or_default(),
            descriptors: descriptors
                .map(|Object(descriptor)| descriptor.into())
                .collect(),
            hits_addend: request.hits_addend.map_or(0, |Number(hits)| hits),
        }
    }
}

impl From<Descriptor> for RateLimitDescriptor {
    fn from(descriptor: Descriptor) -> Self {
        let entries = descriptor.entries.unwrap_or_default().into_iter();
        let entries = entries.map(|Object(entry)| rate_limit_descriptor::Entry {
            key: entry.key.unwrap_or_default(),
            value: entry.value.unwrap_or_default(),
        });
        Self {
            entries: entries.collect(),
            limit: descriptor.limit.map(|Object(limit)| RateLimitOverride {
                requests_per_unit: limit
                    .requests_per_unit
                    .map_or(0, |Number(requests)| requests),
                unit: limit.unit.map_or(0, |Number(Unit(unit))| unit),
            }),
            hits_addend: descriptor.hits_addend.map(|Number(hits)| hits),
            is_negative_hits: descriptor.is_negative_hits.unwrap_or_default(),
        }
    }
}
