//! Finds units above the quota in the requests of a world.

use std::collections::HashMap;
use std::time::Duration;

use tower_quota_core::{Algorithm, Timestamp};

use super::{World, skew};

impl World {
    /// Returns the first units above the quota, if the regions have taken more.
    ///
    /// The debts after settlements are at most `debts` units.
    pub(crate) fn first_over(&self, debts: u64) -> Option<String> {
        if self.quota.algorithm() == Algorithm::Concurrent {
            let most = self.most_held;
            return (most > self.quota.capacity()).then(|| format!("{most} held"));
        }
        if self.quota.algorithm() == Algorithm::FixedWindow {
            let period = u64::try_from(self.quota.period().as_micros()).unwrap();
            let mut windows: HashMap<u64, u64> = HashMap::new();
            for taken in &self.taken {
                *windows.entry(taken.at.as_micros() / period).or_default() += taken.units;
            }
            let most = windows.into_values().max().unwrap_or(0);
            return (most > self.quota.units() + debts).then(|| format!("{most} in a window"));
        }
        let mut taken = self.taken.clone();
        for taken in &mut taken {
            if !taken.by_home {
                let by_world = taken.at.since(Timestamp::EPOCH + skew(taken.region));
                taken.at = Timestamp::EPOCH + by_world;
            }
        }
        taken.sort_by_key(|taken| taken.at);
        // The textbook test of every interval.
        let units_per_micro = |span: Duration| {
            let micros = span.as_micros() * u128::from(self.quota.units());
            u64::try_from(micros / self.quota.period().as_micros()).unwrap() + 1
        };
        for (first, from) in taken.iter().enumerate() {
            let mut units = 0;
            for to in &taken[first..] {
                let span = to.at.since(from.at);
                units += to.units;
                let most = match self.quota.algorithm() {
                    Algorithm::SlidingLog if span < self.quota.period() => self.quota.units(),
                    Algorithm::SlidingLog => break,
                    _ => self.quota.capacity() + units_per_micro(span),
                };
                if units > most + debts {
                    return Some(format!("{units} in {span:?}"));
                }
            }
        }
        None
    }
}
