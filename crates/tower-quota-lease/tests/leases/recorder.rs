//! A store that records its calls and their senders, in its own order.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use tower_quota_core::{Charge, Clock, Decision, Operation, Store, Timestamp};
use tower_quota_dev::simulation::{Lost, Network, VirtualClock};

use crate::server::Server;

tokio::task_local! {
    /// The sender of the present call.
    static CALLER: Caller;
}

/// The sender of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller {
    pub(crate) instance: u64,
    /// The request that is decided, refunded or reset, or `None` for leases and their refunds in
    /// the background.
    pub(crate) request: Option<u64>,
    pub(crate) sent: Timestamp,
}

/// A call with the answer of the store.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) caller: Caller,
    pub(crate) operation: Operation,
    /// The numbers of the limits in the tests, with their units.
    pub(crate) charges: Vec<(usize, u64)>,
    pub(crate) at: Timestamp,
    pub(crate) is_allowed: bool,
}

/// The store of a fleet.
pub(crate) struct Recorder {
    store: Server,
    number_of: fn(&Charge<'_>) -> usize,
    calls: Arc<Mutex<Vec<Call>>>,
}

/// The network of one instance.
pub(crate) struct Link {
    network: Network<Recorder>,
    clock: VirtualClock,
    instance: u64,
    request: Mutex<Option<u64>>,
}

type Answer<E> = Pin<Box<dyn Future<Output = Result<Decision, E>> + Send>>;

impl Recorder {
    /// Makes a store. `number_of` returns the number of a limit in the tests.
    pub(crate) fn new(store: Server, number_of: fn(&Charge<'_>) -> usize) -> Self {
        Self {
            store,
            number_of,
            calls: Arc::default(),
        }
    }

    /// Returns the calls so far, and forgets them.
    pub(crate) fn take(&self) -> Vec<Call> {
        core::mem::take(&mut self.calls.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Store for Recorder {
    type Error = <Server as Store>::Error;
    type Future = Answer<Self::Error>;

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        let caller = CALLER.get();
        let answer = self.store.apply(operation, charges);
        let charges = charges
            .iter()
            .map(|charge| ((self.number_of)(charge), charge.units()))
            .collect();
        let calls = Arc::clone(&self.calls);
        Box::pin(async move {
            let answer = answer.await?;
            let call = Call {
                caller,
                operation,
                charges,
                at: answer.at(),
                is_allowed: answer.is_allowed(),
            };
            calls
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(call);
            Ok(answer)
        })
    }
}

impl Link {
    pub(crate) fn new(network: Network<Recorder>, clock: VirtualClock, instance: u64) -> Self {
        Self {
            network,
            clock,
            instance,
            request: Mutex::new(None),
        }
    }

    pub(crate) fn network(&self) -> &Network<Recorder> {
        &self.network
    }

    /// Records the calls of a function for a request.
    pub(crate) fn for_request<T>(&self, request: u64, call: impl FnOnce() -> T) -> T {
        let name = |request| *self.request.lock().unwrap_or_else(PoisonError::into_inner) = request;
        name(Some(request));
        let result = call();
        name(None);
        result
    }
}

impl Store for Link {
    type Error = Lost;
    type Future = Answer<Lost>;

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        let request = *self.request.lock().unwrap_or_else(PoisonError::into_inner);
        let caller = Caller {
            instance: self.instance,
            request,
            sent: self.clock.now(),
        };
        Box::pin(CALLER.scope(caller, self.network.apply(operation, charges)))
    }
}
