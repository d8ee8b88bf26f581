//! Tests that all instances together never exceed the quota, despite lost calls, partitions, pauses
//! and crashes.

use std::ops::Range;
use std::time::Duration;

use proptest::bool;
use proptest::prelude::*;
use tower_quota_core::{Algorithm, Operation, Quota};
use tower_quota_dev::simulation::run;

use crate::audit::audit;
use crate::fleet::Fleet;
use crate::mixed::{Flood, MOST_UNITS, Mixed};
use crate::recorder::Call;

/// Draws quotas with leases. A bucket is soon full again after a lease.
fn quota() -> impl Strategy<Value = Quota> {
    let periods = prop::sample::select(vec![700_u64, 1_000, 2_000]);
    (
        100..1_000_u64,
        periods,
        leasable_algorithm(),
        100..1_500_u64,
    )
        .prop_map(|(units, period, algorithm, burst)| {
            with_burst(
                Quota::new(units, Duration::from_millis(period))
                    .try_algorithm(algorithm)
                    .unwrap(),
                burst,
            )
        })
}

fn leasable_algorithm() -> impl Strategy<Value = Algorithm> {
    let algorithms = Algorithm::ALL
        .into_iter()
        .filter(|one| ![Algorithm::LeakyBucket, Algorithm::Concurrent].contains(one));
    prop::sample::select(algorithms.collect::<Vec<_>>())
}

/// Sets the burst of a bucket. Windows have none.
fn with_burst(quota: Quota, burst: u64) -> Quota {
    match quota.algorithm() {
        Algorithm::TokenBucket | Algorithm::Gcra => quota.try_burst(burst).unwrap(),
        _ => quota,
    }
}

/// Draws floods after calm times, when the instances hold leases and the quota is nearly full.
///
/// An excess would come from leases of the calm that are spent in the flood, in addition to all
/// units in the store. Floods therefore begin at any time, often just after the start of a window,
/// and may last for a period.
fn floods(quota: Quota) -> impl Strategy<Value = Vec<Range<Duration>>> {
    let period = u64::try_from(quota.period().as_millis()).unwrap();
    let flood = (
        0..3_u64,
        any::<bool>(),
        0..period,
        prop_oneof![Just(3_u64), 1..period + 100],
    );
    prop::collection::vec(flood, 1..4).prop_map(move |floods| {
        let floods = floods
            .into_iter()
            .map(|(window, is_at_start, within, lasts)| {
                let start = (window + 1) * period + if is_at_start { within % 20 } else { within };
                Duration::from_millis(start)..Duration::from_millis(start + lasts)
            });
        floods.collect()
    })
}

fn fleet() -> impl Strategy<Value = Fleet> {
    // In the calm, send few enough requests that the quota stays full, and enough for leases.
    let load = (1..=6_u64, 1_500..12_000_u64, 1..4_u64);
    let network = (0..5_u8, 200..6_000_u64, bool::weighted(0.3));
    let with_floods = quota().prop_flat_map(|quota| (Just(quota), floods(quota)));
    (with_floods, load, network, any::<u64>()).prop_map(
        |((quota, floods), (instances, gap, most_units), (loss_percent, delay, faults), seed)| {
            Fleet {
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
            }
        },
    )
}

/// Draws a quota with leases, for which this many units per second are a load of some 15 to 100 %.
fn loaded_quota(units_per_second: u64) -> impl Strategy<Value = Quota> {
    let periods = prop::sample::select(vec![700_u64, 1_000, 2_000, 2_000]);
    (periods, leasable_algorithm(), 15..100_u64, 60..200_u64).prop_map(
        move |(period, algorithm, load, burst)| {
            let units = (units_per_second * period / 10 / load).clamp(200, 2_000);
            let quota = Quota::new(units, Duration::from_millis(period))
                .try_algorithm(algorithm)
                .unwrap();
            with_burst(quota, units * burst / 100)
        },
    )
}

/// Draws fleets whose requests have several limits on two keys, costs, refunds and resets.
///
/// A lease lasts for 7 to 200 ms. A third of the networks are so slow that answers may come after
/// the end of the lease.
fn mixed_in_calm() -> impl Strategy<Value = Mixed> {
    (1..=4_u64, 1_000..6_000_u64).prop_flat_map(|(instances, gap)| {
        let quota = || loaded_quota(instances * 1_000_000 * MOST_UNITS / 2 / gap);
        let quotas = (
            [quota(), quota(), quota()],
            prop::sample::select(vec![20_u64, 500, 500]),
        );
        let delay = prop_oneof![2 => 200..3_000_u64, 1 => 3_000..60_000_u64];
        let network = (delay, prop_oneof![3 => Just(0_u8), 1 => 1..5_u8]);
        let requests = (
            prop::sample::select(vec![7_u8, 7, 7, 3, 5, 6]),
            prop_oneof![Just(0_u8), 1..8_u8],
            any::<bool>(),
        );
        (quotas, network, requests, any::<u64>()).prop_map(
            move |(
                (quotas, longest),
                (delay, loss_percent),
                (limits, refund_percent, resets),
                seed,
            )| Mixed {
                quotas,
                longest: Duration::from_millis(longest),
                instances,
                gap,
                limits,
                span: Duration::from_secs(5),
                delay: Duration::from_micros(delay),
                loss_percent,
                floods: Vec::new(),
                refund_percent,
                resets,
                seed,
            },
        )
    })
}

/// Adds floods. Some floods repeat when the units of the first flood leave a log.
fn mixed() -> impl Strategy<Value = Mixed> {
    mixed_in_calm().prop_flat_map(|fleet| {
        // With several limits, the smallest limit refuses.
        let limits = prop::sample::select(vec![1_u8, 2, 4, 1, 2, 4, 1, 2, 4, 3, 5, 6, 7]);
        let client = prop_oneof![4 => Just(0_u64), 1 => Just(1)];
        let quotas = fleet.quotas;
        let flood =
            (limits, client, any::<bool>()).prop_flat_map(move |(limits, client, is_repeated)| {
                let quota = quotas[limits.trailing_zeros() as usize];
                floods(quota).prop_map(move |times| {
                    let again = times.iter().filter(|_| is_repeated).map(|time| {
                        let (start, around) =
                            (time.start + quota.period(), Duration::from_millis(20));
                        start - around..start + around
                    });
                    let times = again.chain(times.iter().cloned());
                    times
                        .map(|time| Flood {
                            time,
                            client,
                            limits,
                        })
                        .collect::<Vec<_>>()
                })
            });
        let with_floods = (Just(fleet), prop::collection::vec(flood, 1..3));
        with_floods.prop_map(|(fleet, floods)| Mixed {
            floods: floods.concat(),
            ..fleet
        })
    })
}

/// Returns this part of the usual number of cases, because each case is seconds of a fleet.
fn cases(part: u32) -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig {
        cases: usual.cases / part,
        failure_persistence: None,
        ..usual
    }
}

proptest! {
    #![proptest_config(cases(2))]

    /// Replays the units on the limit's own quota, at the instants at which they were spent. All
    /// units must fit.
    #[test]
    fn spent_units_fit_into_quota(fleet in fleet()) {
        let outcome = run(fleet.run());
        match fleet.quota.algorithm() {
            // A sliding window promises this bound, with or without leases.
            Algorithm::SlidingWindow => {
                prop_assert!(outcome.most_in_period(&fleet.quota) <= 2 * fleet.quota.units());
            }
            _ => prop_assert_eq!(outcome.first_over(&fleet.quota), None),
        }
    }
}

proptest! {
    #![proptest_config(cases(3))]

    /// Audits requests of several limits, keys and costs, with refunds, resets and late answers.
    #[test]
    fn mixed_requests_fit_into_quotas(fleet in mixed()) {
        let run = run(fleet.run());
        prop_assert_eq!(audit(&fleet, &run), Ok(()));
    }
}

/// Returns a fleet with leases, refunds and resets.
fn usual_fleet() -> Mixed {
    let quota = Quota::per_second(1_000);
    Mixed {
        quotas: [quota, quota.fixed_window(), quota.sliding_log()],
        longest: Duration::from_millis(500),
        instances: 2,
        gap: 3_000,
        limits: 7,
        span: Duration::from_secs(5),
        delay: Duration::from_millis(2),
        loss_percent: 0,
        floods: Vec::new(),
        refund_percent: 7,
        resets: true,
        seed: 1,
    }
}

/// Compares whole runs, because a failure that its seed does not repeat cannot be explained.
#[test]
fn same_seed_repeats_run() {
    let time = Duration::from_millis(1_000)..Duration::from_millis(1_500);
    let fleet = Mixed {
        delay: Duration::from_millis(20),
        loss_percent: 1,
        floods: vec![Flood {
            time,
            client: 0,
            limits: 2,
        }],
        ..usual_fleet()
    };
    let first = format!("{:?}", run(fleet.run()));
    for _ in 0..3 {
        assert!(format!("{:?}", run(fleet.run())) == first);
    }
}

/// Covers the whole audit with leases, refunds, resets, and units spent without the store.
#[test]
fn mixed_requests_cover_whole_audit() {
    let fleet = usual_fleet();
    let run = run(fleet.run());
    assert_eq!(audit(&fleet, &run), Ok(()));
    let calls = |is_of: &dyn Fn(&Call) -> bool| run.calls.iter().filter(|call| is_of(call)).count();
    let leases = calls(&|call| call.caller.request.is_none() && call.operation == Operation::Check);
    let returned = calls(&|call| {
        call.caller.request.is_none() && matches!(call.operation, Operation::Refund { .. })
    });
    let refunds = calls(&|call| {
        call.caller.request.is_some() && matches!(call.operation, Operation::Refund { .. })
    });
    let resets = calls(&|call| call.operation == Operation::Reset);
    let was_decided = |id| {
        run.calls
            .iter()
            .any(|call| call.caller.request == Some(id) && call.operation == Operation::Check)
    };
    let spent_here = run
        .admitted
        .iter()
        .filter(|request| !was_decided(request.id))
        .count();
    let least = [leases, returned, refunds, resets, spent_here]
        .into_iter()
        .min();
    assert!(
        least > Some(0),
        "{leases} leases, {returned} returned, {refunds} refunds, {resets} resets, {spent_here} here"
    );
}
