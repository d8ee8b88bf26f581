//! Waiting for one's turn: how many may, and what becomes of a turn that nobody takes.

use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::Arc;

use http::Request;
use tower_quota_core::{Decision, Store};

use super::gate::Gate;
use super::verdict::{Case, Verdict, without_waiting};
use crate::settle::Account;

/// Those who wait, counted.
#[derive(Debug)]
pub(super) struct Line {
    waiting: AtomicUsize,
    most: usize,
}

/// The right to wait. Dropped, it is somebody else's.
#[derive(Debug)]
pub(super) struct Place {
    line: Arc<Line>,
}

/// A turn to come. Dropped before it has come, it is given back with all that the request was charged.
pub(super) struct Turn {
    /// Boxed: the future of every request has room for it, and few wait.
    account: Option<Box<Account>>,
    _place: Place,
}

impl Line {
    pub(super) const fn new(most: usize) -> Self {
        Self { waiting: AtomicUsize::new(0), most }
    }

    /// A place, unless all are taken.
    pub(super) fn place(self: &Arc<Self>) -> Option<Place> {
        // Only the count matters: no other memory hangs on it.
        let enter = |waiting| (waiting < self.most).then_some(waiting + 1);
        self.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, enter).ok()?;
        Some(Place { line: Arc::clone(self) })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.line.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Turn {
    pub(super) fn new(place: Place, account: Option<Account>) -> Self {
        Self { account: account.map(Box::new), _place: place }
    }

    /// The turn has come. What is left to do with the request's charges is somebody else's business.
    pub(super) fn take(mut self) -> Option<Account> {
        self.account.take().map(|account| *account)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(account) = &self.account {
            account.give_back();
        }
    }
}

impl<S: Store> Gate<S> {
    /// What happens to a request that was given a later turn.
    pub(super) fn line_up<B>(
        &self,
        decision: &mut Decision,
        case: &mut Case,
        account: Option<Account>,
        request: &mut Request<B>,
    ) -> Verdict {
        if let Some(place) = self.line.place() {
            self.admit(decision, case, request);
            let wait = decision.wait().saturating_add(chance(self.plan.jitter(decision)));
            return Verdict::Wait(wait, Turn::new(place, account));
        }
        if let Some(account) = account {
            account.give_back();
        }
        *decision = without_waiting(decision);
        Verdict::Refuse(self.turn_down(decision, case, request))
    }
}

/// Anything from nothing to this much, in whole microseconds.
fn chance(most: Duration) -> Duration {
    Duration::from_micros(fastrand::u64(..=u64::try_from(most.as_micros()).unwrap_or(u64::MAX)))
}
