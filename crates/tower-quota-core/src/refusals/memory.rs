//! The table of a refusal cache, and its clock.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::OnceLock;

use super::bucket::{LimitAnswer, RefusalBucket};
use super::entry::KnownLimit;
use super::known_limits::WAYS;
use super::shared_call::{Role, SharedCall};
use super::stats::{RefusalStats, Stripes};
use super::uncounted::Uncounted;
use super::view::{ChargeView, Tag, Views, views};
use crate::charge::Charge;
use crate::clock::Clock;
use crate::decision::Decision;
use crate::key_hasher::KeyHasher;

/// The time within which a limit that counts refusals asks the store again, in microseconds: ten calls a second.
const COUNTING_CALL_EVERY: u64 = 100_000;

/// The shortest time between two writes of the instant that all threads read, in microseconds.
const SHARED_EVERY: u64 = 100;

/// A request that may be known to be refused.
#[derive(Clone, Copy)]
pub(super) struct Checked<'r> {
    pub(super) charges: &'r [Charge<'r>],
    /// The views of the charges.
    pub(super) views: &'r [ChargeView],
    pub(super) now: u64,
    /// The age from which a refusal says nothing, in microseconds.
    pub(super) max_age: u64,
}

/// The table of a refusal cache: buckets of entries.
pub(super) struct Memory<C> {
    pub(super) clock: C,
    /// The latest instant that any thread has read, or one shortly before it.
    latest: AtomicU64,
    /// The end of the last refusal, so that a service that refuses no client pays for no look-up.
    refusing_until: AtomicU64,
    bucket_count: usize,
    /// Made for the first request, since many layers never use theirs.
    buckets: OnceLock<Box<[RefusalBucket]>>,
    hasher: KeyHasher,
    pub(super) remembers_statuses: AtomicBool,
    stripes: Stripes,
    remembered: AtomicU64,
    evicted: AtomicU64,
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
            stripes: Stripes::default(),
            remembered: AtomicU64::new(0),
            evicted: AtomicU64::new(0),
        }
    }

    /// Returns whether nothing can be remembered.
    pub(super) const fn is_empty(&self) -> bool {
        self.bucket_count == 0
    }

    pub(super) fn stats(&self) -> RefusalStats {
        RefusalStats {
            answered: self.stripes.answered(),
            remembered: self.remembered.load(Ordering::Relaxed),
            evicted: self.evicted.load(Ordering::Relaxed),
        }
    }

    pub(super) fn remembers_statuses(&self) -> bool {
        self.remembers_statuses.load(Ordering::Relaxed)
    }

    pub(super) fn views(&self, charges: &[Charge<'_>]) -> Views {
        views(charges, &self.hasher)
    }

    fn buckets(&self) -> &[RefusalBucket] {
        self.buckets.get_or_init(|| {
            (0..self.bucket_count)
                .map(|_| RefusalBucket::default())
                .collect()
        })
    }

    /// Returns the bucket of a tag; `None` if there is none at all.
    fn bucket(&self, tag: Tag) -> Option<&RefusalBucket> {
        let position = (u128::from(tag[0]) * self.bucket_count as u128) >> u64::BITS;
        self.buckets().get(usize::try_from(position).ok()?)
    }

    pub(super) fn entry(&self, view: &ChargeView) -> Option<KnownLimit> {
        self.bucket(view.tag)?.entry(view.tag)
    }
}

impl<C: Clock> Memory<C> {
    /// Returns the present instant, in microseconds.
    ///
    /// It never runs backwards in a thread, and between threads by less than [`SHARED_EVERY`]. While a clock that was set
    /// back catches up, it stands still.
    pub(super) fn now(&self) -> u64 {
        let (now, own) = (self.clock.now().as_micros(), &self.stripes.own().latest);
        let (own_latest, latest) = (
            own.load(Ordering::Relaxed),
            self.latest.load(Ordering::Relaxed),
        );
        if now > own_latest {
            own.fetch_max(now, Ordering::Relaxed);
        }
        // Written now and then: threads would wait for each other.
        if now >= latest.saturating_add(SHARED_EVERY) {
            self.latest.fetch_max(now, Ordering::Relaxed);
        }
        now.max(own_latest).max(latest)
    }

    /// Returns whether any refusal may hold at this instant.
    pub(super) fn may_refuse(&self, now: u64) -> bool {
        now < self.refusing_until.load(Ordering::Relaxed)
    }

    /// Returns the refusal of a request that is known; `None` if the store has to be asked.
    pub(super) fn known_refusal(&self, request: Checked<'_>) -> Option<Decision> {
        let mut decision = Decision::default();
        self.refuse_known(request, &mut decision)
            .then_some(decision)
    }

    /// Refuses a known request, and notes it where the store counts refusals.
    ///
    /// Writes the decision. Returns `false`, and does nothing, if the store has to be asked.
    pub(super) fn refuse(&self, request: Checked<'_>, decision: &mut Decision) -> bool {
        let Checked {
            views,
            now,
            max_age,
            ..
        } = request;
        let counting = || {
            views
                .iter()
                .filter(|view| view.counts_refusals || view.gives_strikes)
        };
        let is_countable = |known: KnownLimit, view: &ChargeView| {
            known.fingerprint == view.fingerprint
                && now.saturating_sub(known.called) < COUNTING_CALL_EVERY
        };
        let are_countable = counting().all(|view| {
            self.entry(view)
                .is_some_and(|known| is_countable(known, view))
        });
        if !are_countable || !self.refuse_known(request, decision) {
            return false;
        }
        for view in counting() {
            if let Some(bucket) = self.bucket(view.tag) {
                bucket.add_uncounted(view, now, max_age);
            }
        }
        self.stripes.own().answered.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Returns the call that answers a request: its own, or one under way that may take what its limit has left.
    pub(super) fn role(&self, request: Checked<'_>) -> Role {
        let known = request
            .charges
            .iter()
            .zip(request.views)
            .filter_map(|(charge, view)| {
                let fitting = self.entry(view)?.fitting(charge, view, request.now)?;
                Some((self.bucket(view.tag)?, view, fitting))
            });
        let scarcest = known.min_by_key(|(.., fitting)| *fitting);
        scarcest.map_or(Role::Alone, |(bucket, view, fitting)| {
            bucket.role(view, fitting, request.now)
        })
    }

    /// Lets other requests of a limit wait for a call under way.
    pub(super) fn share(&self, tag: Tag, call: &SharedCall) {
        if let Some(bucket) = self.bucket(tag) {
            bucket.share(tag, call.downgrade(), self.now());
        }
    }

    fn refuse_known(&self, request: Checked<'_>, decision: &mut Decision) -> bool {
        let Checked {
            charges,
            views,
            now,
            max_age,
        } = request;
        let known = || {
            let known = charges
                .iter()
                .zip(views)
                .filter_map(|(charge, view)| Some((charge, view, self.entry(view)?)));
            known.filter(|(_, view, known)| view.fingerprint == known.fingerprint)
        };
        let refuses = |(charge, view, known): &(&Charge<'_>, &ChargeView, KnownLimit)| {
            !charge.is_shadow() && known.refuses(view, now, max_age)
        };
        let Some((.., refusing)) = known().find(refuses) else {
            return false;
        };
        // A cost that never fits has no time to retry, whatever else refuses.
        let never_fits = |(charge, view): (&Charge<'_>, &ChargeView)| {
            !charge.is_shadow() && view.least_units > charge.quota().capacity()
        };
        let may_never_fit = |(charge, view, known): (&Charge<'_>, &ChargeView, KnownLimit)| {
            !charge.is_shadow() && known.may_never_fit(charge, view)
        };
        if charges.iter().zip(views).any(never_fits) || known().any(may_never_fit) {
            return false;
        }
        let statuses =
            known().map(|(charge, view, known)| known.status(charge, view, now, max_age));
        *decision = Decision::from_statuses(
            crate::charge::Operation::Refuse,
            refusing.store_now(now),
            statuses,
        );
        if decision.is_allowed() {
            // What was known has changed in between.
            *decision = Decision::default();
            return false;
        }
        true
    }

    pub(super) fn begin(&self, view: &ChargeView, changes: bool, now: u64) -> (u32, Uncounted) {
        self.bucket(view.tag)
            .map_or_else(Default::default, |bucket| bucket.begin(view, changes, now))
    }

    /// Notes the end of a call, and records what it says about a limit, if that is given.
    pub(super) fn end(
        &self,
        view: &ChargeView,
        changes: bool,
        generation: u32,
        answer: Option<LimitAnswer>,
    ) {
        let Some(bucket) = self.bucket(view.tag) else {
            return;
        };
        let recorded = bucket.end(view, changes, generation, answer, self.now());
        if let Some(said) = answer.filter(|_| recorded.is_refusal) {
            self.refusing_until
                .fetch_max(said.limit.until, Ordering::Relaxed);
            self.remembered.fetch_add(1, Ordering::Relaxed);
        }
        self.evicted
            .fetch_add(u64::from(recorded.evicts_refusal), Ordering::Relaxed);
    }
}
