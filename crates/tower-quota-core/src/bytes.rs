//! Numbers in the stored form: 56 bits in seven bytes, little-endian, or as a varint.

/// The bound of the numbers: each is below it.
const LIMIT: u64 = 1 << 56;

/// Appends seven bytes.
pub fn push_u56(bytes: &mut Vec<u8>, number: u64) {
    bytes.extend_from_slice(&number.min(LIMIT - 1).to_le_bytes()[..7]);
}

/// Appends 7 bits in each byte, the lowest first. The high bit says that more follow (LEB128).
pub(crate) fn push_varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
}

/// Reads seven bytes.
#[must_use]
pub fn read_u56(rest: &mut &[u8]) -> Option<u64> {
    let (&[a, b, c, d, e, f, g], after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u64::from_le_bytes([a, b, c, d, e, f, g, 0]))
}

/// Reads up to eight bytes of a varint, and no more than its number needs.
pub(crate) fn read_varint(rest: &mut &[u8]) -> Option<u64> {
    let end = rest.iter().take(8).position(|byte| byte & 0x80 == 0)?;
    if end > 0 && rest[end] == 0 {
        return None;
    }
    let (bytes, after) = rest.split_at(end + 1);
    *rest = after;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 7 | u64::from(byte & 0x7f)))
}
