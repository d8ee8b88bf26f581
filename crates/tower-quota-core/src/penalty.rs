//! Penalties for clients that ignore refusals.

use core::time::Duration;

use crate::error::ConfigError;
use crate::quota::{MOST_GRAINS, Quota, YEAR};
use crate::time::micros;

/// Blocks clients that keep sending while they are refused.
///
/// The first refusals are free. Every further refusal blocks the client for a step longer, and each step of time
/// forgives a refusal. A penalty is a token bucket of strikes. While the bucket is in debt, the limit refuses all
/// requests.
///
/// ```
/// use std::time::Duration;
/// use tower_quota_core::Penalty;
///
/// // Ten refusals are free. The eleventh in a row blocks for a minute, the twelfth for two.
/// const STRICT: Penalty = Penalty::after(10).step(Duration::from_secs(60)).most(Duration::from_secs(3_600));
/// assert_eq!(STRICT.most_debt(), 60);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Penalty {
    strikes: Quota,
    most: Duration,
}

impl Penalty {
    /// Makes a penalty with a number of free refusals in a row. See [`Penalty::try_new`].
    ///
    /// Defaults to a [`step`](Self::step) of one minute, and to at [`most`](Self::most) one hour.
    #[track_caller]
    pub const fn after(refusals: u64) -> Self {
        Self {
            strikes: Quota::per_minute(1).burst(refusals),
            most: Duration::from_secs(3_600),
        }
    }

    /// Sets the time that a refusal adds to the block, and after which a refusal is forgiven.
    #[track_caller]
    pub const fn step(mut self, step: Duration) -> Self {
        self.strikes = Quota::new(1, step).burst(self.strikes.capacity());
        self
    }

    /// Sets the longest block, rounded down to full steps. A block has at least one step.
    pub const fn most(mut self, most: Duration) -> Self {
        self.most = most;
        self
    }

    /// Makes a penalty from numbers of your configuration.
    ///
    /// # Errors
    /// Returns [`ConfigError`] if no refusal is free, if the step is not from 1 ms to 366 days or
    /// has a fraction of a microsecond, or if the numbers cannot be counted to within 1 part per
    /// million.
    pub fn try_new(refusals: u64, step: Duration, most: Duration) -> Result<Self, ConfigError> {
        Ok(Self {
            strikes: Quota::try_new(1, step)?.try_burst(refusals)?,
            most,
        })
    }

    /// Returns the bucket of strikes, with the free refusals as its capacity.
    pub const fn strikes(&self) -> &Quota {
        &self.strikes
    }

    /// Returns the most strikes that a client can owe.
    pub fn most_debt(&self) -> u64 {
        let steps = micros(self.most).min(YEAR) / self.strikes.period_micros();
        steps.clamp(1, MOST_GRAINS / self.strikes.grain())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::charge::{Charge, Operation};
    use crate::entry::Entry;
    use crate::key::Key;
    use crate::outcome::Outcome;
    use crate::time::Timestamp;

    #[test]
    fn shortest_block_is_one_step() {
        let step = Duration::from_secs(60);
        let penalty = Penalty::after(1).step(step).most(step / 2);
        let (quota, key) = (Quota::per_second(1), Key::EVERYONE);
        let charge = [Charge::new("second", &quota, &key).penalty(&penalty)];
        let (mut entry, now) = (Entry::default(), Timestamp::from_micros(1));
        let mut check = || entry.decide(Operation::Check, &charge, now).outcome();
        assert_eq!(check(), Outcome::Allow);
        let second = Outcome::Refuse(Duration::from_secs(1));
        let outcomes = [check(), check(), check()];
        assert_eq!(
            outcomes,
            [second, Outcome::Refuse(step), Outcome::Refuse(step)]
        );
    }
}
