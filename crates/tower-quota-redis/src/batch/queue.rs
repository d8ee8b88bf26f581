//! Who waits, and which lanes are free.

use std::collections::VecDeque;

use tokio::time::Instant;

use super::pending::Pending;

/// What one call may carry, in weights of a plain decision about one subject. That takes the server 1 to 2 microseconds,
/// so a call takes it about a quarter of a millisecond.
const MOST_WEIGHT: usize = 128;

pub(super) struct Queue {
    waiting: VecDeque<Pending>,
    lanes: usize,
    free_lanes: Vec<usize>,
    alone: Alone,
}

/// Whether a decision may be made by its caller, beside the lanes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Alone {
    Possible,
    UnderWay,
    /// The last caller to try went away without an answer. Calls in lanes find out why: they go on without their callers,
    /// and so tell a server that is silent from callers that are in a hurry.
    Doubtful,
}

impl Queue {
    pub(super) fn new(lanes: usize) -> Self {
        Self { waiting: VecDeque::new(), lanes, free_lanes: (0..lanes).rev().collect(), alone: Alone::Possible }
    }

    /// Lets a caller decide by himself, if nothing else is going on.
    pub(super) fn go_alone(&mut self) -> bool {
        let is_idle = self.waiting.is_empty() && self.free_lanes.len() == self.lanes;
        let may = is_idle && self.alone == Alone::Possible;
        if may {
            self.alone = Alone::UnderWay;
        }
        may
    }

    /// One who went alone is back.
    pub(super) fn came_back(&mut self, with_answer: bool) {
        self.alone = if with_answer { Alone::Possible } else { Alone::Doubtful };
    }

    /// The server has answered a call.
    pub(super) fn answered(&mut self) {
        if self.alone == Alone::Doubtful {
            self.alone = Alone::Possible;
        }
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

    /// Takes those who have waited longest, as many as one call may carry. One who weighs more than that goes alone; those
    /// whom no answer could reach in time are left out.
    pub(super) fn take_batch(&mut self, now: Instant) -> Vec<Pending> {
        let mut batch = Vec::with_capacity(self.waiting.len().min(MOST_WEIGHT));
        let mut weight = 0;
        while let Some(next) = self.waiting.pop_front() {
            if next.is_over(now) {
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

#[cfg(test)]
mod tests {
    use core::num::NonZeroUsize;
    use core::time::Duration;

    use tokio::sync::oneshot;
    use tower_quota_core::{Charge, Key, Name, Operation, Quota};

    use super::super::pending::now;
    use super::*;
    use crate::keys::KeyNames;
    use crate::question::Question;

    #[test]
    fn who_has_gone_or_is_late_is_left_out() {
        let quota = Quota::per_hour(10);
        let key = Key::owned(Name::new("user"), "ann");
        let keys = KeyNames::new("tower-quota", None, false, NonZeroUsize::MIN).unwrap();
        let question = Question::new(Operation::Check, &[Charge::new("hour", &quota, &key)], &keys);
        let (start, mut queue, mut callers) = (now(), Queue::new(1), Vec::new());
        for seconds in [Some(1), Some(2), Some(3), Some(4), None] {
            let (answer, answered) = oneshot::channel();
            let expiry = seconds.map(|seconds| start + Duration::from_secs(seconds));
            queue.push(Pending { question: question.clone(), answer, expiry });
            callers.push(answered);
        }
        drop(callers.remove(2));
        let batch = queue.take_batch(start + Duration::from_secs(2));
        let taken: Vec<_> = batch.iter().map(|pending| pending.expiry.map(|expiry| expiry - start)).collect();
        assert_eq!(taken, [Some(Duration::from_secs(4)), None]);
        assert!(queue.take_batch(start).is_empty());
    }
}
