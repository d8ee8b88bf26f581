//! The view of a decision that listeners get.

use core::time::Duration;

use tower_quota_core::{Decision, Key, Name};

use crate::head::RequestHead;
use crate::response::Reason;

/// A decision as [`RateLimitLayer::on_decision`](crate::RateLimitLayer::on_decision) reports it.
#[derive(Clone, Copy, Debug)]
pub struct Decided<'a> {
    pub(crate) head: RequestHead<'a>,
    pub(crate) decision: Option<&'a Decision>,
    pub(crate) reason: Option<Reason<'a>>,
    pub(crate) degraded: bool,
    pub(crate) keys: &'a [(Name, Key<'static>)],
}

impl<'a> Decided<'a> {
    /// Returns the request's head, with looked-up values in its extensions.
    #[must_use]
    pub const fn head(&self) -> RequestHead<'a> {
        self.head
    }

    /// Returns the decision of the store, or of this instance in its place.
    ///
    /// It is `None` if nothing was counted: for blocked requests, missing keys, and a store that failed.
    #[must_use]
    pub const fn decision(&self) -> Option<&'a Decision> {
        self.decision
    }

    /// Returns why the request is refused; `None` when it is admitted.
    #[must_use]
    pub const fn reason(&self) -> Option<Reason<'a>> {
        self.reason
    }

    /// Returns the key by which each limit counts the request, shadows included, for your logs.
    ///
    /// Keys may be secrets: `Debug` shows none of their bytes. There are none if no limit was evaluated: for requests
    /// that a list or an operator blocks, and if a key is missing.
    pub fn keys(&self) -> impl Iterator<Item = (Name, &'a Key<'static>)> + use<'a> {
        self.keys.iter().map(|(limit, key)| (*limit, key))
    }

    /// Returns the limits that refuse the request.
    ///
    /// What each limit has left is in the [`decision`](Self::decision).
    pub fn refusing_limits(&self) -> impl Iterator<Item = Name> + use<'a> {
        let statuses = self.decision.into_iter().flat_map(Decision::enforced);
        statuses
            .filter(|status| status.outcome.is_refusal())
            .map(|status| status.name)
    }

    /// Returns the wait of a refused request, without jitter.
    ///
    /// It is `None` if the request is admitted or waiting does not help.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.decision.and_then(Decision::retry_after)
    }

    /// Returns how long an admitted request waits for its turn; zero for all others.
    #[must_use]
    pub fn wait(&self) -> Duration {
        match (self.reason, self.decision) {
            (None, Some(decision)) => decision.wait(),
            _ => Duration::ZERO,
        }
    }

    /// Returns whether the store was unavailable.
    ///
    /// Requests that no limit counts then have no [`decision`](Self::decision).
    #[must_use]
    pub const fn is_degraded(&self) -> bool {
        self.degraded
    }

    /// Returns one word for the decision, as a label of a metric.
    ///
    /// An admitted request is `allowed`, `waiting` or `uncounted` (the store failed, and the limits allow). A refused
    /// one is `refused`, `never` (it costs more than a limit's capacity), `blocked`, `missing_key`, `unauthenticated`,
    /// `no_peer_address` or `store_failure`.
    #[must_use]
    pub fn label(&self) -> &'static str {
        match self.reason {
            Some(reason) => reason.label(),
            None if self.decision.is_none() => "uncounted",
            None if self.wait().is_zero() => "allowed",
            None => "waiting",
        }
    }
}
