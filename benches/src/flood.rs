//! A flood of made-up keys against a store with a cap: its cost in memory and time, and to the known clients.
//!
//! Half of the known clients are limited and go on sending; the others are far from their quota and send now and then.
//! Between their requests come new keys, each of them once. Each scene is a process of its own.

use std::hint::black_box;
use std::time::Duration;

use clap::{ArgAction, Args};
use tower_quota_core::{Charge, Key, MemoryStore, Name, Quota, Store};

use crate::Outcome;
use crate::report::{Report, Table};
use crate::turns::{in_a_process, memory, now};

/// The figures of a scene, in the order in which its process prints them.
const COLUMNS: [&str; 5] = [
    "MB at most",
    "limited, admitted %",
    "ordinary, refused %",
    "forgotten %",
    "p99.99 µs",
];

/// The multiple of the places by which the flood brings keys.
const MULTIPLE: u64 = 20;

/// Requests of new keys for each request of a known client.
const NEW_KEYS_PER_CLIENT: u64 = 16;

/// Slow enough that no unit comes back within a scene.
const QUOTA: Quota = Quota::new(1_000, Duration::from_secs(30 * 86_400));
const MONTH: Name = Name::new("month");
const CLIENT: Name = Name::new("client");
const NEW_KEY: Name = Name::new("new-key");

pub(crate) fn run(quick: bool) -> Outcome<Report> {
    let places = if quick { 100_000 } else { 1_000_000 };
    let mut table = Table::new("flood, known clients per 100 places", &COLUMNS, 1);
    for (kind, greedy) in [("one unit each", "false"), ("whole quota each", "true")] {
        for per_hundred in [10, 50, 100, 200] {
            let (places, clients) = (places.to_string(), places / 100 * per_hundred);
            let figures = in_a_process(&["flood-worker", &places, &clients.to_string(), greedy])?;
            let cells = figures.into_iter().map(|figure| Some(figure.into()));
            table.row(format!("{kind}, {per_hundred}"), cells);
        }
    }
    Ok(Report::of([table]))
}

/// The numbers of a scene.
#[derive(Args)]
pub(crate) struct Scene {
    /// The capacity of the store.
    places: u64,
    /// The number of clients known before the flood.
    clients: usize,
    /// True if each new key uses up its quota at once.
    #[arg(action = ArgAction::Set)]
    is_greedy: bool,
}

/// Prints the figures of a scene.
pub(crate) fn worker(scene: &Scene) -> Outcome {
    let mut latencies = Latencies::new();
    let before = memory("VmRSS:");
    let store = MemoryStore::with_capacity(usize::try_from(scene.places)?);
    let mut clients = Clients::known_to(&store, scene.clients);
    let cost = if scene.is_greedy { QUOTA.capacity() } else { 1 };
    for new_key in 0..scene.places * MULTIPLE {
        let key = Key::number(NEW_KEY, new_key);
        let began = now();
        check(&store, &key, cost);
        latencies.add(now() - began);
        if new_key % NEW_KEYS_PER_CLIENT == 0 {
            // Multiples of a prime visit every client in turn, and neighbours do not follow each other.
            let turn = new_key / NEW_KEYS_PER_CLIENT;
            clients.revisit(&store, turn.wrapping_mul(2_654_435_761));
        }
    }
    // The list of the clients is not memory of the store.
    let own = before + size_of_val(&clients.used[..]) as f64;
    let figures = [
        (memory("VmHWM:") - own).max(0.0) / 1e6,
        100.0 - clients.limited.percent(),
        100.0 - clients.ordinary.percent(),
        clients.forgotten.percent(),
        latencies.all_but_one_in(10_000),
    ];
    println!("{}", figures.map(|figure| figure.to_string()).join(" "));
    Ok(())
}

/// All known clients, with the units that each has used.
struct Clients {
    used: Vec<u64>,
    limited: Share,
    ordinary: Share,
    forgotten: Share,
}

/// A share of requests: this many of this many.
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

impl Clients {
    /// Makes clients known to the store: every second one has used up its quota, the others a little of theirs.
    fn known_to(store: &MemoryStore, clients: usize) -> Self {
        let used = |client| {
            if is_limited(client) {
                QUOTA.capacity()
            } else {
                10
            }
        };
        let used: Vec<u64> = (0..clients as u64).map(used).collect();
        for (client, used) in (0_u64..).zip(&used) {
            check(store, &Key::number(CLIENT, client), *used);
        }
        Self {
            used,
            limited: Share::default(),
            ordinary: Share::default(),
            forgotten: Share::default(),
        }
    }

    /// Checks one unit for a client, and counts wrong answers.
    ///
    /// A limited client should be refused. Another should be admitted, and the store should remember its earlier use:
    /// a store that forgets the use admits more than the quota.
    fn revisit(&mut self, store: &MemoryStore, draw: u64) {
        let position = draw as usize % self.used.len();
        let client = position as u64;
        let used = &mut self.used[position];
        let remaining = check(store, &Key::number(CLIENT, client), 1);
        if is_limited(client) {
            self.limited.add(remaining.is_none());
        } else if *used < QUOTA.capacity() {
            self.ordinary.add(remaining.is_some());
            if let Some(remaining) = remaining {
                *used += 1;
                self.forgotten.add(remaining > QUOTA.capacity() - *used);
                // From here on the client has used what the store remembers.
                *used = QUOTA.capacity() - remaining;
            }
        }
    }
}

const fn is_limited(client: u64) -> bool {
    client.is_multiple_of(2)
}

/// Checks units. Returns the remaining units if the request was admitted.
fn check(store: &MemoryStore, key: &Key<'_>, units: u64) -> Option<u64> {
    let charge = Charge::new(MONTH, &QUOTA, key).cost(units);
    let decision = store.check(&[charge]).into_inner().ok()?;
    let status = decision.statuses().first();
    let remaining = status.map_or(0, |status| status.remaining());
    decision.is_allowed().then_some(remaining)
}

/// The latencies of very many checks: a count for each number of nanoseconds up to a quarter of a millisecond.
struct Latencies {
    counts: Vec<u64>,
}

impl Latencies {
    const MOST: usize = 250_000;

    fn new() -> Self {
        // Written to, so that all of it is in memory before memory is measured.
        let mut counts = black_box(vec![1; Self::MOST + 1]);
        counts.fill(0);
        Self { counts }
    }

    fn add(&mut self, latency: Duration) {
        let nanoseconds = usize::try_from(latency.as_nanos()).unwrap_or(Self::MOST);
        self.counts[nanoseconds.min(Self::MOST)] += 1;
    }

    /// Returns the microseconds that all but one in `many` took at most.
    fn all_but_one_in(&self, many: u64) -> f64 {
        let mut above = self.counts.iter().sum::<u64>() / many;
        for (nanoseconds, &count) in self.counts.iter().enumerate().rev() {
            if count > above {
                return nanoseconds as f64 / 1_000.0;
            }
            above -= count;
        }
        0.0
    }
}
