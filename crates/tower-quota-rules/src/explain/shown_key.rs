use core::hash::BuildHasher;
use std::hash::RandomState;
use std::sync::OnceLock;

use tower_quota::Key;

/// Returns 8 bytes of a keyed hash in hexadecimal digits, with a random key per process.
pub(super) fn hashed(key: &Key<'_>) -> String {
    static SEED: OnceLock<[u8; 16]> = OnceLock::new();
    // Draw from `RandomState`, which the standard library seeds from the system's random numbers.
    let random = || u128::from(RandomState::new().hash_one(0));
    let digest = key.digest(SEED.get_or_init(|| (random() << 64 | random()).to_be_bytes()));
    format!("{:016x}", digest >> 64)
}

/// Returns a key as its text or address, and other bytes in hexadecimal digits.
#[must_use]
pub fn readable_key(key: &Key<'_>) -> String {
    let bytes = key.as_bytes();
    if let Some(address) = key.to_address() {
        let network = if bytes.len() < 16 && address.is_ipv6() {
            format!("/{}", bytes.len() * 8)
        } else {
            String::new()
        };
        return format!("{address}{network}");
    }
    match core::str::from_utf8(bytes) {
        Ok(text) if !text.contains(char::is_control) => text.to_owned(),
        _ => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}
