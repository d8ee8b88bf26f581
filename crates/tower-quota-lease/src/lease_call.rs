use core::time::Duration;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::{broadcast, watch};
use tower_quota_core::{Charge, Decision, Key, Operation, Store};

use crate::answer::AnswerTimes;
use crate::grants::Grant;
use crate::pool::{CALL_DEADLINE, Want};
use crate::shared::LeaseState;

const REFUND_DEADLINE: Duration = Duration::from_secs(1);

pub(crate) struct DueLeases {
    digest: u128,
    key: Key<'static>,
    pub(crate) wants: Vec<Want>,
}

impl DueLeases {
    pub(crate) fn add(all: &mut Vec<Self>, digest: u128, key: &Key<'_>, want: Option<Want>) {
        let Some(want) = want else { return };
        match all.iter_mut().find(|due| due.digest == digest) {
            Some(due) => due.wants.push(want),
            None => all.push(Self {
                digest,
                key: key.to_static(),
                wants: vec![want],
            }),
        }
    }
}

pub(crate) struct LeaseCall<S: Store> {
    shared: Arc<LeaseState<S>>,
    due: DueLeases,
    /// Whether the store may have charged the leases.
    was_sent: bool,
    granted: Vec<Lease>,
    /// A sender that is dropped when the answer is recorded, to wake the requests that wait.
    answered: Option<broadcast::Sender<()>>,
}

struct Lease {
    want: Want,
    grant: Grant,
    unspent: u64,
}

impl<S: Store> LeaseCall<S> {
    pub(crate) fn spawn(shared: &Arc<LeaseState<S>>, due: DueLeases) {
        let (answered, end) = broadcast::channel(1);
        let call = Self {
            shared: Arc::clone(shared),
            due,
            was_sent: false,
            granted: Vec::new(),
            answered: Some(answered),
        };
        // Subscribe before reading the state. Then either the call sees the closing store, or
        // `close` waits for the call.
        let closing = shared.closing.subscribe();
        let is_closing = *closing.borrow();
        let Some(runtime) = Handle::try_current().ok().filter(|_| !is_closing) else {
            return;
        };
        let DueLeases { digest, wants, .. } = &call.due;
        for want in wants {
            if let Some(pool) = shared.pools.shard(*digest).pool_of(*digest, want.serial) {
                pool.begin_lease_call(want, &runtime, end.resubscribe());
            }
        }
        runtime.spawn(call.run(closing));
    }

    async fn run(mut self, closing: watch::Receiver<bool>) {
        // Count the term from before the call, so that units are always spent within a term of
        // their charge.
        let sent = self.shared.pools.now();
        let DueLeases { key, wants, .. } = &self.due;
        let charges = wants.iter().map(|want| want.charge(key, want.units));
        let charges: Vec<Charge<'_>> = charges.collect();
        let (answer, _) = self.shared.store.send(&charges);
        drop(charges);
        self.was_sent = true;
        // Give up after this time, because requests wait for the lease.
        let deadline = CALL_DEADLINE.max(self.shared.pools.longest);
        let answer = tokio::time::timeout(Duration::from_micros(deadline), answer).await;
        if let Ok(Ok(decision)) = answer {
            self.record(&decision, sent);
            self.answered = None;
            tokio::spawn(self.end_leases(closing));
        }
    }

    async fn end_leases(mut self, mut closing: watch::Receiver<bool>) {
        let shared = Arc::clone(&self.shared);
        while let Some(lease) = self.granted.first_mut() {
            let rest = lease.grant.ends_at.saturating_sub(shared.pools.now());
            let end = closing.wait_for(|closing| *closing);
            let _ = tokio::time::timeout(Duration::from_micros(rest), end).await;
            lease.refund(&shared, &self.due).await;
            self.granted.remove(0);
        }
    }

    fn record(&mut self, decision: &Decision, sent: u64) {
        let pools = &self.shared.pools;
        let times = AnswerTimes {
            sent,
            received: pools.now(),
            at: decision.at(),
        };
        let is_granted = decision.is_allowed();
        let digest = self.due.digest;
        let shard = &mut *pools.shard(digest);
        shard.stats.renewals += 1;
        for (want, status) in self.due.wants.drain(..).zip(decision.statuses()) {
            let units = if is_granted { want.units } else { 0 };
            shard.stats.units_leased += units;
            let Some(pool) = shard.pool_of(digest, want.serial) else {
                // Do not refund, because the limit was reset meanwhile. A refund could give back
                // units that others were charged since.
                shard.stats.units_lost += units;
                continue;
            };
            pool.end_lease_call(&want, sent, is_granted);
            pool.observe(status, times);
            if is_granted {
                self.granted.push(Lease {
                    grant: pool.grant(units, status, times),
                    want,
                    unspent: 0,
                });
            }
        }
        self.granted.sort_by_key(|lease| lease.grant.ends_at);
    }
}

impl<S: Store> Drop for LeaseCall<S> {
    fn drop(&mut self) {
        let now = self.shared.pools.now();
        let DueLeases { digest, wants, .. } = &self.due;
        let shard = &mut *self.shared.pools.shard(*digest);
        shard.stats.renewals += u64::from(self.was_sent && !wants.is_empty());
        for want in wants {
            if let Some(pool) = shard.pool_of(*digest, want.serial) {
                pool.end_lease_call(want, now, false);
                if self.was_sent {
                    // The store may have charged the units, so the last answer is no longer right.
                    pool.forget_answer();
                }
            }
            if self.was_sent {
                shard.stats.units_lost += want.units;
            }
        }
        // The runtime has ended before these leases.
        for lease in &self.granted {
            if let Some(pool) = shard.pool_of(*digest, lease.want.serial) {
                let held = pool.lose_lease(now, &lease.grant);
                shard.stats.units_lost += held;
            }
            shard.stats.units_lost += lease.unspent;
        }
    }
}

impl Lease {
    async fn refund<S: Store>(&mut self, shared: &LeaseState<S>, due: &DueLeases) {
        let pools = &shared.pools;
        if let Some(pool) = pools
            .shard(due.digest)
            .pool_of(due.digest, self.want.serial)
        {
            self.unspent = pool.grants.remove(&self.grant);
        }
        if self.unspent == 0 {
            return;
        }
        let refund = Operation::Refund {
            taken_at: self.grant.charged_at,
        };
        let charges = [self.want.charge(&due.key, self.unspent)];
        let answer = shared.store.apply(refund, &charges);
        let answer = tokio::time::timeout(REFUND_DEADLINE, answer).await;
        let stats = &mut pools.shard(due.digest).stats;
        match answer {
            Ok(Ok(_)) => stats.units_returned += self.unspent,
            _ => stats.units_lost += self.unspent,
        }
    }
}
