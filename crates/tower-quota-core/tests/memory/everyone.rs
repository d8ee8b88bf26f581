//! Tests requests with a limit for all clients and a limit for each client, decided in two rows.

use std::time::Duration;

use tower_quota_core::{Charge, Decision, Entry, Key, MemoryStore, Operation, Quota, decide};

use crate::{CLIENT, LIMIT, ask, check, left, store};

const EVERYONE: &str = "everyone";
const HOUR: Quota = Quota::per_hour(3);
const MANY: Quota = Quota::per_hour(1_000_000);

/// Checks `cost` units of a client, and one unit of everyone.
fn ask_both(store: &MemoryStore, client: u64, cost: u64, everyone: &Quota) -> Decision {
    let (key, all) = (Key::number(CLIENT, client), Key::EVERYONE);
    check(
        store,
        &[
            Charge::new(LIMIT, &HOUR, &key).cost(cost),
            Charge::new(EVERYONE, everyone, &all),
        ],
    )
}

/// Uses up the limit of everyone.
fn exhaust(store: &MemoryStore, everyone: &Quota) {
    let all = Key::EVERYONE;
    while check(store, &[Charge::new(EVERYONE, everyone, &all)]).is_allowed() {}
}

#[test]
fn row_of_everyone_needs_no_table() {
    let ((everyone, _), (client, _)) = (store(10), store(10));
    check(&everyone, &[Charge::new(LIMIT, &HOUR, &Key::EVERYONE)]);
    ask(&client, &HOUR, 1, 1);
    let (everyone, client) = (everyone.stats(), client.stats());
    assert_eq!((everyone.entries, client.entries), (1, 1));
    assert!(everyone.bytes < client.bytes, "{everyone:?} {client:?}");
}

#[test]
fn evicted_client_stays_refused_by_own_limit() {
    let (store, _) = store(1);
    assert!(ask_both(&store, 0, 3, &MANY).is_allowed());
    ask(&store, &HOUR, 1, 1);
    assert_eq!(store.stats().evicted_limited, 1);
    let everyone = Quota::per_second(1);
    exhaust(&store, &everyone);
    let refused = ask_both(&store, 0, 1, &everyone);
    assert!(
        refused.retry_after() > Some(Duration::from_secs(60)),
        "{refused:?}"
    );
    assert_eq!(refused.statuses()[0].remaining(), 0);
}

#[test]
fn least_used_client_is_evicted_first() {
    let (store, clock) = store(2);
    assert!(ask_both(&store, 0, 1, &MANY).is_allowed());
    assert!(ask_both(&store, 0, 1, &MANY).is_allowed());
    // The bucket of this client is full later than the bucket of client 0.
    clock.advance(Duration::from_secs(1));
    assert!(ask_both(&store, 1, 2, &MANY).is_allowed());
    assert!(ask_both(&store, 2, 1, &MANY).is_allowed());
    assert_eq!(
        (
            left(&store, &HOUR, 0),
            left(&store, &HOUR, 1),
            left(&store, &HOUR, 2)
        ),
        (1, 3, 2)
    );
}

/// Covers two refused clients with units left. One exceeded its own limit, and the other met
/// everyone's limit.
#[test]
fn client_refused_by_its_own_limit_stays() {
    let (store, _) = store(2);
    // The evicted client was used more often.
    for client in [0, 1, 1] {
        assert!(ask_both(&store, client, 1, &MANY).is_allowed());
    }
    assert!(!ask_both(&store, 0, 3, &MANY).is_allowed());
    let everyone = Quota::per_hour(1);
    exhaust(&store, &everyone);
    assert!(!ask_both(&store, 1, 1, &everyone).is_allowed());
    ask(&store, &HOUR, 2, 1);
    assert_eq!((left(&store, &HOUR, 0), left(&store, &HOUR, 1)), (2, 3));
}

#[test]
fn clear_forgets_limit_of_everyone() {
    let (store, clock) = store(10);
    let new = store.stats();
    let (log, all) = (Quota::per_day(1_000).sliding_log(), Key::EVERYONE);
    for _ in 0..1_000 {
        assert!(check(&store, &[Charge::new(EVERYONE, &log, &all)]).is_allowed());
        clock.advance(Duration::from_micros(1));
    }
    let full = store.stats();
    assert_eq!((full.entries, full.definitions), (1, 0));
    assert!(full.bytes >= 16_000, "{full:?}");
    assert!(!check(&store, &[Charge::new(EVERYONE, &log, &all)]).is_allowed());
    store.clear();
    assert_eq!(store.stats(), new);
    assert!(check(&store, &[Charge::new(EVERYONE, &log, &all)]).is_allowed());
}

/// Covers a request with one limit twice, which no policy makes, of a new and of a known client.
#[test]
fn repeated_limit_is_decided_like_model() {
    for everyone in [Quota::per_hour(1), MANY] {
        let (store, clock) = store(10);
        let (key, all) = (Key::number(CLIENT, 0), Key::EVERYONE);
        check(&store, &[Charge::new(EVERYONE, &everyone, &all)]);
        let own = Charge::new(LIMIT, &HOUR, &key);
        let charges = [own, own, Charge::new(EVERYONE, &everyone, &all)];
        let (mut client, mut both) = (Entry::default(), Entry::default());
        both.decide(Operation::Check, &charges[2..], store.now());
        for step in 0..5 {
            let mut entries = [&mut client, &mut both];
            let expected = decide(
                Operation::Check,
                &charges,
                store.now(),
                &mut entries,
                |charge| charge / 2,
            );
            assert_eq!(check(&store, &charges), expected, "{everyone:?}, {step}");
            clock.advance(Duration::from_secs(500));
        }
    }
}

/// Uses a new quota for each new client, so that the store drops the definitions of unused quotas.
#[test]
fn new_clients_leave_few_definitions() {
    let (store, _) = store(20);
    for client in 0..5_000 {
        let (quota, key, all) = (
            Quota::per_hour(10 + client),
            Key::number(CLIENT, client),
            Key::EVERYONE,
        );
        let charges = [
            Charge::new(LIMIT, &quota, &key),
            Charge::new(EVERYONE, &MANY, &all),
        ];
        assert!(check(&store, &charges).is_allowed());
    }
    assert!(store.stats().definitions < 500, "{:?}", store.stats());
}
