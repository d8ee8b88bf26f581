//! Compares answers with their schemas in the OpenAPI document, field by field.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde_json::Value;

static DOCUMENT: LazyLock<Value> = LazyLock::new(tower_quota_admin::openapi);

/// The documented parts of a value by name, each with its place and its schema.
type Parts = BTreeMap<&'static str, (String, &'static Value)>;

/// The names of the elements of a list, of the values of a map, and of a value without a schema.
const ELEMENT: &str = "[]";
const ENTRY: &str = "{}";
const ANYTHING: &str = "*";

/// Returns the documented operations with their paths and methods.
pub(crate) fn operations() -> impl Iterator<Item = (&'static str, &'static str, &'static Value)> {
    let paths = DOCUMENT["paths"].as_object().unwrap().iter();
    paths.flat_map(|(path, item)| {
        let operations = item.as_object().unwrap().iter();
        operations.map(move |(method, operation)| (path.as_str(), method.as_str(), operation))
    })
}

/// Returns the schema of an answer with contents.
pub(crate) fn schema(method: &str, path: &str, status: u16) -> &'static Value {
    let operation = &DOCUMENT["paths"][path][method.to_lowercase()];
    let answer = &operation["responses"][status.to_string()];
    let answer = match answer["$ref"].as_str() {
        Some(reference) => DOCUMENT.pointer(&reference[1..]).unwrap(),
        None => answer,
    };
    let mut media = answer["content"].as_object().into_iter().flatten();
    let media = media.next();
    assert!(media.is_some(), "{method} {path} has no answer {status}");
    &media.unwrap().1["schema"]
}

/// Returns the schema of all problems.
pub(crate) fn problem() -> &'static Value {
    schema("get", "/v1/rules", 404)
}

/// Asserts that an answer has all required fields, and only documented ones.
pub(crate) fn check(method: &str, path: &str, answer: &Value) {
    let path = path.split('?').next().unwrap_or_default();
    compare(
        path,
        schema(method, path, 200),
        answer,
        &mut BTreeSet::new(),
    );
}

/// Compares a value with a schema, and adds the fields of the value.
pub(crate) fn compare(
    place: &str,
    schema: &'static Value,
    value: &Value,
    seen: &mut BTreeSet<String>,
) {
    let parts = parts(place, schema, value);
    assert!(parts.is_some(), "{place}: {schema} does not fit {value}");
    let parts = parts.unwrap();
    let mut part = |name: &str, value: &Value| match parts.get(name) {
        Some((place, schema)) => {
            seen.insert(place.clone());
            compare(place, schema, value, seen);
        }
        None => assert!(
            parts.contains_key(ANYTHING),
            "{place} has no `{name}` in the document"
        ),
    };
    match value {
        Value::Object(fields) if parts.contains_key(ENTRY) => {
            fields.values().for_each(|value| part(ENTRY, value));
        }
        Value::Object(fields) => fields.iter().for_each(|(name, value)| part(name, value)),
        Value::Array(elements) => elements.iter().for_each(|value| part(ELEMENT, value)),
        _ => {}
    }
}

/// Returns the documented parts of a value, or `None` if the value does not fit the schema.
fn parts(place: &str, schema: &'static Value, value: &Value) -> Option<Parts> {
    if !fits(schema, value) {
        return None;
    }
    let mut parts = own_parts(place, schema);
    if let Some((name, schema)) = referenced(schema) {
        parts.extend(self::parts(name, schema, value)?);
    }
    for schema in list(schema, "allOf") {
        parts.extend(self::parts(place, schema, value)?);
    }
    let mut choices = list(schema, "oneOf").peekable();
    if choices.peek().is_some() {
        parts.extend(choices.find_map(|schema| self::parts(place, schema, value))?);
    }
    Some(parts)
}

/// Returns whether a value has the type and the fields that a schema itself describes.
fn fits(schema: &'static Value, value: &Value) -> bool {
    let types = match &schema["type"] {
        Value::Array(names) => names.as_slice(),
        Value::Null => &[],
        name => core::slice::from_ref(name),
    };
    let values: Vec<&Value> = list(schema, "enum").collect();
    let mut required = list(schema, "required").filter_map(Value::as_str);
    (types.is_empty() || types.iter().any(|name| has_type(value, name)))
        && (values.is_empty() || values.contains(&value))
        && required.all(|name| {
            let field = value.get(name);
            field.is_some_and(|field| fits(&schema["properties"][name], field))
        })
}

/// Returns the parts that a schema itself describes.
fn own_parts(place: &str, schema: &'static Value) -> Parts {
    let mut parts = Parts::new();
    let keywords = ["$ref", "allOf", "oneOf", "type", "enum"];
    if keywords.iter().all(|keyword| schema.get(keyword).is_none()) {
        parts.insert(ANYTHING, (place.to_owned(), schema));
    }
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        parts.insert(name, (format!("{place}.{name}"), schema));
    }
    for (name, keyword) in [(ELEMENT, "items"), (ENTRY, "additionalProperties")] {
        if let Some(schema) = schema.get(keyword) {
            parts.insert(name, (format!("{place}{name}"), schema));
        }
    }
    parts
}

/// Adds all fields that a schema describes.
pub(crate) fn add_documented(place: &str, schema: &'static Value, fields: &mut BTreeSet<String>) {
    if let Some((name, schema)) = referenced(schema) {
        add_documented(name, schema, fields);
    }
    for schema in list(schema, "allOf").chain(list(schema, "oneOf")) {
        add_documented(place, schema, fields);
    }
    for (name, (place, schema)) in own_parts(place, schema) {
        if name != ANYTHING && fields.insert(place.clone()) {
            add_documented(&place, schema, fields);
        }
    }
}

fn referenced(schema: &'static Value) -> Option<(&'static str, &'static Value)> {
    let name = schema["$ref"].as_str()?.rsplit('/').next()?;
    Some((name, &DOCUMENT["components"]["schemas"][name]))
}

fn list(schema: &'static Value, name: &str) -> impl Iterator<Item = &'static Value> + use<> {
    schema[name].as_array().into_iter().flatten()
}

fn has_type(value: &Value, name: &Value) -> bool {
    match value {
        Value::Null => name == "null",
        Value::Bool(_) => name == "boolean",
        Value::Number(number) => name == "number" || name == "integer" && !number.is_f64(),
        Value::String(_) => name == "string",
        Value::Array(_) => name == "array",
        Value::Object(_) => name == "object",
    }
}
