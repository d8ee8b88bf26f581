use core::cmp::Reverse;

use tokio::sync::oneshot::{Receiver, Sender, channel};

use super::place::Place;

/// The requests that wait for a place. The newest request of the best level comes first.
pub(super) struct Queue {
    pub(super) most: usize,
    pub(super) waiters: Vec<Waiter>,
}

pub(super) struct Waiter {
    pub(super) level: usize,
    pub(super) slot: usize,
    pub(super) place: Sender<Place>,
}

impl Queue {
    /// Adds a request. A full queue refuses the oldest request of the worst level, or this request.
    pub(super) fn push(&mut self, level: usize, slot: usize) -> Option<Receiver<Place>> {
        self.forget_lost();
        if self.waiters.len() >= self.most {
            let waiters = self.waiters.iter().enumerate();
            let worst = waiters.max_by_key(|(position, waiter)| (waiter.level, Reverse(*position)));
            let (position, _) = worst.filter(|(_, worst)| worst.level >= level)?;
            self.waiters.remove(position);
        }
        let (place, receiver) = channel();
        self.waiters.push(Waiter { level, slot, place });
        Some(receiver)
    }

    /// Returns the position, level and slot of the next request.
    pub(super) fn next(&self) -> Option<(usize, usize, usize)> {
        let waiters = self.waiters.iter().enumerate();
        let next = waiters.min_by_key(|(position, waiter)| (waiter.level, Reverse(*position)));
        next.map(|(position, waiter)| (position, waiter.level, waiter.slot))
    }

    /// Forgets requests whose clients have gone, or whose time is over.
    pub(super) fn forget_lost(&mut self) {
        self.waiters.retain(|waiter| !waiter.place.is_closed());
    }
}
