//! Verdicts: the answer of one limit to one cost.

/// The answer of one limit to one cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It fits; the request goes ahead after `wait` microseconds (0: at once).
    Admit {
        /// Microseconds to wait.
        wait: u64,
    },
    /// It does not fit now, and will after `retry` microseconds if nothing else is charged until then.
    Refuse {
        /// Microseconds until it fits.
        retry: u64,
    },
    /// It is more than the capacity and will never fit.
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
