//! Access logs: files, lines, and the requests in them.
//!
//! `file` opens a log, compressed or not, and reads its lines. `LineReader` reads one line, in the common or combined
//! format (`common`) or as JSON (`json`), which each line shows by its first byte. `time` reads times.

mod common;
mod file;
mod json;
mod record;
#[cfg(test)]
mod tests;
pub(crate) mod time;

pub(crate) use self::file::LogFile;
pub(crate) use self::record::{LogRecord, Unreadable};

use self::time::TimeReader;

/// The most bytes of a line that are read. Longer lines are no requests.
pub(crate) const LONGEST_LINE: u64 = 1 << 20;

/// Reads lines of access logs.
#[derive(Debug, Default)]
pub(crate) struct LineReader {
    time: TimeReader,
    headers: Vec<(String, HeaderSource)>,
}

/// The place of a header's value in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HeaderSource {
    /// The quoted field of this number after the sizes, counted from 1: the referer is the first.
    Position(usize),
    /// The JSON field of this name.
    Field(String),
}

impl LineReader {
    /// Makes a reader that takes these headers from where the log has them.
    pub(crate) fn new(headers: Vec<(String, HeaderSource)>) -> Self {
        Self {
            time: TimeReader::default(),
            headers,
        }
    }

    /// Reads one line.
    pub(crate) fn read<'a>(&mut self, line: &'a [u8]) -> Result<LogRecord<'a>, Unreadable> {
        let line = core::str::from_utf8(line)
            .map_err(|_| Unreadable::Form)?
            .trim();
        if line.starts_with('{') {
            self.json(line)
        } else {
            self.common(line)
        }
    }
}

/// Reads an argument such as `x-api-key=3` or `x-api-key=api_key`.
pub(crate) fn header_source(text: &str) -> Result<(String, HeaderSource), String> {
    let (name, source) = text
        .split_once('=')
        .ok_or("write NAME=FIELD, such as x-api-key=api_key or x-api-key=3")?;
    let name = http::HeaderName::try_from(name)
        .map_err(|_| format!("{name:?} is not the name of a header"))?;
    let source = match source.parse() {
        Ok(0) => return Err("quoted fields are counted from 1: the referer is the first".into()),
        Ok(position) => HeaderSource::Position(position),
        Err(_) => HeaderSource::Field(source.to_owned()),
    };
    Ok((name.as_str().to_owned(), source))
}
