use std::sync::{Mutex, PoisonError};

use tower_quota_core::Name;

use crate::key::Mistake;

/// Collects what keys and conditions find out about a request while the layer examines its first requests.
///
/// A request that is not examined has no notes.
#[derive(Default)]
pub(crate) struct Notes(Mutex<Vec<Note>>);

/// A finding of a key or a condition.
pub(crate) enum Note {
    /// The key of this scope has read an address, with or without a mistake in the configuration.
    Address {
        scope: Name,
        mistake: Option<Mistake>,
    },
    /// The condition on this route has matched.
    #[cfg(feature = "axum")]
    RouteMatched { pattern: String },
    /// The condition on this route can match no request, for this reason.
    #[cfg(feature = "axum")]
    RouteMissed { pattern: String, reason: String },
}

impl Notes {
    pub(crate) fn add(&self, note: Note) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(note);
    }

    pub(crate) fn take(&self) -> Vec<Note> {
        core::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
