//! Digests of keys within a process.

use core::fmt;
use std::hash::{BuildHasher, RandomState};

use crate::key::Key;

/// Hashes keys to 128 bits under a random seed, for tables that do not keep the keys.
///
/// ```
/// use tower_quota_core::{Key, KeyHasher, Name};
///
/// let hasher = KeyHasher::random();
/// let ann = Key::owned(Name::new("user"), "ann");
/// assert_eq!(hasher.digest(&ann), hasher.digest(&ann.clone()));
/// assert_ne!(hasher.digest(&ann), hasher.digest(&Key::owned(Name::new("user"), "bob")));
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct KeyHasher([u8; 16]);

impl KeyHasher {
    /// Draws a seed from the operating system.
    #[must_use]
    pub fn random() -> Self {
        let source = RandomState::new();
        let halves = [0, 1].map(|half| u128::from(source.hash_one(half)));
        Self((halves[0] << 64 | halves[1]).to_le_bytes())
    }

    /// Takes your seed, for simulations that have to repeat.
    ///
    /// A service needs a random seed. Who knows the seed can find keys that share the place of others.
    #[must_use]
    pub const fn with_seed(seed: [u8; 16]) -> Self {
        Self(seed)
    }

    /// Returns the [digest](Key::digest) of a key under the seed of this hasher.
    pub fn digest(&self, key: &Key<'_>) -> u128 {
        key.digest(&self.0)
    }
}

impl fmt::Debug for KeyHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Do not print the seed, which is a secret.
        f.write_str("KeyHasher")
    }
}
