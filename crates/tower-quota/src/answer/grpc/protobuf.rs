//! The little of Protocol Buffers that the details of a status need: writing, and four kinds of fields.

/// A message, as bytes.
#[derive(Debug, Default)]
pub(super) struct Message(Vec<u8>);

/// A field of bytes that are counted: a string, or a message.
const COUNTED: u64 = 2;

impl Message {
    /// Adds an integer. Zero is what a field is that is left out.
    pub(super) fn integer(mut self, field: u64, value: u64) -> Self {
        if value > 0 {
            self.varint(field << 3);
            self.varint(value);
        }
        self
    }

    /// Adds a string.
    pub(super) fn string(self, field: u64, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    /// Adds a message.
    pub(super) fn message(self, field: u64, message: &Self) -> Self {
        self.bytes(field, &message.0)
    }

    /// Adds a message whose type the reader is told by name (`google.protobuf.Any`).
    pub(super) fn any(self, field: u64, type_url: &str, message: &Self) -> Self {
        self.message(field, &Self::default().string(1, type_url).message(2, message))
    }

    /// The message's length.
    pub(super) const fn len(&self) -> usize {
        self.0.len()
    }

    /// The message.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    fn bytes(mut self, field: u64, bytes: &[u8]) -> Self {
        self.varint(field << 3 | COUNTED);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    /// Seven bits to a byte, the lowest first; all but the last have the top bit.
    fn varint(&mut self, mut value: u64) {
        while value > 0x7f {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push((value & 0x7f) as u8);
    }
}
