//! Calls in the background: for the leases of a key, and the refunds of what they leave.

use core::time::Duration;
use std::sync::Arc;

use smallvec::SmallVec;
use tokio::runtime::Handle;
use tower_quota_core::{Charge, Clock, Decision, Key, Name, Operation, Store, Timestamp};

use crate::plan::Plan;
use crate::shared::{Shared, UnderWay};

/// The longest that a refund may take.
const REFUND_DEADLINE: Duration = Duration::from_secs(1);

/// A lease that is due.
#[derive(Debug)]
pub(crate) struct Want {
    pub(crate) limit: Name,
    pub(crate) plan: Plan,
    pub(crate) units: u64,
}

/// The leases of one key that are due: they are asked for in one call.
#[derive(Debug)]
pub(crate) struct Renewal {
    pub(crate) digest: u128,
    pub(crate) key: Key<'static>,
    pub(crate) wants: SmallVec<[Want; 2]>,
}

/// A lease until its end.
struct Running {
    limit: Name,
    plan: Plan,
    charged_at: Timestamp,
    ends_at: u64,
}

impl Renewal {
    /// Asks for the leases in a task of its own. Outside of a runtime, no lease is taken.
    pub(crate) fn spawn<S: Store, C: Clock>(self, shared: &Arc<Shared<S, C>>) {
        match Handle::try_current() {
            Ok(runtime) if !shared.is_closed() => {
                let under_way = UnderWay::new(shared);
                drop(runtime.spawn(self.run(under_way)));
            }
            _ => self.end(shared, false),
        }
    }

    async fn run<S: Store, C: Clock>(self, under_way: UnderWay<S, C>) {
        let shared = Arc::clone(&under_way.0);
        let sent = shared.now();
        let answer = {
            let charges: SmallVec<[Charge<'_>; 2]> = self
                .wants
                .iter()
                .map(|want| Charge::new(want.limit, &want.plan.stored, &self.key).cost(want.units).refundable())
                .collect();
            shared.store.check(&charges)
        };
        let term = self.wants.iter().map(|want| want.plan.term).max().unwrap_or_default();
        // An answer after the end of the lease is of no use. The unit of time is the same in both clocks.
        let answer = tokio::time::timeout(Duration::from_micros(term), answer).await;
        let Ok(Ok(decision)) = answer else {
            self.end(&shared, false);
            let units: u64 = self.wants.iter().map(|want| want.units).sum();
            shared.leases.shard(self.digest).counts.units_lost += units;
            return;
        };
        for lease in self.record(&shared, &decision, sent) {
            lease.until_over(&shared, self.digest, &self.key).await;
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
        let shard = &mut *shared.leases.shard(self.digest);
        shard.counts.renewals += 1;
        for (want, status) in self.wants.iter().zip(decision.statuses()) {
            let granted = if decision.is_allowed() { want.units } else { 0 };
            shard.counts.units_leased += granted;
            let Some(pool) = shard.pool(self.digest, want.limit, &want.plan.asked) else {
                // The limit was reset meanwhile. A refund could give back what others were charged since.
                shard.counts.units_lost += granted;
                continue;
            };
            pool.end_lease(sent, decision.is_allowed());
            pool.observe(status, want.units, sent);
            if granted > 0 {
                let ends_at = pool.grant(granted, decision, status, sent);
                let (limit, plan) = (want.limit, want.plan);
                running.push(Running { limit, plan, charged_at: decision.at(), ends_at });
            }
        }
        running.sort_by_key(|lease: &Running| lease.ends_at);
        running
    }

    fn end<S: Store, C: Clock>(&self, shared: &Shared<S, C>, is_granted: bool) {
        let mut shard = shared.leases.shard(self.digest);
        for want in &self.wants {
            if let Some(pool) = shard.pool(self.digest, want.limit, &want.plan.asked) {
                pool.end_lease(shared.now(), is_granted);
            }
        }
    }
}

impl Running {
    /// Waits for the end of the lease and refunds what is left of it.
    async fn until_over<S: Store, C: Clock>(self, shared: &Shared<S, C>, digest: u128, key: &Key<'static>) {
        let rest = Duration::from_micros(self.ends_at.saturating_sub(shared.now()));
        // The result says whether the lease is over or the store was closed. Both end it.
        let _ = tokio::time::timeout(rest, shared.until_closed()).await;
        let left = {
            let mut shard = shared.leases.shard(digest);
            let pool = shard.pool(digest, self.limit, &self.plan.asked);
            pool.map_or(0, |pool| pool.grants.remove(self.charged_at, self.ends_at))
        };
        if left == 0 {
            return;
        }
        let answer = {
            let charge = Charge::new(self.limit, &self.plan.stored, key).cost(left).refundable();
            shared.store.apply(Operation::Refund { taken_at: self.charged_at }, &[charge])
        };
        let is_returned = matches!(tokio::time::timeout(REFUND_DEADLINE, answer).await, Ok(Ok(_)));
        let counts = &mut shared.leases.shard(digest).counts;
        *(if is_returned { &mut counts.units_returned } else { &mut counts.units_lost }) += left;
    }
}
