//! The open reservations of this instance.

use core::time::Duration;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Weak};

use http::StatusCode;
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower_quota::Name;
use tower_quota::settle::Reservation;
use tower_quota_core::{Clock, Lock, Timestamp};

use super::answer::millis;
use super::commit::Commit;
use crate::http::{HttpOptions, Problem};

/// The time between two looks for reservations whose time is over.
const TICK: Duration = Duration::from_secs(1);

/// Reservations by their ids, which nobody can guess.
pub(super) struct Reservations {
    clock: Arc<dyn Clock>,
    places: Arc<Semaphore>,
    open: Lock<Open>,
}

#[derive(Default)]
struct Open {
    by_id: HashMap<String, Held>,
    by_end: BTreeSet<(Timestamp, String)>,
    is_followed: bool,
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

impl Reservations {
    pub(super) fn new(clock: Arc<dyn Clock>, options: &HttpOptions) -> Self {
        Self {
            clock,
            places: Arc::new(Semaphore::new(options.most_reservations as usize)),
            open: Lock::default(),
        }
    }

    /// Takes a place for the reservation of a call with this many bytes.
    pub(super) fn place(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Problem> {
        self.expire();
        let places = u32::try_from(bytes.div_ceil(1_024)).unwrap_or(u32::MAX);
        let place = Arc::clone(&self.places).try_acquire_many_owned(places.max(1));
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
        let mut open = self.open.lock();
        open.by_end.insert((ends, id.clone()));
        open.by_id.insert(id.clone(), held);
        if !open.is_followed {
            open.is_followed = true;
            tokio::spawn(follow(Arc::downgrade(self)));
        }
        Ok(Reserved {
            id,
            expires_in_ms: millis(time),
        })
    }

    /// Ends a reservation whose time is not over, if the commit fits.
    pub(super) fn end(&self, id: &str, commit: &Commit) -> Result<Held, Problem> {
        self.expire();
        let mut open = self.open.lock();
        commit.check(open.by_id.get(id).ok_or_else(missing)?)?;
        let (id, held) = open.by_id.remove_entry(id).ok_or_else(missing)?;
        open.by_end.remove(&(held.ends, id));
        Ok(held)
    }

    /// Refunds the reservations whose time is over.
    fn expire(&self) {
        let now = self.clock.now();
        let mut ended = Vec::new();
        let mut open = self.open.lock();
        while let Some((ends, _)) = open.by_end.first()
            && *ends <= now
            && let Some((_, id)) = open.by_end.pop_first()
        {
            ended.extend(open.by_id.remove(&id));
        }
        // Refund without the lock, because a refund calls the store.
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
