//! What stands for a key in the store: a hash under a seed that nobody outside knows.
//!
//! It is SipHash-1-3 (Aumasson and Bernstein, 2012; one round for each word and three at the end, as in the standard
//! library's maps), written out for the one message there is: the key's bytes, padded with zeros to whole words, the
//! scope, and the length. The message for a short key is two or three words, which a general hasher takes longer to put
//! together than to hash.

use std::hash::{BuildHasher, Hasher, RandomState};

use crate::key::Key;

/// A seed for one store.
pub(super) struct Seed(u64, u64);

impl Seed {
    /// From the operating system's randomness, with which the standard library seeds its maps.
    pub(super) fn random() -> Self {
        if cfg!(loom) {
            // Loom takes the same steps again and again, so they must be the same.
            return Self(0, 0);
        }
        let half = || RandomState::new().build_hasher().finish();
        Self(half(), half())
    }

    /// What stands for a key. Never 0, which stands for nobody.
    #[inline]
    pub(super) fn hash(&self, key: &Key<'_>) -> u64 {
        let bytes = key.as_bytes();
        let (words, rest) = bytes.as_chunks::<8>();
        let mut state = State::new(self);
        words.iter().for_each(|word| state.absorb(u64::from_le_bytes(*word)));
        if !rest.is_empty() {
            state.absorb(padded(rest));
        }
        // The last word of SipHash: seven bytes that are left, here the scope and the length before the padding, and
        // the length of all in the eighth.
        let length = bytes.len() as u64;
        let all = length.next_multiple_of(8) + 7;
        state.absorb(u64::from(key.scope().id()) | (length & 0xff_ffff) << 32 | all << 56);
        state.finish().max(1)
    }
}

/// Fewer than eight bytes as a word, zeros behind them.
fn padded(rest: &[u8]) -> u64 {
    rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

struct State(u64, u64, u64, u64);

impl State {
    #[inline]
    const fn new(seed: &Seed) -> Self {
        Self(
            seed.0 ^ 0x736f_6d65_7073_6575,
            seed.1 ^ 0x646f_7261_6e64_6f6d,
            seed.0 ^ 0x6c79_6765_6e65_7261,
            seed.1 ^ 0x7465_6462_7974_6573,
        )
    }

    #[inline]
    const fn absorb(&mut self, word: u64) {
        self.3 ^= word;
        self.round();
        self.0 ^= word;
    }

    #[inline]
    const fn finish(mut self) -> u64 {
        self.2 ^= 0xff;
        self.round();
        self.round();
        self.round();
        self.0 ^ self.1 ^ self.2 ^ self.3
    }

    #[inline]
    const fn round(&mut self) {
        self.0 = self.0.wrapping_add(self.1);
        self.2 = self.2.wrapping_add(self.3);
        self.1 = self.1.rotate_left(13) ^ self.0;
        self.3 = self.3.rotate_left(16) ^ self.2;
        self.0 = self.0.rotate_left(32);
        self.2 = self.2.wrapping_add(self.1);
        self.0 = self.0.wrapping_add(self.3);
        self.1 = self.1.rotate_left(17) ^ self.2;
        self.3 = self.3.rotate_left(21) ^ self.0;
        self.2 = self.2.rotate_left(32);
    }
}

#[cfg(test)]
mod tests {
    use core::hash::Hasher as _;

    use siphasher::sip::SipHasher13;

    use super::*;
    use crate::name::Name;

    #[test]
    fn it_is_siphash_of_the_padded_key_the_scope_and_the_length() {
        let text: Vec<u8> = (0..100).collect();
        let scope = Name::new("client");
        for length in 0..text.len() {
            let mut message = text[..length].to_vec();
            message.resize(length.next_multiple_of(8), 0);
            message.extend(scope.id().to_le_bytes());
            message.extend(&length.to_le_bytes()[..3]);
            let mut hasher = SipHasher13::new_with_keys(7, 11);
            hasher.write(&message);
            assert_eq!(Seed(7, 11).hash(&Key::new(scope, &text[..length])), hasher.finish(), "{length} bytes");
        }
    }
}
