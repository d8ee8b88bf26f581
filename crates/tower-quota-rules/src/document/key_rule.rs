use core::fmt;
use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::{Serialize, Serializer};

use crate::text::KeyText;

/// The counted key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum KeyRule {
    /// A single key, such as `client_ip`.
    One(KeyText),
    /// The first available key of `[header x-api-key, client_ip]`.
    First(Vec<KeyRule>),
    /// A combination such as `{ all: [client_ip, method] }`.
    All(Vec<KeyRule>),
}

#[derive(Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, rename = "key")]
struct Together<K> {
    all: K,
}

impl Serialize for KeyRule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::One(key) => key.serialize(serializer),
            Self::First(keys) => keys.serialize(serializer),
            Self::All(all) => Together { all }.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for KeyRule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = KeyRule;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key such as \"client_ip\", a list of keys, or { all: [..] }")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<KeyRule, E> {
                text.parse().map(KeyRule::One).map_err(E::custom)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<KeyRule, A::Error> {
                let keys = Vec::deserialize(SeqAccessDeserializer::new(list))?;
                if keys.is_empty() {
                    return Err(A::Error::custom(
                        "an empty list of keys counts no client: give a key, or \"none\" for one counter",
                    ));
                }
                Ok(KeyRule::First(keys))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<KeyRule, A::Error> {
                let together: Together<Vec<KeyRule>> =
                    Together::deserialize(MapAccessDeserializer::new(map))?;
                if together.all.is_empty() {
                    return Err(A::Error::custom(
                        "no keys together are no key: give at least one, or write \"none\"",
                    ));
                }
                Ok(KeyRule::All(together.all))
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

impl JsonSchema for KeyRule {
    fn schema_name() -> Cow<'static, str> {
        "KeyRule".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<KeyText>();
        let any = generator.subschema_for::<Self>();
        json_schema!({ "anyOf": [
            one,
            { "type": "array", "items": any, "minItems": 1 },
            {
                "type": "object",
                "properties": { "all": { "type": "array", "items": any, "minItems": 1 } },
                "required": ["all"],
                "additionalProperties": false
            }
        ] })
    }
}
