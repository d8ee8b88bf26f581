use std::hash::{BuildHasher, RandomState};

use tower_quota_core::{Key, Name};

/// The seed of the keys' hashes in events and spans. The default is random.
#[derive(Clone, Copy)]
pub(crate) struct KeySeed {
    pub(crate) bytes: [u8; 16],
    /// Whether the service chose no seed.
    pub(crate) is_default: bool,
}

impl KeySeed {
    pub(crate) const fn chosen(bytes: [u8; 16]) -> Self {
        Self {
            bytes,
            is_default: false,
        }
    }

    /// Returns the same hash as audit records and lists of clients.
    pub(super) fn hash(&self, key: &Key<'_>) -> String {
        let hash = key.digest(&self.bytes) >> 64;
        format!("{hash:016x}")
    }

    pub(super) fn hashes(&self, keys: &[(Name, Key<'static>)]) -> String {
        let mut hashes = Vec::new();
        for (_, key) in keys {
            let hash = self.hash(key);
            if !hashes.contains(&hash) {
                hashes.push(hash);
            }
        }
        hashes.join(",")
    }
}

impl Default for KeySeed {
    fn default() -> Self {
        // Draw from `RandomState`, which the standard library seeds from the system's random numbers.
        let random = || u128::from(RandomState::new().hash_one(0));
        Self {
            bytes: (random() << 64 | random()).to_be_bytes(),
            is_default: true,
        }
    }
}
