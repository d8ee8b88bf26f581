//! Reads the metadata of a descriptor.

use std::collections::BTreeMap;

use prost_types::Value;
use prost_types::value::Kind as Shown;

use super::node::{Kind, Node, truth};

/// Returns the metadata of a map, or `None` for another value.
pub(super) fn read(node: &Node<'_>) -> Option<BTreeMap<String, Value>> {
    match &node.kind {
        Kind::Struct(metadata) => Some(metadata.fields.clone()),
        Kind::Map(entries) => {
            let mut fields = BTreeMap::new();
            for (key, element) in entries {
                if let Kind::Plain(name) | Kind::Text(name) = &key.kind {
                    fields.insert(name.to_string(), value(element));
                }
            }
            Some(fields)
        }
        _ => None,
    }
}

fn value(node: &Node<'_>) -> Value {
    match &node.kind {
        Kind::Text(text) => Value::from(&**text),
        Kind::Plain(text) => match (truth(text), text.parse::<f64>()) {
            (Some(flag), _) => flag.into(),
            (_, Ok(number)) if number.is_finite() => number.into(),
            _ => Value::from(&**text),
        },
        Kind::List(elements) => elements.iter().map(value).collect::<Vec<_>>().into(),
        _ => read(node).map_or_else(|| Shown::NullValue(0).into(), Value::from),
    }
}
