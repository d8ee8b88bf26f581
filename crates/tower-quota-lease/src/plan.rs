use core::time::Duration;

use tower_quota_core::{Algorithm, Charge, ChargeMode, Left, LimitStatus, Quota};

use crate::answer::micros;

/// The shortest term in microseconds. A shorter lease saves hardly a call.
const SHORTEST: u64 = 5_000;
/// The divisor of the largest part of its burst that a bucket gives up.
const BURST_SHARE: u64 = 20;
/// The minimum of units that a leased bucket gives up. Leases of smaller buckets are spent before
/// they have saved a call.
const FEWEST_GIVEN_UP: u64 = 5;
/// The divisor of a window for its longest lease.
const WINDOW_SHARE: u64 = 10;
/// The divisor of the largest part of its rate that a sliding window gives up.
const RATE_SHARE: u64 = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeasePlan {
    pub(crate) asked: Quota,
    pub(crate) counted: Quota,
    pub(crate) term: u64,
    /// The units that a bucket refills within a term. Windows have 0, because their units come back at once.
    pub(crate) refilled: u64,
}

impl LeasePlan {
    /// Returns the plan of a limit with leases, the same for all requests, so that the store never
    /// converts the counter.
    pub(crate) fn of(charge: &Charge<'_>, longest: u64) -> Option<Self> {
        // The store counts strikes and counted refusals for each request.
        if charge.is_exact() || charge.counts_refusals() || charge.penalised_by().is_some() {
            return None;
        }
        Self::of_quota(charge.quota(), longest).filter(|plan| plan.term >= SHORTEST)
    }

    fn of_quota(quota: &Quota, longest: u64) -> Option<Self> {
        let period = micros(quota.period());
        let whole = Self {
            asked: *quota,
            counted: *quota,
            term: longest,
            refilled: 0,
        };
        match quota.algorithm() {
            Algorithm::TokenBucket | Algorithm::Gcra => {
                let given_up = quota.capacity() / BURST_SHARE;
                if given_up < FEWEST_GIVEN_UP {
                    return None;
                }
                let term = longest.min(ratio(given_up, period, quota.units(), 0));
                let smaller = quota.capacity() - ratio(term, quota.units(), period, period - 1);
                Some(Self {
                    counted: quota.try_burst(smaller).ok()?,
                    term,
                    refilled: ratio(term, quota.units(), period, 0),
                    ..whole
                })
            }
            Algorithm::FixedWindow => Some(Self {
                term: longest.min(period / WINDOW_SHARE),
                ..whole
            }),
            Algorithm::SlidingWindow | Algorithm::SlidingLog => {
                let term = longest.min(period / RATE_SHARE);
                let longer = Duration::from_micros(period + term);
                let counted = Quota::try_new(quota.units(), longer).ok()?;
                Some(Self {
                    counted: counted.try_algorithm(quota.algorithm()).ok()?,
                    term,
                    ..whole
                })
            }
            _ => None,
        }
    }

    pub(crate) fn stored<'c>(plan: Option<&'c Self>, charge: &Charge<'c>) -> Charge<'c> {
        plan.map_or(*charge, |plan| charge.with_quota(&plan.counted))
    }

    pub(crate) fn own_status(&self, status: &LimitStatus, held: u64) -> LimitStatus {
        let limit = self.asked.capacity();
        let remaining = status.remaining().saturating_add(held);
        let balance = signed(remaining.min(limit)) - signed(status.debt());
        LimitStatus {
            limit,
            left: Left::of_balance(balance, status.reset_after()),
            ..*status
        }
    }

    pub(crate) fn refill_time(&self, units: u64) -> u64 {
        let rate = self.asked.units();
        ratio(units, micros(self.asked.period()), rate, rate - 1)
    }
}

fn signed(units: u64) -> i64 {
    i64::try_from(units).unwrap_or(i64::MAX)
}

fn ratio(count: u64, numerator: u64, denominator: u64, rounding: u64) -> u64 {
    let product = u128::from(count) * u128::from(numerator) + u128::from(rounding);
    u64::try_from(product / u128::from(denominator)).unwrap_or(u64::MAX)
}

pub(crate) fn is_leasable(charge: &Charge<'_>) -> bool {
    charge.units() > 0
        && charge.mode() == ChargeMode::Checked
        && !charge.is_shadow()
        && !charge.is_at_most()
}

#[cfg(test)]
mod tests {
    use tower_quota_core::{Key, Name, Outcome, Penalty};

    use super::*;

    const LONGEST: u64 = 100_000;

    fn plan_of(quota: &Quota, longest: u64) -> Option<LeasePlan> {
        LeasePlan::of(&Charge::new("limit", quota, &Key::EVERYONE), longest)
    }

    #[test]
    fn bucket_gives_up_what_is_refilled() {
        let plan = plan_of(&Quota::per_second(1_000), LONGEST).unwrap();
        assert_eq!(
            (plan.term, plan.counted.capacity(), plan.counted.units()),
            (50_000, 950, 1_000)
        );
        let plan = plan_of(&Quota::per_minute(6_000).gcra().burst(140), LONGEST).unwrap();
        assert_eq!((plan.term, plan.counted.capacity()), (70_000, 133));
        let plan = plan_of(&Quota::per_hour(5_000), LONGEST).unwrap();
        assert_eq!((plan.term, plan.counted.capacity()), (100_000, 4_999));
    }

    #[test]
    fn sliding_period_grows_by_lease() {
        for quota in [
            Quota::per_second(500).sliding_window(),
            Quota::per_second(500).sliding_log(),
        ] {
            let plan = plan_of(&quota, LONGEST).unwrap();
            assert_eq!(
                (plan.term, plan.counted.period()),
                (10_000, Duration::from_millis(1_010))
            );
            assert_eq!(
                (plan.counted.units(), plan.counted.algorithm()),
                (500, quota.algorithm())
            );
        }
    }

    #[test]
    fn fixed_window_keeps_its_quota() {
        let quota = Quota::per_minute(100)
            .fixed_window()
            .offset(Duration::from_secs(7));
        let plan = plan_of(&quota, LONGEST).unwrap();
        assert_eq!((plan.term, plan.counted), (LONGEST, quota));
        let plan = plan_of(&Quota::per_second(100).fixed_window(), 500_000).unwrap();
        assert_eq!(plan.term, 100_000);
        assert_eq!(
            plan_of(
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
            assert_eq!(plan_of(&quota, LONGEST), None, "{quota:?}");
        }
    }

    #[test]
    fn own_status_keeps_debt_beyond_held_units() {
        let quota = Quota::per_minute(1_000).fixed_window();
        let plan = plan_of(&quota, LONGEST).unwrap();
        for (stored, held, expected) in [
            (-100, 0, (0, 100)),
            (-100, 30, (0, 70)),
            (-100, 130, (30, 0)),
            (900, 30, (930, 0)),
            (990, 30, (1_000, 0)),
        ] {
            let status = LimitStatus {
                name: Name::new("minute"),
                limit: 1_000,
                left: Left::of_balance(stored, Duration::from_secs(9)),
                taken: 0,
                outcome: Outcome::Allow,
                is_shadow: false,
            };
            let status = plan.own_status(&status, held);
            assert_eq!(
                (status.remaining(), status.debt()),
                expected,
                "{stored} {held}"
            );
            assert_eq!(status.reset_after(), Duration::from_secs(9));
        }
    }

    #[test]
    fn plan_belongs_to_limit_not_request() {
        let (quota, key, penalty) = (Quota::per_minute(1_000), Key::EVERYONE, Penalty::after(3));
        let charge = Charge::new("minute", &quota, &key);
        let plan = LeasePlan::of(&charge, LONGEST);
        assert!(plan.is_some() && is_leasable(&charge));
        for limit in [
            charge.exact(),
            charge.exact().refundable(),
            charge.count_refusals(),
            charge.penalty(&penalty),
        ] {
            assert_eq!(LeasePlan::of(&limit, LONGEST), None, "{limit:?}");
        }
        for request in [
            charge.refundable(),
            charge.max_wait(Duration::from_secs(1)),
            charge.at_most(),
            charge.cost(0),
        ] {
            assert_eq!(LeasePlan::of(&request, LONGEST), plan, "{request:?}");
        }
        assert!(!is_leasable(&charge.at_most()) && !is_leasable(&charge.cost(0)));
    }
}
