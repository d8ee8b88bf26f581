//! Reads lines of the common and the combined log format.
//!
//! `host ident user [time] "request" status bytes "referer" "user agent"`, and further quoted
//! fields. The name of a virtual host may come first, as in Apache's `vhost_combined`.

use std::borrow::Cow;

use http::header::{REFERER, USER_AGENT};

use super::LineReader;
use super::line::{Field, Line, Unreadable, address};

impl LineReader {
    pub(super) fn common(&mut self, text: &str) -> Result<Line, Unreadable> {
        let (who, rest) = text.split_once(" [").ok_or(Unreadable::Form)?;
        let (time, rest) = rest.split_once("] ").ok_or(Unreadable::Form)?;
        let mut line = Line::default();
        line.micros = Some(self.time.micros(time).ok_or(Unreadable::Time)?);
        // Split at the first space only, because the user may contain spaces.
        let (mut client, mut rest_of_who) = who.split_once(' ').ok_or(Unreadable::Form)?;
        if let Some((second, rest)) = rest_of_who.split_once(' ')
            && address(client).is_none()
            && address(second).is_some()
        {
            line.set(Field::Host, client)?;
            (client, rest_of_who) = (second, rest);
        }
        line.set(Field::Address, client)?;
        if let Some((_ident, user)) = rest_of_who.split_once(' ') {
            line.set(Field::User, user)?;
        }
        let (request, rest) = quoted(rest).ok_or(Unreadable::Form)?;
        line.set(Field::Request, &request)?;
        let mut numbers = rest.trim_start().splitn(3, ' ');
        line.set(Field::Status, numbers.next().unwrap_or_default())?;
        line.set(Field::Bytes, numbers.next().unwrap_or_default())?;
        let mut rest = numbers.next().unwrap_or_default();
        let known = [Some(&REFERER), Some(&USER_AGENT)].into_iter();
        for (position, known) in (1..).zip(known.chain(core::iter::repeat(None))) {
            let Some((value, after)) = quoted(rest.trim_start()) else {
                break;
            };
            rest = after;
            let named = self.named(&usize::to_string(&position));
            if let Some(name) = named.or(known) {
                line.header(name, &value);
            }
        }
        Ok(line)
    }
}

fn quoted(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let text = text.strip_prefix('"')?;
    let mut from = 0;
    loop {
        let at = from + memchr::memchr2(b'"', b'\\', text.as_bytes().get(from..)?)?;
        if text.as_bytes()[at] == b'"' {
            let (value, rest) = (&text[..at], &text[at + 1..]);
            return Some((
                if from > 0 {
                    unescaped(value).into()
                } else {
                    value.into()
                },
                rest,
            ));
        }
        from = at + 2;
    }
}

fn unescaped(text: &str) -> String {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [byte, after @ ..] = rest {
        rest = after;
        let [escape, after @ ..] = after else {
            plain.push(*byte);
            break;
        };
        if *byte != b'\\' {
            plain.push(*byte);
            continue;
        }
        rest = after;
        let digits = after
            .get(..2)
            .and_then(|digits| str::from_utf8(digits).ok());
        let hex = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (escape, hex) {
            (b'x', Some(byte)) => {
                plain.push(byte);
                rest = &after[2..];
            }
            (b't', _) => plain.push(b'\t'),
            (b'n', _) => plain.push(b'\n'),
            (b'r', _) => plain.push(b'\r'),
            (other, _) => plain.push(*other),
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}
