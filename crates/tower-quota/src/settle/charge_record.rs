use core::error::Error;
use core::time::Duration;
use std::sync::Arc;

use smallvec::SmallVec;
use tokio::runtime::Handle;
use tower_quota_core::{Charge, Decision, HoldId, Name, Operation, OwnedCharge, Timestamp};

use super::Settle;
use super::hold::LongestHold;
use super::rule::SettleRule;
use crate::checks::Checks;
use crate::degraded::LocalCounters;
use crate::request::Rules;
use crate::response::Report;

const DAY: Duration = Duration::from_secs(86_400);

pub(crate) trait Settler: Send + Sync {
    /// Applies an operation to charges, on the current runtime or else on the given runtime.
    fn apply(
        &self,
        counted: &Counted,
        operation: Operation,
        charges: &[Charge<'_>],
        runtime: Option<&Handle>,
    );

    /// Renews units until `release`, at most for the longest time.
    fn hold(
        &self,
        counted: &Counted,
        charge: OwnedCharge,
        taken_at: Timestamp,
        longest: Option<Duration>,
    ) -> HoldId;

    /// Ends the renewals. Returns the instant of the units to release, if the caller has to release them.
    fn release(&self, counted: &Counted, hold: HoldId) -> Option<Timestamp>;

    fn timeout(&self) -> Duration;

    fn failed(&self, error: &(dyn Error + 'static));

    fn checks(&self) -> &Checks;

    /// Returns whether the policy has a limit of this name.
    fn has_limit(&self, name: &str) -> bool;
}

/// The counters of a request.
#[derive(Clone)]
pub(crate) enum Counted {
    Shared,
    /// A later setting of the layer may replace the local counters, so requests keep their own.
    Locally(Arc<LocalCounters>),
}

#[derive(Clone)]
pub(crate) struct RecordedCharge {
    charge: OwnedCharge,
    pub(super) taken: u64,
    reset_after: Duration,
    pub(super) available: u64,
    /// The rule that settles, absent if the charge is only recorded for a refund.
    pub(super) rule: Option<SettleRule>,
    longest_hold: Option<LongestHold>,
    hold: Option<HoldId>,
}

pub(crate) struct ChargeRecord {
    pub(super) settler: Arc<dyn Settler>,
    runtime: Option<Handle>,
    counted: Counted,
    at: Timestamp,
    pub(super) charges: Vec<RecordedCharge>,
}

impl Counted {
    pub(crate) fn of(report: &Report, rules: &Rules) -> Self {
        match report.is_local {
            true => Self::Locally(Arc::clone(&rules.settings.local)),
            false => Self::Shared,
        }
    }
}

impl RecordedCharge {
    pub(crate) fn new(charge: &Charge<'_>, rule: Option<SettleRule>) -> Self {
        Self {
            charge: OwnedCharge::from(charge),
            taken: 0,
            reset_after: Duration::ZERO,
            available: 0,
            rule,
            longest_hold: None,
            hold: None,
        }
    }

    pub(crate) fn with_longest_hold(mut self, longest: Option<&LongestHold>) -> Self {
        self.longest_hold = longest.cloned();
        self
    }

    pub(crate) const fn name(&self) -> Name {
        self.charge.name()
    }

    pub(super) fn is_shadow(&self) -> bool {
        self.charge.as_charge().is_shadow()
    }

    pub(crate) fn as_charge(&self) -> Charge<'_> {
        self.charge.as_charge()
    }

    pub(crate) fn is_hold(&self) -> bool {
        self.charge.as_charge().is_hold()
    }

    /// Returns the most units that a settlement adds, so that a wrong cost does not lock the client out for years.
    fn longest_debt(&self) -> u64 {
        let quota = self.charge.as_charge().quota();
        let time = quota.period().max(DAY).as_micros();
        let units = u128::from(quota.units()) * time / quota.period().as_micros().max(1);
        u64::try_from(units)
            .unwrap_or(u64::MAX)
            .saturating_add(quota.capacity())
    }

    fn charge(&self, units: u64) -> Charge<'_> {
        // Keep the options of the charge, by which a leasing store selects the quota.
        self.charge.as_charge().cost(units).turn(self.reset_after)
    }
}

impl ChargeRecord {
    /// Records the units that a decision took. A refusing shadow takes no units.
    pub(crate) fn new(
        settler: Arc<dyn Settler>,
        counted: Counted,
        decision: &Decision,
        mut charges: Vec<RecordedCharge>,
    ) -> Self {
        charges.retain_mut(|recorded| {
            let status = decision
                .statuses()
                .iter()
                .find(|status| status.name == recorded.name());
            let Some(status) = status else {
                return false;
            };
            recorded.taken = status.taken;
            recorded.reset_after = status.reset_after();
            // A body may use the estimate and all remaining units before it is cut.
            recorded.available = status.taken.saturating_add(status.remaining());
            !status.outcome.is_refusal()
        });
        let at = decision.at();
        for recorded in &mut charges {
            if recorded.is_hold() && recorded.taken > 0 {
                let held = OwnedCharge::from(&recorded.as_charge().cost(recorded.taken));
                let longest = recorded.longest_hold.as_ref().map(|hold| hold.longest);
                recorded.hold = Some(settler.hold(&counted, held, at, longest));
            }
        }
        Self {
            settler,
            // Remember the runtime, because the record may be dropped outside of a runtime.
            runtime: Handle::try_current().ok(),
            counted,
            at,
            charges,
        }
    }

    pub(crate) fn is_local(&self) -> bool {
        matches!(self.counted, Counted::Locally(_))
    }

    pub(super) fn settling(mut self) -> Option<Self> {
        self.charges.retain(|recorded| recorded.rule.is_some());
        (!self.charges.is_empty()).then_some(self)
    }

    pub(crate) fn give_back(&mut self) {
        self.release_moved();
        self.settle(self.charges.iter().map(|_| Settle::Refund));
    }

    /// Ends the renewals, and releases units that have another instant than the other charges.
    pub(super) fn release_moved(&mut self) {
        for position in 0..self.charges.len() {
            let recorded = &mut self.charges[position];
            let Some(hold) = recorded.hold.take() else {
                continue;
            };
            let taken_at = self.settler.release(&self.counted, hold);
            if taken_at == Some(self.at) {
                continue;
            }
            let units = core::mem::take(&mut recorded.taken);
            if let Some(taken_at) = taken_at {
                let charge = self.charges[position].charge(units);
                self.apply(Operation::Refund { taken_at }, &[charge]);
            }
        }
    }

    pub(super) fn settle(&self, settled: impl IntoIterator<Item = Settle>) {
        let mut refunds: SmallVec<[Charge<'_>; 4]> = SmallVec::new();
        let mut extras: SmallVec<[Charge<'_>; 4]> = SmallVec::new();
        for (recorded, settle) in self.charges.iter().zip(settled) {
            let cost = match settle {
                Settle::Keep => recorded.taken,
                Settle::Refund => 0,
                Settle::Cost(units) => units,
            };
            if cost < recorded.taken {
                refunds.push(recorded.charge(recorded.taken - cost));
            } else if cost > recorded.taken {
                let (extra, longest) = (cost - recorded.taken, recorded.longest_debt());
                if extra > longest {
                    let checks = self.settler.checks();
                    checks.excessive_cost(recorded.name(), longest);
                }
                extras.push(recorded.charge(extra.min(longest)));
            }
        }
        let taken_at = self.at;
        self.apply(Operation::Refund { taken_at }, &refunds);
        self.apply(Operation::Surcharge { taken_at }, &extras);
    }

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) {
        if !charges.is_empty() {
            self.settler
                .apply(&self.counted, operation, charges, self.runtime.as_ref());
        }
    }
}
