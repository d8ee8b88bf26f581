//! The algorithms, by name.

use core::fmt;

/// The algorithm that a quota counts by.
///
/// | algorithm | choose it if |
/// |---|---|
/// | `TokenBucket` | you are in doubt (the default) |
/// | `Gcra` | you know the name |
/// | `LeakyBucket` | your service needs an even stream |
/// | `FixedWindow` | you bill by the calendar |
/// | `SlidingWindow` | you need a window without the jump at its border |
/// | `SlidingLog` | you guard logins or payments |
/// | `Concurrent` | your work takes long, such as uploads |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// A bucket of `burst` tokens, refilled at the rate.
    TokenBucket,
    /// The generic cell rate algorithm (ITU-T I.371), with the decisions of a token bucket.
    ///
    /// A request conforms unless it arrives earlier than its theoretical arrival time minus the burst tolerance.
    Gcra,
    /// A [`queue`](crate::Quota::queue) that drains at the rate. A request waits for its turn.
    LeakyBucket,
    /// A counter per window, which admits up to twice the units across a border.
    ///
    /// Windows start at multiples of the period since the Unix epoch, in UTC.
    FixedWindow,
    /// The weighted sum of two counters, for the current window and the window before.
    ///
    /// The weight is the part of the earlier window that is less than one period ago. A client at the limit gets up
    /// to one unit less per window, such as 99 of 100, or one unit in two windows of a quota of 1 or 2.
    SlidingWindow,
    /// The timestamps of all requests in the last period, 16 bytes for each of at most 10,000 units.
    SlidingLog,
    /// A number of units in use at the same time. See
    /// [`Quota::concurrent`](crate::Quota::concurrent).
    Concurrent,
}

macro_rules! algorithms {
    ($($algorithm:ident: $code:literal, $name:literal;)*) => {
        impl Algorithm {
            /// All algorithms.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$algorithm),*];

            /// Returns the number of the kind of state.
            #[doc(hidden)]
            pub const fn state_code(self) -> u8 {
                match self {
                    $(Self::$algorithm => $code,)*
                }
            }
        }

        impl fmt::Display for Algorithm {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$algorithm => $name,)*
                })
            }
        }
    };
}

algorithms! {
    TokenBucket: 0, "token bucket";
    Gcra: 0, "GCRA bucket";
    LeakyBucket: 0, "leaky bucket";
    FixedWindow: 1, "fixed window";
    SlidingWindow: 2, "sliding window counter";
    SlidingLog: 3, "sliding window log";
    Concurrent: 4, "concurrency limit";
}

impl Algorithm {
    /// Returns whether the algorithm refills continuously.
    pub const fn is_bucket(self) -> bool {
        self.state_code() == 0
    }

    pub(crate) fn of_state_code(code: u8) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|algorithm| algorithm.state_code() == code)
    }
}
