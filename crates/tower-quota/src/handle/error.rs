//! What can go wrong when a layer is operated.

use core::error::Error;
use core::fmt;

use tower_quota_core::Name;

/// Why an operation of a [`RateLimitHandle`](crate::RateLimitHandle) was not done.
#[derive(Debug)]
#[non_exhaustive]
pub enum HandleError<E> {
    /// The policy in force has no limit of this name.
    UnknownLimit {
        /// The name that was asked for.
        name: String,
        /// The names that there are.
        known: Vec<Name>,
    },
    /// The extractor of this limit cannot read a key: the text is no address, one text does not name the parts of
    /// [`key::all`](crate::key::all()), or the request has no key.
    UnreadableKey(Name),
    /// There are as many blocks as this process holds: 100,000. Block by a condition of the policy instead.
    TooManyBlocks,
    /// The store failed.
    Store(E),
    /// The store answered without the status that was asked for, which stores must not do.
    NoStatus,
}

impl<E: Error + 'static> Error for HandleError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Store(error) => Some(error),
            _ => None,
        }
    }
}

impl<E: fmt::Display> fmt::Display for HandleError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownLimit { name, known } => {
                let known: Vec<&str> = known.iter().map(|name| name.as_str()).collect();
                write!(f, "the policy has no limit {name:?}: its limits are {}", known.join(", "))
            }
            Self::UnreadableKey(limit) => write!(
                f,
                "the limit \"{limit}\" cannot read a key from this: give an address where it counts addresses, a request \
                 that it counts, or the `Key` that its extractor's `key_of` makes"
            ),
            Self::TooManyBlocks => f.write_str("too many blocks: block by a condition of the policy instead"),
            Self::Store(error) => write!(f, "the store failed: {error}"),
            Self::NoStatus => f.write_str("the store answered without a status"),
        }
    }
}
