//! Outcomes of a request.

use core::time::Duration;

/// Says whether a request may pass.
///
/// Outcomes are ordered from the mildest to the most severe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Outcome {
    /// The request may pass at once.
    Allow,
    /// The request may pass after this wait. The store has taken its charges and keeps its place in the queue.
    Wait(Duration),
    /// The request is refused. The same request, alone, is admitted after exactly this wait and not earlier.
    Refuse(Duration),
    /// The request can never pass, because a cost exceeds the capacity of its limit.
    Never,
}

impl Outcome {
    /// Returns whether the request may not pass.
    #[must_use]
    pub const fn is_refusal(self) -> bool {
        matches!(self, Self::Refuse(_) | Self::Never)
    }

    /// Returns the outcome of a request that may pass after this wait, in microseconds.
    pub(crate) const fn after(wait: u64) -> Self {
        match wait {
            0 => Self::Allow,
            wait => Self::Wait(Duration::from_micros(wait)),
        }
    }

    /// Returns the outcome of a request that fits after this wait, in microseconds.
    pub(crate) const fn refuse_for(retry: u64) -> Self {
        Self::Refuse(Duration::from_micros(retry))
    }

    /// Returns the severity of a refusal. A request that waits is as good as an allowed request.
    pub(crate) fn severity(self) -> Option<Self> {
        self.is_refusal().then_some(self)
    }
}
