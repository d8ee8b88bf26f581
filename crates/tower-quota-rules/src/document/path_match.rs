use core::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

use crate::text::{PathPattern, PathRegex};

/// A pattern of paths, `/users/{id}`, or an expression, `{ regex: "^/v[12]/" }`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged, deny_unknown_fields)]
pub enum PathMatch {
    /// A pattern in the syntax of axum's routes.
    Pattern(PathPattern),
    /// A regular expression.
    Regex {
        /// The expression.
        regex: PathRegex,
    },
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, rename = "path")]
struct Expression {
    regex: PathRegex,
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
                let Expression { regex } =
                    Expression::deserialize(MapAccessDeserializer::new(map))?;
                Ok(PathMatch::Regex { regex })
            }
        }

        deserializer.deserialize_any(Reader)
    }
}
