//! The charges of a call, and what the store says about them.

use smallvec::SmallVec;
use tower_quota_core::{
    Algorithm, Charge, ChargeMode, Decision, Key, LimitStatus, Operation, RefusalCache,
    RefusalCheck, Store, Timestamp,
};

use super::plan::{Counter, Plan};
use crate::envoy::config::OnStoreFailure;
use crate::envoy::counter;

type Charges<'p> = SmallVec<[Charge<'p>; 4]>;

/// The decision about the counters of a call, in their order.
#[derive(Clone)]
pub(super) struct Decided {
    pub(super) at: Timestamp,
    /// Empty if the store has failed.
    pub(super) statuses: SmallVec<[LimitStatus; 4]>,
    /// Whether each limit is exceeded.
    pub(super) over: SmallVec<[bool; 4]>,
}

impl Decided {
    fn new(charges: &[Charge<'_>], decision: &Decision) -> Self {
        let over = charges.iter().zip(decision.statuses());
        let over = over.map(|(charge, status)| match charge.mode() {
            ChargeMode::Forced => status.debt() > 0,
            _ => status.outcome.is_refusal(),
        });
        Self {
            at: decision.at(),
            over: over.collect(),
            statuses: decision.statuses().into(),
        }
    }
}

impl Plan<'_> {
    /// Decides all counters of the call in one step.
    ///
    /// The store may admit a call that the protocol refuses, because all limits in quota mode are exceeded, because a forced
    /// charge leaves a debt, or because a limit admits nothing. Such a call gets its checked units back.
    ///
    /// Sets the refusal to use if the store fails, or if you drop the future.
    pub(super) async fn decide<S: Store>(
        &self,
        store: &RefusalCache<S>,
        known_refusal: &mut Option<Decided>,
    ) -> Result<Decided, S::Error> {
        let counters = self.counters.iter();
        let keys: SmallVec<[Key<'_>; 4]> = counters
            .map(|counter| Key::new(counter::SCOPE, self.name(counter)))
            .collect();
        let quotas = self.asked.iter().filter(|asked| self.is_quota(asked));
        let has_quotas = quotas.count() > 1;
        let is_refundable = has_quotas || self.may_give_back();
        let mut charges = Charges::new();
        for (counter, key) in self.counters.iter().zip(&keys) {
            let charge = self.charge(counter, key, has_quotas);
            // Leased units have instants of their own, and a refund has one. Hits to give back were never charged.
            charges.push(match is_refundable && counter.back == 0 {
                true => charge.refundable(),
                false => charge,
            });
        }
        let mut decision = Decision::default();
        if !charges.is_empty() && !store.check_at_once(&charges, &mut decision) {
            decision = match store.begin(&charges) {
                RefusalCheck::Refused(refusal) => refusal,
                RefusalCheck::Sent {
                    answer,
                    known_refusal: known,
                } => {
                    *known_refusal = known.map(|known| Decided::new(&charges, &known));
                    answer.await?
                }
            };
        }
        let mut decided = Decided::new(&charges, &decision);
        *known_refusal = self.refuses(&decided.over).then(|| decided.clone());
        self.settle(store, &charges, decision, &mut decided).await?;
        Ok(decided)
    }

    /// Returns whether the call gives hits back, or may be refused after the store has admitted it.
    fn may_give_back(&self) -> bool {
        let mut counters = self.counters.iter();
        let mut rules = self.asked.iter().filter_map(|asked| asked.rule);
        counters.any(|counter| counter.back > 0 || counter.rule.post_charge)
            || rules.any(|rule| rule.quota.is_none() && !rule.is_unlimited)
    }

    fn charge<'a>(
        &'a self,
        counter: &'a Counter<'a>,
        key: &'a Key<'a>,
        has_quotas: bool,
    ) -> Charge<'a> {
        let Counter { rule, quota, .. } = counter;
        let is_window = quota.algorithm() == Algorithm::FixedWindow;
        let mut charge = Charge::new(counter::LIMIT, quota, key).cost(counter.hits);
        let mode = match (counter.hits, counter.back) {
            (0, 0) => ChargeMode::ReportedUntilDebt,
            // A cost of 0 never refuses, and hits that are given back may not.
            (0, _) => ChargeMode::Checked,
            _ if rule.post_charge || self.is_compatible && is_window => ChargeMode::Forced,
            _ => ChargeMode::Checked,
        };
        if mode != ChargeMode::Checked {
            charge = charge.in_mode(mode);
        }
        // One exceeded limit of several in quota mode refuses nothing.
        let is_quota = self.options.is_quota || rule.is_quota;
        if self.options.is_shadow || rule.is_shadow || is_quota && has_quotas {
            charge = charge.shadow();
        }
        match self.is_compatible {
            true => charge.count_refusals(),
            false => charge,
        }
    }

    /// Gives units back, those of a refused call or those that the call wants to give back.
    async fn settle<S: Store>(
        &self,
        store: &S,
        charges: &[Charge<'_>],
        mut decision: Decision,
        decided: &mut Decided,
    ) -> Result<(), S::Error> {
        let is_undone =
            self.refuses(&decided.over) && !self.options.is_shadow && !self.is_compatible;
        let taken_at = decided.at;
        let refund = match is_undone {
            true => decision.refund(),
            false => Some(Operation::Refund { taken_at }),
        };
        let Some(refund) = refund else { return Ok(()) };
        let (mut refunds, mut refunded) = (Charges::new(), Vec::new());
        let counters = self.counters.iter().zip(&mut decided.statuses);
        for (charge, (counter, status)) in charges.iter().zip(counters) {
            let units = match (is_undone, charge.mode()) {
                (false, _) => counter.back,
                (true, ChargeMode::Checked) => status.taken,
                (true, _) => 0,
            };
            if units > 0 {
                refunds.push(charge.cost(units));
                refunded.push(status);
            }
        }
        if !refunds.is_empty() {
            let decision = store.apply(refund, &refunds).await?;
            for (shown, status) in refunded.into_iter().zip(decision.statuses()) {
                *shown = *status;
            }
        }
        Ok(())
    }

    /// Answers for a store that has failed. Returns `None` if a limit wants an error.
    pub(super) fn without_store(&self) -> Option<Decided> {
        let mut over = SmallVec::new();
        for Counter { rule, .. } in &self.counters {
            match rule.on_store_failure {
                OnStoreFailure::Error => return None,
                choice => over.push(choice == OnStoreFailure::Refuse),
            }
        }
        Some(Decided {
            at: Timestamp::EPOCH,
            statuses: SmallVec::new(),
            over,
        })
    }
}
