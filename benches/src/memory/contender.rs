//! The interface that the suite gives every limiter.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::allowance::Allowance;
use crate::load::Keys;

/// A limiter that counts by keys of this type.
pub(crate) trait Contender<K>: Send + Sync {
    /// Asks for one unit. Returns whether it was admitted.
    fn admits(&self, key: &K) -> bool;

    /// Asks once for each key. Returns how many were admitted.
    fn admitted(&self, keys: &[K]) -> usize {
        keys.iter()
            .filter(|key| self.admits(std::hint::black_box(key)))
            .count()
    }
}

impl<K, C: Contender<K>> Contender<K> for Arc<C> {
    fn admits(&self, key: &K) -> bool {
        (**self).admits(key)
    }
}

/// One limiter per limit, asked one after the other until one refuses: the usual way with a limiter of one limit.
pub(crate) struct Each<C>(pub(crate) Vec<C>);

impl<C> Each<C> {
    pub(crate) fn new(allowances: &[Allowance], limiter: impl Fn(&Allowance) -> C) -> Self {
        Self(allowances.iter().map(limiter).collect())
    }
}

impl<K, C: Contender<K>> Contender<K> for Each<C> {
    fn admits(&self, key: &K) -> bool {
        self.0.iter().all(|limiter| limiter.admits(key))
    }
}

/// Two limiters that both have to admit a request.
pub(crate) struct Both<A, B>(pub(crate) A, pub(crate) B);

impl<K, A: Contender<K>, B: Contender<K>> Contender<K> for Both<A, B> {
    fn admits(&self, key: &K) -> bool {
        self.0.admits(key) && self.1.admits(key)
    }
}

/// Two ways to ask the same counters: one request in `every`, drawn at random, takes the second way.
pub(crate) struct Mix<A, B> {
    first: A,
    second: B,
    takes_second: Vec<bool>,
    next: AtomicUsize,
}

impl<A, B> Mix<A, B> {
    pub(crate) fn new(first: A, second: B, every: u64) -> Self {
        let mut draws = Keys::new(1, every);
        // More draws than a branch predictor learns.
        Self {
            first,
            second,
            takes_second: (0..1 << 16).map(|_| draws.next() == 0).collect(),
            next: AtomicUsize::new(0),
        }
    }
}

impl<K, A: Contender<K>, B: Contender<K>> Contender<K> for Mix<A, B> {
    fn admits(&self, key: &K) -> bool {
        let next = self.next.fetch_add(1, Ordering::Relaxed) % self.takes_second.len();
        if self.takes_second[next] {
            self.second.admits(key)
        } else {
            self.first.admits(key)
        }
    }

    /// Advances the shared position once for all keys.
    fn admitted(&self, keys: &[K]) -> usize {
        let from = self.next.fetch_add(keys.len(), Ordering::Relaxed) % self.takes_second.len();
        let ways = self.takes_second.iter().cycle().skip(from);
        let admits = |key, &second| {
            if second {
                self.second.admits(key)
            } else {
                self.first.admits(key)
            }
        };
        keys.iter()
            .zip(ways)
            .filter(|(key, second)| admits(std::hint::black_box(key), second))
            .count()
    }
}
