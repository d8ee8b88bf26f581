//! The little of Structured Field Values (RFC 9651) that the `RateLimit` fields need.

/// The largest Integer of RFC 9651, section 3.3.1.
const LARGEST: u64 = 999_999_999_999_999;

/// Appends a String: printable ASCII, which the names of limits are.
pub(super) fn push_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    for byte in text.bytes() {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out.push(b'"');
}

/// Appends an Integer, cut to the largest there is.
pub(super) fn push_integer(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(integer(number)).as_bytes());
}

/// Cuts a number to the largest Integer.
#[inline]
pub(super) const fn integer(number: u64) -> u64 {
    if number > LARGEST { LARGEST } else { number }
}
