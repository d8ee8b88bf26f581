//! Tests that instances admit nearly all of a quota, with few calls to the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tower_quota_core::{Charge, Key, MemoryStore, Operation, Quota, Store};
use tower_quota_dev::simulation::{Network, VirtualClock, run};
use tower_quota_lease::{LeaseOptions, Leased};

use crate::fleet::{Fleet, Outcome};
use crate::{LIMIT, key, pass};

/// Runs a fleet at a load in percent of the rate.
fn fleet(quota: Quota, instances: u64, load_percent: u64) -> Fleet {
    let rate = quota.units() * 1_000_000 / u64::try_from(quota.period().as_micros()).unwrap();
    let gap = instances * 100_000_000 / (rate * load_percent);
    // Run for at least two periods, because the units held at the end and the smaller burst do not
    // count for the rate.
    let (span, delay) = (
        (2 * quota.period()).max(Duration::from_secs(30)),
        Duration::from_millis(1),
    );
    Fleet {
        quota,
        instances,
        gap,
        most_units: 1,
        span,
        loss_percent: 0,
        delay,
        faults: false,
        floods: Vec::new(),
        seed: 7,
    }
}

/// Returns the admitted share of the admissible units, in thousandths.
fn admitted(fleet: &Fleet, outcome: &Outcome) -> u64 {
    let refilled = fleet.quota.units() * fleet.span.as_secs() / fleet.quota.period().as_secs();
    let possible = (fleet.quota.capacity() + refilled).min(outcome.offered);
    outcome.admitted_units() * 1_000 / possible
}

#[test]
fn steady_demand_gets_its_quota() {
    // Leases of the last quota last for half a second, the longest term.
    let quotas = [
        Quota::per_second(100),
        Quota::per_second(1_000),
        Quota::per_minute(6_000).burst(1_000),
    ];
    for quota in quotas {
        for instances in [1, 2, 4, 8] {
            for load in [50, 90, 150, 200, 400] {
                let fleet = fleet(quota, instances, load);
                let outcome = run(fleet.run());
                let share = admitted(&fleet, &outcome);
                assert!(
                    share >= 986,
                    "{quota:?}, {instances} instances, load {load} %: {share}"
                );
                assert_eq!(outcome.first_over(&fleet.quota), None);
            }
        }
    }
}

#[test]
fn burst_is_used_up_once() {
    for (instances, least) in [(1, 950), (2, 950), (4, 950), (8, 900)] {
        let fleet = Fleet {
            span: Duration::from_secs(2),
            ..fleet(Quota::per_second(200), instances, 200)
        };
        let outcome = run(fleet.run());
        // Leases give up a twentieth of the burst.
        assert!(
            admitted(&fleet, &outcome) >= least,
            "{instances} instances: {}",
            admitted(&fleet, &outcome)
        );
    }
}

#[test]
fn hot_client_calls_store_rarely() {
    for (instances, load, most_percent) in [
        (1, 50, 13),
        (1, 90, 8),
        (2, 90, 15),
        (1, 400, 10),
        (8, 400, 20),
    ] {
        let fleet = fleet(Quota::per_second(1_000), instances, load);
        let outcome = run(fleet.run());
        let percent = outcome.calls * 100 / outcome.requests;
        assert!(
            percent <= most_percent,
            "{instances} instances, load {load} %: {percent} % of the requests"
        );
    }
}

#[test]
fn cold_client_costs_no_further_calls() {
    let fleet = Fleet {
        gap: 200_000,
        ..fleet(Quota::per_second(1_000), 4, 50)
    };
    let outcome = run(fleet.run());
    assert_eq!(outcome.calls, outcome.requests);
}

#[test]
fn worst_load_gets_nine_tenths() {
    // Eight instances send bursts of 40 units, to a bucket that is just large enough for leases.
    let quota = Quota::per_second(100).burst(100);
    let fleet = Fleet {
        most_units: 40,
        gap: 800_000,
        ..fleet(quota, 8, 200)
    };
    let outcome = run(fleet.run());
    assert!(
        admitted(&fleet, &outcome) >= 900,
        "{}",
        admitted(&fleet, &outcome)
    );
}

/// Counts the operations on the key of all clients.
struct Counting {
    store: MemoryStore,
    about_everyone: AtomicU64,
}

impl Store for Counting {
    type Error = <MemoryStore as Store>::Error;
    type Future = <MemoryStore as Store>::Future;

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        let has_everyone = charges.iter().any(|charge| *charge.key() == Key::EVERYONE);
        self.about_everyone
            .fetch_add(u64::from(has_everyone), Ordering::Relaxed);
        self.store.apply(operation, charges)
    }
}

/// Sends requests of new clients through eight instances. Each request also takes a unit of a limit
/// for all.
#[test]
fn limit_for_everyone_is_no_hot_spot() {
    const INSTANCES: u64 = 8;
    const MILLIS: u64 = 3_000;
    const REQUESTS_PER_MILLI: u64 = 10;
    let (everyone, each) = (Quota::per_second(100_000), Quota::per_minute(60));
    let calls = run(async {
        let clock = VirtualClock::start();
        let store = MemoryStore::with_clock(1_000_000, clock.clone());
        let server = Arc::new(Counting {
            store,
            about_everyone: AtomicU64::new(0),
        });
        let tasks = (0..INSTANCES).map(|instance| {
            let network = Network::new(Arc::clone(&server), instance)
                .delays(Duration::from_micros(100)..Duration::from_millis(1));
            let store = Leased::with_clock(network, LeaseOptions::default(), clock.clone());
            tokio::spawn(async move {
                for milli in 0..MILLIS {
                    pass(1).await;
                    for request in 0..REQUESTS_PER_MILLI {
                        let (client, all) = (
                            key((instance << 40) + (milli << 20) + request),
                            Key::EVERYONE,
                        );
                        let charges = [
                            Charge::new("everyone", &everyone, &all),
                            Charge::new(LIMIT, &each, &client),
                        ];
                        tokio::spawn(store.check(&charges));
                    }
                }
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.unwrap();
        }
        server.about_everyone.load(Ordering::Relaxed)
    });
    let calls_per_second = calls * 1_000 / MILLIS / INSTANCES;
    assert!(
        calls_per_second <= 100,
        "{calls_per_second} calls a second of each instance"
    );
}
