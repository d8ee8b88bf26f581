//! The lists in which proxies write addresses, read from their right end.

use core::iter::Rev;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use http::header::{GetAll, HeaderValue, ValueIter};
use smallvec::SmallVec;

use super::network::canonical;

/// The most bytes of a list that are read: a header may be as long as the server permits, and every byte hostile.
const MOST_BYTES: usize = 4_096;

/// Whether a list has strings, in which a comma does not separate.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Quotes {
    /// It has none.
    Plain,
    /// It has those of RFC 9110, section 5.6.4.
    Strings,
}

/// The elements of a list, all lines of the header joined, last one first.
///
/// An element that cannot be separated from its neighbours, because a string in it does not end or it is too long, is
/// `None`; elements to its left mean nothing.
///
/// Strings too are found from the right: what the nearest proxy has appended is then split alike whatever stands before
/// it. From the left, a client's unfinished string would swallow what the proxy wrote.
pub(super) struct Elements<'h> {
    lines: Rev<ValueIter<'h, HeaderValue>>,
    /// The rest of the present line.
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

/// Returns the last element of a list, and what stands before its comma.
///
/// It is `None` if the element is longer than `most` bytes or a string in it does not begin.
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

/// Returns whether what follows is escaped: an odd number of backslashes stands before it.
fn escaped(before: &[u8]) -> bool {
    before.iter().rev().take(MOST_BYTES).take_while(|byte| **byte == b'\\').count() % 2 == 1
}

/// How an IPv6 address may be written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ipv6 {
    /// In brackets, or without them if no port follows.
    Bare,
    /// In brackets only.
    Bracketed,
}

/// Returns the address that a proxy has written, with or without a port, in its own family.
///
/// These are addresses: `192.0.2.1`, `192.0.2.1:443`, `[2001:db8::1]`, `[2001:db8::1]:443` and perhaps `2001:db8::1`.
/// Nothing else is one: no names, no leading zeros, no zone such as `fe80::1%eth0`, which means something only to the
/// machine that wrote it.
pub(super) fn address(text: &[u8], ipv6: Ipv6) -> Option<IpAddr> {
    let text = core::str::from_utf8(text).ok()?.trim_matches([' ', '\t']);
    let address = if let Some(bracketed) = text.strip_prefix('[') {
        let (address, rest) = bracketed.split_once(']')?;
        if !rest.is_empty() && !rest.strip_prefix(':').is_some_and(is_port) {
            return None;
        }
        address.parse::<Ipv6Addr>().ok()?.into()
    } else {
        match text.split_once(':') {
            None => text.parse::<Ipv4Addr>().ok()?.into(),
            Some((address, port)) if is_port(port) && !address.is_empty() => address.parse::<Ipv4Addr>().ok()?.into(),
            Some(_) if ipv6 == Ipv6::Bare => text.parse::<Ipv6Addr>().ok()?.into(),
            Some(_) => return None,
        }
    };
    Some(canonical(address))
}

/// Returns whether a text is a port, or one that was made unrecognisable on purpose (RFC 7239, section 6).
fn is_port(text: &str) -> bool {
    match text.as_bytes() {
        [b'_', hidden @ ..] => {
            !hidden.is_empty() && hidden.iter().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(byte))
        }
        digits => matches!(digits.len(), 1..=5) && digits.iter().all(u8::is_ascii_digit),
    }
}

/// A value of the `Forwarded` field. Addresses fit without an allocation.
type Value = SmallVec<[u8; 64]>;

/// Returns the address in the `for` of an element of the `Forwarded` field (RFC 7239, section 4).
///
/// It is `None` without a `for`, with two, with `unknown` or an obfuscated one, and when the element is malformed.
pub(super) fn forwarded_address(element: &[u8]) -> Option<IpAddr> {
    let mut found = None;
    let mut rest = element.trim_ascii();
    while !rest.is_empty() {
        if let Some(next) = rest.strip_prefix(b";") {
            rest = next.trim_ascii_start();
            continue;
        }
        let equals = rest.iter().position(|byte| *byte == b'=')?;
        let (value, after) = value(&rest[equals + 1..])?;
        if rest[..equals].eq_ignore_ascii_case(b"for") && found.replace(value).is_some() {
            return None;
        }
        rest = after.trim_ascii_start();
        if !rest.is_empty() && rest[0] != b';' {
            return None;
        }
    }
    address(&found?, Ipv6::Bracketed)
}

/// Returns the value at the beginning, a quoted string without its quotes and escapes, and what follows it.
fn value(text: &[u8]) -> Option<(Value, &[u8])> {
    let Some(quoted) = text.strip_prefix(b"\"") else {
        let end = text.iter().position(|byte| *byte == b';').unwrap_or(text.len());
        return Some((text[..end].trim_ascii_end().into(), &text[end..]));
    };
    let mut bytes = quoted.iter();
    let mut value = Value::new();
    loop {
        match bytes.next()? {
            b'"' => return Some((value, bytes.as_slice())),
            b'\\' => value.push(*bytes.next()?),
            byte => value.push(*byte),
        }
    }
}
