//! Random numbers, and the order in which keys come.

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

/// The spread of requests over keys.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Traffic {
    /// One key.
    Hot,
    /// This many keys, each as likely as the others.
    Uniform(u32),
    /// This many keys by Zipf's law with exponent 1: the n-th key has 1/n of the requests of the first.
    Zipf(u32),
}

/// The keys of future requests, drawn in advance and repeated.
pub(crate) struct Trace {
    keys: Vec<u32>,
    next: usize,
}

/// More draws than the caches hold keys.
const DRAWS: usize = 1 << 22;

impl Traffic {
    /// Returns the number of keys.
    pub(crate) const fn keys(self) -> u32 {
        match self {
            Self::Hot => 1,
            Self::Uniform(keys) | Self::Zipf(keys) => keys,
        }
    }

    /// Returns the same keys for the same seed, and another hot key for another seed.
    pub(crate) fn trace(self, seed: u64) -> Trace {
        let mut draws = Draws::new(seed);
        let mut drawn = |key: &dyn Fn(u64) -> u32| (0..DRAWS).map(|_| key(draws.next())).collect();
        let keys = match self {
            Self::Hot => vec![seed as u32],
            Self::Uniform(keys) => drawn(&|draw| (draw % u64::from(keys)) as u32),
            Self::Zipf(keys) => {
                // The inverse of the integral of the harmonic sum: the rank is keys^u for a uniform u.
                let largest = f64::from(keys).ln();
                drawn(&|draw| {
                    let uniform = (draw >> 11) as f64 / (1_u64 << 53) as f64;
                    scattered((uniform * largest).exp() as u32 - 1, keys)
                })
            }
        };
        Trace { keys, next: 0 }
    }
}

/// Returns the key of a rank. Multiples of a prime visit every rank once, and busy keys are not neighbours.
fn scattered(rank: u32, keys: u32) -> u32 {
    (u64::from(rank) * 2_654_435_761 % u64::from(keys)) as u32
}

impl Trace {
    /// Returns the number of one of the keys, for tasks that share a trace.
    pub(crate) fn at(&self, draw: u64) -> u32 {
        self.keys[(draw % self.keys.len() as u64) as usize]
    }

    /// Returns the number of the next key.
    pub(crate) fn next(&mut self) -> u32 {
        let key = self.keys[self.next];
        self.next = (self.next + 1) % self.keys.len();
        key
    }
}
