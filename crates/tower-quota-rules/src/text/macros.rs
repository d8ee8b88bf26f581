//! Serde and JSON Schema for types that are written as one text.

/// Implements `Serialize`, `Deserialize` and `JsonSchema` by `Display` and `FromStr`.
///
/// The schema of the text is given as an object: its pattern, its examples.
macro_rules! written_as_text {
    ($type:ident, $expected:literal, { $($schema:tt)* }) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Reader;

                impl serde::de::Visitor<'_> for Reader {
                    type Value = $type;

                    fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                        f.write_str($expected)
                    }

                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }
                }

                deserializer.deserialize_str(Reader)
            }
        }

        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "description": $expected, $($schema)* })
            }
        }
    };
}

pub(crate) use written_as_text;
