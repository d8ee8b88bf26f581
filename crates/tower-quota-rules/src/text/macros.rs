/// Implements `Serialize`, `Deserialize` and `JsonSchema` by `Display` and `FromStr`.
///
/// Takes the schema of the text as an object. With `number`, numbers are written as numbers.
macro_rules! written_as_text {
    (number $type:ident, $expected:literal, { $($schema:tt)* }) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self.to_string().parse() {
                    Ok(number) => serializer.serialize_u64(number),
                    Err(_) => serializer.collect_str(self),
                }
            }
        }

        $crate::text::written_as_text!(read $type, $expected, {
            "description": $expected,
            $($schema)*
        });
    };
    (read $type:ident, $expected:literal, { $($schema:tt)* }) => {
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

                    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<$type, E> {
                        self.visit_str(&number.to_string())
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
                schemars::json_schema!({ $($schema)* })
            }
        }
    };
    ($type:ident, $expected:literal, { $($schema:tt)* }) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        $crate::text::written_as_text!(read $type, $expected, {
            "type": "string",
            "description": $expected,
            $($schema)*
        });
    };
}

/// Converts a text to and from the value that it wraps.
macro_rules! wraps {
    ($type:ident, $value:ty) => {
        impl From<$value> for $type {
            fn from(value: $value) -> Self {
                Self(value)
            }
        }

        impl From<$type> for $value {
            fn from(text: $type) -> Self {
                text.0
            }
        }
    };
}

/// Defines a text that a function accepts.
macro_rules! checked_text {
    ($(#[$docs:meta])* $type:ident, $check:expr, $expected:literal, { $($schema:tt)* }) => {
        $(#[$docs])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $type(Box<str>);

        impl $type {
            /// Returns the text.
            #[must_use]
            pub const fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl core::str::FromStr for $type {
            type Err = $crate::text::TextError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                ($check)(text).map_err($crate::text::TextError::of)?;
                Ok(Self(text.into()))
            }
        }

        impl AsRef<str> for $type {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl core::fmt::Display for $type {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(&self.0)
            }
        }

        $crate::text::written_as_text!($type, $expected, { $($schema)* });
    };
}

pub(crate) use {checked_text, wraps, written_as_text};
