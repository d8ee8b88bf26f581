//! Plans: how long a lease of a quota lasts, and the quota that the store counts by meanwhile.

use core::time::Duration;
use std::sync::{Arc, OnceLock};

use tower_quota_core::{Algorithm, Charge, ChargeMode, Quota};

/// The shortest lease: a shorter one would save next to nothing.
const SHORTEST: u64 = 5_000;
/// The part of a bucket's burst that may be given up.
const BURST_SHARE: u64 = 20;
/// The fewest units that a bucket gives up. Leases of smaller buckets are spent before they have saved a call, and what
/// other instances hold of them is missed.
const FEWEST_GIVEN_UP: u64 = 5;
/// The part of a fixed window that a lease may last. What is held at the end of a window is lost with it.
const WINDOW_SHARE: u64 = 10;
/// The part of a sliding window's rate that may be given up.
const RATE_SHARE: u64 = 100;
/// The most plans that are kept. Policies have a handful of quotas.
const MOST_PLANS: usize = 64;

/// The lease of a quota.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The quota of the limit.
    pub(crate) asked: Quota,
    /// The quota that the store counts by.
    pub(crate) stored: Quota,
    /// The time that a lease lasts, in microseconds.
    pub(crate) term: u64,
    /// The full units that are refilled within a lease: 0 for windows, whose units come back all at once.
    pub(crate) refilled: u64,
    /// Says whether a lease also ends with its window.
    pub(crate) ends_with_window: bool,
}

impl Plan {
    /// Returns the plan of a quota, or `None` if it is not leased. Leases last `longest` microseconds at most.
    fn of(quota: &Quota, longest: u64) -> Option<Self> {
        let period = micros(quota.period());
        let (stored, term, refilled) = match quota.algorithm() {
            Algorithm::TokenBucket | Algorithm::Gcra => {
                // A twentieth of the burst, in full units, is what `term` may refill.
                let given_up = quota.capacity() / BURST_SHARE;
                if given_up < FEWEST_GIVEN_UP {
                    return None;
                }
                let term = u64::try_from(
                    u128::from(given_up) * u128::from(period) / u128::from(quota.units()),
                );
                let term = term.unwrap_or(u64::MAX).min(longest);
                let grains = u128::from(term) * u128::from(quota.units());
                let smaller = quota.capacity()
                    - u64::try_from(grains.div_ceil(u128::from(period)))
                        .ok()?
                        .min(given_up);
                (
                    quota.try_burst(smaller).ok()?,
                    term,
                    u64::try_from(grains / u128::from(period)).ok()?,
                )
            }
            Algorithm::FixedWindow => (*quota, longest.min(period / WINDOW_SHARE), 0),
            Algorithm::SlidingWindow | Algorithm::SlidingLog => {
                let term = longest.min(period / RATE_SHARE);
                let longer =
                    Quota::try_new(quota.units(), Duration::from_micros(period + term)).ok()?;
                (longer.try_algorithm(quota.algorithm()).ok()?, term, 0)
            }
            _ => return None,
        };
        let ends_with_window = quota.algorithm() == Algorithm::FixedWindow;
        (term >= SHORTEST).then_some(Self {
            asked: *quota,
            stored,
            term,
            refilled,
            ends_with_window,
        })
    }
}

/// The plans of the quotas that are in use, found without a lock.
#[derive(Debug)]
pub(crate) struct Plans {
    longest: u64,
    known: [OnceLock<(Quota, Option<Arc<Plan>>)>; MOST_PLANS],
}

impl Plans {
    pub(crate) fn new(longest: Duration) -> Self {
        Self {
            longest: micros(longest),
            known: [const { OnceLock::new() }; MOST_PLANS],
        }
    }

    /// Returns the plan by which the store counts a charge, if it is not the charge's own quota.
    pub(crate) fn of(&self, charge: &Charge<'_>) -> Option<Arc<Plan>> {
        if counts_itself(charge) {
            return None;
        }
        let quota = charge.quota();
        for known in &self.known {
            // A free place is taken by the first thread that comes, whose quota may be another.
            let (known, plan) =
                known.get_or_init(|| (*quota, Plan::of(quota, self.longest).map(Arc::new)));
            if known == quota {
                return plan.clone();
            }
        }
        // Quotas that came later than all these are planned at each request.
        Plan::of(quota, self.longest).map(Arc::new)
    }
}

/// Returns whether a charge may be taken from a lease, if its quota has a plan.
pub(crate) fn is_leasable(charge: &Charge<'_>) -> bool {
    !counts_itself(charge)
        && charge.units() > 0
        && charge.mode() == ChargeMode::Checked
        && !charge.is_shadow()
        && !charge.is_at_most()
}

/// Returns whether the store counts by the limit's own quota: none of its requests are leased.
///
/// Strikes and counted refusals belong to single requests. What single requests of a limit ask for decides nothing here:
/// all of them count by one quota.
fn counts_itself(charge: &Charge<'_>) -> bool {
    charge.is_exact() || charge.counts_refusals() || charge.penalised_by().is_some()
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use tower_quota_core::Penalty;

    use super::*;

    const LONGEST: u64 = 100_000;

    #[test]
    fn bucket_gives_up_what_is_refilled() {
        let plan = Plan::of(&Quota::per_second(1_000), LONGEST).unwrap();
        assert_eq!(
            (plan.term, plan.stored.capacity(), plan.stored.units()),
            (50_000, 950, 1_000)
        );
        let plan = Plan::of(&Quota::per_minute(6_000).gcra().burst(140), LONGEST).unwrap();
        assert_eq!((plan.term, plan.stored.capacity()), (70_000, 133));
        let plan = Plan::of(&Quota::per_hour(5_000), LONGEST).unwrap();
        assert_eq!((plan.term, plan.stored.capacity()), (100_000, 4_999));
    }

    #[test]
    fn sliding_period_grows_by_lease() {
        for quota in [
            Quota::per_second(500).sliding_window(),
            Quota::per_second(500).sliding_log(),
        ] {
            let plan = Plan::of(&quota, LONGEST).unwrap();
            assert_eq!(
                (plan.term, plan.stored.period()),
                (10_000, Duration::from_millis(1_010))
            );
            assert_eq!(
                (plan.stored.units(), plan.stored.algorithm()),
                (500, quota.algorithm())
            );
        }
    }

    #[test]
    fn fixed_window_keeps_its_quota() {
        let quota = Quota::per_minute(100)
            .fixed_window()
            .offset(Duration::from_secs(7));
        let plan = Plan::of(&quota, LONGEST).unwrap();
        assert_eq!(
            (plan.term, plan.stored, plan.ends_with_window),
            (LONGEST, quota, true)
        );
        let plan = Plan::of(&Quota::per_second(100).fixed_window(), 500_000).unwrap();
        assert_eq!(plan.term, 100_000);
        assert_eq!(
            Plan::of(
                &Quota::new(100, Duration::from_millis(40)).fixed_window(),
                500_000
            ),
            None
        );
    }

    #[test]
    fn small_or_slow_quotas_are_not_leased() {
        let tiny = Quota::per_second(99);
        let strict = Quota::per_second(100_000).gcra().burst(100);
        let short = Quota::new(100, Duration::from_millis(400)).sliding_log();
        for quota in [tiny, strict, short, Quota::per_second(1_000).leaky_bucket()] {
            assert_eq!(Plan::of(&quota, LONGEST), None, "{quota:?}");
        }
    }

    #[test]
    fn more_quotas_than_places_are_planned() {
        let plans = Plans::new(Duration::from_millis(100));
        let key = tower_quota_core::Key::EVERYONE;
        for units in (1_000..1_200).chain(1_000..1_010) {
            let quota = Quota::per_minute(units);
            let plan = plans.of(&Charge::new("minute", &quota, &key)).unwrap();
            assert_eq!(plan.asked, quota);
        }
    }

    #[test]
    fn plan_belongs_to_limit_not_request() {
        let plans = Plans::new(Duration::from_millis(100));
        let (quota, key, penalty) = (
            Quota::per_minute(1_000),
            tower_quota_core::Key::EVERYONE,
            Penalty::after(3),
        );
        let charge = Charge::new("minute", &quota, &key);
        for limit in [
            charge.exact(),
            charge.exact().refundable(),
            charge.count_refusals(),
            charge.penalty(&penalty),
        ] {
            assert!(
                plans.of(&limit).is_none() && !is_leasable(&limit),
                "{limit:?}"
            );
        }
        for request in [
            charge.refundable(),
            charge.max_wait(Duration::from_secs(1)),
            charge.at_most(),
            charge.cost(0),
        ] {
            assert_eq!(plans.of(&request), plans.of(&charge), "{request:?}");
        }
        assert!(!is_leasable(&charge.at_most()) && !is_leasable(&charge.cost(0)));
        assert!(plans.of(&charge).is_some() && is_leasable(&charge));
    }
}
