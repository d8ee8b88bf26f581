//! The quotas of each case. They decide what a request finds: a used, a full or an exhausted bucket.

use std::time::Duration;

/// The quota of one limit: `units` come back in each `period`, up to `burst`.
#[derive(Clone, Copy)]
pub(crate) struct Allowance {
    pub(crate) name: &'static str,
    pub(crate) units: u32,
    pub(crate) period: Duration,
    pub(crate) burst: u32,
}

impl Allowance {
    const fn new(name: &'static str, units: u32, period: Duration, burst: u32) -> Self {
        Self {
            name,
            units,
            period,
            burst,
        }
    }

    /// Returns the time in which one unit comes back.
    pub(crate) fn unit(&self) -> Duration {
        self.period / self.units
    }
}

/// The buckets that requests find.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Visit {
    /// Partly used. No request is refused and no bucket is full again within a run: the bursts are in the millions.
    Used,
    /// Full again: a unit comes back before the next request of the client.
    Refilled,
    /// Exhausted by the client's first request.
    Refused,
}

const USED: [Allowance; 4] = [
    Allowance::new("first", 1, Duration::from_secs(120), 9_000_000),
    Allowance::new("second", 1, Duration::from_secs(130), 8_500_000),
    Allowance::new("third", 1, Duration::from_secs(140), 8_000_000),
    Allowance::new("fourth", 1, Duration::from_secs(150), 7_500_000),
];

const REFILLED: [Allowance; 3] = [
    Allowance::new("first", 1_000_000, Duration::from_secs(1), 1_000),
    Allowance::new("second", 60_000_000, Duration::from_secs(60), 2_000),
    Allowance::new("third", 3_600_000_000, Duration::from_secs(3_600), 3_000),
];

/// The widest limit comes first, as in a policy that is written from large to small: a limiter per limit finds the
/// refusal at its first question.
const REFUSED: [Allowance; 3] = [
    Allowance::new("first", 1, Duration::from_secs(86_400), 1),
    Allowance::new("second", 1, Duration::from_secs(43_200), 2),
    Allowance::new("third", 1, Duration::from_secs(21_600), 3),
];

/// The quota of all requests together. It admits all of them.
pub(crate) const EVERYONE: Allowance =
    Allowance::new("everyone", 1_000_000, Duration::from_secs(1), 100_000_000);

/// The quotas of an earlier version of the policy, to take turns with `USED`.
pub(crate) const OLD: [Allowance; 3] = [
    Allowance::new("first", 1, Duration::from_secs(110), 8_900_000),
    Allowance::new("second", 1, Duration::from_secs(120), 8_400_000),
    Allowance::new("third", 1, Duration::from_secs(130), 7_900_000),
];

impl Visit {
    /// Returns the quotas of this many limits, at most three, or four for `Used`.
    pub(crate) fn allowances(self, limits: usize) -> &'static [Allowance] {
        match self {
            Self::Used => &USED[..limits],
            Self::Refilled => &REFILLED[..limits],
            Self::Refused => &REFUSED[..limits],
        }
    }
}
