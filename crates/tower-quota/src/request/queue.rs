use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tower_quota_core::Key;

/// The places of requests that wait for their turn.
///
/// A key gets a place while fewer of its requests wait than places are free, so a key takes at most half of the places
/// (Choudhury and Hahne, "Dynamic queue length thresholds", 1998).
pub(crate) struct Queue {
    places: Mutex<Places>,
    hasher: RandomState,
    closed: Notify,
}

struct Places {
    /// The number of places, or 0 after the queue is closed.
    capacity: usize,
    waiting: usize,
    of_key: HashMap<u64, usize>,
}

pub(crate) struct Place {
    queue: Arc<Queue>,
    key: u64,
}

impl Queue {
    pub(crate) const DEFAULT_CAPACITY: usize = 10_000;

    pub(crate) fn new(capacity: usize) -> Self {
        let places = Places {
            capacity,
            waiting: 0,
            of_key: HashMap::new(),
        };
        Self {
            places: Mutex::new(places),
            hasher: RandomState::new(),
            closed: Notify::new(),
        }
    }

    pub(crate) fn set_capacity(&self, capacity: usize) {
        self.lock().capacity = capacity;
    }

    pub(crate) fn has_room(&self, key: &Key<'_>) -> bool {
        let number = self.number(key);
        self.lock().has_room(key, number)
    }

    pub(crate) fn place(self: &Arc<Self>, key: &Key<'_>) -> Option<Place> {
        let number = self.number(key);
        let mut places = self.lock();
        if !places.has_room(key, number) {
            return None;
        }
        places.waiting += 1;
        *places.of_key.entry(number).or_default() += 1;
        Some(Place {
            queue: Arc::clone(self),
            key: number,
        })
    }

    pub(crate) fn waiting(&self) -> usize {
        self.lock().waiting
    }

    pub(crate) fn close(&self) {
        self.set_capacity(0);
        self.closed.notify_waiters();
    }

    fn number(&self, key: &Key<'_>) -> u64 {
        self.hasher.hash_one((key.scope().id(), key.as_bytes()))
    }

    fn lock(&self) -> MutexGuard<'_, Places> {
        // No change can panic halfway, so the places are valid even if the lock is poisoned.
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Places {
    fn has_room(&self, key: &Key<'_>, number: u64) -> bool {
        let free = self.capacity.saturating_sub(self.waiting);
        if *key == Key::EVERYONE {
            // Limits without a key have no clients among which to divide the queue.
            return free > 0;
        }
        self.of_key.get(&number).copied().unwrap_or_default() < free
    }
}

impl Place {
    pub(crate) async fn closed(&self) {
        let notified = self.queue.closed.notified();
        // The queue may have closed between taking the place and creating the notification.
        let is_closed = self.queue.lock().capacity == 0;
        if !is_closed {
            notified.await;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut places = self.queue.lock();
        places.waiting -= 1;
        if let Some(waiting) = places.of_key.get_mut(&self.key) {
            *waiting -= 1;
            if *waiting == 0 {
                places.of_key.remove(&self.key);
            }
        }
    }
}
