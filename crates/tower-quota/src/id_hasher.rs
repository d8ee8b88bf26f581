//! The hasher of maps whose keys are hashes already.

use core::hash::Hasher;

/// Passes on the number of a name, or half of a key's digest: no client can choose them.
#[derive(Default)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes
            .iter()
            .for_each(|byte| self.0 = self.0 << 8 | u64::from(*byte));
    }

    fn write_u32(&mut self, number: u32) {
        // The map takes the top bits too.
        self.0 = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}
