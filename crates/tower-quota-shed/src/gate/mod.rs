//! Decides which requests may enter. Everything here is data with the time passed in.
//!
//! | file | content |
//! |---|---|
//! | `count` | the places in use, the only state that a request without pressure writes |
//! | `place` | a request in progress |
//! | `bodies` | when bodies were sent, to tell long bodies from short ones |
//! | `mix` | the recent mix of levels, which sets the bound of each level |
//! | `shares` | the places of each key |
//! | `queue` | the requests that wait |
//! | `shedding` | the pressure, for retry times and the log |
//!
//! Below half of the limit, a request enters with one exchange of an atomic. Above, a lock orders the requests if the layer
//! has priorities, shares or a queue. The lock has one state for all threads, and a better level never has a lower bound
//! than a worse level, so no request of a higher class is refused at a moment when a lower class is admitted.

mod bodies;
mod count;
mod mix;
mod place;
mod queue;
mod shares;
mod shedding;

use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::hash::RandomState;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot::Receiver;

use self::bodies::Bodies;
pub(crate) use self::count::Count;
use self::mix::Mix;
pub(crate) use self::place::Place;
use self::queue::Queue;
use self::shares::Shares;
use self::shedding::Shedding;
use crate::cause::Cause;
use crate::clock::Clock;
use crate::limit::Limit;
use crate::priority::Priority;
use crate::settings::Settings;
use crate::sync;

/// The state that all clones of a layer share.
pub(crate) struct Gate {
    pub(crate) places: Places,
    pub(crate) limit: Limit,
    pub(crate) shedding: Shedding,
    pub(crate) refused: [[AtomicU64; Cause::ALL.len()]; Priority::ALL.len()],
    pub(crate) settings: Settings,
    pub(crate) hasher: RandomState,
    pub(crate) clock: Clock,
    order: Option<Mutex<Order>>,
}

/// What every request writes. Other fields stay out of this cache line.
#[repr(align(128))]
pub(crate) struct Places {
    pub(crate) count: Count,
    bodies: Bodies,
}

/// The state under the lock.
struct Order {
    mix: Mix,
    shares: Shares,
    queue: Queue,
}

/// The answer to a request.
pub(crate) enum Entry {
    Place(Place),
    Wait(Priority, Receiver<Place>),
    Refused(Priority, Cause),
}

impl Gate {
    pub(crate) fn new(settings: Settings) -> Self {
        let order = Order {
            mix: Mix::default(),
            shares: Shares::new(),
            queue: Queue {
                most: settings.queue.0,
                waiters: Vec::new(),
            },
        };
        Self {
            places: Places {
                count: Count::new(),
                bodies: Bodies::new(),
            },
            limit: Limit::new(&settings.limit),
            shedding: Shedding::default(),
            refused: Default::default(),
            order: settings.needs_order().then(|| Mutex::new(order)),
            settings,
            hasher: RandomState::new(),
            clock: Clock::start(),
        }
    }

    /// Lets a request enter, wait, or go. The class and the key are only read under pressure.
    pub(crate) fn enter(
        self: &Arc<Self>,
        now: Duration,
        read: impl FnOnce() -> (Priority, Option<u64>),
    ) -> Entry {
        self.places.bodies.age(now, &self.places.count);
        let limit = self.limit.get();
        let room = match self.order {
            Some(_) => limit.div_ceil(2),
            None => 0,
        };
        if let Some(place) = self.take(limit, room, now, None) {
            return Entry::Place(place);
        }
        // Before the lock, because rules and extractors are foreign code.
        let (priority, key) = read();
        let Some(mut order) = self.lock() else {
            return Entry::Refused(priority, Cause::Limit);
        };
        let slot = order.shares.slot_of(priority, key);
        let is_over = order.shares.is_over(slot);
        let level = 2 * priority as usize + usize::from(is_over);
        if order.mix.arrived(level) {
            let fit = order.mix.fit_classes();
            order.shares.look(now, self.limit.most().max(limit), fit);
        }
        let next = order.queue.waiters.last();
        let is_next = next.is_none_or(|waiter| level <= waiter.level);
        if is_next && let Some(place) = self.admit(&mut order, level, slot, now) {
            return Entry::Place(place);
        }
        if let Some(receiver) = order.queue.push(level, slot) {
            // A place may have become free before the others knew that this request waits.
            self.serve(order, now);
            return Entry::Wait(priority, receiver);
        }
        order.shares.refuse(slot);
        let is_at_ceiling = self.places.count.in_progress() >= self.settings.limit.ceiling;
        let is_full = self.places.count.used() >= limit || is_at_ceiling;
        let cause = match is_full {
            true => Cause::Limit,
            false if is_over => Cause::Share,
            false => Cause::Priority,
        };
        if !is_full && !order.queue.waiters.is_empty() {
            // Long bodies may have left places to requests that wait.
            self.serve(order, now);
        }
        Entry::Refused(priority, cause)
    }

    /// Counts a refusal, and returns the time after which the client may retry.
    pub(crate) fn refuse(&self, now: Duration, priority: Priority, cause: Cause) -> Duration {
        self.refused[priority as usize][cause as usize].fetch_add(1, Ordering::Relaxed);
        let (demand, begins) = self.shedding.refused(now);
        if begins {
            let figures = self.limit.snapshot();
            tracing::warn!(
                limit = figures.limit,
                in_progress = self.places.count.in_progress(),
                base_latency = ?figures.base,
                latency = ?figures.present,
                "the service sheds requests",
            );
        }
        self.settings.retry_after(demand)
    }

    /// Takes a place if this room stays below the bound and below the ceiling.
    fn take(
        self: &Arc<Self>,
        bound: usize,
        room: usize,
        since: Duration,
        slot: Option<usize>,
    ) -> Option<Place> {
        let ceiling = self.settings.limit.ceiling.saturating_sub(room);
        let count = &self.places.count;
        let in_progress = count.enter(bound - room, ceiling, slot.is_some())?;
        let gate = Arc::clone(self);
        Some(Place {
            gate,
            since,
            in_progress,
            slot,
            body: None,
        })
    }

    /// Takes a place under the lock, if the level may fill one.
    fn admit(
        self: &Arc<Self>,
        order: &mut Order,
        level: usize,
        slot: usize,
        now: Duration,
    ) -> Option<Place> {
        let limit = self.limit.get();
        // The limit may have changed between both loads.
        let most = self.limit.most().max(limit);
        let bound = order.mix.bound(level, limit, most);
        let room = limit.saturating_sub(bound);
        let mut place = self.take(bound + room, room, now, Some(slot))?;
        // A level that leaves room to better levels has reached the limit at its own bound.
        place.in_progress += room;
        order.mix.admitted();
        order.shares.take(slot);
        Some(place)
    }

    /// Gives the places of long bodies to waiting requests, because no request leaves when a body becomes long.
    pub(crate) fn serve_after_bodies(self: &Arc<Self>, now: Duration) {
        self.places.bodies.age(now, &self.places.count);
        if let Some(order) = self.lock() {
            self.serve(order, now);
        }
    }

    /// Gives free places to waiting requests.
    fn serve(self: &Arc<Self>, mut order: MutexGuard<'_, Order>, now: Duration) {
        let mut unclaimed = Vec::new();
        order.queue.forget_lost();
        self.places.count.announce(order.queue.waiters.len());
        while let Some(waiter) = order.queue.waiters.pop() {
            let Some(place) = self.admit(&mut order, waiter.level, waiter.slot, now) else {
                order.queue.waiters.push(waiter);
                break;
            };
            unclaimed.extend(waiter.place.send(place).err());
        }
        self.places.count.announce(order.queue.waiters.len());
        // The places of lost requests lock again when they are dropped.
        drop(order);
    }

    /// Returns the place of a request, or of the body of a request.
    fn leave(self: &Arc<Self>, slot: Option<usize>, body: Option<u64>) {
        if let (Some(slot), Some(mut order)) = (slot, self.lock()) {
            order.shares.give_back(slot);
        }
        let is_within = body.is_none_or(|period| self.places.bodies.end(period));
        let must_serve = match is_within {
            true => self.places.count.leave(),
            false => self.places.count.leave_long(),
        };
        if let (true, Some(order)) = (must_serve, self.lock()) {
            self.serve(order, self.clock.now());
        }
    }

    fn lock(&self) -> Option<MutexGuard<'_, Order>> {
        let order = self.order.as_ref()?;
        Some(order.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Gate")
    }
}

#[cfg(test)]
#[expect(
    clippy::cast_possible_truncation,
    clippy::float_arithmetic,
    reason = "simulations calculate with real numbers"
)]
mod tests;
