//! Simulates a server that two instances share.

use std::error::Error;
use std::fmt;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tower_quota_core::{Charge, Decision, Operation, Store};
use tower_quota_testkit::pairs::{self, Effect, Fault};
use tower_quota_testkit::{ManualClock, ModelStore};

/// A shared server in this process, which decides by the model. Instances 0 and 1 have a link each.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    model: ModelStore,
    cuts: [Arc<AtomicBool>; 2],
}

/// The connection of an instance to a [`Server`].
#[derive(Clone, Debug)]
pub(crate) struct Link {
    model: ModelStore,
    is_cut: Arc<AtomicBool>,
}

/// The error of a [`Link`] that is cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkCut;

impl Server {
    /// The faults of a shared server, and restarts of the instances.
    pub(crate) const FAULTS: [Fault; 5] = [
        Fault::Restart(0),
        Fault::Restart(1),
        Fault::Cut(0),
        Fault::Cut(1),
        Fault::Forget,
    ];

    /// Creates an empty server.
    pub(crate) fn new(clock: ManualClock) -> Self {
        Self {
            model: ModelStore::with_clock(clock),
            cuts: Default::default(),
        }
    }

    /// Connects instance 0 or 1.
    pub(crate) fn link(&self, instance: usize) -> Link {
        Link {
            model: self.model.clone(),
            is_cut: Arc::clone(&self.cuts[instance % 2]),
        }
    }

    /// Makes a fault of the server or of its links happen.
    pub(crate) fn fault(&self, fault: Fault) -> Effect {
        match fault {
            Fault::Cut(instance) => self.cuts[instance % 2].store(true, Ordering::Relaxed),
            Fault::Join(instance) => self.cuts[instance % 2].store(false, Ordering::Relaxed),
            Fault::Forget => {
                self.model.forget();
                return Effect::Lost(pairs::Server::Shared);
            }
            _ => {}
        }
        Effect::Kept
    }
}

impl Store for Link {
    type Error = LinkCut;
    type Future = Ready<Result<Decision, LinkCut>>;

    fn apply(&self, operation: Operation, charges: &[Charge<'_>]) -> Self::Future {
        ready(match self.is_cut.load(Ordering::Relaxed) {
            true => Err(LinkCut),
            false => {
                let Ok(decision) = self.model.apply(operation, charges).into_inner();
                Ok(decision)
            }
        })
    }
}

impl fmt::Display for LinkCut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the link to the simulated server is cut")
    }
}

impl Error for LinkCut {}
