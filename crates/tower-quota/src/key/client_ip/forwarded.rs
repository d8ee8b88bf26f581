//! Elements of the `Forwarded` field (RFC 7239, section 4).

use core::net::IpAddr;

use smallvec::SmallVec;

use super::node::{Ipv6, node};

/// Addresses fit without an allocation.
type Value = SmallVec<[u8; 64]>;

/// The address in the `for` of an element. `None` without one, with two, with `unknown` or an obfuscated one, and when
/// the element is not made as it should be.
pub(super) fn address(element: &[u8]) -> Option<IpAddr> {
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
    node(&found?, Ipv6::Bracketed)
}

/// The value that stands at the beginning, a quoted string without its quotes and escapes, and what follows it.
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
