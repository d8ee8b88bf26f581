//! Calls in the background: for the leases of a key, and the refunds of what they leave.

use core::time::Duration;
use std::sync::Arc;

use smallvec::SmallVec;
use tokio::runtime::Handle;
use tower_quota_core::{Charge, Clock, Decision, Key, Operation, Store, Timestamp};

use crate::refusal::AnswerTimes;
use crate::shared::{Shared, UnderWay};
use crate::want::{Want, call_deadline};

/// The longest that a refund may take.
const CALL_DEADLINE: Duration = Duration::from_secs(1);

/// The leases of one key that are due: they are asked for in one call.
#[derive(Debug)]
pub(crate) struct Renewal {
    pub(crate) digest: u128,
    pub(crate) key: Key<'static>,
    pub(crate) wants: SmallVec<[Want; 2]>,
}

/// A call for leases, and these until they end.
struct Asking<S: Store, C: Clock> {
    renewal: Renewal,
    under_way: UnderWay<S, C>,
    call: Call,
    /// Those that were granted, the one that ends first in front.
    running: SmallVec<[Running; 2]>,
}

/// The state of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Call {
    Unsent,
    /// Waits for its answer. If it ends without one, its units may have been charged.
    Sent,
    Answered,
}

/// A lease until its end.
struct Running {
    want: Want,
    charged_at: Timestamp,
    ends_at: u64,
    /// The units that are being refunded.
    left: u64,
}

impl Renewal {
    /// Asks for the leases in a task of its own.
    pub(crate) fn spawn<S: Store, C: Clock>(self, shared: &Arc<Shared<S, C>>) {
        // Counted before the look: either this sees that the store is closed, or `close` sees this.
        let under_way = UnderWay::new(shared);
        let asking = Asking {
            renewal: self,
            under_way,
            call: Call::Unsent,
            running: SmallVec::new(),
        };
        if let Ok(runtime) = Handle::try_current()
            && !shared.is_closed()
        {
            runtime.spawn(asking.run());
        }
    }

    /// Records the answer of the store. Returns the leases that were granted.
    fn record<S: Store, C: Clock>(
        &self,
        shared: &Shared<S, C>,
        decision: &Decision,
        sent: u64,
    ) -> SmallVec<[Running; 2]> {
        let mut running = SmallVec::new();
        let times = AnswerTimes {
            sent,
            received: shared.now(),
            at: decision.at(),
        };
        let shard = &mut *shared.leases.shard(self.digest);
        shard.counts.renewals += 1;
        // All of them, if a wrapper answers for the store and knows some of the limits only.
        let statuses = self
            .wants
            .iter()
            .map(|want| decision.status(want.limit.as_str()));
        for (want, status) in self.wants.iter().zip(statuses) {
            let granted = if decision.is_allowed() { want.units } else { 0 };
            shard.counts.units_leased += granted;
            let Some(pool) = shard.pool_of(self.digest, want.serial) else {
                // The limit was reset meanwhile. A refund could give back what others were charged since.
                shard.counts.units_lost += granted;
                continue;
            };
            pool.end_lease(sent, decision.is_allowed());
            let Some(status) = status else {
                shard.counts.units_lost += granted;
                continue;
            };
            let missed = pool.observe(status, want.units, times);
            if granted > 0 {
                let ends_at = pool.grant(granted, decision, status, sent);
                running.push(Running {
                    want: want.clone(),
                    charged_at: decision.at(),
                    ends_at,
                    left: 0,
                });
            }
            shard.counts.units_under_admitted += missed;
        }
        running.sort_by_key(|lease: &Running| lease.ends_at);
        running
    }

    /// Ends the call without a lease.
    fn end<S: Store, C: Clock>(&self, shared: &Shared<S, C>, has_failed: bool) {
        let (now, shard) = (shared.now(), &mut *shared.leases.shard(self.digest));
        for want in &self.wants {
            if let Some(pool) = shard.pool_of(self.digest, want.serial) {
                pool.end_lease(now, false);
                if has_failed {
                    pool.forget_answer();
                }
            }
        }
        if has_failed {
            shard.counts.renewals += 1;
            shard.counts.units_lost += self.wants.iter().map(|want| want.units).sum::<u64>();
        }
    }
}

impl<S: Store, C: Clock> Asking<S, C> {
    async fn run(mut self) {
        self.call = Call::Sent;
        let shared = Arc::clone(&self.under_way.0);
        let sent = shared.now();
        let Renewal { digest, key, wants } = &self.renewal;
        let answer = {
            // A plain charge would be refunded in part: the store would not know what was refilled since.
            let charges: SmallVec<[Charge<'_>; 2]> = wants
                .iter()
                .map(|want| {
                    Charge::new(want.limit, &want.plan.stored, key)
                        .cost(want.units)
                        .refundable()
                })
                .collect();
            shared.store.check(&charges)
        };
        let term = wants
            .iter()
            .map(|want| want.plan.term)
            .max()
            .unwrap_or_default();
        // The unit of time is the same in both clocks.
        let Ok(Ok(decision)) =
            tokio::time::timeout(Duration::from_micros(call_deadline(term)), answer).await
        else {
            return;
        };
        self.running = self.renewal.record(&shared, &decision, sent);
        self.call = Call::Answered;
        while let Some(lease) = self.running.first_mut() {
            lease.until_over(&shared, *digest, key).await;
            self.running.remove(0);
        }
    }
}

impl<S: Store, C: Clock> Drop for Asking<S, C> {
    fn drop(&mut self) {
        let shared = &self.under_way.0;
        match self.call {
            Call::Unsent => self.renewal.end(shared, false),
            Call::Sent => self.renewal.end(shared, true),
            // There are some only if the runtime ends before they do.
            Call::Answered => self
                .running
                .iter()
                .for_each(|lease| lease.lose(shared, self.renewal.digest)),
        }
    }
}

impl Running {
    /// Waits for the end of the lease and refunds what is left of it.
    async fn until_over<S: Store, C: Clock>(
        &mut self,
        shared: &Shared<S, C>,
        digest: u128,
        key: &Key<'static>,
    ) {
        let rest = Duration::from_micros(self.ends_at.saturating_sub(shared.now()));
        // The result says whether the lease is over or the store was closed. Both end it.
        let _ = tokio::time::timeout(rest, shared.until_closed()).await;
        self.left = {
            let mut shard = shared.leases.shard(digest);
            let pool = shard.pool_of(digest, self.want.serial);
            pool.map_or(0, |pool| pool.grants.remove(self.charged_at, self.ends_at))
        };
        if self.left == 0 {
            return;
        }
        let answer = {
            let charge = Charge::new(self.want.limit, &self.want.plan.stored, key)
                .cost(self.left)
                .refundable();
            shared.store.apply(
                Operation::Refund {
                    taken_at: self.charged_at,
                },
                &[charge],
            )
        };
        let answer = tokio::time::timeout(CALL_DEADLINE, answer).await;
        let (left, shard) = (self.left, &mut *shared.leases.shard(digest));
        let Ok(Ok(decision)) = answer else {
            shard.counts.units_lost += left;
            return;
        };
        shard.counts.units_returned += left;
        let status = decision.status(self.want.limit.as_str());
        let others_left = status.map_or(0, |status| status.remaining().saturating_sub(left));
        if shard
            .pool_of(digest, self.want.serial)
            .is_some_and(|pool| pool.was_short(others_left))
        {
            shard.counts.units_under_admitted += left;
        }
    }

    /// Gives up what is left of the lease: nothing refunds it any more.
    fn lose<S: Store, C: Clock>(&self, shared: &Shared<S, C>, digest: u128) {
        let (now, shard) = (shared.now(), &mut *shared.leases.shard(digest));
        let held = shard.pool_of(digest, self.want.serial);
        let held = held.map_or(0, |pool| {
            pool.lose_lease(now, self.charged_at, self.ends_at)
        });
        shard.counts.units_lost += held + self.left;
    }
}
