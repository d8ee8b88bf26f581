//! Tests leases on the runtimes of the requests that fetched them.

use std::time::Duration;

use tokio::runtime::Runtime;
use tower_quota_core::{Charge, MemoryStore, Quota};
use tower_quota_lease::{LeaseOptions, LeaseStats, Leased};
use tower_quota_testkit::ManualClock;

use crate::{LIMIT, check, key};

/// A quota that the requests of a test never exhaust.
const QUOTA: Quota = Quota::per_hour(10_000_000_000).fixed_window();

type Store = Leased<MemoryStore>;

/// Makes a store with leases of 5 ms. After a lost lease, the store fetches no lease for 80 ms.
fn store() -> Store {
    Leased::with_options(
        MemoryStore::new(),
        LeaseOptions::default().longest(Duration::from_millis(5)),
    )
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap()
}

async fn ask(store: &Store) {
    assert!(
        check(store, &[Charge::new(LIMIT, &QUOTA, &key(1))])
            .await
            .is_allowed()
    );
}

/// Sends requests on a new runtime, which ends soon after two leases.
fn use_leases(store: &Store) -> LeaseStats {
    let before = store.stats().renewals;
    let asking = async {
        while store.stats().renewals < before + 2 {
            ask(store).await;
            tokio::task::yield_now().await;
        }
    };
    // Wait far longer than a call for a lease may take.
    let asked =
        runtime().block_on(async { tokio::time::timeout(Duration::from_secs(30), asking).await });
    assert!(asked.is_ok(), "no lease was taken");
    store.stats()
}

#[test]
fn leases_survive_their_runtime() {
    let store = store();
    let mut by_lease = 0;
    for _ in 0..6 {
        let stats = use_leases(&store);
        assert!(stats.by_lease > by_lease);
        by_lease = stats.by_lease;
    }
}

#[test]
fn units_of_ended_runtime_are_lost() {
    let store = store();
    for _ in 0..6 {
        let stats = use_leases(&store);
        assert_eq!(stats.units_held, 0, "{stats:?}");
        assert_eq!(
            stats.units_leased,
            stats.by_lease + stats.units_returned + stats.units_lost,
            "{stats:?}"
        );
    }
}

/// Sends a hundred requests on a new runtime. Returns the number of leases so far.
fn ask_often(store: &Leased<MemoryStore>) -> u64 {
    runtime().block_on(async {
        for _ in 0..100 {
            assert!(
                check(store, &[Charge::new(LIMIT, &QUOTA, &key(1))])
                    .await
                    .is_allowed()
            );
            tokio::task::yield_now().await;
        }
    });
    store.stats().renewals
}

#[test]
fn lost_lease_pauses_later_ones() {
    let (term, clock) = (Duration::from_millis(500), ManualClock::default());
    let options = LeaseOptions::default().longest(term);
    let store = Leased::with_clock(
        MemoryStore::with_clock(10, clock.clone()),
        options,
        clock.clone(),
    );
    let before = ask_often(&store);
    assert!(store.stats().units_lost > 0);
    clock.advance(term * 15);
    assert_eq!(ask_often(&store), before);
    clock.advance(term);
    assert!(ask_often(&store) > before);
}

#[test]
fn unsent_lease_loses_no_units() {
    let clock = ManualClock::default();
    let options = LeaseOptions::default().longest(Duration::from_millis(500));
    let inner = MemoryStore::with_clock(10, clock.clone());
    let store = Leased::with_clock(inner, options, clock);
    runtime().block_on(async {
        // The 64th request fetches a lease of 48 units. When half of them are spent, the next lease is due, and its
        // task never runs.
        for _ in 0..100 {
            ask(&store).await;
        }
    });
    let stats = store.stats();
    assert_eq!((stats.renewals, stats.units_leased), (1, 48), "{stats:?}");
    assert_eq!(stats.units_lost, 48 - stats.by_lease, "{stats:?}");
}

#[test]
fn still_runtime_ends_no_leases_of_others() {
    let (store, still) = (store(), runtime());
    still.block_on(async {
        for _ in 0..100 {
            ask(&store).await;
        }
    });
    // The task still waits for a lease, but no longer than a call may take.
    assert!(use_leases(&store).by_lease > 0);
    drop(still);
}
