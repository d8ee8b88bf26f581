use core::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::text::KeyText;

/// The counted key.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(untagged, deny_unknown_fields)]
pub enum KeyRule {
    /// A single key, such as `client_ip`.
    One(KeyText),
    /// The first available key of `[header x-api-key, client_ip]`.
    First(#[schemars(length(min = 1))] Vec<KeyRule>),
    /// A combination such as `{ all: [client_ip, method] }`.
    All {
        /// The keys.
        #[schemars(length(min = 1))]
        all: Vec<KeyRule>,
    },
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

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<KeyRule, A::Error> {
                let mut all: Vec<KeyRule> = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    if name == "all" {
                        all = map.next_value()?;
                        continue;
                    }
                    let value: String = map.next_value().unwrap_or_default();
                    let meant = match value.as_str() {
                        "" => "\"all\" with a list of keys".into(),
                        value => format!("{:?}", format!("{name} {value}")),
                    };
                    return Err(A::Error::custom(format_args!(
                        "there is no field {name:?} in a key: write {meant}"
                    )));
                }
                if all.is_empty() {
                    return Err(A::Error::custom(
                        "no keys together are no key: give at least one, or write \"none\"",
                    ));
                }
                Ok(KeyRule::All { all })
            }
        }

        deserializer.deserialize_any(Reader)
    }
}
