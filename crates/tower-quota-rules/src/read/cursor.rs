//! A serde deserializer over nodes.

use std::collections::BTreeSet;

use serde::de::value::{MapDeserializer, SeqDeserializer, StrDeserializer};
use serde::de::{Deserializer, Error, Expected, IntoDeserializer, Unexpected, Visitor};
use serde::forward_to_deserialize_any;

use super::error::ReadError;
use super::tree::{Kind, Tree};

/// A node to read. Errors name the innermost node.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'t> {
    pub(super) tree: &'t Tree,
    pub(super) left_out: &'t BTreeSet<u32>,
    pub(super) node: u32,
}

impl<'t> Cursor<'t> {
    const fn at(self, node: u32) -> Self {
        Self { node, ..self }
    }

    fn text(self) -> &'t str {
        self.tree.text(self.node)
    }

    fn kind(self) -> Kind {
        self.tree.kind(self.node)
    }

    fn is_left_out(self, node: u32) -> bool {
        !self.left_out.is_empty() && self.left_out.contains(&node)
    }

    fn list<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let elements = self.tree.elements(self.node);
        let kept = elements.filter(|node| !self.is_left_out(*node));
        self.here(visitor.visit_seq(SeqDeserializer::new(kept.map(|node| self.at(node)))))
    }

    fn map<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let entries = self.tree.entries(self.node);
        let kept =
            entries.filter(|(key, value)| !self.is_left_out(*key) && !self.is_left_out(*value));
        let entries = kept.map(|(key, value)| (self.at(key), self.at(value)));
        self.here(visitor.visit_map(MapDeserializer::new(entries)))
    }

    fn number(self, most: u64) -> Result<u64, ReadError> {
        if self.kind() != Kind::Plain {
            return self.mismatch(&"an integer");
        }
        match self.text().parse() {
            Ok(number) if number <= most => Ok(number),
            _ => self.here(Err(ReadError::number(self.text(), most))),
        }
    }

    fn here<T>(self, read: Result<T, ReadError>) -> Result<T, ReadError> {
        read.map_err(|error| error.at(self.node))
    }

    fn mismatch<T>(self, expected: &dyn Expected) -> Result<T, ReadError> {
        let found = match self.kind() {
            Kind::Null => Unexpected::Unit,
            Kind::Text | Kind::Plain => Unexpected::Str(self.text()),
            Kind::List => Unexpected::Seq,
            Kind::Map => Unexpected::Map,
        };
        self.here(Err(ReadError::invalid_type(found, expected)))
    }
}

impl IntoDeserializer<'_, ReadError> for Cursor<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Cursor<'_> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.kind() {
            Kind::Null => self.here(visitor.visit_unit()),
            Kind::Text | Kind::Plain => self.here(visitor.visit_str(self.text())),
            Kind::List => self.list(visitor),
            Kind::Map => self.map(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        if self.kind() == Kind::Null {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match (self.kind(), self.text()) {
            (Kind::Plain, "true") => visitor.visit_bool(true),
            (Kind::Plain, "false") => visitor.visit_bool(false),
            _ => self.mismatch(&"true or false"),
        }
    }

    fn deserialize_u8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_u64(self.number(u8::MAX.into())?)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_u64(self.number(u32::MAX.into())?)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_u64(self.number(u64::MAX)?)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        match self.kind() {
            Kind::Text | Kind::Plain => {
                self.here(visitor.visit_enum(StrDeserializer::new(self.text())))
            }
            _ => self.mismatch(&"one of the known words"),
        }
    }

    /// Reads a map. An empty value is an empty map, since all of its lines may be comments.
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.kind() {
            Kind::Map | Kind::Null => self.map(visitor),
            _ => self.mismatch(&visitor),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        match self.kind() {
            Kind::Map | Kind::Null => self.map(visitor),
            _ => self.mismatch(&"a map of fields"),
        }
    }

    /// Reads a list. An empty value is an empty list, since all of its lines may be comments.
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.kind() {
            Kind::List | Kind::Null => self.list(visitor),
            _ => self.mismatch(&"a list"),
        }
    }

    /// Reads the name of a field, which may be spelt like a missing value.
    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.here(visitor.visit_str(self.text()))
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u16 u128 f32 f64 char str string bytes byte_buf unit unit_struct newtype_struct tuple tuple_struct
        ignored_any
    }
}
