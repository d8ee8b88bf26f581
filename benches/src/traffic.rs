//! The order in which keys come.

use crate::load::Keys;

/// The spread of requests over keys.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Traffic {
    /// One key.
    Hot,
    /// This many keys, one after the other.
    InTurn(u32),
    /// This many keys, each as likely as the others.
    Uniform(u32),
    /// This many keys by Zipf's law with exponent 1: the n-th is asked for 1/n as often as the first.
    Zipf(u32),
}

/// The keys of future requests, drawn in advance and repeated.
pub(crate) struct Trace {
    keys: Vec<u32>,
    next: usize,
}

impl Traffic {
    /// Returns the number of keys.
    pub(crate) const fn keys(self) -> u32 {
        match self {
            Self::Hot => 1,
            Self::InTurn(keys) | Self::Uniform(keys) | Self::Zipf(keys) => keys,
        }
    }

    /// Returns the same draws for the same seed, and another hot key for another seed.
    pub(crate) fn trace(self, seed: u64) -> Trace {
        let keys = match self {
            Self::Hot => vec![seed as u32],
            Self::InTurn(keys) => (0..keys).collect(),
            Self::Uniform(keys) => drawn(seed, |draw| (draw % u64::from(keys)) as u32),
            Self::Zipf(keys) => {
                // The inverse of the harmonic sum's integral: rank = keys^u for uniform u, close enough to the law.
                let largest = f64::from(keys).ln();
                drawn(seed, |draw| {
                    let uniform = (draw >> 11) as f64 / (1_u64 << 53) as f64;
                    scattered((uniform * largest).exp() as u32 - 1, keys)
                })
            }
        };
        Trace { keys, next: 0 }
    }
}

/// More draws than the caches hold keys.
const DRAWS: usize = 1 << 22;

fn drawn(seed: u64, key: impl Fn(u64) -> u32) -> Vec<u32> {
    let mut draws = Keys::new(seed, u64::MAX);
    // The first draws of a small seed are small numbers still.
    for _ in 0..64 {
        draws.next();
    }
    (0..DRAWS).map(|_| key(draws.next())).collect()
}

/// Returns the key of a rank. Multiples of a prime visit every rank once, and busy keys are not neighbours.
fn scattered(rank: u32, keys: u32) -> u32 {
    (u64::from(rank) * 2_654_435_761 % u64::from(keys)) as u32
}

impl Trace {
    /// Returns the number of one of its keys, by a draw: for tasks that share a trace.
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
