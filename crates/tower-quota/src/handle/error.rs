use core::error::Error;
use core::fmt;

use tower_quota_core::{ConfigError, Name};

use crate::settle::StoreCallError;
use crate::settle::store_call::StoreTimeout;

/// The error of a [`RateLimitHandle`](crate::RateLimitHandle).
#[derive(Debug)]
#[non_exhaustive]
pub enum HandleError<E> {
    /// The policy lacks this limit.
    UnknownLimit {
        /// The given name.
        name: String,
        /// The limits of the policy.
        known: Vec<Name>,
    },
    /// The extractor of this limit cannot read a key.
    ///
    /// The text is not an address, the extractor is [`key::all`](crate::key::all()), the request has no key, or you
    /// block conflicting keys.
    UnreadableKey(Name),
    /// This process holds 100,000 blocks. Block by a [condition](crate::Policy::block) instead.
    TooManyBlocks,
    /// Sliding logs and concurrency limits take no units back. Use [reset](crate::RateLimitHandle::reset).
    NotGranted(Name),
    /// A [limiter](crate::RateLimitHandle::limiter) would not release the units of a concurrency limit.
    HeldUnits(Name),
    /// The limit cannot count by the given quota.
    InvalidQuota(Name, ConfigError),
    /// The store failed.
    Store(E),
    /// The store exceeded the [timeout](crate::RateLimitLayer::store_timeout).
    TimedOut(StoreTimeout),
    /// The store has a bug, and answered without a status.
    NoStatus,
}

impl<E: Error + 'static> Error for HandleError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Store(error) => Some(error),
            Self::TimedOut(error) => Some(error),
            _ => None,
        }
    }
}

impl<E: fmt::Display> fmt::Display for HandleError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownLimit { name, known } => {
                let known: Vec<&str> = known.iter().map(|name| name.as_str()).collect();
                write!(
                    f,
                    "the policy has no limit {name:?}: its limits are {}",
                    known.join(", ")
                )
            }
            Self::UnreadableKey(limit) => write!(
                f,
                "the limit \"{limit}\" cannot read a key from this: give an address where it counts addresses, a request \
                 that it counts, or the `Key` that its extractor's `key_of` makes"
            ),
            Self::TooManyBlocks => {
                f.write_str("too many blocks: block by a condition of the policy instead")
            }
            Self::Store(error) => write!(f, "the store failed: {error}"),
            Self::TimedOut(error) => write!(f, "the store failed: {error}"),
            Self::NotGranted(limit) => {
                write!(
                    f,
                    "\"{limit}\" counts by a sliding log or holds units, and cannot be granted units: reset the client"
                )
            }
            Self::HeldUnits(limit) => write!(
                f,
                "the limit \"{limit}\" holds units, which a check of a limiter would not release: keep a clone of the \
                 request's `Reservation`, or make a `Limiter` with a limit of its own for `Limiter::hold`"
            ),
            Self::InvalidQuota(limit, error) => {
                write!(f, "\"{limit}\" cannot count by this quota: {error}")
            }
            Self::NoStatus => f.write_str("the store answered without a status"),
        }
    }
}

impl<E> From<StoreCallError<E>> for HandleError<E> {
    fn from(error: StoreCallError<E>) -> Self {
        match error {
            StoreCallError::Store(error) => Self::Store(error),
            StoreCallError::TimedOut(timeout) => Self::TimedOut(timeout),
        }
    }
}
