//! Counts the calls of a connection that were not answered.

use core::time::Duration;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use crate::clock::now;
use crate::lock::locked;

/// The time without calls after which a connection is checked.
pub(super) const SILENCE: Duration = Duration::from_millis(250);

#[derive(Clone)]
pub(super) struct Tracked<C> {
    pub(super) connection: C,
    /// The calls. The pointer identifies the connection.
    pub(super) calls: Arc<Mutex<Calls>>,
}

pub(super) struct Calls {
    last: Instant,
    pub(super) unanswered: u32,
    given_up: Option<Instant>,
}

impl<C> Tracked<C> {
    pub(super) fn new(connection: C) -> Self {
        // A new connection has not answered a call yet.
        let calls = Calls {
            last: now(),
            unanswered: 1,
            given_up: None,
        };
        Self {
            connection,
            calls: Arc::new(Mutex::new(calls)),
        }
    }

    /// Records the beginning of a call. Returns whether there was a silence.
    pub(super) fn begin_call(&self) -> bool {
        let now = now();
        now.saturating_duration_since(core::mem::replace(&mut locked(&self.calls).last, now))
            > SILENCE
    }
}

impl Calls {
    /// Counts an unanswered call. Returns the unanswered calls in a row.
    pub(super) fn give_up(&mut self, began: Instant) -> u32 {
        if self.given_up.is_none_or(|given_up| began >= given_up) {
            self.given_up = Some(now());
            self.unanswered += 1;
        }
        self.unanswered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_under_way_together_count_once() {
        let tracked = Tracked::new(());
        let (mut calls, began) = (locked(&tracked.calls), now());
        assert_eq!((calls.give_up(began), calls.give_up(began)), (2, 2));
        assert_eq!((calls.give_up(now()), calls.give_up(began)), (3, 3));
    }
}
