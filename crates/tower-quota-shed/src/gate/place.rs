use core::time::Duration;
use std::sync::Arc;

use super::Gate;
use crate::limit::{Kind, Sample};

/// A place of a request in progress. The place is free again when you drop it.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) gate: Arc<Gate>,
    pub(super) since: Duration,
    /// The places in use at admission, with this place and the room for better levels.
    pub(super) in_progress: usize,
    /// The slot of the key, for places taken under pressure.
    pub(super) slot: Option<usize>,
    /// The period in which the body began, if a long body leaves the limit.
    pub(super) body: Option<u64>,
}

impl Place {
    /// Reports the head of the response, unless the response says nothing about the service.
    pub(crate) fn answered(&self, now: Duration, kind: Option<Kind>) {
        if let Some(kind) = kind {
            self.gate.limit.completed(Sample {
                ended: now,
                took: now.saturating_sub(self.since),
                in_progress: self.in_progress,
                kind,
            });
        }
        self.gate.shedding.answered(now);
    }

    /// Lets the place leave the limit if the body is long.
    pub(crate) fn begin_body(&mut self, now: Duration) {
        self.body = Some(self.gate.places.bodies.begin(now, &self.gate.places.count));
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.gate.leave(self.slot, self.body);
    }
}
