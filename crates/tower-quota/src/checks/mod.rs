//! Mistakes in the configuration that only traffic shows.
//!
//! Each is logged once, with what to write instead, and counted.
//!
//! 1. `check` names the mistakes.
//! 2. `watch` looks at the first requests of a policy: a thousand, and up to ten thousand while some key has not been
//!    found. `key` is what it knows of each key, `limit` of each limit, `mark` what a layer leaves in requests for the
//!    layers inside it.
//! 3. `Checks` counts what was found and logs it; `report` is what operators read of it.
//!
//! A warning must be right, so each takes more than one request to prove; [`Check`] says how many. No warning holds an
//! address, a key, or the text of an error.

mod check;
mod key;
mod limit;
mod mark;
mod report;
mod watch;

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tower_quota_core::Name;

pub use self::check::Check;
pub(crate) use self::check::CheckSet;
pub(crate) use self::mark::Mark;
pub use self::report::ChecksReport;
use self::report::Warning;
pub(crate) use self::watch::Watch;
use crate::key::Mistake;

/// The most warnings of a layer that are logged and kept: each is of another mistake or another limit.
const MOST_WARNINGS: usize = 64;

/// How many requests prove a mistake that one request shows.
const FEW: u64 = 20;

/// How many requests prove a mistake that one good request disproves.
const MANY: u64 = 100;

/// How many requests prove that something never happens.
const THOUSAND: u64 = 1_000;

/// What a layer has found, and which checks are turned off.
pub(crate) struct Checks {
    off: CheckSet,
    counts: [AtomicU64; Check::ALL.len()],
    warnings: Mutex<Vec<Warning>>,
    missing_peers: AtomicU64,
    store_failures: AtomicU64,
    /// Says whether the store has ever answered.
    has_answered: AtomicBool,
}

impl Checks {
    pub(crate) fn new(off: CheckSet) -> Self {
        Self {
            off,
            counts: Default::default(),
            warnings: Mutex::default(),
            missing_peers: AtomicU64::new(0),
            store_failures: AtomicU64::new(0),
            has_answered: AtomicBool::new(false),
        }
    }

    /// Returns whether no check looks at requests.
    pub(crate) fn are_off(&self) -> bool {
        self.off.has_all()
    }

    /// Returns what was found so far.
    pub(crate) fn report(&self) -> ChecksReport {
        let count = |check: Check| (check, self.counts[check.index()].load(Ordering::Relaxed));
        let counts = Check::ALL.into_iter().map(count).filter(|(_, count)| *count > 0).collect();
        ChecksReport::new(counts, self.warnings().clone())
    }

    /// Notes a request without the address of its peer.
    #[cold]
    pub(crate) fn no_peer_address(&self) {
        self.observe(Check::NoPeerAddress, None, &self.missing_peers, 1, || Mistake::NoPeerAddress.to_string());
    }

    /// Notes an answer of a store that has to be waited for.
    #[inline]
    pub(crate) fn store_answered(&self) {
        if !self.has_answered.load(Ordering::Relaxed) {
            self.has_answered.store(true, Ordering::Relaxed);
        }
    }

    /// Notes a failure of the store.
    #[cold]
    pub(crate) fn store_failed(&self) {
        if self.has_answered.load(Ordering::Relaxed) {
            return;
        }
        self.observe(Check::StoreNeverAnswered, None, &self.store_failures, MANY, || {
            format!(
                "the store has not answered since start: {MANY} calls have failed and none has succeeded, so limits do what \
                 `on_store_failure` says. Check the store's address, its credentials and the network; \
                 `RateLimitLayer::on_store_error` hears each error"
            )
        });
    }

    /// Counts a request that shows a mistake, and logs the mistake at the request that proves it.
    fn observe(&self, check: Check, limit: Option<Name>, seen: &AtomicU64, proof: u64, text: impl FnOnce() -> String) {
        if self.off.has(check) {
            return;
        }
        let seen = seen.fetch_add(1, Ordering::Relaxed) + 1;
        if seen < proof {
            return;
        }
        let found = if seen == proof { proof } else { 1 };
        self.counts[check.index()].fetch_add(found, Ordering::Relaxed);
        if seen == proof {
            self.warn(Warning::new(check, limit, text()));
        }
    }

    fn warn(&self, warning: Warning) {
        let mut warnings = self.warnings();
        // A policy that is replaced is watched anew.
        if warnings.len() >= MOST_WARNINGS || warnings.iter().any(|known| known.is_of(&warning)) {
            return;
        }
        warnings.push(warning.clone());
        // A subscriber may take its time.
        drop(warnings);
        tracing::warn!(target: "tower_quota", "{}", warning.text());
    }

    fn warnings(&self) -> MutexGuard<'_, Vec<Warning>> {
        // A warning is added in one step.
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
