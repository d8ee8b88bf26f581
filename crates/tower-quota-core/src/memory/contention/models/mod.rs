//! Every order in which a few threads can take their steps, by loom. Run by `scripts/contention`.

mod answers;
mod places;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::clock::Clock;
use crate::memory::MemoryStore;
use crate::time::Timestamp;

const NOW: Timestamp = Timestamp::from_micros(1_763_683_200_000_000);

/// Makes a store on a clock that stands still, with tables for one entry each.
fn store(capacity: usize) -> MemoryStore {
    MemoryStore::with_clock(capacity, FixedClock)
}

#[derive(Debug)]
struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        NOW
    }
}

/// Runs a model in every order, and prints how many there are.
fn every_order(name: &str, model: impl Fn() + Send + Sync + 'static) {
    let orders = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&orders);
    loom::model(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        model();
    });
    println!("{name}: {} orders", orders.load(Ordering::Relaxed));
}
