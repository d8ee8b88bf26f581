use tower_quota_core::{Key, Name, OwnedCharge, Quota};

use super::plan::Plan;
use crate::degraded::OnStoreFailure;
use crate::head::RequestHead;
use crate::limit::Limit;

/// What the limits of a request do while the store is unavailable.
#[derive(Default)]
pub(crate) struct Fallback {
    pub(crate) refuses: bool,
    /// The limits that flag the request instead of refusing it.
    pub(crate) flagged: Vec<Name>,
    pub(crate) local: Vec<OwnedCharge>,
    /// The charges of limits without a choice, for an overloaded store.
    pub(crate) local_if_overloaded: Vec<OwnedCharge>,
}

impl Fallback {
    /// Adds what a limit does. `other` is the quota of the request, if different from the limit's own.
    pub(crate) fn add(
        &mut self,
        plan: &Plan,
        (limit, key): (Name, &Key<'_>),
        units: u64,
        other: Option<&Quota>,
        head: &RequestHead<'_>,
    ) {
        let Some(planned) = plan.planned(limit.id()) else {
            return;
        };
        let limit = &planned.limit;
        if let Some(degraded) = &limit.degraded {
            return self.local.push(degraded.charge(limit, key, units, head));
        }
        let choice = planned.on_store_failure;
        let local = match choice {
            Some(OnStoreFailure::Allow) => return,
            Some(OnStoreFailure::Refuse) => return self.refuse(limit),
            Some(OnStoreFailure::Local) => &mut self.local,
            None => &mut self.local_if_overloaded,
        };
        let share = match other {
            Some(quota) => quota.try_divided(plan.instances).ok(),
            None => planned.share,
        };
        match share {
            Some(share) => {
                let charge = limit.charge(other.unwrap_or(&limit.quota), key, units);
                local.push(OwnedCharge::from(&charge).with_quota(share));
            }
            // If the share of a request's own quota cannot be represented, the limit refuses.
            None if choice.is_some() => self.refuse(limit),
            None => {}
        }
    }

    /// Leaves out the charges that a refused request must not take.
    pub(crate) fn leave_out_shared(&mut self) {
        let is_own = |owned: &OwnedCharge| {
            let charge = owned.as_charge();
            !charge.key().as_bytes().is_empty() && !charge.is_hold()
        };
        self.local.retain(is_own);
        self.local_if_overloaded.retain(is_own);
    }

    fn refuse(&mut self, limit: &Limit) {
        if limit.flags() {
            self.flagged.push(limit.name);
        } else if !limit.is_dry_run() {
            self.refuses = true;
        }
    }
}
