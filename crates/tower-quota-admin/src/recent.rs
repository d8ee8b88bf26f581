//! Keeps the decisions of the last five minutes by second, and the snapshots that streams share.

use core::cmp::Reverse;
use core::sync::atomic::AtomicBool;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime};

use serde::Serialize;
use tokio::sync::watch;
use tower_quota::metrics::{DecisionTotals, StoreLatency};

const KEPT: usize = 300;

/// The maximum number of limits in a second, to bound the memory of thousands of limits.
const MOST_LIMITS: usize = 200;

const LATENCY: usize = 10;

/// The requests of a limit: admitted, admitted by this limit and refused by another limit, refused,
/// and uncounted.
pub(crate) type Counts = [u64; 4];

/// The decisions of a second.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Second {
    /// The end, in milliseconds since 1970.
    at_ms: u64,
    /// The length, in milliseconds. It is long after the process was stopped.
    lasts_ms: u64,
    /// The requests by limit: admitted, admitted by this limit and refused by another limit, refused,
    /// and the part of the admitted requests that passed uncounted. Limits without requests are
    /// absent.
    limits: BTreeMap<&'static str, Counts>,
}

#[derive(Default)]
pub(crate) struct Recent {
    seconds: VecDeque<Second>,
    before: Option<(Instant, HashMap<&'static str, Counts>)>,
    calls: VecDeque<StoreLatency>,
}

pub(crate) struct Feed {
    recent: Mutex<Recent>,
    snapshots: watch::Sender<Arc<str>>,
    hidden_snapshots: watch::Sender<Arc<str>>,
    pub(crate) started: AtomicBool,
}

impl Recent {
    pub(crate) fn add(&mut self, now: Instant, at_ms: u64, totals: &[DecisionTotals]) {
        let of_limit = |limit: &DecisionTotals| {
            let admitted = limit.allowed + limit.queued + limit.shadowed + limit.degraded;
            let refused = limit.limited + limit.never;
            let counts = [admitted, limit.would_allow, refused, limit.degraded];
            (limit.limit.as_str(), counts)
        };
        let totals: HashMap<_, _> = totals.iter().map(of_limit).collect();
        if let Some((then, before)) = &self.before {
            let mut limits = Vec::new();
            for (limit, now) in &totals {
                let mut counts = *now;
                // A new policy counts from zero.
                if let Some(old) = before.get(limit)
                    && (0..4).all(|part| now[part] >= old[part])
                {
                    (0..4).for_each(|part| counts[part] -= old[part]);
                }
                if counts != [0; 4] {
                    limits.push((*limit, counts));
                }
            }
            limits.sort_unstable_by_key(|(_, counts)| rank(counts));
            limits.truncate(MOST_LIMITS);
            let lasts = now.saturating_duration_since(*then).as_millis();
            self.seconds.push_back(Second {
                at_ms,
                lasts_ms: u64::try_from(lasts).unwrap_or(u64::MAX),
                limits: limits.into_iter().collect(),
            });
        }
        if self.seconds.len() > KEPT {
            self.seconds.pop_front();
        }
        self.before = Some((now, totals));
    }

    pub(crate) fn last_minute(&self) -> HashMap<&'static str, Counts> {
        let mut sums: HashMap<&'static str, Counts> = HashMap::new();
        for second in self.seconds.iter().rev().take(60) {
            for (limit, counts) in &second.limits {
                let sum = sums.entry(limit).or_default();
                (0..4).for_each(|part| sum[part] += counts[part]);
            }
        }
        sums
    }

    pub(crate) fn seconds(&self, all: bool, limits: &[&'static str]) -> Vec<Second> {
        let first = match all {
            true => 0,
            false => self.seconds.len().saturating_sub(1),
        };
        let mut seconds: Vec<Second> = self.seconds.range(first..).cloned().collect();
        for second in &mut seconds {
            second.limits.retain(|limit, _| limits.contains(limit));
        }
        seconds
    }

    pub(crate) fn add_calls(&mut self, calls: StoreLatency) {
        self.calls.push_back(calls);
        if self.calls.len() > LATENCY {
            self.calls.pop_front();
        }
    }

    pub(crate) fn calls(&self, now: &StoreLatency) -> StoreLatency {
        now.since(&self.calls.front().cloned().unwrap_or_default())
    }
}

pub(crate) fn rank(counts: &Counts) -> Reverse<(u64, u64)> {
    Reverse((counts[2], counts[..3].iter().sum()))
}

impl Feed {
    pub(crate) fn new() -> Self {
        Self {
            recent: Mutex::default(),
            snapshots: watch::Sender::new("".into()),
            hidden_snapshots: watch::Sender::new("".into()),
            started: AtomicBool::new(false),
        }
    }

    /// Returns the snapshots of streams whose callers may read keys, or of the other streams.
    pub(crate) const fn snapshots(&self, reads_keys: bool) -> &watch::Sender<Arc<str>> {
        match reads_keys {
            true => &self.snapshots,
            false => &self.hidden_snapshots,
        }
    }

    pub(crate) fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[expect(clippy::disallowed_methods, reason = "no counter depends on it")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "no counter depends on it")]
pub(crate) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    u64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use tower_quota::{Limit, MemoryStore, Policy, Quota, RateLimitLayer};

    use super::*;

    fn totals(limit: &'static str, allowed: u64, limited: u64) -> DecisionTotals {
        let policy = Policy::new().limit(Limit::new(limit, Quota::per_minute(600)));
        let handle = RateLimitLayer::new(MemoryStore::new(), policy).handle();
        let mut totals = handle.decision_totals()[0];
        (totals.allowed, totals.limited) = (allowed, limited);
        totals
    }

    #[test]
    fn recent_keeps_five_minutes_of_differences() {
        let start = now();
        let mut recent = Recent::default();
        let mut add = |second: u64, totals: &[DecisionTotals]| {
            recent.add(start + Duration::from_secs(second), 1_000 * second, totals);
        };
        for second in 0..=400 {
            add(second, &[totals("minute", 10 * second, second)]);
        }
        // A new policy counts from zero.
        add(401, &[totals("minute", 3, 0), totals("login", 0, 7)]);
        assert_eq!(recent.seconds.len(), KEPT);
        let seconds = recent.seconds(true, &["minute"]);
        assert_eq!((seconds[0].at_ms, seconds[0].lasts_ms), (102_000, 1_000));
        assert_eq!(seconds[0].limits["minute"], [10, 0, 1, 0]);
        let newest = recent.seconds(false, &["minute"]);
        assert_eq!(newest[0].limits, BTreeMap::from([("minute", [3, 0, 0, 0])]));
        let minute = recent.last_minute();
        assert_eq!(
            (minute["minute"], minute["login"]),
            ([593, 0, 59, 0], [0, 0, 7, 0])
        );
    }

    #[test]
    fn recent_keeps_refusing_limits_of_thousands() {
        let names: Vec<&'static str> = (0..MOST_LIMITS + 50)
            .map(|number| &*format!("limit-{number}").leak())
            .collect();
        let mut recent = Recent::default();
        recent.add(now(), 0, &[]);
        let mut busy: Vec<_> = names.iter().map(|name| totals(name, 100, 0)).collect();
        busy.push(totals("login", 1, 1));
        recent.add(now(), 1_000, &busy);
        assert_eq!(recent.seconds[0].limits.len(), MOST_LIMITS);
        assert_eq!(recent.seconds[0].limits["login"], [1, 0, 1, 0]);
    }
}
