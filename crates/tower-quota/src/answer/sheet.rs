//! The header fields of one answer, before they are poured into its headers.

use std::sync::OnceLock;

use bytes::Bytes;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use smallvec::SmallVec;

use super::structured::integer;
use super::text::Text;

/// More fields than this spill to the heap.
const USUAL: usize = 10;

/// As many numbers as a limit has told when it is told again.
const NUMBERS: usize = 4;

/// What is to be written on an answer.
pub(crate) struct Sheet<'a> {
    fields: SmallVec<[Field<'a>; USUAL]>,
    text: Text,
    /// The first numbers that were written: fields say the same in several ways.
    numbers: [(u64, Piece); NUMBERS],
    /// How many these are.
    written: usize,
}

#[derive(Clone, Copy, Debug)]
struct Field<'a> {
    name: &'static HeaderName,
    value: Value<'a>,
    /// Whether it adds to what is there under its name, instead of replacing it.
    adds: bool,
}

#[derive(Clone, Copy, Debug)]
enum Value<'a> {
    /// What never changes.
    Constant(&'a HeaderValue),
    /// A piece of the text.
    Text(Piece),
}

/// A piece of a sheet's text: where it begins and ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece(usize, usize);

impl Piece {
    /// The piece itself.
    #[inline]
    pub(super) fn of(self, text: &Bytes) -> Bytes {
        text.slice(self.0..self.1)
    }

    /// Whether nothing was written.
    #[inline]
    pub(super) const fn is_empty(self) -> bool {
        self.0 == self.1
    }
}

/// The headers of an earlier answer with the same fields, without its texts. A copy of it, filled in, spares the hashing of
/// names and the search for their places.
#[derive(Debug)]
pub(crate) struct Template {
    names: Vec<&'static HeaderName>,
    headers: HeaderMap,
}

impl<'a> Sheet<'a> {
    /// An empty one.
    #[inline]
    pub(crate) fn new() -> Self {
        Self { fields: SmallVec::new(), text: Text::new(), numbers: [(0, Piece(0, 0)); NUMBERS], written: 0 }
    }

    /// The text, to write on.
    #[inline]
    pub(super) fn out(&mut self) -> &mut Text {
        &mut self.text
    }

    /// Where the text ends now.
    #[inline]
    pub(super) fn here(&self) -> usize {
        self.text.len()
    }

    /// What was written since.
    #[inline]
    pub(super) fn since(&self, begin: usize) -> Piece {
        Piece(begin, self.text.len())
    }

    /// Writes an Integer.
    #[inline]
    pub(super) fn integer(&mut self, number: u64) {
        let begin = self.here();
        self.text.number(integer(number));
        let piece = self.since(begin);
        if let Some(free) = self.numbers.get_mut(self.written) {
            *free = (number, piece);
            self.written += 1;
        }
    }

    /// The digits of an Integer, which may have been written already.
    #[inline]
    pub(super) fn digits(&mut self, number: u64) -> Piece {
        if let Some((_, piece)) = self.numbers.iter().take(self.written).find(|(written, _)| *written == number) {
            return *piece;
        }
        let begin = self.here();
        self.integer(number);
        self.since(begin)
    }

    /// A field that never changes.
    #[inline]
    pub(super) fn constant(&mut self, name: &'static HeaderName, value: &'a HeaderValue) {
        self.fields.push(Field { name, value: Value::Constant(value), adds: false });
    }

    /// A field that never changes, beside what is there under its name.
    #[inline]
    pub(super) fn add_constant(&mut self, name: &'static HeaderName, value: &'a HeaderValue) {
        self.fields.push(Field { name, value: Value::Constant(value), adds: true });
    }

    /// A field of this text.
    #[inline]
    pub(super) fn text(&mut self, name: &'static HeaderName, piece: Piece) {
        self.fields.push(Field { name, value: Value::Text(piece), adds: false });
    }

    /// A field of this text, beside what is there under its name.
    #[inline]
    pub(super) fn add_text(&mut self, name: &'static HeaderName, piece: Piece) {
        self.fields.push(Field { name, value: Value::Text(piece), adds: true });
    }

    /// Pours the fields into the headers of an answer; the text, of which some pieces may be meant for elsewhere. The
    /// template is that of earlier answers of this kind, and made here where there was none.
    #[inline]
    pub(crate) fn pour(self, headers: &mut HeaderMap, template: &OnceLock<Template>) -> Bytes {
        let text = self.text.into_bytes();
        let fields = &self.fields[..];
        if headers.is_empty() {
            match template.get() {
                Some(template) if template.fits(fields) => *headers = template.filled(fields, &text),
                _ => {
                    write(fields, &text, headers);
                    if headers.len() == fields.len() {
                        template.get_or_init(|| Template::of(fields, headers));
                    }
                }
            }
        } else {
            write(fields, &text, headers);
        }
        text
    }
}

/// Writes fields one by one.
#[inline(never)]
fn write(fields: &[Field<'_>], text: &Bytes, headers: &mut HeaderMap) {
    headers.reserve(fields.len());
    for field in fields {
        match field.value(text) {
            Some(value) if field.adds => _ = headers.append(field.name, value),
            Some(value) => _ = headers.insert(field.name, value),
            None => {}
        }
    }
}

impl Field<'_> {
    /// Numbers, base64 and the checked names of limits always make a value.
    #[inline]
    fn value(&self, text: &Bytes) -> Option<HeaderValue> {
        match self.value {
            Value::Constant(value) => Some(value.clone()),
            Value::Text(piece) => HeaderValue::from_maybe_shared(piece.of(text)).ok(),
        }
    }
}

impl Template {
    fn of(fields: &[Field<'_>], headers: &HeaderMap) -> Self {
        let mut headers = headers.clone();
        for (value, field) in headers.values_mut().zip(fields) {
            if let Value::Text(_) = field.value {
                *value = const { HeaderValue::from_static("") };
            }
        }
        Self { names: fields.iter().map(|field| field.name).collect(), headers }
    }

    /// Whether an answer with these fields is of this form.
    #[inline]
    fn fits(&self, fields: &[Field<'_>]) -> bool {
        let same = |(name, field): (&&'static HeaderName, &Field<'_>)| core::ptr::eq(*name, field.name);
        self.names.len() == fields.len() && self.names.iter().zip(fields).all(same)
    }

    /// The headers with these fields. Where there is only one line of each name, values are in the order of the names.
    #[inline]
    fn filled(&self, fields: &[Field<'_>], text: &Bytes) -> HeaderMap {
        let mut headers = self.headers.clone();
        for (slot, field) in headers.values_mut().zip(fields) {
            match field.value {
                // A clone of the very same is there already.
                Value::Constant(value) if value.as_bytes().as_ptr() == slot.as_bytes().as_ptr() => {}
                _ => {
                    if let Some(value) = field.value(text) {
                        *slot = value;
                    }
                }
            }
        }
        headers
    }
}
