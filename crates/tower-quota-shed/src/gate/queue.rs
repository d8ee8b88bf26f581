use tokio::sync::oneshot::{Receiver, Sender, channel};

use super::place::Place;

/// The requests that wait for a place, in the order in which a full queue refuses them.
///
/// The worst level comes first, and the oldest request of a level. So the next request is the last one.
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
    /// Adds a request. A full queue refuses the first request, or this request if it would be the first.
    pub(super) fn push(&mut self, level: usize, slot: usize) -> Option<Receiver<Place>> {
        self.forget_lost();
        if self.waiters.len() >= self.most {
            self.waiters.first().filter(|first| first.level >= level)?;
            self.waiters.remove(0);
        }
        let position = self.waiters.partition_point(|waiter| waiter.level >= level);
        let (place, receiver) = channel();
        self.waiters.insert(position, Waiter { level, slot, place });
        Some(receiver)
    }

    /// Forgets requests whose clients have gone, or whose time is over.
    pub(super) fn forget_lost(&mut self) {
        self.waiters.retain(|waiter| !waiter.place.is_closed());
    }
}
