//! Checks for mistakes in the configuration that only traffic shows.
//!
//! Heads of the first requests carry [`Notes`](crate::head::Notes), so keys and conditions report mistakes without running
//! twice. [`Watch`] reads the notes, and [`Checks`] logs proved mistakes. A [`Mark`] tells inner layers the counted limits.
//!
//! A wrong warning would cost trust, so most checks wait for many requests. Warnings never contain
//! addresses or keys.

mod check;
mod report;
mod seen;
mod turns;
mod two_quotas;
mod watch;

use tower_quota_core::{Charge, Lock, Name};

pub use self::check::Check;
pub use self::report::ChecksReport;
use self::report::Shown;
pub(crate) use self::watch::{Mark, Watch};
use crate::key::Mistake;
use crate::observe::{Event, Observer, now};
use crate::request::Rules;
use crate::response::Reason;

const MAX_WARNINGS: usize = 64;

#[derive(Default)]
pub(crate) struct Checks {
    found: Lock<ChecksReport>,
}

impl Checks {
    pub(crate) fn turn_off(&self, check: Check) {
        self.found.lock().off.push(check);
    }

    /// Returns new checks, of which the same ones are off.
    pub(crate) fn fork(&self) -> Self {
        let report = ChecksReport {
            off: self.found.lock().off.clone(),
            ..ChecksReport::default()
        };
        Self {
            found: Lock::new(report),
        }
    }

    pub(crate) fn report(&self) -> ChecksReport {
        self.found.lock().clone()
    }

    /// Records the mistake behind a refusal without a decision, if any.
    pub(crate) fn refused(&self, reason: Reason<'_>) {
        let check = match reason {
            Reason::NoPeerAddress => Check::NoPeerAddress,
            Reason::TooManyLimits => Check::TooManyLimits,
            Reason::Undecidable(_) => Check::Undecidable,
            _ => return,
        };
        self.record(check, 1, || match reason {
            Reason::TooManyLimits => format!(
                "a request has more than {} limits, so it is refused with status 500 and not counted: give it fewer limits, \
                 or narrow their conditions",
                Charge::MOST
            ),
            Reason::Undecidable(error) => format!(
                "the store can never decide a request, so it is refused with status 500 and not counted: {error}"
            ),
            _ => Mistake::NoPeerAddress.to_string(),
        });
    }

    pub(crate) fn unheld_upgrade(&self, limit: Name) {
        self.record(Check::UnheldUpgrade, 1, || {
            format!(
                "the limit {:?} holds units, but an upgraded connection, such as a websocket, has released its unit with the \
                 response. Move a clone of the request's `Reservation` into the task of the connection",
                limit.as_str()
            )
        });
    }

    pub(crate) fn unknown_limit(&self, limit: &str) {
        self.record(Check::UnknownLimit, 1, || {
            format!(
                "a handler settles the limit {limit:?}, but the layers that settle the request have no limit of this name, so \
                 the estimate stays. Correct the name in the call of `Reservation::settle`"
            )
        });
    }

    pub(crate) fn excessive_cost(&self, limit: Name, longest_debt: u64) {
        self.record(Check::ExcessiveCost, 1, || {
            format!(
                "the limit {:?} settled a cost that is more than {longest_debt} units above the estimate, and charged only \
                 {longest_debt} units more. Correct the computation of the cost, which may be a subtraction below zero",
                limit.as_str()
            )
        });
    }

    fn record(&self, check: Check, shown: u64, text: impl FnOnce() -> String) {
        let threshold = check.threshold();
        if shown < threshold {
            return;
        }
        let mut found = self.found.lock();
        if found.off.contains(&check) {
            return;
        }
        let is_first = shown == threshold;
        let requests = if is_first { threshold } else { 1 };
        let last = now();
        match found.counts.iter_mut().find(|shown| shown.check == check) {
            Some(shown) => {
                shown.requests += requests;
                shown.last = last;
            }
            None => found.counts.push(Shown {
                check,
                requests,
                last,
            }),
        }
        if !is_first || found.warnings.len() >= MAX_WARNINGS {
            return;
        }
        let text = format!(
            "{}. This is logged once; `RateLimitLayer::without_check(Check::{check:?})` turns it off.",
            text()
        );
        // A new policy is watched again, so the mistake may be in the log already.
        if found.warnings().any(|(_, known)| known == text) {
            return;
        }
        found.warnings.push((check, text.clone()));
        // A subscriber may be slow, so release the lock first.
        drop(found);
        tracing::warn!(target: "tower_quota", "{text}");
    }
}

impl Observer for Checks {
    fn observe(&self, event: &Event<'_>, rules: &Rules) {
        if let Event::Decided { decided, .. } = event
            && let (None, Some(reason)) = (decided.decision, decided.reason)
            && !decided.is_degraded
        {
            // An open watch has already recorded a missing address.
            if !(matches!(reason, Reason::NoPeerAddress) && rules.watch.is_open()) {
                self.refused(reason);
            }
        }
    }
}
