use core::sync::atomic::Ordering;
use core::time::Duration;
use std::sync::Arc;

use crate::cause::Cause;
use crate::gate::Gate;
use crate::priority::Priority;

/// Shows the figures of a layer while requests run.
#[derive(Clone, Debug)]
pub struct ShedHandle(pub(crate) Arc<Gate>);

/// The figures of a layer at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShedStats {
    /// The limit of requests in progress.
    pub limit: usize,
    /// The requests in progress, including long bodies.
    pub in_progress: usize,
    /// The responses in progress on top of the limit, because their bodies are long.
    pub long_bodies: usize,
    /// The requests that wait for a place.
    pub waiting: usize,
    /// Whether the layer has refused requests in the last ten seconds.
    pub is_shedding: bool,
    /// The time to the head of a response without pressure.
    pub base_latency: Option<Duration>,
    /// The present time to the head of a response.
    pub latency: Option<Duration>,
    refused: [[u64; Cause::ALL.len()]; Priority::ALL.len()],
}

impl ShedHandle {
    /// Returns the present figures.
    #[must_use]
    pub fn stats(&self) -> ShedStats {
        let gate = &self.0;
        let figures = gate.limit.snapshot();
        let refused = Priority::ALL.map(|priority| {
            let counts = &gate.refused[priority as usize];
            Cause::ALL.map(|cause| counts[cause as usize].load(Ordering::Relaxed))
        });
        let in_progress = gate.places.count.in_progress();
        ShedStats {
            limit: figures.limit,
            in_progress,
            long_bodies: in_progress.saturating_sub(gate.places.count.used()),
            waiting: gate.places.count.waiting(),
            is_shedding: gate.shedding.is_on(gate.clock.now()),
            base_latency: figures.base,
            latency: figures.present,
            refused,
        }
    }
}

impl ShedStats {
    /// Returns the number of requests of a class that the layer has refused for a cause.
    #[must_use]
    pub const fn refused(&self, priority: Priority, cause: Cause) -> u64 {
        self.refused[priority as usize][cause as usize]
    }

    /// Returns the number of all refused requests.
    #[must_use]
    pub fn all_refused(&self) -> u64 {
        self.refused.iter().flatten().sum()
    }
}
