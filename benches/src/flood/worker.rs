//! One scene.

use std::error::Error;
use std::time::Duration;

use tollgate_core::{Charge, Key, MemoryStore, Name, Quota, Store};

use super::latencies::Latencies;
use super::waits::Waits;
use crate::child;

/// So slow that nobody earns anything back within a scene.
const QUOTA: Quota = Quota::new(1_000, Duration::from_secs(30 * 86_400));
const MONTH: Name = Name::new("month");
const CLIENT: Name = Name::new("client");
const STRANGER: Name = Name::new("stranger");

/// One request of a known client to so many of strangers.
const STRANGERS: u64 = 16;

/// What was found out about the clients.
#[derive(Default)]
struct Tally {
    limited: Share,
    ordinary: Share,
    forgotten: Share,
}

/// How many of how many.
#[derive(Default)]
struct Share {
    some: u64,
    all: u64,
}

impl Share {
    fn add(&mut self, is_one: bool) {
        self.some += u64::from(is_one);
        self.all += 1;
    }

    fn percent(&self) -> f64 {
        self.some as f64 * 100.0 / self.all.max(1) as f64
    }
}

/// Prints the figures of a flood over `clients` known ones in a store with so many places.
pub(crate) fn worker(places: usize, clients: u64, flood: u64, is_greedy: bool) -> Result<(), Box<dyn Error>> {
    let (mut all, mut running) = (Latencies::new(), Latencies::new());
    let before = child::resident();
    let store = MemoryStore::with_capacity(places);
    let mut used = vec![0_u64; usize::try_from(clients)?];
    for (client, used) in (0_u64..).zip(&mut used) {
        *used = if is_limited(client) { QUOTA.capacity() } else { 10 };
        check(&store, &Key::number(CLIENT, client), *used);
    }

    let cost = if is_greedy { QUOTA.capacity() } else { 1 };
    let mut tally = Tally::default();
    let mut at_cap = 0.0;
    let mut waits = Waits::new();
    for stranger in 0..flood {
        let key = Key::number(STRANGER, stranger);
        let (took, ran) = waits.during(|| _ = check(&store, &key, cost));
        all.add(took);
        running.add(ran);
        if stranger % STRANGERS == 0 {
            let client = (stranger / STRANGERS).wrapping_mul(2_654_435_761) % clients;
            revisit(&store, client, &mut used[usize::try_from(client)?], &mut tally);
        }
        if stranger == places as u64 {
            at_cap = child::resident() - before;
        }
    }
    let most = child::most_resident() - before;
    // What the bench itself has taken: a number per client.
    let own = used.len() as f64 * 8.0;
    let megabytes = |bytes: f64| (bytes - own).max(0.0) / 1e6;
    println!(
        "{} {} {} {} {} {} {} {}",
        megabytes(at_cap),
        megabytes(most),
        store.evicted(),
        tally.limited.percent(),
        tally.ordinary.percent(),
        tally.forgotten.percent(),
        all.all_but_one_in(10_000),
        running.all_but_one_in(10_000),
    );
    Ok(())
}

/// A client asks for one unit. One who is limited should be refused. One who is not should be admitted, and what he has
/// used before should be remembered: that it is not costs him nothing, but the service.
fn revisit(store: &MemoryStore, client: u64, used: &mut u64, tally: &mut Tally) {
    let left = check(store, &Key::number(CLIENT, client), 1);
    if is_limited(client) {
        tally.limited.add(left.is_none());
    } else if *used < QUOTA.capacity() {
        tally.ordinary.add(left.is_some());
        if let Some(left) = left {
            *used += 1;
            tally.forgotten.add(left > QUOTA.capacity() - *used);
            // From here on he has used what the store remembers.
            *used = QUOTA.capacity() - left;
        }
    }
}

/// Every second client has used up his quota before the flood; the others have used a little of theirs.
const fn is_limited(client: u64) -> bool {
    client.is_multiple_of(2)
}

/// What is left, if it was admitted.
fn check(store: &MemoryStore, key: &Key<'_>, units: u64) -> Option<u64> {
    let decision = store.check(&[Charge::new(MONTH, &QUOTA, key).cost(units)]).into_inner().ok()?;
    decision.is_allowed().then(|| decision.standings().first().map_or(0, |standing| standing.remaining))
}
