//! The refusals of pools that threads remember, each in its own place.
//!
//! Requests of a client over its quota come from all threads. They would wait for each other in its shard, each for the
//! same refusal.

use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Mutex;

use tower_quota_core::{Charge, LimitStatus, Name, Quota, Timestamp};

use crate::lock::locked;
use crate::refusal::PoolRefusal;
use crate::thread_place::thread_place;

/// The places of threads. Threads that share one wait for each other.
const PLACES: usize = 16;
/// The refusals that are remembered in a place.
const WAYS: usize = 64;

/// The refusals of pools that each thread remembers for itself.
#[derive(Debug, Default)]
pub(crate) struct Remembered([Place; PLACES]);

/// The refusals of a thread's place. Processors fetch two lines at a time.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Place(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// Made for the first refusal.
    refusals: Vec<Option<KnownRefusal>>,
    refused: u64,
}

/// A refusal as a pool has made it.
#[derive(Debug)]
pub(crate) struct KnownRefusal {
    pub(crate) digest: u128,
    /// The version of its shard, which changes when the pool may have got units.
    version: u64,
    quota: Quota,
    cost: u64,
    refusal: PoolRefusal,
    pub(crate) uncounted: Uncounted,
}

/// Requests that were refused here, and that their pool has yet to count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Uncounted {
    /// The number of their pool.
    pub(crate) serial: u64,
    pub(crate) requests: u32,
    pub(crate) units: u64,
    /// The instant of the last one.
    pub(crate) last: u64,
}

/// The version of a shard, in a line of its own: it is read by each request, and rarely written.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Version(AtomicU64);

impl Version {
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// Ends all refusals of the shard that are remembered. Called by the one thread that may change its pools.
    pub(crate) fn change(&self) {
        self.0.store(
            self.0.load(Ordering::Relaxed).wrapping_add(1),
            Ordering::Release,
        );
    }
}

impl Remembered {
    /// Refuses a charge by a refusal that this thread remembers. `is_counted` says whether the request is refused already.
    ///
    /// Otherwise returns the requests that it has refused before, for the pool.
    pub(crate) fn refuse(
        &self,
        digest: u128,
        charge: &Charge<'_>,
        (now, version): (u64, u64),
        is_counted: bool,
    ) -> Result<(LimitStatus, Timestamp), Uncounted> {
        let mut known = locked(self.own());
        let Known { refusals, refused } = &mut *known;
        let known = refusals
            .get_mut(way(digest, charge.name()))
            .and_then(Option::as_mut);
        let Some(known) = known.filter(|known| known.is_of(digest, charge)) else {
            return Err(Uncounted::default());
        };
        let units = charge.units();
        if units > known.refusal.largest {
            return Err(Uncounted::default());
        }
        let uncounted = &mut known.uncounted;
        if known.version != version || now >= known.refusal.known_until || units < known.cost {
            return Err(core::mem::replace(
                uncounted,
                Uncounted {
                    serial: uncounted.serial,
                    ..Uncounted::default()
                },
            ));
        }
        uncounted.requests = uncounted.requests.saturating_add(1);
        uncounted.units = uncounted.units.saturating_add(units);
        uncounted.last = now;
        *refused += u64::from(!is_counted);
        Ok((
            known.refusal.status(now, units),
            known.refusal.seen.store_now(now),
        ))
    }

    /// Remembers a refusal.
    ///
    /// Returns the one that gives way to it, if it has refused requests that its pool has yet to count.
    pub(crate) fn remember(&self, refusal: KnownRefusal) -> Option<KnownRefusal> {
        let refusals = &mut locked(self.own()).refusals;
        if refusals.is_empty() {
            refusals.resize_with(WAYS, || None);
        }
        let place = refusals.get_mut(way(refusal.digest, refusal.refusal.limit))?;
        place
            .replace(refusal)
            .filter(|known| known.uncounted.requests > 0)
    }

    /// Returns the requests that were refused by what is remembered.
    pub(crate) fn refused(&self) -> u64 {
        self.0
            .iter()
            .map(|Place(known)| locked(known).refused)
            .sum()
    }

    fn own(&self) -> &Mutex<Known> {
        &self.0[thread_place() % PLACES].0
    }
}

/// Returns the place of a limit of a key, by other bits than those that choose its shard.
fn way(digest: u128, limit: Name) -> usize {
    usize::from(digest.to_le_bytes()[8] ^ limit.id().to_le_bytes()[0]) % WAYS
}

impl KnownRefusal {
    pub(crate) fn new(
        (digest, serial, version): (u128, u64, u64),
        charge: &Charge<'_>,
        refusal: PoolRefusal,
    ) -> Self {
        let (quota, cost) = (*charge.quota(), charge.units());
        // What the pool holds, others may take.
        let refusal = PoolRefusal {
            remaining: refusal.remaining.min(refusal.seen.remaining),
            ..refusal
        };
        Self {
            digest,
            version,
            quota,
            cost,
            refusal,
            uncounted: Uncounted {
                serial,
                ..Uncounted::default()
            },
        }
    }

    fn is_of(&self, digest: u128, charge: &Charge<'_>) -> bool {
        self.digest == digest
            && self.refusal.limit == charge.name()
            && self.quota == *charge.quota()
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use tower_quota_core::{Key, Name, Outcome};

    use super::*;
    use crate::refusal::Seen;

    const QUOTA: Quota = Quota::per_second(100);
    const DIGEST: u128 = 7;

    fn refusal(cost: u64, known_until: u64) -> KnownRefusal {
        let seen = Seen {
            remaining: 9,
            at: Timestamp::from_micros(5_000),
            sent: 90,
            full_at: 1_000_000,
            retry_at: 300,
            refused_cost: 1,
        };
        let limit = Name::new("limit");
        let refusal = PoolRefusal {
            limit,
            capacity: 100,
            largest: 95,
            remaining: 20,
            seen,
            refuse_until: 200,
            known_until,
        };
        KnownRefusal::new(
            (DIGEST, 1, 0),
            &Charge::new(limit, &QUOTA, &Key::EVERYONE).cost(cost),
            refusal,
        )
    }

    #[test]
    fn remembered_refusal_ages_and_ends() {
        let remembered = Remembered::default();
        let key = Key::EVERYONE;
        let charge = |cost| Charge::new("limit", &QUOTA, &key).cost(cost);
        let refuse =
            |cost, now, version| remembered.refuse(DIGEST, &charge(cost), (now, version), false);
        let nothing = Err(Uncounted {
            serial: 1,
            ..Uncounted::default()
        });
        let counted = |requests, units, last| {
            Err(Uncounted {
                serial: 1,
                requests,
                units,
                last,
            })
        };
        assert_eq!(refuse(4, 100, 0), Err(Uncounted::default()));
        assert!(remembered.remember(refusal(4, 150)).is_none());
        let (status, at) = refuse(4, 110, 0).unwrap();
        assert_eq!((status.remaining(), at.as_micros()), (3, 5_020));
        assert_eq!(status.outcome, Outcome::Refuse(Duration::from_micros(190)));
        assert_eq!(refuse(15, 120, 0).unwrap().0.remaining(), 9);
        assert_eq!(
            refuse(96, 120, 0),
            Err(Uncounted::default()),
            "a cost that can never fit"
        );
        assert_eq!(refuse(3, 130, 0), counted(2, 19, 120), "a smaller cost");
        assert_eq!(refuse(3, 130, 0), nothing, "counted once");
        assert!(refuse(4, 149, 0).is_ok());
        assert_eq!(refuse(4, 150, 0), counted(1, 4, 149), "its end");
        assert_eq!(refuse(4, 140, 1), nothing, "another version");
        assert_eq!(remembered.refused(), 3);
    }

    #[test]
    fn other_limits_and_quotas_are_not_refused() {
        let remembered = Remembered::default();
        assert!(remembered.remember(refusal(1, 150)).is_none());
        let (key, other) = (Key::EVERYONE, Quota::per_second(200));
        let is_refused =
            |digest, charge: Charge<'_>| remembered.refuse(digest, &charge, (110, 0), true).is_ok();
        assert!(is_refused(DIGEST, Charge::new("limit", &QUOTA, &key)));
        assert!(!is_refused(DIGEST, Charge::new("other", &QUOTA, &key)));
        assert!(!is_refused(DIGEST, Charge::new("limit", &other, &key)));
        assert!(!is_refused(
            DIGEST + (WAYS as u128),
            Charge::new("limit", &QUOTA, &key)
        ));
        // Counted by the part of the request that was refused first.
        assert_eq!(remembered.refused(), 0);
        let evicted = remembered.remember(refusal(2, 150)).unwrap();
        assert_eq!(
            evicted.uncounted,
            Uncounted {
                serial: 1,
                requests: 1,
                units: 1,
                last: 110
            }
        );
    }
}
