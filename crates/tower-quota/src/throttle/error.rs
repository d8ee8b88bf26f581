use core::fmt;
use core::time::Duration;
use std::error::Error;

use tower_quota_core::Decision;

/// The error of a [`Throttle`](crate::throttle::Throttle).
///
/// Works with tower's `BoxError`. Inner errors display as themselves, without a source.
#[derive(Debug)]
#[non_exhaustive]
pub enum ThrottleError<E> {
    /// The layer refused the request.
    ///
    /// The request cost no units, unless its turn fell due while the remote pushed the key back.
    Throttled(Throttled),
    /// The store failed under [`StoreFailure::Fail`](super::StoreFailure::Fail).
    Store(Box<dyn Error + Send + Sync>),
    /// The inner service failed.
    Inner(E),
}

/// The refusal of a request, because its turn comes too late or never.
#[derive(Debug)]
pub struct Throttled {
    retry_after: Option<Duration>,
    decision: Option<Box<Decision>>,
}

impl Throttled {
    pub(super) fn by_limiter(decision: Box<Decision>) -> Self {
        Self {
            retry_after: decision.retry_after(),
            decision: Some(decision),
        }
    }

    pub(super) const fn by_remote(retry_after: Duration) -> Self {
        Self {
            retry_after: Some(retry_after),
            decision: None,
        }
    }

    /// Returns the time until the request would be accepted, if ever.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Returns the decision, unless the remote pushed the key back.
    #[must_use]
    pub fn decision(&self) -> Option<&Decision> {
        self.decision.as_deref()
    }
}

impl<E> ThrottleError<E> {
    /// Returns the refusal, if any.
    #[must_use]
    pub const fn throttled(&self) -> Option<&Throttled> {
        match self {
            Self::Throttled(refusal) => Some(refusal),
            _ => None,
        }
    }
}

impl<E: fmt::Display> fmt::Display for ThrottleError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Throttled(_) => f.write_str("the request was throttled and not sent"),
            Self::Store(_) => {
                f.write_str("the request was not sent: its limit could not be checked")
            }
            Self::Inner(error) => error.fmt(f),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> Error for ThrottleError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Throttled(refusal) => Some(refusal),
            Self::Store(error) => Some(&**error),
            Self::Inner(_) => None,
        }
    }
}

impl fmt::Display for Throttled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.retry_after, &self.decision) {
            (Some(retry), Some(_)) => write!(f, "the turn is too far away: try again in {retry:?}"),
            (Some(retry), None) => {
                write!(f, "the remote asked for a pause: try again in {retry:?}")
            }
            (None, _) => {
                f.write_str("the turn never comes: the cost is above the capacity of a limit")
            }
        }
    }
}

impl Error for Throttled {}
