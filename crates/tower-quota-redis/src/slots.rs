//! Finds hash tags at equidistant slots of a cluster.
//!
//! The slot of a key is the CRC16 of its tag, the part in braces, modulo 16,384
//! ([specification](https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/)). Nodes mostly own
//! equal ranges of slots, so tags at equal distances spread evenly over any number of nodes.

pub(crate) const SLOTS: usize = 16_384;

/// Returns the tag of each partition, at most one for each slot.
///
/// The tags are the shortest base-36 numbers whose slots lie in the middles of equal ranges.
pub(crate) fn tags(partitions: usize) -> Vec<String> {
    let count = partitions.clamp(1, SLOTS);
    let mut partition_at = vec![None; SLOTS];
    for partition in 0..count {
        partition_at[(2 * partition + 1) * SLOTS / (2 * count)] = Some(partition);
    }
    let mut tags = vec![String::new(); count];
    let mut missing = count;
    for number in 0.. {
        let tag = base36(number);
        if let Some(partition) = partition_at[slot(tag.as_bytes())].take() {
            tags[partition] = tag;
            missing -= 1;
            if missing == 0 {
                break;
            }
        }
    }
    tags
}

fn base36(mut number: usize) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut text = String::new();
    loop {
        text.insert(0, char::from(DIGITS[number % 36]));
        number /= 36;
        if number == 0 {
            return text;
        }
    }
}

/// Returns the slot of a key with a hash tag.
pub(crate) fn slot_of(key: &str) -> u16 {
    let tag = key
        .split_once('{')
        .and_then(|(_, rest)| rest.split_once('}'));
    // The remainder of the division by `SLOTS`.
    crc16(tag.map_or(key, |(tag, _)| tag).as_bytes()) & 0x3fff
}

fn slot(tag: &[u8]) -> usize {
    usize::from(crc16(tag)) % SLOTS
}

/// Computes CRC-16/XMODEM with polynomial 0x1021 and initial value 0, not reflected.
fn crc16(bytes: &[u8]) -> u16 {
    let mut crc = 0;
    for &byte in bytes {
        crc ^= u16::from(byte) << 8;
        for _ in 0..8 {
            crc = (crc << 1) ^ ((crc >> 15) * 0x1021);
        }
    }
    crc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc16_of_check_value_matches_specification() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!(slot(b"foo"), 12_182);
        assert_eq!(slot_of("a:{foo}:b"), 12_182);
    }

    #[test]
    fn tags_of_any_count_are_equidistant() {
        for count in [1, 2, 3, 5, 6, 7, 64, 100, 1_000, 5_461, SLOTS - 1, SLOTS] {
            let tags = tags(count);
            assert_eq!(tags.len(), count);
            for (partition, tag) in tags.iter().enumerate() {
                assert_eq!(
                    slot(tag.as_bytes()),
                    (2 * partition + 1) * SLOTS / (2 * count),
                    "{tag} of {count}"
                );
                assert!((1..=4).contains(&tag.len()), "{tag} of {count}");
            }
        }
    }
}
