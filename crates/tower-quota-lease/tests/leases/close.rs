//! The end of an instance, and of its leases.

use std::time::Duration;

use tower_quota_core::{Charge, Quota, Store};
use tower_quota_testkit::simulation::run;

use crate::{LIMIT, check, instance, key, make_hot, pass, stored_units};

/// Leased by its own numbers: nothing is refilled, and the units that are counted can be compared.
const QUOTA: Quota = Quota::per_hour(100_000).fixed_window();

#[test]
fn close_returns_unspent_units() {
    run(async {
        let (server, store) = instance();
        let admitted = make_hot(&store, &QUOTA, 1).await;
        assert!(store.stats().units_held > 0);
        assert!(stored_units(&server, &QUOTA, 1).await > admitted);
        assert!(store.close(Duration::from_secs(5)).await);
        assert_eq!(stored_units(&server, &QUOTA, 1).await, admitted);
        assert_eq!(store.stats().units_held, 0);
    });
}

#[test]
fn closed_store_takes_no_leases() {
    run(async {
        let (server, store) = instance();
        assert!(store.close(Duration::from_secs(5)).await);
        let admitted = make_hot(&store, &QUOTA, 1).await;
        assert_eq!((store.stats().by_lease, store.stats().by_store), (0, admitted));
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
        assert_eq!(stored_units(&server, &QUOTA, 1).await, admitted + stats.units_lost);
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
            assert!(check(&store, &[Charge::new(LIMIT, &QUOTA, &client)]).await.is_allowed(), "{number} of {held}");
        }
        assert!(store.check(&[Charge::new(LIMIT, &QUOTA, &client)]).await.is_err());
    });
}
