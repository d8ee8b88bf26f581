//! Numbers in the stored form: 56 bits in seven bytes, little-endian, as a varint, or without their last zeros.

/// The bound of the numbers: each is below it.
const LIMIT: u64 = 1 << 56;
/// The most decimal zeros that a short number leaves out.
const MOST_ZEROS: u64 = 7;

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
    Some(
        bytes
            .iter()
            .rev()
            .fold(0, |number, byte| number << 7 | u64::from(byte & 0x7f)),
    )
}

/// Appends a number below 2^53 without its last decimal zeros, seven at most: 8 times the rest, plus how many these were.
///
/// The numbers of quotas are round: 60,000,000 takes one byte, and four as a varint.
pub(crate) fn push_short(bytes: &mut Vec<u8>, mut number: u64) {
    let mut zeros = 0;
    while zeros < MOST_ZEROS && number > 0 && number.is_multiple_of(10) {
        (number, zeros) = (number / 10, zeros + 1);
    }
    push_varint(bytes, number << 3 | zeros);
}

/// Reads a short number that leaves out as many zeros as it can.
pub(crate) fn read_short(rest: &mut &[u8]) -> Option<u64> {
    let short = read_varint(rest)?;
    let (number, zeros) = (short >> 3, short & MOST_ZEROS);
    let is_shortest = if number == 0 {
        zeros == 0
    } else {
        zeros == MOST_ZEROS || !number.is_multiple_of(10)
    };
    let number = number.checked_mul(10_u64.pow(u32::try_from(zeros).ok()?))?;
    (is_shortest && number < 1 << 53).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_has_one_short_form() {
        // 10 with its zero, nothing with a zero left out, and more than a number may be.
        for bytes in [&[80][..], &[1], &[0x87, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]] {
            assert_eq!(read_short(&mut &bytes[..]), None, "{bytes:?}");
        }
    }
}
