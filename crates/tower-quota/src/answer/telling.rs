//! What there is to tell of a decision, whatever the style.

use core::time::Duration;

use http::header::{HeaderMap, HeaderName};
use tower_quota_core::{Decision, LimitStatus, Outcome, Quota};

use super::particulars::Particulars;
use super::partition::PartitionKey;
use super::seconds::epoch_second;

/// The limits that clients are told of, wherever they are told.
pub(super) fn statuses(decision: &Decision) -> impl Iterator<Item = &LimitStatus> {
    decision.enforced()
}

/// The limits that would have refused a request if they were enforced.
pub(super) fn shadows(decision: &Decision) -> impl Iterator<Item = &LimitStatus> {
    decision.would_refuse()
}

/// A decision and its particulars: the questions that styles ask of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Telling<'a> {
    pub(super) decision: &'a Decision,
    pub(super) particulars: &'a Particulars,
    /// Whether no limiter behind this one has told anything: then there is nothing to look for in the headers.
    pub(super) is_first: bool,
}

/// Whether there is no field in these headers that a limiter writes.
pub(super) fn is_first(headers: &HeaderMap) -> bool {
    let tells = |name: &HeaderName| ["ratelimit", "x-ratelimit"].iter().any(|begin| name.as_str().starts_with(begin));
    !headers.keys().any(tells)
}

impl<'a> Telling<'a> {
    /// The limits that clients are told of, in the order of the policy.
    pub(super) fn statuses(self) -> impl Iterator<Item = &'a LimitStatus> {
        statuses(self.decision)
    }

    /// Of these, on a refusal, only the limits that refuse: the others would tell the client to come back sooner.
    pub(super) fn heeded(self) -> impl Iterator<Item = &'a LimitStatus> {
        let allowed = self.decision.is_allowed();
        self.statuses().filter(move |standing| allowed || standing.outcome.is_refusal())
    }

    /// The one limit that fields tell of which have room for no more.
    pub(super) fn binding(self) -> Option<&'a LimitStatus> {
        self.decision.binding()
    }

    /// When a request that this limit refuses would pass, as its client is told.
    pub(super) fn retry(self, standing: &LimitStatus) -> Option<Duration> {
        match standing.outcome {
            Outcome::Refuse(retry) => Some(retry.saturating_add(self.particulars.jitter)),
            Outcome::Allow | Outcome::Wait(_) | Outcome::Never => None,
        }
    }

    /// Until a limit is whole, and never sooner than a refused client is told to come back.
    pub(super) fn reset(self, standing: &LimitStatus) -> Duration {
        self.retry(standing).map_or(standing.reset_after(), |retry| retry.max(standing.reset_after()))
    }

    /// [`reset`](Self::reset) as a second of the Unix epoch, by the clock of whoever decided.
    pub(super) fn reset_second(self, standing: &LimitStatus) -> u64 {
        epoch_second(self.decision.at(), self.reset(standing))
    }

    /// The quota that a limit counts by, given the one it was made with.
    pub(super) fn quota(self, standing: &LimitStatus, own: &'a Quota) -> &'a Quota {
        self.particulars.quota(standing.name).unwrap_or(own)
    }

    /// Whose counter a limit reads.
    pub(super) fn partition(self, standing: &LimitStatus) -> Option<&'a PartitionKey> {
        self.particulars.partition(standing.name)
    }
}
