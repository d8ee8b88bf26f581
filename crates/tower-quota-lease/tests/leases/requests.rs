//! Tests requests with several limits and keys, costs, refunds, resets, peeks and changed quotas.

use std::time::Duration;

use tower_quota_core::{
    Charge, ChargeMode, Clock, Decision, Key, MemoryStore, Operation, Penalty, Quota, Store,
};
use tower_quota_dev::simulation::{self, VirtualClock, run};
use tower_quota_lease::{LeaseOptions, Leased};

use crate::{
    CLIENT, Instance, LIMIT, QUOTA, check, instance, instance_over, key, make_hot, pass,
    stored_units,
};

#[test]
fn several_limits_are_leased_in_one_call() {
    run(async {
        let (_, store) = instance();
        let (minute, client) = (Quota::per_minute(50_000), key(1));
        let charges = [
            Charge::new("minute", &minute, &client),
            Charge::new("hour", &QUOTA, &client).cost(2),
        ];
        for _ in 0..100 {
            assert!(check(&store, &charges).await.is_allowed());
            pass(2).await;
        }
        let stats = store.stats();
        assert!(stats.by_lease > 60, "{stats:?}");
        // A call for a lease carries both limits, so calls are fewer than leases.
        assert!(
            store.store().calls() < stats.by_store + stats.renewals + 10,
            "{stats:?}"
        );
    });
}

#[test]
fn request_without_charges_calls_store() {
    run(async {
        let (server, store) = instance();
        let decision = check(&store, &[]).await;
        assert!(decision.is_allowed());
        assert!(decision.at() <= server.now(), "{}", decision.at());
    });
}

#[test]
fn leased_and_cold_limits_charge_together() {
    run(async {
        let (server, store) = instance();
        let (everyone, all) = (QUOTA, Key::EVERYONE);
        for number in 0..200 {
            let client = key(number);
            let charges = [
                Charge::new("everyone", &everyone, &all),
                Charge::new(LIMIT, &QUOTA, &client),
            ];
            let decision = check(&store, &charges).await;
            assert!(decision.is_allowed());
            assert_eq!(decision.statuses()[0].name.as_str(), "everyone");
            assert_eq!(decision.statuses()[1].taken, 1);
            pass(1).await;
        }
        assert!(store.stats().renewals > 0);
        assert!(store.close(Duration::from_secs(1)).await);
        let counted = server
            .check(&[Charge::new("everyone", &everyone, &Key::EVERYONE).cost(0)])
            .await
            .unwrap();
        assert_eq!(counted.statuses()[0].remaining(), 100_000 - 200);
        assert_eq!(stored_units(&server, &QUOTA, 199).await, 1);
    });
}

/// Refunds one limit of a request. The other limit has leases in requests of its own.
#[test]
fn settled_log_with_hot_limit_is_refunded() {
    run(async {
        let (server, store) = instance();
        let (log, client, all) = (Quota::per_hour(5).sliding_log(), key(9), Key::EVERYONE);
        make_hot_everyone(&store, &QUOTA).await;
        for _ in 0..20 {
            let charges = [
                Charge::new("everyone", &QUOTA, &all),
                Charge::new(LIMIT, &log, &client).refundable(),
            ];
            let mut decision = check(&store, &charges).await;
            assert!(decision.is_allowed());
            store
                .apply(decision.refund().unwrap(), &charges[1..])
                .await
                .unwrap();
            pass(1).await;
        }
        assert!(store.close(Duration::from_secs(1)).await);
        assert_eq!(stored_units(&server, &log, 9).await, 0);
        let counted = server
            .check(&[Charge::new("everyone", &QUOTA, &all).cost(0)])
            .await
            .unwrap();
        assert_eq!(counted.statuses()[0].remaining(), QUOTA.capacity() - 80);
    });
}

/// Refunds a charge that the reset of another instance has forgotten. Virtual time stands still.
#[test]
fn refund_across_reset_returns_no_units() {
    run(async {
        for quota in [Quota::per_hour(100).sliding_log(), Quota::per_hour(100)] {
            let (server, _) = instance();
            let client = key(1);
            let charge = Charge::new(LIMIT, &quota, &client).refundable();
            let mut forgotten = server.check(&[charge.cost(10)]).await.unwrap();
            server.apply(Operation::Reset, &[charge]).await.unwrap();
            server.check(&[charge.cost(5)]).await.unwrap();
            let refund = forgotten.refund().unwrap();
            server.apply(refund, &[charge.cost(10)]).await.unwrap();
            assert_eq!(stored_units(&server, &quota, 1).await, 5, "{quota:?}");
        }
    });
}

#[test]
fn refused_key_puts_leased_units_back() {
    run(async {
        let (server, store) = instance();
        let (everyone, one) = (QUOTA, Quota::per_hour(1));
        let (client, all) = (key(9), Key::EVERYONE);
        make_hot_everyone(&store, &everyone).await;
        let charges = [
            Charge::new("everyone", &everyone, &all),
            Charge::new(LIMIT, &one, &client),
        ];
        assert!(check(&store, &charges).await.is_allowed());
        for _ in 0..5 {
            let refused = check(&store, &charges).await;
            assert!(!refused.is_allowed());
            assert_eq!(
                (refused.statuses()[0].taken, refused.statuses()[1].taken),
                (0, 0)
            );
        }
        assert!(store.close(Duration::from_secs(1)).await);
        let counted = server
            .check(&[Charge::new("everyone", &everyone, &Key::EVERYONE).cost(0)])
            .await
            .unwrap();
        assert_eq!(counted.statuses()[0].remaining(), 100_000 - 61);
    });
}

async fn make_hot_everyone(store: &impl Store, quota: &Quota) {
    for _ in 0..60 {
        assert!(
            check(store, &[Charge::new("everyone", quota, &Key::EVERYONE)])
                .await
                .is_allowed()
        );
        pass(2).await;
    }
}

#[test]
fn refund_returns_units_to_lease_or_store() {
    run(async {
        let (server, store) = instance();
        let admitted = make_hot(&store, &QUOTA, 1).await;
        let client = key(1);
        let charges = [Charge::new(LIMIT, &QUOTA, &client)];
        let held = store.stats().units_held;
        let mut decision = Decision::default();
        assert!(store.check_at_once(&charges, &mut decision));
        assert_eq!(store.stats().units_held, held - 1);
        let refund = decision.refund().unwrap();
        store.apply(refund, &charges).await.unwrap();
        assert_eq!(store.stats().units_held, held);

        assert!(store.check_at_once(&charges, &mut decision));
        pass(1_000).await;
        assert_eq!(stored_units(&server, &QUOTA, 1).await, admitted + 1);
        store
            .apply(decision.refund().unwrap(), &charges)
            .await
            .unwrap();
        assert!(stored_units(&server, &QUOTA, 1).await <= admitted + 1);
    });
}

/// Sends a settled request and the call for a lease at the same instant, so that the store charges both at the same
/// instant.
#[test]
fn settled_units_return_to_store_despite_lease() {
    run(async {
        for quota in [QUOTA, Quota::per_hour(1_000).sliding_log()] {
            let (server, store) =
                instance_over(Duration::from_micros(300)..Duration::from_micros(301));
            let client = key(1);
            let charge = Charge::new(LIMIT, &quota, &client);
            let mut admitted = 0;
            for _ in 0..60 {
                let settled = tokio::spawn(store.check(&[charge.refundable()]));
                admitted += u64::from(check(&store, &[charge]).await.is_allowed());
                let refund = settled.await.unwrap().unwrap().refund().unwrap();
                // The lease arrives before the refund.
                pass(1).await;
                store.apply(refund, &[charge.refundable()]).await.unwrap();
                pass(1).await;
            }
            let stats = store.stats();
            assert!(stats.by_lease > 0, "{stats:?}");
            assert!(store.close(Duration::from_secs(1)).await);
            assert_eq!(
                stored_units(&server, &quota, 1).await,
                admitted,
                "{quota:?}"
            );
        }
    });
}

/// Refunds requests that wait or settle, while other requests of the limit use leases.
#[test]
fn waiting_request_is_refunded_during_leases() {
    run(async {
        let (_, store) = instance();
        // Use a slow quota, so that the effect of a conversion shows before it is refilled.
        let quota = Quota::per_hour(1_000_000).burst(10_000);
        let client = key(1);
        let plain = Charge::new(LIMIT, &quota, &client);
        for request in [plain.refundable(), plain.max_wait(Duration::from_secs(1))] {
            make_hot(&store, &quota, 1).await;
            let mut decision = store.check(&[request.cost(4_000)]).await.unwrap();
            assert!(store.check(&[plain.cost(500)]).await.unwrap().is_allowed());
            let before = store
                .apply(Operation::Peek, &[plain])
                .await
                .unwrap()
                .statuses()[0]
                .remaining();
            let refunded = store
                .apply(decision.refund().unwrap(), &[request.cost(4_000)])
                .await
                .unwrap();
            let after = refunded.statuses()[0].remaining();
            assert!(after >= before + 3_900, "{before}, {after}");
        }
    });
}

#[test]
fn reset_forgets_leases() {
    run(async {
        let (server, store) = instance();
        make_hot(&store, &QUOTA, 1).await;
        let client = key(1);
        store
            .apply(Operation::Reset, &[Charge::new(LIMIT, &QUOTA, &client)])
            .await
            .unwrap();
        assert_eq!(store.stats().units_held, 0);
        pass(500).await;
        assert_eq!(stored_units(&server, &QUOTA, 1).await, 0);
    });
}

#[test]
fn remaining_is_lower_bound() {
    run(async {
        let (_, store) = instance();
        let admitted = make_hot(&store, &QUOTA, 1).await;
        let client = key(1);
        let peek = store
            .apply(Operation::Peek, &[Charge::new(LIMIT, &QUOTA, &client)])
            .await
            .unwrap();
        let status = peek.statuses()[0];
        assert_eq!(status.limit, QUOTA.capacity());
        let possible = QUOTA.capacity() - admitted;
        assert!(
            status.remaining() <= possible && status.remaining() + 60 >= possible,
            "{status:?}"
        );
        let mut decision = Decision::default();
        assert!(store.check_at_once(&[Charge::new(LIMIT, &QUOTA, &client)], &mut decision));
        assert!(decision.statuses()[0].remaining() < possible);
    });
}

#[test]
fn changed_quota_is_leased_anew() {
    run(async {
        let (server, store) = instance();
        let admitted = make_hot(&store, &QUOTA, 1).await;
        let larger = Quota::per_hour(200_000).fixed_window();
        let more = make_hot(&store, &larger, 1).await;
        assert!(store.close(Duration::from_secs(1)).await);
        assert_eq!(stored_units(&server, &larger, 1).await, admitted + more);
    });
}

#[test]
fn exact_and_unleasable_charges_call_store() {
    run(async {
        let (_, store) = instance();
        let penalty = Penalty::after(3);
        let (client, queue, tiny) = (
            key(1),
            Quota::per_hour(90_000).leaky_bucket(),
            Quota::per_second(10),
        );
        let log = Quota::new(100, Duration::from_millis(200)).sliding_log();
        let charges = [
            Charge::new("exact", &QUOTA, &client).exact(),
            Charge::new("penalty", &QUOTA, &client).penalty(&penalty),
            Charge::new("refusals", &QUOTA, &client).count_refusals(),
            Charge::new("settled", &QUOTA, &client).refundable(),
            Charge::new("queue", &queue, &client),
            Charge::new("tiny", &tiny, &client),
            Charge::new("log", &log, &client),
        ];
        for charge in charges {
            for _ in 0..20 {
                let mut decision = Decision::default();
                assert!(!store.check_at_once(&[charge], &mut decision), "{charge:?}");
                store.check(&[charge]).await.unwrap();
                pass(1).await;
            }
        }
        let stats = store.stats();
        assert_eq!(
            (stats.by_lease, stats.renewals, stats.units_leased),
            (0, 0, 0)
        );
        assert_eq!(store.store().calls(), stats.by_store);
    });
}

#[test]
fn only_lasting_or_large_demand_is_leased() {
    run(async {
        // A lease lasts for 50 ms. The rest of a burst's lease would be missing in the store until
        // then.
        let quota = Quota::per_second(1_000);
        for (requests, is_leased) in [(40, false), (100, true)] {
            let (_, store) = instance();
            for _ in 0..5 {
                for _ in 0..requests {
                    tokio::spawn(store.check(&[Charge::new(LIMIT, &quota, &key(1))]));
                }
                pass(200).await;
            }
            let stats = store.stats();
            assert_eq!(
                stats.renewals > 0,
                is_leased,
                "bursts of {requests}: {stats:?}"
            );
        }
        let (_, store) = instance();
        make_hot(&store, &quota, 1).await;
        assert!(store.stats().by_lease > 20, "{:?}", store.stats());
    });
}

#[test]
fn observed_keys_are_bounded() {
    run(async {
        let store = Leased::with_options(MemoryStore::new(), LeaseOptions::default().keys(128));
        for number in 0..5_000 {
            let client = Key::number(CLIENT, number);
            assert!(
                check(&store, &[Charge::new(LIMIT, &QUOTA, &client)])
                    .await
                    .is_allowed()
            );
        }
        assert!(store.stats().keys <= 128, "{:?}", store.stats());
    });
}

#[test]
fn store_outside_runtime_is_exact() {
    let (store, hundred) = (
        Leased::new(MemoryStore::new()),
        Quota::per_hour(100).fixed_window(),
    );
    for left in (0..100).rev() {
        let client = key(1);
        let decided = store.check(&[Charge::new(LIMIT, &hundred, &client)]);
        let decision = tower_quota_testkit::block_on(decided).unwrap();
        assert!(decision.is_allowed());
        assert_eq!(decision.statuses()[0].remaining(), left);
    }
    assert_eq!((store.stats().by_lease, store.stats().by_store), (0, 100));
    assert!(tower_quota_testkit::block_on(
        store.close(Duration::from_secs(1))
    ));
}

#[test]
fn calendar_lease_ends_with_its_window() {
    run(async {
        let quota = Quota::per_day(100_000).calendar("Asia/Kolkata").unwrap();
        let clock = VirtualClock::start();
        let (server, store) = instance();
        // The clock starts at midnight, and the day ends at 18:30.
        let (day, last) = (Duration::from_secs(66_600), Duration::from_millis(300));
        let border = clock.now() + day;
        simulation::pass(day - last).await;
        make_hot(&store, &quota, 1).await;
        let (client, mut next_day) = (key(1), 0);
        while clock.now() < border + last {
            let is_next_day = clock.now() >= border;
            let decision = check(&store, &[Charge::new(LIMIT, &quota, &client)]).await;
            next_day += u64::from(is_next_day && decision.is_allowed());
            pass(1).await;
        }
        assert!(store.stats().by_lease > 100, "{:?}", store.stats());
        assert!(store.close(Duration::from_secs(1)).await);
        // The instance holds no units now. The store counted all units that the instance spent on
        // the next day, and the units of a call in flight at the border.
        let counted = stored_units(&server, &quota, 1).await;
        assert!(next_day > 100, "{next_day} admitted");
        assert!(
            (next_day..=next_day + 2).contains(&counted),
            "{next_day} admitted, {counted} counted"
        );
    });
}

/// Resets a client during a call for a lease. The store has then forgotten the charge of the lease.
#[test]
fn reset_drops_lease_under_way() {
    run(async {
        for delay in 0..60 {
            let (server, store) = instance();
            make_hot(&store, &QUOTA, 1).await;
            let client = key(1);
            let charges = [Charge::new(LIMIT, &QUOTA, &client)];
            let mut decision = Decision::default();
            for _ in 0..8 {
                store.check_at_once(&charges, &mut decision);
            }
            simulation::pass(Duration::from_micros(delay * 10)).await;
            let reset = store.apply(Operation::Reset, &charges);
            let next = store.check(&charges);
            reset.await.unwrap();
            next.await.unwrap();
            pass(3).await;
            let (held, counted) = (
                store.stats().units_held,
                stored_units(&server, &QUOTA, 1).await,
            );
            assert!(
                held <= counted,
                "{held} held, {counted} counted, after {delay}"
            );
        }
    });
}

#[test]
fn cut_off_instance_reaches_store_error() {
    run(async {
        let (_, store) = instance();
        let quota = Quota::per_second(200);
        let client = key(1);
        let charges = [Charge::new(LIMIT, &quota, &client)];
        for request in 0..600 {
            check(&store, &charges).await;
            if request % 3 == 0 {
                pass(1).await;
            }
        }
        store.store().cut(true);
        // After the time of two leases, the last answer of the store is too old.
        pass(100).await;
        for _ in 0..1_000 {
            let mut decision = Decision::default();
            assert!(
                !store.check_at_once(&charges, &mut decision),
                "{decision:?}"
            );
            tokio::spawn(store.check(&charges));
            pass(1).await;
        }
    });
}

/// Sends 5,000 requests without waiting for answers, five after each pause. Returns the number of
/// admitted requests.
async fn ask_in_parallel(store: &Instance, quota: &Quota, pause: Duration) -> u64 {
    let mut answers = Vec::new();
    for _ in 0..1_000 {
        answers.extend(
            (0..5).map(|_| tokio::spawn(store.check(&[Charge::new(LIMIT, quota, &key(1))]))),
        );
        simulation::pass(pause).await;
    }
    let mut admitted = 0;
    for answer in answers {
        admitted += u64::from(answer.await.unwrap().unwrap().is_allowed());
    }
    admitted
}

/// Uses answers after 200 to 800 ms, while a lease lasts for 500 ms.
#[test]
fn late_lease_is_refunded() {
    run(async {
        let (server, store) = instance_over(Duration::from_millis(100)..Duration::from_millis(400));
        let admitted = ask_in_parallel(&store, &QUOTA, Duration::from_millis(25)).await;
        let leased = store.stats();
        assert!(leased.renewals > 10 && leased.by_lease > 100, "{leased:?}");
        assert!(store.close(Duration::from_secs(5)).await);
        assert_eq!(
            (
                store.stats().units_lost,
                stored_units(&server, &QUOTA, 1).await
            ),
            (0, admitted)
        );
    });
}

#[test]
fn lease_shorter_than_call_is_not_taken() {
    run(async {
        let (_, store) = instance_over(Duration::from_millis(3)..Duration::from_millis(4));
        // A lease of this quota lasts for 5 ms.
        let quota = Quota::per_second(10_000).burst(1_000);
        let admitted = ask_in_parallel(&store, &quota, Duration::from_millis(1)).await;
        let stats = store.stats();
        assert_eq!(
            (admitted, stats.by_store, stats.renewals),
            (5_000, 5_000, 0),
            "{stats:?}"
        );
    });
}

#[test]
fn holds_are_exact() {
    run(async {
        let (_, store) = instance();
        make_hot(&store, &QUOTA, 1).await;
        let (client, two) = (key(1), Quota::concurrent(2));
        let hold = Charge::new("holds", &two, &client);
        let before = store.stats().by_store;
        let both = [Charge::new(LIMIT, &QUOTA, &client), hold];
        let mut taken = check(&store, &both).await;
        assert!(check(&store, &both).await.is_allowed());
        assert!(!check(&store, &both).await.is_allowed());
        let taken_at = taken.at();
        let renew = Operation::Renew { taken_at };
        let renewed = store.apply(renew, &[hold]).await.unwrap();
        assert_eq!(renewed.statuses()[0].taken, 1);
        let refund = taken.refund().unwrap();
        let released = store.apply(refund, &[hold]).await.unwrap();
        assert_eq!(released.statuses()[0].remaining(), 1);
        assert_eq!(store.stats().by_store, before + 3);
    });
}

#[test]
fn forced_charges_are_exact() {
    run(async {
        let (server, store) = instance();
        make_hot(&store, &QUOTA, 1).await;
        let client = key(1);
        let before = store.stats().by_store;
        // Another limit refuses, and the store still takes the forced units.
        let minute = Quota::per_minute(1);
        let forced = [
            Charge::new("minute", &minute, &client),
            Charge::new(LIMIT, &QUOTA, &client)
                .cost(7)
                .in_mode(ChargeMode::Forced),
        ];
        let units = stored_units(&server, &QUOTA, 1).await;
        for _ in 0..2 {
            check(&store, &forced).await;
        }
        assert_eq!(stored_units(&server, &QUOTA, 1).await, units + 14);
        assert_eq!(store.stats().by_store, before + 2);
    });
}
