//! Who waits, and which lanes are free.

use std::collections::VecDeque;

use super::pending::Pending;

/// What one call may carry, in weights of a plain decision about one subject. That takes the server 1 to 2 microseconds,
/// so a call takes it about a quarter of a millisecond.
const MOST_WEIGHT: usize = 128;

pub(super) struct Queue {
    waiting: VecDeque<Pending>,
    free_lanes: Vec<usize>,
}

impl Queue {
    pub(super) fn new(lanes: usize) -> Self {
        Self { waiting: VecDeque::new(), free_lanes: (0..lanes).rev().collect() }
    }

    pub(super) fn push(&mut self, pending: Pending) {
        self.waiting.push_back(pending);
    }

    /// Whether somebody waits though a lane is free.
    pub(super) fn has_work(&self) -> bool {
        !self.waiting.is_empty() && !self.free_lanes.is_empty()
    }

    /// Takes a free lane, if there is one.
    pub(super) fn free_lane(&mut self) -> Option<usize> {
        self.free_lanes.pop()
    }

    /// The same for one who has just come, unless others came before.
    pub(super) fn free_lane_at_once(&mut self) -> Option<usize> {
        if self.waiting.is_empty() { self.free_lane() } else { None }
    }

    pub(super) fn free(&mut self, lane: usize) {
        self.free_lanes.push(lane);
    }

    /// Takes those who have waited longest, as many as one call may carry. One who weighs more than that goes alone.
    pub(super) fn take_batch(&mut self) -> Vec<Pending> {
        let mut batch = Vec::with_capacity(self.waiting.len().min(MOST_WEIGHT));
        let mut weight = 0;
        while let Some(next) = self.waiting.pop_front() {
            if next.is_abandoned() {
                continue;
            }
            weight += next.question.weight();
            if weight > MOST_WEIGHT && !batch.is_empty() {
                self.waiting.push_front(next);
                break;
            }
            batch.push(next);
        }
        batch
    }
}
