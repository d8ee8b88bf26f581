//! Reads the ids that a request brings along, to find the request in logs and traces.

use http::HeaderMap;

/// The maximum bytes of a request id, because clients choose it.
const LONGEST: usize = 128;

/// Returns the trace id of a valid `traceparent` (W3C Trace Context, section 3.2).
pub(super) fn trace_id(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get("traceparent")?.to_str().ok()?;
    let mut parts = text.split('-');
    let (version, trace) = (parts.next()?, parts.next()?);
    let (parent, flags) = (parts.next()?, parts.next()?);
    let is_known = version != "00" || parts.next().is_none();
    let is_valid = is_known
        && version != "ff"
        && is_hex(version, 2)
        && is_id(trace, 32)
        && is_id(parent, 16)
        && is_hex(flags, 2);
    is_valid.then_some(trace)
}

/// Returns an `x-request-id` of at most 128 visible ASCII characters.
pub(super) fn request_id(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get("x-request-id")?.to_str().ok()?;
    let is_valid =
        (1..=LONGEST).contains(&text.len()) && text.bytes().all(|c| c.is_ascii_graphic());
    is_valid.then_some(text)
}

fn is_id(text: &str, length: usize) -> bool {
    is_hex(text, length) && text.bytes().any(|digit| digit != b'0')
}

fn is_hex(text: &str, length: usize) -> bool {
    let is_digit = |digit: u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
    text.len() == length && text.bytes().all(is_digit)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn headers(name: &'static str, value: &[u8]) -> HeaderMap {
        HeaderMap::from_iter([(
            name.parse().unwrap(),
            HeaderValue::from_bytes(value).unwrap(),
        )])
    }

    #[test]
    fn only_valid_traces_are_read() {
        const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
        for (text, expected) in [
            (
                "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                Some(TRACE),
            ),
            (
                "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
                Some(TRACE),
            ),
            (
                "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
                None,
            ),
            (
                "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                None,
            ),
            (
                "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
                None,
            ),
            (
                "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
                None,
            ),
            (
                "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
                None,
            ),
            ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7", None),
            ("", None),
        ] {
            let headers = headers("traceparent", text.as_bytes());
            assert_eq!(trace_id(&headers), expected, "{text}");
        }
    }

    #[test]
    fn only_short_visible_ids_are_read() {
        let longest = "i".repeat(LONGEST);
        for (text, is_read) in [
            (&b"req-7/a:b"[..], true),
            (longest.as_bytes(), true),
            (format!("{longest}i").as_bytes(), false),
            (b"two words", false),
            (b"\xc3\xa9", false),
            (b"", false),
        ] {
            assert_eq!(
                request_id(&headers("x-request-id", text)).is_some(),
                is_read
            );
        }
    }
}
