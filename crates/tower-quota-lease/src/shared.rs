//! The state that a leased store and its clones share.

use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;

use tokio::sync::Notify;
use tower_quota_core::{Clock, Store};

use crate::leases::Leases;
use crate::options::LeaseOptions;
use crate::plan::Plans;
use crate::stats::LeaseStats;

/// The state that a leased store and its clones share.
#[derive(Debug)]
pub(crate) struct Shared<S, C> {
    pub(crate) store: S,
    pub(crate) plans: Plans,
    pub(crate) leases: Leases,
    clock: C,
    /// The latest time that was read. A clock may run back by some milliseconds.
    latest: AtomicU64,
    is_closed: AtomicBool,
    closed: Notify,
    leases_under_way: AtomicUsize,
    idle: Notify,
}

impl<S: Store, C: Clock> Shared<S, C> {
    pub(crate) fn new(store: S, clock: C, options: LeaseOptions) -> Self {
        Self {
            store,
            plans: Plans::new(options.longest),
            leases: Leases::new(options.keys),
            clock,
            latest: AtomicU64::new(0),
            is_closed: AtomicBool::new(false),
            closed: Notify::new(),
            leases_under_way: AtomicUsize::new(0),
            idle: Notify::new(),
        }
    }

    /// Returns the current time of this instance, in microseconds. It runs back by less than a millisecond.
    pub(crate) fn now(&self) -> u64 {
        let (now, latest) = (
            self.clock.now().as_micros(),
            self.latest.load(Ordering::Relaxed),
        );
        // Written a thousand times a second at most: threads would wait for each other.
        if now > latest + 1_000 {
            self.latest.fetch_max(now, Ordering::Relaxed);
        }
        now.max(latest)
    }

    pub(crate) fn stats(&self) -> LeaseStats {
        let (mut stats, now) = (LeaseStats::default(), self.now());
        stats.refused_here = self.leases.refused();
        for mut shard in self.leases.shards() {
            shard.end_missed(now);
            stats.add(&shard.counts);
            stats.keys += shard.len();
            stats.units_held += shard
                .pools()
                .map(|pool| pool.grants.units(now))
                .sum::<u64>();
        }
        stats.units_under_admitted += stats.units_lost;
        stats
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// Takes no further leases.
    pub(crate) fn take_no_more(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
    }

    /// Ends all leases, and waits until what is left of them has been refunded.
    pub(crate) async fn close(&self) {
        self.closed.notify_waiters();
        loop {
            let idle = self.idle.notified();
            if self.leases_under_way.load(Ordering::SeqCst) == 0 {
                return;
            }
            idle.await;
        }
    }

    /// Waits until the store is closed.
    pub(crate) async fn until_closed(&self) {
        let closed = self.closed.notified();
        if !self.is_closed() {
            closed.await;
        }
    }
}

/// Counts leases that `close` waits for, until it is dropped.
#[derive(Debug)]
pub(crate) struct UnderWay<S: Store, C: Clock>(pub(crate) Arc<Shared<S, C>>);

impl<S: Store, C: Clock> UnderWay<S, C> {
    pub(crate) fn new(shared: &Arc<Shared<S, C>>) -> Self {
        shared.leases_under_way.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(shared))
    }
}

impl<S: Store, C: Clock> Drop for UnderWay<S, C> {
    fn drop(&mut self) {
        if self.0.leases_under_way.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.idle.notify_waiters();
        }
    }
}
