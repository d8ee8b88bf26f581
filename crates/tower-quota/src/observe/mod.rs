//! Notifies observers of what happened to requests.
//!
//! The layer reports each event once. Metrics, traces, listeners, checks, lists of clients and the log of outages receive
//! the event. They are made with the rules, so a policy without observers reports nothing.

mod decided;
mod event;
mod listener;
mod outcome_label;
mod request_id;

use std::sync::Arc;
use std::time::Instant;

pub use self::decided::Decided;
pub(crate) use self::decided::FoundClient;
pub(crate) use self::event::{Event, StoreFailure, StoreFailureKind};
pub(crate) use self::listener::{OnDecision, OnRefusal, OnStoreError};
pub(crate) use self::outcome_label::OutcomeLabel;
use crate::request::Rules;

/// A receiver of events.
pub(crate) trait Observer: Send + Sync {
    fn observe(&self, event: &Event<'_>, rules: &Rules);

    /// Returns whether the observer wants admitted and skipped requests. Other observers only get refusals and failures.
    fn sees_admissions(&self) -> bool {
        false
    }

    /// Returns whether the observer wants the answers of the store.
    fn sees_answers(&self) -> bool {
        false
    }

    /// Returns whether the observer reads the keys of admitted requests.
    fn reads_keys(&self) -> bool {
        false
    }

    /// Returns whether the observer reads the keys of refused requests.
    fn reads_refused_keys(&self) -> bool {
        self.reads_keys()
    }
}

/// The observers of a policy.
pub(crate) struct Observers {
    all: Vec<Arc<dyn Observer>>,
    of_answers: Vec<Arc<dyn Observer>>,
    pub(crate) see_admissions: bool,
    pub(crate) read_keys: bool,
    pub(crate) read_refused_keys: bool,
}

impl Observers {
    pub(crate) fn new(all: Vec<Arc<dyn Observer>>) -> Self {
        let of_answers = all.iter().filter(|observer| observer.sees_answers());
        Self {
            of_answers: of_answers.cloned().collect(),
            see_admissions: all.iter().any(|observer| observer.sees_admissions()),
            read_keys: all.iter().any(|observer| observer.reads_keys()),
            read_refused_keys: all.iter().any(|observer| observer.reads_refused_keys()),
            all,
        }
    }

    /// Returns the time before a sampled decision of a memory store, for the histograms of metrics.
    #[expect(
        clippy::unused_self,
        reason = "without the feature `metrics`, no decision is sampled"
    )]
    pub(crate) fn sample(&self) -> Option<Instant> {
        #[cfg(feature = "metrics")]
        return crate::metrics::sample().then(now);
        #[cfg(not(feature = "metrics"))]
        None
    }

    pub(crate) fn notify(&self, event: &Event<'_>, rules: &Rules) {
        let observers = match event {
            Event::Answered { .. } => &self.of_answers,
            _ => &self.all,
        };
        for observer in observers {
            observer.observe(event, rules);
        }
    }
}

/// Returns the present instant, for durations that observers show. No counter depends on this time.
#[expect(
    clippy::disallowed_methods,
    reason = "operators see it, and no store's clock is at hand"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}
