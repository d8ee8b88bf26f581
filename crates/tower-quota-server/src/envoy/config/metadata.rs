//! Reads the metadata of a descriptor.

use prost_types::value::Kind as Shown;
use prost_types::{ListValue, Struct, Value};

use super::yaml::{Kind, Node};

/// Returns the metadata of a map.
pub(super) fn read(node: &Node) -> Option<Struct> {
    match value(node).kind {
        Some(Shown::StructValue(metadata)) => Some(metadata),
        _ => None,
    }
}

fn value(node: &Node) -> Value {
    let kind = match &node.kind {
        Kind::Null => Shown::NullValue(0),
        Kind::Text(text) => Shown::StringValue(text.clone()),
        Kind::Plain(text) => match (text.as_str(), text.parse::<f64>()) {
            ("true", _) => Shown::BoolValue(true),
            ("false", _) => Shown::BoolValue(false),
            (_, Ok(number)) if number.is_finite() => Shown::NumberValue(number),
            _ => Shown::StringValue(text.clone()),
        },
        Kind::List(elements) => Shown::ListValue(ListValue {
            values: elements.iter().map(value).collect(),
        }),
        Kind::Map(entries) => {
            let mut metadata = Struct::default();
            for (key, element) in entries {
                if let Kind::Plain(name) | Kind::Text(name) = &key.kind {
                    metadata.fields.insert(name.clone(), value(element));
                }
            }
            Shown::StructValue(metadata)
        }
    };
    Value { kind: Some(kind) }
}
