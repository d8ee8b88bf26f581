//! Hashes of keys within one process, under a secret seed.
//!
//! The hash is of a universal family, the multilinear one (Lemire and Kaser, "Strongly universal string hashing is
//! fast", 2014). Each word of the message is multiplied by a secret number of 128 bits. The hash is the high half of the
//! sum modulo 2^128. The message is the key's bytes, padded with zeros to full words, its scope, and its length. If the
//! bytes are more than 64, it is their digest by SipHash.
//!
//! Any two messages have the same hash under 1 in 2^63 of all secrets; this is proven. It holds for messages that are
//! chosen without knowing which others collide. An attacker who finds two that collide, after some million million
//! attempts, can make more of them.
//!
//! Keys that follow a pattern, such as consecutive numbers, have hashes that follow one. The result is therefore mixed
//! with a secret of its own. Different results stay different.

use core::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};

use siphasher::sip128::{Hasher128, SipHasher13};

use crate::key::Key;

/// Words of a key that is hashed as it is: an address, a number, a UUID in text, most API keys.
const WORDS: usize = 8;

/// 2^64 divided by the golden ratio, the seed of numbers that are the same each time.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A seed for one store.
pub(crate) struct Seed {
    /// The factor of the scope and the length.
    end: u128,
    /// The factors of the words, in their order.
    words: [u128; WORDS],
    /// The key of the digests of longer keys.
    digest: [u8; 16],
    /// The odd factor that mixes the sum.
    factor: u64,
}

impl Seed {
    /// Draws a seed from the operating system's randomness, with which the standard library seeds its maps.
    pub(crate) fn random() -> Self {
        let source = RandomState::new();
        // Loom takes the same steps again and again, so they must be the same.
        Self::drawn(|number| {
            if cfg!(loom) {
                stirred(number, GOLDEN)
            } else {
                source.hash_one(number)
            }
        })
    }

    /// Makes a seed of 64-bit halves, each drawn by its number.
    fn drawn(draw: impl Fn(u64) -> u64) -> Self {
        let mut halves = (1..).map(draw);
        let mut next = || {
            halves
                .by_ref()
                .take(2)
                .fold(0, |high: u128, half| high << 64 | u128::from(half))
        };
        Self {
            end: next(),
            words: core::array::from_fn(|_| next()),
            digest: next().to_le_bytes(),
            factor: (next() >> 64) as u64 | 1,
        }
    }

    /// Returns the hash of a key. Never 0, which marks a free row.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "a third of what a plain check does, and it is done in one place"
    )]
    pub(crate) fn hash(&self, key: &Key<'_>) -> u64 {
        let bytes = key.as_bytes();
        // With the length, keys that differ only in the zeros at their end have different hashes.
        let last = u64::from(key.scope().id()) | (bytes.len() as u64) << 32;
        // Three common lengths of keys: numbers and networks, IPv4 addresses, identifiers of 16 bytes.
        let words = if let Ok(number) = bytes.try_into() {
            product(self.words[0], number)
        } else if let &[a, b, c, d] = bytes {
            product(self.words[0], [a, b, c, d, 0, 0, 0, 0])
        } else if let (&[one, other], []) = bytes.as_chunks() {
            product(self.words[0], one).wrapping_add(product(self.words[1], other))
        } else {
            self.sum(bytes)
        };
        let sum = self.end.wrapping_mul(last.into()).wrapping_add(words);
        stirred((sum >> 64) as u64, self.factor).max(1)
    }

    /// Returns the sum of a key's words, or of its digest's.
    #[inline(never)]
    fn sum(&self, bytes: &[u8]) -> u128 {
        if bytes.len() > WORDS * 8 {
            let mut hasher = SipHasher13::new_with_key(&self.digest);
            hasher.write(bytes);
            return self.sum(&hasher.finish128().as_bytes());
        }
        let (words, rest) = bytes.as_chunks();
        let last = (!rest.is_empty()).then(|| padded(rest));
        let words = words.iter().copied().chain(last).zip(self.words);
        words.fold(0, |sum, (word, secret)| {
            sum.wrapping_add(product(secret, word))
        })
    }
}

/// Hashes keys to 128 bits, for tables of one process that do not keep the keys.
///
/// Two hashes of a universal family, each with secrets of its own: two keys of up to 64 bytes that were chosen without
/// knowing which others collide have the same digest under 1 in 2^126 of all secrets. Longer ones are first hashed by
/// SipHash. It takes a fifth of the time of [`Key::digest`], which is the same in all processes.
///
/// ```
/// use tower_quota_core::{Key, KeyHasher, Name};
///
/// let hasher = KeyHasher::random();
/// let ann = Key::owned(Name::new("user"), "ann");
/// assert_eq!(hasher.digest(&ann), hasher.digest(&ann.clone()));
/// assert_ne!(hasher.digest(&ann), hasher.digest(&Key::owned(Name::new("user"), "bob")));
/// ```
pub struct KeyHasher {
    high: Seed,
    low: Seed,
}

impl KeyHasher {
    /// Draws secrets from the operating system's randomness.
    #[must_use]
    pub fn random() -> Self {
        Self {
            high: Seed::random(),
            low: Seed::random(),
        }
    }

    /// Returns the digest of a key. Another hasher returns another one.
    #[must_use]
    #[inline]
    pub fn digest(&self, key: &Key<'_>) -> u128 {
        u128::from(self.high.hash(key)) << 64 | u128::from(self.low.hash(key))
    }
}

impl fmt::Debug for KeyHasher {
    /// Shows no secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyHasher").finish_non_exhaustive()
    }
}

/// Returns a word's part in the sum.
#[inline]
const fn product(secret: u128, word: [u8; 8]) -> u128 {
    secret.wrapping_mul(u64::from_le_bytes(word) as u128)
}

/// Mixes the halves of a number by an odd factor. Different numbers stay different.
#[inline]
const fn stirred(hash: u64, factor: u64) -> u64 {
    let hash = (hash ^ hash >> 32).wrapping_mul(factor);
    hash ^ hash >> 29
}

/// Returns fewer than eight bytes as a word, padded with zeros.
fn padded(rest: &[u8]) -> [u8; 8] {
    core::array::from_fn(|at| rest.get(at).copied().unwrap_or(0))
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use core::net::Ipv4Addr;
    use std::collections::HashSet;

    use super::*;
    use crate::name::Name;

    const SCOPE: Name = Name::new("client");

    fn seed() -> Seed {
        Seed::drawn(|number| stirred(stirred(number, GOLDEN), GOLDEN))
    }

    #[test]
    fn hash_is_multilinear_over_words_scope_length() {
        let seed = seed();
        let text: Vec<u8> = (1..=64).collect();
        for length in 0..=text.len() {
            let mut sum = 0_u128;
            for (at, byte) in text[..length].iter().enumerate() {
                let part = u128::from(*byte) << (8 * (at % 8));
                sum = sum.wrapping_add(seed.words[at / 8].wrapping_mul(part));
            }
            let last = (length as u128) << 32 | u128::from(SCOPE.id());
            sum = sum.wrapping_add(seed.end.wrapping_mul(last));
            let high = u64::try_from(sum >> 64).unwrap();
            assert_eq!(
                seed.hash(&Key::new(SCOPE, &text[..length])),
                stirred(high, seed.factor),
                "{length} bytes"
            );
        }
    }

    #[test]
    fn every_byte_length_and_scope_matters() {
        let seed = seed();
        let zeros = [0; if cfg!(miri) { 70 } else { 200 }];
        let mut seen = HashSet::new();
        for length in 0..=zeros.len() {
            assert!(
                seen.insert(seed.hash(&Key::new(SCOPE, &zeros[..length]))),
                "{length} zeros"
            );
            for at in 0..length {
                let mut text = zeros;
                text[at] = 1;
                assert!(
                    seen.insert(seed.hash(&Key::new(SCOPE, &text[..length]))),
                    "{at} of {length} bytes"
                );
            }
        }
        assert!(seen.insert(seed.hash(&Key::new(Name::new("team"), b""))));
    }

    #[test]
    #[cfg_attr(miri, ignore = "half a million hashes")]
    fn patterned_keys_spread_evenly() {
        const PLACES: usize = 512;
        let seed = seed();
        let spread = |keys: &dyn Fn(u64) -> Key<'static>| {
            for shift in [0, 16, 32] {
                let mut counts = [0_u32; PLACES];
                for number in 0..100_000 {
                    let part = seed.hash(&keys(number)) >> shift & 0xffff_ffff;
                    counts[usize::try_from((part * PLACES as u64) >> 32).unwrap()] += 1;
                }
                // Chi-squared with 511 degrees of freedom: 511 on average, a standard deviation of 32.
                let mean = 100_000.0 / PLACES as f64;
                let chi: f64 = counts
                    .iter()
                    .map(|&count| (f64::from(count) - mean).powi(2) / mean)
                    .sum();
                assert!((351.0..671.0).contains(&chi), "bits from {shift}: {chi}");
            }
        };
        spread(&|number| Key::number(SCOPE, number));
        spread(&|number| Key::number(SCOPE, number << 24));
        spread(&|number| Key::owned(SCOPE, number.to_le_bytes()));
        spread(&|number| Key::owned(SCOPE, format!("user-{number}")));
        spread(&|number| Key::owned(SCOPE, format!("{number:0100}")));
        spread(&|number| {
            Key::address(
                SCOPE,
                Ipv4Addr::from_bits(0x0a00_0000 + u32::try_from(number).unwrap()).into(),
            )
        });
    }
}
