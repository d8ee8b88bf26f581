//! A header's list, read from its right end.

use core::iter::Rev;

use http::header::{GetAll, HeaderValue, ValueIter};

/// Reads no more than this of a list: a header may be as long as the server permits, and every byte of it hostile.
const MOST_BYTES: usize = 4_096;

/// Whether a list has strings, in which a comma does not part.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Quotes {
    /// It has not.
    Plain,
    /// It has those of RFC 9110, section 5.6.4.
    Strings,
}

/// The elements of a list, all lines of the header joined, last one first. An element that cannot be told from its
/// neighbours, because a string in it does not end or it is too long, is `None`; what stands left of
/// it means nothing.
///
/// Strings too are found from the right: what the nearest proxy has appended is then split alike whatever stands before
/// it. From the left, a client's unfinished string would swallow the proxy's own words.
pub(super) struct Elements<'h> {
    lines: Rev<ValueIter<'h, HeaderValue>>,
    /// What is left of the present line.
    line: Option<&'h [u8]>,
    quotes: Quotes,
    bytes: usize,
}

impl<'h> Elements<'h> {
    pub(super) fn of(lines: GetAll<'h, HeaderValue>, quotes: Quotes) -> Self {
        Self { lines: lines.into_iter().rev(), line: None, quotes, bytes: MOST_BYTES }
    }
}

impl<'h> Iterator for Elements<'h> {
    type Item = Option<&'h [u8]>;

    fn next(&mut self) -> Option<Self::Item> {
        let line = match self.line.take() {
            Some(line) => line,
            None => self.lines.next()?.as_bytes(),
        };
        let Some((before, element)) = last(line, self.quotes, self.bytes) else {
            self.bytes = 0;
            return Some(None);
        };
        self.bytes -= element.len();
        self.line = before;
        Some(Some(element))
    }
}

/// The last element of a list, and what stands before its comma. `None` if it is longer than `most` bytes or a string
/// in it does not begin.
fn last(list: &[u8], quotes: Quotes, most: usize) -> Option<(Option<&[u8]>, &[u8])> {
    let mut inside = false;
    for at in (list.len().saturating_sub(most.saturating_add(1))..list.len()).rev() {
        match list[at] {
            b'"' if quotes == Quotes::Strings => inside = !inside || escaped(&list[..at]),
            b',' if !inside => return Some((Some(&list[..at]), &list[at + 1..])),
            _ => {}
        }
    }
    (!inside && list.len() <= most).then_some((None, list))
}

/// Whether what follows is escaped: an odd number of backslashes stands before it.
fn escaped(before: &[u8]) -> bool {
    before.iter().rev().take(MOST_BYTES).take_while(|byte| **byte == b'\\').count() % 2 == 1
}
