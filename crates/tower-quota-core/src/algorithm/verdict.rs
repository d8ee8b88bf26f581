//! Verdicts: the answer of one limit to one cost.

/// The answer of one limit to one cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The cost fits. The request goes ahead after `wait` microseconds, or at once if that is 0.
    Admit {
        /// Microseconds to wait.
        wait: u64,
    },
    /// The cost does not fit now. It will fit after `retry` microseconds if nothing else is charged until then.
    Refuse {
        /// Microseconds until the cost fits.
        retry: u64,
    },
    /// The cost is more than the capacity and will never fit.
    Never,
}

impl Verdict {
    /// Returns whether the request may pass.
    pub(crate) const fn admits(self) -> bool {
        matches!(self, Self::Admit { .. })
    }

    /// Returns the verdict of a limit that is blocked for this many microseconds more; 0 means not blocked.
    pub(crate) fn blocked_for(self, blocked: u64) -> Self {
        match self {
            Self::Refuse { retry } => Self::Refuse { retry: retry.max(blocked) },
            Self::Admit { .. } if blocked > 0 => Self::Refuse { retry: blocked },
            _ => self,
        }
    }
}
