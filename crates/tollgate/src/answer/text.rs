//! The text of an answer while it is written.

use bytes::Bytes;

/// What the fields of an admitted request with a few limits take.
const USUAL: usize = 128;

/// What a refusal's body takes with the fields, usually.
const LONG: usize = 512;

/// Bytes that are written one after the other, without an allocation as long as they are few. When done they become one,
/// together with the count of those who hold them.
pub(super) struct Text {
    few: [u8; USUAL],
    length: usize,
    /// All of them, where they are more: it has room as soon as they are.
    many: Vec<u8>,
}

impl Text {
    /// A text that will be short.
    #[inline]
    pub(super) const fn new() -> Self {
        Self { few: [0; USUAL], length: 0, many: Vec::new() }
    }

    /// A text that will be long.
    #[inline]
    pub(super) fn long() -> Self {
        Self { few: [0; USUAL], length: 0, many: Vec::with_capacity(LONG) }
    }

    /// How much is written.
    #[inline]
    pub(super) const fn len(&self) -> usize {
        self.length
    }

    /// Appends bytes.
    #[inline]
    pub(super) fn extend(&mut self, bytes: &[u8]) {
        let end = self.length + bytes.len();
        if self.is_long() {
            self.many.extend_from_slice(bytes);
        } else if let Some(room) = self.few.get_mut(self.length..end) {
            room.copy_from_slice(bytes);
        } else {
            self.spill(bytes);
        }
        self.length = end;
    }

    const fn is_long(&self) -> bool {
        self.many.capacity() > 0
    }

    /// Appends a number in decimal digits.
    #[inline]
    pub(super) fn number(&mut self, number: u64) {
        self.extend(itoa::Buffer::new().format(number).as_bytes());
    }

    /// What is written.
    pub(super) fn as_slice(&self) -> &[u8] {
        if self.is_long() { &self.many } else { self.few.get(..self.length).unwrap_or_default() }
    }

    /// What is written, to be shared.
    #[inline]
    pub(super) fn into_bytes(self) -> Bytes {
        Bytes::from_owner(self)
    }

    #[cold]
    fn spill(&mut self, bytes: &[u8]) {
        self.many.reserve(LONG.max(self.length + bytes.len()));
        self.many.extend_from_slice(&self.few[..self.length]);
        self.many.extend_from_slice(bytes);
    }
}

impl AsRef<[u8]> for Text {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

#[cfg(test)]
mod tests {
    use super::{Text, USUAL};

    #[test]
    fn what_is_written_is_there_however_long() {
        for begin in [Text::new, Text::long] {
            for step in [1, 7, 100, USUAL, USUAL + 1, 600] {
                let (mut text, mut expected) = (begin(), Vec::new());
                for byte in b'a'..=b'j' {
                    let piece = vec![byte; step];
                    text.extend(&piece);
                    expected.extend(piece);
                    assert_eq!((text.as_slice(), text.len()), (&expected[..], expected.len()));
                }
                text.extend(&[]);
                text.number(u64::MAX);
                expected.extend(b"18446744073709551615");
                assert_eq!(text.into_bytes(), expected);
            }
        }
    }
}
