//! A sequence lock: words that threads read without waiting for each other.

use core::sync::atomic::fence;

use super::{AtomicU64, Ordering};

/// Words that one thread at a time replaces together, and that any number of threads read.
///
/// Readers write nothing, so that they share the cache lines. A reading that meets a change is noticed and dropped
/// (Hans-J. Boehm, "Can seqlocks get along with programming language memory models?", 2012).
#[derive(Debug)]
pub(crate) struct SequenceLock<const N: usize> {
    /// Odd while the words are closed or being replaced.
    version: AtomicU64,
    words: Words<N>,
}

/// The words, which may be of different versions while they are read.
#[derive(Debug)]
pub(crate) struct Words<const N: usize>([AtomicU64; N]);

impl<const N: usize> Words<N> {
    #[inline]
    pub(crate) fn get(&self, position: usize) -> u64 {
        self.0[position].load(Ordering::Relaxed)
    }
}

impl<const N: usize> SequenceLock<N> {
    /// Makes words that are zero.
    pub(crate) fn new() -> Self {
        Self {
            version: AtomicU64::new(0),
            words: Words(core::array::from_fn(|_| AtomicU64::new(0))),
        }
    }

    /// Returns what `reading` makes of the words; `None` if they are closed or are being replaced.
    ///
    /// `reading` may see words of different versions. What it makes of them is dropped.
    #[inline]
    pub(crate) fn read<R>(&self, reading: impl FnOnce(&Words<N>) -> R) -> Option<R> {
        let version = self.version.load(Ordering::Acquire);
        let result = reading(&self.words);
        fence(Ordering::Acquire);
        let is_consistent = version & 1 == 0 && self.version.load(Ordering::Relaxed) == version;
        is_consistent.then_some(result)
    }

    /// Returns the words without a check, for a thread that no other one can race with.
    pub(crate) const fn words(&self) -> &Words<N> {
        &self.words
    }

    /// Replaces the words, and opens them. Only one thread at a time may do this, or close them.
    pub(crate) fn replace(&self, words: [u64; N]) {
        let odd = self.version.load(Ordering::Relaxed) | 1;
        self.version.store(odd, Ordering::Relaxed);
        fence(Ordering::Release);
        for (place, word) in self.words.0.iter().zip(words) {
            place.store(word, Ordering::Relaxed);
        }
        self.version.store(odd.wrapping_add(1), Ordering::Release);
    }
}
