//! A fleet in virtual time that no machine here could run: 200 instances with ten million clients by Zipf's law.
//!
//! The same code decides: `Leased` over a `MemoryStore`, behind a network that delays, in a paused runtime. A run with the
//! same seed gives the same figures on every machine.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tower_quota_core::{Charge, Clock, Key, MemoryStore, Name, Quota, Store};
use tower_quota_lease::{LeaseOptions, Leased};

use crate::Outcome;
use crate::report::{Cell, Report, Table};
use crate::traffic::Draws;
use tower_quota_dev::simulation::{self, Network, VirtualClock};

const NODES: u32 = 200;
const SECONDS: u32 = 5;
/// The requests per second of each instance.
const RATE: u32 = 5_000;
/// The units per second of each client. Some thirty of ten million ask for more.
const UNITS: u32 = 2_000;
/// By the minute, as quotas of such a size are written: a lease lasts a hundredth of the period at most.
const QUOTA: Quota = Quota::per_minute(UNITS as u64 * 60).burst(UNITS as u64);
/// The time of a message between machines.
const DELAYS: Range<Duration> = Duration::from_micros(200)..Duration::from_millis(2);

const COLUMNS: [&str; 4] = [
    "requests",
    "short % of allowed",
    "beyond the quota",
    "calls per request",
];

pub(crate) fn run(quick: bool) -> Outcome<Report> {
    let mut table = Table::new("200 instances", &COLUMNS, 1);
    let clients = if quick { 1_000_000 } else { 10_000_000 };
    let exact = fleet(clients, |network, _| network);
    table.row("exact", simulation::run(exact)?);
    let leased = fleet(clients, |network, clock| {
        Leased::with_clock(network, LeaseOptions::default(), clock)
    });
    table.row("leased", simulation::run(leased)?);
    Ok(Report::of([table]))
}

/// The clients of future requests, by Zipf's law with exponent 1: the n-th client has 1/n of the requests of the first.
fn trace(clients: u32) -> Vec<u32> {
    let mut draws = Draws::new(1);
    // The inverse of the integral of the harmonic sum: the rank is clients^u for a uniform u.
    let largest = f64::from(clients).ln();
    let drawn = (0..1 << 22).map(|_| {
        let uniform = (draws.next() >> 11) as f64 / (1_u64 << 53) as f64;
        let rank = (uniform * largest).exp() as u32 - 1;
        // Multiples of a prime visit every rank once, and busy clients are not neighbours.
        (u64::from(rank) * 2_654_435_761 % u64::from(clients)) as u32
    });
    drawn.collect()
}

/// Returns the figures of a fleet with these stores over its network.
async fn fleet<S: Store>(
    clients: u32,
    store: impl Fn(Network<MemoryStore>, VirtualClock) -> S,
) -> Outcome<[Option<Cell>; 4]> {
    let clock = VirtualClock::start();
    let places = 2 * clients as usize;
    let server = Arc::new(MemoryStore::with_clock(places, clock.clone()));
    let trace = Arc::new(trace(clients));
    let (mut nodes, mut networks) = (JoinSet::new(), Vec::new());
    for node in 0..NODES {
        let network = Network::new(Arc::clone(&server), u64::from(node)).delays(DELAYS);
        networks.push(network.clone());
        let store = store(network, clock.clone());
        nodes.spawn(offer(node, store, Arc::clone(&trace), clock.clone()));
    }
    let (began, mut tallies) = (clock.now(), vec![(0_u64, 0_u64); clients as usize]);
    while let Some(answers) = nodes.join_next().await {
        for (client, is_admitted) in answers? {
            let (asked, admitted) = &mut tallies[client as usize];
            *asked += 1;
            *admitted += u64::from(is_admitted);
        }
    }
    let span = clock.now().since(began).as_secs_f64();
    let most = (f64::from(UNITS) * (1.0 + span)) as u64;
    let sum = |of: fn(&(u64, u64), u64) -> u64| {
        tallies.iter().map(|client| of(client, most)).sum::<u64>() as f64
    };
    let asked = sum(|(asked, _), _| *asked);
    let admitted = sum(|(_, admitted), _| *admitted);
    let allowed = sum(|(asked, _), most| (*asked).min(most));
    let over = sum(|(_, admitted), most| admitted.saturating_sub(most));
    let calls: u64 = networks.iter().map(Network::calls).sum();
    let short = 100.0 - admitted * 100.0 / allowed;
    Ok([asked, short, over, calls as f64 / asked].map(|figure| Some(figure.into())))
}

/// Sends the requests of one instance. Returns their clients, and whether they were admitted.
async fn offer(
    node: u32,
    store: impl Store,
    trace: Arc<Vec<u32>>,
    clock: VirtualClock,
) -> Vec<(u32, bool)> {
    let began = clock.now();
    let mut draws = Draws::new(u64::from(node) + 1);
    let (mut waiting, mut answers) = (JoinSet::new(), Vec::new());
    for request in 0..RATE * SECONDS {
        let turn = f64::from(node) / f64::from(NODES);
        let at = Duration::from_secs_f64((f64::from(request) + turn) / f64::from(RATE));
        let left = at.saturating_sub(clock.now().since(began));
        // tokio's timer is exact to the millisecond.
        if left >= Duration::from_millis(1) {
            simulation::pass(left).await;
        }
        let client = trace[draws.next() as usize % trace.len()];
        let key = Key::number(Name::new("client"), client.into());
        let decided = store.check(&[Charge::new("requests", &QUOTA, &key)]);
        waiting.spawn(async move {
            let is_admitted = decided.await.is_ok_and(|decision| decision.is_allowed());
            (client, is_admitted)
        });
        while let Some(Ok(answer)) = waiting.try_join_next() {
            answers.push(answer);
        }
    }
    answers.extend(waiting.join_all().await);
    store.close(Duration::from_secs(1)).await;
    answers
}
