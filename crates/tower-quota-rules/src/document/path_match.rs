use core::fmt;
use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde::{Serialize, Serializer};

use crate::text::{PathPattern, PathRegex};

/// A pattern of paths, `/users/{id}`, or an expression, `{ regex: "^/v[12]/" }`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PathMatch {
    /// A pattern in the syntax of axum's routes.
    Pattern(PathPattern),
    /// A regular expression.
    Regex(PathRegex),
}

#[derive(Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, rename = "path")]
struct Expression<R> {
    regex: R,
}

impl Serialize for PathMatch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Pattern(pattern) => pattern.serialize(serializer),
            Self::Regex(regex) => Expression { regex }.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for PathMatch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = PathMatch;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a path such as \"/users/{id}\", or { regex: \"^/v[12]/\" }")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<PathMatch, E> {
                text.parse().map(PathMatch::Pattern).map_err(E::custom)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<PathMatch, A::Error> {
                let expression = Expression::deserialize(MapAccessDeserializer::new(map))?;
                Ok(PathMatch::Regex(expression.regex))
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

impl JsonSchema for PathMatch {
    fn schema_name() -> Cow<'static, str> {
        "PathMatch".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (pattern, regex) = (
            generator.subschema_for::<PathPattern>(),
            generator.subschema_for::<PathRegex>(),
        );
        json_schema!({ "anyOf": [pattern, {
            "type": "object",
            "properties": { "regex": regex },
            "required": ["regex"],
            "additionalProperties": false
        }] })
    }
}
