//! Writes and reads values of header fields (RFC 9651, RFC 9110).

use core::fmt::Write;
use core::time::Duration;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use tower_quota_core::{Quota, Timestamp};

// RFC 9651, section 3.3.1.
const MAX_INTEGER: u64 = 999_999_999_999_999;

const TWO_DIGITS: &str = concat!(
    "00010203040506070809",
    "10111213141516171819",
    "20212223242526272829",
    "30313233343536373839",
    "40414243444546474849",
    "50515253545556575859",
    "60616263646566676869",
    "70717273747576777879",
    "80818283848586878889",
    "90919293949596979899",
);

const TYPICAL_LENGTH: usize = 128;

/// Returns an empty text with room for the value of a typical field.
pub(super) fn field_text() -> String {
    String::with_capacity(TYPICAL_LENGTH)
}

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

pub(super) fn push_string(out: &mut String, text: &str) {
    out.push('"');
    push_escaped(out, text);
    out.push('"');
}

/// Appends a text, escaped for a structured String or for JSON (RFC 8259, section 7).
///
/// Names of limits have no control characters, which a structured String cannot hold.
pub(super) fn push_escaped(out: &mut String, text: &str) {
    let needs_escape = |byte| matches!(byte, ..b' ' | b'"' | b'\\');
    // Most names need no escape.
    if !text.bytes().any(needs_escape) {
        return out.push_str(text);
    }
    let mut rest = text;
    while let Some(position) = rest.bytes().position(needs_escape) {
        let (plain, special) = rest.split_at(position);
        out.push_str(plain);
        let (special, after) = special.split_at(1);
        match special {
            "\"" | "\\" => out.extend(["\\", special]),
            // Writing to a string cannot fail.
            _ => _ = write!(out, "\\u{:04x}", special.as_bytes()[0]),
        }
        rest = after;
    }
    out.push_str(rest);
}

/// Appends a structured Integer. Larger numbers become the largest Integer.
pub(super) fn push_integer(out: &mut String, number: u64) {
    out.push_str(itoa::Buffer::new().format(number.min(MAX_INTEGER)));
}

pub(super) fn push_separator(out: &mut String) {
    if !out.is_empty() {
        out.push_str(", ");
    }
}

/// Makes a value that shares no bytes. `HeaderValue::from(u64)` allocates twice and counts references.
pub(super) fn number_value(number: u64) -> HeaderValue {
    const ZERO: HeaderValue = HeaderValue::from_static("0");
    // Small numbers need no allocation, and a spent limit has no units left in each of its refusals.
    if let Ok(small @ ..100) = u8::try_from(number) {
        let start = 2 * usize::from(small);
        let digits = &TWO_DIGITS[start..start + 2];
        return HeaderValue::from_static(if number < 10 { &digits[1..] } else { digits });
    }
    let mut digits = itoa::Buffer::new();
    HeaderValue::from_str(digits.format(number.min(MAX_INTEGER))).unwrap_or(ZERO)
}

pub(super) fn text_value(text: &str) -> Option<HeaderValue> {
    // Numbers and names of limits always convert.
    if text.is_empty() {
        None
    } else {
        HeaderValue::from_str(text).ok()
    }
}

/// Removes the line that was appended to a field last.
///
/// Styles append before they know of an inner limiter. A look-up before would take as long, and few responses have inner
/// fields.
pub(super) fn remove_last_line(headers: &mut HeaderMap, name: &HeaderName) {
    let mut lines: Vec<HeaderValue> = headers.get_all(name).iter().cloned().collect();
    lines.pop();
    headers.remove(name);
    for line in lines {
        headers.append(name.clone(), line);
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

    use super::{ceil_secs, epoch_second, number_value, push_integer, push_string, split_unquoted};

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
        let mut out = String::new();
        push_string(&mut out, r#"a "b" \c"#);
        push_integer(&mut out, u64::MAX);
        assert_eq!(out, r#""a \"b\" \\c"999999999999999"#);
    }

    #[test]
    fn numbers_have_their_decimal_digits() {
        for number in (0..1_000).chain([999_999_999_999_999]) {
            assert_eq!(number_value(number), number.to_string());
        }
        assert_eq!(number_value(u64::MAX), "999999999999999");
    }

    #[test]
    fn quoted_commas_do_not_separate() {
        let members: Vec<&str> =
            split_unquoted(r#" "a, \", b";r=1 ,, "\\" , c;x="," "#, ',').collect();
        assert_eq!(members, [r#""a, \", b";r=1"#, r#""\\""#, r#"c;x=",""#]);
    }
}
