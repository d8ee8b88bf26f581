//! The error of a wait for a turn.

use core::error::Error;
use core::fmt;

use crate::decision::Decision;

/// The error of [`Limiter::until_ready`](crate::Limiter::until_ready). The store has not charged the call.
///
/// The enum is exhaustive on purpose, so that you can match all variants.
#[derive(Debug)]
pub enum NotReady<E> {
    /// The turn is further away than the longest wait, the cost never fits, or a window is full.
    ///
    /// [`Decision::retry_after`] returns when the store would accept the same call. For holds, the time is a guess.
    Refused(Box<Decision>),
    /// The store failed.
    Store(E),
}

impl<E> NotReady<E> {
    /// Returns the refusal, unless the store failed.
    #[must_use]
    pub fn decision(&self) -> Option<&Decision> {
        match self {
            Self::Refused(decision) => Some(decision),
            Self::Store(_) => None,
        }
    }
}

impl<E> fmt::Display for NotReady<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(decision) => match decision.retry_after() {
                Some(retry) => write!(f, "the turn is too far away: try again in {retry:?}"),
                None => {
                    f.write_str("the turn never comes: the cost is above the capacity of a limit")
                }
            },
            Self::Store(_) => f.write_str("the store failed"),
        }
    }
}

impl<E: Error + 'static> Error for NotReady<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Refused(_) => None,
            Self::Store(error) => Some(error),
        }
    }
}
