use core::iter::from_fn;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use http::header::{GetAll, HeaderValue};
use smallvec::SmallVec;

use super::network::canonical;

/// The bytes to read from the right, because clients choose the length.
const MAX_LIST_BYTES: usize = 4_096;

/// Whether quoted strings (RFC 9110, section 5.6.4) hide commas.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Quotes {
    Plain,
    Strings,
}

/// Yields elements from the right, and `None` if the rest is unreliable.
///
/// Quoted strings are found from the right too. From the left, a client's unfinished string would
/// swallow the proxy's text.
pub(super) fn elements<'h>(
    lines: GetAll<'h, HeaderValue>,
    quotes: Quotes,
) -> impl Iterator<Item = Option<&'h [u8]>> {
    let mut lines = lines.into_iter().rev();
    let (mut rest, mut bytes) = (None, MAX_LIST_BYTES);
    from_fn(move || {
        let line = match rest.take() {
            Some(line) => line,
            None => lines.next()?.as_bytes(),
        };
        let Some((before, element)) = last(line, quotes, bytes) else {
            bytes = 0;
            return Some(None);
        };
        bytes -= element.len();
        rest = before;
        Some(Some(element))
    })
}

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

fn escaped(before: &[u8]) -> bool {
    before
        .iter()
        .rev()
        .take(MAX_LIST_BYTES)
        .take_while(|byte| **byte == b'\\')
        .count()
        % 2
        == 1
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ipv6 {
    /// IPv6 may stand without brackets, because no port follows.
    Bare,
    Bracketed,
}

/// Parses an address. Rejects leading zeros, and zones like `fe80::1%eth0`, which only one machine
/// understands.
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
            Some((address, port)) if is_port(port) && !address.is_empty() => {
                address.parse::<Ipv4Addr>().ok()?.into()
            }
            Some(_) if ipv6 == Ipv6::Bare => text.parse::<Ipv6Addr>().ok()?.into(),
            Some(_) => return None,
        }
    };
    Some(canonical(address))
}

/// Accepts obfuscated ports too (RFC 7239, section 6).
fn is_port(text: &str) -> bool {
    match text.as_bytes() {
        [b'_', hidden @ ..] => {
            !hidden.is_empty()
                && hidden
                    .iter()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(byte))
        }
        digits => matches!(digits.len(), 1..=5) && digits.iter().all(u8::is_ascii_digit),
    }
}

type ParameterValue = SmallVec<[u8; 64]>;

/// Reads the only `for` of a `Forwarded` element.
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

fn value(text: &[u8]) -> Option<(ParameterValue, &[u8])> {
    let Some(quoted) = text.strip_prefix(b"\"") else {
        let end = text
            .iter()
            .position(|byte| *byte == b';')
            .unwrap_or(text.len());
        return Some((text[..end].trim_ascii_end().into(), &text[end..]));
    };
    let mut bytes = quoted.iter();
    let mut value = ParameterValue::new();
    loop {
        match bytes.next()? {
            b'"' => return Some((value, bytes.as_slice())),
            b'\\' => value.push(*bytes.next()?),
            byte => value.push(*byte),
        }
    }
}
