//! The places of the connections of a port.

use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;
use tower_quota_core::Lock;

/// The connections of a port, in the order of their ages.
#[derive(Debug)]
pub(super) struct Places {
    most: usize,
    taken: Lock<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    next: u64,
    connections: BTreeMap<u64, Arc<Requests>>,
}

/// The place of a connection, which is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    number: u64,
    pub(super) requests: Arc<Requests>,
}

/// The requests of a connection.
#[derive(Debug, Default)]
pub(super) struct Requests {
    begun: AtomicU64,
    ended: AtomicU64,
    /// The running requests whose bodies may not have arrived.
    unread: AtomicU64,
    /// The requests that had begun when the place was wanted last.
    seen: AtomicU64,
    evicted: Notify,
}

/// A body that has not been read.
#[derive(Debug)]
pub(super) struct Unread(Arc<Requests>);

/// A running request.
#[derive(Debug)]
pub(super) struct Running(Arc<Requests>);

impl Places {
    pub(super) fn new(most: u32) -> Arc<Self> {
        Arc::new(Self {
            most: most as usize,
            taken: Lock::default(),
        })
    }

    /// Takes a place, if necessary in place of an idle connection. Returns `None` if all connections are busy.
    pub(super) fn take(self: &Arc<Self>) -> Option<Place> {
        let mut taken = self.taken.lock();
        if taken.connections.len() >= self.most {
            taken.evict()?;
        }
        let (number, requests) = (taken.next, Arc::<Requests>::default());
        taken.next += 1;
        taken.connections.insert(number, Arc::clone(&requests));
        Some(Place {
            places: Arc::clone(self),
            number,
            requests,
        })
    }

    /// Ends an idle connection, if there is one.
    pub(super) fn evict(&self) {
        self.taken.lock().evict();
    }

    pub(super) fn taken(&self) -> usize {
        self.taken.lock().connections.len()
    }
}

impl Place {
    /// Spreads an age by up to a tenth, so that connections that began together do not end together.
    pub(super) fn spread(&self, age: Duration) -> Duration {
        let percent = 90 + u32::try_from(self.number % 21).unwrap_or(0);
        (age / 100).saturating_mul(percent)
    }
}

impl Taken {
    fn evict(&mut self) -> Option<()> {
        let mut idle = None;
        for (number, requests) in &self.connections {
            if requests.are_decided() {
                continue;
            }
            let begun = requests.begun();
            if requests.seen.swap(begun, Ordering::Relaxed) == begun {
                idle = Some(*number);
                break;
            }
            idle = idle.or(Some(*number));
        }
        let requests = self.connections.remove(&idle?)?;
        requests.evicted.notify_one();
        Some(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.taken.lock().connections.remove(&self.number);
    }
}

impl Requests {
    pub(super) fn begin(self: &Arc<Self>) -> Running {
        self.begun.fetch_add(1, Ordering::Relaxed);
        Running(Arc::clone(self))
    }

    pub(super) fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    pub(super) fn begin_body(self: &Arc<Self>) -> Unread {
        self.unread.fetch_add(1, Ordering::Relaxed);
        Unread(Arc::clone(self))
    }

    /// Returns whether a request with its body is running. A client may send a body slowly.
    fn are_decided(&self) -> bool {
        let ended = self.ended.load(Ordering::Relaxed);
        self.begun().saturating_sub(ended) > self.unread.load(Ordering::Relaxed)
    }

    pub(super) fn are_running(&self) -> bool {
        self.ended.load(Ordering::Relaxed) != self.begun()
    }

    /// Waits until another connection gets the place.
    pub(super) async fn evicted(&self) {
        self.evicted.notified().await;
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        self.0.unread.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::Relaxed);
    }
}
