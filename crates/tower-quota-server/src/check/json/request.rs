//! The JSON of requests, by the JSON mapping of protobuf.

use serde_json::{Map, Value};

use crate::messages::RateLimitUnit;
use crate::messages::ratelimit::RateLimitRequest;

/// Reads a request. Names are in camel case, or as in the proto. Unknown names are errors, and `null` is the default.
pub(super) fn request(body: &[u8]) -> Option<RateLimitRequest> {
    let json = plain(serde_json::from_slice(body).ok()?)?;
    serde_json::from_value(json).ok()
}

/// Returns the form that the messages read.
fn plain(json: Value) -> Option<Value> {
    match json {
        Value::Object(fields) => {
            let mut named = Map::new();
            for (name, value) in fields {
                let name = match name.as_str() {
                    "hits_addend" => "hitsAddend",
                    "is_negative_hits" => "isNegativeHits",
                    "requests_per_unit" => "requestsPerUnit",
                    name => name,
                };
                let value = match (name, &value) {
                    (_, Value::Null) => continue,
                    ("hitsAddend" | "requestsPerUnit", value) => number(value)?.into(),
                    ("unit", value) => unit(value)?.into(),
                    _ => plain(value)?,
                };
                named.insert(name.to_owned(), value);
            }
            Some(Value::Object(named))
        }
        // The messages take a list of their fields too.
        Value::Array(elements) if !elements.iter().all(Value::is_object) => None,
        Value::Array(elements) => elements.into_iter().map(plain).collect(),
        other => Some(other),
    }
}

/// Reads a number, or its digits in a string.
fn number(value: &Value) -> Option<u64> {
    let whole = || value.as_f64()?.to_string().parse().ok();
    match value {
        Value::String(digits) => digits.parse().ok(),
        _ => value.as_u64().or_else(whole),
    }
}

/// Reads the name or the number of a unit.
fn unit(value: &Value) -> Option<u64> {
    let named = RateLimitUnit::from_str_name(value.as_str().unwrap_or_default());
    named.map_or_else(|| number(value), |unit| u64::try_from(i32::from(unit)).ok())
}
