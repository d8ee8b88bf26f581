use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use tokio::sync::Notify;
use tower_quota_core::{Key, Lock, Name};

/// The places of requests that wait for their turn.
///
/// A key gets a place while fewer of its requests wait than places are free, so a key takes at most half of the places
/// (Choudhury and Hahne, "Dynamic queue length thresholds", 1998). The same holds for a limit, if several limits of the
/// policy make requests wait.
pub(crate) struct Queue {
    places: Lock<Places>,
    hasher: RandomState,
    closed: Notify,
}

struct Places {
    /// The number of places, or 0 after the queue is closed.
    capacity: usize,
    waiting: usize,
    /// The numbers of waiting requests by key and by limit.
    of: HashMap<u64, usize>,
}

/// The limit that makes a request wait, and its key.
pub(crate) struct Waiter<'a> {
    /// The limit, unless all places are for one limit.
    pub(crate) limit: Option<Name>,
    pub(crate) key: &'a Key<'a>,
}

pub(crate) struct WaitingPlace {
    queue: Arc<Queue>,
    numbers: Numbers,
}

/// The hashes of a limit and of a key, by which the places are shared.
type Numbers = [Option<u64>; 2];

impl Queue {
    pub(crate) const DEFAULT_CAPACITY: usize = 10_000;

    pub(crate) fn new(capacity: usize) -> Self {
        let places = Places {
            capacity,
            waiting: 0,
            of: HashMap::new(),
        };
        Self {
            places: Lock::new(places),
            hasher: RandomState::new(),
            closed: Notify::new(),
        }
    }

    pub(crate) fn set_capacity(&self, capacity: usize) {
        self.places.lock().capacity = capacity;
    }

    pub(crate) fn capacity(&self) -> usize {
        self.places.lock().capacity
    }

    pub(crate) fn has_room(&self, waiter: &Waiter<'_>) -> bool {
        let numbers = self.numbers(waiter);
        self.places.lock().has_room(numbers)
    }

    pub(crate) fn place(self: &Arc<Self>, waiter: &Waiter<'_>) -> Option<WaitingPlace> {
        let numbers = self.numbers(waiter);
        let mut places = self.places.lock();
        if !places.has_room(numbers) {
            return None;
        }
        places.waiting += 1;
        for number in numbers.into_iter().flatten() {
            *places.of.entry(number).or_default() += 1;
        }
        Some(WaitingPlace {
            queue: Arc::clone(self),
            numbers,
        })
    }

    pub(crate) fn waiting(&self) -> usize {
        self.places.lock().waiting
    }

    pub(crate) fn close(&self) {
        self.set_capacity(0);
        self.closed.notify_waiters();
    }

    fn numbers(&self, waiter: &Waiter<'_>) -> Numbers {
        let (limit, key) = (waiter.limit, waiter.key);
        // Limits without a key have no clients among which to divide the queue.
        let key = Some(key).filter(|key| **key != Key::EVERYONE);
        [
            limit.map(|limit| self.hasher.hash_one(limit.id())),
            key.map(|key| self.hasher.hash_one((key.scope().id(), key.as_bytes()))),
        ]
    }
}

impl Places {
    fn has_room(&self, numbers: Numbers) -> bool {
        let free = self.capacity.saturating_sub(self.waiting);
        let waiting = |number| self.of.get(&number).copied().unwrap_or_default();
        let mut numbers = numbers.into_iter().flatten();
        free > 0 && numbers.all(|number| waiting(number) < free)
    }
}

impl WaitingPlace {
    pub(crate) async fn closed(&self) {
        let notified = self.queue.closed.notified();
        // The queue may have closed between taking the place and creating the notification.
        let is_closed = self.queue.places.lock().capacity == 0;
        if !is_closed {
            notified.await;
        }
    }
}

impl Drop for WaitingPlace {
    fn drop(&mut self) {
        let mut places = self.queue.places.lock();
        places.waiting -= 1;
        for number in self.numbers.into_iter().flatten() {
            if let Some(waiting) = places.of.get_mut(&number) {
                *waiting -= 1;
                if *waiting == 0 {
                    places.of.remove(&number);
                }
            }
        }
    }
}
