//! What a policy does about a request that the store could not be asked about.

use tower_quota_core::{Charge, Name, Quota};

use super::{Applying, Charges, Keys, Overrides, Plan, Planned, other_quotas, quota_of};
use crate::degraded::OnStoreFailure;
use crate::head::RequestHead;

/// What a request gets that the store could not be asked about.
pub(crate) enum Fallback<T> {
    /// A limit refuses such requests.
    Refuse,
    /// No limit counts it.
    Uncounted {
        /// Whether all limits that apply are shadows.
        only_shadows: bool,
    },
    /// The charges of the limits that this instance counts by itself were handed over.
    Charged {
        /// What came back.
        answer: T,
        /// The quotas that limits have for this request instead of their own, undivided.
        overrides: Overrides,
        /// Whether all limits that apply are shadows.
        only_shadows: bool,
    },
}

impl Plan {
    /// Works out what the limits of a request do without the store, and hands the charges of those that this instance
    /// counts by itself to `check`.
    pub(crate) fn fall_back<T>(&self, head: &RequestHead<'_>, check: impl FnOnce(&[Charge<'_>]) -> T) -> Fallback<T> {
        let (mut keys, mut applying) = (Keys::new(), Applying::new());
        if self.read(head, &mut keys, &mut applying).is_err() {
            // It had its keys when the store was asked: an extractor has changed its mind.
            return Fallback::Refuse;
        }
        if applying.iter().any(|(planned, _)| planned.on_store_failure == OnStoreFailure::Refuse) {
            return Fallback::Refuse;
        }
        let only_shadows = applying.iter().all(|(planned, _)| planned.limit.is_shadow());
        let mut local = applying;
        local.retain(|(planned, _)| planned.on_store_failure == OnStoreFailure::Local);
        let overrides = other_quotas(&local, head);
        let share = |(name, quota): &(Name, Quota)| Some((*name, quota.try_divided(self.instances).ok()?));
        let shares: Overrides = overrides.iter().filter_map(share).collect();
        let has_share =
            |planned: &Planned| quota_of(planned, &overrides).is_none() || quota_of(planned, &shares).is_some();
        if local.iter().any(|(planned, _)| !planned.limit.is_shadow() && !has_share(planned)) {
            return Fallback::Refuse;
        }
        local.retain(|(planned, _)| has_share(planned));
        if local.is_empty() {
            return Fallback::Uncounted { only_shadows };
        }
        let charges = local.into_iter().map(|(planned, place)| {
            let quota = quota_of(planned, &shares).unwrap_or(&planned.limit.share);
            planned.limit.charge(quota, self.key(&keys[place]), head)
        });
        let answer = check(&charges.collect::<Charges<'_>>());
        Fallback::Charged { answer, overrides, only_shadows }
    }
}
