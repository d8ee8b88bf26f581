//! Tasks that call the store for leases, and refund the unspent units when the leases end.

use core::time::Duration;
use std::sync::Arc;

use smallvec::SmallVec;
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tower_quota_core::{Charge, Clock, Decision, Key, Operation, Store, Timestamp};

use crate::answer::AnswerTimes;
use crate::pool::Want;
use crate::shared::Shared;

/// The longest refund.
const REFUND_DEADLINE: Duration = Duration::from_secs(1);

/// The due leases of one key. A single call carries all of them.
pub(crate) struct LeaseCall {
    pub(crate) digest: u128,
    pub(crate) key: Key<'static>,
    pub(crate) wants: SmallVec<[Want; 2]>,
}

/// The task of a call and its leases.
struct Task<S: Store, C: Clock> {
    call: LeaseCall,
    shared: Arc<Shared<S, C>>,
    state: State,
    /// The granted leases, in the order of their ends.
    leases: SmallVec<[Lease; 2]>,
    closing: watch::Receiver<bool>,
    /// Dropped when the answer is recorded.
    answered: Option<oneshot::Sender<()>>,
}

/// The state of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Unsent,
    /// The store may have charged the units.
    Sent,
    Answered,
}

/// A granted lease.
struct Lease {
    want: Want,
    charged_at: Timestamp,
    ends_at: u64,
    /// The units of a refund in flight.
    unspent: u64,
}

impl LeaseCall {
    /// Calls the store in a task. The receiver ends when the answer is recorded.
    pub(crate) fn spawn<S: Store, C: Clock>(
        self,
        shared: &Arc<Shared<S, C>>,
    ) -> oneshot::Receiver<()> {
        let (answered, receiver) = oneshot::channel();
        let task = Task {
            call: self,
            shared: Arc::clone(shared),
            state: State::Unsent,
            leases: SmallVec::new(),
            // Subscribed before the look: either the task sees that the store closes, or `close` waits for the task.
            closing: shared.closing.subscribe(),
            answered: Some(answered),
        };
        let is_closing = *task.closing.borrow();
        if let Ok(runtime) = Handle::try_current()
            && !is_closing
        {
            runtime.spawn(task.run());
        }
        receiver
    }

    fn charges(&self) -> SmallVec<[Charge<'_>; 2]> {
        let charge = |want| charge(want, &self.key, want.units);
        self.wants.iter().map(charge).collect()
    }

    /// Records an answer of the store. Returns the granted leases.
    fn record<S: Store, C: Clock>(
        &self,
        shared: &Shared<S, C>,
        decision: &Decision,
        sent: u64,
    ) -> SmallVec<[Lease; 2]> {
        let times = AnswerTimes {
            sent,
            received: shared.now(),
            at: decision.at(),
        };
        let is_granted = decision.is_allowed();
        let shard = &mut *shared.pools.shard(self.digest);
        let mut leases = SmallVec::new();
        shard.stats.renewals += 1;
        for want in &self.wants {
            let granted = if is_granted { want.units } else { 0 };
            shard.stats.units_leased += granted;
            // Without a pool, the limit was reset meanwhile. A refund could give back what others were charged since.
            let pool = shard.pool_of(self.digest, want.serial);
            let status = decision.status(want.limit.as_str());
            let (Some(pool), Some(status)) = (pool, status) else {
                shard.stats.units_lost += granted;
                continue;
            };
            pool.end_lease_call(want, sent, is_granted);
            pool.observe(status, times);
            if is_granted {
                leases.push(Lease {
                    want: *want,
                    charged_at: decision.at(),
                    ends_at: pool.grant(want, status, times),
                    unspent: 0,
                });
            }
        }
        leases.sort_by_key(|lease: &Lease| lease.ends_at);
        leases
    }

    /// Ends a call that got no answer.
    fn fail<S: Store, C: Clock>(&self, shared: &Shared<S, C>, was_sent: bool) {
        let now = shared.now();
        let shard = &mut *shared.pools.shard(self.digest);
        shard.stats.renewals += u64::from(was_sent);
        for want in &self.wants {
            if was_sent {
                shard.stats.units_lost += want.units;
            }
            if let Some(pool) = shard.pool_of(self.digest, want.serial) {
                pool.end_lease_call(want, now, false);
                if was_sent {
                    pool.forget_answer();
                }
            }
        }
    }
}

impl<S: Store, C: Clock> Task<S, C> {
    async fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        let sent = shared.now();
        let (answer, _) = shared.store.send(&self.call.charges());
        self.state = State::Sent;
        let deadline = self.call.wants.iter().map(Want::call_deadline).max();
        let deadline = Duration::from_micros(deadline.unwrap_or_default());
        let Ok(Ok(decision)) = tokio::time::timeout(deadline, answer).await else {
            return;
        };
        self.leases = self.call.record(&shared, &decision, sent);
        self.state = State::Answered;
        self.answered = None;
        while let Some(lease) = self.leases.first_mut() {
            let rest = Duration::from_micros(lease.ends_at.saturating_sub(shared.now()));
            // A lease ends at its time, or when the store closes.
            let _ = tokio::time::timeout(rest, self.closing.wait_for(|closing| *closing)).await;
            lease.refund(&shared, &self.call).await;
            self.leases.remove(0);
        }
    }
}

impl<S: Store, C: Clock> Drop for Task<S, C> {
    fn drop(&mut self) {
        match self.state {
            State::Unsent => self.call.fail(&self.shared, false),
            State::Sent => self.call.fail(&self.shared, true),
            State::Answered => {
                // The runtime has ended before these leases.
                for lease in &self.leases {
                    lease.lose(&self.shared, &self.call);
                }
            }
        }
    }
}

impl Lease {
    /// Ends the lease, and refunds the unspent units.
    async fn refund<S: Store, C: Clock>(&mut self, shared: &Shared<S, C>, call: &LeaseCall) {
        if let Some(pool) = shared
            .pools
            .shard(call.digest)
            .pool_of(call.digest, self.want.serial)
        {
            self.unspent = pool.grants.remove(self.charged_at, self.ends_at);
        }
        if self.unspent == 0 {
            return;
        }
        let refund = Operation::Refund {
            taken_at: self.charged_at,
        };
        let charges = [charge(&self.want, &call.key, self.unspent)];
        let answer = shared.store.apply(refund, &charges);
        let answer = tokio::time::timeout(REFUND_DEADLINE, answer).await;
        let stats = &mut shared.pools.shard(call.digest).stats;
        match answer {
            Ok(Ok(_)) => stats.units_returned += self.unspent,
            _ => stats.units_lost += self.unspent,
        }
    }

    fn lose<S: Store, C: Clock>(&self, shared: &Shared<S, C>, call: &LeaseCall) {
        let now = shared.now();
        let shard = &mut *shared.pools.shard(call.digest);
        let pool = shard.pool_of(call.digest, self.want.serial);
        let held = pool.map_or(0, |pool| {
            pool.lose_lease(now, self.charged_at, self.ends_at)
        });
        shard.stats.units_lost += held + self.unspent;
    }
}

/// Returns the charge of a lease. The store must know what it has refilled since, to refund a part of the charge exactly.
fn charge<'c>(want: &'c Want, key: &'c Key<'c>, units: u64) -> Charge<'c> {
    Charge::new(want.limit, &want.plan.stored, key)
        .cost(units)
        .refundable()
}
