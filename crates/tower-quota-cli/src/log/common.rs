//! Lines of the common and the combined log format.
//!
//! `host ident user [time] "request" status bytes "referer" "user agent"`, and quoted fields after it. Before it may be
//! the name of a virtual host, as Apache's `vhost_combined` has it.

use std::borrow::Cow;

use super::record::{LogRecord, Unreadable, address};
use super::{HeaderSource, LineReader};

impl LineReader {
    pub(super) fn common<'a>(&mut self, line: &'a str) -> Result<LogRecord<'a>, Unreadable> {
        let (before, rest) = line.split_once(" [").ok_or(Unreadable::Form)?;
        let (time, rest) = rest.split_once("] ").ok_or(Unreadable::Form)?;
        let mut record = LogRecord {
            micros: self.time.micros(time).ok_or(Unreadable::Time)?,
            ..LogRecord::default()
        };
        who(before, &mut record).ok_or(Unreadable::Form)?;
        let (request, rest) = quoted(rest).ok_or(Unreadable::Form)?;
        record.set_request_line(request)?;
        let mut numbers = rest.trim_start().splitn(3, ' ');
        record.status = numbers.next().and_then(|status| status.parse().ok());
        record.bytes = numbers.next().and_then(|bytes| bytes.parse().ok());
        self.fields(numbers.next().unwrap_or_default(), &mut record);
        Ok(record)
    }

    /// Reads the quoted fields at the end: the referer, the user agent, and those that the user has named.
    fn fields<'a>(&self, mut rest: &'a str, record: &mut LogRecord<'a>) {
        for position in 1.. {
            let Some((value, after)) = quoted(rest.trim_start()) else {
                return;
            };
            rest = after;
            let named = self.headers.iter().find(
                |(_, source)| matches!(source, HeaderSource::Position(at) if *at == position),
            );
            match (named, position) {
                (Some((name, _)), _) => record.add_header(name.clone(), value),
                (None, 1) => record.add_header("referer", value),
                (None, 2) => record.add_header("user-agent", value),
                (None, _) => {}
            }
        }
    }
}

/// Reads the client's address and the user, which may contain spaces.
fn who<'a>(text: &'a str, record: &mut LogRecord<'a>) -> Option<()> {
    let (first, rest) = text.split_once(' ')?;
    record.address = address(first);
    let rest = match rest.split_once(' ') {
        Some((second, rest)) if record.address.is_none() && address(second).is_some() => {
            record.address = address(second);
            record.host = Some(first.into());
            rest
        }
        _ => rest,
    };
    record.user = rest
        .split_once(' ')
        .map(|(_ident, user)| user)
        .filter(|user| *user != "-")
        .map(Cow::Borrowed);
    Some(())
}

/// Splits a quoted text from what follows, and undoes the escapes of Apache and nginx.
fn quoted(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let text = text.strip_prefix('"')?;
    let mut has_escapes = false;
    let mut from = 0;
    loop {
        let at = from + memchr::memchr2(b'"', b'\\', &text.as_bytes()[from..])?;
        if text.as_bytes()[at] == b'"' {
            let (value, rest) = (&text[..at], &text[at + 1..]);
            return Some((
                if has_escapes {
                    unescaped(value).into()
                } else {
                    value.into()
                },
                rest,
            ));
        }
        has_escapes = true;
        from = at + 2;
        if from > text.len() {
            return None;
        }
    }
}

fn unescaped(text: &str) -> String {
    let mut plain = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            plain.push(byte);
            continue;
        }
        match bytes.next() {
            Some(b'x') => match hex_byte(&mut bytes) {
                Some(byte) => plain.push(byte),
                None => plain.extend(b"\\x"),
            },
            Some(b't') => plain.push(b'\t'),
            Some(b'n') => plain.push(b'\n'),
            Some(b'r') => plain.push(b'\r'),
            Some(other) => plain.push(other),
            None => plain.push(b'\\'),
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

/// Reads two hexadecimal digits, or nothing.
fn hex_byte(bytes: &mut core::str::Bytes<'_>) -> Option<u8> {
    let mut ahead = bytes.clone();
    let mut digit = || {
        char::from(ahead.next()?)
            .to_digit(16)
            .and_then(|digit| u8::try_from(digit).ok())
    };
    let byte = digit()? << 4 | digit()?;
    *bytes = ahead;
    Some(byte)
}
