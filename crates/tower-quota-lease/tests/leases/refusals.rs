//! Tests when an instance refuses leased keys without a call, and for how long.

use std::time::Duration;

use tower_quota_core::{
    BoxStore, Charge, Decision, Key, Operation, Outcome, Quota, RefusalCache, Store,
};
use tower_quota_dev::simulation::run;
use tower_quota_lease::{LeaseOptions, Leased};
use tower_quota_testkit::{ManualClock, ScriptedAnswer, ScriptedStore};

use crate::{LIMIT, QUOTA, check, instance, instance_with, key, make_hot, pass};

#[test]
fn crowd_at_empty_bucket_costs_few_calls() {
    run(async {
        let (_, store) = instance();
        let quota = Quota::per_second(200);
        let client = key(1);
        let (mut refused, mut millis) = (None, 0);
        for _ in 0..20_000 {
            let decision = check(&store, &[Charge::new(LIMIT, &quota, &client)]).await;
            if !decision.is_allowed() {
                refused = Some(decision);
                pass(1).await;
                millis += 1;
            }
        }
        // A lease of this quota lasts for 50 ms. A quarter of this time has one call for a lease or
        // a request, and a refund.
        let calls = store.store().calls();
        assert!(
            calls <= 2 * millis / 12 + 50,
            "{calls} calls in {millis} ms, {:?}",
            store.stats()
        );
        let refused = refused.unwrap();
        assert!(refused.retry_after().is_some_and(|wait| !wait.is_zero()));
        assert_eq!(refused.statuses()[0].remaining(), 0);
    });
}

#[test]
fn returned_units_end_refusals() {
    run(async {
        let (_, store) = instance();
        let quota = Quota::per_second(200);
        let client = key(1);
        let charges = [Charge::new(LIMIT, &quota, &client)];
        make_hot(&store, &quota, 1).await;
        let mut decision = Decision::default();
        let mut leased_at = None;
        // Refuse the client often enough that the cache remembers a refusal.
        while store.stats().refused_here < 10 {
            let by_lease = store.stats().by_lease;
            match store.check_at_once(&charges, &mut decision) {
                true if decision.is_allowed() && store.stats().by_lease > by_lease => {
                    leased_at = Some(decision.at())
                }
                true => {}
                false => drop(store.check(&charges).await.unwrap()),
            }
        }
        assert!(store.check_at_once(&charges, &mut decision) && !decision.is_allowed());
        store
            .apply(
                Operation::Refund {
                    taken_at: leased_at.unwrap(),
                },
                &charges,
            )
            .await
            .unwrap();
        assert!(
            store.check_at_once(&charges, &mut decision) && decision.is_allowed(),
            "{decision:?}"
        );
        assert!(
            store.check_at_once(&charges, &mut decision) && !decision.is_allowed(),
            "{decision:?}"
        );
    });
}

#[test]
fn refusals_of_long_ago_are_no_demand() {
    run(async {
        let (_, store) = instance();
        let quota = Quota::per_second(200);
        let client = key(1);
        let charge = Charge::new(LIMIT, &quota, &client);
        make_hot(&store, &quota, 1).await;
        // The cache answers most of these requests.
        while store.stats().refused_here < 1_000 {
            check(&store, &[charge]).await;
        }
        pass(3_600_000).await;
        for cost in [1, 20, 40, 60] {
            assert!(
                check(&store, &[charge.cost(cost)]).await.is_allowed(),
                "a cost of {cost}"
            );
        }
    });
}

/// Sends costs above the leased units, while the store has enough units.
#[test]
fn hot_client_of_mixed_costs_is_admitted() {
    run(async {
        let (_, store) = instance();
        let (quota, client) = (Quota::per_second(1_000), key(1));
        for _ in 0..5 {
            make_hot(&store, &quota, 1).await;
            for cost in [150; 3].into_iter().chain([1; 100]) {
                let decision =
                    check(&store, &[Charge::new(LIMIT, &quota, &client).cost(cost)]).await;
                assert!(decision.is_allowed(), "{decision:?}");
            }
            pass(1_000).await;
        }
    });
}

/// Waits for the retry time. A lease must not take the units that came back for the waiting
/// request.
#[test]
fn client_that_waits_is_admitted() {
    run(async {
        let options = LeaseOptions::default().longest(Duration::from_secs(1));
        let (_, store) = instance_with(
            options,
            Duration::from_micros(300)..Duration::from_micros(600),
        );
        let quota = Quota::per_second(400).burst(20_000);
        for _ in 0..5 {
            let refused = loop {
                let decision = check(&store, &[Charge::new(LIMIT, &quota, &key(1)).cost(20)]).await;
                if !decision.is_allowed() {
                    break decision;
                }
                pass(1).await;
            };
            let wait = refused.retry_after().unwrap().max(Duration::from_secs(1));
            pass(u64::try_from(wait.as_millis()).unwrap()).await;
            let decision = check(&store, &[Charge::new(LIMIT, &quota, &key(1)).cost(20)]).await;
            assert!(decision.is_allowed(), "{decision:?}");
        }
    });
}

#[test]
fn never_fitting_cost_has_no_retry_time() {
    run(async {
        let (_, store) = instance();
        let (quota, client) = (Quota::per_second(1_000), key(1));
        let charges = |units| [Charge::new(LIMIT, &quota, &client).cost(units)];
        for cost in [1, 20] {
            make_hot(&store, &quota, 1).await;
            // The store counts by a burst of 950 units. The instance refuses the last units with a
            // retry time.
            while check(&store, &charges(cost)).await.is_allowed() {}
            for _ in 0..5 {
                let refused = check(&store, &charges(951)).await;
                assert_eq!(refused.outcome(), Outcome::Never, "{refused:?}");
                assert!(check(&store, &charges(900)).await.retry_after().is_some());
                pass(1).await;
            }
        }
    });
}

#[test]
fn refused_large_cost_keeps_small_costs_admitted() {
    run(async {
        let (_, store) = instance();
        let client = key(1);
        make_hot(&store, &QUOTA, 1).await;
        let charges = |units| [Charge::new(LIMIT, &QUOTA, &client).cost(units)];
        assert!(check(&store, &charges(90_000)).await.is_allowed());
        assert!(!check(&store, &charges(90_000)).await.is_allowed());
        // Send more requests than leased units.
        for _ in 0..200 {
            assert!(check(&store, &charges(1)).await.is_allowed());
        }
    });
}

pub(crate) const SECOND: Quota = Quota::per_second(200);

/// Sends requests of a client of [`SECOND`] until the instance refuses without a call. Also returns
/// the inner store.
pub(crate) async fn refused_here(charges: &[Charge<'_>]) -> (ScriptedStore, Leased<ScriptedStore>) {
    let clock = ManualClock::default();
    let server = ScriptedStore::with_clock(clock.clone());
    let store = Leased::with_clock(server.clone(), LeaseOptions::default(), clock);
    server
        .memory()
        .check(&[charges[0].with_quota(&SECOND.burst(190)).cost(175)])
        .await
        .unwrap();
    while store.stats().refused_here == 0 {
        store.check(charges).await.unwrap();
        pass(1).await;
    }
    (server, store)
}

/// Fails calls before the last answer is old. The instance then passes the failures on.
#[test]
fn failed_call_ends_short_refusals() {
    run(async {
        let client = key(1);
        let charges = [Charge::new(LIMIT, &SECOND, &client)];
        let (server, store) = refused_here(&charges).await;
        server.set_default(ScriptedAnswer::error("gone"));
        server.clock().advance(Duration::from_millis(13));
        // The instance may refuse the first request in favour of a lease, which fails.
        let _ = store.check(&charges).await;
        pass(1).await;
        for _ in 0..5 {
            let mut decision = Decision::default();
            assert!(
                !store.check_at_once(&charges, &mut decision),
                "{decision:?}"
            );
            assert!(store.check(&charges).await.is_err());
        }
    });
}

/// Drops a request. The instance still refuses others by the store's last answer.
#[test]
fn cancelled_request_keeps_short_refusals() {
    run(async {
        let client = key(1);
        let charges = [Charge::new(LIMIT, &SECOND, &client)];
        let (server, store) = refused_here(&charges).await;
        server.set_default(ScriptedAnswer::memory().held());
        // The first call fetches a lease. The store holds the answer, so the second call is an
        // exact round trip.
        for _ in 0..2 {
            server.clock().advance(Duration::from_millis(13));
            drop(store.check(&charges));
        }
        let (asked, mut decision) = (server.operations().len(), Decision::default());
        assert!(
            store.check_at_once(&charges, &mut decision) && !decision.is_allowed(),
            "{decision:?}"
        );
        assert_eq!(server.operations().len(), asked);
    });
}

#[test]
fn refusal_shows_store_time_and_rest() {
    run(async {
        let (server, store) = instance();
        let quota = Quota::per_second(1_000);
        let client = key(1);
        assert!(
            check(&store, &[Charge::new(LIMIT, &quota, &client).cost(950)])
                .await
                .is_allowed()
        );
        let refused = check(&store, &[Charge::new(LIMIT, &quota, &client).cost(40)]).await;
        assert!(!refused.is_allowed());
        assert!(refused.statuses()[0].remaining() < 40, "{refused:?}");
        for _ in 0..3_000 {
            let decision = check(&store, &[Charge::new(LIMIT, &quota, &client)]).await;
            // The retry time is exact to the delay of a message.
            assert!(
                decision.at() <= server.now() + Duration::from_millis(2),
                "{decision:?}"
            );
        }
    });
}

#[test]
fn slow_quota_is_used_up_before_refusal() {
    run(async {
        let (_, store) = instance();
        for (number, quota) in [
            (1, Quota::per_hour(100)),
            (2, Quota::per_hour(100).fixed_window()),
        ] {
            let (client, mut admitted) = (key(number), 0);
            let refused = loop {
                let decision = check(&store, &[Charge::new(LIMIT, &quota, &client)]).await;
                if !decision.is_allowed() {
                    break decision;
                }
                admitted += 1;
            };
            assert!(admitted >= 95, "{admitted}, {refused:?}");
        }
    });
}

#[test]
fn cache_around_leases_remembers_other_limits() {
    run(async {
        let (server, client) = (ScriptedStore::new(), key(1));
        let clock = server.clock().clone();
        let leased = Leased::with_clock(server.clone(), LeaseOptions::default(), clock.clone());
        let cache = RefusalCache::with_clock(leased, clock);
        let (slow, fast) = (Quota::per_minute(6), Quota::per_second(200));
        for (quota, remembered) in [(fast, 0), (slow, 1)] {
            let charge = Charge::new(LIMIT, &quota, &client).cost(quota.capacity() * 3 / 4);
            for is_allowed in [true, false, false] {
                let decision = cache.check(&[charge]).await.unwrap();
                assert_eq!(decision.is_allowed(), is_allowed);
            }
            assert_eq!(cache.stats().remembered, remembered);
            assert_eq!(cache.stats().answered, remembered);
        }
    });
}

/// Reads the refusal for an outage before the answer, because the caller may give up before the store fails.
#[test]
fn cache_around_leases_knows_their_refusals() {
    run(async {
        let quota = Quota::per_hour(600);
        for quota in [quota, quota.fixed_window(), quota.sliding_window()] {
            let (_, store) = instance();
            let cache = RefusalCache::new(BoxStore::new(store.clone()));
            let (client, other) = (key(1), key(2));
            let charges = [Charge::new(LIMIT, &quota, &client).cost(400)];
            assert!(check(&cache, &charges).await.is_allowed());
            let refused = check(&cache, &charges).await;
            let wait = refused
                .retry_after()
                .unwrap_or_else(|| panic!("{refused:?}"));
            let wait = u64::try_from(wait.as_millis()).unwrap();
            store.store().cut(true);
            pass(100_000).await;
            let (_answer, known) = cache.send(&charges);
            let known = known.unwrap().retry_after().unwrap();
            // The retry time is exact to the delay of a message.
            let left = Duration::from_millis(wait - 100_000);
            assert!(known.abs_diff(left) < Duration::from_millis(3), "{known:?}");
            let (_answer, known) = cache.send(&[Charge::new(LIMIT, &quota, &other)]);
            assert_eq!(known, None);
            pass(wait - 100_000 + 3).await;
            let (_answer, known) = cache.send(&charges);
            assert_eq!(known, None, "the promised wait is over");
        }
    });
}

/// Sends too few requests for a lease, like a client of a slow quota.
#[test]
fn refused_client_without_leases_costs_few_calls() {
    run(async {
        let (_, store) = instance();
        let (slow, everyone) = (Quota::per_hour(600), Quota::per_second(10_000));
        let (client, all) = (key(1), Key::EVERYONE);
        make_hot(&store, &everyone, 2).await;
        for charges in [
            vec![Charge::new(LIMIT, &slow, &client)],
            // The units of this limit come from leases.
            vec![
                Charge::new(LIMIT, &everyone, &key(2)),
                Charge::new("hour", &Quota::per_hour(20), &all),
            ],
        ] {
            while check(&store, &charges).await.is_allowed() {}
            let calls = store.store().calls();
            for _ in 0..20 {
                assert!(!check(&store, &charges).await.is_allowed());
                pass(50).await;
            }
            let calls = store.store().calls() - calls;
            assert!(calls <= 15, "{calls} calls");
        }
    });
}

#[test]
fn outage_releases_no_refused_client() {
    run(async {
        let (_, store) = instance();
        let (quota, client, other) = (Quota::per_hour(200), key(1), key(2));
        let charges = [Charge::new(LIMIT, &quota, &client).cost(150)];
        assert!(check(&store, &charges).await.is_allowed());
        assert!(!check(&store, &charges).await.is_allowed());
        store.store().cut(true);
        pass(30_000).await;
        assert!(!check(&store, &charges).await.is_allowed());
        let others = [Charge::new(LIMIT, &quota, &other)];
        assert!(store.check(&others).await.is_err());
    });
}
