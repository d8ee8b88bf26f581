//! Reads and writes the numbers in the stored form of an entry.

const LIMIT: u64 = 1 << 56;
const MOST_ZEROS: u32 = 7;

/// Appends a number as seven bytes, little-endian.
pub fn push_u56(bytes: &mut Vec<u8>, number: u64) {
    bytes.extend_from_slice(&number.min(LIMIT - 1).to_le_bytes()[..7]);
}

/// Reads a number of seven bytes.
pub fn read_u56(rest: &mut &[u8]) -> Option<u64> {
    let (&[a, b, c, d, e, f, g], after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u64::from_le_bytes([a, b, c, d, e, f, g, 0]))
}

pub(crate) fn push_varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
}

pub(crate) fn read_varint(rest: &mut &[u8]) -> Option<u64> {
    let end = rest.iter().take(8).position(|byte| byte & 0x80 == 0)?;
    if end > 0 && rest[end] == 0 {
        return None;
    }
    let bytes = rest.split_off(..=end)?.iter().rev();
    Some(bytes.fold(0, |number, byte| number << 7 | u64::from(byte & 0x7f)))
}

/// Appends a number below 2^53 as a varint of `8 * digits + zeros`, with up to seven zeros.
///
/// The form suits the round numbers of quotas. For example, 60,000,000 takes one byte.
pub(crate) fn push_short(bytes: &mut Vec<u8>, number: u64) {
    let zeros = decimal_zeros(number);
    let digits = number / 10_u64.pow(zeros);
    push_varint(bytes, digits << 3 | u64::from(zeros));
}

pub(crate) fn read_short(rest: &mut &[u8]) -> Option<u64> {
    let short = read_varint(rest)?;
    let zeros = u32::try_from(short & 7).ok()?;
    let number = (short >> 3).checked_mul(10_u64.pow(zeros))?;
    (number < 1 << 53 && decimal_zeros(number) == zeros).then_some(number)
}

fn decimal_zeros(number: u64) -> u32 {
    let ends_in = |zeros: &u32| number > 0 && number.is_multiple_of(10_u64.pow(*zeros));
    (1..=MOST_ZEROS).rev().find(ends_in).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_has_one_short_form() {
        // The bytes stand for 10 with its zero, 0 without a zero, and a number above 2^53.
        for bytes in [&[80][..], &[1], &[0x87, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]] {
            assert_eq!(read_short(&mut &bytes[..]), None, "{bytes:?}");
        }
    }
}
