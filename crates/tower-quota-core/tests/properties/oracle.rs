//! Implements the algorithms as in a textbook, with exact fractions in 128 bits.
//!
//! Fractions of units are multiplied by the period, and fractions of microseconds by the units, so
//! that no value is rounded.

use std::collections::HashMap;

use tower_quota_core::{Algorithm, Quota};

use super::trace::micros;

/// The state that a textbook algorithm keeps of one key.
pub(crate) enum Oracle {
    /// Tokens times period, as of an instant.
    Bucket { tokens: u128, at: u64 },
    /// The theoretical arrival time, times units.
    Gcra { arrival: u128 },
    /// The instant at which the queue is empty, times units.
    Queue { empty_at: u128 },
    /// The count of each window by number. Windows from the first request are numbered by their
    /// start.
    Windows {
        counts: HashMap<u64, u64>,
        first: Option<u64>,
    },
    /// The instant and the cost of each admitted request.
    Log { stamps: Vec<(u64, u64)> },
}

impl Oracle {
    pub(crate) fn new(quota: &Quota) -> Self {
        match quota.algorithm() {
            Algorithm::TokenBucket => Self::Bucket {
                tokens: full(quota),
                at: 0,
            },
            Algorithm::Gcra => Self::Gcra { arrival: 0 },
            Algorithm::LeakyBucket => Self::Queue { empty_at: 0 },
            Algorithm::FixedWindow | Algorithm::SlidingWindow => Self::Windows {
                counts: HashMap::new(),
                first: None,
            },
            Algorithm::SlidingLog => Self::Log { stamps: Vec::new() },
            other => unreachable!("there is no oracle for a {other}"),
        }
    }

    /// Returns whether `cost` units fit at `now`.
    pub(crate) fn fits(&self, quota: &Quota, now: u64, cost: u64) -> bool {
        let (units, period) = (
            u128::from(quota.units()),
            u128::from(micros(quota.period())),
        );
        let (scaled_now, scaled_cost) = (u128::from(now) * units, u128::from(cost) * period);
        match self {
            Self::Bucket { tokens, at } => {
                (tokens + u128::from(now - at) * units).min(full(quota)) >= scaled_cost
            }
            Self::Gcra { arrival } => {
                // The burst tolerance leaves room for the burst less the cost.
                let tolerance = full(quota) - scaled_cost;
                scaled_now + tolerance >= *arrival
            }
            Self::Queue { empty_at } => {
                empty_at.saturating_sub(scaled_now) + scaled_cost <= full(quota)
            }
            Self::Windows { counts, .. } => {
                let window = self.window(quota, now);
                let count =
                    |window: Option<u64>| window.and_then(|w| counts.get(&w)).copied().unwrap_or(0);
                let weighted = if quota.algorithm() == Algorithm::SlidingWindow {
                    let overlap = period - u128::from(now) % period;
                    u128::from(count(window.checked_sub(1))) * overlap
                } else {
                    0
                };
                weighted + (u128::from(count(Some(window))) + u128::from(cost)) * period
                    <= units * period
            }
            Self::Log { stamps } => {
                let inside = |stamp: u64| u128::from(now - stamp) < period;
                let total: u64 = stamps
                    .iter()
                    .filter(|(stamp, _)| inside(*stamp))
                    .map(|(_, cost)| cost)
                    .sum();
                total + cost <= quota.units()
            }
        }
    }

    /// Takes `cost` units that fit at `now`. Returns the instant of the request's turn, times units.
    pub(crate) fn take(&mut self, quota: &Quota, now: u64, cost: u64) -> u128 {
        let (units, period) = (
            u128::from(quota.units()),
            u128::from(micros(quota.period())),
        );
        let (scaled_now, scaled_cost) = (u128::from(now) * units, u128::from(cost) * period);
        let window = self.window(quota, now);
        match self {
            Self::Bucket { tokens, at } => {
                *tokens = (*tokens + u128::from(now - *at) * units).min(full(quota)) - scaled_cost;
                *at = now;
            }
            Self::Gcra { arrival } => *arrival = scaled_now.max(*arrival) + scaled_cost,
            Self::Queue { empty_at } => {
                let turn = scaled_now.max(*empty_at);
                *empty_at = turn + scaled_cost;
                return turn;
            }
            Self::Windows { counts, first } => {
                *first = Some(window);
                *counts.entry(window).or_default() += cost;
            }
            Self::Log { stamps } => stamps.push((now, cost)),
        }
        scaled_now
    }

    /// Returns the number of the window at `now`.
    fn window(&self, quota: &Quota, now: u64) -> u64 {
        let period = micros(quota.period());
        match (self, quota.window_offset()) {
            (
                Self::Windows {
                    first: Some(first), ..
                },
                None,
            ) if now - first < period => *first,
            (_, None) => now,
            // Add one period, so that the window before the first offset has a number too.
            (_, Some(offset)) => (now + period - offset) / period,
        }
    }
}

fn full(quota: &Quota) -> u128 {
    u128::from(quota.capacity()) * u128::from(micros(quota.period()))
}

/// Returns whether the quota is counted at exactly its rate.
///
/// Other quotas are up to one part per million slower.
pub(crate) fn is_exact(quota: &Quota) -> bool {
    match quota.algorithm() {
        Algorithm::FixedWindow | Algorithm::SlidingLog => true,
        Algorithm::SlidingWindow => quota.grain() == 1,
        Algorithm::TokenBucket | Algorithm::Gcra | Algorithm::LeakyBucket => {
            let given = u128::from(quota.refill()) * u128::from(micros(quota.period()));
            given == u128::from(quota.grain()) * u128::from(quota.units())
        }
        other => unreachable!("there is no oracle for a {other}"),
    }
}
