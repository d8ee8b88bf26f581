//! The JSON of responses, by the JSON mapping of protobuf, which leaves out default values.

use prost_types::value::Kind;
use prost_types::{ListValue, Struct};
use serde_json::{Value, json};

use crate::messages::ratelimit::RateLimitResponse;
use crate::messages::ratelimit::rate_limit_response::{DescriptorStatus, RateLimit};

pub(super) fn json(response: &RateLimitResponse) -> Value {
    let statuses: Vec<Value> = response.statuses.iter().map(status).collect();
    let fields = response.response_headers_to_add.iter();
    let fields = fields.map(|field| json!({ "key": field.key, "value": field.value }));
    let mut json = json!({
        "overallCode": known(response.overall_code().as_str_name()),
        "statuses": statuses,
        "responseHeadersToAdd": fields.collect::<Vec<Value>>(),
    });
    remove_defaults(&mut json);
    if let Some(metadata) = &response.dynamic_metadata {
        json["dynamicMetadata"] = object(metadata);
    }
    json
}

fn status(status: &DescriptorStatus) -> Value {
    let reset = status.duration_until_reset.as_ref();
    json!({
        "code": known(status.code().as_str_name()),
        "currentLimit": status.current_limit.as_ref().map(limit),
        "limitRemaining": status.limit_remaining,
        // The server rounds up to whole seconds.
        "durationUntilReset": reset.map(|reset| format!("{}s", reset.seconds)),
    })
}

fn limit(limit: &RateLimit) -> Value {
    json!({
        "name": limit.name,
        "requestsPerUnit": limit.requests_per_unit,
        "unit": known(limit.unit().as_str_name()),
    })
}

/// Returns the name of a value that is not the default.
fn known(name: &str) -> Option<&str> {
    (name != "UNKNOWN").then_some(name)
}

fn remove_defaults(json: &mut Value) {
    match json {
        Value::Object(fields) => {
            fields.values_mut().for_each(remove_defaults);
            let is_default =
                |value: &Value| [Value::Null, 0.into(), "".into(), json!([])].contains(value);
            fields.retain(|_, value| !is_default(value));
        }
        Value::Array(elements) => elements.iter_mut().for_each(remove_defaults),
        _ => {}
    }
}

fn object(fields: &Struct) -> Value {
    let fields = fields.fields.iter();
    let fields = fields.map(|(name, field)| (name.clone(), value(field)));
    fields.collect()
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
