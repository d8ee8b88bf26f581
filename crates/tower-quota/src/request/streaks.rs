use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::MutexGuard;

use tower_quota_core::{Key, Lock, Name, Timestamp};

use crate::observe::{Event, Observer};
use crate::request::Rules;

/// The maximum number of counted clients. One more client drops the shorter half of the streaks.
const MAX_CLIENTS: usize = 65_536;
/// The time between resets of all counts. Otherwise an absent client would cost each admission a
/// lock.
const FORGET: Duration = Duration::from_secs(300);

#[derive(Default)]
pub(crate) struct Streaks {
    /// Whether any client has refusals. If not, admitted requests take no lock.
    any: AtomicBool,
    lengths: Lock<Lengths>,
    hasher: RandomState,
}

#[derive(Default)]
struct Lengths {
    began: Timestamp,
    of: HashMap<u64, u32>,
}

impl Streaks {
    /// Returns the refusals in a row of a client.
    pub(crate) fn length(&self, limit: Name, key: &Key<'_>, now: Timestamp) -> u32 {
        let lengths = self.lock(now);
        let length = lengths.of.get(&self.number(limit, key));
        length.copied().unwrap_or_default()
    }

    fn refused(&self, limit: Name, key: &Key<'_>, now: Timestamp) {
        let mut lengths = self.lock(now);
        if lengths.of.len() >= MAX_CLIENTS {
            lengths.drop_shorter_half();
        }
        let length = lengths.of.entry(self.number(limit, key)).or_default();
        *length = length.saturating_add(1);
        self.any.store(true, Ordering::Relaxed);
    }

    fn admitted(&self, keys: &[(Name, Key<'static>)], now: impl FnOnce() -> Timestamp) {
        if !self.any.load(Ordering::Relaxed) {
            return;
        }
        let mut lengths = self.lock(now());
        for (limit, key) in keys {
            lengths.of.remove(&self.number(*limit, key));
        }
        self.any.store(!lengths.of.is_empty(), Ordering::Relaxed);
    }

    fn number(&self, limit: Name, key: &Key<'_>) -> u64 {
        self.hasher
            .hash_one((limit.id(), key.scope().id(), key.as_bytes()))
    }

    fn lock(&self, now: Timestamp) -> MutexGuard<'_, Lengths> {
        let mut lengths = self.lengths.lock();
        if now.since(lengths.began) >= FORGET {
            lengths.of.clear();
            lengths.began = now;
        }
        lengths
    }
}

impl Observer for Streaks {
    fn observe(&self, event: &Event<'_>, rules: &Rules) {
        let Event::Decided { decided, .. } = event else {
            return;
        };
        let now = || rules.settings.local.now();
        if decided.reason.is_none() {
            self.admitted(decided.keys, now);
        } else if let Some((limit, key)) = decided.refused_client() {
            self.refused(limit, key, now());
        }
    }

    fn sees_admissions(&self) -> bool {
        true
    }

    fn reads_keys(&self) -> bool {
        true
    }
}

impl Lengths {
    /// Makes room, and keeps the clients with most refusals.
    #[cold]
    fn drop_shorter_half(&mut self) {
        let mut sorted: Vec<u32> = self.of.values().copied().collect();
        sorted.sort_unstable();
        let median = sorted.get(sorted.len() / 2).copied().unwrap_or_default();
        self.of.retain(|_, length| *length > median);
    }
}

#[cfg(test)]
mod tests {
    use tower_quota_core::{Key, Name, Timestamp};

    use super::{MAX_CLIENTS, Streaks};

    #[test]
    fn flood_of_clients_keeps_longest_streaks() {
        let (streaks, limit, now) = (Streaks::default(), Name::new("limit"), Timestamp::EPOCH);
        let refused = |client: &str| {
            let key = Key::owned(Name::new("client"), client);
            streaks.refused(limit, &key, now);
            streaks.length(limit, &key, now)
        };
        for expected in 1..=3 {
            assert_eq!(refused("eve"), expected);
        }
        for client in 0..MAX_CLIENTS + 500 {
            assert_eq!(refused(&client.to_string()), 1);
        }
        assert_eq!(refused("eve"), 4);
    }
}
