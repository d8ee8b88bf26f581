//! The algorithms, by name.

use core::fmt;

/// The algorithm that a quota counts by.
///
/// | algorithm | admits | choose it when |
/// |---|---|---|
/// | `TokenBucket` | bursts up to `burst`, refilled continuously at the rate | in doubt (the default) |
/// | `Gcra` | the same stream of decisions as a token bucket of that burst | you know the algorithm by this name |
/// | `LeakyBucket` | a queue of `queue` places, drained evenly at the rate | your service needs an even stream |
/// | `FixedWindow` | `units` per window, up to twice as many across a border | you bill your users by the calendar |
/// | `SlidingWindow` | an estimate over the last window, a little less than the rate | you need a window without the jump at its border |
/// | `SlidingLog` | exactly `units` in any window | few units must never be exceeded, such as logins or payments |
/// | `Concurrent` | `units` at the same time | work takes long, such as uploads or connections |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// A bucket of `burst` tokens, refilled at the rate. A request takes its cost in tokens.
    TokenBucket,
    /// The generic cell rate algorithm (ITU-T I.371), with the decisions of a token bucket.
    ///
    /// A request conforms unless it arrives earlier than its theoretical arrival time minus the burst tolerance. The
    /// arrival time is ahead of the clock by the time that a token bucket needs to refill the missing tokens.
    Gcra,
    /// A queue of [`queue`](crate::Quota::queue) places that drains at the rate.
    ///
    /// A request waits for its turn. It is refused if the queue is full or the wait is longer than the request accepts.
    LeakyBucket,
    /// A counter per window of one period.
    ///
    /// Windows start at multiples of the period since the Unix epoch. Hours and days are therefore in UTC.
    FixedWindow,
    /// The weighted sum of two counters, for the current window and the window before.
    ///
    /// The weight is the part of the window before that is less than one period ago. The estimate assumes that its
    /// requests were spread evenly, and is compared in full units. A client at the limit gets up to one unit less per
    /// window than the quota, such as 99 of 100, or one unit in two windows of a quota of 1 or 2. If each unit matters,
    /// use a log or a bucket.
    SlidingWindow,
    /// The timestamps of all admitted requests of the last period.
    ///
    /// Each timestamp takes 16 bytes. A log has at most 10,000 units, and becomes slower as it grows.
    SlidingLog,
    /// Units in use at the same time; see [`Quota::concurrent`](crate::Quota::concurrent).
    ///
    /// A unit is free again when its request releases the unit, or after one period.
    Concurrent,
}

/// Makes the table of algorithms: their kinds of state and their names.
macro_rules! algorithms {
    ($($algorithm:ident: $code:literal, $name:literal;)*) => {
        impl Algorithm {
            /// All algorithms.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$algorithm),*];

            /// Returns a small number for the kind of state. The three buckets have the same kind.
            #[must_use]
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
    /// Returns whether the algorithm refills continuously, unlike windows and holds.
    #[must_use]
    pub const fn is_bucket(self) -> bool {
        self.state_code() == 0
    }

    /// Returns the first algorithm with this kind of state.
    pub(crate) fn of_state_code(code: u8) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|algorithm| algorithm.state_code() == code)
    }
}
