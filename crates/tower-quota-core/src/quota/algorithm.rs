//! The algorithms, by name.

use core::fmt;

/// The algorithm that a quota counts by.
///
/// | algorithm | admits | choose it when |
/// |---|---|---|
/// | `TokenBucket` | bursts up to `burst`, refilled continuously at the rate | in doubt: it is the default |
/// | `Gcra` | the same stream of decisions as a token bucket of that burst | you know it by that name |
/// | `LeakyBucket` | a queue of `queue` places drained evenly at the rate | the service behind needs an even stream |
/// | `FixedWindow` | `units` per window; up to twice that across a border | people are billed by the calendar |
/// | `SlidingWindow` | an estimate over the last window, from two counters; a little less than the rate | a window without the jump at its border |
/// | `SlidingLog` | exactly `units` in any window | few units that must never be exceeded: logins, payments |
/// | `Concurrent` | `units` at the same time | work takes long: uploads, reports, connections |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// Tokens are added to a bucket that holds `burst` of them; a request takes its cost in tokens.
    TokenBucket,
    /// The generic cell rate algorithm (ITU-T I.371): a request conforms unless it arrives earlier than its theoretical
    /// arrival time less the burst tolerance. The same decisions as a token bucket whose capacity is `burst`: the
    /// arrival time is ahead of the clock by exactly the time the missing tokens take to come back.
    Gcra,
    /// A queue of [`queue`](crate::Quota::queue) places that empties at the rate. A request waits for its turn, or is refused if the queue is
    /// full or the wait is longer than it accepts.
    LeakyBucket,
    /// A counter per window of one period. Windows start at multiples of the period since the Unix epoch, so hours and
    /// days are those of UTC.
    FixedWindow,
    /// The weighted sum of two counters: this window's, and that of the window before.
    ///
    /// The weight is the part of the earlier window that is less than one period ago. The estimate assumes that its
    /// requests were spread evenly. It is compared in full units, so a client at the limit gets up to one unit less in
    /// each window than the quota says: 99 of 100, 9 of 10, and one in every two windows of a quota of 1 or 2. If each
    /// unit matters, use a log or a bucket.
    SlidingWindow,
    /// The stamp of every admitted request, for one period: 16 bytes each, and time that grows with their number. At
    /// most 10,000 units.
    SlidingLog,
    /// Units in use at the same time. A unit is free again when its request releases it, or after one period. See
    /// [`Quota::concurrent`](crate::Quota::concurrent).
    Concurrent,
}

/// Makes the table of algorithms: their kinds of state and their names.
macro_rules! algorithms {
    ($($algorithm:ident: $code:literal, $name:literal;)*) => {
        impl Algorithm {
            /// All algorithms.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$algorithm),*];

            /// Returns a small number for the kind of state it keeps. The three buckets keep the same kind.
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
    /// Returns whether the algorithm refills continuously. The others count in windows, or count units in use.
    #[must_use]
    pub const fn is_bucket(self) -> bool {
        self.state_code() == 0
    }

    /// Returns the first algorithm that keeps this kind of state, if there is one.
    pub(crate) fn of_state_code(code: u8) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|algorithm| algorithm.state_code() == code)
    }
}
