//! The table of a refusal cache, and its clock.

use core::ops::DerefMut;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::OnceLock;

use smallvec::SmallVec;

use super::bucket::{RefusalBucket, WAYS};
use super::entry::{KnownLimit, known_refusal};
use super::stats::{EventCount, RefusalStats, StripedCount};
use super::uncounted::Uncounted;
use super::view::{ChargeView, Tag, Views, views};
use crate::charge::Charge;
use crate::clock::Clock;
use crate::decision::Decision;
use crate::key_hash::KeyHasher;
use crate::status::LimitStatus;
use crate::sync::ShortMutex;
use crate::time::Timestamp;

/// The time within which a limit that counts refusals asks the store again, in microseconds: ten calls a second.
const COUNTING_CALL_EVERY: u64 = 100_000;

/// The memory of each of a request's limits, if there is one.
type KnownLimits = SmallVec<[Option<KnownLimit>; 4]>;

/// The table of a refusal cache: buckets of entries, each behind a lock.
pub(super) struct Memory<C> {
    clock: C,
    /// The latest reading of the clock: time is never taken to be earlier.
    latest: AtomicU64,
    /// The end of the last refusal, so that a service that refuses no client pays for no look-up.
    refusing_until: AtomicU64,
    bucket_count: usize,
    /// Made for the first request, since many layers never use theirs.
    buckets: OnceLock<Box<[ShortMutex<RefusalBucket>]>>,
    hasher: KeyHasher,
    remembers_statuses: AtomicBool,
    answered: StripedCount,
    remembered: EventCount,
    evicted: EventCount,
}

impl<C> Memory<C> {
    pub(super) fn new(clock: C, capacity: usize) -> Self {
        Self {
            clock,
            latest: AtomicU64::new(0),
            refusing_until: AtomicU64::new(0),
            bucket_count: capacity.div_ceil(WAYS),
            buckets: OnceLock::new(),
            hasher: KeyHasher::random(),
            remembers_statuses: AtomicBool::new(false),
            answered: StripedCount::default(),
            remembered: EventCount::default(),
            evicted: EventCount::default(),
        }
    }

    pub(super) const fn clock(&self) -> &C {
        &self.clock
    }

    /// Returns whether nothing can be remembered.
    pub(super) const fn is_empty(&self) -> bool {
        self.bucket_count == 0
    }

    pub(super) fn stats(&self) -> RefusalStats {
        RefusalStats { answered: self.answered.get(), remembered: self.remembered.get(), evicted: self.evicted.get() }
    }

    pub(super) fn remember_statuses(&self, remembers: bool) {
        self.remembers_statuses.store(remembers, Ordering::Relaxed);
    }

    pub(super) fn remembers_statuses(&self) -> bool {
        self.remembers_statuses.load(Ordering::Relaxed)
    }

    pub(super) fn views(&self, charges: &[Charge<'_>]) -> Views {
        views(charges, &self.hasher)
    }

    fn buckets(&self) -> &[ShortMutex<RefusalBucket>] {
        self.buckets.get_or_init(|| (0..self.bucket_count).map(|_| ShortMutex::default()).collect())
    }

    /// Returns the bucket of a tag; `None` if there is none at all.
    fn bucket(&self, tag: Tag) -> Option<impl DerefMut<Target = RefusalBucket>> {
        let position = (u128::from(tag[0]) * self.bucket_count as u128) >> u64::BITS;
        Some(self.buckets().get(usize::try_from(position).ok()?)?.lock())
    }

    pub(super) fn entry(&self, view: &ChargeView) -> Option<KnownLimit> {
        self.bucket(view.tag)?.entry(view.tag).copied()
    }

    fn entries(&self, views: &[ChargeView]) -> KnownLimits {
        let mut entries = KnownLimits::new();
        views.iter().for_each(|view| entries.push(self.entry(view)));
        entries
    }
}

impl<C: Clock> Memory<C> {
    /// Returns the present instant, in microseconds. It never runs backwards.
    ///
    /// While a clock that was set back catches up, every refusal has run out and the store is asked.
    pub(super) fn now(&self) -> u64 {
        let (now, latest) = (self.clock.now().as_micros(), self.latest.load(Ordering::Relaxed));
        // Written only when it has changed: threads would wait for each other.
        if now <= latest { latest } else { self.latest.fetch_max(now, Ordering::Relaxed).max(now) }
    }

    /// Returns whether any refusal may hold at this instant.
    pub(super) fn may_refuse(&self, now: u64) -> bool {
        now < self.refusing_until.load(Ordering::Relaxed)
    }

    /// Returns the refusal of a request that is known; `None` if the store has to be asked.
    pub(super) fn known_refusal(&self, views: &[ChargeView], now: u64, max_age: u64) -> Option<Decision> {
        let mut decision = Decision::default();
        known_refusal(views, &self.entries(views), now, max_age, &mut decision).then_some(decision)
    }

    /// Refuses a known request, and notes it where the store counts refusals.
    ///
    /// Writes the decision. Returns `false`, and does nothing, if the store has to be asked.
    pub(super) fn refuse(&self, views: &[ChargeView], now: u64, max_age: u64, decision: &mut Decision) -> bool {
        let entries = self.entries(views);
        let mut counting = views.iter().zip(&entries).filter(|(view, _)| view.counts_refusals);
        let is_countable = |entry: &KnownLimit, view: &ChargeView| {
            entry.fingerprint == view.fingerprint && now.saturating_sub(entry.called) < COUNTING_CALL_EVERY
        };
        if !counting.all(|(view, entry)| entry.as_ref().is_some_and(|entry| is_countable(entry, view)))
            || !known_refusal(views, &entries, now, max_age, decision)
        {
            return false;
        }
        for view in views.iter().filter(|view| view.counts_refusals) {
            if let Some(mut bucket) = self.bucket(view.tag)
                && let Some(entry) = bucket.entry_mut(view.tag)
            {
                entry.uncounted.add(view);
            }
        }
        self.answered.add_one();
        true
    }

    /// Returns the clock's own instant before a call is sent, which may be earlier than [`now`](Self::now).
    pub(super) fn sending(&self) -> u64 {
        self.clock.now().as_micros()
    }

    pub(super) fn begin(&self, view: &ChargeView, changes: bool, now: u64) -> (u32, Uncounted) {
        self.bucket(view.tag).map_or_else(Default::default, |mut bucket| bucket.begin(view, changes, now))
    }

    /// Notes the end of a call, without an answer to record.
    pub(super) fn end(&self, view: &ChargeView, changes: bool, generation: u32) {
        if let Some(mut bucket) = self.bucket(view.tag) {
            bucket.end(view, changes, generation);
        }
    }

    /// Notes the end of a call, and records what it says about one limit.
    ///
    /// `is_refused` says whether the request was refused: then all its limits are remembered, so that the next answer
    /// can report them.
    pub(super) fn end_with(
        &self,
        view: &ChargeView,
        generation: u32,
        status: &LimitStatus,
        at: Timestamp,
        sent: u64,
        is_refused: bool,
    ) {
        let now = self.now();
        let keeps_status = is_refused || self.remembers_statuses();
        let Some(mut bucket) = self.bucket(view.tag) else { return };
        if bucket.end(view, false, generation) {
            let fresh = KnownLimit::new(view, status, at, sent);
            let recorded = bucket.record(fresh, view, now, keeps_status);
            drop(bucket);
            self.refusing_until.fetch_max(fresh.until, Ordering::Relaxed);
            self.remembered.add(u64::from(recorded.is_refusal));
            self.evicted.add(u64::from(recorded.evicts_refusal));
        }
    }
}
