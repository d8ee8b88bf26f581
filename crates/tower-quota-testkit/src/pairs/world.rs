//! Connects a test to the stores of two instances.

use std::future::Future;
use std::time::Duration;

use tower_quota_core::{Key, Store, Timestamp};

/// Two instances of a service, their stores, and what may happen to them. Each run of steps has a world of its own.
pub trait World {
    /// The store of an instance.
    type Store: Store;

    /// The faults that may happen. The test ends a cut by [`Join`](Fault::Join) or [`JoinOwn`](Fault::JoinOwn).
    const FAULTS: &'static [Fault];

    /// Opens the store of instance 0 or 1, at the start and after a restart.
    fn open(&mut self, instance: usize) -> impl Future<Output = Self::Store>;

    /// Returns the time of the stores.
    fn now(&self) -> Timestamp;

    /// Lets time pass.
    fn pass(&mut self, span: Duration) -> impl Future<Output = ()>;

    /// Makes a fault happen. `keys` are all keys of the run.
    fn fault(&mut self, fault: Fault, keys: &[Key<'_>]) -> impl Future<Output = Effect>;

    /// Returns the server that made a decision of this instance, by the instant of the decision.
    fn server_of(&self, _instance: usize, _decided_at: Timestamp) -> Server {
        Server::Shared
    }
}

/// A server that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// The server of both instances.
    Shared,
    /// The own server of an instance.
    Own(usize),
}

/// A fault of a [`World`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The instance stops. The test opens its store again.
    Restart(usize),
    /// The network between an instance and the shared server is cut. Calls fail, and charge nothing.
    Cut(usize),
    /// The network between an instance and the shared server works again.
    Join(usize),
    /// The network between an instance and its own server is cut. Calls fail, and charge nothing.
    CutOwn(usize),
    /// The network between an instance and its own server works again.
    JoinOwn(usize),
    /// The shared server forgets all counters.
    Forget,
    /// The own server of an instance forgets all counters.
    ForgetOwn(usize),
    /// The shared server forgets all holds, and keeps the other counters.
    ForgetHolds,
    /// The shares of the instances change.
    Reshare,
}

/// What a [`Fault`] did to the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The counters stay.
    Kept,
    /// The counters of a server are lost.
    Lost(Server),
    /// The holds of the shared server are lost.
    LostHolds,
}
