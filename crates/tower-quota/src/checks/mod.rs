//! Mistakes in the configuration that only traffic shows.
//!
//! Each is logged once, with what to write instead, and counted.
//!
//! 1. `check` names the mistakes.
//! 2. `watch` examines the first requests of a policy: a thousand, and up to ten thousand while some key has not been
//!    found. `key` holds the state for each key, `limit` for each limit, and `mark` is attached to requests for inner
//!    layers.
//! 3. `Checks` counts the mistakes and logs them; `report` shows them to operators.
//!
//! A warning must be right, so each takes more than one request to prove; [`Check`] says how many. No warning holds an
//! address, a key, or the text of an error.

mod check;
mod key;
mod limit;
mod mark;
mod report;
mod watch;

use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tower_quota_core::{Charge, Name};

pub use self::check::Check;
use self::check::CheckSet;
pub(crate) use self::mark::Mark;
pub use self::report::ChecksReport;
use self::report::Warning;
pub(crate) use self::watch::Watch;
use crate::key::Mistake;

/// The maximum number of warnings that a layer logs and keeps.
const MAX_WARNINGS: usize = 64;

/// The number of requests that prove a mistake which a single request shows.
const DIRECT_PROOF: u64 = 20;

/// The number of requests that prove a mistake which one good request disproves.
const DISPROVABLE_PROOF: u64 = 100;

/// The number of requests that prove that something never happens.
const NEVER_PROOF: u64 = 1_000;

/// The mistakes that a layer has found, and the checks that are turned off.
#[derive(Default)]
pub(crate) struct Checks {
    off: CheckSet,
    counts: [AtomicU64; Check::ALL.len()],
    warnings: Mutex<Vec<Warning>>,
    missing_peers: AtomicU64,
    crowded: AtomicU64,
}

impl Checks {
    /// Turns off a check.
    pub(crate) fn turn_off(&self, check: Check) {
        self.off.insert(check);
    }

    /// Returns whether all checks of requests are turned off.
    pub(crate) fn are_off(&self) -> bool {
        self.off.has_all()
    }

    /// Returns the mistakes that were found so far.
    pub(crate) fn report(&self) -> ChecksReport {
        let count = |check: Check| (check, self.counts[check.index()].load(Ordering::Relaxed));
        let counts = Check::ALL
            .into_iter()
            .map(count)
            .filter(|(_, count)| *count > 0)
            .collect();
        ChecksReport::new(counts, self.warnings().clone())
    }

    /// Records a request without the address of its peer.
    #[cold]
    pub(crate) fn no_peer_address(&self) {
        self.observe(Check::NoPeerAddress, None, &self.missing_peers, 1, || {
            Mistake::NoPeerAddress.to_string()
        });
    }

    /// Records a request with more limits than a store decides in one step.
    #[cold]
    pub(crate) fn too_many_limits(&self) {
        self.observe(Check::TooManyLimits, None, &self.crowded, 1, || {
            format!(
                "a request has more than {} limits, so it is refused with status 500 and not counted: give it fewer limits, \
                 or narrow their conditions",
                Charge::MOST
            )
        });
    }

    /// Counts a request that shows a mistake, and logs the mistake at the request that proves it.
    fn observe(
        &self,
        check: Check,
        limit: Option<Name>,
        seen: &AtomicU64,
        proof: u64,
        text: impl FnOnce() -> String,
    ) {
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
        // A replaced policy is watched again, but each warning is logged once.
        if warnings.len() >= MAX_WARNINGS || warnings.iter().any(|known| known.is_of(&warning)) {
            return;
        }
        warnings.push(warning.clone());
        // A subscriber may be slow: do not hold the lock while it logs.
        drop(warnings);
        tracing::warn!(target: "tower_quota", "{}", warning.text());
    }

    fn warnings(&self) -> MutexGuard<'_, Vec<Warning>> {
        // A warning is added in one step, so a poisoned list is still valid.
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
