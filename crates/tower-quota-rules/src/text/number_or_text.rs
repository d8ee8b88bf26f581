//! Serde and JSON Schema for types that are written as a number or a text.

/// Implements serde's traits and `JsonSchema` by `number`, `From<u64>`, `Display` and `FromStr`.
macro_rules! number_or_text {
    ($type:ident, $expected:literal, { $($schema:tt)* }) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self.number() {
                    Some(number) => serializer.serialize_u64(number),
                    None => serializer.collect_str(self),
                }
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

                    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<$type, E> {
                        Ok(number.into())
                    }

                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }
                }

                deserializer.deserialize_any(Reader)
            }
        }

        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "description": $expected, $($schema)* })
            }
        }
    };
}

pub(crate) use number_or_text;
