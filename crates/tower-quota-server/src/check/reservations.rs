//! The open reservations of this instance.

use core::fmt;
use core::time::Duration;
use std::collections::HashMap;
use std::sync::{Arc, Once, Weak};

use http::StatusCode;
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower_quota::Name;
use tower_quota::settle::Reservation;
use tower_quota_core::{Clock, Lock, Timestamp};

use crate::http::{HttpOptions, Problem};

/// The time between two looks for reservations whose time is over.
const TICK: Duration = Duration::from_secs(1);

/// Reservations by their ids, which nobody can guess.
pub(crate) struct Reservations {
    clock: Arc<dyn Clock>,
    places: Arc<Semaphore>,
    open: Lock<HashMap<String, Held>>,
    followed: Once,
}

/// The charges of a reservation. They are refunded on drop, unless a commit sets their cost.
pub(super) struct Held {
    pub(super) charges: Reservation,
    /// The limits that settle, with their estimates.
    pub(super) estimates: Vec<(Name, u64)>,
    pub(super) ends: Timestamp,
    pub(super) _place: OwnedSemaphorePermit,
}

#[derive(Serialize)]
pub(super) struct Reserved {
    id: String,
    expires_in_ms: u64,
}

impl fmt::Debug for Reservations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Ids are secrets.
        f.write_str("Reservations")
    }
}

impl Reservations {
    pub(super) fn new(clock: Arc<dyn Clock>, options: &HttpOptions) -> Self {
        Self {
            clock,
            places: Arc::new(Semaphore::new(options.most_reservations as usize)),
            open: Lock::default(),
            followed: Once::new(),
        }
    }

    /// Takes a place for the reservation of a call with this many bytes.
    pub(super) fn place(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Problem> {
        let places = u32::try_from(bytes.div_ceil(1_024)).unwrap_or(u32::MAX);
        let take = || Arc::clone(&self.places).try_acquire_many_owned(places.max(1));
        let place = take().or_else(|_| {
            self.expire();
            take()
        });
        place.map_err(|_| {
            Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "too many reservations are open: commit them, or reserve for a shorter time",
            )
        })
    }

    /// Opens a reservation.
    pub(super) fn open(
        self: &Arc<Self>,
        charges: Reservation,
        estimates: Vec<(Name, u64)>,
        time: Duration,
        place: OwnedSemaphorePermit,
    ) -> Result<Reserved, Problem> {
        // The last cost counts, so a commit replaces the refund.
        charges.refund();
        let (id, ends) = (new_id()?, self.clock.now() + time);
        let held = Held {
            charges,
            estimates,
            ends,
            _place: place,
        };
        self.open.lock().insert(id.clone(), held);
        self.followed
            .call_once(|| drop(tokio::spawn(follow(Arc::downgrade(self)))));
        Ok(Reserved {
            id,
            expires_in_ms: u64::try_from(time.as_millis()).unwrap_or(u64::MAX),
        })
    }

    /// Ends a reservation whose time is not over, unless the check returns a problem.
    pub(super) fn end(
        &self,
        id: &str,
        check: impl FnOnce(&Held) -> Result<(), Problem>,
    ) -> Result<Held, Problem> {
        let now = self.clock.now();
        let mut open = self.open.lock();
        let held = open.get(id).ok_or_else(missing)?;
        let is_late = held.ends <= now;
        if !is_late {
            check(held)?;
        }
        let held = open.remove(id);
        // Refund without the lock, because a refund calls the store.
        drop(open);
        held.filter(|_| !is_late).ok_or_else(missing)
    }

    /// Refunds all open reservations.
    pub(crate) fn close(&self) {
        // Refund without the lock, because a refund calls the store.
        let open = core::mem::take(&mut *self.open.lock());
        drop(open);
    }

    /// Refunds the reservations whose time is over.
    fn expire(&self) {
        let now = self.clock.now();
        let mut open = self.open.lock();
        let ended: Vec<_> = open.extract_if(|_, held| held.ends <= now).collect();
        drop(open);
        drop(ended);
    }
}

async fn follow(reservations: Weak<Reservations>) {
    let mut ticks = tokio::time::interval(TICK);
    loop {
        ticks.tick().await;
        let Some(reservations) = reservations.upgrade() else {
            return;
        };
        reservations.expire();
    }
}

fn missing() -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "there is no such reservation: it is committed, its time is over, or another instance has it",
    )
}

/// Returns 128 random bits in hexadecimal digits.
fn new_id() -> Result<String, Problem> {
    let mut bytes = [0; 16];
    let random = rustls::crypto::ring::default_provider().secure_random;
    random.fill(&mut bytes).map_err(|_| {
        Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "the machine has no random numbers: check without `reserve`",
        )
    })?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}
