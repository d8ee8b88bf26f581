//! Places and the evicted filter, between threads.

use std::sync::Arc;

use loom::thread;

use super::store;
use crate::charge::Charge;
use crate::decision::Decision;
use crate::key::Key;
use crate::memory::MemoryStore;
use crate::memory::capacity::Capacity;
use crate::memory::contention::history::key;
use crate::quota::Quota;
use crate::store::Store;
use crate::sync::every_order;

/// A quota that one request spends: a store that evicts the entry has to remember that its client is limited.
const ONE: Quota = Quota::per_hour(1);

fn is_admitted(store: &MemoryStore, client: usize) -> bool {
    let key: Key<'_> = key(client);
    let Ok(decision) = store.check(&[Charge::new("one", &ONE, &key)]).into_inner();
    Decision::is_allowed(&decision)
}

/// Returns a client in another table than client 0.
fn client_in_other_table(store: &MemoryStore) -> usize {
    let table = |client| store.inner.table_of(store.hash(&key(client)));
    (10..).find(|&client| table(client) != table(0)).unwrap()
}

#[test]
fn place_is_claimed_once() {
    every_order("places", || {
        let capacity = Arc::new(Capacity::new(1, 1));
        let claims = [capacity.clone(), capacity.clone()]
            .map(|capacity| thread::spawn(move || capacity.claim()));
        let claimed = claims.map(|claim| claim.join().unwrap());
        assert_eq!((claimed[0] != claimed[1], capacity.taken()), (true, 1));
    });
    every_order("places given back", || {
        let capacity = Arc::new(Capacity::new(1, 1));
        assert!(capacity.claim());
        let claim = thread::spawn({
            let capacity = capacity.clone();
            move || capacity.claim()
        });
        capacity.release(1);
        let claimed = claim.join().unwrap();
        assert_eq!(capacity.taken(), usize::from(claimed));
    });
}

/// Asserts that two new clients share one place.
#[test]
fn capacity_holds_and_releases_no_client() {
    every_order("new clients for one place", || {
        let store = store(1);
        let other = thread::spawn({
            let store = store.clone();
            move || (is_admitted(&store, 1), store.len())
        });
        assert!(is_admitted(&store, 0));
        assert!(store.len() <= 1);
        assert_eq!(other.join().unwrap(), (true, 1));
        assert_eq!((store.len(), store.evicted()), (1, 1));
        assert!(
            ![0, 1]
                .map(|client| is_admitted(&store, client))
                .contains(&true)
        );
    });
}

/// Asserts that two new clients share the last place, each with a table of its own.
#[test]
fn capacity_holds_across_tables() {
    every_order("new clients in two tables", || {
        let store = store(2);
        let far = client_in_other_table(&store);
        assert!(is_admitted(&store, 3));
        let other = thread::spawn({
            let store = store.clone();
            move || (is_admitted(&store, far), store.len() <= 2)
        });
        assert!(is_admitted(&store, 0));
        assert!(store.len() <= 2);
        assert_eq!(other.join().unwrap(), (true, true));
        assert!(store.len() <= 2);
        assert!(
            ![0, far, 3]
                .map(|client| is_admitted(&store, client))
                .contains(&true)
        );
    });
}

#[test]
fn evicted_client_stays_limited() {
    every_order("eviction under a check", || {
        let store = store(1);
        assert!(is_admitted(&store, 0));
        let other = thread::spawn({
            let store = store.clone();
            move || is_admitted(&store, 1)
        });
        assert!(!is_admitted(&store, 0));
        assert!(other.join().unwrap());
        assert!(!is_admitted(&store, 0));
        assert_eq!(store.len(), 1);
    });
}

#[test]
fn cleared_entry_gives_place_back_once() {
    every_order("clear under a check", || {
        let store = store(2);
        assert!(is_admitted(&store, 0));
        let other = thread::spawn({
            let store = store.clone();
            move || is_admitted(&store, 1)
        });
        store.clear();
        assert!(other.join().unwrap());
        // The other one came before or after.
        let left = store.len();
        assert!(is_admitted(&store, 0));
        assert_eq!(is_admitted(&store, 1), left == 0);
        assert_eq!(store.len(), 2);
    });
}
