//! All instances together never exceed the quota, whatever is lost, cut off, paused or ends.

use std::ops::Range;
use std::time::Duration;

use proptest::bool;
use proptest::prelude::*;
use tower_quota_core::{Algorithm, Quota};
use tower_quota_testkit::simulation::run;

use crate::fleet::Fleet;

/// Draws quotas that are leased. A bucket is full again soon after a lease was taken from it.
fn quota() -> impl Strategy<Value = Quota> {
    let algorithms = prop::sample::select(
        Algorithm::ALL.into_iter().filter(|one| *one != Algorithm::LeakyBucket).collect::<Vec<_>>(),
    );
    let periods = prop::sample::select(vec![700_u64, 1_000, 2_000]);
    (100..1_000_u64, periods, algorithms, 100..1_500_u64).prop_map(|(units, period, algorithm, burst)| {
        let quota = Quota::new(units, Duration::from_millis(period)).try_algorithm(algorithm).unwrap();
        match algorithm {
            Algorithm::TokenBucket | Algorithm::Gcra => quota.try_burst(burst).unwrap(),
            _ => quota,
        }
    })
}

/// Draws floods, after calm times in which the instances hold leases and the quota is nearly full.
///
/// A unit too many is admitted where leases taken in the calm are spent in the flood, beside all that the store has
/// left. Floods therefore begin at any time, often just after a window has, and may last until a period is over.
fn floods(quota: Quota) -> impl Strategy<Value = Vec<Range<Duration>>> {
    let period = u64::try_from(quota.period().as_millis()).unwrap();
    let flood = (0..3_u64, any::<bool>(), 0..period, prop_oneof![Just(3_u64), 1..period + 100]);
    prop::collection::vec(flood, 1..4).prop_map(move |floods| {
        let floods = floods.into_iter().map(|(window, is_at_start, within, lasts)| {
            let start = (window + 1) * period + if is_at_start { within % 20 } else { within };
            Duration::from_millis(start)..Duration::from_millis(start + lasts)
        });
        floods.collect()
    })
}

fn fleet() -> impl Strategy<Value = Fleet> {
    // In the calm, some requests within a lease's time: few enough that the quota is full, and enough to be leased.
    let load = (1..=6_u64, 1_500..12_000_u64, 1..4_u64);
    let network = (0..5_u8, 200..6_000_u64, bool::weighted(0.3));
    let with_floods = quota().prop_flat_map(|quota| (Just(quota), floods(quota)));
    (with_floods, load, network, any::<u64>()).prop_map(
        |((quota, floods), (instances, gap, most_units), (loss_percent, delay, faults), seed)| Fleet {
            quota,
            instances,
            gap,
            most_units,
            span: Duration::from_secs(5),
            loss_percent: if faults { loss_percent } else { 0 },
            delay: Duration::from_micros(delay),
            faults,
            floods,
            seed,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases / 2,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Replays the units on the limit's own quota, at the instants at which they were spent. All of them must fit.
    #[test]
    fn spent_units_fit_into_quota(fleet in fleet()) {
        let outcome = run(fleet.run());
        match fleet.quota.algorithm() {
            // A sliding window promises this much, with leases and without.
            Algorithm::SlidingWindow => {
                prop_assert!(outcome.most_in_period(&fleet.quota) <= 2 * fleet.quota.units());
            }
            _ => prop_assert_eq!(outcome.first_over(&fleet.quota), None),
        }
    }
}
