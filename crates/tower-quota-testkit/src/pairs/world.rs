//! Connects a test to the stores of two instances.

use std::future::Future;
use std::time::Duration;

use tower_quota_core::{Key, Store, Timestamp};

/// Two instances of a service, their stores, and what may happen to them. Each run of steps has a world of its own.
pub trait World {
    /// The store of an instance.
    type Store: Store;

    /// Opens the store of instance 0 or 1, at the start and after a restart.
    fn open(&mut self, instance: usize) -> impl Future<Output = Self::Store>;

    /// Returns the time of the stores.
    fn now(&self) -> Timestamp;

    /// Lets time pass.
    fn pass(&mut self, span: Duration) -> impl Future<Output = ()>;

    /// Makes a fault happen. `keys` are all keys of the run.
    fn fault(&mut self, fault: Fault, keys: &[Key<'_>]) -> impl Future<Output = Effect>;
}

/// A fault of a [`World`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The instance stops. The test opens its store again.
    Restart(usize),
    /// The network of an instance is cut. Its calls fail, and charge nothing.
    Cut(usize),
    /// The network of an instance works again.
    Join(usize),
    /// The server of the stores forgets all counters.
    Forget,
    /// The shares of the instances change.
    Reshare,
}

/// What a [`Fault`] did to the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The world has no such fault.
    Unknown,
    /// The counters stay.
    Kept,
    /// The counters are lost.
    Lost,
}
