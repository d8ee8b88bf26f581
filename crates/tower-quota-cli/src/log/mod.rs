//! Reads access logs.
//!
//! `file` opens a log and reads its lines. `LineReader` parses a line as JSON (`json`) or in the
//! common or combined format (`common`), and fills a `line`. `time` parses times.

mod common;
mod file;
mod json;
mod line;
#[cfg(test)]
mod tests;
pub(crate) mod time;

use http::{HeaderName, Request};

pub(crate) use self::file::LogFile;
pub(crate) use self::line::{LoggedResponse, Unreadable};

use self::time::TimeReader;

const LONGEST_LINE: u64 = 1 << 20;

/// A header, and its place in a line. The place is the name of a JSON field, or the number of a
/// quoted field after the sizes.
pub(crate) type HeaderSource = (HeaderName, String);

#[derive(Debug, Default)]
pub(crate) struct LineReader {
    time: TimeReader,
    headers: Vec<HeaderSource>,
}

impl LineReader {
    pub(crate) fn new(headers: &[HeaderSource]) -> Self {
        Self {
            time: TimeReader::default(),
            headers: headers.to_vec(),
        }
    }

    /// Reads a line. Returns the time in microseconds since 1970, and the request.
    pub(crate) fn read(
        &mut self,
        line: &[u8],
    ) -> Result<(u64, Request<LoggedResponse>), Unreadable> {
        let line = core::str::from_utf8(line).map_err(|_| Unreadable::Form)?;
        let line = line.trim();
        if line.starts_with('{') {
            self.json(line)?.finish()
        } else {
            self.common(line)?.finish()
        }
    }

    fn named(&self, place: &str) -> Option<&HeaderName> {
        let mut headers = self.headers.iter();
        headers
            .find(|(_, source)| source == place)
            .map(|(name, _)| name)
    }
}

/// Reads an argument such as `x-api-key=3` or `x-api-key=api_key`.
pub(crate) fn header_source(text: &str) -> Result<HeaderSource, String> {
    let (name, source) = text
        .split_once('=')
        .ok_or("write NAME=FIELD, such as x-api-key=api_key or x-api-key=3")?;
    let name = HeaderName::try_from(name);
    let name = name.map_err(|_| format!("{text:?} does not begin with the name of a header"))?;
    Ok((name, source.to_owned()))
}
