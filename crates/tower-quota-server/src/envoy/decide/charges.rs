//! The charges of a call, and what the store says about them.

use smallvec::SmallVec;
use tower_quota_core::{
    Algorithm, Charge, ChargeMode, Decision, Key, LimitStatus, Operation, Store, Timestamp,
};

use super::plan::Plan;
use crate::envoy::config::OnStoreFailure;
use crate::envoy::counter;

type Keys<'p> = SmallVec<[Key<'p>; 4]>;
type Charges<'p> = SmallVec<[Charge<'p>; 4]>;

/// The decision about the counters of a call, in their order.
pub(super) struct Decided {
    pub(super) at: Timestamp,
    /// Empty if the store has failed.
    pub(super) statuses: SmallVec<[LimitStatus; 4]>,
    /// Whether each limit is exceeded.
    pub(super) over: SmallVec<[bool; 4]>,
}

impl Plan<'_> {
    /// Decides all counters of the call in one step.
    ///
    /// The store may admit a call that the protocol refuses, because all limits in quota mode are exceeded, because a forced
    /// charge leaves a debt, or because a limit admits nothing. Such a call gets its checked units back.
    pub(super) async fn decide<S: Store>(
        &self,
        store: &S,
        is_shadow: bool,
    ) -> Result<Decided, S::Error> {
        let keys: Keys<'_> = self
            .counters
            .iter()
            .map(|counter| Key::new(counter::SCOPE, self.name(counter)))
            .collect();
        let charges = self.charges(&keys, is_shadow);
        let mut decision = Decision::default();
        if !charges.is_empty() && !store.check_at_once(&charges, &mut decision) {
            decision = store.check(&charges).await?;
        }
        let statuses: SmallVec<[LimitStatus; 4]> = decision.statuses().into();
        let over = charges.iter().zip(&statuses);
        let over = over.map(|(charge, status)| match charge.mode() {
            ChargeMode::Forced => status.debt() > 0,
            _ => status.outcome.is_refusal(),
        });
        let mut decided = Decided {
            at: decision.at(),
            over: over.collect(),
            statuses,
        };
        self.settle(store, is_shadow, &charges, decision, &mut decided)
            .await?;
        Ok(decided)
    }

    /// Gives units back, those of a refused call or those that the call wants to give back.
    async fn settle<S: Store>(
        &self,
        store: &S,
        is_shadow: bool,
        charges: &[Charge<'_>],
        mut decision: Decision,
        decided: &mut Decided,
    ) -> Result<(), S::Error> {
        let is_undone = self.refuses(&decided.over) && !is_shadow && !self.is_compatible;
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
        for counter in &self.counters {
            let choice = self.rule(counter).map(|rule| rule.on_store_failure);
            if choice == Some(OnStoreFailure::Error) {
                return None;
            }
            over.push(choice == Some(OnStoreFailure::Refuse));
        }
        Some(Decided {
            at: Timestamp::EPOCH,
            statuses: SmallVec::new(),
            over,
        })
    }

    /// Returns whether the call is over its limits, if these counters are over theirs.
    ///
    /// A call is over if a limit is, or if all limits of a quota mode are.
    pub(super) fn refuses(&self, over: &[bool]) -> bool {
        let (mut quotas, mut quotas_over) = (0, 0);
        for asked in &self.asked {
            let is_over = asked.is_over(over);
            if !asked.is_quota() {
                if is_over {
                    return true;
                }
                continue;
            }
            quotas += 1;
            quotas_over += usize::from(is_over);
        }
        quotas > 0 && quotas == quotas_over
    }

    fn charges<'a>(&'a self, keys: &'a [Key<'a>], is_shadow: bool) -> Charges<'a> {
        let quotas = self.asked.iter().filter(|asked| asked.is_quota()).count();
        let mut charges = Charges::new();
        for (counter, key) in self.counters.iter().zip(keys) {
            let rule = self.rule(counter);
            let Some((rule, quota)) = rule.and_then(|rule| Some((rule, rule.quota()?))) else {
                continue;
            };
            let is_window = quota.algorithm() == Algorithm::FixedWindow;
            let mode = match (counter.hits, counter.back) {
                (0, 0) => ChargeMode::ReportedUntilDebt,
                // A cost of 0 never refuses, and hits that are given back may not.
                (0, _) => ChargeMode::Checked,
                _ if rule.post_charge || self.is_compatible && is_window => ChargeMode::Forced,
                _ => ChargeMode::Checked,
            };
            let mut charge = Charge::new(counter.limit, quota, key).cost(counter.hits);
            if mode != ChargeMode::Checked {
                charge = charge.in_mode(mode);
            }
            // One exceeded limit of several in quota mode refuses nothing.
            if is_shadow || rule.is_shadow || rule.is_quota && quotas > 1 {
                charge = charge.shadow();
            }
            if self.is_compatible {
                charge = charge.count_refusals();
            }
            charges.push(charge);
        }
        charges
    }
}
