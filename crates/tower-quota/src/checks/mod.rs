//! Mistakes in the configuration that only traffic shows.
//!
//! [`Check`] names the mistakes. While the [`Watch`] of a policy is open, the heads of requests carry it: `ClientIp` and
//! `when::route` report to it what they see, so no key or condition runs a second time. The watch counts until a mistake is
//! proved, and [`Checks`] logs and keeps it for the whole layer. A [`Mark`] on a request tells inner layers what was counted.
//!
//! Warnings must be right, so most mistakes take many requests to prove. No warning contains an address, a key, or the text
//! of an error.

mod check;
mod mark;
mod report;
mod watch;

use std::sync::{Mutex, MutexGuard, PoisonError};

use tower_quota_core::Charge;

pub use self::check::Check;
pub(crate) use self::mark::Mark;
pub use self::report::ChecksReport;
pub(crate) use self::watch::Watch;
use crate::key::Mistake;

/// The maximum number of warnings that a layer logs and keeps.
const MAX_WARNINGS: usize = 64;

/// The mistakes that a layer has found, and the checks that are turned off.
#[derive(Default)]
pub(crate) struct Checks {
    off: Mutex<Vec<Check>>,
    found: Mutex<ChecksReport>,
}

impl Checks {
    /// Turns off a check.
    pub(crate) fn turn_off(&self, check: Check) {
        self.off().push(check);
    }

    pub(crate) fn report(&self) -> ChecksReport {
        self.found().clone()
    }

    pub(crate) fn no_peer_address(&self) {
        self.record(Check::NoPeerAddress, 1, || {
            Mistake::NoPeerAddress.to_string()
        });
    }

    /// Records a request with more limits than a store decides in one step.
    pub(crate) fn too_many_limits(&self) {
        self.record(Check::TooManyLimits, 1, || {
            format!(
                "a request has more than {} limits, so it is refused with status 500 and not counted: give it fewer limits, \
                 or narrow their conditions",
                Charge::MOST
            )
        });
    }

    /// Counts a request that shows a mistake, and logs the mistake when the requests so far prove it.
    fn record(&self, check: Check, shown: u64, text: impl FnOnce() -> String) {
        let proof = check.proof();
        if shown < proof || self.off().contains(&check) {
            return;
        }
        let is_proof = shown == proof;
        let requests = if is_proof { proof } else { 1 };
        let mut found = self.found();
        match found.counts.iter_mut().find(|(known, _)| *known == check) {
            Some((_, count)) => *count += requests,
            None => found.counts.push((check, requests)),
        }
        if !is_proof || found.warnings.len() >= MAX_WARNINGS {
            return;
        }
        let text = format!(
            "{}. This is logged once; `RateLimitLayer::without_check(Check::{check:?})` turns it off.",
            text()
        );
        // A replaced policy is watched again, but each warning is logged once.
        if found.warnings().any(|(_, known)| known == text) {
            return;
        }
        found.warnings.push((check, text.clone()));
        // A subscriber may be slow: do not hold the lock while it logs.
        drop(found);
        tracing::warn!(target: "tower_quota", "{text}");
    }

    fn off(&self) -> MutexGuard<'_, Vec<Check>> {
        self.off.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn found(&self) -> MutexGuard<'_, ChecksReport> {
        // Each change is one step, so a poisoned report is still valid.
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
