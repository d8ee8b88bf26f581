//! Random numbers.

/// Uniform numbers, cheaply: a 64-bit xorshift (Marsaglia, 2003).
pub(crate) struct Draws(u64);

impl Draws {
    pub(crate) fn new(seed: u64) -> Self {
        let mut draws = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        // The first draws of a small seed are small numbers.
        for _ in 0..64 {
            draws.next();
        }
        draws
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}
