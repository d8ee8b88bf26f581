//! Counts of errors by kind.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::error::RedisStoreError;

/// The decisions that ended in an error, by kind of [`RedisStoreError`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RedisErrorCounts {
    /// [`RedisStoreError::Connect`].
    pub connect: u64,
    /// [`RedisStoreError::BreakerOpen`].
    pub breaker_open: u64,
    /// [`RedisStoreError::Overloaded`].
    pub overloaded: u64,
    /// [`RedisStoreError::Deadline`].
    pub deadline: u64,
    /// [`RedisStoreError::Refused`].
    pub refused: u64,
    /// [`RedisStoreError::Moving`].
    pub moving: u64,
    /// [`RedisStoreError::Lost`].
    pub lost: u64,
    /// [`RedisStoreError::State`] and [`RedisStoreError::Garbled`].
    pub unreadable: u64,
    /// [`RedisStoreError::TooManyCharges`], [`RedisStoreError::HoldsOfSeveralKeys`], [`RedisStoreError::Closed`] and
    /// [`RedisStoreError::Config`].
    pub other: u64,
}

/// Counts errors by kind, from any number of threads.
#[derive(Debug, Default)]
pub(crate) struct ErrorCounters([AtomicU64; 9]);

impl ErrorCounters {
    pub(crate) fn count(&self, error: &RedisStoreError) {
        let kind = match error {
            RedisStoreError::Connect { .. } => 0,
            RedisStoreError::BreakerOpen { .. } => 1,
            RedisStoreError::Overloaded { .. } => 2,
            RedisStoreError::Deadline { .. } => 3,
            RedisStoreError::Refused { .. } => 4,
            RedisStoreError::Moving { .. } => 5,
            RedisStoreError::Lost { .. } => 6,
            RedisStoreError::State { .. } | RedisStoreError::Garbled { .. } => 7,
            RedisStoreError::TooManyCharges { .. }
            | RedisStoreError::HoldsOfSeveralKeys { .. }
            | RedisStoreError::Closed
            | RedisStoreError::Config(_) => 8,
        };
        self.0[kind].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn counts(&self) -> RedisErrorCounts {
        let [
            connect,
            breaker_open,
            overloaded,
            deadline,
            refused,
            moving,
            lost,
            unreadable,
            other,
        ] = core::array::from_fn(|kind| self.0[kind].load(Ordering::Relaxed));
        RedisErrorCounts {
            connect,
            breaker_open,
            overloaded,
            deadline,
            refused,
            moving,
            lost,
            unreadable,
            other,
        }
    }
}
