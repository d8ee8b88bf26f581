//! Tests clients with evicted entries, and clients that never had an entry.

use std::time::Duration;

use tower_quota_core::{
    Algorithm, Charge, Decision, Entry, Key, MemoryStore, Name, Operation, Penalty, Quota, Store,
};
use tower_quota_testkit::block_on;

use crate::{CLIENT, LIMIT, ask, check, left, store};

/// Checks one unit of each of three limits for the client of this number.
fn ask_all(store: &MemoryStore, client: u64) -> Decision {
    const LIMITS: [(Name, Quota); 3] = [
        (Name::new("minute"), Quota::per_minute(2)),
        (Name::new("hour"), Quota::per_hour(3)),
        (Name::new("day"), Quota::per_day(4)),
    ];
    let key = Key::number(CLIENT, client);
    check(
        store,
        &LIMITS
            .each_ref()
            .map(|(name, quota)| Charge::new(*name, quota, &key)),
    )
}

#[test]
fn evicted_client_stays_limited_by_several() {
    let (store, _) = store(300);
    let limited = 0..300;
    for client in limited.clone() {
        while ask_all(&store, client).is_allowed() {}
    }
    // Limit more clients, so that the store evicts entries.
    for client in 1_000..1_300 {
        while ask_all(&store, client).is_allowed() {}
    }
    assert!(store.evicted() >= 290);
    let released = limited
        .filter(|&client| ask_all(&store, client).is_allowed())
        .count();
    assert_eq!(released, 0);
}

/// Covers a request with one limit twice, which no policy makes.
#[test]
fn same_limit_twice_is_counted_twice() {
    let (store, clock) = store(10);
    let quota = Quota::per_minute(10);
    let key = Key::number(CLIENT, 1);
    let twice = [
        Charge::new(LIMIT, &quota, &key),
        Charge::new(LIMIT, &quota, &key),
    ];
    let mut model = Entry::default();
    for step in 0..20 {
        assert_eq!(
            check(&store, &twice),
            model.decide(Operation::Check, &twice, store.now()),
            "{step}"
        );
        clock.advance(Duration::from_secs(1));
    }
}

const BURST: Quota = Quota::per_second(1);
const DAY: Quota = Quota::per_day(10_000);

/// Checks one unit of a limit per second, and one unit of a limit per day.
fn ask_both(store: &MemoryStore, client: u64) -> Decision {
    let key = Key::number(CLIENT, client);
    check(
        store,
        &[
            Charge::new("burst", &BURST, &key),
            Charge::new("day", &DAY, &key),
        ],
    )
}

#[test]
fn evicted_client_waits_for_spent_limit_only() {
    let (store, clock) = store(1);
    assert!(ask_both(&store, 0).is_allowed());
    clock.advance(Duration::from_millis(100));
    assert!(!ask_both(&store, 0).is_allowed());
    assert!(ask_both(&store, 1).is_allowed());
    assert_eq!(store.stats().evicted_limited, 1);
    let refused = ask_both(&store, 0);
    assert!(
        refused
            .retry_after()
            .is_some_and(|retry| retry <= Duration::from_millis(900)),
        "{refused:?}"
    );
    assert_eq!(refused.statuses()[1].remaining(), 10_000);
    // Wait exactly as long as the decision said.
    clock.advance(refused.retry_after().unwrap());
    assert!(ask_both(&store, 0).is_allowed());
    clock.advance(Duration::from_secs(60));
    let admitted = ask_both(&store, 0);
    assert!(admitted.is_allowed());
    assert!(admitted.statuses()[1].remaining() >= 9_998);
}

/// Covers a limit that is new to the row, and was spent before the row existed.
#[test]
fn spent_limit_is_remembered_with_a_row() {
    let (store, clock) = store(1);
    let (own, other) = (Quota::per_hour(1), Quota::per_hour(50));
    let key = Key::number(CLIENT, 0);
    let [own, other] = [
        Charge::new("own", &own, &key),
        Charge::new("other", &other, &key),
    ];
    assert!(check(&store, &[own]).is_allowed());
    ask(&store, &Quota::per_hour(1), 1, 1);
    clock.advance(Duration::from_secs(1));
    assert!(check(&store, &[other]).is_allowed());
    assert!(!check(&store, &[own, other]).is_allowed());
    assert!(!check(&store, &[own]).is_allowed());
}

#[test]
fn evicted_windows_stay_spent_until_they_end() {
    let minute = Quota::per_minute(5);
    // The instants of this quota are not multiples of a power of two.
    let odd = Quota::new(5, Duration::from_micros(9_000_001));
    for quota in [
        odd.fixed_window(),
        odd.sliding_window(),
        odd.sliding_log(),
        minute.fixed_window(),
        minute.fixed_window().from_first_request(),
        minute.sliding_log(),
        minute.sliding_window(),
    ] {
        let (store, clock) = store(1);
        clock.advance(Duration::from_secs(13));
        assert!(ask(&store, &quota, 0, 5).is_allowed());
        let retry = ask(&store, &quota, 0, 1).retry_after().unwrap();
        ask(&store, &Quota::per_day(1), 1, 1);
        assert_eq!(store.stats().filter_hits, 0);
        assert!(!ask(&store, &quota, 0, 1).is_allowed(), "{quota:?}");
        assert!(store.stats().filter_hits > 0, "{quota:?}");
        clock.advance(retry);
        assert!(ask(&store, &quota, 0, 1).is_allowed(), "{quota:?}");
    }
}

/// Lets a client return to a full store just before the promised retry, and at the promised retry.
#[test]
fn spent_client_stays_spent_until_its_retry() {
    // The store rounds the remembered instants down to this step.
    let step = Duration::from_micros(128);
    let quotas = [
        Quota::per_minute(1),
        Quota::per_hour(1),
        Quota::per_minute(2),
        Quota::per_minute(10),
        Quota::per_minute(100),
        // The instants of this quota are not multiples of a power of two.
        Quota::new(7, Duration::from_micros(9_000_001)),
    ];
    let of_all_algorithms = quotas
        .iter()
        .flat_map(|quota| Algorithm::ALL.map(|algorithm| quota.try_algorithm(algorithm).unwrap()));
    for quota in of_all_algorithms {
        for phase in 0..40 {
            let (store, clock) = store(1);
            clock.advance(quota.period() * phase / 19);
            // Some clients use their units at once, others little faster than their quota.
            let pause = quota.period() * (phase % 4) / 4 / u32::try_from(quota.units()).unwrap();
            let retry = loop {
                match ask(&store, &quota, 0, 1).retry_after() {
                    Some(retry) if retry > step => break retry,
                    _ => clock.advance(pause),
                }
            };
            ask(&store, &Quota::per_day(1), 1, 1);
            clock.advance(retry - step);
            let early = ask(&store, &quota, 0, 1);
            assert!(!early.is_allowed(), "{phase}, {quota:?}: {early:?}");
            clock.advance(step);
            // The retry time of a hold is a guess.
            let is_hold = quota.algorithm() == Algorithm::Concurrent;
            assert!(
                is_hold || ask(&store, &quota, 0, 1).is_allowed(),
                "{phase}, {quota:?}"
            );
        }
    }
}

#[test]
fn peek_of_evicted_client_writes_nothing() {
    let (store, _) = store(1);
    let quota = Quota::per_hour(1);
    (0..2).for_each(|client| drop(ask(&store, &quota, client, 1)));
    let key = Key::number(CLIENT, 0);
    let before = store.stats();
    for charge in [
        Charge::new(LIMIT, &quota, &key),
        Charge::new(LIMIT, &quota, &key).shadow(),
    ] {
        let peeked = block_on(store.apply(Operation::Peek, &[charge])).unwrap();
        assert_eq!(peeked.statuses()[0].remaining(), 0);
    }
    assert!(!ask(&store, &quota, 0, 1).is_allowed());
    assert_eq!(left(&store, &quota, 0), 0);
    let mut after = store.stats();
    assert!(after.filter_hits > before.filter_hits);
    after.filter_hits = before.filter_hits;
    assert_eq!(after, before);
}

#[test]
fn reset_releases_evicted_client() {
    let (store, _) = store(1);
    let quota = Quota::per_hour(1);
    (0..2).for_each(|client| drop(ask(&store, &quota, client, 1)));
    let key = Key::number(CLIENT, 0);
    block_on(store.apply(Operation::Reset, &[Charge::new(LIMIT, &quota, &key)])).unwrap();
    assert!(ask(&store, &quota, 0, 1).is_allowed());
}

/// Uses a new quota that gives a unit back sooner than the old quota.
#[test]
fn evicted_client_waits_by_the_new_quota() {
    let (store, clock) = store(1);
    (0..2).for_each(|client| drop(ask(&store, &Quota::per_day(1), client, 1)));
    let quota = Quota::per_second(5);
    assert_eq!(
        ask(&store, &quota, 0, 1).retry_after(),
        Some(Duration::from_millis(200))
    );
    clock.advance(Duration::from_millis(199));
    assert!(!ask(&store, &quota, 0, 1).is_allowed());
    clock.advance(Duration::from_millis(1));
    assert!(ask(&store, &quota, 0, 1).is_allowed());
}

#[test]
fn evicted_debt_is_cut_once() {
    for is_model in [false, true] {
        let (store, clock) = store(1);
        let (quota, key) = (Quota::per_second(10), Key::number(CLIENT, 0));
        let charge = Charge::new(LIMIT, &quota, &key);
        // Use a charge that counts refusals for the model, which decides such charges.
        let asked = if is_model {
            charge.count_refusals()
        } else {
            charge
        };
        let ask_again = || block_on(store.check(&[asked])).unwrap();
        block_on(store.apply(Operation::Charge, &[charge.cost(1_000)])).unwrap();
        ask(&store, &Quota::per_day(1), 1, 1);
        let evicted = store.evicted();
        for peek in [Operation::Peek, Operation::Check] {
            let cost = u64::from(peek == Operation::Peek);
            block_on(store.apply(peek, &[asked.cost(cost)])).unwrap();
            assert_eq!(store.evicted(), evicted, "{peek:?} writes nothing");
        }
        let retry = ask_again().retry_after().unwrap();
        assert_eq!(retry, Duration::from_millis(100));
        clock.advance(retry);
        assert!(ask_again().is_allowed(), "model: {is_model}");
    }
}

#[test]
fn evicted_fading_window_stays_spent() {
    let (store, clock) = store(1);
    let quota = Quota::per_minute(10).sliding_window();
    clock.advance(Duration::from_secs(59));
    assert!(ask(&store, &quota, 0, 10).is_allowed());
    clock.advance(Duration::from_secs(7));
    assert!(ask(&store, &quota, 0, 1).is_allowed());
    clock.advance(Duration::from_secs(1));
    assert_eq!(
        ask(&store, &quota, 0, 1).retry_after(),
        Some(Duration::from_secs(5))
    );
    ask(&store, &Quota::per_day(1), 1, 1);
    clock.advance(Duration::from_secs(1));
    assert!(!ask(&store, &quota, 0, 10).is_allowed());
    assert!(!ask(&store, &quota, 0, 1).is_allowed());
    clock.advance(Duration::from_secs(4));
    assert!(ask(&store, &quota, 0, 1).is_allowed());
}

#[test]
fn reset_forgets_evicted_strikes() {
    const PENALTY: Penalty = Penalty::after(1).step(Duration::from_secs(60));
    let (store, _) = store(1);
    let (quota, key) = (Quota::per_hour(1), Key::number(CLIENT, 0));
    let blocked = [Charge::new(LIMIT, &quota, &key).penalty(&PENALTY)];
    for _ in 0..30 {
        let _ = block_on(store.check(&blocked)).unwrap();
    }
    ask(&store, &Quota::per_day(1), 1, 1);
    block_on(store.apply(Operation::Reset, &[Charge::new(LIMIT, &quota, &key)])).unwrap();
    assert!(block_on(store.check(&blocked)).unwrap().is_allowed());
}

#[test]
fn evicted_blocked_client_stays_blocked() {
    const PENALTY: Penalty = Penalty::after(1).step(Duration::from_secs(60));
    let (store, clock) = store(1);
    let (quota, key) = (Quota::per_hour(1), Key::number(CLIENT, 0));
    let blocked = [Charge::new(LIMIT, &quota, &key).penalty(&PENALTY)];
    for _ in 0..30 {
        let _ = block_on(store.check(&blocked)).unwrap();
    }
    let before = block_on(store.check(&[blocked[0].cost(0)]))
        .unwrap()
        .statuses()[0]
        .reset_after();
    assert!(before > Duration::from_secs(20 * 60));
    assert!(ask(&store, &Quota::per_day(1), 1, 1).is_allowed());
    clock.advance(Duration::from_secs(600));
    let decision = block_on(store.apply(Operation::Peek, &blocked)).unwrap();
    assert!(!decision.is_allowed(), "{decision:?}");
}

#[test]
fn evicted_strikes_block_until_their_end() {
    const PENALTY: Penalty = Penalty::after(1).step(Duration::from_secs(60));
    let step = Duration::from_micros(128);
    let (store, clock) = store(1);
    // The limit itself has its unit back after a second.
    let (quota, key) = (Quota::per_second(1), Key::number(CLIENT, 0));
    let charge = [Charge::new(LIMIT, &quota, &key).penalty(&PENALTY)];
    for _ in 0..30 {
        check(&store, &charge);
    }
    let peek = || block_on(store.apply(Operation::Peek, &charge)).unwrap();
    let blocked = peek().retry_after().unwrap();
    assert_eq!(blocked, Duration::from_secs(28 * 60));
    ask(&store, &Quota::per_day(1), 1, 1);
    clock.advance(blocked - step);
    let early = peek();
    assert!(!early.is_allowed(), "{early:?}");
    clock.advance(step);
    assert!(peek().is_allowed());
}

/// Uses a new quota of windows that gives units back sooner than the old quota.
#[test]
fn evicted_window_waits_once_by_new_quota() {
    let (store, clock) = store(1);
    let old = Quota::per_hour(1).fixed_window();
    (0..2).for_each(|client| drop(ask(&store, &old, client, 1)));
    let quota = Quota::per_second(5).fixed_window();
    let retry = ask(&store, &quota, 0, 1).retry_after().unwrap();
    clock.advance(retry);
    assert!(ask(&store, &quota, 0, 1).is_allowed());
}

#[test]
fn evicted_holds_are_not_granted_again() {
    let (store, clock) = store(1);
    let uploads = Quota::concurrent(3);
    assert!(ask(&store, &uploads, 0, 2).is_allowed());
    ask(&store, &Quota::per_day(1), 1, 1);
    assert_eq!(store.evicted(), 1);
    clock.advance(Duration::from_secs(2));
    assert!(!ask(&store, &uploads, 0, 2).is_allowed());
    clock.advance(Duration::from_secs(58));
    assert!(ask(&store, &uploads, 0, 3).is_allowed());
}

/// Checks that a peek by a status page keeps a limited client limited.
#[test]
fn peek_keeps_refused_client_limited() {
    let (store, _) = store(32);
    let quota = Quota::per_hour(10);
    assert!(ask(&store, &quota, 0, 9).is_allowed());
    assert!(!ask(&store, &quota, 0, 5).is_allowed());
    let key = Key::number(CLIENT, 0);
    block_on(store.apply(Operation::Peek, &[Charge::new(LIMIT, &quota, &key)])).unwrap();
    for fresh in 1..300 {
        for _ in 0..5 {
            ask(&store, &quota, fresh, 1);
        }
    }
    assert!(!ask(&store, &quota, 0, 5).is_allowed());
}
