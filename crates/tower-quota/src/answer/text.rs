//! The text of an answer while it is written.

use core::cell::Cell;

use bytes::{Bytes, BytesMut};

/// What a thread has to write on: a dozen refusals, or a hundred lists of what is left.
const PAPER: usize = 4_096;

thread_local! {
    /// The rest of the paper that this thread has written on last.
    static REST: Cell<Option<BytesMut>> = const { Cell::new(None) };
}

/// Bytes that are written one after the other. The texts of a thread stand one behind the other on one piece of paper,
/// which is let go with the last answer that has a text on it: most texts take no allocation.
pub(super) struct Text {
    paper: BytesMut,
}

impl Text {
    /// An empty text.
    #[inline]
    pub(super) fn new() -> Self {
        let rest = REST.try_with(Cell::take).ok().flatten();
        Self { paper: rest.unwrap_or_else(|| BytesMut::with_capacity(PAPER)) }
    }

    /// How much is written.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.paper.len()
    }

    /// Appends bytes.
    #[inline]
    pub(super) fn extend(&mut self, bytes: &[u8]) {
        self.paper.extend_from_slice(bytes);
    }

    /// Appends a number in decimal digits.
    #[inline]
    pub(super) fn number(&mut self, number: u64) {
        self.extend(itoa::Buffer::new().format(number).as_bytes());
    }

    /// What is written, to be shared. The rest of the paper is for the next text.
    #[inline]
    pub(super) fn into_bytes(mut self) -> Bytes {
        let text = self.paper.split().freeze();
        // Where the thread is coming to its end, nothing more is written.
        let _ = REST.try_with(|rest| rest.set(Some(self.paper)));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::{PAPER, Text};

    #[test]
    fn what_is_written_is_there_however_long() {
        for step in [1, 7, 100, PAPER / 3, PAPER, PAPER + 1] {
            let texts: Vec<_> = (b'a'..=b'j')
                .map(|first| {
                    let (mut text, mut expected) = (Text::new(), Vec::new());
                    for byte in first..=b'j' {
                        let piece = vec![byte; step];
                        text.extend(&piece);
                        expected.extend(piece);
                        assert_eq!(text.len(), expected.len());
                    }
                    text.extend(&[]);
                    text.number(u64::MAX);
                    expected.extend(b"18446744073709551615");
                    (text.into_bytes(), expected)
                })
                .collect();
            texts.iter().for_each(|(text, expected)| assert_eq!(text, expected));
        }
    }

    #[test]
    fn two_at_a_time_are_two() {
        let (mut one, mut other) = (Text::new(), Text::new());
        one.extend(b"one");
        other.extend(b"other");
        assert_eq!((&one.into_bytes()[..], &other.into_bytes()[..]), (&b"one"[..], &b"other"[..]));
    }
}
