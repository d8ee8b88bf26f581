//! Many lines of YAML with one entry each, `  sk_1: { limits: { minute: 5/s } }`, as overrides are mostly written.
//!
//! A parser of all of YAML takes microseconds for each, and there may be a million. So it reads the first two lines of such a
//! run, in the text without the others. If they are entries of a map, with the nodes that are read here, then the other
//! lines are entries of this map too, and are read here. In every other case the parser reads the text as it is.

use super::tree::{At, Exceeded, Kind, Tree, small};

/// The lines that the parser reads: two, since a map in braces takes one without a comma.
const PARSED: usize = 2;

/// The longest line: keys of YAML without a question mark have at most 1,024 characters.
const LONGEST: usize = 1_000;

/// A run of lines with one entry each, by the same indentation.
#[derive(Debug)]
pub(super) struct EntryLines<'s> {
    /// The number of the first line, from 1.
    first: usize,
    indent: usize,
    /// The text before the run, the parsed lines of the run, the other ones, and the text behind it.
    before: &'s str,
    parsed: &'s str,
    others: &'s str,
    behind: &'s str,
    /// The number of the other lines.
    count: usize,
}

impl<'s> EntryLines<'s> {
    /// Returns the first run of at least this many lines that look like entries.
    pub(super) fn find(text: &'s str, fewest: usize) -> Option<Self> {
        let (mut start, mut first, mut indent, mut parsed_end) = (0, 1, None, 0);
        let (mut at, mut number) = (0, 1);
        for line in text.split_inclusive('\n').chain([""]) {
            let found = indent_of(line);
            if found.is_none() || found != indent {
                if indent.is_some() && number - first >= fewest {
                    break;
                }
                (start, first, indent) = (at, number, found);
            }
            at += line.len();
            number += 1;
            if number - first == PARSED {
                parsed_end = at;
            }
        }
        let indent = indent.filter(|_| number - first >= fewest)?;
        let count = number - first - PARSED;
        Some(Self {
            first,
            indent,
            before: text.get(..start)?,
            parsed: text.get(start..parsed_end)?,
            others: text.get(parsed_end..at)?,
            behind: text.get(at..)?,
            count,
        })
    }

    /// Returns the text without the lines that the parser leaves out.
    pub(super) fn rest(&self) -> String {
        [self.before, self.parsed, self.behind].concat()
    }

    /// Returns the line in the text of a line in the rest.
    pub(super) const fn line(&self, in_rest: usize) -> usize {
        if self.is_behind(in_rest) {
            in_rest + self.count
        } else {
            in_rest
        }
    }

    /// Returns whether a line of the rest is behind the run.
    pub(super) const fn is_behind(&self, in_rest: usize) -> bool {
        in_rest >= self.first + PARSED
    }

    /// Returns where the run begins.
    pub(super) fn start(&self) -> At {
        At::Line(small(self.first), small(self.indent + 1))
    }

    /// Returns whether the parsed lines are the nodes of a tree from this one on.
    pub(super) fn are_read_as(&self, tree: &Tree, start: usize) -> bool {
        let mut read = Tree::default();
        matches!(add_lines(&mut read, self.parsed, self.first), Ok(true))
            && tree.ends_with(start, &read)
    }

    /// Adds the other lines to the map that is open. Returns false if one is no such entry.
    pub(super) fn add_others(&self, tree: &mut Tree) -> Result<bool, Exceeded> {
        add_lines(tree, self.others, self.first + PARSED)
    }
}

/// Returns the indentation of a line that looks like an entry.
fn indent_of(line: &str) -> Option<usize> {
    let key = line.trim_start_matches(' ');
    let has_key = key.starts_with(|first: char| is_first(first) || first == '"');
    let looks_so =
        has_key && line.len() <= LONGEST && line.ends_with("}\n") && line.contains(": {");
    looks_so.then(|| line.len() - key.len())
}

/// Returns whether a text without quotes may begin with a character: signs may mean something there.
const fn is_first(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

fn add_lines(tree: &mut Tree, lines: &str, first: usize) -> Result<bool, Exceeded> {
    for (line, number) in lines.split_inclusive('\n').zip(first..) {
        let mut line = Line {
            text: line,
            at: 0,
            number: small(number),
        };
        line.skip_spaces();
        if !(line.entry(tree)? && line.text.get(line.at..) == Some("\n")) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A line that is read. Methods return false when it is not of the expected form.
struct Line<'s> {
    text: &'s str,
    at: usize,
    number: u32,
}

impl<'s> Line<'s> {
    fn place(&self) -> At {
        At::Line(self.number, small(self.at + 1))
    }

    fn skip_spaces(&mut self) {
        while self.peek() == Some(b' ') {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, token: &str) -> bool {
        let is_next = self
            .text
            .as_bytes()
            .get(self.at..)
            .is_some_and(|rest| rest.starts_with(token.as_bytes()));
        self.at += if is_next { token.len() } else { 0 };
        is_next
    }

    /// Reads a key and a map.
    fn entry(&mut self, tree: &mut Tree) -> Result<bool, Exceeded> {
        Ok(self.scalar(tree)? && self.take(": ") && self.peek() == Some(b'{') && self.map(tree)?)
    }

    /// Reads a map in braces.
    fn map(&mut self, tree: &mut Tree) -> Result<bool, Exceeded> {
        tree.open(Kind::Map, self.place())?;
        self.at += 1;
        self.skip_spaces();
        while self.peek() != Some(b'}') {
            if !(self.scalar(tree)? && self.take(": ")) {
                return Ok(false);
            }
            let is_read = if self.peek() == Some(b'{') {
                self.map(tree)?
            } else {
                self.scalar(tree)?
            };
            self.skip_spaces();
            if !is_read || !(self.take(", ") || self.peek() == Some(b'}')) {
                return Ok(false);
            }
        }
        self.at += 1;
        tree.close();
        Ok(true)
    }

    /// Reads a text in quotes without escapes, or a plain one.
    ///
    /// A plain one has letters, digits, single spaces and signs that mean nothing.
    fn scalar(&mut self, tree: &mut Tree) -> Result<bool, Exceeded> {
        let (place, rest) = (self.place(), &self.text[self.at..]);
        if let Some(quoted) = rest.strip_prefix('"') {
            let length = quoted
                .bytes()
                .take_while(|byte| matches!(byte, b' '..=b'~') && !b"\"\\".contains(byte))
                .count();
            self.at += length + 2;
            tree.scalar(Kind::Text, place, &quoted[..length])?;
            return Ok(quoted.as_bytes().get(length) == Some(&b'"'));
        }
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-./@+=".contains(byte);
        let bytes = rest.as_bytes();
        let mut length = 0;
        // A space is a part of it between two characters.
        while let Some(byte) = bytes.get(length) {
            let is_inside = *byte == b' ' && bytes.get(length + 1).is_some_and(is_plain);
            if !(is_plain(byte) || is_inside) {
                break;
            }
            length += 1;
        }
        self.at += length;
        let text = &rest[..length];
        tree.scalar(Kind::of_plain(text), place, text)?;
        Ok(text.starts_with(is_first))
    }
}
