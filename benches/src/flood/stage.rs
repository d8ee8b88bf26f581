//! The figures of a scene at one moment.

use tower_quota_core::MemoryStore;

use super::client::Clients;
use super::latencies::Latencies;
use crate::child;

/// The figures, in this order. Shares and latencies are of all requests since the flood began.
pub(super) const FIGURES: [&str; 9] = [
    "MB",
    "MB at most",
    "entries",
    "evicted",
    "limited %",
    "ordinary %",
    "forgotten %",
    "p99.99 us",
    "running us",
];

/// Prints the figures of a process whose memory was `before` when it had neither a store nor clients.
pub(super) fn tell(
    store: &MemoryStore,
    clients: &Clients,
    before: f64,
    all: &Latencies,
    running: &Latencies,
) {
    // What the bench itself has taken does not count.
    let own = before + clients.bytes() as f64;
    let megabytes = |bytes: f64| (bytes - own).max(0.0) / 1e6;
    let figures = [
        megabytes(child::resident()),
        megabytes(child::most_resident()),
        store.len() as f64,
        store.evicted() as f64,
        clients.limited.percent(),
        clients.ordinary.percent(),
        clients.forgotten.percent(),
        all.all_but_one_in(10_000),
        running.all_but_one_in(10_000),
    ];
    println!("{}", figures.map(|figure| figure.to_string()).join(" "));
}
