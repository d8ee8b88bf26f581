use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use super::in_force::InForce;
use crate::error::StartError;
use crate::store::{BlockStore, RuleStoreError};
use crate::time::Time;
use crate::version::VersionInfo;

/// The state of the live rules on an instance, for health checks.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct LiveState {
    /// The store, without secrets.
    pub store: String,
    /// True if the documents of the store, such as a file, can only be read.
    pub is_read_only: bool,
    /// True if all instances see the blocks, allowances, overrides and audit records. If false, they
    /// hold on this instance only, and are lost when it restarts.
    pub blocks_are_shared: bool,
    /// True if the store answered the last call.
    pub is_reachable: bool,
    /// The time of the last change of `is_reachable`.
    pub reachable_since: Time,
    /// The version in force, if any.
    pub in_force: Option<VersionState>,
    /// The last unresolved error.
    pub last_error: Option<String>,
    /// True if the last error may quote the document, and so the keys of clients.
    #[serde(skip)]
    pub quotes_document: bool,
    /// The time of the first unresolved error.
    pub failing_since: Option<Time>,
    /// The results of reloads since the start.
    pub reloads: ReloadCounts,
    /// The number of blocks and allowances in force.
    pub blocks: usize,
}

impl LiveState {
    /// Returns whether a document is in force, the store is reachable, and its last document is
    /// valid.
    #[must_use]
    pub const fn is_healthy(&self) -> bool {
        self.in_force.is_some() && self.is_reachable && self.last_error.is_none()
    }
}

/// The version in force on an instance.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct VersionState {
    /// The version.
    #[serde(flatten)]
    pub version: VersionInfo,
    /// The time since when this instance uses the version.
    pub since: Time,
    /// True if the version comes from the local copy, unconfirmed by the store.
    pub is_local_copy: bool,
}

/// The results of reloads on an instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ReloadCounts {
    /// Documents put in force.
    pub applied: u64,
    /// Invalid documents.
    pub rejected: u64,
    /// Failed calls of the store.
    pub failed: u64,
}

#[derive(Debug)]
pub(super) struct Health(Mutex<Noted>);

#[derive(Clone, Debug)]
struct Noted {
    is_reachable: bool,
    reachable_since: Time,
    failure: Option<Failure>,
    invalid: Option<String>,
    failing_since: Option<Time>,
    reloads: ReloadCounts,
}

/// A failure of the store.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub(super) text: String,
    /// Whether the store is silent. Another failure may quote the document.
    pub(super) is_silent: bool,
}

impl From<RuleStoreError> for Failure {
    fn from(error: RuleStoreError) -> Self {
        Self {
            text: error.to_string(),
            is_silent: matches!(error, RuleStoreError::Unavailable { .. }),
        }
    }
}

impl Health {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Noted {
            is_reachable: false,
            reachable_since: Time::now(),
            failure: None,
            invalid: None,
            failing_since: None,
            reloads: ReloadCounts::default(),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Noted> {
        // The fields are independent, so they are valid even if a thread panicked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn answered(&self) -> bool {
        let mut noted = self.lock();
        noted.failure = None;
        noted.note_errors();
        noted.note_reachable(true)
    }

    /// Notes a failure of the store. Returns whether it is the first failure in a row.
    pub(super) fn failed(&self, failure: Failure) -> bool {
        let mut noted = self.lock();
        noted.reloads.failed += 1;
        let is_first = noted.failure.replace(failure).is_none();
        noted.note_errors();
        noted.note_reachable(false);
        is_first
    }

    /// Returns the reason why no rules are in force after a start. With `is_late`, the start took
    /// too long.
    pub(super) fn start_error(&self, store: String, is_late: bool) -> StartError {
        let noted = self.lock();
        if let Some(failure) = noted.failure.clone() {
            let reason = failure.text;
            return StartError::Unavailable { store, reason };
        }
        match noted.invalid.clone() {
            Some(reason) => StartError::Invalid { store, reason },
            None if is_late => StartError::Unavailable {
                store,
                reason: "no document is in force in time: see `LiveOptions::start_deadline`"
                    .to_owned(),
            },
            None => StartError::Empty { store },
        }
    }

    pub(super) fn applied(&self) {
        self.lock().reloads.applied += 1;
    }

    pub(super) fn is_valid(&self) {
        let mut noted = self.lock();
        noted.invalid = None;
        noted.note_errors();
    }

    pub(super) fn rejected(&self, error: String) {
        let mut noted = self.lock();
        noted.reloads.rejected += 1;
        noted.invalid = Some(error);
        noted.note_errors();
    }

    pub(super) fn state(
        &self,
        store: &dyn BlockStore,
        in_force: Option<&InForce>,
        blocks: usize,
    ) -> LiveState {
        let noted = self.lock().clone();
        let is_silent = noted
            .failure
            .as_ref()
            .is_some_and(|failure| failure.is_silent);
        LiveState {
            store: store.name(),
            is_read_only: store.is_read_only(),
            blocks_are_shared: store.shares_blocks(),
            is_reachable: noted.is_reachable,
            reachable_since: noted.reachable_since,
            in_force: in_force.map(|in_force| VersionState {
                version: in_force.version.info(),
                since: in_force.since,
                is_local_copy: in_force.is_local_copy,
            }),
            last_error: noted.failure.map(|failure| failure.text).or(noted.invalid),
            quotes_document: !is_silent,
            failing_since: noted.failing_since,
            reloads: noted.reloads,
            blocks,
        }
    }
}

impl Noted {
    fn note_reachable(&mut self, is_reachable: bool) -> bool {
        let has_changed = core::mem::replace(&mut self.is_reachable, is_reachable) != is_reachable;
        if has_changed {
            self.reachable_since = Time::now();
        }
        has_changed
    }

    fn note_errors(&mut self) {
        if self.failure.is_none() && self.invalid.is_none() {
            self.failing_since = None;
        } else {
            self.failing_since.get_or_insert_with(Time::now);
        }
    }
}
