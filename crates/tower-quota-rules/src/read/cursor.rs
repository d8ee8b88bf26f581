//! A serde deserializer over nodes.

use std::collections::BTreeSet;

use serde::de::value::StrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::forward_to_deserialize_any;

use super::error::ReadError;
use super::tree::{Kind, Tree};

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
        let rest = self
            .tree
            .elements(self.node)
            .filter(move |node| !self.is_left_out(*node));
        visitor.visit_seq(ListItems { cursor: self, rest })
    }

    fn map<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let kept =
            move |(key, value): &(u32, u32)| !self.is_left_out(*key) && !self.is_left_out(*value);
        let rest = self.tree.entries(self.node).filter(kept);
        visitor.visit_map(Entries {
            cursor: self,
            rest,
            value: None,
        })
    }

    fn number(self, most: u64) -> Result<u64, ReadError> {
        let is_plain = self.kind() == Kind::Plain;
        let number = self
            .text()
            .parse::<u64>()
            .ok()
            .filter(|number| *number <= most);
        match number {
            Some(number) if is_plain => Ok(number),
            _ if is_plain => Err(ReadError::number(self.text(), most)),
            _ => Err(ReadError::invalid_type(self.unexpected(), &"an integer")),
        }
    }

    fn unexpected(self) -> Unexpected<'t> {
        match self.kind() {
            Kind::Null => Unexpected::Unit,
            Kind::Text | Kind::Plain => Unexpected::Str(self.text()),
            Kind::List => Unexpected::Seq,
            Kind::Map => Unexpected::Map,
        }
    }
}

impl<'de> Deserializer<'de> for Cursor<'_> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.kind() {
            Kind::Null => visitor.visit_unit(),
            Kind::Text | Kind::Plain => visitor.visit_str(self.text()),
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
            _ => Err(ReadError::invalid_type(self.unexpected(), &"true or false")),
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
            Kind::Text | Kind::Plain => visitor.visit_enum(StrDeserializer::new(self.text())),
            _ => Err(ReadError::invalid_type(
                self.unexpected(),
                &"one of the known words",
            )),
        }
    }

    /// Reads a map. An empty value is an empty map, since all of its lines may be comments.
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.kind() {
            Kind::Map | Kind::Null => self.map(visitor),
            _ => Err(ReadError::invalid_type(self.unexpected(), &visitor)),
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
            _ => Err(ReadError::invalid_type(
                self.unexpected(),
                &"a map of fields",
            )),
        }
    }

    /// Reads a list. An empty value is an empty list, since all of its lines may be comments.
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.kind() {
            Kind::List | Kind::Null => self.list(visitor),
            _ => Err(ReadError::invalid_type(self.unexpected(), &"a list")),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u16 u128 f32 f64 char str string bytes byte_buf unit unit_struct tuple tuple_struct
        identifier ignored_any
    }
}

struct ListItems<'t, I> {
    cursor: Cursor<'t>,
    rest: I,
}

impl<'de, I: Iterator<Item = u32>> SeqAccess<'de> for ListItems<'_, I> {
    type Error = ReadError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ReadError> {
        let Some(node) = self.rest.next() else {
            return Ok(None);
        };
        seed.deserialize(self.cursor.at(node))
            .map(Some)
            .map_err(|error| error.at(node))
    }
}

struct Entries<'t, I> {
    cursor: Cursor<'t>,
    rest: I,
    value: Option<u32>,
}

impl<'de, I: Iterator<Item = (u32, u32)>> MapAccess<'de> for Entries<'_, I> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, ReadError> {
        let Some((key, value)) = self.rest.next() else {
            return Ok(None);
        };
        self.value = Some(value);
        let text = StrDeserializer::new(self.cursor.tree.text(key));
        seed.deserialize(text)
            .map(Some)
            .map_err(|error: ReadError| error.at(key))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ReadError> {
        let Some(value) = self.value.take() else {
            return Err(ReadError::custom("a value without its key"));
        };
        seed.deserialize(self.cursor.at(value))
            .map_err(|error| error.at(value))
    }
}
