//! What listeners hear of a decision.

use core::time::Duration;

use tower_quota_core::Decision;

use crate::head::RequestHead;
use crate::response::Reason;

/// A decision as [`RateLimitLayer::on_decision`](crate::RateLimitLayer::on_decision) hears of it.
#[derive(Clone, Copy, Debug)]
pub struct Decided<'a> {
    pub(crate) head: RequestHead<'a>,
    pub(crate) decision: Option<&'a Decision>,
    pub(crate) reason: Option<Reason<'a>>,
    pub(crate) degraded: bool,
}

impl<'a> Decided<'a> {
    /// Returns the request, with what look-ups have found in its extensions.
    #[must_use]
    pub const fn head(&self) -> RequestHead<'a> {
        self.head
    }

    /// Returns the decision of the store, or of this instance in its place.
    ///
    /// There is none where nothing was counted: for blocked requests, missing keys, and a store that failed.
    #[must_use]
    pub const fn decision(&self) -> Option<&'a Decision> {
        self.decision
    }

    /// Returns why the request is refused; `None` when it is admitted.
    #[must_use]
    pub const fn reason(&self) -> Option<Reason<'a>> {
        self.reason
    }

    /// Returns how long an admitted request waits for its turn; zero for all others.
    #[must_use]
    pub fn wait(&self) -> Duration {
        match (self.reason, self.decision) {
            (None, Some(decision)) => decision.wait(),
            _ => Duration::ZERO,
        }
    }

    /// Returns whether the store was unavailable. Requests that no limit counts then have no
    /// [`decision`](Self::decision).
    #[must_use]
    pub const fn is_degraded(&self) -> bool {
        self.degraded
    }

    /// Returns one word for it, as a label of a metric.
    ///
    /// An admitted request is `allowed`, `waiting` or `uncounted` (the store failed, and the limits allow). A refused one
    /// is `refused`, `never` (it costs more than a limit ever holds), `blocked`, `missing_key`, `unauthenticated`,
    /// `no_peer_address` or `store_failure`.
    #[must_use]
    pub fn label(&self) -> &'static str {
        match self.reason {
            Some(Reason::OverQuota(_)) => "refused",
            Some(Reason::NeverFits(_)) => "never",
            Some(Reason::Blocked) => "blocked",
            Some(Reason::MissingKey(_)) => "missing_key",
            Some(Reason::Unauthenticated(_)) => "unauthenticated",
            Some(Reason::NoPeerAddress) => "no_peer_address",
            Some(Reason::StoreFailure(_)) => "store_failure",
            None if self.decision.is_none() => "uncounted",
            None if self.wait().is_zero() => "allowed",
            None => "waiting",
        }
    }
}
