//! What a request has taken, kept so that it can be put right when the request itself is gone.

use std::sync::Arc;

use smallvec::SmallVec;
use tokio::runtime::Handle;
use tower_quota_core::{Charge, Decision, Key, Name, Operation, Quota, Timestamp};

use super::{Rule, Settle};

/// Puts charges right wherever they were counted, without anybody to wait for it.
pub(crate) trait Till: Send + Sync {
    /// Does an operation on charges. What fails is told to whoever listens for errors of the store. A store that takes
    /// time is waited for on the runtime that surrounds the call, else on this one.
    fn apply(&self, counted: Counted, operation: Operation, charges: &[Charge<'_>], runtime: Option<&Handle>);
}

/// Where charges were counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    /// In the store.
    Shared,
    /// In this process, in place of a sick store.
    Locally,
}

/// Charges whose keys no longer borrow from the request.
pub(crate) type Ledger = Vec<Kept>;

/// A charge that is kept, to be put right.
pub(crate) struct Kept {
    name: Name,
    quota: Quota,
    key: Key<'static>,
    taken: u64,
    /// Says whether the charge prepared for a refund.
    is_refundable: bool,
    terms: Option<Terms>,
}

/// How a limit settles.
#[derive(Clone)]
pub(crate) struct Terms {
    pub(crate) rule: Arc<dyn Rule>,
    /// What becomes of the estimate when there is no response.
    pub(crate) abandoned: Settle,
}

/// The charges that a request was admitted with.
pub(crate) struct Account {
    till: Arc<dyn Till>,
    runtime: Option<Handle>,
    counted: Counted,
    at: Timestamp,
    ledger: Ledger,
}

impl Kept {
    pub(crate) fn of(charge: &Charge<'_>, terms: Option<Terms>) -> Self {
        let key = Key::owned(charge.key().scope(), charge.key().as_bytes());
        Self {
            name: charge.name(),
            quota: *charge.quota(),
            key,
            taken: 0,
            is_refundable: charge.is_refundable(),
            terms,
        }
    }

    /// The limit's name.
    pub(crate) const fn name(&self) -> Name {
        self.name
    }

    /// What was taken of the estimate.
    pub(crate) const fn taken(&self) -> u64 {
        self.taken
    }

    /// How it is settled; `None` for what was only kept to give a turn back.
    pub(crate) const fn terms(&self) -> Option<&Terms> {
        self.terms.as_ref()
    }

    fn charge(&self, units: u64) -> Charge<'_> {
        let charge = Charge::new(self.name, &self.quota, &self.key).cost(units);
        if self.is_refundable { charge.refundable() } else { charge }
    }
}

impl Account {
    /// The account of a request that was admitted by this decision, which says how much each limit took: less than its
    /// cost where that was the most it would take. A shadow that would have refused has no part in it.
    pub(crate) fn new(till: Arc<dyn Till>, counted: Counted, decision: &Decision, mut ledger: Ledger) -> Self {
        ledger.retain_mut(|kept| {
            let standing = decision.statuses().iter().find(|standing| standing.name == kept.name);
            kept.taken = standing.map_or(0, |standing| standing.taken);
            standing.is_some_and(|standing| !standing.outcome.is_refusal())
        });
        Self { till, runtime: Handle::try_current().ok(), counted, at: decision.at(), ledger }
    }

    /// Only the charges that are settled; `None` when none is.
    pub(crate) fn settling(mut self) -> Option<Self> {
        self.ledger.retain(|kept| kept.terms.is_some());
        (!self.ledger.is_empty()).then_some(self)
    }

    pub(crate) fn ledger(&self) -> &[Kept] {
        &self.ledger
    }

    /// Gives everything back.
    pub(crate) fn give_back(&self) {
        self.settle(self.ledger.iter().map(|_| Settle::Refund));
    }

    /// Puts the charges right, each by its verdict: one call to give back, one to take more.
    pub(crate) fn settle(&self, verdicts: impl IntoIterator<Item = Settle>) {
        let mut back: SmallVec<[Charge<'_>; 4]> = SmallVec::new();
        let mut more: SmallVec<[Charge<'_>; 4]> = SmallVec::new();
        for (kept, verdict) in self.ledger.iter().zip(verdicts) {
            let cost = match verdict {
                Settle::Keep => kept.taken,
                Settle::Refund => 0,
                Settle::Cost(units) => units,
            };
            if cost < kept.taken {
                back.push(kept.charge(kept.taken - cost));
            } else if cost > kept.taken {
                more.push(kept.charge(cost - kept.taken));
            }
        }
        self.apply(Operation::Refund { taken_at: self.at }, &back);
        self.apply(Operation::Charge, &more);
    }

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) {
        if !charges.is_empty() {
            self.till.apply(self.counted, operation, charges, self.runtime.as_ref());
        }
    }
}
