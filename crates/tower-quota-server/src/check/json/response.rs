//! The JSON of responses, by the JSON mapping of protobuf, which leaves out default values.

use prost_types::value::Kind;
use prost_types::{Duration, ListValue, Struct};
use serde_json::{Map, Value};

use crate::messages::HeaderValue;
use crate::messages::ratelimit::RateLimitResponse;
use crate::messages::ratelimit::rate_limit_response::rate_limit::Unit;
use crate::messages::ratelimit::rate_limit_response::{Code, DescriptorStatus, RateLimit};

pub(super) fn json(response: &RateLimitResponse) -> Value {
    let statuses = response.statuses.iter().map(status);
    let fields = response.response_headers_to_add.iter().map(field);
    let metadata = response.dynamic_metadata.as_ref().map(object);
    present([
        ("overallCode", code(response.overall_code())),
        ("statuses", statuses.collect()),
        ("responseHeadersToAdd", fields.collect()),
        ("dynamicMetadata", metadata.unwrap_or_default()),
    ])
}

fn status(status: &DescriptorStatus) -> Value {
    let limit = status.current_limit.as_ref().map(limit);
    let reset = status.duration_until_reset.as_ref().map(seconds);
    present([
        ("code", code(status.code())),
        ("currentLimit", limit.unwrap_or_default()),
        ("limitRemaining", number(status.limit_remaining)),
        ("durationUntilReset", reset.unwrap_or_default()),
    ])
}

fn limit(limit: &RateLimit) -> Value {
    let unit = match limit.unit() {
        Unit::Unknown => Value::Null,
        unit => unit.as_str_name().into(),
    };
    present([
        ("name", text(&limit.name)),
        ("requestsPerUnit", number(limit.requests_per_unit)),
        ("unit", unit),
    ])
}

fn field(field: &HeaderValue) -> Value {
    present([("key", text(&field.key)), ("value", text(&field.value))])
}

/// Makes an object of the fields that differ from their defaults.
fn present<const N: usize>(fields: [(&str, Value); N]) -> Value {
    let mut object = Map::new();
    for (name, value) in fields {
        let is_default = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
        if !is_default {
            object.insert(name.to_owned(), value);
        }
    }
    object.into()
}

fn code(code: Code) -> Value {
    match code {
        Code::Unknown => Value::Null,
        code => code.as_str_name().into(),
    }
}

fn number(number: u32) -> Value {
    match number {
        0 => Value::Null,
        number => number.into(),
    }
}

fn text(text: &str) -> Value {
    match text {
        "" => Value::Null,
        text => text.into(),
    }
}

/// The server rounds up to whole seconds.
fn seconds(duration: &Duration) -> Value {
    format!("{}s", duration.seconds).into()
}

fn object(fields: &Struct) -> Value {
    let fields = fields.fields.iter();
    fields
        .map(|(name, field)| (name.clone(), value(field)))
        .collect()
}

fn value(of: &prost_types::Value) -> Value {
    match &of.kind {
        None | Some(Kind::NullValue(_)) => Value::Null,
        // The text of a whole number has no fraction.
        Some(Kind::NumberValue(number)) => number
            .to_string()
            .parse()
            .map_or(Value::Null, Value::Number),
        Some(Kind::StringValue(text)) => text.as_str().into(),
        Some(Kind::BoolValue(flag)) => (*flag).into(),
        Some(Kind::StructValue(fields)) => object(fields),
        Some(Kind::ListValue(ListValue { values })) => values.iter().map(value).collect(),
    }
}
