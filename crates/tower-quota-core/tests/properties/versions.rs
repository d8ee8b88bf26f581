//! Tests two versions of a quota that count a client in turn, as during a rolling deployment.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_assert, proptest};
use tower_quota_core::{Charge, Decision, Entry, Operation, Quota, Timestamp};

use super::trace::{KEY, fraction, micros};
use super::{config, magnitude};

const START: u64 = 1_763_712_345_678_901;
const DAY: u64 = 86_400;

/// Two versions of a quota, with a client.
struct Versions {
    quotas: [Quota; 2],
    entry: Entry,
    now: u64,
}

impl Versions {
    fn new(quotas: [Quota; 2]) -> Self {
        Self {
            quotas,
            entry: Entry::default(),
            now: START,
        }
    }

    fn decide(&mut self, operation: Operation, version: usize, cost: u64) -> Decision {
        let charge = Charge::new("limit", &self.quotas[version], &KEY).cost(cost);
        let now = Timestamp::from_micros(self.now);
        self.entry.decide(operation, &[charge], now)
    }

    fn is_full(&mut self, version: usize) -> bool {
        let peek = self.decide(Operation::Peek, version, 1);
        peek.statuses()[0].reset_after().is_zero()
    }

    /// Returns a number of grains of one version in parts of a unit that both versions share.
    fn parts(&self, version: usize, grains: u64) -> u128 {
        u128::from(grains) * u128::from(self.quotas[1 - version].grain())
    }

    /// Returns the refill of a version in this time, in parts of a unit.
    fn refill(&self, version: usize, micros: u64) -> u128 {
        self.parts(version, self.quotas[version].refill()) * u128::from(micros)
    }
}

/// Asserts that a client in debt is refilled at the rates of the versions that count the client.
///
/// Each change of the version may cost one grain. A request is a version and the pause before it.
fn assert_refill(quotas: [Quota; 2], debt: u64, requests: impl IntoIterator<Item = (usize, u64)>) {
    let mut versions = Versions::new(quotas);
    let unit = versions.parts(0, quotas[0].grain());
    versions.decide(Operation::Charge, 0, quotas[0].capacity() + debt);
    let missing = unit * u128::from(1 + debt);
    let (mut last, mut most, mut lost) = (0, 0, 0);
    for (version, pause) in requests {
        versions.now += pause;
        most += versions.refill(last, pause);
        if version != last {
            lost += versions.parts(version, 1);
            last = version;
        }
        let Some(retry) = versions.decide(Operation::Check, version, 1).retry_after() else {
            assert!(most >= missing, "admitted too early by {quotas:?}");
            return;
        };
        let retry = micros(retry);
        assert!(
            versions.refill(version, retry) + most >= missing,
            "refilled too much by {quotas:?}"
        );
        assert!(
            versions.refill(version, retry - 1) + most < missing + lost,
            "refilled too little by {quotas:?}"
        );
    }
}

fn slow_quota() -> impl Strategy<Value = Quota> {
    (1..20_u64, magnitude(1, 366 * DAY), 1..20_u64).prop_filter_map(
        "a quota that can be counted",
        |(units, seconds, burst)| {
            let quota = Quota::try_new(units, Duration::from_secs(seconds)).ok()?;
            quota.try_burst(burst).ok()
        },
    )
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn versions_in_turn_refill_at_their_rates(
        one in slow_quota(),
        other in slow_quota(),
        debt in 0..20_u64,
        requests in vec((0..2_usize, magnitude(1, 1 << 40)), 1..200),
    ) {
        assert_refill([one, other], debt, requests);
    }

    /// Asserts the bound on what two versions of different capacity admit.
    ///
    /// Each time the client is full under the smaller version, the difference of the capacities is added.
    #[test]
    fn larger_version_restarts_when_smaller_is_full(
        one in slow_quota(),
        other in slow_quota(),
        requests in vec((0..2_usize, 0..100_000_u32, any::<u16>()), 1..100),
    ) {
        let mut versions = Versions::new([one, other]);
        let large = usize::from(other.capacity() > one.capacity());
        let [more, fewer] = [large, 1 - large].map(|version| versions.quotas[version].capacity());
        let unit = versions.parts(0, one.grain());
        // Track the version that counts the client, the highest allowed units, and the admitted
        // units.
        let (mut counted, mut most, mut admitted) = (large, unit * u128::from(more), 0);
        for (version, pause, share) in requests {
            let quota = versions.quotas[version];
            let filled = versions.decide(Operation::Peek, version, 1).statuses()[0].reset_after();
            let pause = match pause % 2 {
                0 => micros(filled),
                _ => fraction(micros(quota.window()), pause),
            };
            versions.now += pause;
            most += versions.refill(counted, pause);
            if version == large && counted != large && versions.is_full(1 - large) {
                most += unit * u128::from(more - fewer);
                counted = large;
            }
            let left = versions.decide(Operation::Peek, version, 1).statuses()[0].remaining();
            let cost = match share % 2 {
                0 => left.max(1),
                _ => fraction(quota.capacity() + 1, share.into()).max(1),
            };
            let decision = versions.decide(Operation::Check, version, cost);
            if decision.is_allowed() {
                admitted += unit * u128::from(cost);
            }
            if decision.is_allowed() || !decision.statuses()[0].reset_after().is_zero() {
                counted = version;
            }
            prop_assert!(admitted <= most, "{} of {} by {:?}", admitted, most, versions.quotas);
        }
    }
}

/// Covers slow quotas and fast clients, with many requests during the refill of one unit.
#[test]
fn alternating_slow_versions_refill_at_their_rates() {
    let days = |units, days| Quota::new(units, Duration::from_secs(days * DAY));
    let pairs = [
        ([days(1, 366), days(1, 365)], 100_000),
        ([days(1, 366), days(1, 365)], 10_000),
        ([days(5, 30), days(6, 30).burst(5)], 10_000),
        ([days(1, 30), days(2, 30)], 10_000),
        ([days(1, 1), days(2, 1).burst(1)], 1_000),
        ([Quota::per_hour(10), Quota::per_hour(12).burst(10)], 10_000),
    ];
    for (quotas, pause) in pairs {
        for debt in [0, 3] {
            assert_refill(quotas, debt, (0..20_000).map(|turn| (turn % 2, pause)));
        }
    }
}

/// Asserts that a refusal by a version with a smaller capacity gives no units back.
#[test]
fn refusal_by_smaller_version_creates_nothing() {
    let mut versions = Versions::new([Quota::per_second(10), Quota::per_second(100)]);
    assert!(versions.decide(Operation::Check, 1, 50).is_allowed());
    assert!(!versions.decide(Operation::Check, 0, 11).is_allowed());
    assert_eq!(
        versions.decide(Operation::Peek, 1, 1).statuses()[0].remaining(),
        50
    );
}

/// Asserts that the largest debt falls while two versions count a client.
#[test]
fn largest_debt_falls_between_versions() {
    let year = Quota::new(1, Duration::from_secs(366 * DAY));
    let month = Quota::per_month(1_000_000);
    for quotas in [[year, month], [month, year]] {
        let mut versions = Versions::new(quotas);
        versions.decide(Operation::Charge, 0, u64::MAX);
        let mut resets = Vec::new();
        for version in [1, 0].into_iter().cycle().take(20) {
            versions.now += 10_000;
            let decision = versions.decide(Operation::Check, version, 1);
            resets.push(decision.statuses()[0].reset_after());
        }
        for (earlier, later) in resets.iter().zip(&resets[2..]) {
            assert!(
                later < earlier,
                "{later:?}, not below {earlier:?}, by {quotas:?}"
            );
        }
    }
}
