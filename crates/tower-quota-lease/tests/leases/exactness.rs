//! All instances together never exceed the quota, whatever is lost, cut off, paused or ends.

use std::time::Duration;

use proptest::prelude::*;
use tower_quota_core::{Algorithm, Quota};
use tower_quota_testkit::simulation::run;

use crate::fleet::Fleet;

fn quota() -> impl Strategy<Value = Quota> {
    let algorithms =
        prop::sample::select(Algorithm::ALL.into_iter().filter(|one| *one != Algorithm::LeakyBucket).collect::<Vec<_>>());
    let periods = prop::sample::select(vec![100_u64, 700, 1_000, 10_000, 60_000]);
    (20..2_000_u64, periods, algorithms, 20..3_000_u64).prop_map(|(units, period, algorithm, burst)| {
        let quota = Quota::new(units, Duration::from_millis(period)).try_algorithm(algorithm).unwrap();
        match algorithm {
            Algorithm::TokenBucket | Algorithm::Gcra => quota.try_burst(burst).unwrap(),
            _ => quota,
        }
    })
}

fn fleet() -> impl Strategy<Value = Fleet> {
    let load = (1..=8_u64, 200..30_000_u64, 1..4_u64);
    let network = (0..20_u8, 200..40_000_u64, any::<bool>());
    (quota(), load, network, any::<u64>()).prop_map(
        |(quota, (instances, gap, most_units), (loss_percent, delay, faults), seed)| Fleet {
            quota,
            instances,
            gap,
            most_units,
            span: Duration::from_secs(5),
            loss_percent,
            delay: Duration::from_micros(delay),
            faults,
            seed,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// The units are replayed on the limit's own quota at the instants at which they were spent. All of them must fit.
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
