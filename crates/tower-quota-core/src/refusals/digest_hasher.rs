use std::hash::Hasher;

/// Hashes the digests of keys in a table. Digests are already random, under a secret seed.
#[derive(Clone, Copy, Default)]
pub(super) struct DigestHasher(u64);

impl Hasher for DigestHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u128(&mut self, digest: u128) {
        // The lower half chooses the shard.
        self.0 = (digest >> 64) as u64;
    }
}
