//! Tests closing an instance with leases.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tower_quota_core::{Charge, Operation, Store};
use tower_quota_dev::simulation::{Network, VirtualClock, run};
use tower_quota_lease::{LeaseOptions, Leased};

use crate::server::Server;
use crate::{LIMIT, QUOTA, check, instance, key, make_hot, pass, stored_units};

/// A store behind a network, which records that it was closed.
struct Closable {
    network: Network<Server>,
    is_closed: Arc<AtomicBool>,
}

impl Store for Closable {
    type Error = <Network<Server> as Store>::Error;
    type Future = <Network<Server> as Store>::Future;

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        self.network.apply(operation, charges)
    }

    async fn close(&self, _: Duration) -> bool {
        self.is_closed.store(true, Ordering::Relaxed);
        true
    }
}

#[test]
fn store_inside_is_closed_also_without_refunds() {
    run(async {
        for is_cut in [false, true] {
            let (clock, is_closed) = (VirtualClock::start(), Arc::<AtomicBool>::default());
            let server = Arc::new(Server::new(clock.clone()));
            let network = Network::new(Arc::clone(&server), 1);
            let inside = Closable {
                network,
                is_closed: Arc::clone(&is_closed),
            };
            let store = Leased::with_clock(inside, LeaseOptions::default(), clock);
            let admitted = make_hot(&store, &QUOTA, 1).await;
            assert!(stored_units(&server, &QUOTA, 1).await > admitted);
            store.store().network.cut(is_cut);
            assert_eq!(store.close(Duration::from_millis(100)).await, !is_cut);
            assert!(is_closed.load(Ordering::Relaxed));
            assert_eq!(
                stored_units(&server, &QUOTA, 1).await == admitted,
                !is_cut,
                "the rest is returned"
            );
        }
    });
}

#[test]
fn closed_store_takes_no_leases() {
    run(async {
        let (server, store) = instance();
        assert!(store.close(Duration::from_secs(5)).await);
        let admitted = make_hot(&store, &QUOTA, 1).await;
        assert_eq!(
            (store.stats().by_lease, store.stats().by_store),
            (0, admitted)
        );
        assert_eq!(stored_units(&server, &QUOTA, 1).await, admitted);
    });
}

#[test]
fn unspent_units_return_when_lease_ends() {
    run(async {
        let (server, store) = instance();
        let admitted = make_hot(&store, &QUOTA, 1).await;
        pass(1_000).await;
        let stats = store.stats();
        assert_eq!(stored_units(&server, &QUOTA, 1).await, admitted);
        assert_eq!((stats.units_held, stats.units_lost), (0, 0));
        assert_eq!(stats.units_leased - stats.units_returned, stats.by_lease);
    });
}

#[test]
fn cut_network_loses_what_was_leased() {
    run(async {
        let (server, store) = instance();
        let admitted = make_hot(&store, &QUOTA, 1).await;
        store.store().cut(true);
        pass(3_000).await;
        let stats = store.stats();
        assert!(stats.units_lost > 0);
        assert_eq!(
            stored_units(&server, &QUOTA, 1).await,
            admitted + stats.units_lost
        );
    });
}

#[test]
fn cut_off_instance_spends_its_lease_only() {
    run(async {
        let (_, store) = instance();
        make_hot(&store, &QUOTA, 1).await;
        let held = store.stats().units_held;
        store.store().cut(true);
        let client = key(1);
        for number in 0..held {
            assert!(
                check(&store, &[Charge::new(LIMIT, &QUOTA, &client)])
                    .await
                    .is_allowed(),
                "{number} of {held}"
            );
        }
        assert!(
            store
                .check(&[Charge::new(LIMIT, &QUOTA, &client)])
                .await
                .is_err()
        );
    });
}
