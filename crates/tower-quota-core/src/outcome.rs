//! Outcomes: a request passes, waits or is refused.

use core::time::Duration;

/// Says whether a request may pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The request may pass at once.
    Allow,
    /// The request may pass after this wait. Its charges are taken and its place in the queue is kept.
    Wait(Duration),
    /// The request is refused. The same request, alone, is admitted after exactly this wait, and not sooner.
    Refuse(Duration),
    /// The request can never pass: a cost is above its limit's capacity.
    Never,
}

impl Outcome {
    /// Returns whether the request may not pass.
    #[must_use]
    pub const fn is_refusal(self) -> bool {
        matches!(self, Self::Refuse(_) | Self::Never)
    }

    /// Returns the outcome of a request that may pass after this many microseconds.
    pub(crate) const fn after(wait: u64) -> Self {
        if wait == 0 {
            Self::Allow
        } else {
            Self::Wait(Duration::from_micros(wait))
        }
    }

    /// Returns the outcome of a request that fits after this many microseconds.
    pub(crate) const fn refuse_for(retry: u64) -> Self {
        Self::Refuse(Duration::from_micros(retry))
    }

    /// Returns the outcome of a limit that is blocked for this many microseconds more; 0 means not blocked.
    pub(crate) fn blocked_for(self, blocked: u64) -> Self {
        match self {
            Self::Refuse(retry) => Self::Refuse(retry.max(Duration::from_micros(blocked))),
            Self::Allow | Self::Wait(_) if blocked > 0 => Self::refuse_for(blocked),
            _ => self,
        }
    }

    /// Returns a rank, from the mildest outcome to the hardest. A wait ranks as none: neither refuses.
    pub(crate) const fn severity(self) -> (u8, Duration) {
        match self {
            Self::Allow | Self::Wait(_) => (0, Duration::ZERO),
            Self::Refuse(retry) => (1, retry),
            Self::Never => (2, Duration::ZERO),
        }
    }

    /// Returns the outcome of two limits together.
    pub(crate) fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Wait(one), Self::Wait(another)) => Self::Wait(one.max(another)),
            (Self::Wait(_), Self::Allow) => self,
            _ if other.severity() >= self.severity() => other,
            _ => self,
        }
    }
}
