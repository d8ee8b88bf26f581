//! Writes and reads values of header fields (RFC 9651, RFC 9110).

use core::time::Duration;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use smallvec::SmallVec;
use tower_quota_core::{Quota, Timestamp};

// RFC 9651, section 3.3.1.
const MAX_INTEGER: u64 = 999_999_999_999_999;

/// The text of a field. Most texts fit without an allocation.
pub(super) type FieldText = SmallVec<[u8; 128]>;

/// Returns whole seconds, rounded up so that a reported wait is never too short.
pub(crate) const fn ceil_secs(span: Duration) -> u64 {
    span.as_secs()
        .saturating_add((span.subsec_nanos() > 0) as u64)
}

/// Returns the window in seconds, rounded up and at least 1.
pub(super) fn window_secs(quota: &Quota) -> u64 {
    ceil_secs(quota.window()).max(1)
}

/// Returns the Unix second of an instant after `at`, rounded up.
pub(super) fn epoch_second(at: Timestamp, span: Duration) -> u64 {
    ceil_secs(Duration::from_micros(at.unmarked().as_micros()).saturating_add(span))
}

pub(super) fn push_string(out: &mut FieldText, text: &str) {
    out.push(b'"');
    for byte in text.bytes() {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out.push(b'"');
}

/// Appends a structured Integer. Larger numbers become the largest Integer.
pub(super) fn push_integer(out: &mut FieldText, number: u64) {
    out.extend_from_slice(
        itoa::Buffer::new()
            .format(number.min(MAX_INTEGER))
            .as_bytes(),
    );
}

pub(super) fn push_separator(out: &mut FieldText) {
    if !out.is_empty() {
        out.extend_from_slice(b", ");
    }
}

pub(super) fn number_value(number: u64) -> HeaderValue {
    number.min(MAX_INTEGER).into()
}

pub(super) fn text_value(text: &[u8]) -> Option<HeaderValue> {
    // Numbers, base64 and names of limits always convert.
    if text.is_empty() {
        None
    } else {
        HeaderValue::from_bytes(text).ok()
    }
}

/// Reads the number at the start of a field, which a list may follow.
pub(super) fn leading_number(headers: &HeaderMap, name: &HeaderName) -> Option<u64> {
    let text = headers.get(name)?.to_str().ok()?;
    text.split(',').next()?.trim().parse().ok()
}

pub(super) fn members<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> impl Iterator<Item = &'a str> {
    headers
        .get_all(name)
        .iter()
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| split_unquoted(line, ','))
}

/// Splits a line at separators outside of quotes.
pub(crate) fn split_unquoted(line: &str, separator: char) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    line.split(move |character| {
        let separates = character == separator && !is_quoted;
        match character {
            '"' if !is_escaped => is_quoted = !is_quoted,
            _ => {}
        }
        is_escaped = character == '\\' && is_quoted && !is_escaped;
        separates
    })
    .map(str::trim)
    .filter(|member| !member.is_empty())
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use tower_quota_core::Timestamp;

    use super::{FieldText, ceil_secs, epoch_second, push_integer, push_string, split_unquoted};

    #[test]
    fn seconds_are_rounded_up() {
        for (nanos, seconds) in [(0, 0), (1, 1), (1_000_000_000, 1), (1_000_000_001, 2)] {
            assert_eq!(ceil_secs(Duration::from_nanos(nanos)), seconds);
        }
        assert_eq!(ceil_secs(Duration::MAX), u64::MAX);
        assert_eq!(
            epoch_second(
                Timestamp::from_micros(1_500_000),
                Duration::from_millis(500)
            ),
            2
        );
        assert_eq!(
            epoch_second(
                Timestamp::from_micros(1_500_000),
                Duration::from_millis(501)
            ),
            3
        );
    }

    #[test]
    fn strings_and_integers_are_serialized() {
        let mut out = FieldText::new();
        push_string(&mut out, r#"a "b" \c"#);
        push_integer(&mut out, u64::MAX);
        assert_eq!(
            core::str::from_utf8(&out),
            Ok(r#""a \"b\" \\c"999999999999999"#)
        );
    }

    #[test]
    fn quoted_commas_do_not_separate() {
        let members: Vec<&str> =
            split_unquoted(r#" "a, \", b";r=1 ,, "\\" , c;x="," "#, ',').collect();
        assert_eq!(members, [r#""a, \", b";r=1"#, r#""\\""#, r#"c;x=",""#]);
    }
}
