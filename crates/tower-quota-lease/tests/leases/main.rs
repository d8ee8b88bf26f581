//! Tests leases with simulated instances, network and time.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod accuracy;
mod audit;
mod calls;
mod close;
mod conformance;
mod exactness;
mod fleet;
mod mixed;
mod pairs;
mod recorder;
mod refusals;
mod region_changes;
mod region_holds;
mod region_orders;
mod region_settlements;
mod region_traces;
mod region_world;
mod regions;
mod requests;
mod retries;
mod runtimes;
mod server;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use tower_quota_core::{Charge, Decision, Key, KeyHasher, Name, Quota, Store};
use tower_quota_dev::simulation::{self, Network, VirtualClock};
use tower_quota_lease::{LeaseOptions, Leased};

use self::server::Server;

const CLIENT: Name = Name::new("client");
const LIMIT: Name = Name::new("limit");

/// A quota that is leased unchanged and never refills in a test, so that counted units can be
/// compared.
const QUOTA: Quota = Quota::per_hour(100_000).fixed_window();

type Instance = Leased<Network<Server>>;

/// Makes a store, and an instance behind a network.
fn instance() -> (Arc<Server>, Instance) {
    instance_over(Duration::from_micros(300)..Duration::from_micros(600))
}

/// Makes a store, and an instance behind a network with the default options.
fn instance_over(delays: Range<Duration>) -> (Arc<Server>, Instance) {
    instance_with(LeaseOptions::default(), delays)
}

/// Makes a store, and an instance behind a network with these delays each way.
fn instance_with(options: LeaseOptions, delays: Range<Duration>) -> (Arc<Server>, Instance) {
    let clock = VirtualClock::start();
    let server = Arc::new(Server::new(clock.clone()));
    let network = Network::new(Arc::clone(&server), 1).delays(delays);
    // Give the instance another clock than the store, because their clocks are independent.
    let clock = clock.ahead_by(Duration::from_secs(1_000));
    (server, Leased::with_clock(network, options, clock))
}

fn key(number: u64) -> Key<'static> {
    Key::number(CLIENT, number)
}

/// Makes a decision, from a lease if that is possible.
async fn check(store: &impl Store, charges: &[Charge<'_>]) -> Decision {
    let mut decision = Decision::default();
    if !store.check_at_once(charges, &mut decision) {
        decision = store.check(charges).await.unwrap();
    }
    decision
}

/// Lets some milliseconds pass.
async fn pass(millis: u64) {
    simulation::pass(Duration::from_millis(millis)).await;
}

/// Returns the hasher of a run, so that the same keys share a lock when the seed is run again.
fn hasher(seed: u64) -> KeyHasher {
    KeyHasher::with_seed(u128::from(seed).to_le_bytes())
}

/// Sends enough requests that the client gets leases. Returns the number of admitted requests.
async fn make_hot(store: &impl Store, quota: &Quota, client: u64) -> u64 {
    let mut admitted = 0;
    for _ in 0..60 {
        admitted += u64::from(
            check(store, &[Charge::new(LIMIT, quota, &key(client))])
                .await
                .is_allowed(),
        );
        pass(2).await;
    }
    admitted
}

/// Returns the used units of a quota in the store.
async fn stored_units(store: &Server, quota: &Quota, client: u64) -> u64 {
    let decision = store
        .check(&[Charge::new(LIMIT, quota, &key(client)).cost(0)])
        .await
        .unwrap();
    quota.capacity() - decision.statuses()[0].remaining()
}
