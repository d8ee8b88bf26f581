use crate::error::RedisStoreError;

/// Counts the decisions that ended in an error, by kind of [`RedisStoreError`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RedisErrorCounts {
    /// The number of [`RedisStoreError::Connect`] errors.
    pub connect: u64,
    /// The number of [`RedisStoreError::BreakerOpen`] errors.
    pub breaker_open: u64,
    /// The number of [`RedisStoreError::Overloaded`] errors.
    pub overloaded: u64,
    /// The number of [`RedisStoreError::Deadline`] errors.
    pub deadline: u64,
    /// The number of [`RedisStoreError::Refused`] errors.
    pub refused: u64,
    /// The number of [`RedisStoreError::Moving`] errors.
    pub moving: u64,
    /// The number of [`RedisStoreError::Lost`] errors.
    pub lost: u64,
    /// The number of [`RedisStoreError::State`] and [`RedisStoreError::Garbled`] errors.
    pub unreadable: u64,
    /// The number of all other errors.
    pub other: u64,
}

impl RedisErrorCounts {
    pub(crate) const fn count(&mut self, error: &RedisStoreError) {
        let kind = match error {
            RedisStoreError::Connect { .. } => &mut self.connect,
            RedisStoreError::BreakerOpen { .. } => &mut self.breaker_open,
            RedisStoreError::Overloaded { .. } => &mut self.overloaded,
            RedisStoreError::Deadline { .. } => &mut self.deadline,
            RedisStoreError::Refused { .. } => &mut self.refused,
            RedisStoreError::Moving { .. } => &mut self.moving,
            RedisStoreError::Lost { .. } => &mut self.lost,
            RedisStoreError::State { .. } | RedisStoreError::Garbled { .. } => &mut self.unreadable,
            RedisStoreError::TooManyCharges { .. }
            | RedisStoreError::HoldsOfSeveralKeys { .. }
            | RedisStoreError::Closed
            | RedisStoreError::Config(_) => &mut self.other,
        };
        *kind += 1;
    }
}
