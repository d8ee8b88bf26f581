//! The units that exact round trips would have admitted in addition, as an instance counts them.

use std::time::Duration;

use tower_quota_core::{Charge, Decision, Operation, Store};
use tower_quota_lease::Leased;
use tower_quota_testkit::simulation::run;
use tower_quota_testkit::{ManualClock, ScriptedStore};

use crate::refusals::{SECOND, refused_here};
use crate::{LIMIT, QUOTA, instance, key, make_hot, pass, stored_units};

fn refuse(store: &Leased<ScriptedStore, ManualClock>, charges: &[Charge<'_>], requests: u64) {
    for _ in 0..requests {
        let mut decision = Decision::default();
        assert!(
            store.check_at_once(charges, &mut decision) && !decision.is_allowed(),
            "{decision:?}"
        );
    }
}

/// Asks the store after a pause of a quarter of a lease, in which 13 ms refill two units.
#[test]
fn refusals_count_up_to_store_rest() {
    run(async {
        let client = key(1);
        let charges = [Charge::new(LIMIT, &SECOND, &client)];
        let (server, store) = refused_here(&charges).await;
        refuse(&store, &charges, 40);
        server.clock().advance(Duration::from_millis(13));
        assert!(store.check(&charges).await.unwrap().is_allowed());
        // Little is left: it may go to the next requests. Some of these are refused, too.
        refuse(&store, &charges, 3);
        assert_eq!(
            (
                store.stats().refused_here,
                store.stats().units_under_admitted
            ),
            (44, 0)
        );
        // The client asks no more.
        server.clock().advance(Duration::from_millis(101));
        assert_eq!(store.stats().units_under_admitted, 3);
        assert_eq!(store.stats().units_under_admitted, 3, "counted once");
    });
}

#[test]
fn refusals_count_once_store_has_enough() {
    run(async {
        let client = key(1);
        let charges = [Charge::new(LIMIT, &SECOND, &client).cost(2)];
        let (server, store) = refused_here(&charges).await;
        refuse(&store, &charges, 10);
        server
            .memory()
            .apply(Operation::Reset, &charges)
            .await
            .unwrap();
        server.clock().advance(Duration::from_millis(13));
        let (refused, before) = (
            store.stats().refused_here,
            store.stats().units_under_admitted,
        );
        assert!(store.check(&charges).await.unwrap().is_allowed());
        assert_eq!(
            (before, store.stats().units_under_admitted),
            (0, 2 * refused)
        );
    });
}

#[test]
fn returned_units_count_if_store_was_short() {
    run(async {
        for is_short in [false, true] {
            let (server, store) = instance();
            make_hot(&store, &QUOTA, 1).await;
            let held = store.stats().units_held;
            assert!(held > 0);
            if is_short {
                let rest = QUOTA.capacity() - stored_units(&server, &QUOTA, 1).await;
                assert!(
                    server
                        .check(&[Charge::new(LIMIT, &QUOTA, &key(1)).cost(rest)])
                        .await
                        .unwrap()
                        .is_allowed()
                );
            }
            pass(2_000).await;
            let stats = store.stats();
            assert_eq!(
                (stats.units_lost, stats.units_under_admitted),
                (0, if is_short { held } else { 0 }),
                "{stats:?}"
            );
        }
    });
}
