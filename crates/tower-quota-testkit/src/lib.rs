//! Tools for tests of tower-quota: of your own limits, and of your own stores.
//!
//! 1. [`ManualClock`]: a clock that moves only when a test says so. Windows pass without a sleep.
//! 2. [`ScriptedStore`]: a store that gives the answers of a script and records the charges. [`SharedStore`] makes it one
//!    that other processes share. [`ModelStore`] keeps its counters.
//! 3. [`conformance_tests!`]: the conformance suite, a `#[test]` for each rule that a store must keep.
//! 4. `differential` (feature `differential`): random traces on a store and the model, compared in every field.
//! 5. [`pairs`]: all pairs of what a charge can be, in every order of a few steps, with faults between.
//! 6. [`block_on`]: runs a future that needs no runtime.
//!
//! # Test your limits
//!
//! Give the store a [`ManualClock`], and move it past a window:
//!
//! ```
//! use std::time::Duration;
//! use tower_quota_core::{Charge, Key, MemoryStore, Name, Quota, Store};
//! use tower_quota_testkit::{ManualClock, block_on};
//!
//! let clock = ManualClock::default();
//! let store = MemoryStore::with_clock(1_000, clock.clone());
//! let (quota, ann) = (Quota::per_minute(1), Key::owned(Name::new("user"), "ann"));
//! let is_allowed = || block_on(store.check(&[Charge::new("minute", &quota, &ann)])).unwrap().is_allowed();
//!
//! assert!(is_allowed());
//! assert!(!is_allowed());
//! clock.advance(Duration::from_secs(60));
//! assert!(is_allowed());
//! ```
//!
//! A `RateLimitLayer` takes the time from its store: make the layer with this store, and call the service as usual.
//! Requests that wait for a turn use tokio's timer: pause that with `#[tokio::test(start_paused = true)]`. A service, waits and
//! outages under test are in the guide of tower-quota, `docs/guide/testing_your_limits.md`.
//!
//! # Test your store
//!
//! With the defaults:
//!
//! ```
//! use tower_quota_core::MemoryStore;
//! use tower_quota_testkit::{ManualClock, conformance_tests};
//!
//! async fn memory(clock: ManualClock, _prefix: String) -> MemoryStore {
//!     MemoryStore::with_clock(1_000, clock)
//! }
//!
//! conformance_tests!(memory);
//! # fn main() {}
//! ```
//!
//! Customised, for a store that needs a runtime and lacks some [capabilities](conformance::Capability):
//!
//! ```
//! # use tower_quota_core::MemoryStore;
//! use tower_quota_testkit::conformance::Capability;
//! use tower_quota_testkit::{ManualClock, conformance_tests};
//!
//! # type MyStore = MemoryStore;
//! async fn open(clock: ManualClock, prefix: String) -> MyStore {
//!     // Keys start with the prefix: the tests share a database and run side by side.
//! #   drop(prefix);
//! #   MemoryStore::with_clock(1_000, clock)
//! }
//!
//! # fn on_runtime<F: Future>(future: F) -> F::Output { tower_quota_testkit::block_on(future) }
//! // `on_runtime` runs a future to its end on the runtime that the store needs.
//! conformance_tests!(open, block_on = on_runtime, lacks = &[Capability::Penalties, Capability::SlidingLogs]);
//! # fn main() {}
//! ```
//!
//! # Caveats
//!
//! * The store under test must take its time from the [`ManualClock`]. A server's own clock, or an expiry by it, makes
//!   entries disappear early: send the instant along, and let entries expire later than they are full.
//! * A store that evicts must have room for the keys of a test: three keys for a random trace.
//! * A test panics with the step at which the store differs. A random trace is shrunk first.

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod block_on;
mod clock;
pub mod conformance;
#[cfg(feature = "differential")]
pub mod differential;
mod model;
mod model_store;
pub mod pairs;
mod scripted_store;
mod shared_store;

pub use self::block_on::block_on;
pub use self::clock::ManualClock;
pub use self::model_store::ModelStore;
pub use self::scripted_store::{
    RecordedCharge, RecordedOperation, ScriptedAnswer, ScriptedError, ScriptedStore,
};
pub use self::shared_store::SharedStore;
