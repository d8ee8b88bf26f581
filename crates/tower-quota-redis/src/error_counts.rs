use crate::error::RedisStoreError;

/// Counts the decisions that ended in an error, by kind of [`RedisStoreError`].
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
    /// All other errors.
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
