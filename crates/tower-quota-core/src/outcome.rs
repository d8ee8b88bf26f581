//! Outcomes of a request.

use core::time::Duration;

/// Says whether a request may pass, from the mildest outcome to the most severe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Outcome {
    /// The request may pass at once.
    #[default]
    Allow,
    /// The request may pass after this wait. The store has taken the units.
    Wait(Duration),
    /// The request is refused. Without other requests, the same request would be admitted after
    /// exactly this wait. For holds, the wait is a guess.
    Refuse(Duration),
    /// The request can never pass, because a cost exceeds a capacity.
    Never,
}

impl Outcome {
    /// Returns whether the request may not pass.
    pub const fn is_refusal(self) -> bool {
        matches!(self, Self::Refuse(_) | Self::Never)
    }

    pub(crate) const fn after(wait: u64) -> Self {
        match wait {
            0 => Self::Allow,
            wait => Self::Wait(Duration::from_micros(wait)),
        }
    }

    pub(crate) const fn refuse_for(retry: u64) -> Self {
        Self::Refuse(Duration::from_micros(retry))
    }

    /// Returns a rank to compare refusals. Requests that may pass have no rank.
    pub(crate) fn severity(self) -> Option<Self> {
        self.is_refusal().then_some(self)
    }
}
