//! Instances, networks and time of a simulation, in one thread and without waiting.
//!
//! 1. A paused tokio runtime moves its time to the next timer when all tasks wait: hours pass in seconds, and a run
//!    with the same seed is the same run.
//! 2. [`VirtualClock`] reads that time, with an offset for each instance.
//! 3. [`Network`] is a store behind a network: calls take time, and get lost.
//!
//! ```
//! use std::time::Duration;
//! use tower_quota_core::{Charge, Key, MemoryStore, Quota, Store};
//! use tower_quota_dev::simulation::{Network, VirtualClock, run};
//!
//! run(async {
//!     let clock = VirtualClock::start();
//!     let server = std::sync::Arc::new(MemoryStore::with_clock(1_000, clock.clone()));
//!     let instance = Network::new(server, 1).delays(Duration::from_micros(200)..Duration::from_millis(2));
//!     let quota = Quota::per_minute(2);
//!     assert!(instance.check(&[Charge::new("minute", &quota, &Key::EVERYONE)]).await?.is_allowed());
//!     # Ok::<(), tower_quota_dev::simulation::Lost>(())
//! }).unwrap();
//! ```

mod clock;
mod network;

pub use self::clock::VirtualClock;
pub use self::network::{Lost, Network};

/// Lets time pass. In a paused runtime it passes at once, when all other tasks wait.
#[expect(
    clippy::disallowed_methods,
    reason = "the one sleep of simulations, whose time is paused"
)]
pub async fn pass(span: core::time::Duration) {
    tokio::time::sleep(span).await;
}

/// Runs a simulation until its future ends.
///
/// # Panics
/// Panics when the runtime cannot be built.
#[expect(clippy::expect_used, reason = "documented: it is a test")]
pub fn run<F: Future>(simulation: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    runtime
        .expect("a runtime of one thread")
        .block_on(simulation)
}
